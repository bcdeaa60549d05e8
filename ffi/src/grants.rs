//! `lk_grants`: the client's side of leases.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, TryLockError};

use lanekeeper_core::lease::{Answer, LeaseClient, Request, RequestId, Told};

use crate::guard::{check_array, plain_call, slice, write_out};
use crate::status::{LK_BUSY, LK_EMPTY, LK_ERR_POISONED, LK_LIMIT, LK_STALE, Not, lk_status};
use crate::tables::{Tagged, free, give_out, handle, table_call, write_at};

/// The queue may be consumed from now on; it could not before.
pub const LK_TOLD_GRANTED: i32 = 0;
/// It could be consumed and still can.
pub const LK_TOLD_RENEWED: i32 = 1;
/// Another client holds it; it is asked for again.
pub const LK_TOLD_REFUSED: i32 = 2;
/// Another client may have consumed in between: close the generation and start anew.
pub const LK_TOLD_SUPERSEDED: i32 = 3;
/// Granted, but wanted no more: give it back.
pub const LK_TOLD_UNWANTED: i32 = 4;

/// Which leases this client holds, counted from the time each request was sent, and what to ask
/// for next. Queues and brokers are numbers of the host's choice.
/// Functions: `lk_grants_new`, `_free`, `_want`, `_next_due`, `_next_request`, `_answered`,
/// `_failed`, `_is_valid`, `_token`, `_closing`, `_forget`.
pub struct lk_grants {
    inner: Tagged<Mutex<Grants>>,
}
handle!(lk_grants, Mutex<Grants>, 0x6c6b_6772);

#[derive(Default)]
pub(crate) struct Grants {
    client: LeaseClient<u64, u64>,
    /// Due, and not given out yet.
    requests: VecDeque<Request<u64, u64>>,
}

/// A request to be sent now.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_grant_request {
    /// To be named with the answer.
    pub request: u64,
    /// The broker to send it to.
    pub broker: u64,
}

/// One queue that a broker's answer lists as locked by this client.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_grant_answer {
    /// The queue.
    pub queue: u64,
    /// The fencing token, 0 where the broker gives none.
    pub token: u64,
}

/// What an answer means for one queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_grant_told {
    /// The queue.
    pub queue: u64,
    /// Of the assignment; 0 with LK_TOLD_UNWANTED.
    pub generation: u64,
    /// One of LK_TOLD_*.
    pub what: i32,
    /// 0.
    pub reserved: u32,
}

impl From<Told<u64>> for lk_grant_told {
    fn from(told: Told<u64>) -> Self {
        let (queue, generation, what) = match told {
            Told::Granted { queue, generation } => (queue, generation, LK_TOLD_GRANTED),
            Told::Renewed { queue, generation } => (queue, generation, LK_TOLD_RENEWED),
            Told::Refused { queue, generation } => (queue, generation, LK_TOLD_REFUSED),
            Told::Superseded { queue, generation } => (queue, generation, LK_TOLD_SUPERSEDED),
            Told::Unwanted { queue } => (queue, 0, LK_TOLD_UNWANTED),
        };
        Self { queue, generation, what, reserved: 0 }
    }
}

/// Two threads at once are told so.
fn enter(grants: &Mutex<Grants>) -> Result<MutexGuard<'_, Grants>, Not> {
    grants.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Not(LK_BUSY),
        TryLockError::Poisoned(_) => Not(LK_ERR_POISONED),
    })
}

/// Makes one that wants no lease.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_new(grants_out: *mut *mut lk_grants) -> lk_status {
    plain_call!([grants_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { give_out(grants_out, Mutex::default()) };
        Ok(())
    })
}

/// Frees it. NULL is fine.
///
/// Threads: any, exclusive: no other call may use the handle.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_grants_free(grants: *mut lk_grants) {
    // SAFETY: the caller vouches for it.
    unsafe { free(grants) };
}

/// Wants the lease of a queue, for one assignment; its broker is to be asked at once.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_STALE (an older assignment of the queue is still here: forget it first), LK_BUSY,
///   LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_want(
    grants: *const lk_grants,
    queue_key: u64,
    broker_key: u64,
    generation: u64,
    now_ms: i64,
) -> lk_status {
    table_call!(grants, [], {
        let wanted = enter(grants)?.client.want(queue_key, broker_key, generation, now_ms);
        wanted.map_err(|_| Not(LK_STALE))
    })
}

/// Tells when `lk_grants_next_request` will have something next.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_EMPTY (nothing is wanted), LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG,
///   LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_next_due(
    grants: *const lk_grants,
    due_ms_out: *mut i64,
) -> lk_status {
    table_call!(grants, [due_ms_out], {
        let due_ms = enter(grants)?.client.next_due_ms().ok_or(Not(LK_EMPTY))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(due_ms_out, due_ms) };
        Ok(())
    })
}

