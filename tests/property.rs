//! Random sequences of operations on the queue and on its twin: equal answers, equal reads and
//! every payload released exactly when the rules say so (W0 to W16, T1 to T3).
//!
//! A failure prints the seed and the shortest sequence found; it is kept in
//! `tests/property.proptest-regressions` and tried first in every later run. `PROPTEST_CASES`
//! raises the number of cases.

mod twin;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use lanekeeper::process_queue::{Config, Mode};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use twin::driver::run;
use twin::ops::{Batch, Delivery, Gaps, Op, Pick, Script};

fn gaps() -> impl Strategy<Value = Gaps> {
    prop_oneof![
        6 => Just(Gaps::Stride(1)),
        2 => (2u64..200).prop_map(Gaps::Stride),
        3 => (2u32..5).prop_map(Gaps::Jitter),
        2 => (2u32..100_000).prop_map(Gaps::Jitter),
        1 => Just(Gaps::Stride(1 << 16)),
        1 => Just(Gaps::Stride((1 << 32) + 1)),
        2 => (10u32..48).prop_map(|bits| Gaps::Cliff((1 << bits) + 1)),
    ]
}

fn start() -> impl Strategy<Value = i64> {
    prop_oneof![
        10 => Just(0i64),
        3 => 1i64..5,
        3 => -20i64..0,
        1 => (16u32..40).prop_map(|bits| 1i64 << bits),
        1 => Just(i64::MIN / 2),
    ]
}

fn batch(longest: u16) -> impl Strategy<Value = Batch> {
    let len = prop_oneof![3 => Just(1u16), 1 => Just(0u16), 6 => 1..40u16, 2 => 1..longest.max(2)];
    let shuffle = prop_oneof![3 => Just(0u64), 1 => any::<u64>()];
    let copies = prop_oneof![6 => Just(0u8), 1 => 1u8..5];
    let size = prop_oneof![8 => 0u32..5000, 1 => Just(u32::MAX - 50)];
    let attempts = prop_oneof![8 => 0u32..3, 1 => 250u32..300];
    let ahead = option::weighted(0.3, -5i16..100);
    (start(), len, gaps(), shuffle, copies, size, attempts, ahead).prop_map(
        |(start, len, gaps, shuffle, copy_every, size, attempts, broker_ahead)| Batch {
            start,
            len,
            gaps,
            shuffle,
            copy_every,
            size,
            attempts,
            broker_ahead,
        },
    )
}

fn pick() -> impl Strategy<Value = Pick> {
    let nth = prop_oneof![3 => 0u32..4, 1 => 0u32..100, 1 => any::<u32>()];
    let delivery = prop_oneof![
        6 => Just(Delivery::Any),
        3 => Just(Delivery::Current),
        1 => Just(Delivery::Older),
        1 => Just(Delivery::Newer),
    ];
    (nth, prop::bool::weighted(0.1), delivery).prop_map(|(nth, stray, delivery)| {
        // A stray one stays near: far below there is nothing to be found anyway.
        Pick { nth: if stray { nth % 300 } else { nth }, stray, delivery }
    })
}

fn picks() -> impl Strategy<Value = Vec<Pick>> {
    prop_oneof![3 => vec(pick(), 1), 3 => vec(pick(), 0..8), 1 => vec(pick(), 0..100)]
}

fn count() -> impl Strategy<Value = u16> {
    let all = u16::MAX;
    prop_oneof![1 => Just(0u16), 6 => Just(1u16), 6 => 1u16..40, 2 => 1u16..400, 1 => Just(all)]
}

fn common(longest: u16) -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => (batch(longest), any::<bool>()).prop_map(|(batch, sink)| Op::Put { batch, sink }),
        4 => prop_oneof![Just(0i64), -3i64..50, Just(1 << 33)].prop_map(|by| Op::Advance { by }),
        1 => Just(Op::Puller),
        4 => (0i16..300).prop_map(|ms| Op::Tick { ms }),
        1 => (-100i16..0).prop_map(|ms| Op::Tick { ms }),
    ]
}

fn orderly(longest: u16) -> impl Strategy<Value = Op> {
    let sink = any::<bool>;
    prop_oneof![
        30 => common(longest),
        12 => Just(Op::Begin),
        5 => sink().prop_map(|sink| Op::End { sink }),
        1 => Just(Op::DropTurn),
        1 => Just(Op::SuspendTurn),
        25 => count().prop_map(|n| Op::Take { who: 0, n }),
        3 => Just(Op::InFlight),
        12 => sink().prop_map(|sink| Op::Commit { sink }),
        6 => sink().prop_map(|sink| Op::Rollback { sink }),
        8 => (picks(), 0u8..3, sink())
            .prop_map(|(picks, plus, sink)| Op::Requeue { who: 0, picks, plus, sink }),
        8 => (picks(), sink())
            .prop_map(|(picks, sink)| Op::Complete { who: 0, picks, sink }),
        1 => Just(Op::NewConsumer),
        1 => Just(Op::Expired { limit_ms: 0, max: 9 }),
    ]
}

