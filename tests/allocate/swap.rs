//! Replacing strategy, route and members while others read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lanekeeper::allocate::{Allocation, Allocator, ConsistentHash, Strategy};

use crate::{allocation, client, clients, members, queues, route};

const ROUNDS: usize = 300;

/// Whatever a reader finds is whole: the shares of one allocation cover its own route and no more.
#[test]
fn readers_see_one_whole_allocation_while_everything_is_replaced() {
    let first = allocation(&Strategy::Average, &route(queues(8)), &members(clients(3)));
    let allocator = Allocator::new(first);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = || {
            let mut reads = 0_u32;
            while !done.load(Ordering::Relaxed) || reads == 0 {
                let found = allocator.load();
                let shares = found.shares().unwrap();
                let total: usize =
                    (0..shares.len()).map(|at| shares.indexes(at).unwrap().len()).sum();
                assert_eq!((total, shares.len()), (found.route().len(), found.members().len()));
                let own = allocator.share(&client(0)).unwrap();
                assert!(own.len() <= 40 && own.iter().all(|queue| queue.topic() == "orders"));
                reads += 1;
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        let writers = [
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    allocator.set_route(&route(queues(8 + round % 32))).unwrap();
                }
            }),
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    allocator.set_members(&members(clients(3 + round % 9))).unwrap();
                }
            }),
            scope.spawn(|| {
                let ring = || Strategy::ConsistentHash(ConsistentHash::default());
                for round in 0..ROUNDS {
                    let strategy = if round % 2 == 0 { ring() } else { Strategy::Average };
                    allocator.set_strategy(&strategy).unwrap();
                }
            }),
        ];
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    // Nobody's last replacement was lost.
    let last = allocator.load();
    assert_eq!(last.route().len(), 8 + (ROUNDS - 1) % 32);
    assert_eq!(last.members().len(), 3 + (ROUNDS - 1) % 9);
    assert_eq!(last.strategy().name(), "AVG");
}

/// A replacement that is refused replaces nothing.
#[test]
fn a_refused_replacement_changes_nothing() {
    let (route, members) = (route(queues(8)), members(clients(3)));
    let allocator = Allocator::new(allocation(&Strategy::Average, &route, &members));
    let many = ConsistentHash { virtual_nodes: u32::MAX, ..ConsistentHash::default() };
    assert!(allocator.set_strategy(&Strategy::ConsistentHash(many)).is_err());
    let found = allocator.load();
    assert_eq!(found.strategy().name(), "AVG");
    assert!(Arc::ptr_eq(found.route(), &route) && Arc::ptr_eq(found.members(), &members));
    assert_eq!(allocator.shares().unwrap().len(), 3);
}

/// Groups that share a route share its hash keys, whoever computed them; both get the same shares.
#[test]
fn groups_share_the_keys_of_a_route() {
    let ring = Strategy::ConsistentHash(ConsistentHash::default());
    for _ in 0..50 {
        let (route, members) = (route(queues(64)), members(clients(4)));
        let make = || allocation(&ring, &route, &members);
        let (one, other) = thread::scope(|scope| {
            let other = scope.spawn(make);
            (make(), other.join().unwrap())
        });
        for at in 0..4 {
            let of = |of: &Allocation| of.share(&client(at)).unwrap().indexes().to_vec();
            assert_eq!(of(&one), of(&other));
        }
    }
}
