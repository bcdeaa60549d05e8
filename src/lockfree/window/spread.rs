//! The exclusive consumer's side when ready, in flight and finished messages are mixed.
//!
//! Per segment there are two words of bits, written by the pass holder only: `done` (finished) and
//! `again` (ready, below `k`). In `[h, k)` a message is finished, ready again, or else in flight;
//! from `k` on it is finished or else ready. What readers need of it is summed up in a *record*;
//! there are two, and the version in the consume word says which one holds. Every step writes the
//! other record first and then makes it the current one:
//!
//! - a step that does not move the safe offset: by the compare-and-swap of the consume word;
//! - a step that moves it (commit, complete of the lowest): by the compare-and-swap of the progress
//!   word. Until the consume word follows, a reader that finds the safe offset above the current
//!   record's lowest message takes the other record.
//!
//! Against close, which may pass at any time: what is ready below `k` has a bit in its segment's
//! `offer`. A closer that finds the pass held withdraws the offers, and whoever clears a bit has
//! the payload; the rest below `k` is on loan and left to the pass holder. Offers are made after
//! the step, by a read-modify-write of the word that the closer goes through too, so that whoever
//! comes second sees the other; they are withdrawn before
//! the next one.
//!
//! The steps cost time linear in `k - h`; they are the exception (a batch of which some are
//! retried).
//! Models: requeue_snapshot, requeue_close, complete_lane_close.

use super::batch::{Batch, Place, Sink, Taken};
use super::lane::LaneState;
use super::record::Cut;
use super::{SLOTS, Window};
use crate::lockfree::words::{self, SPREAD};
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::types::{Committed, Completed, Outcome, Refusal, Requeued, Target};

/// A word of bits that only the pass holder writes.
fn write_bits(word: &AtomicU64, bits: u64) {
    // ORDERING: Release — a closer or a `contains` that acquires it sees what it is about. A swap,
    // since the puller swaps it at reuse.
    word.swap(bits, Ordering::Release);
}

fn read_bits(word: &AtomicU64) -> u64 {
    // ORDERING: Relaxed — own writes, or the last holder's, ordered by the pass.
    word.load(Ordering::Relaxed)
}

impl<T> Place<T> {
    fn bit(self) -> u64 {
        1 << self.slot
    }

    pub(super) fn is_done(self) -> bool {
        read_bits(&self.segment().done) & self.bit() != 0
    }

    pub(super) fn is_again(self) -> bool {
        read_bits(&self.segment().again) & self.bit() != 0
    }

    fn set_done(self) {
        let word = &self.segment().done;
        write_bits(word, read_bits(word) | self.bit());
    }

    fn set_again(self, on: bool) {
        let word = &self.segment().again;
        let bits = read_bits(word);
        write_bits(word, if on { bits | self.bit() } else { bits & !self.bit() });
    }

    fn offset(self) -> i64 {
        self.segment().offset(self.slot)
    }
}

impl<T> Window<T> {
    /// Calls `visit` with the slots of ranks `[h, to)` in order, until it answers false.
    fn for_ranks(
        &self,
        state: &LaneState<T>,
        to: u64,
        mut visit: impl FnMut(Place<T>, u64) -> bool,
    ) {
        if state.h_segment.is_null() {
            return;
        }
        let mut segment = state.h_segment;
        let mut end = state.h_end;
        for rank in state.h..to {
            // `h` may be past the end of its segment until that is recycled.
            while rank >= end {
                segment = Place { segment, slot: 0 }.segment().next();
                end += SLOTS;
            }
            if !visit(Place { segment, slot: (rank % SLOTS) as usize }, rank) {
                return;
            }
        }
    }

    /// Calls `visit` with everything in flight, in order.
    pub(super) fn for_in_flight(&self, state: &LaneState<T>, mut visit: impl FnMut(Place<T>, u64)) {
        let mut left = state.in_flight();
        let compact = !state.is_spread();
        self.for_ranks(state, state.k, |place, rank| {
            if left > 0 && (compact || !place.is_done() && !place.is_again()) {
                left -= 1;
                visit(place, rank);
            }
            left > 0
        });
    }