fn concurrent(longest: u16) -> impl Strategy<Value = Op> {
    let (who, sink) = (any::<u8>, any::<bool>);
    prop_oneof![
        30 => common(longest),
        1 => Just(Op::Begin),
        6 => Just(Op::NewConsumer),
        2 => (who(), sink()).prop_map(|(who, sink)| Op::DropConsumer { who, sink }),
        1 => who().prop_map(|who| Op::SuspendConsumer { who }),
        25 => (who(), count()).prop_map(|(who, n)| Op::Take { who, n }),
        25 => (who(), picks(), sink())
            .prop_map(|(who, picks, sink)| Op::Complete { who, picks, sink }),
        8 => (who(), picks(), 0u8..3, sink())
            .prop_map(|(who, picks, plus, sink)| Op::Requeue { who, picks, plus, sink }),
        6 => (who(), picks(), sink())
            .prop_map(|(who, picks, sink)| Op::GiveBack { who, picks, sink }),
        10 => (who(), pick()).prop_map(|(who, pick)| Op::Claim { who, pick }),
        6 => (who(), any::<bool>(), -5i16..200, sink())
            .prop_map(|(nth, sent, delay_ms, sink)| Op::Settle { nth, sent, delay_ms, sink }),
        2 => who().prop_map(|nth| Op::DropClaim { nth }),
        1 => who().prop_map(|nth| Op::SuspendClaim { nth }),
        6 => (0i16..200, 0u8..40)
            .prop_map(|(limit_ms, max)| Op::Expired { limit_ms, max }),
    ]
}

/// Sequences that stop or close the queue somewhere, and go on.
fn with_end(
    first: Op,
    body: impl Strategy<Value = Op> + Clone,
    len: std::ops::Range<usize>,
) -> impl Strategy<Value = Script> {
    let end = prop_oneof![
        3 => Just(Vec::new()),
        1 => Just(vec![Op::Stop]),
        3 => any::<bool>().prop_map(|sink| vec![Op::Close { sink }]),
        1 => any::<bool>().prop_map(|sink| vec![Op::Stop, Op::Close { sink }]),
        1 => any::<bool>().prop_map(|sink| vec![Op::Close { sink }, Op::Close { sink }]),
    ];
    // Mostly there is somebody to consume from the start.
    let first = vec(Just(first), 0..4);
    (first, vec(body.clone(), len), end, vec(body, 0..20)).prop_map(
        |(mut ops, more, end, after)| {
            ops.extend(more);
            ops.extend(end);
            ops.extend(after);
            Script(ops)
        },
    )
}

fn config(mode: Mode) -> impl Strategy<Value = Config> {
    let start = prop_oneof![Just(0i64), 1i64..1000, Just(1i64 << 40), Just(i64::MAX - 100_000)];
    let most = prop_oneof![3 => Just(1u32 << 20), 1 => 1u32..100];
    (start, most, 1u32..6, any::<u64>()).prop_map(
        move |(start_offset, outstanding_max, consumers_max, generation)| Config {
            mode,
            start_offset,
            outstanding_max,
            consumers_max,
            generation,
            hand_over_ms: 500,
        },
    )
}

thread_local! {
    /// Set while failures are expected and told at the end only.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Why a script fails, if it does, without a word on the way.
fn failure(config: Config, ops: &[Op]) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(config, ops)));
    QUIET.set(false);
    outcome.err().map(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()));
        text.unwrap_or_default()
    })
}

/// A failing script without the operations that it fails without.
fn smallest(config: Config, mut ops: Vec<Op>) -> Vec<Op> {
    let mut chunk = ops.len() / 2;
    while chunk > 0 {
        let before = ops.len();
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + chunk).min(ops.len()));
            match failure(config, &fewer) {
                Some(_) => ops = fewer,
                None => at += chunk,
            }
        }
        chunk = if ops.len() < before { chunk.min(ops.len()) } else { chunk / 2 };
    }
    ops
}

/// Runs a script; a failing one is made smaller first.
fn check(config: Config, script: &Script) -> Result<(), TestCaseError> {
    if failure(config, &script.0).is_none() {
        return Ok(());
    }
    let ops = smallest(config, script.0.clone());
    let why = failure(config, &ops).unwrap_or_default();
    let script = Script(ops);
    Err(TestCaseError::fail(format!("{why}\n{config:?}\nsmallest script:{script:?}\n")))
}

fn settings(cases: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if asked { ProptestConfig::default().cases } else { cases };
    let kept = FileFailurePersistence::Direct("tests/property.proptest-regressions");
    ProptestConfig {
        cases,
        max_shrink_iters: 0,
        failure_persistence: Some(Box::new(kept)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(settings(1500))]

    #[test]
    fn orderly_queue_equals_its_twin(
        config in config(Mode::Orderly),
        script in with_end(Op::Begin, orderly(200).boxed(), 0..80),
    ) {
        check(config, &script)?;
    }

    #[test]
    fn concurrent_queue_equals_its_twin(
        config in config(Mode::Concurrent),
        script in with_end(Op::NewConsumer, concurrent(200).boxed(), 0..80),
    ) {
        check(config, &script)?;
    }
}

proptest! {
    #![proptest_config(settings(60))]

    /// Windows of thousands, so that many segments fill, empty and come back.
    #[test]
    fn big_orderly_windows_equal_their_twin(
        config in config(Mode::Orderly),
        script in with_end(Op::Begin, orderly(1500).boxed(), 50..150),
    ) {
        check(config, &script)?;
    }

    #[test]
    fn big_concurrent_windows_equal_their_twin(
        config in config(Mode::Concurrent),
        script in with_end(Op::NewConsumer, concurrent(1500).boxed(), 50..150),
    ) {
        check(config, &script)?;
    }
}
