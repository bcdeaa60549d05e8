//! `lk_turn`: one turn of consumption in orderly mode, by a checked token.

use lanekeeper_core::process_queue::{Committed, Turn, TurnEnd};

use crate::guard::{check_array, queue_call, slice, write_out};
use crate::handle::lk_process_queue;
use crate::message::{lk_delivery, lk_target, write_batch};
use crate::outcome::{OutcomeArray, lk_complete_result, lk_requeue_result};
use crate::release::{PayloadArray, releasing};
use crate::status::{LK_LIMIT, LK_NOTHING, Not, lk_status};

/// Nothing to do; the next `put` will tell.
pub const LK_TURN_END_NOTHING: i32 = 0;
/// Something is ready, or somebody was answered `LK_BUSY`: submit another turn.
pub const LK_TURN_END_RUN_AGAIN: i32 = 1;
/// The queue was closed meanwhile, and this was its last turn: hand it over now.
pub const LK_TURN_END_HAND_OVER: i32 = 2;

/// A turn: the right to consume an orderly queue, from `lk_process_queue_begin_turn` until
/// `lk_turn_end`. A plain value that may be copied and passed to another thread; while one
/// thread is in a call with it, another is answered `LK_BUSY`. Once the turn has ended, and on
/// any other queue, it is answered `LK_STALE`. All zero is no turn.
///
/// Functions: `lk_turn_take`, `_in_flight`, `_commit`, `_commit_into`, `_rollback`, `_requeue`,
/// `_complete`, `_complete_into`, `_end`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_turn {
    /// Opaque.
    pub token: u64,
}

/// What a `commit` did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_commit_result {
    /// This offset may be stored from now on.
    pub safe_offset: i64,
    /// Messages finished by this call.
    pub finished: u32,
    /// 0.
    pub reserved: u32,
}

impl lk_process_queue {
    #[inline]
    fn enter_turn(&self, turn: lk_turn) -> Result<Turn<'_, u64>, Not> {
        Ok(self.resume_turn(self.turn_token(turn))?)
    }
}

/// Does one verb in a turn, then puts the turn down, so that nothing is held after it.
macro_rules! in_turn {
    ($queue:expr, $token:expr, |$turn:ident| $verb:expr) => {{
        let mut $turn = $queue.enter_turn($token)?;
        let answer = $verb;
        $turn.suspend();
        answer
    }};
}

fn committed(committed: Committed) -> Result<lk_commit_result, Not> {
    match committed {
        Committed::Nothing => Err(Not(LK_NOTHING)),
        Committed::Finished { safe_offset, finished } => {
            Ok(lk_commit_result { safe_offset, finished, reserved: 0 })
        }
    }
}

/// Takes the lowest ready messages, at most `capacity`, in ascending order, and lends them to
/// the turn. A capacity of 0 changes nothing and is answered `LK_OK`; `deliveries` may then be
/// NULL. Finding nothing makes the queue idle: the next `put` will ask for a turn.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_EMPTY, LK_BUSY, LK_STALE, LK_STOPPED, LK_CLOSED, LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_take(
    queue: *mut lk_process_queue,
    turn: lk_turn,
    now_ms: i64,
    deliveries: *mut lk_delivery,
    capacity: usize,
    len_out: *mut usize,
) -> lk_status {
    queue_call!(queue, [len_out], {
        check_array(deliveries, capacity)?;
        let len = in_turn!(queue, turn, |turn| turn.take(capacity, now_ms).map(|batch| {
            // SAFETY: the batch has at most `capacity` messages, and the caller vouches for
            // that much room.
            unsafe { write_batch(batch, deliveries) }
        }))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, len) };
        Ok(())
    })
}