    /// Describes the state as the bits and fields say.
    fn describe(&self, state: &LaneState<T>) -> Cut {
        let mut cut = Cut {
            version: state.version,
            finished: state.finished,
            bytes: state.finished_bytes,
            above: state.above,
            fresh: u64::MAX,
            seen: state.seen,
            lowest: i64::MAX,
            ..Cut::default()
        };
        let to = if state.above > 0 { state.seen } else { state.k };
        self.for_ranks(state, to, |place, rank| {
            if rank >= state.k {
                if !place.is_done() {
                    cut.fresh = cut.fresh.min(rank);
                    cut.top = place.offset();
                }
                return true;
            }
            if place.is_done() {
                return true;
            }
            let offset = place.offset();
            cut.lowest = cut.lowest.min(offset);
            let (count, min, max) = if place.is_again() {
                (&mut cut.again_count, &mut cut.again_min, &mut cut.again_max)
            } else {
                (&mut cut.in_count, &mut cut.in_min, &mut cut.in_max)
            };
            if *count == 0 {
                *min = offset;
            }
            *count += 1;
            *max = offset;
            true
        });
        if cut.fresh == u64::MAX {
            cut.fresh = to;
        }
        cut
    }

    /// Moves `h` over what is finished, and `k` with it where it must.
    fn settle_h(&self, state: &mut LaneState<T>) {
        let (mut h, mut above) = (state.h, state.above);
        let finished_from_h = state.finished - state.h;
        if finished_from_h > 0 {
            let seen = state.seen;
            self.for_ranks(state, seen, |place, rank| {
                let done = place.is_done();
                if done {
                    h = rank + 1;
                    above -= u64::from(rank >= state.k);
                }
                done
            });
        }
        state.h = h;
        state.above = above;
        while state.k < state.h {
            if state.k == state.k_end {
                self.next_k(state);
            }
            state.k = state.h.min(state.k_end);
        }
    }

    /// Writes the record of the new state and makes it current. Err if the queue was closed before.
    /// `state` is the new state but for its version; `from` is the consume word before.
    fn flip(&self, state: &mut LaneState<T>, from: u64) -> Result<(), ()> {
        self.prepare(state);
        self.set_consume(from, state.consume(state.k))
    }

    fn prepare(&self, state: &mut LaneState<T>) {
        state.version = words::next_version(state.version);
        let cut = self.describe(state);
        self.records[words::record_of(state.version)].write(&cut);
    }

    /// The slot of an in-flight message, or what to answer.
    fn in_flight_at(
        &self,
        state: &LaneState<T>,
        target: Target,
    ) -> Result<(Place<T>, u64), Outcome> {
        let (at, slot) = self.find(target.offset).ok_or(Outcome::Unknown)?;
        let rank = at.base + slot as u64;
        let place = Place::new(at.segment, slot);
        if rank < state.h || place.is_done() {
            return Err(Outcome::Unknown);
        }
        let ready = rank >= state.k || place.is_again();
        let delivery = at.segment.lane_meta(slot).delivery_plus(u32::from(!ready));
        if target.delivery != 0 && target.delivery != delivery {
            return Err(Outcome::Stale);
        }
        if ready {
            return Err(Outcome::Unknown);
        }
        Ok((place, rank))
    }

    /// Makes some in-flight messages ready again (W6), in one step.
    pub(crate) fn lane_requeue(
        &self,
        state: &mut LaneState<T>,
        targets: impl Iterator<Item = Target>,
        plus: u8,
        mut each: impl FnMut(usize, Outcome),
        mut sink: impl Sink<T>,
    ) -> Result<Requeued, Refusal> {
        let mut answer = Requeued::default();
        let mut chosen: Vec<(u64, Place<T>)> = Vec::new();
        for (index, target) in targets.enumerate() {
            let outcome = match self.in_flight_at(state, target) {
                Ok((place, rank)) => match chosen.binary_search_by_key(&rank, |(rank, _)| *rank) {
                    Ok(_) => Outcome::Unknown,
                    Err(at) => {
                        chosen.insert(at, (rank, place));
                        Outcome::Won
                    }
                },
                Err(outcome) => outcome,
            };
            match outcome {
                Outcome::Won => answer.requeued += 1,
                Outcome::Unknown => answer.unknown += 1,
                Outcome::Stale => answer.stale += 1,
            }
            each(index, outcome);
        }
        let Some((lowest, _)) = chosen.first().copied() else {
            return if self.progress_closed() { Err(Refusal::Closed) } else { Ok(answer) };
        };
        let count = chosen.len() as u64;
        for (_, place) in &chosen {
            place.segment().end_deliveries(place.slot, 1, plus);
        }
        let from = state.consume(state.k);
        let compact = !state.is_spread() && count == state.k - lowest;
        let moved = if compact {
            // The last ones, all of them: ready is one run again.
            self.set_consume(from, state.consume(lowest))
        } else {
            chosen.iter().for_each(|(_, place)| place.set_again(true));
            state.again += count;
            self.flip(state, from)
        };
        match moved {
            Ok(()) if compact => self.move_k_down(state, lowest),
            Ok(()) => self.offer_all(state, &chosen, &mut sink),
            Err(()) => {
                state.again -= if compact { 0 } else { count };
                self.settle_closed(state, &chosen, |_| true, &mut sink);
            }
        }
        state.set_edge();
        moved.map(|()| answer).map_err(|()| Refusal::Closed)
    }

