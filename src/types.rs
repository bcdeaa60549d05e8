//! Plain data of the queue's surface: configuration, what goes in, and what the verbs answer. Below
//! every other room: it uses nothing.

use std::fmt;

/// How the consumers of a queue work; fixed at creation (W0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// One turn holder at a time takes, commits and rolls back.
    #[default]
    Orderly,
    /// Any number of consumer handles take and complete.
    Concurrent,
}

/// What a [`ProcessQueue`](crate::process_queue::ProcessQueue) is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Orderly or concurrent.
    pub mode: Mode,
    /// The first offset this generation asks for; both offsets start here. 0 or more.
    pub start_offset: i64,
    /// Most messages outstanding at once; a `put` beyond it answers `Limit`. 1 to 2^30.
    pub outstanding_max: u32,
    /// Most consumer handles at once (concurrent mode). 1 to 1024.
    pub consumers_max: u32,
    /// The number of this assignment of the queue; new for every assignment.
    pub generation: u64,
    /// How long, in ms, a turn may outlast `close` before the lease is no longer refreshed (T2).
    pub hand_over_ms: i64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Orderly,
            start_offset: 0,
            outstanding_max: 1 << 20,
            consumers_max: 64,
            generation: 0,
            hand_over_ms: 20_000,
        }
    }
}

/// A configuration value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// The value it had.
    pub value: i64,
    /// What is allowed.
    pub allowed: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_out_of_memory() {
            return write!(f, "no memory for a queue with {} consumer places", self.value);
        }
        write!(f, "{} is {}, must be {}", self.field, self.value, self.allowed)
    }
}

impl ConfigError {
    /// Not a value was wrong: the allocator refused.
    pub fn is_out_of_memory(&self) -> bool {
        self.field == "memory"
    }
}
impl std::error::Error for ConfigError {}

/// An expected "no": nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nothing ready.
    Empty,
    /// The role is taken: by another thread, or by an earlier turn that has not ended.
    Busy,
    /// The token, delivery or generation is not the current one.
    Stale,
    /// The queue was stopped: nothing new goes in or out.
    Stopped,
    /// The queue is closed, for good.
    Closed,
    /// A configured limit would be exceeded.
    Limit,
    /// The verb belongs to the other mode.
    WrongMode,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "nothing is ready",
            Self::Busy => "the role is held by somebody else",
            Self::Stale => "the token, delivery or generation is not the current one",
            Self::Stopped => "the queue is stopped",
            Self::Closed => "the queue is closed",
            Self::Limit => "the limit of the configuration is reached",
            Self::WrongMode => "the queue was created in the other mode",
        })
    }
}
impl std::error::Error for Refusal {}

/// Why a `put` took nothing of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutError {
    /// `Stopped`, `Closed` or `Limit`.
    Refused(Refusal),
    /// An offset that cannot be one: negative, or `i64::MAX`.
    InvalidOffset {
        /// Position in the batch.
        index: usize,
        /// The offset found there.
        offset: i64,
    },
    /// The allocator had no segment for it; nothing of the batch was taken.
    NoMemory,
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NoMemory => f.write_str("no memory for another segment"),
            Self::InvalidOffset { index, offset } => {
                write!(
                    f,
                    "message {index} of the batch has offset {offset}; offsets are 0 to 2^63 - 2"
                )
            }
        }
    }
}
impl std::error::Error for PutError {}

/// One pulled message on its way in. The layout is that of the C struct `lk_message` for `T = u64`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming<T> {
    /// Queue offset, 0 to `i64::MAX - 1`.
    pub offset: i64,
    /// Whatever the host wants back; the queue never looks at it.
    pub payload: T,
    /// Size in bytes for flow control, recorded now and never read again.
    pub size: u32,
    /// Times consumed before (`reconsumeTimes`); saturates at 255.
    pub attempts: u32,
}

impl<T> Incoming<T> {
    /// A message with no attempts behind it.
    pub fn new(offset: i64, payload: T, size: u32) -> Self {
        Self { offset, payload, size, attempts: 0 }
    }
}

/// Why one message of a batch was refused (W1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedBecause {
    /// Outstanding already, or a second copy within the batch.
    Duplicate,
    /// Below `pull_offset` and not outstanding.
    Stale,
}

