//! Orderly mode: turns.

use super::{
    Batch, Committed, Completed, Outcome, ProcessQueue, Refusal, Requeued, Target, TurnEnd,
};
use crate::lockfree::turnstile::Pass;
use crate::lockfree::window::{DropSink, LaneState, Sink, To};

/// The exclusive right to consume from an orderly queue: take, work, decide, end (T2).
///
/// Messages in flight stay so over the end of a turn, as upstream's do; the next turn decides about
/// them.
pub struct Turn<'q, T: Send + Sync> {
    queue: &'q ProcessQueue<T>,
    /// `None` only once the turn was ended or put down.
    pass: Option<Pass<'q, LaneState<T>>>,
}

/// A turn put down with [`Turn::suspend`]; its number, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TurnToken(pub u64);

impl<'q, T: Send + Sync> Turn<'q, T> {
    pub(super) fn new(queue: &'q ProcessQueue<T>, pass: Pass<'q, LaneState<T>>) -> Self {
        Self { queue, pass: Some(pass) }
    }

    #[inline(always)]
    fn state(&mut self) -> &mut LaneState<T> {
        self.pass.as_mut().expect("a turn in use has its pass").state()
    }

    /// The queue.
    pub fn queue(&self) -> &'q ProcessQueue<T> {
        self.queue
    }

    /// Its number, as a token.
    pub fn token(&self) -> TurnToken {
        TurnToken(self.pass.as_ref().map_or(0, Pass::number))
    }

    /// Moves the `n` lowest ready messages to in flight and lends them, ascending (W2). `n` of 0
    /// changes nothing. `Empty`: nothing is ready, and the queue is idle now. `Stopped`, `Closed`.
    /// Lock-free.
    #[inline]
    pub fn take(&mut self, n: usize, now_ms: i64) -> Result<Batch<'_, T>, Refusal> {
        let queue = self.queue;
        queue.window.lane_take(self.state(), n, now_ms)
    }

    /// Finishes everything in flight, in one step (W4). `Closed`: the queue was closed before;
    /// their loan ends all the same. Payloads are dropped. Lock-free.
    #[inline]
    pub fn commit(&mut self, _now_ms: i64) -> Result<Committed, Refusal> {
        let queue = self.queue;
        queue.window.lane_commit(self.state(), DropSink)
    }

    /// As [`commit`](Self::commit); the payloads go to `sink` with their offsets, also when
    /// answered `Closed`.
    #[inline]
    pub fn commit_with(
        &mut self,
        _now_ms: i64,
        sink: impl FnMut(i64, T),
    ) -> Result<Committed, Refusal> {
        let queue = self.queue;
        queue.window.lane_commit(self.state(), To(sink))
    }

    /// Makes everything in flight ready again, in one step (W5), and answers how many. `Closed`.
    /// Lock-free.
    pub fn rollback(&mut self, _now_ms: i64) -> Result<u32, Refusal> {
        let queue = self.queue;
        queue.window.lane_rollback(self.state(), DropSink)
    }

    /// As [`rollback`](Self::rollback); payloads released because the queue was closed go to
    /// `sink`.
    pub fn rollback_with(
        &mut self,
        _now_ms: i64,
        sink: impl FnMut(i64, T),
    ) -> Result<u32, Refusal> {
        let queue = self.queue;
        queue.window.lane_rollback(self.state(), To(sink))
    }

    /// Makes the named in-flight messages ready again, in one step, with `attempts_plus` more
    /// attempts (W6).
    pub fn requeue<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        attempts_plus: u8,
        _now_ms: i64,
    ) -> Result<Requeued, Refusal> {
        self.requeue_to(targets, attempts_plus, |_, _| (), DropSink)
    }

    /// As [`requeue`](Self::requeue); `each` learns the outcome for each position, `sink` gets
    /// payloads released because the queue was closed.
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
        let queue = self.queue;
        let targets = targets.iter().map(|&target| target.into());
        queue.window.lane_requeue(self.state(), targets, plus, each, sink)
    }

    /// Finishes the named in-flight messages, each in one step, in any order (W7).
    pub fn complete<I: Copy + Into<Target>>(
        &mut self,
        targets: &[I],
        _now_ms: i64,
    ) -> Result<Completed, Refusal> {
        self.complete_to(targets, |_, _| (), DropSink)
    }

    /// As [`complete`](Self::complete); `each` learns the outcome for each position, `sink` gets
    /// the payloads.
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
        let queue = self.queue;
        let targets = targets.iter().map(|&target| target.into());
        queue.window.lane_complete(self.state(), targets, each, sink)
    }

    /// Messages in flight.
    pub fn in_flight_count(&mut self) -> u64 {
        self.state().in_flight()
    }

    /// Everything in flight once more, ascending, also what an earlier turn left there.
    pub fn in_flight(&mut self) -> Batch<'_, T> {
        let queue = self.queue;
        queue.window.lane_in_flight(self.state())
    }

    /// Ends the turn and tells what is to be done now (W11, T1, T2). Dropping it ends it too, but
    /// loses the answer.
    pub fn end(self, _now_ms: i64) -> TurnEnd {
        self.end_to(DropSink)
    }

    /// As [`end`](Self::end); payloads released because the queue was closed go to `sink`.
    pub fn end_with(self, _now_ms: i64, sink: impl FnMut(i64, T)) -> TurnEnd {
        self.end_to(To(sink))
    }

    fn end_to(mut self, sink: impl Sink<T>) -> TurnEnd {
        let pass = self.pass.take().expect("a turn in use has its pass");
        finish(self.queue, pass, sink)
    }

    /// Puts the turn down without ending it, for hosts that hold tokens.
    #[inline]
    pub fn suspend(self) -> TurnToken {
        let mut this = std::mem::ManuallyDrop::new(self);
        TurnToken(this.pass.take().map_or(0, Pass::park))
    }
}

fn finish<T: Send + Sync>(
    queue: &ProcessQueue<T>,
    mut pass: Pass<'_, LaneState<T>>,
    mut sink: impl Sink<T>,
) -> TurnEnd {
    let ready = queue.window.lane_leave(pass.state());
    let released = pass.release(|state| queue.window.lane_close(state, &mut sink));
    if released.closed {
        queue.window.freeze();
        TurnEnd::HandOver
    } else if ready || released.noted {
        TurnEnd::RunAgain
    } else {
        TurnEnd::Nothing
    }
}

impl<T: Send + Sync> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            finish(self.queue, pass, DropSink);
        }
    }
}