    /// What was just requeued below `k` is for a closer to release, should one come; or did come.
    fn offer_all(
        &self,
        state: &mut LaneState<T>,
        chosen: &[(u64, Place<T>)],
        sink: &mut impl Sink<T>,
    ) {
        chosen.iter().for_each(|(_, place)| place.segment().offer(place.slot));
        // ORDERING: Relaxed — `offer` and `withdraw` are read-modify-writes of one word: a closer
        // that came to it first is acquired by our `offer`, and the word it froze before with it;
        // one that comes later finds the offer. No fence is needed. Model: requeue_close
        if self.take.consume.load(Ordering::Relaxed) & words::CLOSED != 0 {
            state.again -= chosen.len() as u64;
            self.settle_closed(state, chosen, |place| place.segment().withdraw(place.slot), sink);
        }
    }

    /// The queue is closed: these slots are in flight no more, and those that are `ours` we
    /// release.
    fn settle_closed(
        &self,
        state: &mut LaneState<T>,
        chosen: &[(u64, Place<T>)],
        ours: impl Fn(&Place<T>) -> bool,
        sink: &mut impl Sink<T>,
    ) {
        let mut released = 0;
        for (_, place) in chosen {
            // Only for `for_in_flight` to pass over; below the frozen `k` no closer looks.
            place.set_done();
            state.finished += 1;
            if ours(place) {
                released += 1;
                // SAFETY: its loan is over, the queue is closed, and the closer did not get it.
                let payload = unsafe { place.segment().take_payload(place.slot) };
                sink.give(place.offset(), payload);
            }
        }
        Self::add_released(&self.tallies[0], released);
    }

    fn move_k_down(&self, state: &mut LaneState<T>, k: u64) {
        let at = self.segment_of(k, Some(state.h_at())).expect("an unfinished rank has a segment");
        state.k = k;
        state.k_segment = at.segment;
        state.k_end = at.base + SLOTS;
    }

    /// Finishes in-flight messages, each in one step (W7).
    pub(crate) fn lane_complete(
        &self,
        state: &mut LaneState<T>,
        targets: impl Iterator<Item = Target>,
        mut each: impl FnMut(usize, Outcome),
        mut sink: impl Sink<T>,
    ) -> Result<Completed, Refusal> {
        let mut answer = Completed { safe_offset: 0, finished: 0, unknown: 0, stale: 0, ready: 0 };
        let mut closed = self.progress_closed();
        let mut moved = None;
        for (index, target) in targets.enumerate() {
            let outcome = match self.in_flight_at(state, target) {
                Ok((place, rank)) => {
                    if !closed {
                        match self.complete_one(state, place, rank) {
                            Ok(safe) => moved = safe.or(moved),
                            Err(()) => closed = true,
                        }
                    }
                    // Finished or closed: this delivery's loan is over, and it was the only one.
                    self.release_one(state, place, closed, &mut sink);
                    if closed { Outcome::Unknown } else { Outcome::Won }
                }
                Err(outcome) => outcome,
            };
            match outcome {
                Outcome::Won => answer.finished += 1,
                Outcome::Unknown => answer.unknown += 1,
                Outcome::Stale => answer.stale += 1,
            }
            each(index, outcome);
        }
        if !closed && state.h >= state.h_end && !state.h_segment.is_null() {
            self.recycle(state);
        }
        state.set_edge();
        if closed && answer.finished == 0 {
            return Err(Refusal::Closed);
        }
        answer.safe_offset = moved.unwrap_or_else(|| self.safe_offset());
        Ok(answer)
    }

