//! Concurrent mode: consumer handles and claims.

use std::ops::Deref;

use super::{Batch, Completed, Outcome, ProcessQueue, Refusal, Requeued, Target};
use crate::lockfree::role::RoleGuard;
use crate::lockfree::window::{ClaimAt, DropSink, MemberState, Sink, To};

/// One of the consumers of a concurrent queue. Dropping it ends its loans; what it had in flight
/// stays so, for others to complete, requeue or claim.
pub struct Consumer<'q, T: Send + Sync> {
    queue: &'q ProcessQueue<T>,
    place: usize,
    number: u64,
    /// `None` only once the handle was ended or put down.
    role: Option<RoleGuard<'q, MemberState<T>>>,
}

/// A consumer put down with [`Consumer::suspend`]; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConsumerToken(pub u64);

const PLACE_BITS: u32 = 10;

impl ConsumerToken {
    pub(super) fn parts(self) -> (usize, u64) {
        ((self.0 & ((1 << PLACE_BITS) - 1)) as usize, self.0 >> PLACE_BITS)
    }
}

impl<'q, T: Send + Sync> Consumer<'q, T> {
    pub(super) fn new(
        queue: &'q ProcessQueue<T>,
        place: usize,
        number: u64,
        role: RoleGuard<'q, MemberState<T>>,
    ) -> Self {
        Self { queue, place, number, role: Some(role) }
    }

    #[inline(always)]
    fn state(&mut self) -> &mut MemberState<T> {
        self.role.as_mut().expect("a consumer in use has its role").state()
    }

    /// Its own tally; the first one is shared.
    fn tally(&self) -> usize {
        self.place + 1
    }

    /// The queue.
    pub fn queue(&self) -> &'q ProcessQueue<T> {
        self.queue
    }

    /// Its number, as a token.
    pub fn token(&self) -> ConsumerToken {
        ConsumerToken(self.number << PLACE_BITS | self.place as u64)
    }

    /// Takes up to `n` ready messages, lowest first, and lends them (W2). `Empty`, `Stopped`,
    /// `Closed`. Lock-free.
    pub fn take(&mut self, n: usize, now_ms: i64) -> Result<Batch<'_, T>, Refusal> {
        let queue = self.queue;
        queue.window.crowd_take(self.state(), n, now_ms)
    }

    /// Finishes the named messages, in flight or ready, each in one step, in any order (W7). Ends
    /// this handle's loans of them. Payloads are dropped when their last loan ends. Lock-free.
    pub fn complete<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        _now_ms: i64,
    ) -> Result<Completed, Refusal> {
        self.complete_to(targets, |_, _| (), DropSink)
    }

    /// As [`complete`](Self::complete); `each` learns the outcome for each position, `sink` gets
    /// the payloads that nobody has on loan any more.
    pub fn complete_with<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        _now_ms: i64,
        each: impl FnMut(usize, Outcome),
        sink: impl FnMut(i64, T),
    ) -> Result<Completed, Refusal> {
        self.complete_to(targets, each, To(sink))
    }

    fn complete_to<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        each: impl FnMut(usize, Outcome),
        sink: impl Sink<T>,
    ) -> Result<Completed, Refusal> {
        let (queue, tally) = (self.queue, self.tally());
        let targets = targets.iter().map(|&target| target.into());
        queue.window.crowd_complete(tally, self.state(), targets, each, sink)
    }

    /// Makes the named in-flight messages ready again with `attempts_plus` more attempts (W6).
    /// Lock-free.
    pub fn requeue<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        attempts_plus: u8,
        _now_ms: i64,
    ) -> Result<Requeued, Refusal> {
        self.requeue_to(targets, attempts_plus, |_, _| (), DropSink)
    }

    /// As [`requeue`](Self::requeue); `each` learns the outcome for each position, `sink` gets
    /// released payloads.
    pub fn requeue_with<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        attempts_plus: u8,
        _now_ms: i64,
        each: impl FnMut(usize, Outcome),
        sink: impl FnMut(i64, T),
    ) -> Result<Requeued, Refusal> {
        self.requeue_to(targets, attempts_plus, each, To(sink))
    }

    fn requeue_to<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        plus: u8,
        each: impl FnMut(usize, Outcome),
        sink: impl Sink<T>,
    ) -> Result<Requeued, Refusal> {
        let (queue, tally) = (self.queue, self.tally());
        let targets = targets.iter().map(|&target| target.into());
        queue.window.crowd_requeue(tally, self.state(), targets, plus, each, sink)
    }

    /// The exclusive right to decide about an in-flight message whose send-back is to be tried
    /// (W15); `Err` of the inner result says why not. A loan this handle has of the delivery goes
    /// over to the claim. `Closed`. Lock-free.
    pub fn claim(
        &mut self,
        target: impl Into<Target>,
        _now_ms: i64,
    ) -> Result<Result<Claim<'q, T>, Outcome>, Refusal> {
        let queue = self.queue;
        let claimed = queue.window.crowd_claim(self.state(), target.into())?;
        Ok(claimed.map(|at| Claim::new(queue, at)))
    }

    /// Ends loans of this handle without deciding about the messages (W12), and answers how many.
    pub fn give_back<I: Copy + Into<Target>>(&mut self, targets: &[I]) -> u32 {
        self.give_back_to(targets, DropSink)
    }

    /// As [`give_back`](Self::give_back); released payloads go to `sink`.
    pub fn give_back_with<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        sink: impl FnMut(i64, T),
    ) -> u32 {
        self.give_back_to(targets, To(sink))
    }

    fn give_back_to<I: Copy + Into<Target>>(&mut self, targets: &[I], sink: impl Sink<T>) -> u32 {
        let (queue, tally) = (self.queue, self.tally());
        let targets = targets.iter().map(|&target| target.into());
        queue.window.crowd_give_back(tally, self.state(), targets, sink)
    }

    /// As dropping it; released payloads go to `sink`.
    pub fn end_with(mut self, sink: impl FnMut(i64, T)) {
        self.leave(To(sink));
    }

    fn leave(&mut self, sink: impl Sink<T>) {
        let (queue, tally, place) = (self.queue, self.tally(), self.place);
        if let Some(mut role) = self.role.take() {
            queue.window.crowd_end_loans(tally, role.state(), sink);
            queue.window.leave(place);
        }
    }

    /// Puts the handle down without ending it, for hosts that hold tokens.
    #[inline]
    pub fn suspend(self) -> ConsumerToken {
        let mut this = std::mem::ManuallyDrop::new(self);
        drop(this.role.take());
        this.token()
    }
}

