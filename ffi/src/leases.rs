//! `lk_leases`: the broker's side of leases.

use std::ffi::c_char;
use std::sync::Arc;

use lanekeeper_core::intern::Id;
use lanekeeper_core::lease::LeaseTable;

use crate::guard::{check_array, slice, write_out};
use crate::queue_ids::{QueueKey, lk_queue_ids};
use crate::status::{LK_EMPTY, LK_OK, Not, lk_status};
use crate::tables::{Tagged, free, give_out, handle, table_call, text, write_at};

/// At most one client for each queue of a group; a lease expires when it was renewed more than
/// 60,000 ms ago. Groups and clients have numbers, counted as those of queues are; a lease held
/// keeps the numbers of its group, queue and client.
/// Functions: `lk_leases_new`, `_free`, `_group`, `_client`, `_release_group`, `_release_client`,
/// `_acquire`, `_acquire_batch`, `_release`, `_release_batch`, `_all_expired`, `_sweep`, `_holder`.
pub struct lk_leases {
    inner: Tagged<LeaseTable<QueueKey>>,
}
handle!(lk_leases, LeaseTable<QueueKey>, 0x6c6b_6c73);

/// Who has a lease.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_lease_holder {
    /// Number of the queue.
    pub queue: u64,
    /// Number of the client.
    pub client: u64,
    /// Time of the last renewal.
    pub last_ms: i64,
    /// Fencing token.
    pub token: u64,
}

/// Makes a table without leases, for the numbers of `ids`, which it keeps. Fencing tokens begin
/// above `token_first`: pass a number above all that were given out before a restart.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_new(
    ids: *const lk_queue_ids,
    token_first: u64,
    leases_out: *mut *mut lk_leases,
) -> lk_status {
    table_call!(ids, [leases_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { give_out(leases_out, LeaseTable::new(Arc::clone(ids), token_first)) };
        Ok(())
    })
}

/// Frees a table. NULL is fine. Queues that were leased are no longer named by it.
///
/// Threads: any, exclusive: no other call may use the handle.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_leases_free(leases: *mut lk_leases) {
    // SAFETY: the caller vouches for it.
    unsafe { free(leases) };
}

/// Gives the number of a group, with one more reference. `name` is UTF-8 without NUL, copied.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (the text), LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_group(
    leases: *const lk_leases,
    name: *const c_char,
    name_len: usize,
    group_out: *mut u64,
) -> lk_status {
    table_call!(leases, [group_out], {
        // SAFETY: the caller vouches for the text.
        let group = leases.group(&unsafe { text(name, name_len) }?)?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(group_out, group.to_bits()) };
        Ok(())
    })
}

/// Gives the number of a client, with one more reference: keep it while the client is connected.
/// `name` is UTF-8 without NUL, copied. LK_LIMIT: 65,535 clients are connected or hold leases.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (the text), LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_client(
    leases: *const lk_leases,
    name: *const c_char,
    name_len: usize,
    client_out: *mut u64,
) -> lk_status {
    table_call!(leases, [client_out], {
        // SAFETY: the caller vouches for the text.
        let client = leases.client(&unsafe { text(name, name_len) }?)?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(client_out, client.to_bits()) };
        Ok(())
    })
}

/// Gives back a reference of `lk_leases_group`.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_release_group(
    leases: *const lk_leases,
    group: u64,
) -> lk_status {
    table_call!(leases, [], { Ok(leases.release_group(Id::from_bits(group))?) })
}

/// Gives back a reference of `lk_leases_client`. Leases it holds stay, and keep its number.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_release_client(
    leases: *const lk_leases,
    client: u64,
) -> lk_status {
    table_call!(leases, [], { Ok(leases.release_client(Id::from_bits(client))?) })
}

/// Takes or renews the lease of a queue, and answers its fencing token: a renewal the same one, a
/// takeover a higher one. It is given if free, the client's own, or expired. A `now_ms` below the
/// recorded time counts as age 0.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: amortised.
/// Calls back: never.
/// Errors: LK_BUSY (another client has it), LK_STALE (a number), LK_LIMIT, LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (`now_ms` not within 2^42 of 0), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_acquire(
    leases: *const lk_leases,
    group: u64,
    id: u64,
    client: u64,
    now_ms: i64,
    token_out: *mut u64,
) -> lk_status {
    table_call!(leases, [token_out], {
        let [group, id, client] = [group, id, client].map(Id::from_bits);
        let lease = leases.acquire(group, id, client, now_ms)?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(token_out, lease.token) };
        Ok(())
    })
}

