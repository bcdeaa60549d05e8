//! What holds for every strategy, tried for all sizes up to 64 queues and 64 clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lanekeeper::allocate::{
    Allocation, BoundedLoad, ConsistentHash, Members, NoShare, Owners, RING_POINTS_MAX, RingHash,
    Route, SetupError, Strategy,
};

use crate::{Case, allocation, cases, client, clients, members, queues, room_of_queue, route};

const SIZE_MAX: usize = 64;

/// The queues that are to be divided.
fn eligible(case: &Case, route: &Route) -> BTreeSet<u32> {
    let all = route.queues().iter().enumerate();
    let wanted = all.filter(|(_, queue)| {
        case.only_room.is_none_or(|room| room_of_queue(queue).as_deref() == Some(room))
    });
    wanted.map(|(index, _)| index as u32).collect()
}

/// Disjoint, covering, the same one by one and all at once, and balanced where that is promised.
fn check(case: &Case, route: &Arc<Route>, members: &Arc<Members>) -> Allocation {
    let allocation = allocation(&case.strategy, route, members);
    let shares = allocation.shares().unwrap();
    let eligible = eligible(case, route);
    let (mut seen, mut total) = (BTreeSet::new(), 0);
    let (mut least, mut most) = (usize::MAX, 0);
    for position in 0..members.len() {
        let share = shares.indexes(position).unwrap();
        let alone = allocation.share(shares.client(position)).unwrap();
        assert_eq!(alone.indexes(), share, "{}", case.name);
        (least, most) = (least.min(share.len()), most.max(share.len()));
        total += share.len();
        seen.extend(share.iter().copied());
    }
    let label = format!("{}: {} queues, {} clients", case.name, route.len(), members.len());
    assert_eq!(total, seen.len(), "twice: {label}");
    assert_eq!(seen, eligible, "not covered: {label}");
    if case.balanced {
        assert!(most - least <= 1, "{least} and {most}: {label}");
    }
    if let Strategy::BoundedLoad(_) = &case.strategy {
        let percent = if case.name.contains("125") { 125 } else { 100 };
        let bound = (route.len() * percent).div_ceil(members.len() * 100);
        assert!(most <= bound, "{most} above {bound}: {label}");
    }
    allocation
}

#[test]
fn a3_shares_are_disjoint_cover_everything_and_are_balanced_where_promised() {
    for case in &cases() {
        for queue_count in 1..=SIZE_MAX {
            let route = route(queues(queue_count));
            for client_count in 1..=SIZE_MAX {
                check(case, &route, &members(clients(client_count)));
            }
        }
    }
}

/// A permutation that is another one for each seed.
fn shuffled<T>(mut items: Vec<T>, seed: usize) -> Vec<T> {
    let mut state = seed as u64 * 2 + 1;
    for at in (1..items.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (state >> 33) as usize % (at + 1));
    }
    items
}

#[test]
fn a1_the_order_of_the_lists_and_doubled_queues_change_nothing() {
    for case in &cases() {
        for (queue_count, client_count) in [(1, 1), (5, 3), (17, 4), (64, 7), (40, 64), (64, 64)] {
            let straight = allocation(
                &case.strategy,
                &route(queues(queue_count)),
                &members(clients(client_count)),
            );
            for seed in 0..8 {
                let doubled = [queues(queue_count), queues(queue_count / 2)].concat();
                let other = allocation(
                    &case.strategy,
                    &route(shuffled(doubled, seed)),
                    &members(shuffled(clients(client_count), seed + 100)),
                );
                assert_eq!(other.route().queues(), straight.route().queues());
                for at in 0..client_count {
                    let of = |allocation: &Allocation| {
                        allocation.share(&client(at)).unwrap().indexes().to_vec()
                    };
                    assert_eq!(of(&other), of(&straight), "{}", case.name);
                }
            }
        }
    }
}

