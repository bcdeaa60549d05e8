//! Many consumers: finishing messages, ending loans, moving the safe offset and the head.
//!
//! The safe offset: whoever finishes a message sets its bit in the segment's `done`. If a lower bit
//! of the same word is still unset, whoever sets that one comes later in the order of the word and
//! sees ours, and moves the safe offset for both. Otherwise, after a fence, we look for the lowest
//! outstanding message from the head on, and move the safe offset up to it; of two finishers in
//! different segments the fences let at least one see the other.
//! Models: complete_complete_two, complete_complete_segments, advance_complete.

use super::batch::{Place, Sink};
use super::crowd::{ClaimAt, MemberState};
use super::loans::Loan;
use super::{SLOTS, Window, pack_head};
use crate::lockfree::index::{DueSet, OffsetIndex};
use crate::lockfree::meta::{Meta, State};
use crate::lockfree::segment::FULL;
use crate::lockfree::words::{self, CLOSED};
use crate::sync::atomic::Ordering;
use crate::sync::{fence_after_rmw, mutated};
use crate::types::{Completed, Outcome, Refusal, Target};

/// The tally that anybody adds to, by read-modify-write: claims have no handle.
pub(super) const SHARED: usize = 0;

impl<T> Window<T> {
    /// Finishes messages, each in one step (W7).
    pub(crate) fn crowd_complete(
        &self,
        tally: usize,
        member: &mut MemberState<T>,
        targets: impl Iterator<Item = Target>,
        mut each: impl FnMut(usize, Outcome),
        mut sink: impl Sink<T>,
    ) -> Result<Completed, Refusal> {
        let mut answer = Completed { safe_offset: 0, finished: 0, unknown: 0, stale: 0, ready: 0 };
        // ORDERING: Acquire — not behind a close that returned before.
        let mut word = self.progress.load(Ordering::Acquire);
        for (index, target) in targets.enumerate() {
            let loan = member.loans.take(target);
            let outcome = match self.crowd_find(target, loan.as_ref()) {
                None => Outcome::Unknown,
                Some(at) => match self.finish(at, loan, target, &mut sink, tally) {
                    // Closed meanwhile: it counts if the final safe offset covers it.
                    Ok(now) if now & CLOSED != 0 && words::offset(now) <= target.offset => {
                        word = now;
                        Outcome::Unknown
                    }
                    Ok(now) => {
                        word = now;
                        Outcome::Won
                    }
                    Err(outcome) => outcome,
                },
            };
            match outcome {
                Outcome::Won => answer.finished += 1,
                Outcome::Unknown => answer.unknown += 1,
                Outcome::Stale => answer.stale += 1,
            }
            each(index, outcome);
        }
        if answer.finished == 0 && self.progress_closed() {
            return Err(Refusal::Closed);
        }
        answer.safe_offset = words::offset(word);
        Ok(answer)
    }

    /// Finishes one message that is ready or in flight; answers the progress word.
    fn finish(
        &self,
        at: (Place<T>, u64),
        loan: Option<Loan<T>>,
        target: Target,
        sink: &mut impl Sink<T>,
        tally: usize,
    ) -> Result<u64, Outcome> {
        let (_, rank) = at;
        let step = |meta: Meta| {
            let open = match meta.state() {
                State::InFlight => true,
                State::Ready => {
                    self.note_early(rank);
                    true
                }
                State::Claimed | State::Done => false,
            };
            open.then(|| meta.with_state(State::Done))
        };
        // ORDERING: Acquire — not behind a close that returned before.
        if self.progress.load(Ordering::Acquire) & CLOSED != 0 && loan.is_none() {
            return Err(Outcome::Unknown);
        }
        let moved = self.move_message(at, loan, target, step, sink, tally)?;
        Ok(self.finished_one(at, moved, sink, tally))
    }

    /// A message may be finished before it was taken: the snapshot must look beyond the consume
    /// rank.
    fn note_early(&self, rank: u64) {
        // ORDERING: Acquire — a rank at or above it was not taken when we looked.
        if rank >= words::rank(self.take.consume.load(Ordering::Acquire)) {
            // ORDERING: AcqRel — before the state word says done.
            self.crowd.early.fetch_max(rank + 1, Ordering::AcqRel);
        }
    }

