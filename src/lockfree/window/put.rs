//! The puller's side: `put` and `advance`.
//!
//! Order of a put, which is what makes it safe (W3): the slots; then the put record of the other
//! parity; then the publish word, which makes the batch visible as a whole and is the linearization
//! point; only then the pull word. A finisher that finds nothing outstanding reads the pull word
//! *before* the publish word, so an offset it takes from there never covers a message it did not
//! see. Models: put_take, put_commit, put_complete.

use super::lookup::At;
use super::{SLOTS, Window, pack_head};
use crate::lockfree::index::{OffsetIndex, Run};
use crate::lockfree::meta::State;
use crate::lockfree::pool::Spare;
use crate::lockfree::segment::Segment;
use crate::lockfree::words::{self, CLOSED, PARITY, SCHEDULED, STOPPED};
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{fence_after_rmw, mutated};
use crate::types::{Advanced, Incoming, Put, PutError, Refusal, RefusedBecause};

/// What only the puller knows.
pub(crate) struct PullerState<T> {
    pub(super) spare: Spare<T>,
    tail: *const Segment<T>,
    tail_end: u64,
    rank: u64,
    next: i64,
    pub(super) highest: i64,
    bytes: u64,
    lag: i64,
    finished_seen: u64,
    order: Vec<u32>,
    refused: Vec<(u32, RefusedBecause)>,
}

/// What a batch put into its slots.
struct Filled {
    first: i64,
    highest: i64,
    bytes: u64,
}

// SAFETY: `tail` points to a segment of the window this state belongs to.
unsafe impl<T: Send> Send for PullerState<T> {}

impl<T> PullerState<T> {
    pub(super) fn new(spare: Spare<T>, start_offset: i64) -> Self {
        Self {
            spare,
            tail: std::ptr::null(),
            tail_end: 0,
            rank: 0,
            next: start_offset,
            highest: -1,
            bytes: 0,
            lag: 0,
            finished_seen: 0,
            order: Vec::new(),
            refused: Vec::new(),
        }
    }
}

impl<T> Window<T> {
    /// As `put_raw`; on Ok the vector is emptied, otherwise it is left as it was.
    pub(crate) fn put_vec(
        &self,
        state: &mut PullerState<T>,
        batch: &mut Vec<Incoming<T>>,
        now_ms: i64,
        broker_max: Option<i64>,
        refused: impl FnMut(i64, T, RefusedBecause),
    ) -> Result<Put, PutError> {
        let raw = (batch.as_ptr(), batch.len());
        // SAFETY: shorter than before.
        let moved = || unsafe { batch.set_len(0) };
        // SAFETY: on Ok every payload was moved out, and `moved` sets the length to 0 before
        // anything can look, also if `refused` panics; on Err nothing was moved.
        unsafe { self.put_raw(state, raw, (now_ms, broker_max), moved, refused) }
    }

    /// As `put_raw`, for plain data.
    pub(crate) fn put_slice(
        &self,
        state: &mut PullerState<T>,
        batch: &[Incoming<T>],
        now_ms: i64,
        broker_max: Option<i64>,
        refused: impl FnMut(i64, T, RefusedBecause),
    ) -> Result<Put, PutError>
    where
        T: Copy,
    {
        let raw = (batch.as_ptr(), batch.len());
        // SAFETY: copying out of a slice of plain data.
        unsafe { self.put_raw(state, raw, (now_ms, broker_max), || (), refused) }
    }

