//! `lk_route` and `lk_members`: the two lists that an allocation follows from.

use std::collections::HashMap;
use std::sync::Arc;

use lanekeeper_core::allocate::{Members, Route, SetupError};
use lanekeeper_core::message_queue::MessageQueue;

use crate::error::{self, lk_error};
use crate::guard::{self, check_array, plain_call, slice, write_out};
use crate::message_queue::lk_message_queue;
use crate::object::{self, Handle, Tagged};
use crate::status::{LK_ERR_INVALID_ARG, Not, lk_status};
use crate::text::lk_str;

/// The queues of a topic, sorted, each once. Immutable; any threads may read it at the same time.
/// An allocator takes a reference of its own, so that the handle may be freed at once.
///
/// Functions: `lk_route_new`, `_free`, `_count`, `_queue`.
pub struct lk_route {
    inner: Tagged<Arc<Route>>,
}

/// The client ids of a group, sorted; an id that is listed twice stays twice. Immutable; any
/// threads may read it at the same time. An allocator takes a reference of its own, so that the
/// handle may be freed at once.
///
/// Functions: `lk_members_new`, `_free`, `_count`, `_client`.
pub struct lk_members {
    inner: Tagged<Arc<Members>>,
}

impl Handle for lk_route {
    /// "lkro"
    const TAG: u32 = 0x6c6b_726f;
    type Value = Arc<Route>;

    fn wrap(inner: Tagged<Arc<Route>>) -> Self {
        Self { inner }
    }
    fn inner(&self) -> &Tagged<Arc<Route>> {
        &self.inner
    }
}

impl Handle for lk_members {
    /// "lkme"
    const TAG: u32 = 0x6c6b_6d65;
    type Value = Arc<Members>;

    fn wrap(inner: Tagged<Arc<Members>>) -> Self {
        Self { inner }
    }
    fn inner(&self) -> &Tagged<Arc<Members>> {
        &self.inner
    }
}

/// Texts of a list; the error names the one that is none.
///
/// # Safety
/// As for `guard::slice`, for the array and each of its texts; `err_out` is the caller's.
pub(crate) unsafe fn texts<'a>(
    what: &str,
    list: *const lk_str,
    count: usize,
    err_out: *mut *mut lk_error,
) -> Result<Vec<&'a str>, Not> {
    // SAFETY: the caller vouches for it.
    let list = unsafe { slice(list, count) }?;
    let mut texts = Vec::with_capacity(list.len());
    for (index, text) in list.iter().enumerate() {
        // SAFETY: as above.
        texts.push(unsafe { text.read() }.map_err(|Not(status)| {
            let why = format!("{what}[{index}] is NULL, not UTF-8, or holds a NUL");
            // SAFETY: `err_out` is the caller's.
            unsafe { error::refuse(err_out, status, &why) }
        })?);
    }
    Ok(texts)
}

/// Queues of a list; the error names the one that is none. Topics and broker names are shared.
///
/// # Safety
/// As for [`texts`].
pub(crate) unsafe fn queues(
    list: *const lk_message_queue,
    count: usize,
    err_out: *mut *mut lk_error,
) -> Result<Vec<MessageQueue>, Not> {
    // SAFETY: the caller vouches for it.
    let list = unsafe { slice(list, count) }?;
    let mut known: HashMap<&str, Arc<str>> = HashMap::new();
    let mut queues = Vec::with_capacity(list.len());
    for (index, queue) in list.iter().enumerate() {
        // SAFETY: as above.
        let name = unsafe { queue.name() }.map_err(|Not(status)| {
            let why = format!("queues[{index}] has a text that is NULL, not UTF-8, or with a NUL");
            // SAFETY: `err_out` is the caller's.
            unsafe { error::refuse(err_out, status, &why) }
        })?;
        let mut shared = |text| Arc::clone(known.entry(text).or_insert_with(|| text.into()));
        let (topic, broker_name) = (shared(name.topic), shared(name.broker_name));
        queues.push(MessageQueue::new(topic, broker_name, name.queue_id).map_err(|invalid| {
            let why = format!("queues[{index}]: {invalid}");
            // SAFETY: `err_out` is the caller's.
            unsafe { error::refuse(err_out, LK_ERR_INVALID_ARG, &why) }
        })?);
    }
    Ok(queues)
}

/// # Safety
/// `err_out` is NULL or may be written.
pub(crate) unsafe fn refused(err_out: *mut *mut lk_error, why: &SetupError) -> Not {
    // SAFETY: the caller vouches for it.
    unsafe { error::refuse(err_out, LK_ERR_INVALID_ARG, &why.to_string()) }
}

