//! The laws on names of any kind: any characters, `@` anywhere, ids listed several times.

use std::collections::BTreeSet;
use std::sync::Arc;

use lanekeeper::allocate::{
    Allocation, BoundedLoad, ConsistentHash, Members, NoShare, Owners, Route, Strategy,
};
use lanekeeper::message_queue::MessageQueue;
use proptest::prelude::{ProptestConfig, TestCaseError, any, prop, proptest};
use proptest::strategy::Strategy as _;
use proptest::test_runner::FileFailurePersistence;
use proptest::{prop_assert, prop_assert_eq, prop_oneof};

use crate::nearby;

fn name() -> impl proptest::strategy::Strategy<Value = String> {
    // Few different ones, so that they meet; characters on both sides of the surrogates.
    prop_oneof![
        "[ab@]{0,3}",
        "[\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}é]{1,2}",
        "room[12]@[xy]",
        any::<String>().prop_map(|text| text.chars().take(3).collect()),
    ]
}

fn strategies(owners: Owners) -> Vec<Strategy> {
    let ring = |virtual_nodes| ConsistentHash { virtual_nodes, ..ConsistentHash::default() };
    let sticky = Strategy::Sticky(Arc::new(owners));
    let bounded = |percent| Strategy::BoundedLoad(BoundedLoad::new(ring(4), percent).unwrap());
    vec![
        Strategy::Average,
        Strategy::AverageByCircle,
        Strategy::ConsistentHash(ring(1)),
        Strategy::ConsistentHash(ring(7)),
        sticky.clone(),
        bounded(100),
        bounded(150),
        nearby(Strategy::Average),
        nearby(sticky),
        nearby(bounded(100)),
    ]
}

fn room(name: &str) -> Option<String> {
    Some(format!("r{}", name.len() % 3))
}

fn check(allocation: &Allocation) -> Result<(), TestCaseError> {
    let (route, members) = (allocation.route(), allocation.members());
    let shares = allocation.shares().unwrap();
    let (mut seen, mut total, mut doubles) = (BTreeSet::new(), 0, false);
    for (position, client) in members.clients().iter().enumerate() {
        let alone = allocation.share(client).map(|share| share.indexes().to_vec());
        if client.is_empty() {
            prop_assert_eq!(alone, Err(NoShare::EmptyClientId));
            doubles = true; // nobody can ask for that one's
            continue;
        }
        let at_once = shares.indexes(position).map(<[u32]>::to_vec);
        prop_assert_eq!(&alone, &at_once);
        match alone {
            Ok(share) => {
                total += share.len();
                seen.extend(share);
            }
            Err(why) => {
                prop_assert_eq!(why, NoShare::DuplicateClient);
                doubles = true;
            }
        }
    }
    prop_assert_eq!(total, seen.len(), "disjoint");
    prop_assert!(seen.iter().all(|&index| (index as usize) < route.len()));
    if !doubles {
        prop_assert_eq!(seen.len(), route.len(), "covering");
    }
    Ok(())
}

fn settings() -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("tests/allocate.proptest-regressions");
    let failure_persistence = Some(Box::new(kept) as Box<_>);
    ProptestConfig { cases: 400, failure_persistence, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn shares_of_any_names_are_disjoint_and_cover_everything(
        names in prop::collection::vec((name(), name(), 0..3_i32), 1..30),
        clients in prop::collection::vec(name(), 1..12),
        had in prop::collection::vec(0..14_usize, 30),
        turn in any::<prop::sample::Index>(),
    ) {
        let queues: Vec<MessageQueue> = names
            .iter()
            .map(|(topic, broker, id)| MessageQueue::new(&**topic, &**broker, *id).unwrap())
            .collect();
        let owner = |at: usize| Some(clients.get(had[at])?.as_str());
        let owners = queues.iter().enumerate();
        let owners = Owners::new(owners.filter_map(|(at, q)| Some((q.clone(), owner(at)?))));
        let route = |queues: &[MessageQueue]| {
            Arc::new(Route::with_rooms(queues, |queue| room(queue.broker_name())).unwrap())
        };
        let members = |clients: &[String]| {
            Arc::new(Members::with_rooms(clients.iter().map(|c| &**c), room).unwrap())
        };
        let (mut turned, mut turned_clients) = (queues.clone(), clients.clone());
        turned.rotate_left(turn.index(queues.len()));
        turned_clients.rotate_left(turn.index(clients.len()));
        for strategy in strategies(owners) {
            let straight = Allocation::new(strategy.clone(), route(&queues), members(&clients));
            let straight = straight.unwrap();
            check(&straight)?;
            let other = Allocation::new(strategy, route(&turned), members(&turned_clients));
            let other = other.unwrap();
            for client in &clients {
                let of = |allocation: &Allocation| {
                    allocation.share(client).map(|share| share.indexes().to_vec())
                };
                prop_assert_eq!(of(&straight), of(&other));
            }
        }
    }
}