    /// Accepts a batch.
    ///
    /// # Safety
    /// `batch` and `len` are a valid slice. When `moved` is called, all its payloads were
    /// or will be moved out, and the caller must not use them again.
    #[inline(always)]
    unsafe fn put_raw(
        &self,
        state: &mut PullerState<T>,
        (batch, len): (*const Incoming<T>, usize),
        (now_ms, broker_max): (i64, Option<i64>),
        moved: impl FnOnce(),
        refused: impl FnMut(i64, T, RefusedBecause),
    ) -> Result<Put, PutError> {
        self.may_pull()?;
        let fast = {
            // SAFETY: a valid slice (caller); the borrow ends before anything is moved.
            let view = unsafe { std::slice::from_raw_parts(batch, len) };
            let fast = ascends(view, state.next)?;
            if !fast {
                self.sort_out(state, view);
            }
            fast
        };
        let accepted = if fast { len } else { state.order.len() };
        self.check_limit(state, accepted as u64)?;
        let end = state.rank + accepted as u64;
        if end > state.tail_end {
            let segments = (end - state.tail_end).div_ceil(SLOTS);
            if !self.pool.reserve(&mut state.spare, segments) {
                return Err(PutError::NoMemory);
            }
        }
        let before = (state.next, state.highest);
        let filled = if fast {
            // SAFETY: as for this function: each payload is moved once, to a slot not yet
            // published.
            unsafe { self.fill(state, batch, accepted, now_ms, |_, position| position) }
        } else {
            let order = |state: &PullerState<T>, position: usize| state.order[position] as usize;
            // SAFETY: as above; `order` has no index twice.
            unsafe { self.fill(state, batch, accepted, now_ms, order) }
        };
        if let Some(max) = broker_max.filter(|_| len > 0) {
            // SAFETY: in range of the slice.
            let last = unsafe { batch.add(len - 1) };
            // SAFETY: plain data, still there after the payload was moved.
            note_lag(state, max, unsafe { (*last).offset });
        }
        if accepted > 0 && filled.first > before.0 {
            self.note_gap(before.1, filled.first);
        }
        // ORDERING: Relaxed — a gauge.
        self.front.last_pull_ms.store(now_ms, Ordering::Relaxed);
        let schedule = self.publish(state, end, filled.highest, state.bytes + filled.bytes)?;
        moved();
        state.rank = end;
        state.highest = filled.highest;
        state.bytes += filled.bytes;
        if accepted > 0 {
            state.next = filled.highest + 1;
            self.raise_pull(state.next, true);
            if filled.first > before.0 {
                self.carry_over_gap(before.1, filled.first);
            }
        }
        let mut put = Put { accepted: accepted as u32, schedule, ..Put::default() };
        if !fast {
            // SAFETY: as for this function; the refused indexes were not moved above.
            unsafe { hand_out_refused(state, batch, &mut put, refused) };
        }
        Ok(put)
    }

    /// Writes the accepted messages into slots that are not published yet.
    ///
    /// # Safety
    /// As `put_raw`. If the publish word turns out closed afterwards, the slots are never
    /// published and never released.
    #[inline(always)]
    unsafe fn fill(
        &self,
        state: &mut PullerState<T>,
        batch: *const Incoming<T>,
        accepted: usize,
        now_ms: i64,
        index: impl Fn(&PullerState<T>, usize) -> usize,
    ) -> Filled {
        let mut filled = Filled { first: 0, highest: state.highest, bytes: 0 };
        let (mut position, mut rank) = (0, state.rank);
        while position < accepted {
            // SAFETY: in range of the slice (caller).
            let next = unsafe { batch.add(index(state, position)) };
            // SAFETY: a message that is still there.
            let offset = unsafe { (*next).offset };
            if rank == state.tail_end {
                self.grow(state, rank, offset);
            }
            if position == 0 {
                filled.first = offset;
            }
            // SAFETY: `tail` is the segment that holds `rank`; segments live as long as the window.
            let tail = unsafe { &*state.tail };
            let slot = (rank % SLOTS) as usize;
            tail.stamp(slot, now_ms);
            let of_segment = (tail.seq(), tail.base_offset(), self.concurrent);
            let run = (accepted - position).min((state.tail_end - rank) as usize);
            let start = tail.bytes_before(slot);
            let mut bytes = start;
            for step in 0..run {
                // SAFETY: in range of the slice (caller).
                let message = unsafe { batch.add(index(state, position + step)) };
                // SAFETY: moved once (caller).
                let message = unsafe { message.read() };
                filled.highest = message.offset;
                // SAFETY: above the published rank, so the slot is ours, and its last payload is
                // gone.
                bytes = unsafe { tail.fill(slot + step, message, bytes, of_segment) };
            }
            filled.bytes += bytes - start;
            position += run;
            rank += run as u64;
        }
        filled
    }

    /// The flags of the publish word.
    #[inline(always)]
    fn may_pull(&self) -> Result<(), PutError> {
        // ORDERING: Relaxed — a first look; publishing decides.
        let word = self.front.publish.load(Ordering::Relaxed);
        if word & (CLOSED | STOPPED) == 0 { Ok(()) } else { Err(self.no_pull(word)) }
    }

