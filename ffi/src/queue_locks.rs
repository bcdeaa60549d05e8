//! `lk_queue_locks`: turns of many queues.

use std::sync::Arc;

use lanekeeper_core::intern::Id;
use lanekeeper_core::process_queue::TurnEnd;
use lanekeeper_core::queue_lock::{HandOver, LockToken, QueueLockTable};

use crate::guard::write_out;
use crate::handle::next_salt;
use crate::queue_ids::{QueueKey, lk_queue_ids};
use crate::status::{LK_ERR_INVALID_ARG, Not, lk_status};
use crate::tables::{Tagged, free, give_out, handle, table_call};
use crate::turn::{LK_TURN_END_HAND_OVER, LK_TURN_END_NOTHING, LK_TURN_END_RUN_AGAIN};

/// For `shard`: the whole queue.
pub const LK_SHARD_NONE: i32 = -1;

/// A turn is running; its end tells that the hand-over is due.
pub const LK_HAND_OVER_AT_END_OF_TURN: i32 = 0;
/// No turn is running: the hand-over is due now.
pub const LK_HAND_OVER_NOW: i32 = 1;

pub(crate) struct Locks {
    table: QueueLockTable<QueueKey>,
    /// Makes the turns of another table stale here.
    salt: u64,
}

/// At most one turn at a time for each queue, and for each shard of a queue. Nobody waits: who
/// finds a turn running is answered LK_BUSY and leaves a note for its end.
/// Functions: `lk_queue_locks_new`, `_free`, `_open`, `_begin`, `_end`, `_close`, `_held_count`.
pub struct lk_queue_locks {
    inner: Tagged<Locks>,
}
handle!(lk_queue_locks, Locks, 0x6c6b_6c6b);

/// A turn of one queue, from `lk_queue_locks_begin` until `lk_queue_locks_end`. A plain value;
/// once ended, and for any other table, it is answered LK_STALE. All zero is no turn.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_queue_turn {
    /// Number of the queue.
    pub queue: u64,
    /// Opaque.
    pub shard: u64,
    /// Opaque.
    pub token: u64,
    /// Number of the assignment that it was opened for.
    pub generation: u64,
}

fn shard_index(shard: i32) -> Result<Option<u32>, Not> {
    match shard {
        LK_SHARD_NONE => Ok(None),
        index => Ok(Some(u32::try_from(index).map_err(|_| Not(LK_ERR_INVALID_ARG))?)),
    }
}

/// Makes a table without open queues, for the numbers of `ids`, which it keeps.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_locks_new(
    ids: *const lk_queue_ids,
    locks_out: *mut *mut lk_queue_locks,
) -> lk_status {
    table_call!(ids, [locks_out], {
        let table = QueueLockTable::new(Arc::clone(ids));
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { give_out(locks_out, Locks { table, salt: next_salt() }) };
        Ok(())
    })
}

/// Frees a table. NULL is fine. Queues that were open are no longer named by it.
///
/// Threads: any, exclusive: no other call may use the handle.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_queue_locks_free(locks: *mut lk_queue_locks) {
    // SAFETY: the caller vouches for it.
    unsafe { free(locks) };
}

/// Lets turns of a queue begin, for one assignment of it to this client. `shard` is 0 or more, or
/// LK_SHARD_NONE for the whole queue; each has turns of its own. The table holds a reference to
/// the queue's number until the hand-over is told.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: amortised.
/// Calls back: never.
/// Errors: LK_STALE (the number), LK_BUSY (it is open, or its last turn has not ended), LK_LIMIT,
///   LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (`shard`), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_locks_open(
    locks: *const lk_queue_locks,
    id: u64,
    shard: i32,
    generation: u64,
) -> lk_status {
    table_call!(locks, [], {
        Ok(locks.table.open(Id::from_bits(id), shard_index(shard)?, generation)?)
    })
}

/// Begins a turn. LK_BUSY leaves a note: the end of the running turn will answer
/// LK_TURN_END_RUN_AGAIN. Give every turn back with `lk_queue_locks_end`.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_BUSY, LK_CLOSED (closed, or not opened), LK_STALE (the number), LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (`shard`), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_locks_begin(
    locks: *const lk_queue_locks,
    id: u64,
    shard: i32,
    turn_out: *mut lk_queue_turn,
) -> lk_status {
    table_call!(locks, [turn_out], {
        let turn = locks.table.begin(Id::from_bits(id), shard_index(shard)?)?;
        let [queue, shard, number, generation] = turn.suspend().to_parts();
        let turn = lk_queue_turn { queue, shard, token: number ^ locks.salt, generation };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(turn_out, turn) };
        Ok(())
    })
}

/// Ends a turn and answers what is to be done now: LK_TURN_END_NOTHING, LK_TURN_END_RUN_AGAIN or
/// LK_TURN_END_HAND_OVER.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE (it has ended, or is no turn of this table), LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_locks_end(
    locks: *const lk_queue_locks,
    turn: lk_queue_turn,
    end_out: *mut i32,
) -> lk_status {
    table_call!(locks, [end_out], {
        let lk_queue_turn { queue, shard, token, generation } = turn;
        let parts = [queue, shard, token ^ locks.salt, generation];
        let end = match locks.table.end(LockToken::from_parts(parts))? {
            TurnEnd::Nothing => LK_TURN_END_NOTHING,
            TurnEnd::RunAgain => LK_TURN_END_RUN_AGAIN,
            TurnEnd::HandOver => LK_TURN_END_HAND_OVER,
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(end_out, end) };
        Ok(())
    })
}

/// Lets no turn begin any more. Neither waits for a running turn nor cuts it short. Exactly one
/// of this call (LK_HAND_OVER_NOW) and the end of that turn tells that the hand-over is due.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_CLOSED (closed before), LK_STALE (not the current assignment), LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (`shard`), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_locks_close(
    locks: *const lk_queue_locks,
    id: u64,
    shard: i32,
    generation: u64,
    hand_over_out: *mut i32,
) -> lk_status {
    table_call!(locks, [hand_over_out], {
        let hand_over = locks.table.close(Id::from_bits(id), shard_index(shard)?, generation)?;
        let hand_over = match hand_over {
            HandOver::Now => LK_HAND_OVER_NOW,
            HandOver::AtEndOfTurn => LK_HAND_OVER_AT_END_OF_TURN,
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(hand_over_out, hand_over) };
        Ok(())
    })
}

/// Counts the turns that run: a weak look, for tests and gauges.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_locks_held_count(
    locks: *const lk_queue_locks,
    count_out: *mut u64,
) -> lk_status {
    table_call!(locks, [count_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, locks.table.held_count() as u64) };
        Ok(())
    })
}
