//! `lk_queue_ids`: queues as small counted numbers.

use std::ffi::c_char;
use std::sync::Arc;

use lanekeeper_core::intern::{Id, Interner};

use crate::guard::{plain_call, write_out};
use crate::status::{LK_ERR_INVALID_ARG, Not, lk_status};
use crate::tables::{Tagged, free, give_out, handle, table_call, text};

/// Topic, broker name, queue id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    topic: String,
    broker: String,
    queue_id: i32,
}

pub(crate) type Ids = Arc<Interner<QueueKey>>;

/// Gives queues the numbers by which the tables of turns and leases know them. A number is a
/// counted reference: it names its queue until every reference was released, here and by the
/// tables that use it, and is answered LK_STALE from then on; it never names another queue.
/// A table keeps what it needs: the handle may be freed before it.
/// Functions: `lk_queue_ids_new`, `_free`, `_intern`, `_add_reference`, `_release`.
pub struct lk_queue_ids {
    inner: Tagged<Ids>,
}
handle!(lk_queue_ids, Ids, 0x6c6b_6964);

/// Makes an empty set of queue numbers.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_ids_new(ids_out: *mut *mut lk_queue_ids) -> lk_status {
    plain_call!([ids_out], {
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { give_out(ids_out, Arc::new(Interner::new())) };
        Ok(())
    })
}

/// Frees the handle. NULL is fine. Numbers in use by a table stay good for it.
///
/// Threads: any, exclusive: no other call may use the handle.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_queue_ids_free(ids: *mut lk_queue_ids) {
    // SAFETY: the caller vouches for it.
    unsafe { free(ids) };
}

/// Gives the number of a queue, with one more reference, to be given back with
/// `lk_queue_ids_release`. The same queue has the same number while somebody holds one.
/// `topic` and `broker` are UTF-8 without NUL, copied; `queue_id` is 0 to INT32_MAX.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a text or `queue_id`),
///   LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_ids_intern(
    ids: *const lk_queue_ids,
    topic: *const c_char,
    topic_len: usize,
    broker: *const c_char,
    broker_len: usize,
    queue_id: i32,
    id_out: *mut u64,
) -> lk_status {
    table_call!(ids, [id_out], {
        // SAFETY: the caller vouches for the text.
        let topic = unsafe { text(topic, topic_len) }?;
        // SAFETY: the caller vouches for the text.
        let broker = unsafe { text(broker, broker_len) }?;
        if queue_id < 0 {
            return Err(Not(LK_ERR_INVALID_ARG));
        }
        let id = ids.intern(&QueueKey { topic, broker, queue_id })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(id_out, id.to_bits()) };
        Ok(())
    })
}

/// Adds a reference to a number.
///
/// Threads: any.
/// Progress: lock-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE, LK_LIMIT, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED,
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_ids_add_reference(
    ids: *const lk_queue_ids,
    id: u64,
) -> lk_status {
    table_call!(ids, [], { Ok(ids.add_reference(Id::from_bits(id))?) })
}

/// Gives a reference back.
///
/// Threads: any.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_STALE, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG, LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_queue_ids_release(ids: *const lk_queue_ids, id: u64) -> lk_status {
    table_call!(ids, [], { Ok(ids.release(Id::from_bits(id)).map(drop)?) })
}
