//! What became of named messages, and the results of verbs on them.

use lanekeeper_core::process_queue::{Completed, Outcome, Requeued};

use crate::guard::check_array;
use crate::status::{LK_ERR_INVALID_ARG, Not};

/// This call did it.
pub const LK_OUTCOME_WON: i32 = 0;
/// Not outstanding, or not in a state the function applies to: finished, claimed, never put.
pub const LK_OUTCOME_UNKNOWN: i32 = 1;
/// The delivery named is not the current one.
pub const LK_OUTCOME_STALE: i32 = 2;

/// What a `complete` or a `settle` did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_complete_result {
    /// This offset may be stored from now on.
    pub safe_offset: i64,
    /// Messages this call finished.
    pub finished: u32,
    /// Messages named that were not there to finish.
    pub unknown: u32,
    /// Messages named with an older delivery.
    pub stale: u32,
    /// Messages made ready again; only `lk_claim_settle` does.
    pub ready: u32,
}

impl From<Completed> for lk_complete_result {
    fn from(completed: Completed) -> Self {
        Self {
            safe_offset: completed.safe_offset,
            finished: completed.finished,
            unknown: completed.unknown,
            stale: completed.stale,
            ready: completed.ready,
        }
    }
}

/// What a `requeue` did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_requeue_result {
    /// Messages made ready again.
    pub requeued: u32,
    /// Messages named that were not in flight.
    pub unknown: u32,
    /// Messages named with an older delivery.
    pub stale: u32,
    /// 0.
    pub reserved: u32,
}

impl From<Requeued> for lk_requeue_result {
    fn from(requeued: Requeued) -> Self {
        Self {
            requeued: requeued.requeued,
            unknown: requeued.unknown,
            stale: requeued.stale,
            reserved: 0,
        }
    }
}

/// Checks a number to add to the attempts of messages.
pub(crate) fn attempts(plus: u32) -> Result<u8, Not> {
    u8::try_from(plus).map_err(|_| Not(LK_ERR_INVALID_ARG))
}

pub(crate) fn outcome_number(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Won => LK_OUTCOME_WON,
        Outcome::Unknown => LK_OUTCOME_UNKNOWN,
        Outcome::Stale => LK_OUTCOME_STALE,
    }
}

/// A caller's array of one outcome per target, or NULL.
#[derive(Clone, Copy)]
pub(crate) struct OutcomeArray {
    data: *mut i32,
    count: usize,
}

impl OutcomeArray {
    /// # Safety
    /// `data` is NULL, or `count` numbers may be written there.
    pub(crate) unsafe fn new(data: *mut i32, count: usize) -> Result<Self, Not> {
        if !data.is_null() {
            check_array(data, count)?;
        }
        Ok(Self { data, count })
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.data.is_null()
    }

    #[inline]
    pub(crate) fn set(self, index: usize, outcome: Outcome) {
        if self.data.is_null() || index >= self.count {
            return;
        }
        // SAFETY: inside the array.
        let slot = unsafe { self.data.add(index) };
        // SAFETY: as above.
        unsafe { slot.write(outcome_number(outcome)) };
    }
}
