//! The window of pulled, not yet finished messages of one queue. (skeleton; bodies follow)
#![allow(missing_docs, unused_variables, clippy::todo)]
mod types;
use std::marker::PhantomData;
use std::ops::Deref;
pub use types::*;

pub struct ProcessQueue<T>(PhantomData<T>);
unsafe impl<T: Send + Sync> Sync for ProcessQueue<T> {}
unsafe impl<T: Send + Sync> Send for ProcessQueue<T> {}
pub struct Puller<'q, T>(&'q ProcessQueue<T>);
pub struct Turn<'q, T>(&'q ProcessQueue<T>);
pub struct Consumer<'q, T>(&'q ProcessQueue<T>);
pub struct Claim<'q, T>(&'q ProcessQueue<T>);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnToken(pub u64);
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerToken(pub u64);
/// Messages just taken, ascending (orderly, concurrent single taker). Iterator of `Message`.
pub struct Batch<'b, T>(PhantomData<&'b T>);
#[derive(Debug)]
pub struct Message<'b, T> { pub offset: i64, pub size: u32, pub attempts: u8, pub delivery: u32, payload: &'b T }
impl<T> Deref for Message<'_, T> { type Target = T; fn deref(&self) -> &T { self.payload } }
impl<'b, T> Iterator for Batch<'b, T> { type Item = Message<'b, T>; fn next(&mut self) -> Option<Message<'b, T>> { todo!() } }
impl<T> ExactSizeIterator for Batch<'_, T> { fn len(&self) -> usize { todo!() } }

impl<T: Send + Sync> ProcessQueue<T> {
    pub fn new(config: Config) -> Result<Self, ConfigError> { todo!() }
    pub fn config(&self) -> Config { todo!() }
    pub fn generation(&self) -> u64 { todo!() }
    /// Busy while another Puller lives.
    pub fn puller(&self) -> Result<Puller<'_, T>, Refusal> { todo!() }
    /// Busy leaves a note: the end of the running turn answers RunAgain. Closed. WrongMode.
    pub fn begin_turn(&self, now_ms: i64) -> Result<Turn<'_, T>, Refusal> { todo!() }
    /// Takes up a turn put down by `Turn::suspend`: Busy (another thread is in it), Stale (ended).
    pub fn resume_turn(&self, token: TurnToken) -> Result<Turn<'_, T>, Refusal> { todo!() }
    /// Limit: consumers_max handles exist. Closed. WrongMode.
    pub fn consumer(&self) -> Result<Consumer<'_, T>, Refusal> { todo!() }
    pub fn resume_consumer(&self, token: ConsumerToken) -> Result<Consumer<'_, T>, Refusal> { todo!() }
    pub fn stop(&self) { todo!() }
    pub fn close(&self, now_ms: i64) -> Result<Closed, Refusal> { todo!() }
    /// As close; hands the released payloads to `sink` (offset, payload) instead of dropping them.
    pub fn close_with(&self, now_ms: i64, sink: impl FnMut(i64, T)) -> Result<Closed, Refusal> { todo!() }
    /// Hands over every payload still held. Exclusive, so nobody can be using the queue.
    pub fn drain_with(&mut self, sink: impl FnMut(i64, T)) { todo!() }
    /// T2: closed, its turn still running, and hand_over_ms have passed since the close.
    pub fn hand_over_overdue(&self, now_ms: i64) -> bool { todo!() }
    pub fn count(&self) -> u64 { todo!() }
    pub fn bytes(&self) -> u64 { todo!() }
    pub fn span(&self) -> i64 { todo!() }
    pub fn safe_offset(&self) -> i64 { todo!() }
    pub fn pull_offset(&self) -> i64 { todo!() }
    pub fn is_closed(&self) -> bool { todo!() }
    pub fn is_stopped(&self) -> bool { todo!() }
    /// Asked of the ready messages, as upstream's containsMessage.
    pub fn contains(&self, offset: i64) -> bool { todo!() }
    /// Anything ready, as upstream's hasTempMessage.
    pub fn has_ready(&self) -> bool { todo!() }
    pub fn snapshot(&self, now_ms: i64) -> Snapshot { todo!() }
    /// Appends at most `max` to `out`, lowest first; answers how many. Concurrent mode only (orderly: 0).
    pub fn expired(&self, now_ms: i64, limit_ms: i64, max: usize, out: &mut Vec<Expired>) -> usize { todo!() }
    /// Payloads held now (not yet released); for tests and gauges. Weak while calls run.
    pub fn payloads_live(&self) -> u64 { todo!() }
}

