//! W3 to W8, W14, W15: finishing messages, putting them back, and what counts.

use lanekeeper::process_queue::{Committed, Mode, Outcome, Refusal, Target};

use crate::{put, queue};

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
