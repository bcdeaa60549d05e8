//! The turn of one queue in a table of many: the word of a [`turnstile`](super::turnstile), with
//! the name of the queue beside it, used by one queue after another.
//!
//! ```text
//! word:  as in `turnstile`, without STOPPED; the number is never set back
//!
//!   shut --open--> free --begin--> held --end--> free      CLOSED | HELD: being opened
//!   (CLOSED)       (0)             (HELD)
//!     ^--close------'  '--close--> held and closed --end: hand-over--> shut
//! ```
//!
//! `owner` (an id) and `generation` change only while CLOSED | HELD, by who set that: nobody begins
//! then, and opening again is BUSY. Each opening takes a new number. So who read the word, then
//! found its queue's name in `owner`, and then exchanges that very word, acts on its own queue:
//! close and opening lie between two owners, and both changed the word.
//!
//! Beginning and ending are one read-modify-write each, their linearization points; all lock-free.
//! An opener that stands still keeps its queue shut and nobody waiting. Numbers last 2^59 turns.
//! Models: begin_begin_end, end_close, table_begin_begin_end, table_close_end,
//! table_reclaim_begin.

use super::pages::Blank;
use super::turnstile::{CLOSED, HELD, NOTED, NUMBER_SHIFT, Released};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{mutated, ordering};
use crate::types::Refusal;

const NUMBER_ONE: u64 = 1 << NUMBER_SHIFT;

/// See the module. A cache line of its own.
#[repr(align(64))]
pub(crate) struct TurnCell {
    word: AtomicU64,
    /// The id that may use it.
    owner: AtomicU64,
    /// Number of the assignment that may use it.
    generation: AtomicU64,
}

// SAFETY: not zero.
unsafe impl Blank for TurnCell {
    const IS_ZERO: bool = false;
    fn blank() -> Self {
        Self {
            word: AtomicU64::new(CLOSED),
            owner: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        }
    }
}

/// A turn that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// Different for every turn of this cell.
    pub(crate) number: u64,
    pub(crate) generation: u64,
}

impl TurnCell {
    /// A turn for `owner`. `Busy`: somebody has it, and will be told. `Closed`: shut, or not this
    /// owner's.
    #[inline]
    pub(crate) fn begin(&self, owner: u64) -> Result<Begun, Refusal> {
        // ORDERING: Acquire — pairs with the Release of `open`: the owner read next is not older
        // than this word. Model: table_begin_begin_end
        let first = ordering("table_begin_relaxed", Ordering::Acquire, Ordering::Relaxed);
        let mut word = self.word.load(first);
        loop {
            // ORDERING: Relaxed — ordered by the word, and counts only if the word is still the
            // same in the end.
            if self.owner.load(Ordering::Relaxed) != owner || word & CLOSED != 0 {
                return Err(Refusal::Closed);
            }
            let held = word & HELD != 0;
            if held && mutated("table_no_note") {
                return Err(Refusal::Busy);
            }
            // Also when NOTED stands already: the swap confirms that its reader is still to come.
            let next = if held { word | NOTED } else { (word + NUMBER_ONE) | HELD };
            // ORDERING: Relaxed — as for the owner.
            let generation = self.generation.load(Ordering::Relaxed);
            // ORDERING: AcqRel — Acquire pairs with the Release of `end`: what the last turn did
            // is seen; Release as the note continues the release sequence. Acquire on failure, as
            // the owner is read again. Model: table_begin_begin_end
            let order = ordering("table_begin_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            match self.word.compare_exchange(word, next, order, first) {
                Ok(_) if held => return Err(Refusal::Busy),
                Ok(_) => return Ok(Begun { number: next >> NUMBER_SHIFT, generation }),
                Err(now) => word = now,
            }
        }
    }

    /// Ends the turn with this number. `Stale`: it has ended.
    #[inline]
    pub(crate) fn end(&self, number: u64) -> Result<Released, Refusal> {
        // The likely word; another value is found by the exchange.
        let mut word = number << NUMBER_SHIFT | HELD;
        if number == 0 || word >> NUMBER_SHIFT != number {
            return Err(Refusal::Stale);
        }
        loop {
            let next = word & !(HELD | NOTED);
            // ORDERING: AcqRel — Release hands what this turn did to the next one; Acquire sees
            // what a closer did. One exchange reads the note and frees, so that no note is lost.
            // Acquire on failure: a stale answer is about the newest word. Model:
            // table_begin_begin_end
            let order = ordering("table_end_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            match self.word.compare_exchange(word, next, order, Ordering::Acquire) {
                Ok(_) => {
                    let (noted, closed) = (word & NOTED != 0, word & CLOSED != 0);
                    return Ok(Released { noted, closed });
                }
                // The number is this turn's until it ends, and HELD stands until then.
                Err(now) if now >> NUMBER_SHIFT != number || now & HELD == 0 => {
                    return Err(Refusal::Stale);
                }
                Err(now) => word = now,
            }
        }
    }

