//! One focused test for each rule of the queue and of turns, named after it.
//!
//! The property tests hold all rules at once against random sequences; these say in a few lines
//! what each one means.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lanekeeper::process_queue::{
    Committed, Config, Incoming, Mode, Outcome, ProcessQueue, PutError, Refusal, RefusedBecause,
    Target, TurnEnd,
};

fn queue(mode: Mode) -> ProcessQueue<u64> {
    ProcessQueue::new(Config { mode, ..Config::default() }).unwrap()
}

fn messages(offsets: &[i64]) -> Vec<Incoming<u64>> {
    offsets.iter().map(|offset| Incoming::new(*offset, *offset as u64, 10)).collect()
}

/// Puts and answers (accepted, duplicate, stale).
fn put(queue: &ProcessQueue<u64>, offsets: &[i64]) -> (u32, u32, u32) {
    let put = queue.puller().unwrap().put(&mut messages(offsets), 0, None).unwrap();
    (put.accepted, put.duplicate, put.stale)
}

/// A payload that counts its release.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted(offset: i64) -> (Vec<Incoming<Counted>>, impl Fn() -> u32) {
    let released = Arc::new(AtomicU32::new(0));
    let payload = Counted(Arc::clone(&released));
    (vec![Incoming::new(offset, payload, 1)], move || released.load(Ordering::Relaxed))
}

fn counted_queue(mode: Mode) -> ProcessQueue<Counted> {
    ProcessQueue::new(Config { mode, ..Config::default() }).unwrap()
}

#[test]
fn w0_a_role_that_is_taken_answers_busy_and_the_other_mode_is_refused() {
    let orderly = queue(Mode::Orderly);
    let puller = orderly.puller().unwrap();
    assert_eq!(orderly.puller().err(), Some(Refusal::Busy));
    drop(puller);
    assert!(orderly.puller().is_ok());
    let turn = orderly.begin_turn(0).unwrap();
    assert_eq!(orderly.begin_turn(0).err(), Some(Refusal::Busy));
    assert_eq!(orderly.consumer().err(), Some(Refusal::WrongMode));
    let token = turn.suspend();
    let resumed = orderly.resume_turn(token).unwrap();
    assert_eq!(orderly.resume_turn(token).err(), Some(Refusal::Busy));
    drop(resumed);

    let config = Config { mode: Mode::Concurrent, consumers_max: 2, ..Config::default() };
    let concurrent = ProcessQueue::<u64>::new(config).unwrap();
    assert_eq!(concurrent.begin_turn(0).err(), Some(Refusal::WrongMode));
    let (first, second) = (concurrent.consumer().unwrap(), concurrent.consumer().unwrap());
    assert_eq!(concurrent.consumer().err(), Some(Refusal::Limit));
    drop(second);
    assert!(concurrent.consumer().is_ok());
    let token = first.suspend();
    let resumed = concurrent.resume_consumer(token).unwrap();
    assert_eq!(concurrent.resume_consumer(token).err(), Some(Refusal::Busy));
    drop(resumed);
    assert_eq!(concurrent.resume_consumer(token).err(), Some(Refusal::Stale));
}

#[test]
fn w1_put_refuses_what_is_outstanding_doubled_or_below_what_was_pulled() {
    let queue = queue(Mode::Orderly);
    assert_eq!(put(&queue, &[5, 3, 9]), (3, 0, 0), "any order, with gaps");
    assert_eq!(queue.pull_offset(), 10);
    assert_eq!(put(&queue, &[3, 4, 12, 12]), (1, 2, 1));
    assert_eq!(put(&queue, &[]), (0, 0, 0));
    let mut told = Vec::new();
    let mut puller = queue.puller().unwrap();
    puller.put_with(&mut messages(&[9, 7]), 0, None, |o, p, why| told.push((o, p, why))).unwrap();
    told.sort_by_key(|refused| refused.0);
    let (stale, duplicate) = (RefusedBecause::Stale, RefusedBecause::Duplicate);
    assert_eq!(told, [(7, 7, stale), (9, 9, duplicate)]);
}