impl<T: Send + Sync> Puller<'_, T> {
    /// Ok empties `batch`; any error leaves it as it was. Refused payloads are dropped.
    pub fn put(&mut self, batch: &mut Vec<Incoming<T>>, now_ms: i64, broker_max: Option<i64>) -> Result<Put, PutError> { todo!() }
    /// As put; the refused payloads go to `refused` (offset, payload, why).
    pub fn put_with(&mut self, batch: &mut Vec<Incoming<T>>, now_ms: i64, broker_max: Option<i64>, refused: impl FnMut(i64, T, RefusedBecause)) -> Result<Put, PutError> { todo!() }
    /// For payloads that are plain data: copies out of a slice. On Ok the queue has them all, refused ones went to `refused`.
    pub fn put_slice(&mut self, batch: &[Incoming<T>], now_ms: i64, broker_max: Option<i64>, refused: impl FnMut(i64, T, RefusedBecause)) -> Result<Put, PutError> where T: Copy { todo!() }
    /// Stale: below pull_offset. Stopped, Closed. InvalidOffset for a negative one.
    pub fn advance(&mut self, next: i64, now_ms: i64) -> Result<Advanced, PutError> { todo!() }
}

impl<'q, T: Send + Sync> Turn<'q, T> {
    /// Empty (queue becomes idle), Stopped, Closed. take(0) is Ok and changes nothing.
    pub fn take(&mut self, n: usize, now_ms: i64) -> Result<Batch<'_, T>, Refusal> { todo!() }
    pub fn commit(&mut self, now_ms: i64) -> Result<Committed, Refusal> { todo!() }
    /// Hands the payloads back, also when answered Closed (their loan ends with this call).
    pub fn commit_with(&mut self, now_ms: i64, sink: impl FnMut(i64, T)) -> Result<Committed, Refusal> { todo!() }
    /// Number of messages made ready.
    pub fn rollback(&mut self, now_ms: i64) -> Result<u32, Refusal> { todo!() }
    pub fn rollback_with(&mut self, now_ms: i64, sink: impl FnMut(i64, T)) -> Result<u32, Refusal> { todo!() }
    pub fn requeue<I: Copy + Into<Target>>(&mut self, targets: &[I], attempts_plus: u8, now_ms: i64) -> Result<Requeued, Refusal> { todo!() }
    /// `each` is called per target with its position and outcome; `sink` gets payloads released by this call (only if closed).
    pub fn requeue_with<I: Copy + Into<Target>>(&mut self, targets: &[I], attempts_plus: u8, now_ms: i64, each: impl FnMut(usize, Outcome), sink: impl FnMut(i64, T)) -> Result<Requeued, Refusal> { todo!() }
    pub fn complete<I: Copy + Into<Target>>(&mut self, targets: &[I], now_ms: i64) -> Result<Completed, Refusal> { todo!() }
    pub fn complete_with<I: Copy + Into<Target>>(&mut self, targets: &[I], now_ms: i64, each: impl FnMut(usize, Outcome), sink: impl FnMut(i64, T)) -> Result<Completed, Refusal> { todo!() }
    /// Messages in flight now.
    pub fn in_flight_count(&self) -> u64 { todo!() }
    /// Everything in flight once more, ascending.
    pub fn in_flight(&mut self) -> Batch<'_, T> { todo!() }
    /// Dropping a turn ends it too, but loses the answer.
    pub fn end(self, now_ms: i64) -> TurnEnd { todo!() }
    pub fn end_with(self, now_ms: i64, sink: impl FnMut(i64, T)) -> TurnEnd { todo!() }
    /// Puts the turn down without ending it, for hosts that hold tokens (C).
    pub fn suspend(self) -> TurnToken { todo!() }
    pub fn token(&self) -> TurnToken { todo!() }
    pub fn queue(&self) -> &'q ProcessQueue<T> { self.0 }
}

