//! One holder at a time, who may put the right down and take it up again; who comes in vain leaves
//! a note.
//!
//! ```text
//! word:
//! bit 0 HELD     somebody has the right
//! bit 2 NOTED    somebody was turned away since it was taken
//! bit 3 CLOSED   it is given to nobody any more
//! bit 5..64      number of the right, one more for every taking; lasts 2^59 takings
//!
//! gate, written by the holder alone but for `resume`:
//! bit 0 INSIDE   the holder is using the right (else it is put down as a token)
//! bit 1..64      number of the right that is held, 0 for none
//!
//!   free --take--> inside --park--> parked --resume--> inside --release--> free
//! ```
//!
//! Taking, noting, closing and releasing are one read-modify-write of the word, resuming is one of
//! the gate: their linearization points. All lock-free. The state is touched only while INSIDE, by
//! who set it. The release of one holder (Release) and the taking of the next (Acquire) order their
//! accesses to the state; so do park and resume.
//! Models: begin_begin_end, end_close, begin_close, token_round, token_park.

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{mutated, ordering, store_release};

pub(super) const HELD: u64 = 1;
/// Of the gate.
const INSIDE: u64 = 1;
pub(super) const NOTED: u64 = 4;
pub(super) const CLOSED: u64 = 8;
pub(super) const NUMBER_SHIFT: u32 = 5;

/// See the module.
pub(crate) struct Turnstile<S> {
    word: AtomicU64,
    gate: AtomicU64,
    state: UnsafeCell<S>,
}

// SAFETY: `state` is reached only by the thread that set INSIDE, until it clears it.
unsafe impl<S: Send> Sync for Turnstile<S> {}
// SAFETY: plain ownership of the state.
unsafe impl<S: Send> Send for Turnstile<S> {}

/// The right, held and in use.
pub(crate) struct Pass<'t, S> {
    stile: &'t Turnstile<S>,
    number: u64,
}

/// Why it was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denied {
    /// Somebody holds it, and will be told.
    Busy,
    /// The number is not the current one.
    Stale,
    Closed,
}

/// What was found when it was released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Released {
    pub noted: bool,
    pub closed: bool,
}

impl<S> Turnstile<S> {
    /// Numbers count from `first`, below 2^58.
    pub(crate) fn new(state: S, first: u64) -> Self {
        let word = AtomicU64::new(first << NUMBER_SHIFT);
        Self { word, gate: AtomicU64::new(0), state: UnsafeCell::new(state) }
    }

