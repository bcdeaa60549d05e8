//! What goes in and what comes out: messages, deliveries, targets.

use std::mem::offset_of;

use lanekeeper_core::process_queue::{Batch, Incoming, Target};

/// One pulled message on its way in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_message {
    /// Offset in the queue, 0 to INT64_MAX - 1.
    pub offset: i64,
    /// Whatever the host wants back, a pointer for instance; the queue never looks at it.
    pub payload: u64,
    /// Size in bytes for flow control, recorded now and never read again.
    pub size: u32,
    /// Times consumed before (`reconsumeTimes`); counts as 255 at most.
    pub attempts: u32,
}

// A batch goes to the core as it is.
const _: () = {
    assert!(size_of::<lk_message>() == size_of::<Incoming<u64>>());
    assert!(align_of::<lk_message>() == align_of::<Incoming<u64>>());
    assert!(offset_of!(lk_message, offset) == offset_of!(Incoming<u64>, offset));
    assert!(offset_of!(lk_message, payload) == offset_of!(Incoming<u64>, payload));
    assert!(offset_of!(lk_message, size) == offset_of!(Incoming<u64>, size));
    assert!(offset_of!(lk_message, attempts) == offset_of!(Incoming<u64>, attempts));
};

/// One message handed over by a `take`: a loan, which ends when the turn or consumer commits,
/// completes, requeues, rolls back or gives back this delivery, or ends itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_delivery {
    /// Offset in the queue.
    pub offset: i64,
    /// The payload as it was put.
    pub payload: u64,
    /// The size recorded when it was put.
    pub size: u32,
    /// Times consumed before, 0 to 255.
    pub attempts: u32,
    /// Which delivery of the message this is; name it in an `lk_target`.
    pub delivery: u32,
    /// 0.
    pub reserved: u32,
}

/// Names a message, and perhaps one delivery of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_target {
    /// Offset of the message.
    pub offset: i64,
    /// The delivery as `take` told it; 0 means whichever is current.
    pub delivery: u32,
    /// Not read.
    pub reserved: u32,
}

impl From<lk_target> for Target {
    fn from(target: lk_target) -> Self {
        Self { offset: target.offset, delivery: target.delivery }
    }
}

/// Copies what a `take` handed over into the caller's array; answers how many.
///
/// # Safety
/// As many deliveries as the batch has may be written at `buffer`.
#[inline]
pub(crate) unsafe fn write_batch(batch: Batch<'_, u64>, buffer: *mut lk_delivery) -> usize {
    // `fold`, which the batch does segment by segment.
    batch.fold(0, |count, message| {
        let delivery = lk_delivery {
            offset: message.offset,
            payload: *message,
            size: message.size,
            attempts: u32::from(message.attempts),
            delivery: message.delivery,
            reserved: 0,
        };
        // SAFETY: the caller vouches for the room.
        let slot = unsafe { buffer.add(count) };
        // SAFETY: as above.
        unsafe { slot.write(delivery) };
        count + 1
    })
}