    /// Lets `owner` begin turns of `generation`. `Busy`: it is open, its last turn has not ended,
    /// or another thread opens it.
    pub(crate) fn open(&self, owner: u64, generation: u64) -> Result<(), Refusal> {
        // ORDERING: Relaxed — a first guess; the exchange decides.
        let word = self.word.load(Ordering::Relaxed);
        if word & CLOSED == 0 || word & HELD != 0 {
            return Err(Refusal::Busy);
        }
        let plus = if mutated("table_same_number") { 0 } else { NUMBER_ONE };
        let next = (word & !NOTED) + plus;
        // ORDERING: Acquire — the last owner's turns come before this one's. Relaxed on failure:
        // nothing is read then.
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let won = self.word.compare_exchange(word, next | HELD, success, failure).is_ok();
        if !won && !mutated("table_open_no_cas") {
            return Err(Refusal::Busy);
        }
        // ORDERING: Relaxed — published by the word. Swaps, as old threads may be reading them.
        self.owner.swap(owner, Ordering::Relaxed);
        // ORDERING: Relaxed — as above.
        self.generation.swap(generation, Ordering::Relaxed);
        // ORDERING: Release — pairs with the Acquire of `begin` and `close`. A swap, as exchanges
        // by who has an old word may run beside it. Model: table_reclaim_begin
        self.word.swap(next & !(CLOSED | HELD), Ordering::Release);
        Ok(())
    }

    /// Lets nobody begin any more; answers whether a turn runs, whose end is then the hand-over.
    /// `Stale`: not open for this owner and generation. `Closed`: closed before.
    pub(crate) fn close(&self, owner: u64, generation: u64) -> Result<bool, Refusal> {
        // ORDERING: Acquire — pairs with the Release of `open`, as in `begin`.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            // ORDERING: Relaxed — ordered by the word, and counts only if the word is the same in
            // the end.
            let same = self.owner.load(Ordering::Relaxed) == owner
                // ORDERING: Relaxed — as above.
                && self.generation.load(Ordering::Relaxed) == generation;
            if !same {
                return Err(Refusal::Stale);
            }
            if word & CLOSED != 0 {
                return Err(Refusal::Closed);
            }
            // ORDERING: AcqRel — Acquire pairs with `end`: a closer that finds nobody inside hands
            // over after the last turn; Release lets a turn inside see what the closer did before.
            // Acquire on failure, as the names are read again. Model: table_close_end
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            if mutated("table_close_blind") {
                // ORDERING: AcqRel — planted: the answer is not from the word that was exchanged.
                self.word.fetch_or(CLOSED, Ordering::AcqRel);
                return Ok(word & HELD != 0);
            }
            match self.word.compare_exchange(word, word | CLOSED, success, failure) {
                Ok(_) => return Ok(word & HELD != 0),
                Err(now) => word = now,
            }
        }
    }

    /// Whether it is, or was last, this owner's.
    pub(crate) fn is_of(&self, owner: u64) -> bool {
        // ORDERING: Relaxed — while a turn runs the owner stays, and its holder has seen it.
        self.owner.load(Ordering::Relaxed) == owner
    }

    /// Who is to be told a hand-over yet, by `close` or the end of a turn.
    pub(crate) fn in_use(&self) -> Option<u64> {
        // ORDERING: Acquire — pairs with the Release of `open`: the owner of this word is seen.
        let word = self.word.load(Ordering::Acquire);
        // ORDERING: Relaxed — ordered by the word.
        (word & CLOSED == 0 || word & HELD != 0).then(|| self.owner.load(Ordering::Relaxed))
    }

    /// Whether a turn runs, or did a moment ago.
    pub(crate) fn is_held(&self) -> bool {
        // ORDERING: Acquire — not behind an end that returned before.
        self.word.load(Ordering::Acquire) & HELD != 0
    }
}
