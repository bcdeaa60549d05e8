//! The window of pulled, not yet finished messages of one queue: upstream's `ProcessQueue`,
//! rebuilt.
//!
//! Roles are types (W0): one [`Puller`] at a time, and either one [`Turn`] at a time (orderly mode)
//! or any number of [`Consumer`]s (concurrent mode). All of them, and every read, work at the same
//! time; nobody waits for anybody. The algorithm and its guarantees are described where it lives,
//! in the module `lockfree::window`; the rules by id in [`docs::contract`](crate::docs::contract).
//!
//! ```
//! use lanekeeper::process_queue::{Committed, Config, Incoming, ProcessQueue, TurnEnd};
//!
//! let queue = ProcessQueue::new(Config { start_offset: 10, ..Config::default() })?;
//! let mut batch = vec![Incoming::new(10, "paid", 4), Incoming::new(11, "shipped", 7)];
//! let put = queue.puller()?.put(&mut batch, 0, None)?;
//! assert!(put.schedule); // submit a turn to a worker
//!
//! let mut turn = queue.begin_turn(1)?;
//! let seen: Vec<_> = turn.take(32, 1)?.map(|message| (message.offset, *message)).collect();
//! assert_eq!(seen, [(10, "paid"), (11, "shipped")]);
//! assert_eq!(turn.commit(2)?, Committed::Finished { safe_offset: 12, finished: 2 });
//! assert_eq!(turn.end(2), TurnEnd::Nothing);
//! assert_eq!(queue.safe_offset(), 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A turn cannot decide while one of its messages is still referred to:
//!
//! ```compile_fail,E0499
//! # use lanekeeper::process_queue::{Config, ProcessQueue};
//! # let queue = ProcessQueue::<String>::new(Config::default()).unwrap();
//! let mut turn = queue.begin_turn(0).unwrap();
//! let mut batch = turn.take(1, 0).unwrap();
//! turn.commit(0).unwrap();
//! batch.next();
//! ```
//! ```
//! # use lanekeeper::process_queue::{Config, ProcessQueue};
//! # let queue = ProcessQueue::<String>::new(Config::default()).unwrap();
//! let mut turn = queue.begin_turn(0).unwrap();
//! if let Ok(mut batch) = turn.take(1, 0) { batch.next(); }
//! turn.commit(0).unwrap();
//! ```
//!
//! Payloads are shared between threads, so they must allow that:
//!
//! ```compile_fail,E0277
//! # use lanekeeper::process_queue::{Config, ProcessQueue};
//! let queue = ProcessQueue::<std::rc::Rc<u8>>::new(Config::default()).unwrap();
//! ```
//! ```
//! # use lanekeeper::process_queue::{Config, ProcessQueue};
//! let queue = ProcessQueue::<std::sync::Arc<u8>>::new(Config::default()).unwrap();
//! ```

mod consumer;
mod puller;
mod turn;

pub use crate::lockfree::window::{Batch, Message};
pub use crate::types::*;
pub use consumer::{Claim, Consumer, ConsumerToken};
pub use puller::Puller;
pub use turn::{Turn, TurnToken};

use crate::lockfree::turnstile::Denied;
use crate::lockfree::window::{CloseSink, DropSink, To, Window};
use crate::sync::atomic::{AtomicI64, Ordering};

/// One queue's window. Share it by reference or in an `Arc`; all methods are for any thread.
///
/// Source: `ProcessQueue.java`, Apache RocketMQ 5.3; departures in section 12 of the contract.
pub struct ProcessQueue<T> {
    window: Window<T>,
    config: Config,
    closed_ms: AtomicI64,
}