#[test]
fn w1_put_takes_nothing_of_a_batch_with_an_offset_that_cannot_be_or_beyond_the_limit() {
    let config = Config { outstanding_max: 3, ..Config::default() };
    let queue = ProcessQueue::<u64>::new(config).unwrap();
    let mut puller = queue.puller().unwrap();
    for bad in [-1, i64::MIN, i64::MAX] {
        let mut batch = messages(&[0, bad]);
        let error = puller.put(&mut batch, 0, None).unwrap_err();
        assert_eq!(error, PutError::InvalidOffset { index: 1, offset: bad });
        assert_eq!(batch, messages(&[0, bad]), "the batch is the caller's still");
    }
    puller.put(&mut messages(&[0, 1]), 0, None).unwrap();
    let mut batch = messages(&[2, 3]);
    let error = puller.put(&mut batch, 0, None).unwrap_err();
    assert_eq!(error, PutError::Refused(Refusal::Limit));
    assert_eq!((batch.len(), queue.count(), queue.pull_offset()), (2, 2, 2));
    puller.put(&mut messages(&[i64::MAX - 1]), 0, None).unwrap();
    assert_eq!(queue.pull_offset(), i64::MAX);
}

#[test]
fn w1_put_slice_copies_plain_payloads() {
    let queue = queue(Mode::Orderly);
    let batch = messages(&[0, 0, 1]);
    let mut refused = Vec::new();
    let mut puller = queue.puller().unwrap();
    let put = puller.put_slice(&batch, 0, None, |offset, _, _| refused.push(offset)).unwrap();
    assert_eq!((put.accepted, put.duplicate, refused), (2, 1, vec![0]));
    assert_eq!(batch.len(), 3);
}

#[test]
fn w2_take_hands_over_the_lowest_ascending() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[4, 2, 8, 6]);
    let mut turn = queue.begin_turn(0).unwrap();
    assert_eq!(turn.take(0, 0).unwrap().len(), 0);
    assert_eq!(queue.snapshot(0).cached_count, 4);
    let taken: Vec<i64> = turn.take(3, 0).unwrap().map(|m| m.offset).collect();
    assert_eq!(taken, [2, 4, 6]);
    turn.requeue(&[4i64], 0, 0).unwrap();
    let taken: Vec<i64> = turn.take(9, 0).unwrap().map(|m| m.offset).collect();
    assert_eq!(taken, [4, 8]);
    assert_eq!(turn.take(1, 0).err(), Some(Refusal::Empty));
}

#[test]
fn w3_the_safe_offset_is_the_lowest_outstanding_or_the_pull_offset() {
    let queue = queue(Mode::Concurrent);
    let mut consumer = queue.consumer().unwrap();
    assert_eq!((queue.safe_offset(), queue.pull_offset()), (0, 0));
    put(&queue, &[7, 10, 11]);
    assert_eq!(queue.safe_offset(), 7, "nothing lies before it");
    assert_eq!(consumer.complete(&[10i64], 0).unwrap().safe_offset, 7);
    assert_eq!(consumer.complete(&[7i64], 0).unwrap().safe_offset, 11);
    assert_eq!(consumer.complete(&[11i64], 0).unwrap().safe_offset, 12);
    assert_eq!(queue.puller().unwrap().advance(20, 0).unwrap().safe_offset, Some(20));
    put(&queue, &[30]);
    assert_eq!((queue.safe_offset(), queue.pull_offset()), (30, 31));
}

#[test]
fn w4_commit_finishes_everything_in_flight_or_says_that_there_is_nothing() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1, 2, 9]);
    let mut turn = queue.begin_turn(0).unwrap();
    assert_eq!(turn.commit(0), Ok(Committed::Nothing));
    assert_eq!(queue.safe_offset(), 0);
    turn.take(2, 0).unwrap();
    turn.take(1, 0).unwrap();
    assert_eq!(turn.commit(0), Ok(Committed::Finished { safe_offset: 9, finished: 3 }));
    assert_eq!((queue.count(), queue.bytes()), (1, 10));
    turn.take(1, 0).unwrap();
    let mut back = Vec::new();
    turn.commit_with(0, |offset, payload| back.push((offset, payload))).unwrap();
    assert_eq!(back, [(9, 9)]);
}

#[test]
fn w5_rollback_makes_everything_in_flight_ready() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1, 2]);
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(2, 0).unwrap();
    assert_eq!(turn.rollback(0), Ok(2));
    assert_eq!(turn.rollback(0), Ok(0));
    let again: Vec<(i64, u32)> = turn.take(1, 0).unwrap().map(|m| (m.offset, m.delivery)).collect();
    assert_eq!(again, [(0, 2)]);
    assert_eq!(queue.safe_offset(), 0);
}