    fn release_one(
        &self,
        state: &mut LaneState<T>,
        place: Place<T>,
        closed: bool,
        sink: &mut impl Sink<T>,
    ) {
        if closed {
            place.set_done();
            // Counted so that the sums still add up for `for_in_flight`.
            state.finished += 1;
        }
        // SAFETY: it was in flight, lent to us alone; the step (or the close) left the release to
        // us.
        let payload = unsafe { place.segment().take_payload(place.slot) };
        sink.give(place.offset(), payload);
        if closed {
            Self::add_released(&self.tallies[0], 1);
        }
    }

    /// Answers the safe offset if this moved it. Err if the queue was closed before.
    fn complete_one(
        &self,
        state: &mut LaneState<T>,
        place: Place<T>,
        rank: u64,
    ) -> Result<Option<i64>, ()> {
        let mut moved = None;
        let from = state.consume(state.k);
        let spread = state.is_spread();
        let size = u64::from(place.segment().size(place.slot));
        let before = state.h;
        if rank != state.h {
            place.set_done();
            self.count_one(state, size);
            if self.flip(state, from).is_err() {
                self.uncount_one(state, size);
                return Err(());
            }
        } else if !spread {
            let next = self.next_safe(state, rank + 1);
            let safe = self.raise_progress(next).ok_or(())?;
            place.set_done();
            self.count_one(state, size);
            state.h += 1;
            moved = Some(self.look_again_at_end(state, safe));
        } else {
            // The lowest of a spread state: the record first, then the safe offset decides, then
            // the word follows.
            place.set_done();
            self.count_one(state, size);
            self.settle_h(state);
            self.prepare(state);
            let next = self.lowest_safe(state);
            let Some(safe) = self.raise_progress(next) else {
                state.h = before;
                self.uncount_one(state, size);
                return Err(());
            };
            // Closed meanwhile or not, the step is decided.
            let _ = self.set_consume(from, state.consume(state.k));
            moved = Some(self.look_again_at_end(state, safe));
        }
        self.tell(state);
        Ok(moved)
    }

    fn look_again_at_end(&self, state: &mut LaneState<T>, safe: i64) -> i64 {
        if state.seen == state.h { self.look_again(state, state.h, safe) } else { safe }
    }

    fn count_one(&self, state: &mut LaneState<T>, size: u64) {
        state.finished += 1;
        state.finished_bytes += size;
    }

    fn uncount_one(&self, state: &mut LaneState<T>, size: u64) {
        state.finished -= 1;
        state.finished_bytes -= size;
    }

    /// The safe offset of a state whose `h` is settled.
    fn lowest_safe(&self, state: &mut LaneState<T>) -> i64 {
        if state.h < state.k {
            self.offset_of(state, state.h)
        } else {
            self.next_safe(state, state.h)
        }
    }

    /// Commit of a spread state; something is in flight.
    #[cold]
    pub(super) fn spread_commit(
        &self,
        state: &mut LaneState<T>,
        mut sink: impl Sink<T>,
    ) -> Result<Committed, Refusal> {
        let from = state.consume(state.k);
        let before = state.h;
        let mut list = std::mem::take(&mut state.list);
        list.clear();
        self.for_in_flight(state, |place, _| list.push(place));
        let finished = list.len() as u64;
        for place in &list {
            place.set_done();
            state.finished_bytes += u64::from(place.segment().size(place.slot));
        }
        state.finished += finished;
        self.settle_h(state);
        let next = self.lowest_safe(state);
        self.prepare(state);
        let decided = if state.h == before {
            // A lower message is ready: the safe offset stays.
            let open =
                !self.progress_closed() && self.set_consume(from, state.consume(state.k)).is_ok();
            open.then_some(next)
        } else {
            self.raise_progress(next).map(|safe| {
                // Decided, closed meanwhile or not.
                let _ = self.set_consume(from, state.consume(state.k));
                self.look_again_at_end(state, safe)
            })
        };
        for place in &list {
            // SAFETY: in flight until this commit, lent to us alone; finished, or closed with the
            // release left to us.
            let payload = unsafe { place.segment().take_payload(place.slot) };
            sink.give(place.offset(), payload);
        }
        state.list = list;
        let Some(safe_offset) = decided else {
            state.h = before;
            Self::add_released(&self.tallies[0], finished);
            return Err(Refusal::Closed);
        };
        self.tell(state);
        if state.h >= state.h_end {
            self.recycle(state);
        }
        Ok(Committed::Finished { safe_offset, finished: finished as u32 })
    }

