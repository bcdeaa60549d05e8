//! The exclusive consumer's side while its state is *compact*: in flight is `[h, k)`, ready is `[k,
//! published)`.
//!
//! Then a take and a rollback are one compare-and-swap of the consume word and a commit is one of
//! the progress word, however many messages they are about. Readers learn `h` from the progress
//! word: it is the rank of the first message at or above the safe offset; so a commit needs no
//! second word, and there is no moment at which half of it can be seen. When some but not all in
//! flight are requeued or completed the state is *spread*; see `spread`.
//!
//! Only the pass holder of the turnstile touches `LaneState`.
//!
//! Orderings: consume CAS Release, so that a closer that freezes it sees the state words of what
//! was taken; progress CAS AcqRel; tally stores Release. Models: take_close, commit_close,
//! commit_snapshot, rollback_observer.

use super::batch::{Batch, Place, Sink, Taken};
use super::lookup::At;
use super::{SLOTS, Window, pack_head};
use crate::lockfree::index::OffsetIndex;
use crate::lockfree::segment::Segment;
use crate::lockfree::words::{self, CLOSED, SCHEDULED, STOPPED};
use crate::sync::atomic::Ordering;
use crate::sync::{fence_after_rmw, mutated, ordering};
use crate::types::{Committed, Refusal};

/// What only the pass holder knows.
///
/// The order matters: words that change together do not lie side by side. The compiler would join
/// their updates into one wide load, which stalls on the two narrow stores before it (measured: a
/// third of a commit).
#[repr(C)]
pub(crate) struct LaneState<T> {
    /// Holds rank `k`, or ends at it.
    pub(super) k_segment: *const Segment<T>,
    pub(super) k: u64,
    /// Ranks of `[k, edge)` are published and in `k_segment`. 0 while spread, so that the short
    /// ways need not ask.
    edge: u64,
    /// As `edge`, and in `h_segment`.
    commit_edge: u64,
    /// Lowest rank not finished.
    pub(super) h: u64,
    pub(super) h_end: u64,
    /// Messages finished.
    pub(super) finished: u64,
    /// In its place in the consume word.
    pub(super) version: u64,
    /// Ready messages below `k`.
    pub(super) again: u64,
    /// What the progress word was last seen to hold.
    safe: u64,
    pub(super) finished_bytes: u64,
    /// Ranks below it are known to be published.
    pub(super) seen: u64,
    pub(super) k_end: u64,
    /// Holds rank `h`, or ends at it.
    pub(super) h_segment: *const Segment<T>,
    /// Finished messages at or above `k`.
    pub(super) above: u64,
    pub(super) list: Vec<Place<T>>,
    /// What a batch that is no run is read from.
    pub(super) out: Vec<Taken<T>>,
}

// SAFETY: the pointers are to segments of the window this state belongs to.
unsafe impl<T: Send> Send for LaneState<T> {}

impl<T> LaneState<T> {
    pub(super) fn new() -> Self {
        Self {
            k_segment: std::ptr::null(),
            k: 0,
            edge: 0,
            commit_edge: 0,
            safe: 0,
            k_end: 0,
            h_segment: std::ptr::null(),
            h: 0,
            h_end: 0,
            seen: 0,
            finished: 0,
            finished_bytes: 0,
            again: 0,
            above: 0,
            version: 0,
            list: Vec::new(),
            out: Vec::new(),
        }
    }

    /// To be called when `k_end` or `h_end` moved, or the state became spread or compact. That
    /// `seen` grew may be told later.
    pub(super) fn set_edge(&mut self) {
        self.edge = if self.is_spread() { 0 } else { self.k_end.min(self.seen) };
        self.commit_edge = self.edge.min(self.h_end);
    }

    #[inline(always)]
    pub(super) fn is_spread(&self) -> bool {
        self.again != 0 || self.finished != self.h
    }

    /// Messages in flight: below `k` and neither finished nor ready.
    #[inline(always)]
    pub(crate) fn in_flight(&self) -> u64 {
        self.k + self.above - self.finished - self.again
    }