/// Gives everything the turn has in flight once more, ascending. If `capacity` is too small it
/// answers `LK_LIMIT` with the needed number in `*len_out`, and writes no delivery.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_BUSY, LK_STALE, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a misaligned
///   array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_in_flight(
    queue: *mut lk_process_queue,
    turn: lk_turn,
    deliveries: *mut lk_delivery,
    capacity: usize,
    len_out: *mut usize,
) -> lk_status {
    queue_call!(queue, [len_out], {
        check_array(deliveries, capacity)?;
        let len = in_turn!(queue, turn, |turn| {
            let batch = turn.in_flight();
            let len = batch.len();
            if len <= capacity {
                // SAFETY: the caller vouches for room for `capacity`.
                unsafe { write_batch(batch, deliveries) };
            }
            len
        });
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, len) };
        if len <= capacity { Ok(()) } else { Err(Not(LK_LIMIT)) }
    })
}

/// Finishes everything the turn has in flight, atomically, and answers the new safe offset.
///
/// Ownership: ends the loans; the payloads are released, also when the answer is `LK_CLOSED`.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback.
/// Errors: LK_NOTHING (nothing was in flight; nothing changed), LK_CLOSED (not counted: the
///   final safe offset stays), LK_BUSY, LK_STALE, LK_ERR_NULL_ARG, LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_commit(
    queue: *mut lk_process_queue,
    turn: lk_turn,
    now_ms: i64,
    result_out: *mut lk_commit_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        let answer = releasing!(
            queue,
            |sink| in_turn!(queue, turn, |turn| turn.commit_with(now_ms, sink)),
            else in_turn!(queue, turn, |turn| turn.commit(now_ms))
        )?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, committed(answer)?) };
        Ok(())
    })
}

/// As `lk_turn_commit`, and hands the payloads back in `payloads` instead of calling the release
/// callback: the caller owns them. If `capacity` is less than what is in flight, it answers
/// `LK_LIMIT` with the needed number in `*len_out` and does nothing. `payloads` and `*len_out`
/// are written with `LK_OK` and with `LK_CLOSED`.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_NOTHING, LK_CLOSED, LK_BUSY, LK_STALE, LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_commit_into(
    queue: *mut lk_process_queue,
    turn: lk_turn,
    now_ms: i64,
    payloads: *mut u64,
    capacity: usize,
    len_out: *mut usize,
    result_out: *mut lk_commit_result,
) -> lk_status {
    queue_call!(queue, [len_out, result_out], {
        check_array(payloads, capacity)?;
        // SAFETY: the caller vouches for the room.
        let mut array = unsafe { PayloadArray::new(payloads, capacity) };
        let answer = in_turn!(queue, turn, |turn| {
            let needed = usize::try_from(turn.in_flight_count()).unwrap_or(usize::MAX);
            if needed > capacity {
                Err(needed)
            } else {
                Ok(turn.commit_with(now_ms, |_, payload| array.push(payload)))
            }
        });
        match answer {
            Err(needed) => {
                // SAFETY: not NULL, and the caller vouches for it.
                unsafe { write_out(len_out, needed) };
                Err(Not(LK_LIMIT))
            }
            Ok(answer) => {
                let answer = answer.map_err(Not::from).and_then(committed);
                if matches!(answer, Ok(_) | Err(Not(crate::status::LK_CLOSED))) {
                    // SAFETY: not NULL, and the caller vouches for it.
                    unsafe { write_out(len_out, array.len()) };
                }
                // SAFETY: not NULL, and the caller vouches for it.
                unsafe { write_out(result_out, answer?) };
                Ok(())
            }
        }
    })
}

/// Makes everything the turn has in flight ready again, atomically, and answers how many that
/// were. The next take starts at the lowest of them.
///
/// Ownership: ends the loans; a queue that was closed meanwhile releases the payloads.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback, if the queue was closed.
/// Errors: LK_CLOSED, LK_BUSY, LK_STALE, LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_rollback(
    queue: *mut lk_process_queue,
    turn: lk_turn,
    now_ms: i64,
    count_out: *mut u32,
) -> lk_status {
    queue_call!(queue, [count_out], {
        let count = releasing!(queue, |sink| {
            in_turn!(queue, turn, |turn| turn.rollback_with(now_ms, sink))
        })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, count) };
        Ok(())
    })
}