#[test]
fn w6_requeue_makes_the_named_ones_ready_and_counts_the_unknown() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1, 2, 3]);
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(3, 0).unwrap();
    let answer = turn.requeue(&[1i64, 1, 3, 77], 2, 0).unwrap();
    assert_eq!((answer.requeued, answer.unknown, answer.stale), (1, 3, 0));
    assert_eq!(turn.in_flight_count(), 2);
    let attempts: Vec<u8> = turn.take(1, 0).unwrap().map(|m| m.attempts).collect();
    assert_eq!(attempts, [2]);
    for _ in 0..3 {
        turn.requeue(&[1i64], 100, 0).unwrap();
        turn.take(1, 0).unwrap();
    }
    let attempts = turn.in_flight().find(|m| m.offset == 1).unwrap().attempts;
    assert_eq!(attempts, 255, "attempts saturate");
}

#[test]
fn w7_complete_finishes_each_once_in_any_order_and_knows_old_deliveries() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[0, 1, 2, 3]);
    let mut consumer = queue.consumer().unwrap();
    consumer.take(3, 0).unwrap();
    let mut each = Vec::new();
    let answer = consumer
        .complete_with(&[2i64, 0, 2, 50, 3], 0, |i, outcome| each.push((i, outcome)), |_, _| ())
        .unwrap();
    let (won, unknown) = (Outcome::Won, Outcome::Unknown);
    assert_eq!(each, [(0, won), (1, won), (2, unknown), (3, unknown), (4, won)]);
    assert_eq!((answer.finished, answer.unknown, answer.safe_offset), (3, 2, 1));
    consumer.requeue(&[1i64], 0, 0).unwrap();
    consumer.take(1, 0).unwrap();
    let old = Target { offset: 1, delivery: 1 };
    assert_eq!(consumer.complete(&[old], 0).unwrap().stale, 1);
    assert_eq!(consumer.requeue(&[old], 0, 0).unwrap().stale, 1);
    assert_eq!(consumer.claim(old, 0).unwrap().err(), Some(Outcome::Stale));
    let current = Target { offset: 1, delivery: 2 };
    assert_eq!(consumer.complete(&[current], 0).unwrap().finished, 1);
}

#[test]
fn w7_orderly_complete_is_for_what_is_in_flight() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1]);
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 0).unwrap();
    let answer = turn.complete(&[1i64, 0], 0).unwrap();
    assert_eq!((answer.finished, answer.unknown, answer.safe_offset), (1, 1, 1));
}

#[test]
fn w8_count_bytes_and_span_are_exact_at_rest_and_nothing_after_close() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[100, 101, 500]);
    assert_eq!((queue.count(), queue.bytes(), queue.span()), (3, 30, 400));
    let mut consumer = queue.consumer().unwrap();
    consumer.complete(&[500i64], 0).unwrap();
    assert_eq!((queue.count(), queue.bytes(), queue.span()), (2, 20, 400), "highest ever put");
    consumer.complete(&[100i64, 101], 0).unwrap();
    assert_eq!((queue.count(), queue.bytes(), queue.span()), (0, 0, 0));
    put(&queue, &[501, 502]);
    queue.close(0).unwrap();
    assert_eq!((queue.count(), queue.bytes(), queue.span()), (0, 0, 0));
}

#[test]
fn w9_advance_raises_the_pull_offset_and_tells_whether_the_safe_offset_moved() {
    let queue = queue(Mode::Orderly);
    let advance = |next| queue.puller().unwrap().advance(next, 0).map(|a| a.safe_offset);
    assert_eq!(advance(5), Ok(Some(5)));
    assert_eq!(advance(5), Ok(None));
    assert_eq!(advance(4), Err(PutError::Refused(Refusal::Stale)));
    assert_eq!(advance(-1), Err(PutError::InvalidOffset { index: 0, offset: -1 }));
    put(&queue, &[5]);
    assert_eq!(advance(9), Ok(None), "the later one tells");
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 0).unwrap();
    assert_eq!(turn.commit(0), Ok(Committed::Finished { safe_offset: 9, finished: 1 }));
}