/// A4, for every size of list and every place of a doubled id.
#[test]
fn a4_who_shares_an_id_gets_none_and_the_others_what_java_computes() {
    for case in &cases() {
        let route = route(queues(23));
        for client_count in 1..=12 {
            for doubled in 0..client_count {
                let mut ids = clients(client_count);
                ids.push(client(doubled));
                let members = members(ids);
                let allocation = allocation(&case.strategy, &route, &members);
                let shares = allocation.shares().unwrap();
                let mut seen = BTreeSet::new();
                for position in 0..members.len() {
                    let id = shares.client(position);
                    let share = allocation.share(id).map(|share| share.indexes().to_vec());
                    assert_eq!(share.as_deref(), shares.indexes(position).as_deref());
                    if id == client(doubled) {
                        assert_eq!(share, Err(NoShare::DuplicateClient));
                    } else {
                        assert!(share.unwrap().into_iter().all(|queue| seen.insert(queue)));
                    }
                }
                assert_eq!(allocation.share("stranger").err(), Some(NoShare::NotMember));
                assert_eq!(allocation.share("").err(), Some(NoShare::EmptyClientId));
            }
        }
    }
}

#[test]
fn a4_an_empty_list_is_not_an_empty_share() {
    for case in &cases() {
        let (route, members) = (route(queues(4)), members(clients(2)));
        let none = Arc::new(Members::new(Vec::<String>::new()).unwrap());
        let nothing = Arc::new(Route::new(Vec::new()).unwrap());
        let answer = |route, members| allocation(&case.strategy, route, members).share(&client(0));
        assert_eq!(answer(&nothing, &members).err(), Some(NoShare::NoQueues));
        assert_eq!(answer(&nothing, &none).err(), Some(NoShare::NoQueues));
        assert_eq!(answer(&route, &none).err(), Some(NoShare::NoClients));
        let shares = allocation(&case.strategy, &nothing, &members).shares();
        assert_eq!(shares.err(), Some(NoShare::NoQueues));
    }
}

/// A5: without previous owners it is `AVG`, and with those of `AVG` it stays so.
#[test]
fn a5_sticky_begins_as_avg_and_keeps_what_is_balanced() {
    for queue_count in 1..=SIZE_MAX {
        let route = route(queues(queue_count));
        for client_count in 1..=SIZE_MAX {
            let members = members(clients(client_count));
            let average = allocation(&Strategy::Average, &route, &members).shares().unwrap();
            for owners in [Owners::default(), average.owners()] {
                let sticky = Strategy::Sticky(Arc::new(owners));
                let shares = allocation(&sticky, &route, &members).shares().unwrap();
                for at in 0..client_count {
                    assert_eq!(shares.indexes(at), average.indexes(at));
                }
            }
        }
    }
}

/// A5: owners by name, of another route and with strangers among them.
#[test]
fn a5_sticky_knows_owners_by_name() {
    let route = route(queues(8));
    let members = members(clients(2));
    let second = members.clients()[1].to_string();
    let had = [
        (queues(9)[8].clone(), second.clone()),
        (queues(8)[0].clone(), "left the group".to_owned()),
        (queues(8)[1].clone(), members.clients()[0].to_string()),
        (queues(8)[1].clone(), second.clone()),
        (queues(8)[2].clone(), second.clone()),
    ];
    let owners = Owners::new(had);
    assert_eq!((owners.len(), owners.is_empty()), (4, false));
    assert!(owners.iter().any(|(queue, owner)| queue == &queues(8)[1] && owner == second));
    let sticky = Strategy::Sticky(Arc::new(owners));
    let allocation = allocation(&sticky, &route, &members);
    let place = |at: usize| route.queues().binary_search(&queues(8)[at]).unwrap() as u32;
    let share = allocation.share(&second).unwrap();
    assert!(share.indexes().contains(&place(1)) && share.indexes().contains(&place(2)));
    assert_eq!(share.len(), 4);
}