/// What a `put` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Put {
    /// Messages accepted; all of them became ready.
    pub accepted: u32,
    /// Messages refused as [`RefusedBecause::Duplicate`].
    pub duplicate: u32,
    /// Messages refused as [`RefusedBecause::Stale`].
    pub stale: u32,
    /// Orderly mode: the queue went from idle to scheduled; the host must submit a turn (W11).
    pub schedule: bool,
}

/// What an `advance` did (W9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// The new safe offset, if this call moved it.
    pub safe_offset: Option<i64>,
}

/// What a `commit` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// Nothing was in flight; nothing changed.
    Nothing,
    /// Everything in flight is finished.
    Finished {
        /// May be stored from now on.
        safe_offset: i64,
        /// Messages finished by this call.
        finished: u32,
    },
}

/// Names a message, and perhaps one delivery of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Offset of the message.
    pub offset: i64,
    /// Delivery number as `take` told it; 0 means whichever is current.
    pub delivery: u32,
}

impl From<i64> for Target {
    fn from(offset: i64) -> Self {
        Self { offset, delivery: 0 }
    }
}

/// What became of one named message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This call did it.
    Won,
    /// Not outstanding, or not in a state the verb applies to: finished, claimed, never put.
    Unknown,
    /// The delivery named is not the current one.
    Stale,
}

/// What a `complete` or a `settle` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// May be stored from now on.
    pub safe_offset: i64,
    /// Messages this call finished.
    pub finished: u32,
    /// Messages named that were not there to finish.
    pub unknown: u32,
    /// Messages named with an older delivery.
    pub stale: u32,
    /// Messages made ready again (only `settle` does).
    pub ready: u32,
}

/// What a `requeue` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Requeued {
    /// Messages made ready again.
    pub requeued: u32,
    /// Messages named that were not in flight.
    pub unknown: u32,
    /// Messages named with an older delivery.
    pub stale: u32,
}

/// What the end of a turn asks of the host (W11, T1, T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TurnEnd {
    /// Nothing; the next `put` will tell.
    Nothing,
    /// Something is ready, or somebody was answered `Busy`: submit another turn, unless the queue
    /// was stopped (then nothing can be taken any more).
    RunAgain,
    /// The queue was closed meanwhile and this was its last turn: hand it over now.
    HandOver,
}

/// What `close` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The final safe offset.
    pub safe_offset: i64,
    /// No turn is running: hand over now. Otherwise the end of the turn tells.
    pub hand_over: bool,
}

/// An in-flight message that was taken too long ago (W14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Offset of the message.
    pub offset: i64,
    /// Its current delivery.
    pub delivery: u32,
    /// ms since it was taken.
    pub age_ms: i64,
}

/// One consistent cut of a queue: the fields of upstream's `ProcessQueueInfo` but those of the
/// lease, and a few more (W13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Messages ready.
    pub cached_count: u64,
    /// Lowest ready offset, 0 if none.
    pub cached_min: i64,
    /// Highest ready offset, 0 if none.
    pub cached_max: i64,
    /// Messages in flight.
    pub in_flight_count: u64,
    /// Lowest offset in flight, 0 if none.
    pub in_flight_min: i64,
    /// Highest offset in flight, 0 if none.
    pub in_flight_max: i64,
    /// Messages claimed (concurrent mode).
    pub claimed_count: u64,
    /// Messages outstanding: ready, in flight and claimed.
    pub count: u64,
    /// Sum of their recorded sizes, bytes.
    pub bytes: u64,
    /// May be stored.
    pub safe_offset: i64,
    /// Next offset to ask the broker for.
    pub pull_offset: i64,
    /// Highest offset ever put, -1 if none.
    pub highest_put: i64,
    /// Lowest offset outstanding.
    pub oldest_offset: Option<i64>,
    /// ms since the oldest outstanding message was put, never negative; 0 if none.
    pub oldest_age_ms: i64,
    /// `broker_max` minus the offset of its batch's last message, as last told (`msgAccCnt`); 0
    /// until told.
    pub lag: i64,
    /// Orderly mode: somebody was told to run a turn.
    pub scheduled: bool,
    /// `stop` was called.
    pub stopped: bool,
    /// `close` was called.
    pub closed: bool,
    /// Time of the last `put` or `advance`, ms; the creation counts as one at time 0.
    pub last_pull_ms: i64,
    /// Time of the last `take` that handed something over, ms.
    pub last_consume_ms: i64,
}
