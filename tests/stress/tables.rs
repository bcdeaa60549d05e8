//! Turns and leases of queues that come and go, by threads that all want the same few: ids are used
//! again all the time, exclusion holds, and in the end nothing is named any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use lanekeeper::intern::Interner;
use lanekeeper::lease::LeaseTable;
use lanekeeper::process_queue::{Refusal, TurnEnd};
use lanekeeper::queue_lock::{HandOver, QueueLockTable};

use crate::duration;

const THREADS: u64 = 3;
const KEYS: u64 = 4;

/// A counter that only the holder of a right touches: ThreadSanitizer tells when it is not so.
#[derive(Default)]
struct Guarded(std::cell::UnsafeCell<u64>);

// SAFETY: touched only by who holds the turn or the lease that it stands beside.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn touch(&self) {
        // SAFETY: the caller holds the right.
        unsafe { *self.0.get() += 1 };
    }
}

/// The numbers of one thread's own, from a seed.
fn next(random: &mut u64) -> u64 {
    *random =
        random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

/// Each thread interns a key, opens its queue if nobody has, takes turns, and closes it again.
pub fn turns_come_and_go() {
    let queues = Arc::new(Interner::<u64>::new());
    let table = QueueLockTable::new(Arc::clone(&queues));
    let beside: Vec<Guarded> = (0..KEYS).map(|_| Guarded::default()).collect();
    let (stop, handed_over) = (AtomicBool::new(false), AtomicU64::new(0));
    let opened = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for seed in 0..THREADS {
            let (table, queues, beside) = (&table, &queues, &beside);
            let (stop, handed_over, opened) = (&stop, &handed_over, &opened);
            threads.push(scope.spawn(move || {
                let mut random = seed;
                while !stop.load(Ordering::Relaxed) {
                    let key = next(&mut random) % KEYS;
                    let queue = queues.intern(&key).expect("room");
                    let generation = next(&mut random);
                    let opens = table.open(queue, None, generation).is_ok();
                    opened.fetch_add(u64::from(opens), Ordering::Relaxed);
                    for _ in 0..next(&mut random) % 8 {
                        match table.begin(queue, None) {
                            Ok(turn) => {
                                beside[key as usize].touch();
                                let over = turn.end() == TurnEnd::HandOver;
                                handed_over.fetch_add(u64::from(over), Ordering::Relaxed);
                            }
                            Err(refusal) => {
                                assert!(matches!(refusal, Refusal::Busy | Refusal::Closed));
                            }
                        }
                    }
                    if opens {
                        let closed = table.close(queue, None, generation).expect("opened here");
                        let now = closed == HandOver::Now;
                        handed_over.fetch_add(u64::from(now), Ordering::Relaxed);
                    }
                    queues.release(queue).expect("interned here");
                }
            }));
        }
        let started = Instant::now();
        while started.elapsed() < duration() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        // ThreadSanitizer does not see how a scope ends, but it sees a join.
        threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    });
    assert!(opened.load(Ordering::Relaxed) > 0);
    assert_eq!(handed_over.load(Ordering::Relaxed), opened.load(Ordering::Relaxed), "told once");
    assert_eq!((table.held_count(), queues.count()), (0, 0));
    assert!(queues.slots_used() <= KEYS + THREADS, "{} slots", queues.slots_used());
}

/// Each thread is a client that comes, takes a lease, perhaps gives it back, and goes, beside a
/// sweeper.
pub fn leases_come_and_go() {
    let queues = Arc::new(Interner::<u64>::new());
    let table = LeaseTable::new(Arc::clone(&queues), 0);
    let beside: Vec<Guarded> = (0..KEYS).map(|_| Guarded::default()).collect();
    let stop = AtomicBool::new(false);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for seed in 0..THREADS {
            let (table, queues, beside) = (&table, &queues, &beside);
            let (stop, taken) = (&stop, &taken);
            threads.push(scope.spawn(move || {
                let mut random = seed;
                while !stop.load(Ordering::Relaxed) {
                    let key = next(&mut random) % KEYS;
                    let queue = queues.intern(&key).expect("room");
                    let group = table.group("g").expect("room");
                    let client = table.client(&format!("c{seed}")).expect("room");
                    // Time stands still: a lease is another's until it is given back.
                    if let Ok(lease) = table.acquire(group, queue, client, 0) {
                        beside[key as usize].touch();
                        let again = table.acquire(group, queue, client, 1).expect("its own");
                        assert_eq!((again.token, again.renewed), (lease.token, true));
                        beside[key as usize].touch();
                        taken.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(table.release(group, queue, client), Ok(true));
                    }
                    assert_eq!(table.sweep(60_000), 0, "none is that old");
                    table.release_client(client).expect("interned here");
                    table.release_group(group).expect("interned here");
                    queues.release(queue).expect("interned here");
                }
            }));
        }
        let started = Instant::now();
        while started.elapsed() < duration() {
            thread::sleep(std::time::Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        // ThreadSanitizer does not see how a scope ends, but it sees a join.
        threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    });
    assert!(taken.load(Ordering::Relaxed) > 0);
    assert_eq!((table.name_counts(), queues.count()), ((0, 0), 0));
    assert!(queues.slots_used() <= KEYS + THREADS, "{} slots", queues.slots_used());
}
