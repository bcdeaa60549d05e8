//! What an implementation has to offer to be measured. Everything is monomorphised.

use lanekeeper::process_queue::Mode;

use crate::ring::{Payload, Pulled};

/// A queue of messages between one puller and the consumer.
pub trait Cache: Sync + Sized {
    /// Name in the table and in `compare.json`.
    const NAME: &'static str;
    /// The puller's side.
    type Puller<'q>: Pull
    where
        Self: 'q;

    /// An empty queue that can hold `room` messages.
    fn new(mode: Mode, room: usize) -> Self;
    /// The puller's side; asked for once.
    fn puller(&self) -> Self::Puller<'_>;
    /// Messages outstanding, as it is published for flow control.
    fn count(&self) -> u64;
}

/// The puller's side of a [`Cache`].
pub trait Pull {
    /// Caches the batch as a whole.
    fn put(&mut self, batch: &[Pulled], now_ms: i64);
    /// Messages outstanding, as flow control asks before each pull.
    fn count(&self) -> u64;
}

/// A [`Cache`] consumed in order.
pub trait Ordered: Cache {
    /// The consumer's side.
    type Turn<'q>: Commit
    where
        Self: 'q;
    /// The consumer's side; asked for once.
    fn turn(&self) -> Self::Turn<'_>;
}

/// The consumer's side of an [`Ordered`] cache.
pub trait Commit {
    /// Takes at most `n`, lowest first, shows each to `consume`, and answers how many.
    fn take(&mut self, n: usize, now_ms: i64, consume: impl FnMut(Payload)) -> usize;
    /// Finishes what was taken; the offset that may be stored.
    fn commit(&mut self, now_ms: i64) -> i64;
}

/// A consumer's side that can put back what it took.
pub trait Rollback: Commit {
    /// Makes everything taken ready again; how many.
    fn rollback(&mut self, now_ms: i64) -> usize;
}

/// A [`Cache`] consumed in any order.
pub trait AnyOrder: Cache {
    /// The consumer's side.
    type Consumer<'q>: Complete
    where
        Self: 'q;
    /// The consumer's side; asked for once.
    fn consumer(&self) -> Self::Consumer<'_>;
}

/// The consumer's side of an [`AnyOrder`] cache.
pub trait Complete {
    /// As [`Commit::take`].
    fn take(&mut self, n: usize, now_ms: i64, consume: impl FnMut(Payload)) -> usize;
    /// Finishes one message that was taken; the offset that may be stored.
    fn complete(&mut self, offset: i64, now_ms: i64) -> i64;
}

/// A [`Cache`] that a third thread may watch.
pub trait Observed: Ordered {
    /// Span, count and safe offset.
    fn poll(&self) -> (i64, u64, i64);
}
