//! W0, W1, W2, W9, W11, W13: what goes in and out, and what is told about it.

use lanekeeper::process_queue::{
    Committed, Config, Mode, ProcessQueue, PutError, Refusal, RefusedBecause, TurnEnd,
};

use crate::{messages, put, queue};

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
fn w0_a_configuration_out_of_range_names_its_field() {
    let wrong = |config: Config| ProcessQueue::<u64>::new(config).err().map(|e| (e.field, e.value));
    let good = Config::default();
    assert_eq!(wrong(good), None);
    let start_offset = -1;
    assert_eq!(wrong(Config { start_offset, ..good }), Some(("start_offset", -1)));
    for outstanding_max in [0, (1 << 30) + 1] {
        let expected = Some(("outstanding_max", i64::from(outstanding_max)));
        assert_eq!(wrong(Config { outstanding_max, ..good }), expected);
    }
    for consumers_max in [0, 1025] {
        let expected = Some(("consumers_max", i64::from(consumers_max)));
        assert_eq!(wrong(Config { consumers_max, ..good }), expected);
    }
    let hand_over_ms = -1;
    assert_eq!(wrong(Config { hand_over_ms, ..good }), Some(("hand_over_ms", -1)));
    let last = Config { start_offset: i64::MAX - 1, outstanding_max: 1 << 30, ..good };
    assert_eq!(wrong(Config { consumers_max: 1024, ..last }), None);
}

#[test]
fn w2_deliveries_count_from_one_and_wrap_to_one() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0]);
    let mut turn = queue.begin_turn(0).unwrap();
    let mut deliver = || {
        let delivery = turn.take(1, 0).unwrap().next().unwrap().delivery;
        turn.rollback(0).unwrap();
        delivery
    };
    assert_eq!(deliver(), 1);
    for _ in 2..(1 << 24) - 1 {
        deliver();
    }
    assert_eq!([deliver(), deliver()], [(1 << 24) - 1, 1]);
}
