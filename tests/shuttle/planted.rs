//! The mixes can fail: with a bug planted that no ordering is needed for, some seed finds it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lanekeeper::process_queue::Mode;
use lanekeeper::sync::set_mutation;
use shuttle::Runner;
use shuttle::scheduler::RandomScheduler;

use crate::explore::config;
use crate::history;

/// Seeds tried for each planted bug.
const SEEDS: u64 = 60_000;

fn is_found(mode: Mode, mutation: &'static str) -> bool {
    set_mutation(Some(mutation));
    let found = (0..SEEDS).any(|seed| {
        let run = || {
            let scheduler = RandomScheduler::new_from_seed(seed, 1);
            Runner::new(scheduler, config(200_000)).run(move || history(mode, seed))
        };
        catch_unwind(AssertUnwindSafe(run)).is_err()
    });
    set_mutation(None);
    found
}

#[test]
fn finds_planted_bugs_orderly() {
    for mutation in ["turn_no_note", "idle_no_recheck", "commit_no_cas"] {
        assert!(is_found(Mode::Orderly, mutation), "{mutation} was not found");
    }
}