/// As `lk_leases_acquire` for each of `queues`, each one step, and answers how many were given.
/// `statuses` is NULL, or has room for the status of each; `tokens` is NULL, or has room for the
/// token of each, 0 for those not given.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: amortised.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a misaligned array), LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_acquire_batch(
    leases: *const lk_leases,
    group: u64,
    client: u64,
    now_ms: i64,
    queues: *const u64,
    count: usize,
    statuses: *mut lk_status,
    tokens: *mut u64,
    given_out: *mut usize,
) -> lk_status {
    table_call!(leases, [given_out], {
        // SAFETY: the caller vouches for the array.
        let queues = unsafe { slice(queues, count) }?;
        if !statuses.is_null() {
            check_array(statuses, count)?;
        }
        if !tokens.is_null() {
            check_array(tokens, count)?;
        }
        let [group, client] = [group, client].map(Id::from_bits);
        let mut given = 0;
        for (index, &queue) in queues.iter().enumerate() {
            let answer = leases.acquire(group, Id::from_bits(queue), client, now_ms);
            let (status, token) = match answer {
                Ok(lease) => (LK_OK, lease.token),
                Err(refusal) => (Not::from(refusal).0, 0),
            };
            given += usize::from(status == LK_OK);
            if !statuses.is_null() {
                // SAFETY: the caller vouches for room for `count`.
                unsafe { write_at(statuses, index, status) };
            }
            if !tokens.is_null() {
                // SAFETY: the caller vouches for room for `count`.
                unsafe { write_at(tokens, index, token) };
            }
        }
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(given_out, given) };
        Ok(())
    })
}

/// Gives a lease back, expired or not. `*released_out` tells whether it was this client's; what
/// another holds is not changed.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE (a number), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_release(
    leases: *const lk_leases,
    group: u64,
    id: u64,
    client: u64,
    released_out: *mut bool,
) -> lk_status {
    table_call!(leases, [released_out], {
        let [group, id, client] = [group, id, client].map(Id::from_bits);
        let released = leases.release(group, id, client)?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(released_out, released) };
        Ok(())
    })
}

/// Gives back each of `queues`, each one step, and answers how many were this client's.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE (the group's or the client's number), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a
///   misaligned array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_release_batch(
    leases: *const lk_leases,
    group: u64,
    client: u64,
    queues: *const u64,
    count: usize,
    released_out: *mut usize,
) -> lk_status {
    table_call!(leases, [released_out], {
        // SAFETY: the caller vouches for the array.
        let queues = unsafe { slice(queues, count) }?;
        let [group, client] = [group, client].map(Id::from_bits);
        let mut released = 0;
        for &queue in queues {
            let queue = [Id::from_bits(queue)];
            released += leases.release_batch(group, &queue, client)?;
        }
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(released_out, released) };
        Ok(())
    })
}

/// Tells whether no lease of the group is valid; also if it has none. A weak look.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE (the group's number), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_all_expired(
    leases: *const lk_leases,
    group: u64,
    now_ms: i64,
    expired_out: *mut bool,
) -> lk_status {
    table_call!(leases, [expired_out], {
        let expired = leases.all_expired(Id::from_bits(group), now_ms)?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(expired_out, expired) };
        Ok(())
    })
}

/// Frees every lease that has expired, and answers how many. A lease renewed or taken meanwhile
/// stays. Optional: an expired lease is taken over all the same.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_sweep(
    leases: *const lk_leases,
    now_ms: i64,
    freed_out: *mut usize,
) -> lk_status {
    table_call!(leases, [freed_out], {
        let freed = leases.sweep(now_ms);
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(freed_out, freed) };
        Ok(())
    })
}

/// Tells who has a lease, expired or not.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_EMPTY (nobody, or a number is stale), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG,
///   LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_leases_holder(
    leases: *const lk_leases,
    group: u64,
    id: u64,
    holder_out: *mut lk_lease_holder,
) -> lk_status {
    table_call!(leases, [holder_out], {
        let holder = leases.holder(Id::from_bits(group), Id::from_bits(id)).ok_or(Not(LK_EMPTY))?;
        let holder = lk_lease_holder {
            queue: holder.queue.to_bits(),
            client: holder.client.to_bits(),
            last_ms: holder.last_ms,
            token: holder.token,
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(holder_out, holder) };
        Ok(())
    })
}