    #[inline(always)]
    pub(super) fn h_at<'w>(&self) -> At<'w, T> {
        // SAFETY: set before anything is in flight; segments are freed only with the window.
        At { segment: unsafe { &*self.h_segment }, base: self.h_end - SLOTS }
    }

    /// The consume word of this state, without flags.
    #[inline(always)]
    pub(super) fn consume(&self, k: u64) -> u64 {
        words::consume(k, self.version, self.is_spread())
    }
}

impl<T> Window<T> {
    /// Moves the lowest `n` ready messages to in flight.
    #[inline(always)]
    pub(crate) fn lane_take<'b>(
        &'b self,
        state: &'b mut LaneState<T>,
        n: usize,
        now_ms: i64,
    ) -> Result<Batch<'b, T>, Refusal> {
        let some = n.wrapping_sub(1) < SLOTS as usize;
        if !some || state.k + n as u64 > state.edge {
            return self.lane_take_slow(state, n, now_ms);
        }
        debug_assert!(!state.is_spread());
        let first = Place { segment: state.k_segment, slot: (state.k % SLOTS) as usize };
        self.take_run(state, n as u64, now_ms)?;
        Ok(Batch::run(first, n))
    }

    /// As `lane_take`, for what lies in several segments, is not known to be published, or is
    /// spread.
    #[inline(never)]
    fn lane_take_slow<'b>(
        &'b self,
        state: &'b mut LaneState<T>,
        n: usize,
        now_ms: i64,
    ) -> Result<Batch<'b, T>, Refusal> {
        if n == 0 {
            return self.lane_may_take().map(|()| Batch::empty());
        }
        if state.is_spread() {
            return self.spread_take(state, n, now_ms);
        }
        if state.seen == state.k || state.seen - state.k < n as u64 {
            state.seen = self.published();
            if state.seen == state.k {
                self.lane_may_take()?;
                return match self.lane_idle(state) {
                    Ok(()) => Err(Refusal::Empty),
                    Err(()) => self.lane_take_slow(state, n, now_ms),
                };
            }
        }
        let taken = (state.seen - state.k).min(n as u64);
        if state.k == state.k_end {
            self.next_k(state);
        }
        let first = Place { segment: state.k_segment, slot: (state.k % SLOTS) as usize };
        self.take_run(state, taken, now_ms)?;
        while state.k > state.k_end {
            self.next_k(state);
        }
        state.set_edge();
        Ok(Batch::run(first, taken as usize))
    }

    /// The step of a take: the ranks `[k, k + taken)`.
    #[inline(always)]
    fn take_run(&self, state: &mut LaneState<T>, taken: u64, now_ms: i64) -> Result<(), Refusal> {
        let expected = words::consume(state.k, state.version, false);
        // ORDERING: Relaxed — a take publishes nothing; it decides against `close` and `stop` on
        // this one word, and continues the release sequence of the step before. Model: take_close
        let taking = if mutated("take_no_cas") {
            // ORDERING: Relaxed — the planted bug: overwrites a close.
            Ok(self.take.consume.swap(expected + taken, Ordering::Relaxed))
        } else {
            // ORDERING: Relaxed — as said above.
            self.take.consume.compare_exchange(
                expected,
                expected + taken,
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
        };
        taking.map_err(|word| self.no_take(word))?;
        state.k += taken;
        // ORDERING: Relaxed — a gauge.
        self.take.last_consume_ms.store(now_ms, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn lane_may_take(&self) -> Result<(), Refusal> {
        // ORDERING: Acquire — not behind a stop or close that returned before.
        let word = self.take.consume.load(Ordering::Acquire);
        if words::flags(word) == 0 { Ok(()) } else { Err(self.no_take(word)) }
    }

    #[cold]
    pub(super) fn no_take(&self, word: u64) -> Refusal {
        if word & CLOSED != 0 {
            self.freeze();
            Refusal::Closed
        } else {
            debug_assert!(word & STOPPED != 0);
            // As `freeze`: once one call is told so, every call that starts later is.
            if !mutated("stopped_no_help") {
                self.stop();
            }
            Refusal::Stopped
        }
    }

    /// `k` is at the end of its segment and something is published from there on.
    #[inline(never)]
    pub(super) fn next_k(&self, state: &mut LaneState<T>) {
        let segment: *const Segment<T> = if state.k_segment.is_null() {
            let head = self.head().expect("a published rank has a segment");
            state.h_segment = head.segment;
            state.h_end = head.base + SLOTS;
            head.segment
        } else {
            Place { segment: state.k_segment, slot: 0 }.segment().next()
        };
        debug_assert!(!segment.is_null());
        state.k_segment = segment;
        state.k_end += SLOTS;
        // The second after it, well before it is needed.
        let mut ahead = Place { segment, slot: 0 };
        for _ in 0..2 {
            let next = ahead.segment().next().cast_const();
            if next.is_null() {
                return;
            }
            ahead.segment = next;
        }
        ahead.segment().prefetch();
    }

    /// Nothing was found ready: the queue becomes idle. Err if something came meanwhile (W11).
    pub(super) fn lane_idle(&self, state: &mut LaneState<T>) -> Result<(), ()> {
        // ORDERING: Acquire — the rank read here may be used.
        let mut word = self.front.publish.load(Ordering::Acquire);
        loop {
            let seen = words::rank(word);
            if seen - state.k > state.above {
                state.seen = seen;
                return Err(());
            }
            if word & (SCHEDULED | CLOSED) != SCHEDULED {
                return Ok(());
            }
            if mutated("idle_no_recheck") {
                // ORDERING: AcqRel — the planted bug: clears the flag whatever was put meanwhile.
                self.front.publish.fetch_and(!SCHEDULED, Ordering::AcqRel);
                return Ok(());
            }
            // ORDERING: AcqRel — decides against put on the one word; Acquire failure as the load.
            // Model: take_nothing_put
            match self.front.publish.compare_exchange(
                word,
                word & !SCHEDULED,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// End of a turn: leaves the queue scheduled exactly if something is ready; answers that.
    pub(crate) fn lane_leave(&self, state: &mut LaneState<T>) -> bool {
        loop {
            // ORDERING: Acquire — as `lane_idle`.
            let word = self.front.publish.load(Ordering::Acquire);
            if word & CLOSED != 0 {
                return false;
            }
            if state.again == 0 && self.lane_idle(state).is_ok() {
                return false;
            }
            if word & SCHEDULED != 0 {
                return true;
            }
            // ORDERING: AcqRel — decides against put on the one word. Model: take_nothing_put
            let raised = self.front.publish.compare_exchange(
                word,
                word | SCHEDULED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if raised.is_ok() {
                return true;
            }
        }
    }

    /// Finishes everything in flight (W4).
    #[inline(always)]
    pub(crate) fn lane_commit(
        &self,
        state: &mut LaneState<T>,
        sink: impl Sink<T>,
    ) -> Result<Committed, Refusal> {
        if state.k >= state.commit_edge || state.h == state.k || !sink.is_idle() {
            return self.lane_commit_slow(state, sink);
        }
        debug_assert!(!state.is_spread());
        // All within one segment, and the next message is known: one step, and some own words.
        let next = Place { segment: state.k_segment, slot: (state.k % SLOTS) as usize };
        let segment = next.segment();
        let Some(safe_offset) = self.raise_from(state, segment.offset(next.slot)) else {
            return self.lane_commit_slow(state, sink);
        };
        let before = segment.bytes_before((state.h % SLOTS) as usize);
        let bytes = segment.bytes_before(next.slot) - before;
        Ok(self.committed(state, safe_offset, bytes))
    }

    #[inline(never)]
    fn lane_commit_slow(
        &self,
        state: &mut LaneState<T>,
        mut sink: impl Sink<T>,
    ) -> Result<Committed, Refusal> {
        if state.in_flight() == 0 {
            return if self.progress_closed() {
                Err(Refusal::Closed)
            } else {
                Ok(Committed::Nothing)
            };
        }
        if state.is_spread() {
            let committed = self.spread_commit(state, sink);
            state.set_edge();
            return committed;
        }
        let next = self.next_safe(state, state.k);
        let Some(mut safe_offset) = self.raise_progress(next) else {
            self.lane_close(state, &mut sink);
            return Err(Refusal::Closed);
        };
        if state.seen == state.k {
            safe_offset = self.look_again(state, state.k, safe_offset);
        }
        let from = (state.h_segment, state.h_end, state.h);
        let bytes = Self::run_bytes(from, state.k);
        let committed = self.committed(state, safe_offset, bytes);
        if !sink.is_idle() {
            self.hand_out(from, state.h, &mut sink);
        }
        if state.h >= state.h_end {
            self.recycle(state);
        }
        state.set_edge();
        Ok(committed)
    }

    /// What a compact commit leaves behind.
    #[inline(always)]
    fn committed(&self, state: &mut LaneState<T>, safe_offset: i64, bytes: u64) -> Committed {
        let finished = state.k - state.h;
        state.h = state.k;
        state.finished = state.k;
        state.finished_bytes += bytes;
        self.tell(state);
        Committed::Finished { safe_offset, finished: finished as u32 }
    }

    pub(super) fn progress_closed(&self) -> bool {
        // ORDERING: Acquire — not behind a close that returned before.
        let closed = self.progress.load(Ordering::Acquire) & CLOSED != 0;
        if closed {
            self.freeze();
        }
        closed
    }

    /// The safe offset once everything below `rank` is finished: the next message's, or the pull
    /// offset (W3).
    #[inline(always)]
    pub(super) fn next_safe(&self, state: &mut LaneState<T>, rank: u64) -> i64 {
        if rank >= state.seen {
            if mutated("published_before_pull") {
                state.seen = self.published();
                crate::sync::hint::spin_loop();
                return if rank < state.seen {
                    self.offset_of(state, rank)
                } else {
                    self.pull_word()
                };
            }
            let (pull, published) = self.pulled();
            state.seen = published;
            if rank >= state.seen {
                return pull;
            }
        }
        self.offset_of(state, rank)
    }

    /// Offset of a published rank not below `k`, or below it and at or above `h`.
    #[inline(always)]
    pub(super) fn offset_of(&self, state: &LaneState<T>, rank: u64) -> i64 {
        if rank < state.k_end && rank >= state.k_end - SLOTS {
            let here = Place { segment: state.k_segment, slot: (rank % SLOTS) as usize };
            return here.segment().offset(here.slot);
        }
        let hint = if rank >= state.k_end && state.k_end > 0 {
            // SAFETY: `k_segment` is set once `k_end` is above 0, and segments live as long as the
            // window.
            At { segment: unsafe { &*state.k_segment }, base: state.k_end - SLOTS }
        } else {
            state.h_at()
        };
        let at = self.segment_of(rank, Some(hint)).expect("an unfinished rank has a segment");
        at.segment.offset((rank - at.base) as usize)
    }

    /// As `raise_progress`, with a guess where the safe offset is: nobody else moves it while
    /// messages are in flight, except over a gap before the first of them.
    #[inline(always)]
    fn raise_from(&self, state: &mut LaneState<T>, next: i64) -> Option<i64> {
        // ORDERING: AcqRel — as `raise_progress`. Models: commit_close, commit_snapshot
        let success = ordering("progress_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        let guess = || {
            // ORDERING: as said above.
            self.progress.compare_exchange(state.safe, next as u64, success, Ordering::Relaxed)
        };
        if mutated("commit_no_cas") || guess().is_err() {
            state.safe = self.raise_progress(next)? as u64;
            return Some(state.safe as i64);
        }
        state.safe = next as u64;
        Some(next)
    }

    /// Moves the safe offset up to `next`; `None` if the queue is closed. Decides against close.
    #[inline(never)]
    pub(super) fn raise_progress(&self, next: i64) -> Option<i64> {
        // ORDERING: Relaxed — the compare-and-swap decides.
        let mut word = self.progress.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                self.freeze();
                return None;
            }
            let to = next.max(words::offset(word));
            if mutated("commit_no_cas") {
                // ORDERING: AcqRel — the planted bug: overwrites a close.
                self.progress.swap(to as u64, Ordering::AcqRel);
                return Some(to);
            }
            // ORDERING: AcqRel — Release: who reads the safe offset sees what finished below it;
            // Acquire: continues the chain of earlier moves. Models: commit_close, commit_snapshot
            let success = ordering("progress_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            match self.progress.compare_exchange(word, to as u64, success, Ordering::Relaxed) {
                Ok(_) => return Some(to),
                Err(now) => word = now,
            }
        }
    }

    /// After the safe offset was set to a pull offset: that may have moved unseen (`advance`, a put
    /// above a gap), and its mover may have missed ours. Whoever comes second sees the other.
    #[inline(never)]
    pub(super) fn look_again(&self, state: &mut LaneState<T>, rank: u64, set: i64) -> i64 {
        if mutated("commit_no_look_again") {
            return set;
        }
        // ORDERING: SeqCst fence — pairs with those in `put::advance` and `put::carry_over_gap`.
        // Model: advance_commit
        if !mutated("commit_no_fence") {
            fence_after_rmw();
        }
        let next = self.next_safe(state, rank);
        if next <= set {
            return set;
        }
        // ORDERING: Relaxed — the compare-and-swap decides.
        let mut word = self.progress.load(Ordering::Relaxed);
        while word & CLOSED == 0 && words::offset(word) < next {
            // ORDERING: AcqRel — as `raise_progress`.
            match self.progress.compare_exchange(
                word,
                next as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return next,
                Err(now) => word = now,
            }
        }
        set
    }

    /// Publishes the tally of the lane. What it finishes it releases at once; `released` counts the
    /// others.
    #[inline(always)]
    pub(super) fn tell(&self, state: &LaneState<T>) {
        let tally = self.first_tally();
        // ORDERING: Release — pairs with `finished` and `bytes`. Model: reads_bounds
        tally.bytes.store(state.finished_bytes, Ordering::Release);
        tally.count.store(state.finished, Ordering::Release);
    }

    /// Bytes of the ranks `[from, to)`; `end` is where `segment` ends.
    fn run_bytes((mut segment, mut end, from): (*const Segment<T>, u64, u64), to: u64) -> u64 {
        let mut bytes = 0;
        let mut slot = from + SLOTS - end;
        while end < to {
            let here = Place { segment, slot: 0 }.segment();
            bytes += here.bytes_before(SLOTS as usize) - here.bytes_before(slot as usize);
            (segment, end, slot) = (here.next(), end + SLOTS, 0);
        }
        let here = Place { segment, slot: 0 }.segment();
        let upto = (to + SLOTS - end) as usize;
        bytes + here.bytes_before(upto) - here.bytes_before(slot as usize)
    }

    /// Moves out the payloads of the finished ranks `[from, to)`; `end` is where `segment` ends.
    fn hand_out(
        &self,
        (mut segment, mut end, from): (*const Segment<T>, u64, u64),
        to: u64,
        sink: &mut impl Sink<T>,
    ) {
        for rank in from..to {
            if rank == end {
                segment = Place { segment, slot: 0 }.segment().next();
                end += SLOTS;
            }
            let place = Place { segment, slot: (rank % SLOTS) as usize };
            // SAFETY: in flight until the caller's commit, which won; the loan is the caller's and
            // over.
            let payload = unsafe { place.segment().take_payload(place.slot) };
            sink.give(place.segment().offset(place.slot), payload);
        }
    }

    /// Returns segments below `h` to the pool.
    #[inline(never)]
    pub(super) fn recycle(&self, state: &mut LaneState<T>) {
        while state.h >= state.h_end {
            let old = Place { segment: state.h_segment, slot: 0 }.segment();
            let next = old.next();
            if next.is_null() {
                break;
            }
            let next = Place { segment: next.cast_const(), slot: 0 };
            // ORDERING: Release — pairs with `head`. A swap, since the puller swaps it too, once.
            self.head.swap(pack_head(next.segment(), state.h_end), Ordering::Release);
            if old.is_run_first() {
                self.index.remove(old.base_offset());
            }
            if std::ptr::eq(state.k_segment, state.h_segment) {
                state.k_segment = next.segment;
                state.k_end += SLOTS;
            }
            state.h_segment = next.segment;
            state.h_end += SLOTS;
            self.pool.give_back(old);
        }
    }

    /// Makes everything in flight ready again (W5); answers how many.
    pub(crate) fn lane_rollback(
        &self,
        state: &mut LaneState<T>,
        mut sink: impl Sink<T>,
    ) -> Result<u32, Refusal> {
        if state.in_flight() == 0 {
            return if self.progress_closed() { Err(Refusal::Closed) } else { Ok(0) };
        }
        let rolled = state.in_flight() as u32;
        if state.is_spread() {
            let rolled = self.spread_rollback(state, &mut sink).map(|()| rolled);
            state.set_edge();
            return rolled;
        }
        self.end_deliveries(state);
        if mutated("rollback_in_steps") {
            // The planted bug: one message after the other.
            for k in (state.h + 1..state.k).rev() {
                let _ = self.set_consume(state.consume(k + 1), state.consume(k));
            }
            state.k = state.h + 1;
        }
        self.set_consume(state.consume(state.k), state.consume(state.h)).map_err(|()| {
            self.lane_close(state, &mut sink);
            Refusal::Closed
        })?;
        state.k = state.h;
        state.k_segment = state.h_segment;
        state.k_end = state.h_end;
        state.set_edge();
        Ok(rolled)
    }

    /// The deliveries of everything in flight end, in a compact state.
    fn end_deliveries(&self, state: &LaneState<T>) {
        let (mut segment, mut end, mut rank) = (state.h_segment, state.h_end, state.h);
        while rank < state.k {
            if rank == end {
                segment = Place { segment, slot: 0 }.segment().next();
                end += SLOTS;
            }
            let run = end.min(state.k) - rank;
            let place = Place { segment, slot: (rank % SLOTS) as usize };
            place.segment().end_deliveries(place.slot, run as usize, 0);
            rank += run;
        }
    }

    /// Replaces the consume word, whatever `stop` does; Err once closed.
    pub(super) fn set_consume(&self, from: u64, to: u64) -> Result<(), ()> {
        let mut stopped = 0;
        loop {
            // ORDERING: AcqRel — as `lane_take`; Acquire, since after CLOSED we act on what the
            // closer did.
            // Models: rollback_observer, requeue_snapshot
            let success = ordering("consume_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            // ORDERING: as said above.
            match self.take.consume.compare_exchange(
                from | stopped,
                to | stopped,
                success,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(now) if now & CLOSED != 0 => {
                    self.freeze();
                    return Err(());
                }
                Err(now) => stopped = now & STOPPED,
            }
        }
    }

    /// Everything in flight once more.
    pub(crate) fn lane_in_flight<'b>(&'b self, state: &'b mut LaneState<T>) -> Batch<'b, T> {
        let mut out = std::mem::take(&mut state.out);
        out.clear();
        self.for_in_flight(state, |place, _| out.push(Taken::in_lane(place)));
        state.out = out;
        Batch::list(&state.out)
    }

    /// The queue is closed: the loans of everything in flight end here, and their payloads with
    /// them.
    pub(crate) fn lane_close(&self, state: &mut LaneState<T>, sink: &mut impl Sink<T>) {
        let mut released = 0;
        self.for_in_flight(state, |place, _| {
            let segment = place.segment();
            released += 1;
            if !sink.is_idle() {
                // SAFETY: in flight, so lent to us, and the closer leaves what is lent to the
                // lender.
                let payload = unsafe { segment.take_payload(place.slot) };
                sink.give(segment.offset(place.slot), payload);
            }
        });
        // Nothing is in flight for later verbs to find.
        (state.again, state.above) = (0, 0);
        (state.h, state.finished) = (state.k, state.k);
        Self::add_released(&self.tallies[0], released);
    }
}