/// Gives the next request to be sent now, with the queues to lock, ascending; call it until it
/// answers LK_EMPTY. It counts as sent when the first one of that round was given. If `capacity`
/// is too small it answers LK_LIMIT with the needed number in `*len_out`, and keeps the request.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_EMPTY, LK_LIMIT, LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a misaligned
///   array), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_next_request(
    grants: *const lk_grants,
    now_ms: i64,
    queues: *mut u64,
    capacity: usize,
    len_out: *mut usize,
    request_out: *mut lk_grant_request,
) -> lk_status {
    table_call!(grants, [len_out, request_out], {
        check_array(queues, capacity)?;
        let mut grants = enter(grants)?;
        if grants.requests.is_empty() {
            grants.requests = grants.client.due(now_ms).into();
        }
        let first = grants.requests.front().ok_or(Not(LK_EMPTY))?;
        let len = first.queues.len();
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, len) };
        if len > capacity {
            return Err(Not(LK_LIMIT));
        }
        let request = grants.requests.pop_front().ok_or(Not(LK_EMPTY))?;
        for (index, queue) in request.queues.into_iter().enumerate() {
            // SAFETY: the caller vouches for room for `capacity`.
            unsafe { write_at(queues, index, queue) };
        }
        let request = lk_grant_request { request: request.id.0, broker: request.broker };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(request_out, request) };
        Ok(())
    })
}

/// An answer came: the queues it lists are locked by this client, the others asked for are not.
/// `told` gets what that means for each queue concerned; an unknown, older or second answer means
/// nothing. If `capacity` is less than could be needed, it answers LK_LIMIT with that number in
/// `*len_out` and does nothing.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a misaligned array),
///   LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_answered(
    grants: *const lk_grants,
    request: u64,
    answers: *const lk_grant_answer,
    count: usize,
    now_ms: i64,
    told: *mut lk_grant_told,
    capacity: usize,
    len_out: *mut usize,
) -> lk_status {
    table_call!(grants, [len_out], {
        // SAFETY: the caller vouches for the array.
        let answers = unsafe { slice(answers, count) }?;
        check_array(told, capacity)?;
        let mut grants = enter(grants)?;
        let needed = answers.len() + grants.client.count();
        if capacity < needed {
            // SAFETY: not NULL, and the caller vouches for it.
            unsafe { write_out(len_out, needed) };
            return Err(Not(LK_LIMIT));
        }
        let answer = |answer: &lk_grant_answer| Answer {
            queue: answer.queue,
            token: Some(answer.token).filter(|&token| token != 0),
        };
        let granted: Vec<Answer<u64>> = answers.iter().map(answer).collect();
        let meant = grants.client.answered(RequestId(request), &granted, now_ms);
        let len = meant.len();
        for (index, meant) in meant.into_iter().enumerate() {
            // SAFETY: at most `needed`, and the caller vouches for room for `capacity`.
            unsafe { write_at(told, index, meant.into()) };
        }
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, len) };
        Ok(())
    })
}

/// No answer will come to a request: its broker is to be asked again in a second.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_failed(
    grants: *const lk_grants,
    request: u64,
    now_ms: i64,
) -> lk_status {
    table_call!(grants, [], {
        enter(grants)?.client.failed(RequestId(request), now_ms);
        Ok(())
    })
}

/// Tells whether an assignment may consume and store offsets now: it was granted, and the request
/// was sent at most 30,000 ms ago. A clock that steps back ends every grant.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_is_valid(
    grants: *const lk_grants,
    queue_key: u64,
    generation: u64,
    now_ms: i64,
    valid_out: *mut bool,
) -> lk_status {
    table_call!(grants, [valid_out], {
        let valid = enter(grants)?.client.is_valid(&queue_key, generation, now_ms);
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(valid_out, valid) };
        Ok(())
    })
}

/// Gives the fencing token of the last grant, for the store actions of this generation.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_EMPTY (no grant, or the broker gives no tokens), LK_BUSY, LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_token(
    grants: *const lk_grants,
    queue_key: u64,
    generation: u64,
    token_out: *mut u64,
) -> lk_status {
    table_call!(grants, [token_out], {
        let token = enter(grants)?.client.token(&queue_key, generation).ok_or(Not(LK_EMPTY))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(token_out, token) };
        Ok(())
    })
}

/// The queue was closed while a turn runs: its lease is refreshed for `hand_over_ms` more at most.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_closing(
    grants: *const lk_grants,
    queue_key: u64,
    generation: u64,
    now_ms: i64,
    hand_over_ms: i64,
) -> lk_status {
    table_call!(grants, [], {
        enter(grants)?.client.closing(&queue_key, generation, now_ms, hand_over_ms);
        Ok(())
    })
}

/// The hand-over of a queue is done: wants it no longer, and answers the broker to give it back to.
///
/// Threads: any; one call at a time, another is answered LK_BUSY.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_EMPTY (it was not wanted), LK_BUSY, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG,
///   LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_grants_forget(
    grants: *const lk_grants,
    queue_key: u64,
    broker_out: *mut u64,
) -> lk_status {
    table_call!(grants, [broker_out], {
        let release = enter(grants)?.client.forget(&[queue_key]);
        let broker = *release.keys().next().ok_or(Not(LK_EMPTY))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(broker_out, broker) };
        Ok(())
    })
}