    /// After a state word went to done: bits, payload, tally, safe offset. Answers the progress
    /// word.
    fn finished_one(
        &self,
        (place, _): (Place<T>, u64),
        (was, now): (Meta, Meta),
        sink: &mut impl Sink<T>,
        tally: usize,
    ) -> u64 {
        let segment = place.segment();
        let bit = 1_u64 << place.slot;
        let size = u64::from(segment.size(place.slot));
        if was.state() == State::Ready {
            self.clear_again(segment, place.slot);
        }
        // Until the `done` bit is set the segment stays what it is. So out with the payload first,
        // unless a loan keeps it, and with it the segment.
        let released = if now.is_free() {
            // SAFETY: our step made the word free, which happens once.
            Some((segment.offset(place.slot), unsafe { segment.take_payload(place.slot) }))
        } else {
            segment.wait_for_loan();
            None
        };
        // ORDERING: Acquire — the planted bug: another may come between.
        let early = mutated("done_read_before").then(|| segment.done.load(Ordering::Acquire));
        // ORDERING: AcqRel — who sets a lower bit later sees ours; see the module. Model:
        // complete_complete_two
        let was_done = segment.done.fetch_or(bit, Ordering::AcqRel);
        let first = early.unwrap_or(was_done) & (bit - 1) == bit - 1;
        self.add(tally, 1, size, u64::from(released.is_some()));
        let word = if first {
            self.settle_progress()
        } else {
            // ORDERING: Acquire — answered to the caller.
            self.progress.load(Ordering::Acquire)
        };
        // Last, as the host's code for releasing may take its time.
        if let Some((offset, payload)) = released {
            sink.give(offset, payload);
        }
        word
    }

    fn add(&self, tally: usize, count: u64, bytes: u64, released: u64) {
        let to = &self.tallies[tally];
        if tally == SHARED {
            // ORDERING: Release — as the stores below, for a tally with many writers.
            to.bytes.fetch_add(bytes, Ordering::Release);
            to.count.fetch_add(count, Ordering::Release);
            if released > 0 {
                to.released.fetch_add(released, Ordering::Release);
            }
        } else {
            if count > 0 {
                Self::add_finished(to, count, bytes);
            }
            if released > 0 {
                Self::add_released(to, released);
            }
        }
    }

    /// Moves out a payload that the last loan left to us, and returns the segment if it waited for
    /// nothing else.
    fn release(&self, place: Place<T>, sink: &mut impl Sink<T>, tally: usize) {
        let segment = place.segment();
        let offset = segment.offset(place.slot);
        // SAFETY: the end of the last loan made the word free, which happens once.
        let payload = unsafe { segment.take_payload(place.slot) };
        self.add(tally, 0, 0, 1);
        if segment.late_slot_is_free() {
            self.pool.give_back(segment);
        }
        sink.give(offset, payload);
    }

    /// Ends one loan of a message that goes on without it; releases the payload if that was left to
    /// us.
    pub(super) fn end_one_loan(&self, place: Place<T>, sink: &mut impl Sink<T>, tally: usize) {
        if place.segment().end_loan(place.slot).is_free() {
            self.release(place, sink, tally);
        }
    }

    /// Ends loans and decides nothing (W12); answers how many.
    pub(crate) fn crowd_give_back(
        &self,
        tally: usize,
        member: &mut MemberState<T>,
        targets: impl Iterator<Item = Target>,
        mut sink: impl Sink<T>,
    ) -> u32 {
        let mut ended = 0;
        for target in targets {
            if let Some(loan) = member.loans.take(target) {
                self.end_one_loan(loan.place, &mut sink, tally);
                ended += 1;
            }
        }
        ended
    }

    /// Ends every loan of a handle.
    pub(crate) fn crowd_end_loans(
        &self,
        tally: usize,
        member: &mut MemberState<T>,
        mut sink: impl Sink<T>,
    ) {
        while let Some(loan) = member.loans.pop() {
            self.end_one_loan(loan.place, &mut sink, tally);
        }
    }

    /// Decides a claimed message (W15).
    pub(crate) fn crowd_settle(
        &self,
        claim: ClaimAt<T>,
        sent: bool,
        not_before_ms: i64,
        now_ms: i64,
        mut sink: impl Sink<T>,
    ) -> Result<Completed, Refusal> {
        let (place, rank) = (claim.place, claim.rank);
        let loans = 1 + u64::from(claim.resumed);
        let closed = self.progress_closed();
        let mut was = place.segment().load_meta(place.slot);
        let now = loop {
            if was.state() != State::Claimed || was.delivery() != claim.delivery {
                // Somebody else settled it; the claim's loan went with that.
                self.crowd_unclaim(claim, sink);
                return Err(Refusal::Stale);
            }
            let ended = was.with_loans(was.loans() - loans);
            let next = if sent || closed || was.is_dead() {
                ended.with_state(State::Done)
            } else {
                ended.with_state(State::Ready).with_attempts_plus(1)
            };
            match place.segment().move_meta(place.slot, was, next) {
                Ok(()) => break next,
                Err(now) => was = now,
            }
        };
        if closed || was.is_dead() {
            // The close ended the claim; what is left is the payload.
            if now.is_free() {
                self.release(place, &mut sink, SHARED);
            }
            self.freeze();
            return Err(Refusal::Closed);
        }
        let mut answer = Completed { safe_offset: 0, finished: 0, unknown: 0, stale: 0, ready: 0 };
        if now.state() == State::Ready {
            self.ready_again(place, rank, not_before_ms, now_ms);
            answer.ready = 1;
            answer.safe_offset = self.safe_offset();
            return Ok(answer);
        }
        let word = self.finished_one((place, rank), (was, now), &mut sink, SHARED);
        if word & CLOSED != 0 && words::offset(word) <= claim.offset {
            self.freeze();
            return Err(Refusal::Closed);
        }
        answer.finished = 1;
        answer.safe_offset = words::offset(word);
        Ok(answer)
    }

