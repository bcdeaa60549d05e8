//! Replays what the Java `ProcessQueue` did, call for call and state for state.
//!
//! The recordings and their origin are described in `tests/golden/README.md`. Every difference has
//! a name ([`departures::Departure`]) and its count is pinned; one without a name fails. Once a
//! line of the misuse file has diverged, the twin is the expectation for the rest of it.

#[path = "golden/data.rs"]
mod data;
#[path = "golden/departures.rs"]
mod departures;
#[path = "golden/lines.rs"]
mod lines;
#[path = "golden/player.rs"]
mod player;
#[path = "golden/replay.rs"]
mod replay;
#[path = "golden/sweep.rs"]
mod sweep;
mod twin;

use departures::Departure::*;
use departures::Tally;
use lanekeeper::process_queue::Mode;
use player::{Both, Played, TwinPlayer};

use data::{Call, Step, steps};
use lines::lines;

fn replay_file<P: Played>(file: &str, mode: impl Fn(&[Step]) -> Mode, lenient: bool) -> Tally {
    let mut tally = Tally::default();
    for line in lines(file) {
        let steps = steps(&line);
        let label = (line["id"].clone(), line["name"].clone());
        let mode = mode(&steps);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            replay::play::<P>(mode, &steps, lenient, &mut tally);
        }));
        assert!(outcome.is_ok(), "{file}, line {label:?}, {mode:?}: see above");
    }
    println!("{file}\n{tally}");
    tally
}

fn orderly<P: Played>() {
    let tally = replay_file::<P>("process_queue_orderly.jsonl.gz", |_| Mode::Orderly, false);
    assert_eq!(tally.agreed, 42_474);
    let clear = (ClearIsANewGeneration, 907);
    let commits = [(CommitOverAGap, 445), (CommitAroundAPutBack, 63)];
    assert_eq!(tally.counts(), [clear, commits[0], commits[1], (Span, 675)]);
}

fn concurrent<P: Played>() {
    let tally = replay_file::<P>("process_queue_concurrent.jsonl.gz", |_| Mode::Concurrent, false);
    assert_eq!(tally.agreed, 37_538);
    let expected = [(ClearIsANewGeneration, 356), (RemoveFromNothing, 2044), (Span, 106)];
    assert_eq!(tally.counts(), expected);
}

/// Only a line that never takes can be one of concurrent use.
fn mode_of(steps: &[Step]) -> Mode {
    let removes_only = steps.iter().all(|step| {
        !matches!(step.call, Call::Take(_) | Call::Commit | Call::Rollback | Call::Again(_))
    });
    if removes_only { Mode::Concurrent } else { Mode::Orderly }
}

fn odd<P: Played>() {
    let tally = replay_file::<P>("process_queue_odd.jsonl.gz", mode_of, true);
    assert_eq!((tally.agreed, tally.twin_only), (1_348, 22_390));
    let expected = [
        (ClearIsANewGeneration, 62),
        (CommitOverAGap, 1),
        (CommitAroundAPutBack, 4),
        (RemoveFromNothing, 220),
        (Span, 8),
        (NothingToCommit, 234),
        (OffsetOutOfRange, 203),
        (TakeOfLessThanNone, 28),
        (TakeOfNone, 51),
        (Duplicate, 110),
        (Stale, 27),
        (HighestIsTheLast, 195),
        (SizeOfTheArgument, 62),
        (AgainOfTheUnknown, 171),
        (RemoveOfTheReady, 97),
        (MalformedMaxOffset, 9),
    ];
    assert_eq!(tally.counts(), expected);
}

fn time<P: Played>() {
    let mut tally = Tally::default();
    let lines = lines("process_queue_time.jsonl.gz");
    let clean: Vec<_> = lines.iter().filter(|line| line["k"] == "clean").collect();
    for line in &clean {
        sweep::play_clean::<P>(line, &mut tally);
    }
    println!("process_queue_time.jsonl.gz\n{tally}");
    assert_eq!((lines.len(), clean.len()), (182, 163));
    assert_eq!(tally.agreed, 36);
    let expected = [
        (ExpiryStopsAtTheHead, 124),
        (SendBackTriedAgain, 89),
        (MalformedStartTime, 1),
        (LastConsumeIsRemoval, 95),
    ];
    assert_eq!(tally.counts(), expected);
}

fn interrupted<P: Played>() {
    let mut tally = Tally::default();
    for line in lines("process_queue_interrupted.jsonl.gz") {
        sweep::play_interrupted::<P>(&line, &mut tally);
    }
    println!("process_queue_interrupted.jsonl.gz\n{tally}");
    assert_eq!(tally.counts(), [(Interrupted, 10)]);
}

/// Each file on the twin alone, so that a failure tells whose it is, and on both.
macro_rules! replays {
    ($($file:ident)*) => {$(
        mod $file {
            #[test]
            fn on_the_twin() {
                super::$file::<super::TwinPlayer>();
            }

            #[test]
            fn on_the_queue() {
                super::$file::<super::Both>();
            }
        }
    )*};
}

replays! { orderly concurrent odd time interrupted }
