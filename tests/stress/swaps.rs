//! Allocations replaced without end while others read them: each is freed once, after its last
//! reader. Field report: arc-swap#210 (a value freed under a reader).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use lanekeeper::allocate::{Allocation, Allocator, ConsistentHash, Members, Route, Strategy};
use lanekeeper::message_queue::MessageQueue;

use crate::duration;

fn route(count: usize) -> Arc<Route> {
    let queue = |at: usize| MessageQueue::new("t", "b", at as i32).expect("not negative");
    Arc::new(Route::new((0..count).map(queue).collect::<Vec<_>>()).expect("few"))
}

fn members(count: usize) -> Arc<Members> {
    Arc::new(Members::new((0..count).map(|at| format!("client-{at}"))).expect("few"))
}

/// Two writers, two readers; a reader checks that what it holds is whole to its end.
pub fn allocations() {
    let ring = || Strategy::ConsistentHash(ConsistentHash::default());
    let first = Allocation::new(ring(), route(1), members(1)).expect("it fits");
    let allocator = Allocator::new(first);
    let (done, started) = (AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..2 {
            readers.push(scope.spawn(|| {
                let mut reads = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    let held = allocator.load();
                    let own = allocator.share("client-0").expect("always a member");
                    assert!(own.iter().all(|queue| queue.topic() == "t"));
                    let shares = held.shares().expect("never empty");
                    let total: usize =
                        (0..shares.len()).map(|at| shares.indexes(at).expect("once").len()).sum();
                    assert_eq!(total, held.route().len());
                    reads += 1;
                }
                assert!(reads > 0);
            }));
        }
        let of_route = scope.spawn(|| {
            let mut round = 0;
            while started.elapsed() < duration() {
                round += 1;
                allocator.set_route(&route(1 + round % 40)).expect("it fits");
            }
            round
        });
        let mut round = 0;
        while started.elapsed() < duration() {
            round += 1;
            allocator.set_members(&members(1 + round % 7)).expect("it fits");
            let strategy = if round % 2 == 0 { ring() } else { Strategy::Average };
            allocator.set_strategy(&strategy).expect("it fits");
        }
        let last_route = of_route.join().expect("it does not panic");
        done.store(true, Ordering::Relaxed);
        // ThreadSanitizer does not see how a scope ends, but it sees a join.
        readers.into_iter().for_each(|reader| reader.join().expect("a reader ends well"));
        let last = allocator.load();
        assert_eq!(last.members().len(), 1 + round % 7);
        assert_eq!(last.route().len(), 1 + last_route % 40);
    });
}