    fn ready_again(&self, place: Place<T>, rank: u64, not_before_ms: i64, now_ms: i64) {
        if not_before_ms > now_ms {
            // ORDERING: Release — a hint for takers; counted first, so that it is never below the
            // entries.
            self.crowd.due.fetch_add(1, Ordering::Release);
            self.due.insert(not_before_ms, rank);
        } else {
            self.set_again(place.segment(), place.slot);
        }
    }

    /// Puts a claim down without deciding it: the loan of a resumed guard ends, that of the claim
    /// goes on.
    pub(crate) fn crowd_unclaim(&self, claim: ClaimAt<T>, mut sink: impl Sink<T>) {
        if claim.resumed {
            self.end_one_loan(claim.place, &mut sink, SHARED);
        }
    }

    /// Moves the safe offset up to the lowest outstanding message, or to the pull offset; answers
    /// the progress word, with the offset that this call set if it set one.
    pub(super) fn settle_progress(&self) -> u64 {
        // ORDERING: SeqCst fence — pairs with the same fence of another finisher, and with those of
        // `advance` and `carry_over_gap`: of two, at least one sees the other's step. Model:
        // complete_complete_segments
        if !mutated("settle_no_fence") {
            fence_after_rmw();
        }
        let mut answer = None;
        loop {
            let (pull, published) = self.pulled();
            let lowest = self.lowest_outstanding(published);
            let next = lowest.unwrap_or(pull);
            // ORDERING: Acquire — answered to the caller.
            let word = self.progress.load(Ordering::Acquire);
            if word & CLOSED != 0 || next <= words::offset(word) {
                return answer.filter(|_| word & CLOSED == 0).unwrap_or(word);
            }
            // ORDERING: AcqRel — Release beside the fence above: what another finished after it,
            // and we passed, is seen by who reads the safe offset. Model: complete_safe_reads
            let success =
                crate::sync::ordering("settle_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            if self.progress.compare_exchange(word, next as u64, success, Ordering::Relaxed).is_ok()
            {
                answer = Some(next as u64);
                if lowest.is_some() || mutated("settle_no_look_again") {
                    return next as u64;
                }
                // ORDERING: SeqCst fence — the pull offset may have moved unseen. Model:
                // advance_complete
                fence_after_rmw();
            }
            crate::sync::hint::spin_loop();
        }
    }

    /// Offset of the lowest outstanding message below rank `published`; moves the head on the way.
    pub(super) fn lowest_outstanding(&self, published: u64) -> Option<i64> {
        loop {
            let at = self.head()?;
            // ORDERING: Acquire — pairs with the finishers; what they finished is seen.
            let done = at.segment.done.load(Ordering::Acquire);
            if done == FULL {
                if !at.segment.valid_still(at.base) {
                    continue;
                }
                let Some(next) = at.next() else {
                    if at.segment.valid_still(at.base) {
                        return None;
                    }
                    continue;
                };
                let base_offset = at.segment.base_offset();
                let run_first = at.segment.is_run_first();
                // ORDERING: AcqRel — Release: the next segment's base is seen by who reads the
                // head. One winner.
                let moved = self.head.compare_exchange(
                    pack_head(at.segment, at.base),
                    pack_head(next.segment, next.base),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if moved.is_ok() {
                    if run_first {
                        self.index.remove(base_offset);
                    }
                    if at.segment.pass() {
                        self.pool.give_back(at.segment);
                    }
                }
                continue;
            }
            let slot = (!done).trailing_zeros() as usize;
            if at.base + slot as u64 >= published {
                if at.segment.valid_still(at.base) {
                    return None;
                }
                continue;
            }
            let offset = at.segment.offset(slot);
            if at.segment.valid_still(at.base) {
                return Some(offset);
            }
        }
    }
}

const _: () = assert!(SLOTS <= 64);
