//! The checker itself: it must refuse what no queue may answer, and accept what one may.

use lanekeeper::process_queue::{Mode, Outcome, Put, Refusal, Snapshot, TurnEnd};

use crate::kit::bounds;
use crate::kit::checker::{self, Order};
use crate::kit::history::{Event, Got, Step};
use crate::kit::scenario::Scenario;
use crate::kit::spec::Spec;
use crate::record;

fn event(thread: usize, begin: u64, end: u64, step: Step) -> Event {
    Event { thread, begin, end, step }
}

fn put(offsets: &[i64], schedule: bool) -> Step {
    let batch: Vec<_> = offsets.iter().map(|&offset| (offset, 1)).collect();
    let put = Put { accepted: batch.len() as u32, schedule, ..Put::default() };
    Step::Put { batch, refused: Vec::new(), put }
}

fn take(offset: i64, delivery: u32) -> Step {
    Step::Take { n: 1, got: vec![Got { offset, size: 1, attempts: 0, delivery }] }
}

fn take_nothing() -> Step {
    Step::TakeRefused { n: 1, refusal: Refusal::Empty }
}

fn commit(safe: i64, finished: &[i64]) -> Step {
    Step::Commit { safe, finished: finished.to_vec() }
}

fn finish(offset: i64, outcome: Outcome) -> Step {
    Step::Finish { offset, delivery: 0, outcome }
}

fn end(answer: TurnEnd) -> [Step; 2] {
    [Step::EndLeaves, Step::End(answer)]
}

fn close(safe: i64, hand_over: bool) -> Step {
    Step::Close { safe, hand_over }
}

/// Steps of threads 1 and 2 that all overlap, after steps one by one of thread 0.
fn history(before: &[Step], first: &[Step], second: &[Step]) -> Vec<Event> {
    let mut time = 0;
    let mut events = Vec::new();
    for step in before {
        events.push(event(0, time, time + 1, step.clone()));
        time += 2;
    }
    for (thread, steps) in [(1, first), (2, second)] {
        events.extend(steps.iter().map(|step| event(thread, time, time + 100, step.clone())));
    }
    events
}

fn linearizable(mode: Mode, events: &[Event]) -> bool {
    let verdicts = [Order::RealTime, Order::Program]
        .map(|order| checker::check(&Spec::new(mode, 0), events, order).is_ok());
    assert_eq!(verdicts[0], verdicts[1], "all overlapping, so the orders agree: {events:?}");
    verdicts[0]
}

/// What is ready and in flight before: offsets `0..ready`, the first `taken` of them taken in a
/// turn.
fn turn_with(ready: i64, taken: i64) -> Vec<Step> {
    let offsets: Vec<i64> = (0..ready).collect();
    let mut steps = vec![put(&offsets, true), Step::PutCarries, Step::Begin(Ok(()))];
    steps.extend((0..taken).map(|offset| take(offset, 1)));
    steps
}

#[test]
fn accepts_either_order_and_nothing_else() {
    let orderly = |first: &[Step], second: &[Step]| {
        linearizable(Mode::Orderly, &history(&turn_with(1, 1), first, second))
    };
    assert!(orderly(&[put(&[1], false)], &[commit(1, &[0])]));
    assert!(!orderly(&[put(&[1], false)], &[commit(2, &[0])]), "leads");
    assert!(!orderly(&[put(&[1], false)], &[commit(0, &[0])]), "lags behind its own commit");
    // Of a take that finds nothing and a put exactly one goes on.
    assert!(orderly(&[put(&[1], true)], &[take_nothing()]));
    assert!(orderly(&[put(&[1], false)], &[take(1, 1)]));
    assert!(!orderly(&[put(&[1], false)], &[take_nothing()]), "lost wake-up");
    assert!(!orderly(&[put(&[1], true)], &[take(1, 1)]), "both go on");
    // Exactly the later of advance and commit tells.
    let advance = |safe| Step::Advance { next: 7, safe };
    assert!(orderly(&[advance(None)], &[commit(7, &[0])]));
    assert!(orderly(&[advance(Some(7))], &[commit(1, &[0])]));
    assert!(!orderly(&[advance(None)], &[commit(1, &[0])]), "nobody tells");
    assert!(!orderly(&[advance(Some(7))], &[commit(7, &[0])]), "both tell");
    let halves = [Step::AdvanceRaises { next: 7 }, advance(None)];
    assert!(orderly(&halves, &[commit(1, &[0]), close(7, false)]), "close tells");
    assert!(!orderly(&halves, &[commit(1, &[0]), close(1, false)]), "nobody tells");
    let rest = Step::AtRest { safe: 1, pull: 7, closed: false };
    assert!(!orderly(&halves, &[commit(1, &[0]), rest]), "nobody tells");
}

