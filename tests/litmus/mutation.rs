//! Planted bugs reach every thread of the model of the test that plants them, and no other.

use lanekeeper::sync::atomic::Ordering;
use lanekeeper::sync::{mutated, ordering, set_mutation, thread};

#[cfg(lk_loom)]
fn model(program: impl Fn() + Send + Sync + 'static) {
    loom::model(program);
}

#[cfg(lk_shuttle)]
fn model(program: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(program, 10);
}

fn weakened() -> bool {
    ordering("planted", Ordering::AcqRel, Ordering::Relaxed) == Ordering::Relaxed
}

#[test]
fn all_threads_of_a_model_see_it() {
    set_mutation(Some("planted"));
    model(|| {
        assert!(mutated("planted") && weakened());
        assert!(!mutated("another"));
        assert!(thread::spawn(|| mutated("planted") && weakened()).join().unwrap());
    });
    set_mutation(None);
    model(|| {
        assert!(!mutated("planted") && !weakened());
        assert!(!thread::spawn(|| mutated("planted") || weakened()).join().unwrap());
    });
}

#[test]
fn other_tests_do_not_see_it() {
    set_mutation(Some("planted"));
    let other = std::thread::spawn(|| {
        model(|| assert!(!mutated("planted")));
        mutated("planted")
    });
    assert!(!other.join().unwrap());
    set_mutation(None);
}