    /// Rollback of a spread state: from the lowest outstanding message on, everything not finished
    /// is ready.
    #[cold]
    pub(super) fn spread_rollback(
        &self,
        state: &mut LaneState<T>,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refusal> {
        let from = state.consume(state.k);
        self.for_in_flight(state, |place, _| place.segment().end_deliveries(place.slot, 1, 0));
        let old_k = state.k;
        let old = (state.k_segment, state.k_end, state.again, state.above);
        state.again = 0;
        state.above = state.finished - state.h;
        (state.k, state.k_segment, state.k_end) = (state.h, state.h_segment, state.h_end);
        if self.flip(state, from).is_err() {
            state.k = old_k;
            (state.k_segment, state.k_end, state.again, state.above) = old;
            self.lane_close(state, sink);
            return Err(Refusal::Closed);
        }
        // Above `k` the bits mean nothing; they must be gone before `k` comes this way again.
        self.for_ranks(state, old_k, |place, _| {
            if place.is_again() {
                place.set_again(false);
                place.segment().withdraw(place.slot);
            }
            true
        });
        Ok(())
    }

    /// Take of a spread state: first what is ready below `k`, then from `k` on.
    #[cold]
    pub(super) fn spread_take<'b>(
        &'b self,
        state: &'b mut LaneState<T>,
        n: usize,
        now_ms: i64,
    ) -> Result<Batch<'b, T>, Refusal> {
        self.lane_may_take()?;
        state.seen = self.published();
        let from = state.consume(state.k);
        let old = (state.k, state.k_segment, state.k_end, state.above);
        let mut list = std::mem::take(&mut state.list);
        list.clear();
        let (mut k, mut passed) = (state.k, 0);
        self.for_ranks(state, state.seen, |place, rank| {
            if list.len() == n {
                return false;
            }
            if rank >= state.k {
                k = rank + 1;
                passed += u64::from(place.is_done());
            }
            if !place.is_done() && (rank >= state.k || place.is_again()) {
                list.push(place);
            }
            true
        });
        if list.is_empty() {
            state.list = list;
            return match self.lane_idle(state) {
                Ok(()) => Err(Refusal::Empty),
                Err(()) => self.lane_take(state, n, now_ms),
            };
        }
        let again = list.iter().filter(|place| place.is_again()).count();
        // Withdrawn from a closer; one that was there already released it, and the flip below
        // fails.
        let gone: Vec<_> = list[..again]
            .iter()
            .filter(|place| {
                place.set_again(false);
                !place.segment().withdraw(place.slot)
            })
            .map(|place| (0, *place))
            .collect();
        state.again -= again as u64;
        state.above -= passed;
        while state.k < k {
            if state.k == state.k_end {
                self.next_k(state);
            }
            state.k = k.min(state.k_end);
        }
        let flipped = self.flip(state, from);
        if flipped.is_err() {
            // Closed. What was withdrawn stays with us, to be released with what is in flight.
            (state.k, state.k_segment, state.k_end, state.above) = old;
            self.settle_closed(state, &gone, |_| false, &mut super::batch::DropSink);
        }
        state.list = list;
        state.set_edge();
        flipped.map_err(|()| Refusal::Closed)?;
        // ORDERING: Relaxed — a gauge.
        self.take.last_consume_ms.store(now_ms, Ordering::Relaxed);
        Ok(Self::spread_batch(state))
    }

    fn spread_batch<'b>(state: &'b mut LaneState<T>) -> Batch<'b, T> {
        state.out.clear();
        state.out.extend(state.list.iter().map(|place| Taken::in_lane(*place)));
        Batch::list(&state.out)
    }

    /// Whether anything is ready.
    pub(crate) fn has_ready(&self) -> bool {
        loop {
            // ORDERING: Acquire — the record of this word is seen.
            let consume = self.take.consume.load(Ordering::Acquire);
            let published = self.published();
            if consume & SPREAD == 0 {
                return published > words::rank(consume);
            }
            let cut = self.records[words::record_of(consume)].read();
            // ORDERING: Acquire fence, Relaxed load — pairs with the fence in `LaneRecord::write`.
            fence(Ordering::Acquire);
            if self.take.consume.load(Ordering::Relaxed) == consume {
                return cut.again_count > 0 || published > words::rank(consume) + cut.above;
            }
            crate::sync::hint::spin_loop();
        }
    }
}