    #[cold]
    fn no_pull(&self, word: u64) -> PutError {
        if word & CLOSED != 0 {
            self.freeze();
            PutError::Refused(Refusal::Closed)
        } else {
            PutError::Refused(Refusal::Stopped)
        }
    }

    #[inline(always)]
    fn check_limit(&self, state: &mut PullerState<T>, accepted: u64) -> Result<(), PutError> {
        if state.rank + accepted - state.finished_seen > self.outstanding_max {
            state.finished_seen = self.finished();
            if state.rank + accepted - state.finished_seen > self.outstanding_max {
                return Err(PutError::Refused(Refusal::Limit));
            }
        }
        Ok(())
    }

    /// Makes ranks below `rank` visible; answers whether the queue became scheduled.
    #[inline(always)]
    fn publish(
        &self,
        state: &PullerState<T>,
        rank: u64,
        highest: i64,
        bytes: u64,
    ) -> Result<bool, PutError> {
        // ORDERING: Relaxed — only the flags can be stale; the compare-and-swap decides.
        let mut word = self.front.publish.load(Ordering::Relaxed);
        if mutated("pull_before_publish") && rank > state.rank {
            self.raise_pull(highest + 1, true);
        }
        if rank == state.rank {
            // Nothing accepted: no new parity, but the lag may be news, and somebody may have to be
            // told.
            // ORDERING: Relaxed — a gauge.
            self.front.records[words::put_record_of(word)].lag.store(state.lag, Ordering::Relaxed);
            return self.schedule_if_ready();
        }
        let record = &self.front.records[words::put_record_of(word ^ PARITY)];
        // ORDERING: Release fence — a reader that is late, and finds here what is written now, also
        // sees the publish word move on from the last use of this record. Model:
        // put_thrice_snapshot
        if !mutated("put_record_no_fence") && !mutated("publish_relaxed") {
            fence(Ordering::Release);
        }
        // ORDERING: Relaxed — published by the compare-and-swap; no reader of the current parity
        // looks here.
        record.bytes.store(bytes, Ordering::Relaxed);
        record.highest.store(highest, Ordering::Relaxed);
        record.lag.store(state.lag, Ordering::Relaxed);
        loop {
            if word & (CLOSED | STOPPED) != 0 {
                return Err(self.no_pull(word));
            }
            let schedule = if self.concurrent { 0 } else { SCHEDULED };
            let next = words::with_rank(word ^ PARITY, rank) | schedule;
            // ORDERING: Release — makes slots and record visible to whoever acquires the word;
            // AcqRel as `close` may follow. Models: put_take, put_close
            let success =
                crate::sync::ordering("publish_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            match self.front.publish.compare_exchange(word, next, success, Ordering::Relaxed) {
                Ok(_) => return Ok(!self.concurrent && word & SCHEDULED == 0),
                Err(now) => word = now,
            }
        }
    }

