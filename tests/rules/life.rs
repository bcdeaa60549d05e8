//! W10, W12, W16, T1 to T3: turns, loans and the end of a queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lanekeeper::process_queue::{
    Committed, Config, Incoming, Mode, ProcessQueue, PutError, Refusal, TurnEnd,
};

use crate::{Counted, counted, counted_queue, messages, put, queue};

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

#[test]
fn w12_a_message_lent_too_often_at_once_is_not_lent_again_until_one_is_given_back() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[0]);
    let (mut borrower, mut other) = (queue.consumer().unwrap(), queue.consumer().unwrap());
    let mut loans = 0;
    while borrower.take(1, 0).is_ok() {
        loans += 1;
        other.requeue(&[0i64], 0, 0).unwrap();
    }
    assert_eq!((loans, queue.count(), queue.contains(0)), (31, 1, true));
    assert_eq!(borrower.give_back(&[0i64]), 1);
    assert_eq!(other.take(1, 0).unwrap().len(), 1);
    assert_eq!(other.complete(&[0i64], 0).unwrap().finished, 1);
    assert_eq!(queue.payloads_live(), 1);
    assert_eq!(borrower.give_back(&[0i64; 40]), 30);
    assert_eq!(queue.payloads_live(), 0);
}

#[test]
fn w12_a_sink_may_call_its_own_queue() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[0, 1]);
    let mut turn = queue.begin_turn(0).unwrap();
    turn.take(1, 0).unwrap();
    let answer = turn.commit_with(0, |_, _| {
        assert_eq!((queue.count(), queue.safe_offset()), (1, 1), "after it took effect");
        put(&queue, &[2]);
        assert_eq!(queue.close(0).map(|closed| closed.safe_offset), Ok(1));
    });
    assert_eq!(answer, Ok(Committed::Finished { safe_offset: 1, finished: 1 }));
    assert_eq!(turn.end(0), TurnEnd::HandOver);
}

#[test]
fn w12_a_panic_in_a_sink_releases_nothing_twice() {
    let (released, made) = (Arc::new(AtomicU32::new(0)), AtomicU32::new(0));
    let batch = || {
        made.fetch_add(3, Ordering::Relaxed);
        let message = |offset| Incoming::new(offset, Counted(Arc::clone(&released)), 1);
        (0..3).map(message).collect::<Vec<_>>()
    };
    let attempt = |work: &mut dyn FnMut()| {
        released.store(0, Ordering::Relaxed);
        made.store(0, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
        let (released, made) = (released.load(Ordering::Relaxed), made.load(Ordering::Relaxed));
        assert!(released <= made, "{released} releases of {made} payloads");
    };
    let on_purpose = |_: i64, _: Counted| panic!("on purpose");
    attempt(&mut || {
        let queue = counted_queue(Mode::Orderly);
        queue.puller().unwrap().put(&mut batch(), 0, None).unwrap();
        let mut turn = queue.begin_turn(0).unwrap();
        turn.take(2, 0).unwrap();
        let _ = turn.commit_with(0, on_purpose);
    });
    attempt(&mut || {
        let queue = counted_queue(Mode::Concurrent);
        queue.puller().unwrap().put(&mut batch(), 0, None).unwrap();
        let mut consumer = queue.consumer().unwrap();
        consumer.take(2, 0).unwrap();
        let _ = consumer.complete_with(&[0i64, 1, 2], 0, |_, _| (), on_purpose);
    });
    attempt(&mut || {
        let queue = counted_queue(Mode::Concurrent);
        queue.puller().unwrap().put(&mut batch(), 0, None).unwrap();
        let _ = queue.close_with(0, on_purpose);
    });
    attempt(&mut || {
        let queue = counted_queue(Mode::Orderly);
        queue.puller().unwrap().put(&mut batch(), 0, None).unwrap();
        let refuse = |_: i64, _: Counted, _| panic!("on purpose");
        let _ = queue.puller().unwrap().put_with(&mut batch(), 0, None, refuse);
    });
}