#[test]
fn w10_close_is_terminal_and_every_verb_answers_closed() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1, 2]);
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 0).unwrap();
    turn.commit(0).unwrap();
    turn.take(1, 0).unwrap();
    let mut puller = queue.puller().unwrap();
    assert_eq!(queue.close(0).map(|closed| closed.safe_offset), Ok(1));
    assert_eq!(queue.close(0).err(), Some(Refusal::Closed));
    assert_eq!(turn.commit(0), Err(Refusal::Closed));
    assert_eq!(turn.take(1, 0).err(), Some(Refusal::Closed));
    assert_eq!(turn.take(0, 0).err(), Some(Refusal::Closed));
    assert_eq!(turn.rollback(0), Err(Refusal::Closed));
    assert_eq!(turn.requeue(&[1i64], 0, 0), Err(Refusal::Closed));
    assert_eq!(turn.complete(&[1i64], 0), Err(Refusal::Closed));
    let closed = PutError::Refused(Refusal::Closed);
    assert_eq!(puller.put(&mut messages(&[3]), 0, None), Err(closed.clone()));
    assert_eq!(puller.put(&mut Vec::new(), 0, None), Err(closed.clone()));
    assert_eq!(puller.advance(9, 0), Err(closed));
    assert_eq!((queue.safe_offset(), queue.is_closed()), (1, true));
    drop(turn);
    assert_eq!(queue.begin_turn(0).err(), Some(Refusal::Closed));
}

#[test]
fn w10_close_ends_consumers_and_claims() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[0, 1, 2]);
    let mut consumer = queue.consumer().unwrap();
    consumer.take(3, 0).unwrap();
    consumer.complete(&[0i64], 0).unwrap();
    let claim = consumer.claim(2i64, 0).unwrap().unwrap();
    assert_eq!(queue.close(0).map(|closed| closed.safe_offset), Ok(1));
    assert_eq!(consumer.take(1, 0).err(), Some(Refusal::Closed));
    assert_eq!(consumer.complete(&[1i64], 0), Err(Refusal::Closed));
    assert_eq!(consumer.requeue(&[1i64], 0, 0), Err(Refusal::Closed));
    assert_eq!(consumer.claim(1i64, 0).err(), Some(Refusal::Closed));
    assert_eq!(claim.settle(true, 0, 0), Err(Refusal::Closed));
    assert_eq!(queue.consumer().err(), Some(Refusal::Closed));
}

#[test]
fn w11_exactly_one_side_goes_on_when_the_queue_turns_idle() {
    let queue = queue(Mode::Orderly);
    let schedule = |offsets: &[i64]| {
        queue.puller().unwrap().put(&mut messages(offsets), 0, None).unwrap().schedule
    };
    assert!(!schedule(&[]), "nothing is ready");
    assert!(schedule(&[0]), "once per transition");
    assert!(!schedule(&[1]));
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(2, 0).unwrap();
    assert!(queue.snapshot(0).scheduled);
    assert_eq!(turn.take(1, 0).err(), Some(Refusal::Empty));
    assert!(!queue.snapshot(0).scheduled, "idle, although two are in flight");
    assert!(schedule(&[2]));
    assert_eq!(turn.take(1, 0).unwrap().len(), 1);
    assert_eq!(turn.take(1, 0).err(), Some(Refusal::Empty));
    turn.rollback(0).unwrap();
    assert!(!queue.snapshot(0).scheduled, "rollback leaves the flag");
    assert!(schedule(&[]), "a put that accepted nothing tells as well");
    assert_eq!(turn.take(1, 0).unwrap().len(), 1);
    assert_eq!(turn.end(0), TurnEnd::RunAgain);
    assert!(queue.snapshot(0).scheduled);
}

#[test]
fn w12_a_payload_is_released_once_by_the_last_of_its_end_and_its_loan() {
    let queue = counted_queue(Mode::Concurrent);
    let (mut batch, released) = counted(0);
    queue.puller().unwrap().put(&mut batch, 0, None).unwrap();
    let (mut again, refused) = counted(0);
    queue.puller().unwrap().put(&mut again, 0, None).unwrap();
    assert_eq!((released(), refused()), (0, 1), "a refused one at once");
    let (mut borrower, mut finisher) = (queue.consumer().unwrap(), queue.consumer().unwrap());
    borrower.take(1, 0).unwrap();
    assert_eq!(finisher.complete(&[0i64], 0).unwrap().finished, 1);
    assert_eq!((released(), queue.payloads_live()), (0, 1), "finished, but on loan");
    assert_eq!(borrower.give_back(&[0i64]), 1);
    assert_eq!((released(), queue.payloads_live()), (1, 0));
    drop((borrower, finisher));
    drop(queue);
    assert_eq!(released(), 1);
}

