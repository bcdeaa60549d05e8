//! The reads of a queue: gauges, offsets, the snapshot, and who is late.

use lanekeeper_core::process_queue::{Expired, Snapshot};

use crate::config::lk_process_queue_config;
use crate::guard::{check_array, queue_call, write_out};
use crate::handle::lk_process_queue;
use crate::status::lk_status;

/// One consistent cut of a queue. Offsets are 0 where the state they are of has no message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_snapshot {
    /// Messages ready.
    pub cached_count: u64,
    /// Lowest ready offset.
    pub cached_min: i64,
    /// Highest ready offset.
    pub cached_max: i64,
    /// Messages in flight.
    pub in_flight_count: u64,
    /// Lowest offset in flight.
    pub in_flight_min: i64,
    /// Highest offset in flight.
    pub in_flight_max: i64,
    /// Messages claimed (concurrent mode).
    pub claimed_count: u64,
    /// Messages outstanding: ready, in flight and claimed.
    pub count: u64,
    /// Sum of their recorded sizes, in bytes.
    pub bytes: u64,
    /// May be stored.
    pub safe_offset: i64,
    /// Next offset to ask the broker for.
    pub pull_offset: i64,
    /// Highest offset ever put, -1 if none.
    pub highest_put: i64,
    /// Lowest offset outstanding, if `has_oldest` is 1.
    pub oldest_offset: i64,
    /// ms since the oldest outstanding message was put, never negative.
    pub oldest_age_ms: i64,
    /// Highest offset of the broker minus the last one of its batch, as last told; 0 until told.
    pub lag: i64,
    /// Time of the last `put` or `advance`, in ms; the creation counts as one at time 0.
    pub last_pull_ms: i64,
    /// Time of the last `take` that handed something over, in ms.
    pub last_consume_ms: i64,
    /// 1 if something is outstanding, else 0.
    pub has_oldest: u32,
    /// Orderly mode: 1 if somebody was told to run a turn, else 0.
    pub scheduled: u32,
    /// 1 if `stop` was called, else 0.
    pub stopped: u32,
    /// 1 if `close` was called, else 0.
    pub closed: u32,
    /// 0; room for later fields.
    pub reserved: [u64; 4],
}

impl From<Snapshot> for lk_snapshot {
    fn from(cut: Snapshot) -> Self {
        Self {
            cached_count: cut.cached_count,
            cached_min: cut.cached_min,
            cached_max: cut.cached_max,
            in_flight_count: cut.in_flight_count,
            in_flight_min: cut.in_flight_min,
            in_flight_max: cut.in_flight_max,
            claimed_count: cut.claimed_count,
            count: cut.count,
            bytes: cut.bytes,
            safe_offset: cut.safe_offset,
            pull_offset: cut.pull_offset,
            highest_put: cut.highest_put,
            oldest_offset: cut.oldest_offset.unwrap_or(0),
            oldest_age_ms: cut.oldest_age_ms,
            lag: cut.lag,
            last_pull_ms: cut.last_pull_ms,
            last_consume_ms: cut.last_consume_ms,
            has_oldest: cut.oldest_offset.is_some().into(),
            scheduled: cut.scheduled.into(),
            stopped: cut.stopped.into(),
            closed: cut.closed.into(),
            reserved: [0; 4],
        }
    }
}

/// A message that was taken too long ago.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_expired {
    /// Offset of the message.
    pub offset: i64,
    /// ms since it was taken.
    pub age_ms: i64,
    /// Its current delivery.
    pub delivery: u32,
    /// 0.
    pub reserved: u32,
}

impl From<Expired> for lk_expired {
    fn from(expired: Expired) -> Self {
        Self {
            offset: expired.offset,
            age_ms: expired.age_ms,
            delivery: expired.delivery,
            reserved: 0,
        }
    }
}

/// Reads how many messages are outstanding: ready, in flight or claimed. Exact when no call is
/// running; while calls run it errs upward only. 0 once the queue is closed.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_count(
    queue: *const lk_process_queue,
    count_out: *mut u64,
) -> lk_status {
    queue_call!(queue, [count_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, queue.count()) };
        Ok(())
    })
}

/// Reads the sum of the recorded sizes of the outstanding messages. Exact when no call is running;
/// while calls run it errs upward only. 0 once the queue is closed.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_bytes(
    queue: *const lk_process_queue,
    bytes_out: *mut u64,
) -> lk_status {
    queue_call!(queue, [bytes_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(bytes_out, queue.bytes()) };
        Ok(())
    })
}

/// Reads the highest offset ever put minus the lowest one outstanding, 0 if none is.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_span(
    queue: *const lk_process_queue,
    span_out: *mut i64,
) -> lk_status {
    queue_call!(queue, [span_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(span_out, queue.span()) };
        Ok(())
    })
}