impl<'q, T: Send + Sync> Consumer<'q, T> {
    pub fn take(&mut self, n: usize, now_ms: i64) -> Result<Batch<'_, T>, Refusal> { todo!() }
    pub fn complete<I: Copy + Into<Target>>(&mut self, targets: &[I], now_ms: i64) -> Result<Completed, Refusal> { todo!() }
    pub fn complete_with<I: Copy + Into<Target>>(&mut self, targets: &[I], now_ms: i64, each: impl FnMut(usize, Outcome), sink: impl FnMut(i64, T)) -> Result<Completed, Refusal> { todo!() }
    pub fn requeue<I: Copy + Into<Target>>(&mut self, targets: &[I], attempts_plus: u8, now_ms: i64) -> Result<Requeued, Refusal> { todo!() }
    pub fn requeue_with<I: Copy + Into<Target>>(&mut self, targets: &[I], attempts_plus: u8, now_ms: i64, each: impl FnMut(usize, Outcome), sink: impl FnMut(i64, T)) -> Result<Requeued, Refusal> { todo!() }
    /// The exclusive right to decide about one message. Err(Ok(outcome)): Unknown or Stale. Here: Result<Result<Claim, Outcome>, Refusal>.
    pub fn claim(&mut self, target: impl Into<Target>, now_ms: i64) -> Result<Result<Claim<'q, T>, Outcome>, Refusal> { todo!() }
    /// Ends loans without deciding about the messages; answers how many loans ended.
    pub fn give_back<I: Copy + Into<Target>>(&mut self, targets: &[I]) -> u32 { todo!() }
    pub fn give_back_with<I: Copy + Into<Target>>(&mut self, targets: &[I], sink: impl FnMut(i64, T)) -> u32 { todo!() }
    /// Dropping a consumer ends its loans and frees its place; this form hands payloads to `sink`.
    pub fn end_with(self, sink: impl FnMut(i64, T)) { todo!() }
    pub fn suspend(self) -> ConsumerToken { todo!() }
    pub fn token(&self) -> ConsumerToken { todo!() }
    pub fn queue(&self) -> &'q ProcessQueue<T> { self.0 }
}

/// Derefs to the payload. Dropped unsettled it is settle(sent = false).
impl<T: Send + Sync> Claim<'_, T> {
    pub fn offset(&self) -> i64 { todo!() }
    pub fn delivery(&self) -> u32 { todo!() }
    /// sent: finished. Not sent: ready again with attempts + 1, not before `not_before_ms`. Closed if the queue was closed meanwhile.
    pub fn settle(self, sent: bool, not_before_ms: i64, now_ms: i64) -> Result<Completed, Refusal> { todo!() }
    pub fn settle_with(self, sent: bool, not_before_ms: i64, now_ms: i64, sink: impl FnMut(i64, T)) -> Result<Completed, Refusal> { todo!() }
    /// For hosts with tokens: keep the claim without the guard; resume with ProcessQueue::resume_claim.
    pub fn suspend(self) -> Target { todo!() }
}
impl<T> Deref for Claim<'_, T> { type Target = T; fn deref(&self) -> &T { todo!() } }
impl<T: Send + Sync> ProcessQueue<T> {
    /// Stale unless the message is claimed with that delivery and suspended.
    pub fn resume_claim(&self, claim: Target) -> Result<Claim<'_, T>, Refusal> { todo!() }
}
