//! `lk_allocator`: who consumes which queues just now, and `lk_shares`, its answers.

use std::ptr;
use std::sync::Arc;

use lanekeeper_core::allocate::{Allocation, Allocator, NoShare, Share, Shares};
use lanekeeper_core::message_queue::MessageQueue;

use crate::error::{self, lk_error};
use crate::guard::{self, plain_call, write_out};
use crate::message_queue::lk_message_queue;
use crate::object::{self, Handle, Tagged};
use crate::route::{lk_members, lk_route, refused};
use crate::status::{Answer, Not, lk_status};
use crate::status::{LK_DUPLICATE_CLIENT, LK_EMPTY, LK_ERR_INVALID_ARG, LK_NOT_MEMBER, LK_OK};
use crate::strategy::lk_strategy;
use crate::text::lk_str;

/// Divides a route among members by a strategy. Each of the three can be replaced while shares are
/// asked for; a share is always of one whole combination.
///
/// Functions: `lk_allocator_new`, `_free`, `_set_strategy`, `_set_route`, `_set_members`, `_share`,
/// `_shares`.
pub struct lk_allocator {
    inner: Tagged<Allocator>,
}

/// Shares as they were when they were asked for: of one client, or of all members. Immutable; any
/// threads may read it at the same time.
///
/// Functions: `lk_shares_count`, `_client`, `_queue`, `_free`.
pub struct lk_shares {
    inner: Tagged<Asked>,
}

/// What was asked for.
pub(crate) enum Asked {
    One(String, Share),
    All(Shares),
}

/// The share of one client. The pointers live until the shares are freed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct lk_client_share {
    /// Its id.
    pub client: lk_str,
    /// Positions of its queues in the sorted route (`LK_STRATEGY_CONFIG`: in its list).
    pub indexes: *const u32,
    /// How many there are.
    pub queue_count: usize,
    /// `LK_OK`, or `LK_DUPLICATE_CLIENT`: then it has no queues.
    pub status: lk_status,
    /// 0.
    pub reserved: u32,
}

impl Default for lk_client_share {
    fn default() -> Self {
        let client = lk_str::default();
        Self { client, indexes: ptr::null(), queue_count: 0, status: LK_OK, reserved: 0 }
    }
}

impl Handle for lk_allocator {
    /// "lkal"
    const TAG: u32 = 0x6c6b_616c;
    type Value = Allocator;

    fn wrap(inner: Tagged<Allocator>) -> Self {
        Self { inner }
    }
    fn inner(&self) -> &Tagged<Allocator> {
        &self.inner
    }
}

impl Handle for lk_shares {
    /// "lksh"
    const TAG: u32 = 0x6c6b_7368;
    type Value = Asked;

    fn wrap(inner: Tagged<Asked>) -> Self {
        Self { inner }
    }
    fn inner(&self) -> &Tagged<Asked> {
        &self.inner
    }
}

fn status_of(why: &NoShare) -> lk_status {
    match why {
        NoShare::NotMember => LK_NOT_MEMBER,
        NoShare::DuplicateClient => LK_DUPLICATE_CLIENT,
        NoShare::NoQueues | NoShare::NoClients => LK_EMPTY,
        NoShare::EmptyClientId | NoShare::NoRoom(_) => LK_ERR_INVALID_ARG,
    }
}

impl Asked {
    fn count(&self) -> usize {
        match self {
            Self::One(..) => 1,
            Self::All(shares) => shares.len(),
        }
    }

    /// A client's id and indexes; `index` was checked.
    fn client(&self, index: usize) -> (&str, Result<&[u32], NoShare>) {
        match self {
            Self::One(client, share) => (client, Ok(share.indexes())),
            Self::All(shares) => (shares.client(index), shares.indexes(index)),
        }
    }

    fn queue(&self, index: usize, queue_index: usize) -> Option<&MessageQueue> {
        match self {
            Self::One(_, share) => share.iter().nth(queue_index),
            Self::All(shares) => shares.queues(index).ok()?.nth(queue_index),
        }
    }
}