#[test]
fn w12_close_releases_the_ready_and_the_end_of_the_turn_what_is_lent() {
    let mut queue = counted_queue(Mode::Orderly);
    let (mut lent_batch, lent) = counted(0);
    let (mut ready_batch, ready) = counted(1);
    lent_batch.append(&mut ready_batch);
    queue.puller().unwrap().put(&mut lent_batch, 0, None).unwrap();
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 0).unwrap();
    queue.close(0).unwrap();
    assert_eq!((lent(), ready()), (0, 1));
    assert_eq!(turn.end(0), TurnEnd::HandOver);
    assert_eq!((lent(), ready()), (1, 1));
    queue.drain_with(|offset, _| panic!("{offset} is still held"));
}

#[test]
fn w12_freeing_the_queue_releases_whatever_is_left() {
    let mut queue = counted_queue(Mode::Orderly);
    let (mut batch, released) = counted(3);
    queue.puller().unwrap().put(&mut batch, 0, None).unwrap();
    let mut drained = Vec::new();
    queue.drain_with(|offset, payload| drained.push((offset, payload)));
    assert_eq!((drained.len(), drained[0].0, released()), (1, 3, 0));
    drop(drained);
    drop(queue);
    assert_eq!(released(), 1);
}

#[test]
fn w13_snapshot_is_one_cut_of_everything() {
    let queue = queue(Mode::Orderly);
    let mut puller = queue.puller().unwrap();
    puller.put(&mut messages(&[3, 4, 6]), 100, Some(50)).unwrap();
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 150).unwrap();
    let cut = queue.snapshot(250);
    assert_eq!((cut.cached_count, cut.cached_min, cut.cached_max), (2, 4, 6));
    assert_eq!((cut.in_flight_count, cut.in_flight_min, cut.in_flight_max), (1, 3, 3));
    assert_eq!((cut.count, cut.bytes, cut.claimed_count), (3, 30, 0));
    assert_eq!((cut.safe_offset, cut.pull_offset, cut.highest_put), (3, 7, 6));
    assert_eq!((cut.oldest_offset, cut.oldest_age_ms, cut.lag), (Some(3), 150, 44));
    assert_eq!((cut.last_pull_ms, cut.last_consume_ms), (100, 150));
    assert!(cut.scheduled && !cut.stopped && !cut.closed);
    assert_eq!(queue.snapshot(10).oldest_age_ms, 0, "never negative");
    puller.put(&mut messages(&[7]), 100, Some(7)).unwrap();
    assert_eq!(queue.snapshot(0).lag, 44, "kept if the new one is not positive");
}

#[test]
fn w14_expired_names_every_one_that_is_over_the_limit_and_changes_nothing() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[0, 1, 2, 3]);
    let mut consumer = queue.consumer().unwrap();
    for taken_ms in [50, 0, 0, 0] {
        consumer.take(1, taken_ms).unwrap();
    }
    consumer.requeue(&[3i64], 0, 0).unwrap();
    let expired = |limit_ms, max| {
        let mut named = Vec::new();
        let count = queue.expired(100, limit_ms, max, &mut named);
        assert_eq!(count, named.len());
        named.iter().map(|m| (m.offset, m.age_ms)).collect::<Vec<_>>()
    };
    assert_eq!(expired(99, 10), [(1, 100), (2, 100)], "a young head hides nothing");
    assert_eq!(expired(100, 10), [], "strictly more than the limit");
    assert_eq!(expired(0, 2), [(0, 50), (1, 100)], "lowest first");
    assert_eq!(queue.snapshot(0).in_flight_count, 3);
}