/// A5: queue after queue in the order of the ring, clockwise to the first client with room, by the
/// plainest means.
fn walked(route: &Route, members: &Members, percent: usize) -> Vec<Vec<u32>> {
    let hash = |text: &str| RingHash::Md5.hash(text);
    let mut points = BTreeMap::new();
    for (number, id) in members.clients().iter().enumerate() {
        points.extend((0..10).map(|point| (hash(&format!("{id}-{point}")), number)));
    }
    let most = (route.len() * percent).div_ceil(members.len() * 100);
    let mut keys: Vec<(i64, u32)> = (0_u32..)
        .zip(route.queues())
        .map(|(index, queue)| (hash(&queue.to_string()), index))
        .collect();
    keys.sort_unstable();
    let mut shares = vec![Vec::new(); members.len()];
    for (key, index) in keys {
        let clockwise = points.range(key..).chain(points.range(..key));
        let client = clockwise.map(|(_, &client)| client).find(|&c| shares[c].len() < most);
        shares[client.unwrap()].push(index);
    }
    shares.iter_mut().for_each(|share| share.sort_unstable());
    shares
}

#[test]
fn a5_bounded_load_is_the_walk_that_it_is_said_to_be() {
    for (queue_count, client_count) in (1..=SIZE_MAX).flat_map(|n| [(n, 3), (n, n), (64, n)]) {
        let (route, members) = (route(queues(queue_count)), members(clients(client_count)));
        for percent in [100, 110, 125, 300] {
            let bounded = BoundedLoad::new(ConsistentHash::default(), percent).unwrap();
            let allocation = allocation(&Strategy::BoundedLoad(bounded), &route, &members);
            let shares = allocation.shares().unwrap();
            for (at, share) in walked(&route, &members, percent as usize).iter().enumerate() {
                assert_eq!(shares.indexes(at).unwrap(), share);
            }
        }
    }
}

/// Keys and rings are kept from one allocation to the next; the shares are those of new ones.
#[test]
fn what_is_kept_changes_no_share() {
    for case in &cases() {
        let (mut route, mut members) = (self::route(queues(20)), self::members(clients(5)));
        let mut kept = allocation(&case.strategy, &route, &members);
        for step in 0..12 {
            if step % 3 == 0 {
                route = self::route(queues(20 + step));
                kept = kept.with_route(Arc::clone(&route)).unwrap();
            } else if step % 3 == 1 {
                members = self::members(clients(5 + step / 2));
                kept = kept.with_members(Arc::clone(&members)).unwrap();
            } else {
                let other = Strategy::ConsistentHash(ConsistentHash {
                    virtual_nodes: 3,
                    ..ConsistentHash::default()
                });
                kept = kept.with_strategy(other).unwrap();
                kept = kept.with_strategy(case.strategy.clone()).unwrap();
            }
            let fresh = allocation(&case.strategy, &route, &members);
            for id in members.clients() {
                let share = kept.share(id).unwrap();
                assert_eq!(share.indexes(), fresh.share(id).unwrap().indexes(), "{}", case.name);
            }
        }
    }
}

#[test]
fn limits_and_bad_values_are_refused_by_name() {
    let no_nodes = ConsistentHash { virtual_nodes: 0, ..ConsistentHash::default() };
    assert_eq!(BoundedLoad::new(no_nodes, 125).unwrap_err(), SetupError::NoVirtualNodes);
    let low = BoundedLoad::new(ConsistentHash::default(), 99).unwrap_err();
    assert_eq!(
        low.to_string(),
        "load_percent is 99, must be at least 100 (percent of the average)"
    );
    let many = ConsistentHash { virtual_nodes: u32::MAX, ..ConsistentHash::default() };
    let strategy = Strategy::ConsistentHash(many);
    let error = Allocation::new(strategy, route(queues(1)), members(clients(2))).unwrap_err();
    let found = 2 * u32::MAX as usize;
    let what = "points on the ring";
    assert_eq!(error, SetupError::TooMany { what, found, most: RING_POINTS_MAX });
    let members = Members::new(vec!["c"; (1 << 20) + 1]).unwrap_err();
    assert!(members.to_string().starts_with("1048577 members"), "{members}");
}
