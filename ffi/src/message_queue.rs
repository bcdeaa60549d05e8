//! `lk_message_queue`: the name of one queue, and what Java answers for it.

use std::ffi::c_char;
use std::fmt::Write as _;

use lanekeeper_core::message_queue::{MessageQueue, Name};

use crate::guard::{check_array, plain_call, write_out};
use crate::status::{LK_ERR_INVALID_ARG, LK_LIMIT, Not, lk_status};
use crate::text::lk_str;

/// The name of one queue of a topic.
///
/// Functions: `lk_message_queue_compare`, `_hash_code`, `_to_string`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_message_queue {
    /// The topic.
    pub topic: lk_str,
    /// The name of the broker group that holds it.
    pub broker_name: lk_str,
    /// Its number there. 0 or more in lists; the functions on bare names take any.
    pub queue_id: i32,
    /// 0.
    pub reserved: u32,
}

impl From<&MessageQueue> for lk_message_queue {
    fn from(queue: &MessageQueue) -> Self {
        Self {
            topic: queue.topic().into(),
            broker_name: queue.broker_name().into(),
            queue_id: queue.queue_id(),
            reserved: 0,
        }
    }
}

impl lk_message_queue {
    /// # Safety
    /// Both texts are `(NULL, 0)` or can be read as long as `'a`.
    pub(crate) unsafe fn name<'a>(&self) -> Result<Name<'a>, Not> {
        // SAFETY: the caller vouches for it.
        let topic = unsafe { self.topic.read() }?;
        // SAFETY: as above.
        let broker_name = unsafe { self.broker_name.read() }?;
        Ok(Name { topic, broker_name, queue_id: self.queue_id })
    }
}

/// Compares two names as Java's `MessageQueue.compareTo` does and answers the very number: topic,
/// then broker name, both by UTF-16 units, then the difference of the ids, which wraps.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a text that is not UTF-8 or holds a NUL),
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_message_queue_compare(
    a: *const lk_message_queue,
    b: *const lk_message_queue,
    order_out: *mut i32,
) -> lk_status {
    plain_call!([a, b, order_out], {
        // SAFETY: not NULL; the caller vouches for it and its texts.
        let a = unsafe { &*a };
        // SAFETY: as above.
        let a = unsafe { a.name() }?;
        // SAFETY: as above.
        let b = unsafe { &*b };
        // SAFETY: as above.
        let b = unsafe { b.name() }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(order_out, a.compare_to(&b)) };
        Ok(())
    })
}

/// Answers what Java's `MessageQueue.hashCode` answers for a name.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a text that is not UTF-8 or holds a NUL),
///   LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_message_queue_hash_code(
    name: *const lk_message_queue,
    hash_out: *mut i32,
) -> lk_status {
    plain_call!([name, hash_out], {
        // SAFETY: not NULL; the caller vouches for it and its texts.
        let name = unsafe { &*name };
        // SAFETY: as above.
        let name = unsafe { name.name() }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(hash_out, name.hash_code()) };
        Ok(())
    })
}

/// Writes what Java's `MessageQueue.toString` answers for a name, without a NUL. The length goes to
/// `len_out`, also with `LK_LIMIT`, when nothing is copied because `capacity` is less.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_LIMIT, LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a text that is not UTF-8 or holds a
///   NUL), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_message_queue_to_string(
    name: *const lk_message_queue,
    text: *mut c_char,
    capacity: usize,
    len_out: *mut usize,
) -> lk_status {
    plain_call!([name, len_out], {
        check_array(text, capacity)?;
        // SAFETY: not NULL; the caller vouches for it and its texts.
        let name = unsafe { &*name };
        // SAFETY: as above.
        let name = unsafe { name.name() }?;
        let mut shown = String::new();
        write!(shown, "{name}").map_err(|_| Not(LK_ERR_INVALID_ARG))?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, shown.len()) };
        if shown.len() > capacity {
            return Err(Not(LK_LIMIT));
        }
        // SAFETY: `capacity` bytes can be written there, and the text is no longer than that.
        unsafe { text.copy_from_nonoverlapping(shown.as_ptr().cast(), shown.len()) };
        Ok(())
    })
}
