//! Linearizability of recorded histories of real threads, with a checker of our own.
//!
//! ```text
//! cargo test --test lin
//! LK_LIN_SEED=17 cargo test --test lin      one history of each mode, again
//! LK_LIN_HISTORIES=100000 cargo test --test lin
//! ```
//!
//! A history has at most 12 calls. Orderly mode: every verb is one step. Concurrent mode:
//! `complete`, `claim`, `settle` and `requeue` are one step per message, and a `take` is one step
//! to find the queue open and one for each message; `src/docs/proofs.md` lists what else is taken
//! apart. Counts, bytes and spans are weak and checked against bounds (W8); the safe offset and the
//! pull offset may lag while calls overlap, never lead, and never go back (W3). At rest all of it
//! is exact.
#![cfg(not(any(lk_loom, lk_shuttle)))]

mod kit;
mod selftest;

use std::sync::atomic::{AtomicUsize, Ordering};

use kit::history::Event;
use kit::scenario::Scenario;
use lanekeeper::process_queue::Mode;

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Runs one history on real threads that start together.
fn record(scenario: &Scenario) -> Result<Vec<Event>, String> {
    let stage = scenario.stage();
    let parts = stage.parts();
    let waiting = AtomicUsize::new(scenario.roles.len());
    std::thread::scope(|scope| {
        for index in 0..scenario.roles.len() {
            let (parts, waiting) = (&parts, &waiting);
            scope.spawn(move || {
                waiting.fetch_sub(1, Ordering::AcqRel);
                while waiting.load(Ordering::Acquire) > 0 {
                    std::thread::yield_now();
                }
                scenario.perform(index, parts);
            });
        }
    });
    drop(parts);
    stage.judge()
}

fn run(mode: Mode) {
    let (first, histories) = match setting("LK_LIN_SEED") {
        Some(seed) => (seed, 1),
        None => (0, setting("LK_LIN_HISTORIES").unwrap_or(6_000)),
    };
    let (mut steps, mut overlapping) = (0, 0);
    for seed in first..first + histories {
        let scenario = Scenario::random(mode, seed);
        match record(&scenario) {
            Ok(events) => {
                steps += events.len();
                overlapping += usize::from(overlap(&events));
            }
            Err(why) => panic!("LK_LIN_SEED={seed} ({mode:?}): {why}"),
        }
    }
    println!(
        "{mode:?}: {histories} histories, {steps} steps, {overlapping} with overlapping calls"
    );
    assert!(histories == 1 || overlapping > 0, "nothing ever ran at the same time");
}

fn overlap(events: &[Event]) -> bool {
    let crosses = |a: &Event, b: &Event| a.thread != b.thread && a.begin < b.end && b.begin < a.end;
    events.iter().any(|a| events.iter().any(|b| crosses(a, b)))
}

/// W1 to W11, T1, T2 on real threads, orderly.
#[test]
fn orderly_histories_are_linearizable() {
    run(Mode::Orderly);
}

/// W1 to W3, W7 to W10, W14, W15 on real threads, concurrent.
#[test]
fn concurrent_histories_are_linearizable() {
    run(Mode::Concurrent);
}