/// Reads the safe offset: everything below it is finished, so it may be stored. It never goes
/// back, and stays readable after `close`.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_safe_offset(
    queue: *const lk_process_queue,
    offset_out: *mut i64,
) -> lk_status {
    queue_call!(queue, [offset_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(offset_out, queue.safe_offset()) };
        Ok(())
    })
}

/// Reads the next offset to ask the broker for. It never goes back.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_pull_offset(
    queue: *const lk_process_queue,
    offset_out: *mut i64,
) -> lk_status {
    queue_call!(queue, [offset_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(offset_out, queue.pull_offset()) };
        Ok(())
    })
}

/// Tells whether the queue was closed.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_is_closed(
    queue: *const lk_process_queue,
    closed_out: *mut bool,
) -> lk_status {
    queue_call!(queue, [closed_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(closed_out, queue.is_closed()) };
        Ok(())
    })
}

/// Tells whether the queue was stopped.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_is_stopped(
    queue: *const lk_process_queue,
    stopped_out: *mut bool,
) -> lk_status {
    queue_call!(queue, [stopped_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(stopped_out, queue.is_stopped()) };
        Ok(())
    })
}

/// Tells whether the message with this offset is ready.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_contains(
    queue: *const lk_process_queue,
    offset: i64,
    contains_out: *mut bool,
) -> lk_status {
    queue_call!(queue, [contains_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(contains_out, queue.contains(offset)) };
        Ok(())
    })
}

/// Tells whether anything is ready.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never in orderly mode; yes in concurrent mode.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_has_ready(
    queue: *const lk_process_queue,
    ready_out: *mut bool,
) -> lk_status {
    queue_call!(queue, [ready_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(ready_out, queue.has_ready()) };
        Ok(())
    })
}

/// Tells whether the queue is closed, its turn still runs, and `hand_over_ms` have passed since
/// the close: the lease is not to be refreshed any longer.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_hand_over_overdue(
    queue: *const lk_process_queue,
    now_ms: i64,
    overdue_out: *mut bool,
) -> lk_status {
    queue_call!(queue, [overdue_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(overdue_out, queue.hand_over_overdue(now_ms)) };
        Ok(())
    })
}

/// Reads how many payloads the queue holds: put, and neither released nor handed back. For gauges
/// and tests; weak while calls run.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_payloads_live(
    queue: *const lk_process_queue,
    count_out: *mut u64,
) -> lk_status {
    queue_call!(queue, [count_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, queue.payloads_live()) };
        Ok(())
    })
}

/// Reads the generation the queue was created with.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_generation(
    queue: *const lk_process_queue,
    generation_out: *mut u64,
) -> lk_status {
    queue_call!(queue, [generation_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(generation_out, queue.generation()) };
        Ok(())
    })
}

/// Reads the configuration in force, defaults filled in. The whole struct is written: for code
/// compiled against this header or an older one of the same ABI version.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_get_config(
    queue: *const lk_process_queue,
    config_out: *mut lk_process_queue_config,
) -> lk_status {
    queue_call!(queue, [config_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(config_out, queue.config().into()) };
        Ok(())
    })
}

/// Takes one consistent cut of the queue. It may retry while others write; it never blocks a
/// writer, and a writer stopped anywhere never blocks it.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never in orderly mode; yes in concurrent mode.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_snapshot(
    queue: *const lk_process_queue,
    now_ms: i64,
    snapshot_out: *mut lk_snapshot,
) -> lk_status {
    queue_call!(queue, [snapshot_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(snapshot_out, queue.snapshot(now_ms).into()) };
        Ok(())
    })
}

/// Names the in-flight messages taken more than `limit_ms` before `now_ms`, lowest first, at most
/// `capacity`. It changes nothing. Orderly mode has none. With a capacity of 0 `expired` may be
/// NULL.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_process_queue_expired(
    queue: *const lk_process_queue,
    now_ms: i64,
    limit_ms: i64,
    expired: *mut lk_expired,
    capacity: usize,
    len_out: *mut usize,
) -> lk_status {
    queue_call!(queue, [len_out], {
        check_array(expired, capacity)?;
        let mut found = Vec::new();
        queue.expired(now_ms, limit_ms, capacity, &mut found);
        for (index, &late) in found.iter().enumerate() {
            // SAFETY: at most `capacity` were found, and the caller vouches for that much room.
            let slot = unsafe { expired.add(index) };
            // SAFETY: as above.
            unsafe { slot.write(late.into()) };
        }
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, found.len()) };
        Ok(())
    })
}
