//! Compare-and-exchange: the failures loom alone does not explore, and those it never has.

use crate::kit::{outcomes, rejection};
use lanekeeper::sync::atomic::{AtomicU64, Ordering, Ordering::*};
use lanekeeper::sync::{Arc, UnsafeCell, thread};

#[test]
fn stale_failed_cas() {
    let seen = outcomes(|| {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let writer = Arc::clone(&words);
        let thread = thread::spawn(move || {
            writer.0.store(1, Relaxed);
            writer.1.store(1, Relaxed);
        });
        let flag = words.1.load(Relaxed);
        let failed = words.0.compare_exchange(5, 6, AcqRel, Relaxed).unwrap_err();
        thread.join().unwrap();
        (flag, failed)
    });
    assert!(seen.contains(&(1, 0)), "a failed exchange never answers an old value: {seen:?}");
}

#[test]
fn loom_alone_never_fails_stale() {
    use loom::sync::atomic::AtomicU64;
    let seen = outcomes(|| {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let writer = Arc::clone(&words);
        let thread = thread::spawn(move || {
            writer.0.store(1, Relaxed);
            writer.1.store(1, Relaxed);
        });
        let flag = words.1.load(Relaxed);
        let failed = words.0.compare_exchange(5, 6, AcqRel, Relaxed).unwrap_err();
        thread.join().unwrap();
        (flag, failed)
    });
    assert!(!seen.contains(&(1, 0)), "the facade's look is no longer needed: {seen:?}");
}

/// A cell that is written before `gate` becomes 1.
struct Gated {
    gate: AtomicU64,
    cell: UnsafeCell<u64>,
}

// SAFETY: the tests read the cell only after an access to `gate` that should order them; that
// loom notices when it does not is what they are about.
unsafe impl Sync for Gated {}

impl Gated {
    fn read(&self) -> u64 {
        // SAFETY: as above; loom checks the access before the pointer is used.
        self.cell.with(|cell| unsafe { *cell })
    }
}

/// Another thread writes the cell and opens the gate; then `reader` runs beside it.
fn gated(reader: impl Fn(&Gated) + Send + Sync + 'static) -> Option<String> {
    rejection(move || {
        let gated =
            std::sync::Arc::new(Gated { gate: AtomicU64::new(0), cell: UnsafeCell::new(0) });
        let writer = gated.clone();
        let thread = thread::spawn(move || {
            // SAFETY: nobody reads before the gate is open.
            writer.cell.with_mut(|cell| unsafe { *cell = 7 });
            writer.gate.store(1, Release);
        });
        reader(&gated);
        thread.join().unwrap();
    })
}

/// Reads the cell after an exchange that succeeded with `success`.
fn after_success(success: Ordering, failure: Ordering) -> Option<String> {
    gated(move |gated| {
        if gated.gate.compare_exchange(1, 2, success, failure).is_ok() {
            assert_eq!(gated.read(), 7);
        }
    })
}

/// Reads the cell after an exchange that failed with `failure`.
fn after_failure(failure: Ordering) -> Option<String> {
    gated(move |gated| {
        if gated.gate.compare_exchange(0, 0, Relaxed, failure) == Err(1) {
            assert_eq!(gated.read(), 7);
        }
    })
}

#[test]
fn success_ordering_is_not_hidden_by_the_look() {
    let why = after_success(Relaxed, Acquire).expect("a race that went unseen");
    assert!(why.contains("Causality violation"), "{why}");
}

#[test]
fn strong_success_passes() {
    assert_eq!(after_success(Acquire, Relaxed), None);
}

#[test]
fn failure_ordering_holds() {
    assert_eq!(after_failure(Acquire), None);
    assert_eq!(after_failure(SeqCst), None);
}

#[test]
fn weak_failure_is_caught() {
    let why = after_failure(Relaxed).expect("a race that went unseen");
    assert!(why.contains("Causality violation"), "{why}");
}

#[test]
fn weak_exchange_never_fails_for_no_reason() {
    let seen = outcomes(|| AtomicU64::new(0).compare_exchange_weak(0, 1, AcqRel, Relaxed));
    assert_eq!(Vec::from_iter(seen), [Ok(0)]);
}

#[test]
fn exclusive_borrows_write_back() {
    let seen = outcomes(|| {
        let mut word = AtomicU64::new(1);
        *word.get_mut() += 4;
        let mut cell = UnsafeCell::new(2);
        *cell.get_mut() += 8;
        (word.load(Relaxed), word.into_inner(), cell.into_inner())
    });
    assert_eq!(Vec::from_iter(seen), [(5, 5, 10)]);
}

/// One thread counts up as lock-free code does; the other reads. What can the reader see?
macro_rules! seen_beside_a_loop {
    ($atomic:ty) => {
        outcomes(|| {
            let word = Arc::new(<$atomic>::new(0));
            let counter = Arc::clone(&word);
            let thread = thread::spawn(move || {
                let mut seen = counter.load(Relaxed);
                while let Err(now) = counter.compare_exchange(seen, seen + 1, AcqRel, Relaxed) {
                    seen = now;
                }
            });
            let seen = word.load(Acquire);
            thread.join().unwrap();
            seen
        })
    };
}

#[test]
fn load_beside_load_and_exchange() {
    assert_eq!(Vec::from_iter(seen_beside_a_loop!(AtomicU64)), [0, 1]);
}

#[test]
fn loom_alone_hides_a_loop_of_exchanges() {
    // loom remembers one last access of a word. The load that begins the loop replaces that of
    // the reader, so that the exchange finds nothing to be reordered with.
    let seen = seen_beside_a_loop!(loom::sync::atomic::AtomicU64);
    assert_eq!(Vec::from_iter(seen), [0], "the facade's companion is no longer needed");
}