/// Makes an allocator and prepares its first allocation. All pointers but `err_out` must not be
/// NULL.
///
/// Ownership: the handle is the caller's, to be given to `lk_allocator_free`; so is an error
/// object. The three others stay the caller's and may be freed at once.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: the ring hash.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (not a live handle, or a ring of more than 2^26
///   points; the error object tells), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_allocator_new(
    strategy: *const lk_strategy,
    route: *const lk_route,
    members: *const lk_members,
    allocator_out: *mut *mut lk_allocator,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([strategy, route, members, allocator_out], {
        // SAFETY: the caller vouches for the handle.
        let strategy = unsafe { object::get(strategy) }?.clone();
        // SAFETY: as above.
        let route = Arc::clone(unsafe { object::get(route) }?);
        // SAFETY: as above.
        let members = Arc::clone(unsafe { object::get(members) }?);
        let first = Allocation::new(strategy, route, members);
        // SAFETY: the caller vouches for `err_out`.
        let first = first.map_err(|why| unsafe { refused(err_out, &why) })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(allocator_out, object::into_raw(Allocator::new(first))) };
        Ok(())
    })
}

/// Frees an allocator. NULL is fine. Shares that it gave stay.
///
/// Threads: any, exclusive: nobody else may be using the handle.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: never.
/// Calls back: `hash_user_data_free`, if nobody else uses the hash.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_allocator_free(allocator: *mut lk_allocator) {
    // SAFETY: the caller vouches that it is NULL or theirs to free.
    guard::quiet_call(|| unsafe { object::free(allocator) });
}

/// Replaces the strategy. Shares asked for meanwhile are of the old or of the new allocation. With
/// any status but `LK_OK` nothing is replaced.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: the ring hash; `hash_user_data_free` of the old one, if nobody else uses it.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (as for `lk_allocator_new`), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_allocator_set_strategy(
    allocator: *const lk_allocator,
    strategy: *const lk_strategy,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([allocator, strategy], {
        // SAFETY: the caller vouches for the handle.
        let allocator = unsafe { object::get(allocator) }?;
        // SAFETY: as above.
        let strategy = unsafe { object::get(strategy) }?;
        // SAFETY: the caller vouches for `err_out`.
        allocator.set_strategy(strategy).map_err(|why| unsafe { refused(err_out, &why) })
    })
}

/// Replaces the route. Shares asked for meanwhile are of the old or of the new allocation. With any
/// status but `LK_OK` nothing is replaced.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: the ring hash.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (as for `lk_allocator_new`), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_allocator_set_route(
    allocator: *const lk_allocator,
    route: *const lk_route,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([allocator, route], {
        // SAFETY: the caller vouches for the handle.
        let allocator = unsafe { object::get(allocator) }?;
        // SAFETY: as above.
        let route = unsafe { object::get(route) }?;
        // SAFETY: the caller vouches for `err_out`.
        allocator.set_route(route).map_err(|why| unsafe { refused(err_out, &why) })
    })
}

/// Replaces the members; what was computed for the route is kept. Shares asked for meanwhile are
/// of the old or of the new allocation. With any status but `LK_OK` nothing is replaced.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: the ring hash.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (as for `lk_allocator_new`), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_allocator_set_members(
    allocator: *const lk_allocator,
    members: *const lk_members,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([allocator, members], {
        // SAFETY: the caller vouches for the handle.
        let allocator = unsafe { object::get(allocator) }?;
        // SAFETY: as above.
        let members = unsafe { object::get(members) }?;
        // SAFETY: the caller vouches for `err_out`.
        allocator.set_members(members).map_err(|why| unsafe { refused(err_out, &why) })
    })
}

/// Hands over what was asked for.
///
/// # Safety
/// `shares_out` may be written; `err_out` is NULL or may be.
unsafe fn hand_over(
    asked: Result<Asked, NoShare>,
    shares_out: *mut *mut lk_shares,
    err_out: *mut *mut lk_error,
) -> Answer {
    // SAFETY: `err_out` is the caller's.
    let refuse =
        |why: NoShare| unsafe { error::refuse(err_out, status_of(&why), &why.to_string()) };
    let shares = object::into_raw(asked.map_err(refuse)?);
    // SAFETY: the caller vouches for it.
    unsafe { write_out(shares_out, shares) };
    Ok(())
}

