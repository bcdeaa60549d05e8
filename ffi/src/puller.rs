//! The puller's verbs: `put` and `advance`.

use lanekeeper_core::process_queue::Incoming;

use crate::guard::{queue_call, slice, write_out};
use crate::handle::lk_process_queue;
use crate::message::lk_message;
use crate::release::releasing;
use crate::status::lk_status;

/// For `broker_max` of `lk_process_queue_put`: the pull did not tell it. Any negative number does.
pub const LK_BROKER_MAX_UNKNOWN: i64 = -1;

/// What a `put` did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_put_result {
    /// Messages accepted; all of them became ready.
    pub accepted: u32,
    /// Messages refused because they are outstanding already, or twice in the batch.
    pub duplicate: u32,
    /// Messages refused because they are below the pull offset and not outstanding.
    pub stale: u32,
    /// 1 if the queue (orderly mode) went from idle to scheduled: submit a turn. Else 0.
    pub schedule: u32,
}

/// What an `advance` did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_advance_result {
    /// The new safe offset if `moved` is 1, else 0.
    pub safe_offset: i64,
    /// 1 if this call moved the safe offset, else 0.
    pub moved: u32,
    /// 0.
    pub reserved: u32,
}

/// Puts the messages of one pull, atomically. Every message at or above the pull offset is
/// accepted, in any order and with gaps; the others are refused, counted, and released at once.
/// An empty batch is legal, and `messages` may then be NULL.
///
/// Ownership: with `LK_OK` the queue owns every payload of the batch, refused ones included;
/// with any other status it owns none. The array itself is only read.
/// `broker_max` is the highest offset the broker told with this pull, or
/// `LK_BROKER_MAX_UNKNOWN`.
///
/// Threads: any; one puller at a time, a second one is answered `LK_BUSY`.
/// Progress: lock-free.
/// Allocates: amortised: segments come back from the queue's own pool.
/// Calls back: the release callback, for refused messages.
/// Errors: LK_BUSY, LK_STOPPED, LK_CLOSED, LK_LIMIT (the batch would exceed outstanding_max),
///   LK_ERR_INVALID_ARG (an offset is negative or INT64_MAX, or the array is misaligned),
///   LK_ERR_NULL_ARG, LK_ERR_NO_MEMORY, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_put(
    queue: *mut lk_process_queue,
    messages: *const lk_message,
    count: usize,
    now_ms: i64,
    broker_max: i64,
    result_out: *mut lk_put_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        // SAFETY: the caller vouches for the array, and `lk_message` is laid out like `Incoming`.
        let batch = unsafe { slice(messages.cast::<Incoming<u64>>(), count) }?;
        let broker_max = (broker_max > LK_BROKER_MAX_UNKNOWN).then_some(broker_max);
        let put = releasing!(queue, |sink| {
            // The guard is a temporary: the role is given back at the end of this statement.
            queue.puller()?.put_slice(batch, now_ms, broker_max, |offset, payload, _| {
                sink(offset, payload);
            })
        })?;
        let result = lk_put_result {
            accepted: put.accepted,
            duplicate: put.duplicate,
            stale: put.stale,
            schedule: put.schedule.into(),
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, result) };
        Ok(())
    })
}

/// Tells the queue that the broker has nothing for it before `next`: everything up to there was
/// filtered out, or there is no new message. Raises the pull offset; equal to it, nothing
/// changes. Of an `advance` and the `commit` or `complete` that empties the queue, exactly the
/// later one answers the new safe offset.
///
/// Threads: any; one puller at a time, a second one is answered `LK_BUSY`.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_BUSY, LK_STALE (`next` is below the pull offset), LK_STOPPED, LK_CLOSED,
///   LK_ERR_INVALID_ARG (`next` is negative), LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_advance(
    queue: *mut lk_process_queue,
    next: i64,
    now_ms: i64,
    result_out: *mut lk_advance_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        let advanced = queue.puller()?.advance(next, now_ms)?;
        let result = lk_advance_result {
            safe_offset: advanced.safe_offset.unwrap_or(0),
            moved: advanced.safe_offset.is_some().into(),
            reserved: 0,
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, result) };
        Ok(())
    })
}