/// Makes the named messages, of those in flight, ready again, and adds `attempts_plus` (0 to
/// 255) to their attempts. Unknown offsets and older deliveries are counted, not an error.
/// `outcomes` is NULL, or has room for one `LK_OUTCOME_*` for each target; its contents mean
/// something only with `LK_OK`.
///
/// Ownership: ends the loans; a queue that was closed meanwhile releases the payloads.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback, if the queue was closed.
/// Errors: LK_CLOSED, LK_BUSY, LK_STALE (the turn), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG
///   (`attempts_plus`, or a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_requeue(
    queue: *mut lk_process_queue,
    turn: lk_turn,
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
        let plus = crate::outcome::attempts(attempts_plus)?;
        // SAFETY: the caller vouches for NULL or one number per target.
        let outcomes = unsafe { OutcomeArray::new(outcomes, count) }?;
        let each = |index, outcome| outcomes.set(index, outcome);
        let requeued = releasing!(queue, |sink| {
            in_turn!(queue, turn, |turn| turn.requeue_with(targets, plus, now_ms, each, sink))
        })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, lk_requeue_result::from(requeued)) };
        Ok(())
    })
}

/// Finishes the named messages, of those in flight, in any order, each exactly once, and answers
/// the new safe offset. Unknown or finished ones and older deliveries are counted, not an error.
/// `outcomes` is NULL, or has room for one `LK_OUTCOME_*` for each target, which tells whether
/// this call finished it; its contents mean something only with `LK_OK`.
///
/// Ownership: ends the loans and releases the payloads, also when the answer is `LK_CLOSED`.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback.
/// Errors: LK_CLOSED, LK_BUSY, LK_STALE (the turn), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a
///   misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_complete(
    queue: *mut lk_process_queue,
    turn: lk_turn,
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
            |sink| in_turn!(queue, turn, |turn| turn.complete_with(targets, now_ms, each, sink)),
            else in_turn!(queue, turn, |turn| if outcomes.is_null() {
                turn.complete(targets, now_ms)
            } else {
                turn.complete_with(targets, now_ms, each, |_, _| {})
            })
        )?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, lk_complete_result::from(completed)) };
        Ok(())
    })
}

/// As `lk_turn_complete`, and hands the payloads back in `payloads` instead of calling the
/// release callback: the caller owns them. If `capacity` is less than `count`, it answers
/// `LK_LIMIT` with the needed number in `*len_out` and does nothing. `payloads` and `*len_out`
/// are written with `LK_OK` and with `LK_CLOSED`. `outcomes` is NULL, or has room for `count`.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_CLOSED, LK_BUSY, LK_STALE (the turn), LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_complete_into(
    queue: *mut lk_process_queue,
    turn: lk_turn,
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
        let completed = in_turn!(queue, turn, |turn| {
            turn.complete_with(targets, now_ms, each, |_, payload| array.push(payload))
        });
        // SAFETY: not NULL, and the caller vouches for them.
        unsafe { array.answer(completed, len_out, result_out) }
    })
}

/// Ends a turn and answers what it asks of the host, one of `LK_TURN_END_*`. What is still in
/// flight becomes ready again. The token is stale from then on.
///
/// Ownership: ends the loans; a queue that was closed meanwhile releases the payloads.
///
/// Threads: any; one at a time with the same turn.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback, if the queue was closed.
/// Errors: LK_BUSY, LK_STALE, LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_turn_end(
    queue: *mut lk_process_queue,
    turn: lk_turn,
    now_ms: i64,
    end_out: *mut i32,
) -> lk_status {
    queue_call!(queue, [end_out], {
        let end = releasing!(queue, |sink| queue.enter_turn(turn)?.end_with(now_ms, sink));
        let end = match end {
            TurnEnd::Nothing => LK_TURN_END_NOTHING,
            TurnEnd::RunAgain => LK_TURN_END_RUN_AGAIN,
            TurnEnd::HandOver => LK_TURN_END_HAND_OVER,
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(end_out, end) };
        Ok(())
    })
}
