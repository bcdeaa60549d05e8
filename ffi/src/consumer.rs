//! `lk_consumer`: one consumer in concurrent mode, by a checked token.

use lanekeeper_core::process_queue::{Consumer, Outcome};

use crate::claim::lk_claim;
use crate::guard::{check_array, queue_call, slice, write_out};
use crate::handle::lk_process_queue;
use crate::message::{lk_delivery, lk_target, write_batch};
use crate::outcome::{OutcomeArray, attempts, lk_complete_result, lk_requeue_result};
use crate::release::{PayloadArray, releasing};
use crate::status::{Not, lk_status};

/// A consumer: a place among the consumers of a concurrent queue, from
/// `lk_process_queue_begin_consumer` until `lk_consumer_end`. A plain value that may be copied
/// and passed to another thread; while one thread is in a call with it, another is answered
/// `LK_BUSY`. Once the consumer has ended, and on any other queue, it is answered `LK_STALE`.
/// All zero is no consumer.
///
/// Functions: `lk_consumer_take`, `_complete`, `_complete_into`, `_requeue`, `_claim`,
/// `_give_back`, `_end`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_consumer {
    /// Opaque.
    pub token: u64,
}

impl lk_process_queue {
    #[inline]
    fn enter_consumer(&self, consumer: lk_consumer) -> Result<Consumer<'_, u64>, Not> {
        Ok(self.resume_consumer(self.consumer_token(consumer))?)
    }
}

/// Does one verb as a consumer, then puts the consumer down, so that nothing is held after it.
macro_rules! as_consumer {
    ($queue:expr, $token:expr, |$consumer:ident| $verb:expr) => {{
        let mut $consumer = $queue.enter_consumer($token)?;
        let answer = $verb;
        $consumer.suspend();
        answer
    }};
}

/// Takes the lowest ready messages, at most `capacity`, and lends them to the consumer. Batches
/// taken by different threads may interleave. A capacity of 0 changes nothing and is answered
/// `LK_OK`; `deliveries` may then be NULL.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: amortised: the consumer's list of loans may grow.
/// Calls back: never.
/// Errors: LK_EMPTY, LK_BUSY, LK_STALE, LK_STOPPED, LK_CLOSED, LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_take(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
    now_ms: i64,
    deliveries: *mut lk_delivery,
    capacity: usize,
    len_out: *mut usize,
) -> lk_status {
    queue_call!(queue, [len_out], {
        check_array(deliveries, capacity)?;
        let len = as_consumer!(queue, consumer, |consumer| {
            consumer.take(capacity, now_ms).map(|batch| {
                // SAFETY: the batch has at most `capacity` messages, and the caller vouches for
                // that much room.
                unsafe { write_batch(batch, deliveries) }
            })
        })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, len) };
        Ok(())
    })
}

/// Finishes the named messages, in any order, each exactly once, and answers the new safe
/// offset. Unknown or finished ones and older deliveries are counted, not an error. `outcomes`
/// is NULL, or has room for one `LK_OUTCOME_*` for each target, which tells whether this call
/// finished it; its contents mean something only with `LK_OK`.
///
/// Ownership: ends the loans and releases the payloads, also when the answer is `LK_CLOSED`.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback.
/// Errors: LK_CLOSED, LK_BUSY, LK_STALE (the consumer), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a
///   misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_complete(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
    targets: *const lk_target,
    count: usize,
    now_ms: i64,
    outcomes: *mut i32,
    result_out: *mut lk_complete_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        // SAFETY: the caller vouches for the array.
        let targets = unsafe { slice(targets, count) }?;
        // SAFETY: the caller vouches for NULL or one number per target.
        let outcomes = unsafe { OutcomeArray::new(outcomes, count) }?;
        let each = |index, outcome| outcomes.set(index, outcome);
        let completed = releasing!(
            queue,
            |sink| as_consumer!(queue, consumer, |consumer| {
                consumer.complete_with(targets, now_ms, each, sink)
            }),
            else as_consumer!(queue, consumer, |consumer| if outcomes.is_null() {
                consumer.complete(targets, now_ms)
            } else {
                consumer.complete_with(targets, now_ms, each, |_, _| {})
            })
        )?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, lk_complete_result::from(completed)) };
        Ok(())
    })
}

/// As `lk_consumer_complete`, and hands the payloads back in `payloads` instead of calling the
/// release callback: the caller owns them. If `capacity` is less than `count`, it answers
/// `LK_LIMIT` with the needed number in `*len_out` and does nothing. `payloads` and `*len_out`
/// are written with `LK_OK` and with `LK_CLOSED`. `outcomes` is NULL, or has room for `count`. A
/// message that another consumer still has on loan is not among them: that loan's end releases it.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_CLOSED, LK_BUSY, LK_STALE (the consumer), LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_complete_into(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
    targets: *const lk_target,
    count: usize,
    now_ms: i64,
    outcomes: *mut i32,
    payloads: *mut u64,
    capacity: usize,
    len_out: *mut usize,
    result_out: *mut lk_complete_result,
) -> lk_status {
    queue_call!(queue, [len_out, result_out], {
        // SAFETY: the caller vouches for the array.
        let targets = unsafe { slice(targets, count) }?;
        // SAFETY: the caller vouches for NULL or one number per target.
        let outcomes = unsafe { OutcomeArray::new(outcomes, count) }?;
        let each = |index, outcome| outcomes.set(index, outcome);
        // SAFETY: the caller vouches for the outputs.
        let mut array = unsafe { PayloadArray::with_room(payloads, capacity, count, len_out) }?;
        let completed = as_consumer!(queue, consumer, |consumer| {
            consumer.complete_with(targets, now_ms, each, |_, payload| array.push(payload))
        });
        // SAFETY: not NULL, and the caller vouches for them.
        unsafe { array.answer(completed, len_out, result_out) }
    })
}

