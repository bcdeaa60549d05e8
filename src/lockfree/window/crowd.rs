//! Many consumers: taking, putting back and claiming. Each message moves by a compare-and-swap of
//! its own state word.
//!
//! - A take gets a run of fresh ranks by one compare-and-swap of the consume word, and then each of
//!   them by its state word, since a fresh message may have been finished before anybody took it.
//! - A message that is ready again has a bit in its segment's `again`; who clears the bit may try
//!   for it. The bit is set *after* the state word says ready, so a cleared bit always means a try
//!   that could win. A bit set by a late thread in a segment that was reused meanwhile costs one
//!   try that the state word decides.
//! - A message that is ready from a later time on waits in the due set, and gets its bit from
//!   whoever takes next.
//!
//! Loans: at take the state word counts one up, and the handle notes it; every verb about that
//! delivery, whatever it answers, counts one down. Models: take_take, take_complete_ready,
//! complete_claim, claim_expired.

use super::batch::{Batch, DropSink, Place, Sink, Taken};
use super::crowd_finish::SHARED;
use super::loans::{Loan, Loans};
use super::lookup::At;
use super::{SLOTS, Window};
use crate::lockfree::index::DueSet;
use crate::lockfree::meta::{Meta, State, seq_of};
use crate::lockfree::segment::Segment;
use crate::lockfree::words::{self, CLOSED};
use crate::sync::atomic::Ordering;
use crate::sync::mutated;
use crate::types::{Expired, Outcome, Refusal, Requeued, Target};

/// What only the holder of a consumer handle knows.
pub(crate) struct MemberState<T> {
    pub(super) loans: Loans<T>,
    list: Vec<Taken<T>>,
    /// A take came upon a slot that the closer had passed.
    met_closer: bool,
    /// Where the last fresh message was.
    hint: (*const Segment<T>, u64),
}

// SAFETY: the pointers are to segments of the window this state belongs to.
unsafe impl<T: Send> Send for MemberState<T> {}

impl<T> MemberState<T> {
    pub(super) fn new() -> Self {
        Self {
            loans: Loans::new(),
            list: Vec::new(),
            met_closer: false,
            hint: (std::ptr::null(), 0),
        }
    }
}

/// A message somebody decides about exclusively, and a loan of it.
pub(crate) struct ClaimAt<T> {
    pub(super) place: Place<T>,
    pub(super) rank: u64,
    pub(crate) offset: i64,
    pub(crate) delivery: u32,
    /// Taken up again: the guard has a loan of its own beside the claim's.
    pub(super) resumed: bool,
}

impl<T> ClaimAt<T> {
    /// The payload; the claim's loan keeps it.
    pub(crate) fn payload(&self) -> &T {
        // SAFETY: a ClaimAt holds a loan until `crowd_settle` or `crowd_unclaim` consumes it, or
        // leaves the claim's.
        unsafe { self.place.segment().payload(self.place.slot) }
    }
}

