//! Life of a queue: new, clone, free, stop, close, and the start of turns and consumers.

use std::ffi::c_void;

use lanekeeper_core::process_queue::ProcessQueue;

use crate::config::{self, lk_process_queue_config};
use crate::consumer::lk_consumer;
use crate::error::{self, lk_error};
use crate::guard::{self, plain_call, queue_call, write_out};
use crate::handle::lk_process_queue;
use crate::release::{HostFns, lk_payload_release_fn, lk_user_data_free_fn, releasing};
use crate::status::{LK_CLOSED, LK_ERR_INVALID_ARG, LK_ERR_NO_MEMORY, Not, lk_status};
use crate::turn::lk_turn;

/// What a `close` answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_close_result {
    /// The final safe offset.
    pub safe_offset: i64,
    /// 1 if no turn is running: hand the queue over now. 0: the end of the turn will tell.
    pub hand_over: u32,
    /// 0.
    pub reserved: u32,
}

/// Makes a queue with one reference. `config` and `queue_out` must not be NULL; the callbacks,
/// `user_data` and `err_out` may be.
///
/// Ownership: the reference is the caller's, to be given to `lk_process_queue_free`. With
/// `LK_OK` the queue owns `user_data` and calls `user_data_free` once, when its last reference
/// is gone; with any other status the caller keeps it. An error object is the caller's.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a value of the configuration; the error object
///   names it), LK_ERR_ABI_MISMATCH (its size), LK_ERR_NO_MEMORY, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_new(
    config: *const lk_process_queue_config,
    queue_out: *mut *mut lk_process_queue,
    err_out: *mut *mut lk_error,
    payload_release: lk_payload_release_fn,
    user_data_free: lk_user_data_free_fn,
    user_data: *mut c_void,
) -> lk_status {
    plain_call!([config, queue_out], {
        // SAFETY: not NULL; the caller vouches for its size, and for `err_out`.
        let config = unsafe { config::read_sized(config, err_out) }?;
        // SAFETY: the caller vouches for `err_out`.
        let config = unsafe { config.to_core(err_out) }?;
        let queue = ProcessQueue::new(config).map_err(|refused| {
            if refused.is_out_of_memory() {
                // No error object either: it would have to be allocated.
                return Not(LK_ERR_NO_MEMORY);
            }
            // SAFETY: the caller vouches for `err_out`.
            unsafe { error::refuse(err_out, LK_ERR_INVALID_ARG, &refused.to_string()) }
        })?;
        let host = HostFns { release: payload_release, user_data, user_data_free };
        let handle = lk_process_queue::allocate(queue, host)?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(queue_out, handle) };
        Ok(())
    })
}

/// Adds a reference to the queue. Both handles are the same queue, and each is freed once.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (not a live handle; best effort),
///   LK_ERR_OVERFLOW (too many references), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_clone(
    queue: *mut lk_process_queue,
    clone_out: *mut *mut lk_process_queue,
) -> lk_status {
    queue_call!(queue, [clone_out], {
        queue.add_reference()?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(clone_out, std::ptr::from_ref(queue).cast_mut()) };
        Ok(())
    })
}

/// Drops one reference. The last one releases every payload the queue still holds, lent ones
/// included, and then the user data. NULL is fine. Freeing does not close: who has to know the
/// final safe offset calls `lk_process_queue_close` first. Works on a poisoned queue too, whose
/// payloads are then leaked rather than released twice.
///
/// Threads: any, own reference.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback and `user_data_free`, with the last reference.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_process_queue_free(queue: *mut lk_process_queue) {
    guard::quiet_call(|| {
        if queue.is_null() {
            return;
        }
        // SAFETY: not NULL; the caller vouches that it is a reference of theirs.
        let live = unsafe { lk_process_queue::may_be_freed(queue) };
        if live {
            // SAFETY: as above; the caller drops it with this call.
            unsafe { lk_process_queue::drop_reference(queue) };
        }
    });
}

/// Stops the queue: from now on `put`, `advance` and `take` answer `LK_STOPPED`, while everything
/// about messages in flight goes on. Stopping again changes nothing; `close` may follow.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_CLOSED, LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_process_queue_stop(queue: *mut lk_process_queue) -> lk_status {
    queue_call!(queue, [], {
        if queue.is_closed() {
            return Err(Not(LK_CLOSED));
        }
        queue.stop();
        Ok(())
    })
}

/// Closes the queue, for good, and answers the final safe offset. Atomic with respect to
/// `commit` and `complete`: each of them either happened before and is included in that offset,
/// or answers `LK_CLOSED` and has no effect. A running turn is neither waited for nor cut short;
/// exactly one of `close` and the end of the turn tells that the queue is to be handed over.
///
/// Ownership: releases the ready messages; those lent are released when their loans end.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: yes, if more than 256 payloads are released.
/// Calls back: the release callback.
/// Errors: LK_CLOSED (it was before), LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_close(
    queue: *mut lk_process_queue,
    now_ms: i64,
    result_out: *mut lk_close_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        let closed = releasing!(queue, |sink| queue.close_with(now_ms, sink))?;
        let result = lk_close_result {
            safe_offset: closed.safe_offset,
            hand_over: closed.hand_over.into(),
            reserved: 0,
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, result) };
        Ok(())
    })
}

/// Begins a turn (orderly mode), to be ended with `lk_turn_end`. Never waits: while another turn
/// runs it answers `LK_BUSY` and leaves a note, so that the end of that turn answers
/// `LK_TURN_END_RUN_AGAIN`.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_BUSY, LK_CLOSED, LK_ERR_WRONG_MODE, LK_ERR_NULL_ARG, LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_begin_turn(
    queue: *mut lk_process_queue,
    now_ms: i64,
    turn_out: *mut lk_turn,
) -> lk_status {
    queue_call!(queue, [turn_out], {
        let token = queue.begin_turn(now_ms)?.suspend();
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(turn_out, queue.wrap_turn(token)) };
        Ok(())
    })
}

/// Begins a consumer (concurrent mode), to be ended with `lk_consumer_end`.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_LIMIT (consumers_max of them exist), LK_CLOSED, LK_ERR_WRONG_MODE,
///   LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_begin_consumer(
    queue: *mut lk_process_queue,
    consumer_out: *mut lk_consumer,
) -> lk_status {
    queue_call!(queue, [consumer_out], {
        let token = queue.consumer()?.suspend();
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(consumer_out, queue.wrap_consumer(token)) };
        Ok(())
    })
}
