//! What shuttle sees: interleavings and weak exchanges that fail, but no orderings.

use lanekeeper::sync::atomic::{AtomicU64, Ordering, Ordering::*};
use lanekeeper::sync::{Arc, thread};
use std::collections::BTreeSet;
use std::sync::Mutex;

const ITERATIONS: usize = 2_000;

fn outcomes<T: Ord + Send + 'static>(
    program: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<T> {
    let seen = std::sync::Arc::new(Mutex::new(BTreeSet::new()));
    let sink = std::sync::Arc::clone(&seen);
    shuttle::check_random(
        move || {
            let outcome = program();
            sink.lock().unwrap().insert(outcome);
        },
        ITERATIONS,
    );
    std::mem::take(&mut *seen.lock().unwrap())
}

fn store_buffering(access: Ordering) -> BTreeSet<(u64, u64)> {
    let (store, load) = match access {
        Relaxed => (Relaxed, Relaxed),
        _ => (Release, Acquire),
    };
    outcomes(move || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let other = Arc::clone(&words);
        let left = thread::spawn(move || {
            other.0.store(1, store);
            other.1.load(load)
        });
        words.1.store(1, store);
        let right = words.0.load(load);
        (left.join().unwrap(), right)
    })
}

#[test]
fn every_ordering_counts_as_total() {
    for access in [Relaxed, AcqRel] {
        let seen = store_buffering(access);
        assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0), (1, 1)]), "{access:?}");
    }
}

#[test]
fn weak_exchange_also_fails_for_no_reason() {
    let seen = outcomes(|| AtomicU64::new(0).compare_exchange_weak(0, 1, AcqRel, Relaxed));
    assert_eq!(seen, BTreeSet::from([Ok(0), Err(0)]));
}

#[test]
fn strong_exchange_does_not() {
    let seen = outcomes(|| AtomicU64::new(0).compare_exchange(0, 1, AcqRel, Relaxed));
    assert_eq!(seen, BTreeSet::from([Ok(0)]));
}