impl<T> Window<T> {
    /// Takes up to `n` messages: ready again ones first, then fresh ones.
    pub(crate) fn crowd_take<'b>(
        &'b self,
        member: &'b mut MemberState<T>,
        n: usize,
        now_ms: i64,
    ) -> Result<Batch<'b, T>, Refusal> {
        self.lane_may_take()?;
        member.list.clear();
        // ORDERING: Acquire — hints; a bit set by a call that returned before is not overlooked.
        if n > 0 && self.crowd.due.load(Ordering::Acquire) > 0 {
            self.wake_due(now_ms);
        }
        if n > 0 && self.crowd.again.load(Ordering::Acquire) > 0 {
            self.take_again(member, n, now_ms);
        }
        while member.list.len() < n {
            // ORDERING: Acquire — not behind a stop or close that returned before.
            let word = self.take.consume.load(Ordering::Acquire);
            let k = words::rank(word);
            let ready = self.published().saturating_sub(k);
            let run = ready.min((n - member.list.len()) as u64);
            if words::flags(word) != 0 || run == 0 {
                if word & CLOSED != 0 && member.list.is_empty() {
                    return Err(self.no_take(word));
                }
                break;
            }
            // ORDERING: AcqRel — the ranks are ours alone from here; their messages are decided by
            // the state words. Relaxed failure: another look. Model: take_take
            let taken = words::with_rank(word, k + run);
            let won = if mutated("take_no_cas_at_all") {
                // ORDERING: AcqRel — the planted bug, here and in `move_meta`: overwrites.
                Ok(self.take.consume.swap(taken, Ordering::AcqRel))
            } else {
                // ORDERING: as said above.
                self.take.consume.compare_exchange_weak(
                    word,
                    taken,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
            };
            if won.is_ok() {
                self.take_fresh(member, k, k + run, now_ms);
            } else {
                crate::sync::hint::spin_loop();
            }
        }
        if member.met_closer {
            // Closed while we took. What we lent before that is ours until the handle ends.
            member.list.clear();
            self.freeze();
            return Err(Refusal::Closed);
        }
        if member.list.is_empty() {
            if n == 0 {
                return Ok(Batch::empty());
            }
            if self.progress_closed() {
                return Err(Refusal::Closed);
            }
            return self.lane_may_take().and(Err(Refusal::Empty));
        }
        // ORDERING: Relaxed — a gauge.
        self.take.last_consume_ms.store(now_ms, Ordering::Relaxed);
        Ok(Batch::list(&member.list))
    }

    fn take_fresh(&self, member: &mut MemberState<T>, from: u64, to: u64, now_ms: i64) {
        let mut rank = from;
        while rank < to {
            let hint = (!member.hint.0.is_null()).then(|| At {
                segment: Place { segment: member.hint.0, slot: 0 }.segment(),
                base: member.hint.1,
            });
            let Some(at) = self.segment_of(rank, hint) else {
                // The whole segment is finished and gone.
                rank = (rank / SLOTS + 1) * SLOTS;
                continue;
            };
            member.hint = (at.segment, at.base);
            let end = to.min(at.base + SLOTS);
            for fresh in rank..end {
                self.try_take(member, at, (fresh - at.base) as usize, now_ms);
            }
            rank = end;
        }
    }

    /// Takes one message if it is ready; false if it is ready but lent too often.
    fn try_take(
        &self,
        member: &mut MemberState<T>,
        at: At<'_, T>,
        slot: usize,
        now_ms: i64,
    ) -> bool {
        let segment = at.segment;
        let seq = seq_of(at.base / SLOTS);
        let mut meta = segment.load_meta(slot);
        loop {
            if meta.is_dead() {
                member.met_closer = true;
                return true;
            }
            if meta.seq() != seq || meta.state() != State::Ready {
                return true;
            }
            if !meta.can_lend() {
                return false;
            }
            segment.set_taken_ms(slot, now_ms);
            let taken = meta.with_state(State::InFlight).with_loan().with_next_delivery();
            match segment.move_meta(slot, meta, taken) {
                Ok(()) => {
                    let place = Place::new(segment, slot);
                    member.list.push(Taken {
                        place,
                        attempts: taken.attempts(),
                        delivery: taken.delivery(),
                    });
                    let loan = Loan { place, delivery: taken.delivery() };
                    member.loans.add(segment.offset(slot), loan);
                    return true;
                }
                Err(now) => meta = now,
            }
        }
    }

    fn take_again(&self, member: &mut MemberState<T>, n: usize, now_ms: i64) {
        // ORDERING: Acquire — everything ready again is below it.
        let k = words::rank(self.take.consume.load(Ordering::Acquire));
        let mut next = self.head();
        while let Some(at) = next.filter(|at| at.base < k) {
            // ORDERING: Acquire — pairs with `set_again`.
            let mut bits = at.segment.again.load(Ordering::Acquire);
            while bits != 0 && member.list.len() < n {
                let slot = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if self.clear_again(at.segment, slot) && !self.try_take(member, at, slot, now_ms) {
                    self.set_again(at.segment, slot);
                }
            }
            if member.list.len() == n {
                return;
            }
            next = at.next();
        }
    }

    /// Who makes the bit go away may try for the message.
    pub(super) fn clear_again(&self, segment: &Segment<T>, slot: usize) -> bool {
        // ORDERING: AcqRel — one winner for each bit.
        let was = segment.again.fetch_and(!(1 << slot), Ordering::AcqRel) & (1 << slot) != 0;
        if was {
            // ORDERING: Release — a hint for takers.
            self.crowd.again.fetch_sub(1, Ordering::Release);
        }
        was
    }

    pub(super) fn set_again(&self, segment: &Segment<T>, slot: usize) {
        // ORDERING: Release — who clears it sees the state word that says ready. Counted first, so
        // that the count is never below the bits.
        self.crowd.again.fetch_add(1, Ordering::Release);
        if segment.again.fetch_or(1 << slot, Ordering::AcqRel) & (1 << slot) != 0 {
            // ORDERING: Release — counted once a bit.
            self.crowd.again.fetch_sub(1, Ordering::Release);
        }
    }

    fn wake_due(&self, now_ms: i64) {
        while let Some(rank) = self.due.pop_due(now_ms) {
            // ORDERING: Release — a hint for takers.
            self.crowd.due.fetch_sub(1, Ordering::Release);
            if let Some(at) = self.segment_of(rank, None) {
                self.set_again(at.segment, (rank - at.base) as usize);
            }
        }
    }

    /// Where the message of `target` is, if it is or was in the window; with `loan`, for sure.
    pub(super) fn crowd_find(
        &self,
        target: Target,
        loan: Option<&Loan<T>>,
    ) -> Option<(Place<T>, u64)> {
        if let Some(loan) = loan {
            let base = loan.place.segment().pinned_base();
            return Some((loan.place, base + loan.place.slot as u64));
        }
        let (at, slot) = self.find(target.offset)?;
        Some((Place::new(at.segment, slot), at.base + slot as u64))
    }

    /// Moves a message by `step`, ending `loan` in the same step if it succeeds, and also if it
    /// does not. `step` answers the next word without its loan, or what to answer.
    pub(super) fn move_message(
        &self,
        (place, rank): (Place<T>, u64),
        loan: Option<Loan<T>>,
        target: Target,
        step: impl Fn(Meta) -> Option<Meta>,
        sink: &mut impl Sink<T>,
        tally: usize,
    ) -> Result<(Meta, Meta), Outcome> {
        let segment = place.segment();
        let seq = seq_of(rank / SLOTS);
        let mut meta = segment.load_meta(place.slot);
        let refused = loop {
            if meta.seq() != seq || meta.is_dead() {
                break Outcome::Unknown;
            }
            let another = target.delivery != 0 && target.delivery != meta.delivery();
            if another && !mutated("delivery_not_compared") {
                break if meta.state() == State::Done { Outcome::Unknown } else { Outcome::Stale };
            }
            let Some(next) = step(meta) else {
                break Outcome::Unknown;
            };
            let next = if loan.is_some() { next.without_loan() } else { next };
            match segment.move_meta(place.slot, meta, next) {
                Ok(()) => return Ok((meta, next)),
                Err(now) => meta = now,
            }
        };
        if loan.is_some() {
            self.end_one_loan(place, sink, tally);
        }
        Err(refused)
    }

    /// In-flight messages become ready again (W6).
    pub(crate) fn crowd_requeue(
        &self,
        tally: usize,
        member: &mut MemberState<T>,
        targets: impl Iterator<Item = Target>,
        plus: u8,
        mut each: impl FnMut(usize, Outcome),
        mut sink: impl Sink<T>,
    ) -> Result<Requeued, Refusal> {
        let closed = self.progress_closed();
        let mut answer = Requeued::default();
        for (index, target) in targets.enumerate() {
            let loan = member.loans.take(target);
            let step = |meta: Meta| {
                (!closed && meta.state() == State::InFlight)
                    .then(|| meta.with_state(State::Ready).with_attempts_plus(plus))
            };
            let moved = match self.crowd_find(target, loan.as_ref()) {
                Some(at) => {
                    self.move_message(at, loan, target, step, &mut sink, tally).map(|_| at.0)
                }
                None => Err(Outcome::Unknown),
            };
            let outcome = match moved {
                Ok(place) => {
                    self.set_again(place.segment(), place.slot);
                    answer.requeued += 1;
                    Outcome::Won
                }
                Err(outcome) => {
                    answer.unknown += u32::from(outcome == Outcome::Unknown);
                    answer.stale += u32::from(outcome == Outcome::Stale);
                    outcome
                }
            };
            each(index, outcome);
        }
        // Unknown may mean that a closer came in between.
        let closed = closed || answer.requeued == 0 && self.progress_closed();
        if closed { Err(Refusal::Closed) } else { Ok(answer) }
    }

    /// The exclusive right to decide about an in-flight message (W15). A loan that the handle has
    /// of this delivery goes over to the claim; otherwise the claim gets one of its own.
    pub(crate) fn crowd_claim(
        &self,
        member: &mut MemberState<T>,
        target: Target,
    ) -> Result<Result<ClaimAt<T>, Outcome>, Refusal> {
        if self.progress_closed() {
            return Err(Refusal::Closed);
        }
        let loan = member.loans.take(target);
        let delivery = loan.as_ref().map(|loan| loan.delivery);
        let Some((place, rank)) = self.crowd_find(target, loan.as_ref()) else {
            return Ok(Err(Outcome::Unknown));
        };
        let step = |meta: Meta| {
            let own = delivery == Some(meta.delivery());
            let free = meta.state() == State::InFlight && (own || meta.can_lend());
            let claimed = meta.with_state(State::Claimed);
            free.then(|| if own { claimed } else { claimed.with_loan() })
        };
        let moved = self.move_message((place, rank), None, target, step, &mut DropSink, SHARED);
        let went_over = moved.as_ref().is_ok_and(|(was, _)| delivery == Some(was.delivery()));
        if let Some(loan) = loan.filter(|_| !went_over) {
            member.loans.add(target.offset, loan);
        }
        if moved.is_err() && self.progress_closed() {
            // A closer came in between.
            return Err(Refusal::Closed);
        }
        let offset = target.offset;
        Ok(moved.map(|(was, _)| ClaimAt {
            place,
            rank,
            offset,
            delivery: was.delivery(),
            resumed: false,
        }))
    }

    /// Takes a claim up again that was put down, with a loan of the guard's own.
    pub(crate) fn crowd_reclaim(&self, target: Target) -> Option<ClaimAt<T>> {
        let (place, rank) = self.crowd_find(target, None)?;
        let segment = place.segment();
        let mut meta = segment.load_meta(place.slot);
        loop {
            let stands = meta.state() == State::Claimed && meta.delivery() == target.delivery;
            if !stands || meta.seq() != seq_of(rank / SLOTS) || !meta.can_lend() {
                return None;
            }
            match segment.move_meta(place.slot, meta, meta.with_loan()) {
                Ok(()) => break,
                Err(now) => meta = now,
            }
        }
        let Target { offset, delivery } = target;
        Some(ClaimAt { place, rank, offset, delivery, resumed: true })
    }

    /// Names in-flight messages taken more than `limit_ms` ago (W14).
    pub(crate) fn crowd_expired(
        &self,
        now_ms: i64,
        limit_ms: i64,
        max: usize,
        out: &mut Vec<Expired>,
    ) -> usize {
        let before = out.len();
        // ORDERING: Acquire — everything taken by calls that returned is below it.
        let k = words::rank(self.take.consume.load(Ordering::Acquire));
        let mut rank = self.head().map_or(k, |head| head.base);
        let mut hint = self.head();
        while rank < k && out.len() - before < max {
            let Some(at) = self.segment_of(rank, hint) else {
                rank = (rank / SLOTS + 1) * SLOTS;
                continue;
            };
            hint = Some(at);
            let slot = (rank - at.base) as usize;
            let meta = at.segment.load_meta(slot);
            let (offset, taken) = (at.segment.offset(slot), at.segment.taken_ms(slot));
            // The same delivery afterwards: offset and time belong to it. Loans may come and go.
            // Model: late_expired
            let after = at.segment.load_meta(slot);
            let same = (after.state(), after.delivery(), after.seq())
                == (meta.state(), meta.delivery(), meta.seq())
                && at.segment.valid_still(at.base);
            let same = same || mutated("expired_no_second_look");
            let age_ms = now_ms.saturating_sub(taken);
            let in_flight = meta.state() == State::InFlight
                || meta.state() == State::Claimed && mutated("expired_names_claimed");
            if same && in_flight && !meta.is_dead() && age_ms > limit_ms {
                out.push(Expired { offset, delivery: meta.delivery(), age_ms });
            }
            rank += 1;
        }
        out.len() - before
    }
}