/// Makes a route of queues in any order; doubles are dropped. Room n is the machine room that
/// queue n stands in, an empty one is not known; only `LK_STRATEGY_MACHINE_ROOM_NEARBY` needs them.
/// If `rooms` is NULL, or `count` is 0, there are none.
///
/// Ownership: the handle is the caller's, to be given to `lk_route_free`; so is an error object.
/// The lists are copied.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a text that is not UTF-8 or holds a NUL, a
///   negative queue id, more than 2^24 queues; the error object tells), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_route_new(
    queues: *const lk_message_queue,
    count: usize,
    rooms: *const lk_str,
    route_out: *mut *mut lk_route,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([route_out], {
        // SAFETY: the caller vouches for the lists and for `err_out`.
        let list = unsafe { self::queues(queues, count, err_out) }?;
        let route = if rooms.is_null() {
            Route::new(list)
        } else {
            // SAFETY: as above.
            let rooms = unsafe { texts("rooms", rooms, count, err_out) }?;
            let by_queue: HashMap<MessageQueue, &str> = list.iter().cloned().zip(rooms).collect();
            Route::with_rooms(list, |queue| by_queue.get(queue).copied())
        };
        // SAFETY: the caller vouches for `err_out`.
        let route = route.map_err(|why| unsafe { refused(err_out, &why) })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(route_out, object::into_raw(Arc::new(route))) };
        Ok(())
    })
}

/// Frees a route. NULL is fine. Allocators that use it go on.
///
/// Threads: any, exclusive: nobody else may be using the handle.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_route_free(route: *mut lk_route) {
    // SAFETY: the caller vouches that it is NULL or theirs to free.
    guard::quiet_call(|| unsafe { object::free(route) });
}

/// Reads how many queues there are, doubles dropped.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (not a live handle; best effort), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_route_count(
    route: *const lk_route,
    count_out: *mut usize,
) -> lk_status {
    plain_call!([route, count_out], {
        // SAFETY: the caller vouches for the handle.
        let route = unsafe { object::get(route) }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, route.len()) };
        Ok(())
    })
}

/// Reads one queue, counted from 0 in the sorted order. Its texts live as long as the route: until
/// it is freed.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (no such queue, or not a live handle),
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_route_queue(
    route: *const lk_route,
    index: usize,
    queue_out: *mut lk_message_queue,
) -> lk_status {
    plain_call!([route, queue_out], {
        // SAFETY: the caller vouches for the handle.
        let route = unsafe { object::get(route) }?;
        let queue = route.queues().get(index).ok_or(Not(LK_ERR_INVALID_ARG))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(queue_out, queue.into()) };
        Ok(())
    })
}

/// Makes a list of members of client ids in any order. Room n is the machine room that client n
/// stands in, an empty one is not known; only `LK_STRATEGY_MACHINE_ROOM_NEARBY` needs them. If
/// `rooms` is NULL, or `count` is 0, there are none.
///
/// Ownership: the handle is the caller's, to be given to `lk_members_free`; so is an error object.
/// The lists are copied.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a text that is not UTF-8 or holds a NUL, more
///   than 2^20 ids; the error object tells), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_members_new(
    clients: *const lk_str,
    count: usize,
    rooms: *const lk_str,
    members_out: *mut *mut lk_members,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([members_out], {
        check_array(clients, count)?;
        // SAFETY: the caller vouches for the lists and for `err_out`.
        let ids = unsafe { texts("clients", clients, count, err_out) }?;
        let members = if rooms.is_null() {
            Members::new(ids)
        } else {
            // SAFETY: as above.
            let rooms = unsafe { texts("rooms", rooms, count, err_out) }?;
            let by_client: HashMap<&str, &str> = ids.iter().copied().zip(rooms).collect();
            Members::with_rooms(ids, |client| by_client.get(client).copied())
        };
        // SAFETY: the caller vouches for `err_out`.
        let members = members.map_err(|why| unsafe { refused(err_out, &why) })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(members_out, object::into_raw(Arc::new(members))) };
        Ok(())
    })
}

/// Frees a list of members. NULL is fine. Allocators that use it go on.
///
/// Threads: any, exclusive: nobody else may be using the handle.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_members_free(members: *mut lk_members) {
    // SAFETY: the caller vouches that it is NULL or theirs to free.
    guard::quiet_call(|| unsafe { object::free(members) });
}

/// Reads how many entries there are, ids that are listed twice counting twice.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (not a live handle; best effort), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_members_count(
    members: *const lk_members,
    count_out: *mut usize,
) -> lk_status {
    plain_call!([members, count_out], {
        // SAFETY: the caller vouches for the handle.
        let members = unsafe { object::get(members) }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(count_out, members.len()) };
        Ok(())
    })
}

/// Reads one client id, counted from 0 in the sorted order. The text lives as long as the list:
/// until it is freed.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (no such entry, or not a live handle),
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_members_client(
    members: *const lk_members,
    index: usize,
    client_out: *mut lk_str,
) -> lk_status {
    plain_call!([members, client_out], {
        // SAFETY: the caller vouches for the handle.
        let members = unsafe { object::get(members) }?;
        let client = members.clients().get(index).ok_or(Not(LK_ERR_INVALID_ARG))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(client_out, (&**client).into()) };
        Ok(())
    })
}
