//! Closing, and what is left when the window is dropped.
//!
//! Every payload is released once, by whoever comes last. What the closer releases:
//!
//! | where | lane, pass held | lane, nobody inside | crowd |
//! |---|---|---|---|
//! | from the frozen consume rank on | not finished | not finished | not lent and not finished |
//! | below it | what was offered (`spread`) | not finished | the same |
//!
//! Models: put_close, take_close, commit_close, close_give_back,
//! complete_close.

use super::Window;
use super::batch::{Place, Sink};
use super::lookup::At;
use crate::lockfree::meta::State;
use crate::lockfree::words::{self, CLOSED};
use crate::sync::atomic::Ordering;

/// Who is still at work in a window that is being closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CloseSink {
    /// The pass of the lane is held.
    PassHeld,
    /// Nobody is in the lane, or there is none.
    Alone,
}

impl<T> Window<T> {
    /// Sets CLOSED in every word that decides something, and the final safe offset with it. Any
    /// number of threads may do this together; once one of them is through, every verb that starts
    /// later answers CLOSED.
    #[cold]
    pub(crate) fn freeze(&self) -> i64 {
        // ORDERING: AcqRel — the pull offset is final, and what was put below it is seen.
        let pull = words::offset(self.front.pull.fetch_or(CLOSED, Ordering::AcqRel));
        // ORDERING: Acquire — the offset may be final already.
        let mut word = self.progress.load(Ordering::Acquire);
        while word & CLOSED == 0 {
            let last = self.final_offset(words::offset(word), pull);
            // ORDERING: AcqRel — decides against commit, complete, settle and advance. Model:
            // commit_close
            match self.progress.compare_exchange(
                word,
                last as u64 | CLOSED,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => word = last as u64 | CLOSED,
                Err(now) => word = now,
            }
        }
        if crate::sync::mutated("freeze_no_consume") {
            return words::offset(word);
        }
        // ORDERING: AcqRel — Acquire: the state words of what was taken are seen; Release: who
        // finds the bit also finds the progress word closed. Models: take_close, put_close
        self.take.consume.fetch_or(CLOSED, Ordering::AcqRel);
        self.front.publish.fetch_or(CLOSED, Ordering::AcqRel);
        words::offset(word)
    }

    fn final_offset(&self, safe: i64, pull: i64) -> i64 {
        if self.concurrent {
            return self.lowest_outstanding(self.published()).unwrap_or(pull).max(safe);
        }
        // The lane keeps the progress word exact, but for a gap below a message just put and for an
        // `advance` that raised the pull word just now.
        loop {
            // ORDERING: Acquire — the record of this word is seen; what is put later lies at or
            // above `pull`.
            let publish = self.front.publish.load(Ordering::Acquire);
            if safe > self.highest(publish) {
                return safe.max(pull);
            }
            let published = words::rank(publish);
            let lowest = match self.rank_from(safe, published) {
                Some(rank) if rank < published => self.offset_at(rank),
                Some(_) => Some(safe.max(pull)),
                None => None,
            };
            if let Some(lowest) = lowest {
                return lowest.max(safe);
            }
            // A segment went by meanwhile: the lane made a step, and the caller looks again.
            // ORDERING: Acquire — as the caller's.
            let now = self.progress.load(Ordering::Acquire);
            if words::offset(now) != safe {
                return safe;
            }
            crate::sync::hint::spin_loop();
        }
    }

    /// The one who closed: releases what is nobody's. The window is frozen.
    pub(crate) fn release_unlent(&self, who: CloseSink, sink: &mut impl Sink<T>) {
        // ORDERING: Acquire — frozen; the state words of what was taken are seen.
        let k = words::rank(self.take.consume.load(Ordering::Acquire));
        let published = self.published();
        let safe = self.safe_offset();
        let Some(head) = self.head() else { return };
        let (mut rank, mut hint, mut released) = (head.base, Some(head), 0);
        while rank < published {
            let Some(at) = self.segment_of(rank, hint) else {
                // Finished and gone meanwhile.
                rank += 1;
                continue;
            };
            hint = Some(at);
            let place = Place::new(at.segment, (rank - at.base) as usize);
            let below_k = rank < k;
            rank += 1;
            if !self.left_to_closer(at, place, below_k, who, safe) {
                continue;
            }
            released += 1;
            if !sink.is_idle() {
                // SAFETY: outstanding, so in place; not lent, and no verb can lend it any more.
                let payload = unsafe { place.segment().take_payload(place.slot) };
                sink.give(at.segment.offset(place.slot), payload);
            }
        }
        // ORDERING: Release — a gauge; only the one closer adds.
        self.closer_released.fetch_add(released, Ordering::Release);
    }

    fn left_to_closer(
        &self,
        at: At<'_, T>,
        place: Place<T>,
        below_k: bool,
        who: CloseSink,
        safe: i64,
    ) -> bool {
        if !self.concurrent {
            // ORDERING: Acquire — the lane's bits, as of its last step that was not answered
            // CLOSED.
            let done = at.segment.done.load(Ordering::Acquire) & (1 << place.slot) != 0;
            // Below the safe offset the lane has finished it without a mark.
            if done || at.segment.offset(place.slot) < safe || !at.segment.valid_still(at.base) {
                return false;
            }
            return !below_k || who == CloseSink::Alone || at.segment.withdraw(place.slot);
        }
        let was = at.segment.mark_dead(place.slot);
        was.loans() == 0 && was.state() != State::Done && !was.is_dead()
    }

    /// Hands over every payload still held. Exclusive.
    pub(crate) fn drain(&mut self, mut give: impl FnMut(i64, T)) {
        let was_closed = self.is_closed();
        self.freeze();
        let published = self.published();
        if self.concurrent {
            self.drain_crowd(published, give);
            return;
        }
        let mut to = super::batch::To(&mut give);
        if was_closed {
            if !self.lane.is_held() {
                return;
            }
            // The closer left what was in flight to a pass holder who never came back.
            let mut lane = std::mem::replace(self.lane.get_mut(), super::LaneState::new());
            self.lane_close(&mut lane, &mut to);
        } else {
            self.release_unlent(CloseSink::Alone, &mut to);
            *self.lane.get_mut() = super::LaneState::new();
        }
    }

    fn drain_crowd(&mut self, published: u64, mut give: impl FnMut(i64, T)) {
        let mut released = 0;
        self.puller.get_mut().spare.for_each(|segment| {
            let Some(base) = segment.base_rank() else { return };
            for slot in 0..super::SLOTS as usize {
                let meta = segment.load_meta(slot);
                if base + slot as u64 >= published || meta.is_free() {
                    continue;
                }
                segment.bury(slot);
                released += 1;
                // SAFETY: not free, so still there; nobody else is left.
                give(segment.offset(slot), unsafe { segment.take_payload(slot) });
            }
        });
        // ORDERING: Release — a gauge.
        self.closer_released.fetch_add(released, Ordering::Release);
    }
}