    /// An empty put: tells that a turn is due if something is ready and nobody was told (W11).
    #[cold]
    fn schedule_if_ready(&self) -> Result<bool, PutError> {
        loop {
            // ORDERING: Acquire — `has_ready` follows.
            let word = self.front.publish.load(Ordering::Acquire);
            if word & (CLOSED | STOPPED) != 0 {
                return Err(self.no_pull(word));
            }
            if self.concurrent || word & SCHEDULED != 0 || !self.has_ready() {
                return Ok(false);
            }
            // ORDERING: AcqRel — decides against a take that finds nothing and against close.
            let done = self.front.publish.compare_exchange(
                word,
                word | SCHEDULED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if done.is_ok() {
                return Ok(true);
            }
        }
    }

    /// Raises the pull word; false if it was closed before. A put that is published raises it also
    /// then.
    #[inline(always)]
    fn raise_pull(&self, next: i64, published: bool) -> bool {
        // ORDERING: Relaxed — only the puller changes the offset.
        let mut word = self.front.pull.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 && !published {
                return false;
            }
            // ORDERING: Release — who acquires this offset also sees the messages below it, which
            // were published before. Model: put_commit
            let success =
                crate::sync::ordering("pull_relaxed", Ordering::Release, Ordering::Relaxed);
            let to = next as u64 | word & CLOSED;
            match self.front.pull.compare_exchange(word, to, success, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// The batch about to be published comes above a gap: no reader must count that as outstanding.
    /// Nothing will ever be put there, so a record may keep it.
    #[cold]
    fn note_gap(&self, old_highest: i64, first: i64) {
        // ORDERING: Relaxed — only the puller changes the parity.
        let word = self.front.publish.load(Ordering::Relaxed);
        let record = &self.front.records[words::put_record_of(word ^ PARITY)];
        // ORDERING: Release fence — as in `publish`.
        fence(Ordering::Release);
        // ORDERING: Relaxed — published by the publish word. Model: put_gap_span
        record.gap_below.store(old_highest, Ordering::Relaxed);
        record.gap_first.store(first, Ordering::Relaxed);
    }

    /// The queue was empty up to a gap: the safe offset goes on to the first message (W3 at rest).
    #[cold]
    fn carry_over_gap(&self, old_highest: i64, first: i64) {
        // ORDERING: SeqCst fence — pairs with the one in `lane::look_again` and
        // `crowd::settle_progress`: either the finisher sees the new pull word, or we see its
        // progress. Model: put_gap_commit
        if !mutated("gap_no_fence") {
            fence_after_rmw();
        }
        // ORDERING: Relaxed — the compare-and-swap decides.
        let mut word = self.progress.load(Ordering::Relaxed);
        // Everything before this batch is finished exactly if the safe offset is above it.
        while word & CLOSED == 0 && words::offset(word) > old_highest && words::offset(word) < first
        {
            // ORDERING: AcqRel — as every move of the safe offset.
            match self.progress.compare_exchange(
                word,
                first as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        if word & CLOSED != 0 {
            // Closed while this put runs, perhaps without looking over the gap: nothing that starts
            // after it may still find the queue open.
            self.freeze();
        }
    }

    /// Links a fresh segment for `rank`, whose first message has `offset`.
    #[inline(never)]
    fn grow(&self, state: &mut PullerState<T>, rank: u64, offset: i64) {
        let segment = self.pool.take(&mut state.spare);
        let marked = if self.concurrent { u64::MAX } else { 0 };
        let stray = segment.assign(rank, offset, marked);
        if stray > 0 {
            // ORDERING: Relaxed — a hint for takers.
            self.crowd.again.fetch_sub(u64::from(stray), Ordering::Relaxed);
        }
        if segment.is_run_first() {
            let address = std::ptr::from_ref(segment).expose_provenance();
            self.index.insert(offset, Run { address, base_rank: rank });
        }
        if state.tail.is_null() {
            // ORDERING: Release — pairs with `head`; once, before the first publish.
            self.head.swap(pack_head(segment, rank), Ordering::Release);
        } else {
            // SAFETY: the tail is a segment of this window.
            unsafe { &*state.tail }.link(std::ptr::from_ref(segment).cast_mut());
        }
        state.tail = segment;
        state.tail_end = rank + SLOTS;
    }

    /// The slow path of `put`: which messages are accepted, in what order, and why the others are
    /// not.
    #[cold]
    fn sort_out(&self, state: &mut PullerState<T>, batch: &[Incoming<T>]) {
        state.order.clear();
        state.refused.clear();
        for (index, message) in batch.iter().enumerate() {
            if message.offset >= state.next {
                state.order.push(index as u32);
            } else if self.is_outstanding(message.offset) {
                state.refused.push((index as u32, RefusedBecause::Duplicate));
            } else {
                state.refused.push((index as u32, RefusedBecause::Stale));
            }
        }
        let offset = |index: &u32| batch[*index as usize].offset;
        state.order.sort_by_key(offset);
        let mut last = None;
        let refused = &mut state.refused;
        state.order.retain(|index| {
            let copy = last == Some(offset(index));
            last = Some(offset(index));
            if copy {
                refused.push((*index, RefusedBecause::Duplicate));
            }
            !copy
        });
        state.refused.sort_unstable_by_key(|(index, _)| *index);
    }

    /// Whether a message was put and is not finished.
    fn is_outstanding(&self, offset: i64) -> bool {
        if offset < self.safe_offset() {
            return false;
        }
        let Some((At { segment, .. }, slot)) = self.find(offset) else {
            return false;
        };
        if self.concurrent {
            return segment.load_meta(slot).state() != State::Done;
        }
        // ORDERING: Acquire — the lane's bits; a message just being finished may be told either
        // way.
        segment.done.load(Ordering::Acquire) & (1 << slot) == 0
    }

    /// See W9.
    pub(crate) fn advance(
        &self,
        state: &mut PullerState<T>,
        next: i64,
        now_ms: i64,
    ) -> Result<Advanced, PutError> {
        self.may_pull()?;
        if next < 0 {
            return Err(PutError::InvalidOffset { index: 0, offset: next });
        }
        if next < state.next {
            return Err(PutError::Refused(Refusal::Stale));
        }
        // ORDERING: Relaxed — a gauge.
        self.front.last_pull_ms.store(now_ms, Ordering::Relaxed);
        if next == state.next {
            // Nothing to decide: `may_pull` found the publish word open, the last one that a close
            // sets, and nobody says or shows that the queue is closed before that is set
            // (`freeze`). So this comes before the close, whatever else was told meanwhile.
            return Ok(Advanced { safe_offset: None });
        }
        if !self.raise_pull(next, false) {
            self.freeze();
            return Err(PutError::Refused(Refusal::Closed));
        }
        state.next = next;
        // ORDERING: SeqCst fence — pairs with `lane::look_again` and `crowd::settle_progress`.
        // Model: advance_commit
        if !mutated("advance_no_fence") {
            fence_after_rmw();
        }
        // ORDERING: Relaxed — the compare-and-swap decides.
        let mut word = self.progress.load(Ordering::Relaxed);
        loop {
            // Nothing is outstanding exactly if the safe offset is above everything put.
            let empty = words::offset(word) > state.highest;
            if word & CLOSED != 0 {
                self.freeze();
                // The close that followed took our pull offset for its final one.
                let took = words::offset(word) == next;
                return Ok(Advanced { safe_offset: took.then_some(next) });
            }
            if !empty || words::offset(word) >= next {
                return Ok(Advanced { safe_offset: None });
            }
            // ORDERING: AcqRel — as every move of the safe offset.
            match self.progress.compare_exchange(
                word,
                next as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(Advanced { safe_offset: Some(next) }),
                Err(now) => word = now,
            }
        }
    }
}

/// Upstream's `msgAccCnt`: kept if it is not positive.
fn note_lag<T>(state: &mut PullerState<T>, broker_max: i64, batch_last: i64) {
    let lag = broker_max.wrapping_sub(batch_last);
    if lag > 0 {
        state.lag = lag;
    }
}

/// Whether all offsets ascend from `next` on; an offset that cannot be one is an error.
#[inline(always)]
fn ascends<T>(batch: &[Incoming<T>], next: i64) -> Result<bool, PutError> {
    let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
        return Ok(true);
    };
    let rises = |pair: &[Incoming<T>; 2]| pair[0].offset < pair[1].offset;
    let inside = first.offset >= next && last.offset != i64::MAX;
    if inside && batch.array_windows().all(rises) { Ok(true) } else { irregular(batch) }
}

#[cold]
fn irregular<T>(batch: &[Incoming<T>]) -> Result<bool, PutError> {
    match batch.iter().position(|message| message.offset < 0 || message.offset == i64::MAX) {
        Some(index) => Err(PutError::InvalidOffset { index, offset: batch[index].offset }),
        None => Ok(false),
    }
}

/// Reports and hands over what `sort_out` refused.
///
/// # Safety
/// As `put_raw`: the payloads at the refused indexes are moved here, once.
#[cold]
unsafe fn hand_out_refused<T>(
    state: &mut PullerState<T>,
    batch: *const Incoming<T>,
    put: &mut Put,
    mut refused: impl FnMut(i64, T, RefusedBecause),
) {
    for (index, because) in &state.refused {
        match because {
            RefusedBecause::Duplicate => put.duplicate += 1,
            RefusedBecause::Stale => put.stale += 1,
        }
        // SAFETY: in range (caller).
        let message = unsafe { batch.add(*index as usize) };
        // SAFETY: not moved before (caller).
        let message = unsafe { message.read() };
        refused(message.offset, message.payload, *because);
    }
}
