//! The ways in which the queue answers differently from the Java class on purpose, and how often
//! each is met in a file.

use std::collections::BTreeMap;
use std::fmt;

/// One kind of difference. The first five are the only ones that well-behaved use meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// `clear` empties a queue in place and leaves its flag and its lag; here it is `close` and a
    /// new generation, which begins idle.
    ClearIsANewGeneration,
    /// `commit` answers the last in flight + 1; here the lowest outstanding, over any gap.
    CommitOverAGap,
    /// `commit` answers the last in flight + 1 although a lower one was put back (or: although
    /// higher ones were finished while it was put back).
    CommitAroundAPutBack,
    /// `removeMessage` on a queue with nothing ready answers -1.
    RemoveFromNothing,
    /// The span is that of the ready messages; here from the lowest outstanding to the highest
    /// ever put.
    Span,
    /// `commit` with nothing in flight throws.
    NothingToCommit,
    /// Negative offsets and `Long.MAX` are kept; here the batch is refused.
    OffsetOutOfRange,
    /// `take(-1)` throws; here it cannot be written.
    TakeOfLessThanNone,
    /// `take(0)` makes the queue idle.
    TakeOfNone,
    /// A second copy replaces the first, or counts twice beside the one in flight; here it is
    /// refused as a duplicate.
    Duplicate,
    /// An offset below one pulled before is inserted; here it is refused as stale.
    Stale,
    /// The highest offset put is the last one, not the maximum.
    HighestIsTheLast,
    /// The size of the message given to the call counts; here the one recorded at `put`.
    SizeOfTheArgument,
    /// `makeMessageToConsumeAgain` inserts what is not in flight; here it is counted as unknown.
    AgainOfTheUnknown,
    /// `removeMessage` looks at the ready messages only; here, orderly, at those in flight only.
    RemoveOfTheReady,
    /// A malformed MAX_OFFSET throws out of `putMessage` after it took effect; here the host
    /// parses, and puts without it.
    MalformedMaxOffset,
    /// The sweep stops at the first message that is not expired; here every expired one is named.
    ExpiryStopsAtTheHead,
    /// A send-back that failed is tried again at once; here the message becomes ready again.
    SendBackTriedAgain,
    /// A malformed start time throws out of the sweep; here start times are numbers.
    MalformedStartTime,
    /// A removal counts as consumption; here `take` does.
    LastConsumeIsRemoval,
    /// On an interrupted thread nothing is done; here no call waits, so there is nothing to
    /// interrupt.
    Interrupted,
}

/// How often each departure was met, and how much agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub agreed: u64,
    /// Steps after a line had diverged: there only the twin is the expectation.
    pub twin_only: u64,
    pub departures: BTreeMap<Departure, u64>,
}

impl Tally {
    pub fn note(&mut self, departure: Departure) {
        *self.departures.entry(departure).or_default() += 1;
    }

    /// The counts as a list, for comparison with the pinned ones.
    pub fn counts(&self) -> Vec<(Departure, u64)> {
        self.departures.iter().map(|(departure, n)| (*departure, *n)).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:>7}  agreed", self.agreed)?;
        for (departure, n) in &self.departures {
            writeln!(f, "  {n:>7}  {departure:?}")?;
        }
        writeln!(f, "  {:>7}  judged by the twin alone", self.twin_only)
    }
}