/// Makes the named in-flight messages ready again and adds `attempts_plus` (0 to 255) to their
/// attempts. Unknown offsets and older deliveries are counted, not an error. `outcomes` is NULL,
/// or has room for one `LK_OUTCOME_*` for each target; its contents mean something only with
/// `LK_OK`.
///
/// Ownership: ends the loans; a queue that was closed meanwhile releases the payloads.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback, if the queue was closed.
/// Errors: LK_CLOSED, LK_BUSY, LK_STALE (the consumer), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG
///   (`attempts_plus`, or a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_requeue(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
    targets: *const lk_target,
    count: usize,
    attempts_plus: u32,
    now_ms: i64,
    outcomes: *mut i32,
    result_out: *mut lk_requeue_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        // SAFETY: the caller vouches for the array.
        let targets = unsafe { slice(targets, count) }?;
        let plus = attempts(attempts_plus)?;
        // SAFETY: the caller vouches for NULL or one number per target.
        let outcomes = unsafe { OutcomeArray::new(outcomes, count) }?;
        let each = |index, outcome| outcomes.set(index, outcome);
        let requeued = releasing!(queue, |sink| as_consumer!(queue, consumer, |consumer| {
            consumer.requeue_with(targets, plus, now_ms, each, sink)
        }))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, lk_requeue_result::from(requeued)) };
        Ok(())
    })
}

/// Claims the named in-flight messages: the exclusive right to decide about each, for a send-back
/// that is to be tried. Of all racing `complete` and `claim` calls for one message exactly one
/// wins. Writes one claim and one `LK_OUTCOME_*` for each target and the number won to
/// `*won_out`; a claim counts only where its outcome is `LK_OUTCOME_WON`, and is to be given to
/// `lk_claim_settle`. With another status than `LK_OK` no claim is held, whatever the arrays
/// contain.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: the release callback, if the queue was closed.
/// Errors: LK_CLOSED, LK_BUSY, LK_STALE (the consumer), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a
///   misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_claim(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
    targets: *const lk_target,
    count: usize,
    now_ms: i64,
    claims: *mut lk_claim,
    outcomes: *mut i32,
    won_out: *mut usize,
) -> lk_status {
    queue_call!(queue, [won_out], {
        // SAFETY: the caller vouches for the array.
        let targets = unsafe { slice(targets, count) }?;
        check_array(claims, count)?;
        check_array(outcomes, count)?;
        // SAFETY: the caller vouches for one number per target.
        let outcomes = unsafe { OutcomeArray::new(outcomes, count) }?;
        let mut won = 0;
        let done = releasing!(queue, |sink| as_consumer!(queue, consumer, |consumer| {
            let mut done = Ok(());
            for (index, &target) in targets.iter().enumerate() {
                let (outcome, claim) = match consumer.claim(target, now_ms) {
                    Ok(Ok(claim)) => (Outcome::Won, queue.wrap_claim(claim.suspend())),
                    Ok(Err(outcome)) => (outcome, lk_claim::default()),
                    Err(refusal) => {
                        // SAFETY: so many were written before, by this very loop.
                        let before = unsafe { slice(claims, index) }?;
                        take_back(queue, before, now_ms, &mut sink);
                        done = Err(refusal);
                        break;
                    }
                };
                won += usize::from(outcome == Outcome::Won);
                outcomes.set(index, outcome);
                // SAFETY: inside the caller's array of `count` claims.
                let slot = unsafe { claims.add(index) };
                // SAFETY: as above.
                unsafe { write_out(slot, claim) };
            }
            done
        }));
        done?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(won_out, won) };
        Ok(())
    })
}

/// Ends the claims that a call made before it was refused (the queue was closed on the way), so
/// that a claim is held only by who was told.
#[cold]
fn take_back(
    queue: &lk_process_queue,
    claims: &[lk_claim],
    now_ms: i64,
    sink: &mut impl FnMut(i64, u64),
) {
    for &claim in claims {
        // One that was not won is all zero, which is no claim of this queue.
        if let Ok(target) = queue.claim_target(claim)
            && let Ok(claim) = queue.resume_claim(target)
        {
            // Not sent, at once: the answer can only be Closed by now.
            let _ = claim.settle_with(false, now_ms, now_ms, &mut *sink);
        }
    }
}

/// Ends loans without deciding about the messages, which stay in flight: their payloads will not
/// be used any more. Answers how many loans ended.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback, for messages finished meanwhile.
/// Errors: LK_BUSY, LK_STALE (the consumer), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a misaligned
///   array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_give_back(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
    targets: *const lk_target,
    count: usize,
    count_out: *mut u32,
) -> lk_status {
    queue_call!(queue, [count_out], {
        // SAFETY: the caller vouches for the array.
        let targets = unsafe { slice(targets, count) }?;
        let ended = releasing!(queue, |sink| {
            as_consumer!(queue, consumer, |consumer| consumer.give_back_with(targets, sink))
        });
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, ended) };
        Ok(())
    })
}

/// Ends a consumer: its loans end, its place is free for another, and the token is stale. Its
/// messages stay in flight, to be found by `lk_process_queue_expired`.
///
/// Threads: any; one at a time with the same consumer.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback, for messages finished meanwhile.
/// Errors: LK_BUSY, LK_STALE, LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_consumer_end(
    queue: *mut lk_process_queue,
    consumer: lk_consumer,
) -> lk_status {
    queue_call!(queue, [], {
        releasing!(queue, |sink| queue.enter_consumer(consumer)?.end_with(sink));
        Ok(())
    })
}
