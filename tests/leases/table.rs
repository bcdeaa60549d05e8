//! The broker's side: rules L1, L2, L3, L5, and T4 for its ids.

use std::sync::{Arc, Barrier};
use std::thread;

use lanekeeper::intern::{Id, Interner};
use lanekeeper::lease::{Lease, LeaseRefusal, LeaseTable};
use proptest::prelude::*;

use crate::{Broker, named};

#[test]
fn l1_a_lease_is_given_if_free_own_or_older_than_60_s() {
    let broker = Broker::new();
    assert_eq!(broker.acquire(0, 0, 1_000), Ok(Lease { token: 1, renewed: false }));
    assert_eq!(broker.acquire(1, 0, 61_000), Err(LeaseRefusal::Held));
    assert_eq!(broker.acquire(0, 0, 61_000), Ok(Lease { token: 1, renewed: true }));
    assert_eq!(broker.acquire(1, 0, 121_000), Err(LeaseRefusal::Held));
    assert_eq!(broker.acquire(1, 0, 121_001), Ok(Lease { token: 2, renewed: false }));
    assert_eq!(broker.acquire(0, 0, 121_001), Err(LeaseRefusal::Held));
    // Its own, expired: nobody had it in between, so the token stays.
    assert_eq!(broker.acquire(1, 0, 900_000), Ok(Lease { token: 2, renewed: true }));
}

#[test]
fn l1_a_member_acquires_and_releases_as_its_client_and_pins_both_ids() {
    let Broker { table, group, queues, clients: [a, b, _] } = Broker::new();
    let member = table.member(group, a).unwrap();
    assert_eq!(member.acquire(queues[0], 0), Ok(Lease { token: 1, renewed: false }));
    assert_eq!(member.acquire(queues[0], 60_000), Ok(Lease { token: 1, renewed: true }));
    assert_eq!(table.acquire(group, queues[0], b, 60_001), Err(LeaseRefusal::Held));
    let too_late = 1 << 42;
    let refused = Err(LeaseRefusal::Time { now_ms: too_late });
    assert_eq!(member.acquire(queues[0], too_late), refused);
    table.acquire(group, queues[1], b, 0).unwrap();
    assert_eq!(member.acquire(queues[1], 60_000), Err(LeaseRefusal::Held));
    assert_eq!(member.release(queues[1]), Ok(false));
    assert_eq!(member.acquire(queues[1], 60_001).unwrap().token, 2);
    assert_eq!(member.acquire(Id::from_bits(3 << 32), 0), Err(LeaseRefusal::Stale));
    assert_eq!((member.release(queues[0]), member.release(queues[1])), (Ok(true), Ok(true)));
    table.release_client(a).unwrap();
    table.release_group(group).unwrap();
    assert_eq!(table.client_name(a).as_deref(), Ok("a"), "pinned");
    drop(member);
    assert_eq!(table.client_name(a), Err(LeaseRefusal::Stale));
    assert_eq!(table.release(group, queues[1], b), Err(LeaseRefusal::Stale), "the group, too");
    assert!(table.member(group, b).is_err() && table.member(group, a).is_err());
}