/// Asks for the share of one client. The answer is a list of one.
///
/// No share is not an empty share: a client that is told `LK_EMPTY` changes nothing; one that is
/// told `LK_NOT_MEMBER` gives up what it has. `LK_STRATEGY_CONFIG` gives its list to any client.
///
/// Ownership: the shares are the caller's, to be given to `lk_shares_free`; so is an error object.
///
/// Threads: any.
/// Progress: wait-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_NOT_MEMBER, LK_DUPLICATE_CLIENT, LK_EMPTY (no queues, or no members),
///   LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (an empty id or one that is not UTF-8 or holds a NUL, a
///   machine room that is not known, not a live handle; the error object tells), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_allocator_share(
    allocator: *const lk_allocator,
    client: lk_str,
    shares_out: *mut *mut lk_shares,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([allocator, shares_out], {
        // SAFETY: the caller vouches for the handle.
        let allocator = unsafe { object::get(allocator) }?;
        // SAFETY: the caller vouches for the text.
        let client = unsafe { client.read() }?;
        let asked = allocator.share(client).map(|share| Asked::One(client.to_owned(), share));
        // SAFETY: the caller vouches for both.
        unsafe { hand_over(asked, shares_out, err_out) }
    })
}

/// Asks for the shares of all members, in the order of the sorted list. A client id that is listed
/// twice has `LK_DUPLICATE_CLIENT` in each of its entries.
///
/// Ownership: the shares are the caller's, to be given to `lk_shares_free`; so is an error object.
///
/// Threads: any.
/// Progress: wait-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_EMPTY (no queues, or no members), LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a machine
///   room that is not known, not a live handle; the error object tells), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_allocator_shares(
    allocator: *const lk_allocator,
    shares_out: *mut *mut lk_shares,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([allocator, shares_out], {
        // SAFETY: the caller vouches for the handle.
        let allocator = unsafe { object::get(allocator) }?;
        // SAFETY: the caller vouches for both.
        unsafe { hand_over(allocator.shares().map(Asked::All), shares_out, err_out) }
    })
}

/// Reads how many clients the shares are of.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (not a live handle; best effort), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_shares_count(
    shares: *const lk_shares,
    count_out: *mut usize,
) -> lk_status {
    plain_call!([shares, count_out], {
        // SAFETY: the caller vouches for the handle.
        let asked = unsafe { object::get(shares) }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, asked.count()) };
        Ok(())
    })
}

/// Reads the share of one of the clients, counted from 0.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (no such client, or not a live handle),
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_shares_client(
    shares: *const lk_shares,
    index: usize,
    share_out: *mut lk_client_share,
) -> lk_status {
    plain_call!([shares, share_out], {
        // SAFETY: the caller vouches for the handle.
        let asked = unsafe { object::get(shares) }?;
        if index >= asked.count() {
            return Err(Not(LK_ERR_INVALID_ARG));
        }
        let (client, indexes) = asked.client(index);
        let client = client.into();
        let share = match indexes {
            Ok(found) => lk_client_share {
                client,
                indexes: found.as_ptr(),
                queue_count: found.len(),
                ..lk_client_share::default()
            },
            Err(why) => {
                lk_client_share { client, status: status_of(&why), ..lk_client_share::default() }
            }
        };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(share_out, share) };
        Ok(())
    })
}

/// Reads one queue of one of the clients, both counted from 0. Its texts live until the shares are
/// freed.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (no such client or queue, or not a live handle),
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_shares_queue(
    shares: *const lk_shares,
    index: usize,
    queue_index: usize,
    queue_out: *mut lk_message_queue,
) -> lk_status {
    plain_call!([shares, queue_out], {
        // SAFETY: the caller vouches for the handle.
        let asked = unsafe { object::get(shares) }?;
        if index >= asked.count() {
            return Err(Not(LK_ERR_INVALID_ARG));
        }
        let queue = asked.queue(index, queue_index).ok_or(Not(LK_ERR_INVALID_ARG))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(queue_out, queue.into()) };
        Ok(())
    })
}

/// Frees shares. NULL is fine.
///
/// Threads: any, exclusive: nobody else may be using the handle.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_shares_free(shares: *mut lk_shares) {
    // SAFETY: the caller vouches that it is NULL or theirs to free.
    guard::quiet_call(|| unsafe { object::free(shares) });
}