#[test]
fn close_is_terminal_and_atomic() {
    let orderly = |first: &[Step], second: &[Step]| {
        linearizable(Mode::Orderly, &history(&turn_with(2, 1), first, second))
    };
    assert!(orderly(&[close(0, false)], &[Step::ClosedAnswer]));
    assert!(orderly(&[close(1, false)], &[commit(1, &[0])]));
    assert!(!orderly(&[close(0, false)], &[commit(1, &[0])]), "lost commit");
    assert!(!orderly(&[close(1, false)], &[Step::ClosedAnswer]), "commit refused but counted");
    assert!(!orderly(&[close(0, false)], &[close(0, false)]), "closed twice");
    assert!(orderly(&[close(0, false)], &end(TurnEnd::HandOver)));
    assert!(orderly(&[close(0, true)], &end(TurnEnd::RunAgain)));
    assert!(!orderly(&[close(0, true)], &end(TurnEnd::HandOver)), "hand-over told twice");
    assert!(!orderly(&[close(0, false)], &end(TurnEnd::RunAgain)), "hand-over never told");
    // Once close returned, whatever it left unchanged answers CLOSED too.
    let after = [close(0, true)];
    let advance = Step::Advance { next: 0, safe: None };
    let alone = |last| linearizable(Mode::Orderly, &history(&after, &[last], &[]));
    assert!(!alone(advance), "an advance that changes nothing");
    assert!(alone(Step::AdvanceRefused { next: 0, refusal: Refusal::Closed }));
}

#[test]
fn an_end_leaves_the_queue_before_it_leaves_the_turn() {
    let mut before = turn_with(1, 1);
    before.push(commit(1, &[0]));
    let told = |puts: &[Step], ends: TurnEnd| {
        linearizable(Mode::Orderly, &history(&before, puts, &end(ends)))
    };
    let busy = Step::Begin(Err(Refusal::Busy));
    // The put fell between, and who came for it left a note.
    assert!(told(&[put(&[1], true), busy.clone()], TurnEnd::RunAgain));
    assert!(!told(&[put(&[1], true), busy], TurnEnd::Nothing), "a wake-up is lost");
    assert!(!told(&[put(&[1], false)], TurnEnd::Nothing), "ready, and nobody is told");
    assert!(told(&[put(&[1], true)], TurnEnd::Nothing));
    assert!(told(&[put(&[1], false)], TurnEnd::RunAgain));
    assert!(!told(&[put(&[1], true)], TurnEnd::RunAgain), "both are told");
}

#[test]
fn a_stop_may_fall_into_a_concurrent_take() {
    let before = [put(&[0, 1], false)];
    let takes = [Step::TakePasses, take(0, 1), take(1, 1)];
    let looks = Step::Snapshot(Box::new(Snapshot {
        count: 2,
        bytes: 2,
        cached_count: 1,
        cached_min: 1,
        cached_max: 1,
        in_flight_count: 1,
        pull_offset: 2,
        highest_put: 1,
        oldest_offset: Some(0),
        stopped: true,
        ..Snapshot::default()
    }));
    let beside =
        |others: &[Step]| linearizable(Mode::Concurrent, &history(&before, &takes, others));
    assert!(beside(&[Step::Stop]));
    assert!(beside(&[Step::Stop, looks]), "stopped when half was taken");
    let stopped = [put(&[0, 1], false), Step::Stop];
    assert!(!linearizable(Mode::Concurrent, &history(&stopped, &takes, &[])), "began later");
    let one_step = [take(0, 1), Step::Stop, take(1, 1)];
    assert!(!linearizable(Mode::Orderly, &history(&turn_with(2, 0), &one_step, &[])), "orderly");
}

#[test]
fn a_close_may_miss_the_gap_below_a_put_beside_it() {
    let gap = [put(&[5], true), Step::PutCarries];
    let both = |puts: &[Step], last| {
        linearizable(Mode::Orderly, &history(&[], puts, &[close(last, true)]))
    };
    assert!(both(&gap, 0) && both(&gap, 5));
    assert!(!both(&gap, 3) && !both(&gap, 6), "neither before nor after the gap");
    let closed = |last| linearizable(Mode::Orderly, &history(&gap, &[close(last, true)], &[]));
    assert!(closed(5) && !closed(0), "the put has returned");
}

#[test]
fn a_busy_begin_leaves_a_note() {
    let before = [Step::Begin(Ok(()))];
    let busy = Step::Begin(Err(Refusal::Busy));
    let told = |ends| history(&before, std::slice::from_ref(&busy), &end(ends));
    assert!(linearizable(Mode::Orderly, &told(TurnEnd::RunAgain)));
    assert!(!linearizable(Mode::Orderly, &told(TurnEnd::Nothing)), "a wake-up is lost");
}

