//! What was called and what was answered: the steps of a history.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lanekeeper::process_queue::{Outcome, Put, Refusal, RefusedBecause, Snapshot, TurnEnd};

/// One message as `take` handed it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Got {
    pub offset: i64,
    pub size: u32,
    pub attempts: u8,
    pub delivery: u32,
}

/// One atomic step: a verb with its answer, or the part of one that the contract makes atomic
/// (`complete` is atomic per offset, its safe offset is a step of its own).
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Put {
        batch: Vec<(i64, u32)>,
        refused: Vec<(i64, RefusedBecause)>,
        put: Put,
    },
    PutRefused(Refusal),
    /// Why one message of a batch is not taken; decided by itself, before the others go in as one
    /// step. `copy`: the batch names the offset twice.
    NotTaken {
        offset: i64,
        why: RefusedBecause,
        copy: bool,
    },
    /// The second half of a `put` into an empty queue above a gap: the safe offset goes along (W3).
    PutCarries,
    /// The first half of an `advance`: the pull offset. A cut may fall between (W3: the safe offset
    /// may lag), a commit then takes what the second half finds taken.
    AdvanceRaises {
        next: i64,
    },
    Advance {
        next: i64,
        safe: Option<i64>,
    },
    AdvanceRefused {
        next: i64,
        refusal: Refusal,
    },
    Begin(Result<(), Refusal>),
    /// The first half of an end of a turn: the queue is left idle, or scheduled. The right to it is
    /// in another word and goes after that: a `put` between them says `schedule`, and a begin that
    /// follows is still turned away, with a note that the second half finds. No wake-up is lost.
    EndLeaves,
    End(TurnEnd),
    /// Concurrent mode, the first half of a take: it found the queue open. What it takes are steps
    /// of their own, and `stop` may come between (W16 is about takes that begin later).
    TakePasses,
    Take {
        n: usize,
        got: Vec<Got>,
    },
    TakeRefused {
        n: usize,
        refusal: Refusal,
    },
    /// Concurrent mode: what a take that met the closer and is answered Closed may have done before
    /// that: one message is in flight, for whoever looks meanwhile. May also have done nothing.
    TakeInVain,
    /// Concurrent mode, beside other takes, which may have the ranks below and not have moved what
    /// lies there yet: batches interleave (W2).
    TakeBesideOthers(Got),
    /// Likewise: one may hold what is ready and not have moved it yet.
    TakeNothingBesideOthers,
    Commit {
        safe: i64,
        finished: Vec<i64>,
    },
    CommitNothing,
    Rollback {
        ready: u32,
    },
    Requeue {
        offset: i64,
        delivery: u32,
        plus: u8,
        outcome: Outcome,
    },
    Finish {
        offset: i64,
        delivery: u32,
        outcome: Outcome,
    },
    Claim {
        offset: i64,
        delivery: u32,
        outcome: Outcome,
    },
    Settle {
        offset: i64,
        sent: bool,
        refused: bool,
    },
    /// Concurrent mode: what a `complete` or `settle` that is answered Closed may have done to one
    /// message before. Its state word and the close are decided by two words: the message may be
    /// passed over by takes and cuts, but the final offset does not cover it, and nobody is told
    /// that it is finished. May also have done nothing.
    FinishInVain {
        offset: i64,
    },
    /// Concurrent mode, the second half of a `complete` or `settle` that finished something: the
    /// safe offset follows. An `advance` between the halves leaves it to this one (W9).
    FinishCarries,
    /// The safe offset in the answer of a `complete` or `settle`.
    SafeAnswer(i64),
    /// Any verb on messages answered Closed.
    ClosedAnswer,
    Stop,
    Close {
        safe: i64,
        hand_over: bool,
    },
    CloseRefused,
    Safe(i64),
    PullOffset(i64),
    IsClosed(bool),
    IsStopped(bool),
    /// The words that single reads answer, when no other call runs.
    AtRest {
        safe: i64,
        pull: i64,
        closed: bool,
    },
    Contains {
        offset: i64,
        answer: bool,
    },
    HasReady(bool),
    Snapshot(Box<Snapshot>),
    Expired {
        limit_over: bool,
        max: usize,
        offsets: Vec<i64>,
    },
    /// One message that a scan beside others named: it goes from one to the next (W14), so it may
    /// have passed what became so later.
    ExpiredNames(i64),
    /// Weak reads are checked against bounds, not as steps (W8).
    Count(u64),
    Bytes(u64),
    Span(i64),
}

/// A step with the time its call began and returned.
#[derive(Clone, Debug)]
pub struct Event {
    pub thread: usize,
    pub begin: u64,
    pub end: u64,
    pub step: Step,
}

/// One counter for all threads of a history: the only thing the recorder adds to what is checked.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// The finished history and the clock.
#[derive(Default)]
pub struct Journal {
    clock: Clock,
    events: Mutex<Vec<Event>>,
}

impl Journal {
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A log for one thread; its events join the journal when it is dropped.
    pub fn log(self: &Arc<Self>, thread: usize) -> Log {
        Log { journal: Arc::clone(self), thread, events: Vec::new(), began: 0 }
    }

    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}

/// The events of one thread, in program order.
pub struct Log {
    journal: Arc<Journal>,
    thread: usize,
    events: Vec<Event>,
    began: u64,
}

impl Log {
    /// Marks the begin of a call.
    pub fn begin(&mut self) {
        self.began = self.journal.clock.tick();
    }

    /// Marks its return.
    pub fn end(&mut self) -> u64 {
        self.journal.clock.tick()
    }

    /// Records the steps of the call that ended at `end`.
    pub fn push(&mut self, end: u64, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            self.events.push(Event { thread: self.thread, begin: self.began, end, step });
        }
    }

    /// A call whose steps follow from its answer alone.
    pub fn call<R>(&mut self, call: impl FnOnce() -> R, steps: impl FnOnce(&R) -> Vec<Step>) -> R {
        self.begin();
        let answer = call();
        let end = self.end();
        self.push(end, steps(&answer));
        answer
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Ok(mut events) = self.journal.events.lock() {
            events.append(&mut self.events);
        }
    }
}