impl<T: Send + Sync> Drop for Consumer<'_, T> {
    fn drop(&mut self) {
        self.leave(DropSink);
    }
}

/// An in-flight message that only the holder decides about; dereferences to its payload. Dropped,
/// it is settled as not sent, to be ready at once.
pub struct Claim<'q, T: Send + Sync> {
    queue: &'q ProcessQueue<T>,
    /// `None` only once the claim was settled or put down.
    at: Option<ClaimAt<T>>,
}

impl<'q, T: Send + Sync> Claim<'q, T> {
    pub(super) fn new(queue: &'q ProcessQueue<T>, at: ClaimAt<T>) -> Self {
        Self { queue, at: Some(at) }
    }

    fn at(&self) -> &ClaimAt<T> {
        self.at.as_ref().expect("a claim in use is not settled")
    }

    /// Offset of the message.
    pub fn offset(&self) -> i64 {
        self.at().offset
    }

    /// Its delivery.
    pub fn delivery(&self) -> u32 {
        self.at().delivery
    }

    /// `sent`: the message is finished. Otherwise it is ready again with one more attempt, from
    /// `not_before_ms` on. `Closed`: the queue was closed, which ended the claim. Lock-free.
    pub fn settle(self, sent: bool, not_before_ms: i64, now_ms: i64) -> Result<Completed, Refusal> {
        self.settle_to(sent, not_before_ms, now_ms, DropSink)
    }

    /// As [`settle`](Self::settle); released payloads go to `sink`.
    pub fn settle_with(
        self,
        sent: bool,
        not_before_ms: i64,
        now_ms: i64,
        sink: impl FnMut(i64, T),
    ) -> Result<Completed, Refusal> {
        self.settle_to(sent, not_before_ms, now_ms, To(sink))
    }

    fn settle_to(
        mut self,
        sent: bool,
        not_before_ms: i64,
        now_ms: i64,
        sink: impl Sink<T>,
    ) -> Result<Completed, Refusal> {
        let at = self.at.take().expect("a claim in use is not settled");
        self.queue.window.crowd_settle(at, sent, not_before_ms, now_ms, sink)
    }

    /// Puts the claim down without deciding it, for hosts that hold tokens. The claim stands, and
    /// its loan runs on until it is settled; `close` answers Closed to that, and the payload goes
    /// then.
    pub fn suspend(mut self) -> Target {
        let target = Target { offset: self.offset(), delivery: self.delivery() };
        if let Some(at) = self.at.take() {
            self.queue.window.crowd_unclaim(at, DropSink);
        }
        target
    }
}

impl<T: Send + Sync> Deref for Claim<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.at().payload()
    }
}

impl<T: Send + Sync> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        if let Some(at) = self.at.take() {
            let _ = self.queue.window.crowd_settle(at, false, i64::MIN, i64::MIN, DropSink);
        }
    }
}
