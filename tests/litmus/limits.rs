//! Sizes and leaks: how far loom looks.

use crate::kit::{outcomes, rejection};
use lanekeeper::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use lanekeeper::sync::{Arc, hint, thread};

/// A program of the first thread and `spawned` others.
fn threads(spawned: usize) -> Option<String> {
    rejection(move || {
        let threads: Vec<_> = (0..spawned).map(|_| thread::spawn(|| {})).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

#[test]
fn five_threads_at_most() {
    assert_eq!(threads(4), None);
    assert!(threads(5).is_some(), "loom now takes six threads");
}

#[test]
fn plain_store_against_rmw_raises_a_false_alarm() {
    // Whoever is later in the order of the word sees the other; loom also runs the execution in
    // which the swap answers the old value and the store is lost. So a word that is the target
    // of a read-modify-write is written by nothing else.
    let seen = outcomes(|| {
        let word = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&word);
        let thread = thread::spawn(move || other.swap(false, AcqRel));
        word.store(true, Release);
        let swapped = thread.join().unwrap();
        swapped || word.load(Acquire)
    });
    assert!(seen.contains(&false), "loom now orders a store against an exchange");
}

#[test]
fn rmw_against_rmw_passes() {
    let seen = outcomes(|| {
        let word = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&word);
        let thread = thread::spawn(move || other.swap(false, AcqRel));
        word.swap(true, AcqRel);
        let swapped = thread.join().unwrap();
        swapped || word.load(Acquire)
    });
    assert_eq!(Vec::from_iter(seen), [true]);
}

/// Can a reader that knows of `stores` stores still see the value before them?
fn remembers_before(stores: u64) -> bool {
    let seen = outcomes(move || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let writer = Arc::clone(&words);
        let thread = thread::spawn(move || {
            for value in 1..=stores {
                writer.0.store(value, Relaxed);
            }
            writer.1.store(1, Relaxed);
        });
        let flag = words.1.load(Relaxed);
        let value = words.0.load(Relaxed);
        thread.join().unwrap();
        (flag, value)
    });
    seen.contains(&(1, 0))
}

#[test]
fn seven_stores_are_remembered() {
    assert!(remembers_before(6));
    assert!(!remembers_before(7), "loom now remembers more than seven stores");
}

#[test]
fn waiting_must_yield() {
    let wait = |pause: fn()| {
        rejection(move || {
            let word = std::sync::Arc::new(AtomicBool::new(false));
            let other = word.clone();
            let thread = thread::spawn(move || other.store(true, Release));
            while !word.load(Acquire) {
                pause();
            }
            thread.join().unwrap();
        })
    };
    let why = wait(|| {}).expect("loom now sees through a loop that does not yield");
    assert!(why.contains("maximum number of branches"), "{why}");
    assert_eq!(wait(hint::spin_loop), None);
}

#[test]
fn leaks_of_tracked_values_only() {
    let arc = rejection(|| std::mem::forget(Arc::new(1)));
    assert!(arc.is_some(), "a leaked Arc goes unseen");
    let track = rejection(|| std::mem::forget(loom::alloc::Track::new(1)));
    assert!(track.is_some(), "a leaked Track goes unseen");
    let unseen = rejection(|| std::mem::forget(Box::new(1)));
    assert_eq!(unseen, None, "loom now sees a leaked Box");
}
