//! Scripts that once told a fault of the queue from its twin, and long ones from fixed seeds.
//!
//! `LK_SEED=n cargo test --test kept` runs the long scripts from that seed on instead.

mod twin;

use lanekeeper::process_queue::{Config, Mode};
use twin::driver::run;
use twin::long;
use twin::ops::{Batch, Delivery, Op, Pick, Script};

fn orderly(ops: &[Op]) {
    run(Config::default(), ops);
}

fn put(len: u16) -> Op {
    Op::Put { batch: Batch::dense(len), sink: false }
}

fn take(n: u16) -> Op {
    Op::Take { who: 0, n }
}

fn pick(nth: u32, delivery: Delivery) -> Vec<Pick> {
    vec![Pick { nth, stray: false, delivery }]
}

fn requeue(nth: u32) -> Op {
    Op::Requeue { who: 0, picks: pick(nth, Delivery::Any), plus: 1, sink: false }
}

fn complete(nth: u32, delivery: Delivery) -> Op {
    Op::Complete { who: 0, picks: pick(nth, delivery), sink: false }
}

const COMMIT: Op = Op::Commit { sink: false };

/// A turn that had been told CLOSED still thought that its messages were in flight.
#[test]
fn a_turn_that_was_told_closed_has_nothing_in_flight() {
    for told in [COMMIT, Op::Rollback { sink: true }, Op::Commit { sink: true }] {
        let close = Op::Close { sink: false };
        // Counted back from the pull offset: the message that was in flight.
        let stray = vec![Pick { nth: 4, stray: true, delivery: Delivery::Any }];
        let again = Op::Requeue { who: 0, picks: stray.clone(), plus: 0, sink: false };
        let done = Op::Complete { who: 0, picks: stray, sink: false };
        let start = [put(3), Op::Begin, take(1), COMMIT, take(1), close];
        orderly(&[&start[..], &[told, again, Op::InFlight, done]].concat());
    }
}

/// The highest ready message was taken to be the highest ever put, which was finished.
#[test]
fn the_highest_ready_one_is_not_the_highest_put() {
    let rollback = Op::Rollback { sink: false };
    orderly(&[put(2), Op::Begin, take(2), complete(1, Delivery::Any), rollback]);
}

/// An older delivery was answered STALE or UNKNOWN, depending on where the message was.
#[test]
fn an_older_delivery_is_stale_wherever_the_message_is() {
    let old = || complete(0, Delivery::Older);
    let twice = [put(1), Op::Begin, take(1), requeue(0), take(1), old()];
    orderly(&[&twice[..], &[requeue(0), old()]].concat());
}

/// The walk over what is not finished began in the segment before the one it should have.
#[test]
fn the_lowest_one_put_back_lies_in_a_later_segment() {
    orderly(&[put(84), Op::Begin, take(83), requeue(65), COMMIT, take(1), COMMIT]);
}

/// A take that was refused had counted a delivery.
#[test]
fn a_refused_take_is_no_delivery() {
    orderly(&[put(1), Op::Stop, Op::Begin, take(1), complete(0, Delivery::Newer)]);
}

fn long_runs(mode: Mode, seeds: u64, len: usize, window: u64) {
    let given = std::env::var("LK_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    for seed in given.unwrap_or(0)..given.unwrap_or(0) + seeds {
        println!("{mode:?}, LK_SEED={seed}");
        let ops = long::script(mode, seed, len, window);
        let config = Config { mode, ..Config::default() };
        let outcome = std::panic::catch_unwind(|| run(config, &ops));
        if outcome.is_err() {
            let shown = Script(ops.into_iter().take(50).collect());
            panic!("{mode:?}, seed {seed}: see above; it begins{shown:?}");
        }
    }
}

#[test]
fn long_orderly_runs_equal_their_twin() {
    long_runs(Mode::Orderly, 3, 3_000, 300);
    long_runs(Mode::Orderly, 1, 2_000, 3_000);
}

#[test]
fn long_concurrent_runs_equal_their_twin() {
    long_runs(Mode::Concurrent, 3, 2_000, 200);
    long_runs(Mode::Concurrent, 1, 800, 1_000);
}
