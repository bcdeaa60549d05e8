//! Total order: which ways to ask for it loom understands.

use crate::kit::outcomes;
use lanekeeper::sync::atomic::{AtomicU64, Ordering, Ordering::*, fence};
use lanekeeper::sync::{Arc, thread};
use std::collections::BTreeSet;

/// Both threads write their own word and read the other's: `left` and `right` answer what they
/// read. Under a total order of the four accesses (0, 0) is impossible.
fn store_buffering(side: fn(&AtomicU64, &AtomicU64) -> u64) -> BTreeSet<(u64, u64)> {
    outcomes(move || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let others = Arc::clone(&words);
        let left = thread::spawn(move || side(&others.0, &others.1));
        let right = side(&words.1, &words.0);
        (left.join().unwrap(), right)
    })
}

#[test]
fn seqcst_accesses_raise_a_false_alarm() {
    let seen = store_buffering(|mine, other| {
        mine.store(1, SeqCst);
        other.load(SeqCst)
    });
    assert!(seen.contains(&(0, 0)), "loom now orders SeqCst accesses: {seen:?}");
}

#[test]
fn seqcst_load_after_rmw_raises_a_false_alarm() {
    let seen = store_buffering(|mine, other| {
        mine.swap(1, SeqCst);
        other.load(SeqCst)
    });
    assert!(seen.contains(&(0, 0)), "loom now orders SeqCst loads: {seen:?}");
}

#[test]
fn seqcst_fences_pass() {
    let seen = store_buffering(|mine, other| {
        mine.store(1, Relaxed);
        fence(SeqCst);
        other.load(Relaxed)
    });
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0), (1, 1)]));
}

#[test]
fn weaker_fences_do_not_pass() {
    let seen = store_buffering(|mine, other| {
        mine.store(1, Relaxed);
        fence(AcqRel);
        other.load(Relaxed)
    });
    assert!(seen.contains(&(0, 0)), "{seen:?}");
}

#[test]
fn rmw_on_both_sides_passes() {
    let seen = store_buffering(|mine, other| {
        mine.swap(1, AcqRel);
        other.fetch_add(0, AcqRel)
    });
    assert!(!seen.contains(&(0, 0)), "{seen:?}");
    assert!(seen.contains(&(0, 1)) && seen.contains(&(1, 0)), "{seen:?}");
}

/// One thread writes data, then a flag. Answers (flag, data) as the other reads them.
fn message_passing(publish: Ordering, look: Ordering) -> BTreeSet<(u64, u64)> {
    outcomes(move || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let writer = Arc::clone(&words);
        let thread = thread::spawn(move || {
            writer.0.store(1, Relaxed);
            writer.1.store(1, publish);
        });
        let flag = words.1.load(look);
        let data = words.0.load(Relaxed);
        thread.join().unwrap();
        (flag, data)
    })
}

#[test]
fn release_and_acquire_pair() {
    assert!(!message_passing(Release, Acquire).contains(&(1, 0)));
}

#[test]
fn either_half_of_the_pair_alone_is_caught() {
    for (publish, look) in [(Relaxed, Acquire), (Release, Relaxed), (Relaxed, Relaxed)] {
        let seen = message_passing(publish, look);
        assert!(seen.contains(&(1, 0)), "{publish:?}, {look:?}: {seen:?}");
    }
}
