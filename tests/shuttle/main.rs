//! Larger mixes under shuttle's random and PCT schedulers, and threads stopped for good anywhere.
//!
//! ```text
//! RUSTFLAGS="--cfg lk_shuttle" CARGO_TARGET_DIR=target/shuttle cargo test --test shuttle
//! LK_SHUTTLE_SEED=17 ...        one seed of each test, under both schedulers
//! LK_SHUTTLE_SEEDS=100000 ...   more of them
//! ```
//!
//! Shuttle explores interleavings and scale, never orderings: it treats all of them as `SeqCst`. A
//! failing test prints its seed; the seed decides the script and the schedule.
#![cfg(lk_shuttle)]

mod explore;
#[path = "../lin/kit/mod.rs"]
mod kit;
mod mix;
mod planted;
mod stopped;

use std::sync::Arc;

use explore::explore;
use kit::scenario::Scenario;
use lanekeeper::process_queue::Mode;

/// One recorded history under the scheduler; the checker looks for a sequential order.
fn history(mode: Mode, seed: u64) {
    let scenario = Arc::new(Scenario::random(mode, seed));
    let stage = scenario.stage();
    let threads: Vec<_> = (0..scenario.roles.len())
        .map(|index| {
            let (scenario, parts) = (Arc::clone(&scenario), stage.parts());
            shuttle::thread::spawn(move || scenario.perform(index, &parts))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread of the history");
    }
    if let Err(why) = stage.judge() {
        panic!("{mode:?}: {why}");
    }
}

/// W1 to W11, T1, T2 in every interleaving the schedulers come by.
#[test]
fn orderly_histories_are_linearizable() {
    explore("orderly_histories", 4_000, |seed| history(Mode::Orderly, seed));
}

/// W1 to W3, W7 to W10, W14, W15 likewise.
#[test]
fn concurrent_histories_are_linearizable() {
    explore("concurrent_histories", 4_000, |seed| history(Mode::Concurrent, seed));
}

/// A puller, a pool of two that runs turns when told to, an observer, a closer: W3, W5, W11, T1,
/// T2.
#[test]
fn orderly_mix() {
    explore("orderly_mix", 600, mix::orderly);
}

/// A puller, three consumers, an observer, a closer: W2, W3, W7, W10, W12, W15.
#[test]
fn concurrent_mix() {
    explore("concurrent_mix", 600, mix::concurrent);
}