impl<T: Send + Sync> ProcessQueue<T> {
    /// An empty queue. Errors: a value of `config` out of its range, named. Allocates.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let check = |fits, field, value, allowed| {
            if fits { Ok(()) } else { Err(ConfigError { field, value, allowed }) }
        };
        let start = config.start_offset;
        check((0..i64::MAX).contains(&start), "start_offset", start, "0 to 2^63 - 2")?;
        let most = i64::from(config.outstanding_max);
        check((1..=1 << 30).contains(&most), "outstanding_max", most, "1 to 2^30")?;
        let consumers = i64::from(config.consumers_max);
        check((1..=1024).contains(&consumers), "consumers_max", consumers, "1 to 1024")?;
        check(config.hand_over_ms >= 0, "hand_over_ms", config.hand_over_ms, "0 or more")?;
        let memory = ConfigError { field: "memory", value: consumers, allowed: "there" };
        let window = Window::new(&config).ok_or(memory)?;
        Ok(Self { window, config, closed_ms: AtomicI64::new(0) })
    }

    /// What it was created with.
    pub fn config(&self) -> Config {
        self.config
    }

    /// The number of this assignment.
    pub fn generation(&self) -> u64 {
        self.config.generation
    }

    /// The puller's role. `Busy` while somebody has it. Wait-free.
    #[inline]
    pub fn puller(&self) -> Result<Puller<'_, T>, Refusal> {
        self.window.puller.enter().map(|role| Puller::new(self, role)).ok_or(Refusal::Busy)
    }

    /// Begins a turn (T1). `Busy`: one is running, and its end will answer `RunAgain`. `Closed`,
    /// `WrongMode`. Lock-free.
    pub fn begin_turn(&self, _now_ms: i64) -> Result<Turn<'_, T>, Refusal> {
        self.orderly()?;
        self.window
            .lane
            .take()
            .map(|pass| Turn::new(self, pass))
            .map_err(|denied| self.told(denied))
    }

    /// Takes up a turn that [`Turn::suspend`] put down. `Busy`: another thread is in it. `Stale`:
    /// it has ended.
    #[inline]
    pub fn resume_turn(&self, token: TurnToken) -> Result<Turn<'_, T>, Refusal> {
        self.orderly()?;
        let resumed = self.window.lane.resume(token.0);
        resumed.map(|pass| Turn::new(self, pass)).map_err(|denied| self.told(denied))
    }

    fn orderly(&self) -> Result<(), Refusal> {
        if self.config.mode == Mode::Orderly { Ok(()) } else { Err(Refusal::WrongMode) }
    }

    fn told(&self, denied: Denied) -> Refusal {
        match denied {
            Denied::Busy => Refusal::Busy,
            Denied::Stale => Refusal::Stale,
            Denied::Closed => {
                self.window.freeze();
                Refusal::Closed
            }
        }
    }

    /// A consumer handle. `Limit`: there are `consumers_max` of them. `Closed`, `WrongMode`.
    pub fn consumer(&self) -> Result<Consumer<'_, T>, Refusal> {
        if self.config.mode != Mode::Concurrent {
            return Err(Refusal::WrongMode);
        }
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        let (place, number, role) = self.window.join().ok_or(Refusal::Limit)?;
        Ok(Consumer::new(self, place, number, role))
    }

    /// Takes up a handle that [`Consumer::suspend`] put down. `Busy`: another thread is in it.
    /// `Stale`: it has ended.
    #[inline]
    pub fn resume_consumer(&self, token: ConsumerToken) -> Result<Consumer<'_, T>, Refusal> {
        if self.config.mode != Mode::Concurrent {
            return Err(Refusal::WrongMode);
        }
        let (place, number) = token.parts();
        if number == 0 || self.window.owner_of(place) != number {
            return Err(Refusal::Stale);
        }
        let role = self.window.members[place].role.enter().ok_or(Refusal::Busy)?;
        if self.window.owner_of(place) != number {
            return Err(Refusal::Stale);
        }
        Ok(Consumer::new(self, place, number, role))
    }

    /// Takes up a claim that [`Claim::suspend`] put down, also after `close`, to end its loan.
    /// `Stale`: it was settled.
    pub fn resume_claim(&self, claim: Target) -> Result<Claim<'_, T>, Refusal> {
        if self.config.mode != Mode::Concurrent {
            return Err(Refusal::WrongMode);
        }
        self.window.crowd_reclaim(claim).map(|at| Claim::new(self, at)).ok_or(Refusal::Stale)
    }

    /// Nothing new goes in or out from now on; what is in flight goes on (W16). Idempotent.
    /// Wait-free.
    pub fn stop(&self) {
        self.window.stop();
    }

    /// Closes the queue for good (W10). `Closed`: it was. Releases what is ready. Lock-free.
    pub fn close(&self, now_ms: i64) -> Result<Closed, Refusal> {
        self.close_to(now_ms, DropSink)
    }

    /// As [`close`](Self::close); released payloads go to `sink` with their offsets instead of
    /// being dropped.
    pub fn close_with(&self, now_ms: i64, sink: impl FnMut(i64, T)) -> Result<Closed, Refusal> {
        self.close_to(now_ms, To(sink))
    }

    fn close_to(
        &self,
        now_ms: i64,
        mut sink: impl crate::lockfree::window::Sink<T>,
    ) -> Result<Closed, Refusal> {
        // The time first: who sees the queue closed sees it. Of two closers either time will do.
        if !self.is_closed() {
            // ORDERING: Relaxed — published by the turnstile's word.
            self.closed_ms.store(now_ms, Ordering::Relaxed);
        }
        let Ok(held) = self.window.lane.close() else {
            self.window.freeze();
            return Err(Refusal::Closed);
        };
        let safe_offset = self.window.freeze();
        let who = if held { CloseSink::PassHeld } else { CloseSink::Alone };
        self.window.release_unlent(who, &mut sink);
        Ok(Closed { safe_offset, hand_over: !held })
    }

    /// Hands over every payload still held, closing the queue if it is not. The borrow shows that
    /// nobody uses it.
    pub fn drain_with(&mut self, sink: impl FnMut(i64, T)) {
        self.window.drain(sink);
    }

    /// Closed, its last turn still running, and `hand_over_ms` have passed since (T2): refresh the
    /// lease no longer.
    pub fn hand_over_overdue(&self, now_ms: i64) -> bool {
        // ORDERING: Relaxed — ordered by the reads before it.
        self.is_closed()
            && self.window.lane.is_held()
            && now_ms.saturating_sub(self.closed_ms.load(Ordering::Relaxed))
                >= self.config.hand_over_ms
    }

    /// Messages outstanding (W8). Errs upward while calls run; 0 once closed. Wait-free.
    pub fn count(&self) -> u64 {
        self.window.count()
    }

    /// Sum of their recorded sizes, bytes (W8). As [`count`](Self::count).
    pub fn bytes(&self) -> u64 {
        self.window.bytes()
    }

    /// Highest offset ever put minus the lowest outstanding, 0 if none (W8). As
    /// [`count`](Self::count).
    pub fn span(&self) -> i64 {
        self.window.span()
    }

    /// What may be stored (W3). Never goes back. Wait-free.
    pub fn safe_offset(&self) -> i64 {
        self.window.safe_offset()
    }

    /// The next offset to ask the broker for. Never goes back. Wait-free.
    pub fn pull_offset(&self) -> i64 {
        self.window.pull_offset()
    }

    /// Whether every verb answers `Closed`. Wait-free.
    pub fn is_closed(&self) -> bool {
        self.window.is_closed()
    }

    /// Whether [`stop`](Self::stop) was called. Wait-free.
    pub fn is_stopped(&self) -> bool {
        self.window.is_stopped()
    }

    /// Whether the message with this offset is ready (upstream's `containsMessage`). Lock-free.
    pub fn contains(&self, offset: i64) -> bool {
        self.window.contains(offset)
    }

    /// Whether anything is ready (upstream's `hasTempMessage`). Lock-free.
    pub fn has_ready(&self) -> bool {
        if self.config.mode == Mode::Concurrent {
            let cut = self.snapshot(0);
            return cut.cached_count > 0;
        }
        !self.is_closed() && self.window.has_ready()
    }

    /// One consistent cut (W13). Lock-free: tries again only when somebody made a step. Allocates
    /// in concurrent mode.
    pub fn snapshot(&self, now_ms: i64) -> Snapshot {
        self.window.snapshot(now_ms)
    }

    /// Appends at most `max` in-flight messages taken more than `limit_ms` before `now_ms`, lowest
    /// first (W14), and answers how many. Concurrent mode; in orderly mode nothing expires. Changes
    /// nothing. Lock-free.
    pub fn expired(&self, now_ms: i64, limit_ms: i64, max: usize, out: &mut Vec<Expired>) -> usize {
        if self.config.mode == Mode::Orderly || self.is_closed() {
            return 0;
        }
        self.window.crowd_expired(now_ms, limit_ms, max, out)
    }

    /// Payloads not yet released: a gauge, exact at rest. Wait-free.
    pub fn payloads_live(&self) -> u64 {
        self.window.payloads_live()
    }
}

impl<T> std::fmt::Debug for ProcessQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessQueue")
            .field("config", &self.config)
            .field("count", &self.window.count())
            .field("safe_offset", &self.window.safe_offset())
            .field("pull_offset", &self.window.pull_offset())
            .finish_non_exhaustive()
    }
}