#[test]
fn one_completion_wins() {
    let before = [put(&[0, 1], false), take(0, 1), take(1, 1)];
    let both =
        |first, second| linearizable(Mode::Concurrent, &history(&before, &[first], &[second]));
    assert!(both(finish(0, Outcome::Won), finish(0, Outcome::Unknown)));
    assert!(!both(finish(0, Outcome::Won), finish(0, Outcome::Won)), "finished twice");
    assert!(!both(finish(0, Outcome::Unknown), finish(0, Outcome::Unknown)), "lost");
    let claim = |outcome| Step::Claim { offset: 0, delivery: 0, outcome };
    assert!(both(finish(0, Outcome::Unknown), claim(Outcome::Won)));
    assert!(!both(finish(0, Outcome::Won), claim(Outcome::Won)), "both decide");
}

#[test]
fn no_message_is_delivered_twice() {
    let before = [put(&[0, 1], false)];
    let both =
        |first, second| linearizable(Mode::Concurrent, &history(&before, &[first], &[second]));
    assert!(both(take(0, 1), take(1, 1)));
    assert!(!both(take(0, 1), take(0, 1)), "delivered twice");
    assert!(both(take(0, 1), take_nothing()), "the other take may hold it");
    let alone = [put(&[0], false), take_nothing()];
    assert!(!linearizable(Mode::Concurrent, &history(&alone, &[], &[])), "one is ready");
}

#[test]
fn a_snapshot_is_one_cut() {
    let cut = |count, ready, in_flight, safe, oldest: Option<i64>| {
        let edge = |count: u64, value: i64| if count == 0 { 0 } else { value };
        Step::Snapshot(Box::new(Snapshot {
            count,
            bytes: count,
            cached_count: ready,
            cached_min: edge(ready, 2),
            cached_max: edge(ready, 2),
            in_flight_count: in_flight,
            in_flight_min: 0,
            in_flight_max: edge(in_flight, 1),
            safe_offset: safe,
            pull_offset: 3,
            highest_put: 2,
            oldest_offset: oldest,
            scheduled: true,
            ..Snapshot::default()
        }))
    };
    let beside_commit = |snapshot| {
        linearizable(Mode::Orderly, &history(&turn_with(3, 2), &[commit(2, &[0, 1])], &[snapshot]))
    };
    assert!(beside_commit(cut(3, 1, 2, 0, Some(0))));
    assert!(beside_commit(cut(1, 1, 0, 2, Some(2))));
    assert!(!beside_commit(cut(2, 1, 1, 0, Some(0))), "half a commit");
    assert!(!beside_commit(cut(1, 1, 0, 0, Some(2))), "old offset, new counts");
    assert!(!beside_commit(cut(3, 1, 2, 2, Some(0))), "new offset, old counts");
}

#[test]
fn weak_reads_have_bounds() {
    let events = |told: u64| {
        let mut events = history(&turn_with(2, 1), &[put(&[2, 3], false)], &[Step::Count(told)]);
        events.insert(0, event(0, 0, 0, Step::Safe(0)));
        events
    };
    let legal = |told| bounds::check(&events(told), Order::RealTime).is_ok();
    assert!(legal(2) && legal(3) && legal(4), "what was outstanding, and what is being put");
    assert!(!legal(1), "below what was outstanding");
    assert!(!legal(5), "above all there is");
}

#[test]
fn single_reads_never_go_back() {
    let events = vec![
        event(0, 0, 1, put(&[0], true)),
        event(1, 2, 3, Step::PullOffset(1)),
        event(2, 4, 5, Step::PullOffset(0)),
    ];
    assert!(bounds::check(&events, Order::RealTime).is_err());
    assert!(bounds::check(&events, Order::Program).is_err(), "thread 0 is before the others");
    let closed = vec![event(1, 0, 1, Step::ClosedAnswer), event(1, 2, 3, Step::IsClosed(false))];
    assert!(bounds::check(&closed, Order::RealTime).is_err());
}

/// A real history in which one answer is changed to one that no order explains.
#[test]
fn refuses_real_histories_that_were_tampered_with() {
    for seed in 0..200 {
        let scenario = Scenario::random(Mode::Orderly, seed);
        let mut events = record(&scenario).expect("a history as it was");
        let start = Spec::new(Mode::Orderly, 0);
        let last = events.iter().rposition(|event| matches!(event.step, Step::AtRest { .. }));
        let event = &mut events[last.expect("every history ends at rest")];
        let Step::AtRest { safe, pull, closed } = event.step else { unreachable!() };
        event.step = match seed % 3 {
            0 => Step::AtRest { safe: safe + 1, pull, closed },
            1 => Step::AtRest { safe, pull: pull + 1, closed },
            _ => Step::AtRest { safe, pull, closed: !closed },
        };
        assert!(checker::check(&start, &events, Order::RealTime).is_err(), "seed {seed}");
    }
}