#[test]
fn l2_of_many_threads_one_is_told_yours_for_each_period() {
    const THREADS: usize = 3;
    const PERIODS: i64 = 2_000;
    let broker = Broker::new();
    let barrier = Barrier::new(THREADS);
    let told: Vec<Vec<Option<u64>>> = thread::scope(|scope| {
        let run = |client: usize| {
            let (broker, barrier) = (&broker, &barrier);
            scope.spawn(move || {
                let period = |period: i64| {
                    barrier.wait();
                    broker.acquire(client, 0, period * 60_001).ok().map(|lease| lease.token)
                };
                (0..PERIODS).map(period).collect()
            })
        };
        let threads = [0, 1, 2].map(run);
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let mut last = 0;
    for period in 0..PERIODS as usize {
        let tokens: Vec<u64> = told.iter().filter_map(|thread| thread[period]).collect();
        assert_eq!(tokens.len(), 1, "period {period}");
        assert!(tokens[0] >= last, "period {period}");
        last = tokens[0];
    }
}

#[test]
fn l3_batches_are_per_queue_and_releasing_anothers_lease_changes_nothing() {
    let broker = Broker::new();
    broker.acquire(1, 1, 0).unwrap();
    let mut answers = Vec::new();
    let (group, [a, b, _]) = (broker.group, broker.clients);
    let table = &broker.table;
    let count = table.acquire_batch(group, &broker.queues, a, 0, |index, answer| {
        answers.push((index, answer.is_ok()));
    });
    assert_eq!((count, answers), (2, vec![(0, true), (1, false), (2, true)]));
    assert_eq!(table.release_batch(group, &broker.queues, b), Ok(1));
    assert_eq!(table.release_batch(group, &broker.queues, b), Ok(0));
    assert!(!broker.release(1, 0));
    assert_eq!(table.holder(group, broker.queues[0]).unwrap().client, a);
    assert_eq!(table.all_expired(group, 60_000), Ok(false));
    assert_eq!(table.all_expired(group, 60_001), Ok(true));
    // Released although expired.
    assert_eq!(table.release_batch(group, &broker.queues, a), Ok(2));
    assert_eq!(table.all_expired(group, 0), Ok(true), "a group without leases");
    assert_eq!(table.acquire_batch(group, &[], a, 0, |_, _| unreachable!()), 0);
}

#[test]
fn l5_a_clock_that_steps_back_takes_no_lease_and_one_that_jumps_ahead_gives_it() {
    let broker = Broker::new();
    broker.acquire(0, 0, 100_000).unwrap();
    for now_ms in [99_999, 0, -5_000_000] {
        assert_eq!(broker.acquire(1, 0, now_ms), Err(LeaseRefusal::Held), "{now_ms}");
    }
    assert_eq!(broker.acquire(1, 0, 160_000), Err(LeaseRefusal::Held));
    // A renewal records the lower time: from there it counts.
    broker.acquire(0, 0, 50_000).unwrap();
    assert_eq!(broker.acquire(1, 0, 110_000), Err(LeaseRefusal::Held));
    assert!(broker.acquire(1, 0, 110_001).is_ok());
    // Ten years ahead, and back: it lasts until then, as upstream.
    let ahead = 315_000_000_000;
    assert!(broker.acquire(2, 0, ahead).is_ok());
    assert_eq!(broker.acquire(0, 0, 110_002), Err(LeaseRefusal::Held));
    assert_eq!(broker.table.sweep(ahead + 60_000), 0);
    assert_eq!(broker.table.sweep(ahead + 60_001), 1);
    assert!(broker.acquire(0, 0, 110_002).is_ok());
}

#[test]
fn times_that_cannot_be_recorded_are_refused_and_change_nothing() {
    let broker = Broker::new();
    broker.acquire(0, 0, 0).unwrap();
    for now_ms in [i64::MIN, i64::MAX, 1 << 42, -(1 << 42) - 1] {
        assert_eq!(broker.acquire(0, 0, now_ms), Err(LeaseRefusal::Time { now_ms }));
        assert_eq!(broker.acquire(1, 1, now_ms), Err(LeaseRefusal::Time { now_ms }));
    }
    let holder = broker.table.holder(broker.group, broker.queues[0]).unwrap();
    assert_eq!((holder.last_ms, holder.token), (0, 1));
    assert_eq!(broker.table.holder(broker.group, broker.queues[1]), None);
    for now_ms in [(1 << 42) - 1, -(1 << 42)] {
        assert!(broker.acquire(0, 0, now_ms).is_ok());
        assert_eq!(broker.table.all_expired(broker.group, now_ms), Ok(false));
    }
    // Looking takes any time.
    assert_eq!(broker.table.all_expired(broker.group, i64::MIN), Ok(false));
    assert_eq!(broker.table.all_expired(broker.group, i64::MAX), Ok(true));
    assert_eq!(broker.table.sweep(i64::MIN), 0);
    assert_eq!(broker.table.sweep(i64::MAX), 1);
}

#[test]
fn tokens_begin_above_the_number_given() {
    let queues = Arc::new(Interner::new());
    let queue = queues.intern(&named(0)).unwrap();
    let table = LeaseTable::new(queues, 1_000_000);
    let (group, client) = (table.group("g").unwrap(), table.client("a").unwrap());
    assert_eq!(table.acquire(group, queue, client, 0).unwrap().token, 1_000_001);
    assert_eq!(table.release(group, queue, client), Ok(true));
    // Free in between: somebody else could have had it.
    assert_eq!(table.acquire(group, queue, client, 0).unwrap().token, 1_000_002);
    assert_eq!(table.holder(group, queue).unwrap().token, 1_000_002);
}

#[test]
fn t4_ids_live_as_long_as_a_lease_names_them() {
    let Broker { table, group, queues, clients: [a, b, _] } = Broker::new();
    let ids = Arc::clone(table.queues());
    table.acquire(group, queues[0], a, 0).unwrap();
    assert_eq!(ids.release(queues[0]), Ok(false), "the lease names it");
    table.release_client(a).unwrap();
    assert_eq!(table.client_name(a).as_deref(), Ok("a"), "the lease names it");
    assert_eq!(table.client("a"), Ok(a), "the same client, reconnected");
    assert_eq!(table.release(group, queues[0], a), Ok(true));
    assert!(!ids.is_live(queues[0]));
    table.release_client(a).unwrap();
    // Every id that is gone is stale, everywhere.
    let stale = Err(LeaseRefusal::Stale);
    assert_eq!(table.acquire(group, queues[1], a, 0), stale);
    assert_eq!(table.acquire(group, queues[0], b, 0), stale);
    assert_eq!(table.release(group, queues[0], b), Err(LeaseRefusal::Stale));
    assert_eq!(table.release(group, queues[1], a), Err(LeaseRefusal::Stale));
    assert_eq!(table.release_client(a), Err(LeaseRefusal::Stale));
    table.release_group(group).unwrap();
    assert_eq!(table.acquire(group, queues[1], b, 0), stale);
    assert_eq!(table.all_expired(group, 0), Err(LeaseRefusal::Stale));
    assert_eq!(table.acquire(Id::from_bits(u64::MAX), queues[1], b, 0), stale);
}

#[test]
fn t4_a_stale_queue_or_client_whose_place_is_anothers_renews_nothing() {
    let Broker { table, group, queues, clients: [a, b, _] } = Broker::new();
    let ids = Arc::clone(table.queues());
    let old = queues[0];
    assert_eq!(ids.release(old), Ok(true));
    let new = ids.intern(&named(9)).unwrap();
    table.acquire(group, new, a, 0).unwrap();
    assert_eq!(table.acquire(group, old, a, 1), Err(LeaseRefusal::Stale));
    assert_eq!(table.release(group, old, a), Err(LeaseRefusal::Stale));
    assert_eq!(table.holder(group, old), None);
    table.release_client(b).unwrap();
    let c = table.client("new").unwrap();
    table.acquire(group, queues[1], c, 0).unwrap();
    assert_eq!(table.acquire(group, queues[1], b, 1), Err(LeaseRefusal::Stale));
    assert_eq!(table.release(group, queues[1], b), Err(LeaseRefusal::Stale));
}

#[test]
fn t4_the_table_does_not_grow_with_history() {
    let interner = Arc::new(Interner::new());
    let table = LeaseTable::new(Arc::clone(&interner), 0);
    for round in 0..3_000_i32 {
        let queue = interner.intern(&named(round)).unwrap();
        let group = table.group(&format!("g{round}")).unwrap();
        let client = table.client(&format!("c{round}")).unwrap();
        table.acquire(group, queue, client, 0).unwrap();
        table.release_client(client).unwrap();
        table.release_group(group).unwrap();
        interner.release(queue).unwrap();
        if round % 2 == 0 {
            table.release(group, queue, client).unwrap();
        } else {
            assert_eq!(table.sweep(60_001), 1);
        }
        assert_eq!((table.name_counts(), interner.count()), ((0, 0), 0));
    }
    assert!(interner.slots_used() <= 2, "{} slots", interner.slots_used());
}

#[test]
fn more_clients_than_can_be_told_apart_are_refused() {
    let interner = Arc::new(Interner::new());
    let queue = interner.intern(&named(0)).unwrap();
    let table = LeaseTable::new(interner, 0);
    let group = table.group("g").unwrap();
    let clients: Vec<Id> =
        (0..65_535).map(|index| table.client(&index.to_string()).unwrap()).collect();
    assert_eq!(table.client("one more"), Err(LeaseRefusal::Limit));
    // The first and the last one are different owners.
    let (first, last) = (clients[0], clients[65_534]);
    table.acquire(group, queue, last, 0).unwrap();
    assert_eq!(table.acquire(group, queue, first, 0), Err(LeaseRefusal::Held));
    assert_eq!(table.holder(group, queue).unwrap().client, last);
    table.release_client(first).unwrap();
    assert!(table.client("one more").is_ok());
}

/// What each call should do, in the plainest way.
#[derive(Default)]
struct Twin {
    leases: std::collections::BTreeMap<usize, (usize, i64)>,
}

#[derive(Clone, Debug)]
enum Op {
    Acquire(usize, usize, i64),
    Release(usize, usize),
    Sweep(i64),
}

fn op() -> impl Strategy<Value = Op> {
    let ms =
        prop_oneof![Just(0_i64), Just(60_000), Just(60_001), Just(120_001), -100_000_i64..300_000,];
    prop_oneof![
        4 => (0..3_usize, 0..3_usize, ms.clone()).prop_map(|(c, q, now)| Op::Acquire(c, q, now)),
        1 => (0..3_usize, 0..3_usize).prop_map(|(c, q)| Op::Release(c, q)),
        1 => ms.prop_map(Op::Sweep),
    ]
}

proptest! {
    #[test]
    fn random_calls_agree_with_a_map_of_owners_and_times(ops in prop::collection::vec(op(), 1..80))
    {
        let broker = Broker::new();
        let mut twin = Twin::default();
        for op in ops {
            match op {
                Op::Acquire(client, queue, now) => {
                    let lease = twin.leases.get(&queue);
                    let given = lease.is_none_or(|&(owner, last)| {
                        owner == client || now - last > 60_000
                    });
                    if given {
                        twin.leases.insert(queue, (client, now));
                    }
                    prop_assert_eq!(broker.acquire(client, queue, now).is_ok(), given);
                }
                Op::Release(client, queue) => {
                    let own = twin.leases.get(&queue).is_some_and(|lease| lease.0 == client);
                    if own {
                        twin.leases.remove(&queue);
                    }
                    prop_assert_eq!(broker.release(client, queue), own);
                }
                Op::Sweep(now) => {
                    let before = twin.leases.len();
                    twin.leases.retain(|_, &mut (_, last)| now - last <= 60_000);
                    prop_assert_eq!(broker.table.sweep(now), before - twin.leases.len());
                }
            }
            for (queue, id) in broker.queues.iter().enumerate() {
                let holder = broker.table.holder(broker.group, *id);
                let seen = holder.map(|holder| (holder.client, holder.last_ms));
                let expected = twin.leases.get(&queue);
                prop_assert_eq!(seen, expected.map(|&(c, last)| (broker.clients[c], last)));
            }
        }
    }
}
