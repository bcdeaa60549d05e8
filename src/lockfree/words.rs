//! The packed words of a window: bit layouts and nothing else.
//!
//! ```text
//! publish  CLOSED 63 | STOPPED 62 | SCHEDULED 61 | PARITY 60 | rank 0..48
//!          messages [0, rank) are visible
//! consume  CLOSED 63 | STOPPED 62 | SPREAD 61 | version 48..61 | rank 0..48
//!          ranks from `rank` on were not taken
//! progress CLOSED 63 | offset 0..63
//!          may be stored
//! pull     CLOSED 63 | offset 0..63
//!          next to ask for
//! head     segment number 44..64 | address / 8 0..44
//!          first segment not wholly finished
//! ```
//!
//! Ranks count accepted messages from 0; 48 bits last 89 years at 100,000 messages a second.

/// The queue is closed: nothing that this word decides happens any more.
pub(crate) const CLOSED: u64 = 1 << 63;
/// No new message goes in or out.
pub(crate) const STOPPED: u64 = 1 << 62;
/// publish: somebody was told to run a turn.
pub(crate) const SCHEDULED: u64 = 1 << 61;
/// publish: which of the two put records belongs to this word.
pub(crate) const PARITY: u64 = 1 << 60;
/// consume: the lane's record describes the state; the ranks alone do not.
pub(crate) const SPREAD: u64 = 1 << 61;

const RANK: u64 = (1 << 48) - 1;
const VERSION_SHIFT: u32 = 48;
const VERSION: u64 = (1 << 13) - 1;

#[inline(always)]
pub(crate) fn rank(word: u64) -> u64 {
    word & RANK
}

#[inline(always)]
pub(crate) fn with_rank(word: u64, rank: u64) -> u64 {
    debug_assert!(rank <= RANK);
    (word & !RANK) | rank
}

/// The part of a consume word that stop and close add to.
#[inline(always)]
pub(crate) fn flags(word: u64) -> u64 {
    word & (CLOSED | STOPPED)
}

/// A consume word without stop and close; `version` as `next_version` answers it.
#[inline(always)]
pub(crate) fn consume(rank: u64, version: u64, spread: bool) -> u64 {
    rank | version | if spread { SPREAD } else { 0 }
}

/// The version after `version`, in its place in a consume word.
pub(crate) fn next_version(version: u64) -> u64 {
    version.wrapping_add(1 << VERSION_SHIFT) & (VERSION << VERSION_SHIFT)
}

/// Index of the lane record that belongs to a consume word.
#[inline(always)]
pub(crate) fn record_of(consume: u64) -> usize {
    ((consume >> VERSION_SHIFT) & 1) as usize
}

/// Index of the put record that belongs to a publish word.
#[inline(always)]
pub(crate) fn put_record_of(publish: u64) -> usize {
    usize::from(publish & PARITY != 0)
}

/// The offset in a progress or pull word.
#[inline(always)]
pub(crate) fn offset(word: u64) -> i64 {
    (word & !CLOSED) as i64
}