    pub(crate) fn take(&self) -> Result<Pass<'_, S>, Denied> {
        // ORDERING: Relaxed — a first guess; the compare-and-swap decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(Denied::Closed);
            }
            let held = word & HELD != 0;
            if held && mutated("turn_no_note") {
                return Err(Denied::Busy);
            }
            // Also when NOTED stands already: the swap confirms that its reader is still to come.
            let next = if held {
                word | NOTED
            } else {
                let number = (word >> NUMBER_SHIFT) + 1;
                (number << NUMBER_SHIFT) | HELD
            };
            // ORDERING: Acquire — pairs with the Release of `release`: the last holder's state is
            // seen. AcqRel as the note also continues the release sequence. Model: begin_begin_end
            let success = ordering("turn_take_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            match self.word.compare_exchange(word, next, success, Ordering::Relaxed) {
                Ok(_) if held => return Err(Denied::Busy),
                Ok(_) => {
                    let number = next >> NUMBER_SHIFT;
                    // ORDERING: Release — held now, so only we write; `resume` may look.
                    store_release(&self.gate, number << 1 | INSIDE);
                    return Ok(Pass { stile: self, number });
                }
                Err(now) => word = now,
            }
        }
    }

    /// Takes up what `Pass::park` put down.
    pub(crate) fn resume(&self, number: u64) -> Result<Pass<'_, S>, Denied> {
        if number == 0 || number >> (64 - NUMBER_SHIFT) != 0 {
            return Err(Denied::Stale);
        }
        let (parked, inside) = (number << 1, number << 1 | INSIDE);
        if mutated("resume_no_cas") {
            // ORDERING: AcqRel — the planted bug: two may find it parked.
            let parked = self.gate.load(Ordering::Acquire) == parked;
            self.gate.swap(inside, Ordering::AcqRel);
            return if parked { Ok(Pass { stile: self, number }) } else { Err(Denied::Busy) };
        }
        // ORDERING: Acquire — pairs with the Release of `park`: the state is seen. Models:
        // token_round, token_park
        let success = ordering("resume_relaxed", Ordering::Acquire, Ordering::Relaxed);
        match self.gate.compare_exchange(parked, inside, success, Ordering::Relaxed) {
            Ok(_) => Ok(Pass { stile: self, number }),
            Err(_) => Err(self.why_not(number)),
        }
    }

    #[cold]
    fn why_not(&self, number: u64) -> Denied {
        // ORDERING: AcqRel — a read-modify-write reads the newest value, and only that may say
        // Stale.
        let now = self.gate.fetch_or(0, Ordering::AcqRel);
        if now >> 1 == number { Denied::Busy } else { Denied::Stale }
    }

    /// Gives it to nobody any more. `Err` if that was so already, else whether somebody holds it.
    pub(crate) fn close(&self) -> Result<bool, ()> {
        // ORDERING: AcqRel — Acquire pairs with `release`: a closer that finds nobody inside owns
        // the state of the last holder; Release lets the holder see what the closer did before.
        // Model: end_close
        let was = self.word.fetch_or(CLOSED, Ordering::AcqRel);
        if was & CLOSED != 0 { Err(()) } else { Ok(was & HELD != 0) }
    }

    /// Held by somebody, inside or not.
    pub(crate) fn is_held(&self) -> bool {
        // ORDERING: Acquire — not behind a release that returned before.
        self.word.load(Ordering::Acquire) & HELD != 0
    }

    /// The state, without the right: exclusive by the borrow.
    pub(crate) fn get_mut(&mut self) -> &mut S {
        self.state.get_mut()
    }
}

impl<'t, S> Pass<'t, S> {
    #[inline(always)]
    pub(crate) fn state(&mut self) -> &mut S {
        self.stile.state.with_mut(|state| {
            // SAFETY: only the thread that set INSIDE has a Pass, and it is borrowed exclusively.
            unsafe { &mut *state }
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Puts it down without releasing it.
    pub(crate) fn park(self) -> u64 {
        if mutated("park_relaxed") {
            // ORDERING: Relaxed — the planted bug: the next one does not see the state.
            self.stile.gate.swap(self.number << 1, Ordering::Relaxed);
        } else {
            // ORDERING: Release — pairs with the Acquire of `resume`: the next thread sees the
            // state. Model: token_park
            store_release(&self.stile.gate, self.number << 1);
        }
        let number = self.number;
        std::mem::forget(self);
        number
    }

    /// Gives it back, and tells what happened meanwhile. If it was closed, `last` gets the state
    /// once more.
    pub(crate) fn release(self, last: impl FnOnce(&mut S)) -> Released {
        let released = self.stile.let_go();
        if released.closed {
            self.stile.state.with_mut(|state| {
                // SAFETY: closed, so nobody is let in any more; and a closer that found it held, as
                // it did since we held it, leaves the state to the last holder.
                last(unsafe { &mut *state });
            });
        }
        std::mem::forget(self);
        released
    }
}

impl<S> Turnstile<S> {
    fn let_go(&self) -> Released {
        // ORDERING: Release — still held, so only we write. Before the word, or a next holder's
        // gate would be erased.
        store_release(&self.gate, 0);
        // ORDERING: AcqRel — Release hands the state on to the next `take`; Acquire sees what a
        // closer did. One read-modify-write reads the note and frees, so that no note is lost.
        // Model: begin_begin_end
        let order = ordering("turn_release_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        let was = self.word.fetch_and(!(HELD | NOTED), order);
        Released { noted: was & NOTED != 0, closed: was & CLOSED != 0 }
    }
}

impl<S> Drop for Pass<'_, S> {
    fn drop(&mut self) {
        let _ = self.stile.let_go();
    }
}
