//! The state word of one slot.
//!
//! ```text
//! bit  0..2   state: READY 0, IN_FLIGHT 1, CLAIMED 2, DONE 3
//! bit  2      DEAD: the closer of the queue has passed here
//! bit  3..8   loans: how many deliveries of this message are still lent
//! bit  8..16  attempts, saturating
//! bit 16..40  delivery, counts takes; wraps from 2^24 - 1 to 1, 0 means never taken
//! bit 40..64  seq: number of the segment, modulo 2^24
//! ```
//!
//! `seq` makes a compare-and-swap by a late thread fail once the slot holds another message. It
//! could be fooled only by a thread that sleeps between its load and its swap while exactly a
//! multiple of 2^24 segments (2^30 messages) pass through the queue, the same memory serves the
//! same number again, and every other field matches too.
//!
//! A payload is released by the one read-modify-write that makes `finished or dead, and no loans`
//! true.

/// A snapshot of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta(pub u64);

const STATE: u64 = 3;
const DEAD: u64 = 1 << 2;
const LOANS_SHIFT: u32 = 3;
const LOANS_MAX: u64 = 31;
const ATTEMPTS_SHIFT: u32 = 8;
const DELIVERY_SHIFT: u32 = 16;
const DELIVERY_MAX: u64 = (1 << 24) - 1;
const SEQ_SHIFT: u32 = 40;

/// What a held message is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Ready,
    InFlight,
    Claimed,
    Done,
}

impl Meta {
    /// One loan, to add or subtract.
    pub(crate) const LOAN: u64 = 1 << LOANS_SHIFT;
    /// The bit the closer sets.
    pub(crate) const DEAD: u64 = DEAD;

    #[inline(always)]
    pub(crate) fn fresh(seq: u64, attempts: u8) -> Self {
        Self((seq << SEQ_SHIFT) | (u64::from(attempts) << ATTEMPTS_SHIFT))
    }

    #[inline(always)]
    pub(crate) fn state(self) -> State {
        match self.0 & STATE {
            0 => State::Ready,
            1 => State::InFlight,
            2 => State::Claimed,
            _ => State::Done,
        }
    }

    #[inline(always)]
    pub(crate) fn with_state(self, state: State) -> Self {
        let bits = match state {
            State::Ready => 0,
            State::InFlight => 1,
            State::Claimed => 2,
            State::Done => 3,
        };
        Self((self.0 & !STATE) | bits)
    }

    #[inline(always)]
    pub(crate) fn is_dead(self) -> bool {
        self.0 & DEAD != 0
    }

    #[inline(always)]
    pub(crate) fn loans(self) -> u64 {
        (self.0 >> LOANS_SHIFT) & LOANS_MAX
    }

    #[inline(always)]
    pub(crate) fn can_lend(self) -> bool {
        self.loans() < LOANS_MAX
    }

    #[inline(always)]
    pub(crate) fn with_loan(self) -> Self {
        Self(self.0 + Self::LOAN)
    }

    #[inline(always)]
    pub(crate) fn without_loan(self) -> Self {
        Self(self.0 - Self::LOAN)
    }

    #[inline(always)]
    pub(crate) fn with_loans(self, loans: u64) -> Self {
        Self((self.0 & !(LOANS_MAX << LOANS_SHIFT)) | (loans << LOANS_SHIFT))
    }

    #[inline(always)]
    pub(crate) fn attempts(self) -> u8 {
        (self.0 >> ATTEMPTS_SHIFT) as u8
    }

    #[inline(always)]
    pub(crate) fn with_attempts_plus(self, plus: u8) -> Self {
        let attempts = u64::from(self.attempts().saturating_add(plus));
        Self((self.0 & !(0xff << ATTEMPTS_SHIFT)) | (attempts << ATTEMPTS_SHIFT))
    }

    #[inline(always)]
    pub(crate) fn delivery(self) -> u32 {
        ((self.0 >> DELIVERY_SHIFT) & DELIVERY_MAX) as u32
    }

    /// The delivery, or the one after it.
    #[inline(always)]
    pub(crate) fn delivery_plus(self, plus: u32) -> u32 {
        if plus == 0 { self.delivery() } else { self.with_next_delivery().delivery() }
    }

    #[inline(always)]
    pub(crate) fn with_next_delivery(self) -> Self {
        let now = u64::from(self.delivery());
        let next = if now == DELIVERY_MAX { 1 } else { now + 1 };
        Self((self.0 & !(DELIVERY_MAX << DELIVERY_SHIFT)) | (next << DELIVERY_SHIFT))
    }

    #[inline(always)]
    pub(crate) fn seq(self) -> u64 {
        self.0 >> SEQ_SHIFT
    }

    /// Nobody needs the payload any more.
    #[inline(always)]
    pub(crate) fn is_free(self) -> bool {
        self.loans() == 0 && (self.is_dead() || self.state() == State::Done)
    }
}

/// The part of a segment's number that fits the word.
#[inline(always)]
pub(crate) fn seq_of(segment_number: u64) -> u64 {
    segment_number & ((1 << 24) - 1)
}

#[cfg(all(test, not(any(lk_loom, lk_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let start = Meta::fresh(0xabcdef, 7);
        let taken = start.with_state(State::InFlight).with_loan().with_next_delivery();
        assert_eq!((taken.seq(), taken.attempts(), taken.delivery()), (0xabcdef, 7, 1));
        assert_eq!((taken.state(), taken.loans(), taken.is_dead()), (State::InFlight, 1, false));
        let done = taken.with_state(State::Done);
        assert!(!done.is_free());
        assert!(done.without_loan().is_free());
        assert!(Meta(start.0 | Meta::DEAD).is_free());
        assert_eq!(start.with_attempts_plus(255).attempts(), 255);
        assert_eq!(start.with_attempts_plus(255).seq(), 0xabcdef);
    }

    #[test]
    fn delivery_wraps_to_one() {
        let mut meta = Meta((DELIVERY_MAX << DELIVERY_SHIFT) | (5 << SEQ_SHIFT));
        meta = meta.with_next_delivery();
        assert_eq!((meta.delivery(), meta.seq()), (1, 5));
    }
}