#[test]
fn w15_a_claim_is_exclusive_and_is_settled_once() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[0, 1]);
    let mut consumer = queue.consumer().unwrap();
    consumer.take(2, 0).unwrap();
    let claim = consumer.claim(0i64, 0).unwrap().unwrap();
    assert_eq!((claim.offset(), *claim), (0, 0));
    assert_eq!(consumer.claim(0i64, 0).unwrap().err(), Some(Outcome::Unknown));
    assert_eq!(consumer.complete(&[0i64], 0).unwrap().unknown, 1);
    assert_eq!(queue.expired(9, 0, 9, &mut Vec::new()), 1, "only the other one");
    let cut = queue.snapshot(0);
    assert_eq!((cut.claimed_count, cut.count, cut.safe_offset), (1, 2, 0));
    let settled = claim.settle(false, 70, 0).unwrap();
    assert_eq!((settled.ready, settled.finished, settled.safe_offset), (1, 0, 0));
    assert_eq!(consumer.take(1, 69).err(), Some(Refusal::Empty), "not before its time");
    let again: Vec<(i64, u8)> =
        consumer.take(1, 70).unwrap().map(|m| (m.offset, m.attempts)).collect();
    assert_eq!(again, [(0, 1)]);
    let settled = consumer.claim(0i64, 0).unwrap().unwrap().settle(true, 0, 0).unwrap();
    assert_eq!((settled.finished, settled.safe_offset), (1, 1));
    drop(consumer.claim(1i64, 0).unwrap().unwrap());
    assert!(queue.contains(1), "dropped unsettled it was not sent");
}

#[test]
fn w16_stop_lets_nothing_new_in_or_out_but_lets_the_rest_finish() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1]);
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 0).unwrap();
    queue.stop();
    queue.stop();
    let mut puller = queue.puller().unwrap();
    let stopped = PutError::Refused(Refusal::Stopped);
    assert_eq!(puller.put(&mut messages(&[2]), 0, None), Err(stopped.clone()));
    assert_eq!(puller.advance(9, 0), Err(stopped));
    assert_eq!(turn.take(1, 0).err(), Some(Refusal::Stopped));
    assert_eq!(turn.commit(0), Ok(Committed::Finished { safe_offset: 1, finished: 1 }));
    assert!(queue.is_stopped() && !queue.is_closed());
    assert_eq!(queue.close(0).map(|closed| closed.safe_offset), Ok(1));
}

#[test]
fn t1_one_turn_at_a_time_and_a_wake_up_is_never_lost() {
    let queue = queue(Mode::Orderly);
    let turn = queue.begin_turn(0).unwrap();
    assert_eq!(turn.end(0), TurnEnd::Nothing);
    let turn = queue.begin_turn(0).unwrap();
    assert_eq!(queue.begin_turn(0).err(), Some(Refusal::Busy));
    assert_eq!(turn.end(0), TurnEnd::RunAgain, "somebody came in vain");
    let turn = queue.begin_turn(0).unwrap();
    assert_eq!(turn.end(0), TurnEnd::Nothing, "the note was for the turn before");
}

#[test]
fn t2_exactly_one_of_close_and_end_tells_the_hand_over() {
    let config = Config { hand_over_ms: 100, ..Config::default() };
    let queue = ProcessQueue::<u64>::new(config).unwrap();
    let turn = queue.begin_turn(0).unwrap();
    assert!(!queue.close(1_000).unwrap().hand_over);
    assert!(!queue.hand_over_overdue(1_050));
    assert!(queue.hand_over_overdue(1_101));
    assert_eq!(turn.end(1_200), TurnEnd::HandOver);
    assert!(!queue.hand_over_overdue(9_999), "it was told");

    let queue = ProcessQueue::<u64>::new(config).unwrap();
    assert_eq!(queue.begin_turn(0).unwrap().end(0), TurnEnd::Nothing);
    assert!(queue.close(0).unwrap().hand_over);
}

#[test]
fn t3_a_token_of_an_ended_turn_is_stale() {
    let config = |generation| Config { generation, ..Config::default() };
    let first = ProcessQueue::<u64>::new(config(1)).unwrap();
    let turn = first.begin_turn(0).unwrap();
    let token = turn.token();
    turn.end(0);
    assert_eq!(first.resume_turn(token).err(), Some(Refusal::Stale));
    let later = first.begin_turn(0).unwrap();
    assert_eq!(first.resume_turn(token).err(), Some(Refusal::Stale));
    assert_ne!(later.token(), token);

    let second = ProcessQueue::<u64>::new(config(2)).unwrap();
    assert_eq!((first.generation(), second.generation()), (1, 2));
    let token = later.suspend();
    first.close(0).unwrap();
    assert_eq!(second.resume_turn(token).err(), Some(Refusal::Stale));
    // The same number of turns on the successor does not make the token its own.
    second.begin_turn(0).unwrap().end(0);
    second.begin_turn(0).unwrap().suspend();
    assert_eq!(second.resume_turn(token).err(), Some(Refusal::Stale));
    assert_eq!(first.resume_turn(token).unwrap().end(0), TurnEnd::HandOver);
}
