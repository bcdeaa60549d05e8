//! The puller's role.

use super::{Advanced, Incoming, ProcessQueue, Put, PutError, Refusal, RefusedBecause};
use crate::lockfree::role::RoleGuard;
use crate::lockfree::window::PullerState;

/// The only one who puts messages in. Dropping it gives the role back.
pub struct Puller<'q, T> {
    queue: &'q ProcessQueue<T>,
    role: RoleGuard<'q, PullerState<T>>,
}

impl<'q, T: Send + Sync> Puller<'q, T> {
    pub(super) fn new(queue: &'q ProcessQueue<T>, role: RoleGuard<'q, PullerState<T>>) -> Self {
        Self { queue, role }
    }

    /// The queue.
    pub fn queue(&self) -> &'q ProcessQueue<T> {
        self.queue
    }

    /// Accepts a batch as a whole (W1): every message at or above `pull_offset`, in any order, gaps
    /// allowed. On Ok the vector is emptied and refused payloads are dropped; on any error it is
    /// left as it was.
    ///
    /// Why a message is refused is decided before the batch is published: a message finished
    /// meanwhile may still be told as a duplicate.
    ///
    /// `broker_max` is the broker's highest offset, for the lag. `now_ms` is kept as the time of
    /// the put. Errors: an impossible offset; `Stopped`, `Closed`, `Limit`. Wait-free but for
    /// `stop` and `close`, which come once each. Allocates a segment when there are more
    /// outstanding than ever.
    pub fn put(
        &mut self,
        batch: &mut Vec<Incoming<T>>,
        now_ms: i64,
        broker_max: Option<i64>,
    ) -> Result<Put, PutError> {
        self.put_with(batch, now_ms, broker_max, |_, payload, _| drop(payload))
    }

    /// As [`put`](Self::put); refused payloads go to `refused` with their offset and the reason.
    pub fn put_with(
        &mut self,
        batch: &mut Vec<Incoming<T>>,
        now_ms: i64,
        broker_max: Option<i64>,
        refused: impl FnMut(i64, T, RefusedBecause),
    ) -> Result<Put, PutError> {
        self.queue.window.put_vec(self.role.state(), batch, now_ms, broker_max, refused)
    }

    /// As [`put_with`](Self::put_with), copying plain data out of a slice.
    #[inline]
    pub fn put_slice(
        &mut self,
        batch: &[Incoming<T>],
        now_ms: i64,
        broker_max: Option<i64>,
        refused: impl FnMut(i64, T, RefusedBecause),
    ) -> Result<Put, PutError>
    where
        T: Copy,
    {
        self.queue.window.put_slice(self.role.state(), batch, now_ms, broker_max, refused)
    }

    /// The pull answered "nothing for you up to `next`" (W9). Errors: `Stale` below `pull_offset`,
    /// a negative offset, `Stopped`, `Closed`. Lock-free.
    pub fn advance(&mut self, next: i64, now_ms: i64) -> Result<Advanced, PutError> {
        self.queue.window.advance(self.role.state(), next, now_ms)
    }
}

impl From<Refusal> for PutError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
