//! Segments: 64 consecutive messages each, slots by rank.
//!
//! A segment is type-stable: once allocated it stays a segment of this window until the window is
//! dropped, so a late thread may always *read* it. What it reads belongs to the message it means
//! only if `base_rank` is the same before and after (`valid_still`), or if a compare-and-swap on
//! the slot's state word succeeds, which holds the segment's number (`meta`).
//!
//! | field | written by | when |
//! |---|---|---|
//! | base_rank, base_offset, batch times, delta, bytes, payload | puller | before the publish word covers them |
//! | next | puller | when the following segment is made ready |
//! | meta | whoever moves the message | see `meta`; in the lane only once `marked` |
//! | done, again | consumers; puller at reuse | bit per slot: finished; ready again |
//! | offer | lane, closer; puller at reuse | bit per slot: who clears it has the payload |
//! | marked | lane; puller before publishing | bit per slot: the state word counts |
//! | late | consumers (concurrent mode) | slots finished but still lent, and PASSED once the head went past |
//! | pool_next | who returns it | while in the pool |
//!
//! Offsets are stored as 16-bit distances from the first; a slot farther away has FAR there, and
//! its offset is in the side block, which a segment gets once and keeps.
//!
//! Sizes are stored as running sums, so that the bytes of any run of slots are one subtraction. A
//! sum that does not fit has HEAVY there and is in the side block.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use super::meta::{Meta, State, seq_of};
use crate::config_consts::{HEADER_TIMES, RUN_SEGMENTS, SEGMENT_SLOTS};
use crate::sync::PlainLoad;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use crate::types::Incoming;

const SLOTS: u64 = SEGMENT_SLOTS as u64;
const FAR: u16 = u16::MAX;
const HEAVY: u32 = u32::MAX;
/// `done` of a segment that is wholly finished.
pub(crate) const FULL: u64 = u64::MAX >> (64 - SEGMENT_SLOTS);
/// `base_rank` while the segment belongs to nobody.
const NOWHERE: u64 = u64::MAX;
const PASSED: u32 = 1 << 16;

/// What few segments need: far offsets, huge messages, many small batches, times of taking.
struct Side {
    offsets: [AtomicI64; SEGMENT_SLOTS],
    bytes: [AtomicI64; SEGMENT_SLOTS + 1],
    put_ms: [AtomicI64; SEGMENT_SLOTS],
    taken_ms: [AtomicI64; SEGMENT_SLOTS],
}

/// One state word a slot; see `meta`.
type States = [AtomicU64; SEGMENT_SLOTS];

/// What consuming reads of a message lies together. The state words, which a lane hardly looks at,
/// are a block of their own: from the start in concurrent mode, else once one is marked.
#[repr(C)]
pub(crate) struct Segment<T> {
    base_rank: AtomicU64,
    base_offset: AtomicI64,
    next: AtomicPtr<Segment<T>>,
    /// Slots whose state word means something; the others are as just put, with no attempts.
    marked: AtomicU64,
    side: AtomicPtr<Side>,
    states: AtomicPtr<States>,
    batch_mask: AtomicU64,
    batch_ms: [AtomicI64; HEADER_TIMES],
    pub(crate) done: AtomicU64,
    pub(crate) again: AtomicU64,
    /// Lane: slots below the consume rank whose payload is left to a closer; see `spread`.
    offer: AtomicU64,
    pub(super) pool_next: AtomicPtr<Segment<T>>,
    /// Every segment of the window, for its drop; written once, at allocation.
    pub(super) all_next: *mut Segment<T>,
    payload: [UnsafeCell<MaybeUninit<T>>; SEGMENT_SLOTS],
    late: AtomicU32,
    /// Bytes of the slots before each, and of all; the first stays 0.
    bytes: [AtomicU32; SEGMENT_SLOTS + 1],
    delta: [AtomicU16; SEGMENT_SLOTS],
}

/// The state words of a segment, for a loop.
pub(crate) struct LaneMetas<'s> {
    marked: u64,
    states: Option<&'s States>,
}

impl LaneMetas<'_> {
    #[inline(always)]
    pub(crate) fn get(&self, slot: usize) -> Meta {
        match self.states {
            // ORDERING: Relaxed — as `lane_meta`.
            Some(states) if self.marked & (1 << slot) != 0 => {
                Meta(states[slot].load(Ordering::Relaxed))
            }
            _ => Meta::fresh(0, 0),
        }
    }
}

impl<T> Segment<T> {
    /// Null when the allocator refuses.
    pub(super) fn allocate(all_next: *mut Segment<T>, crowd: bool) -> *mut Segment<T> {
        let states = if crowd { try_new(Self::no_states()) } else { ptr::null_mut() };
        if crowd && states.is_null() {
            return ptr::null_mut();
        }
        let segment = Self {
            base_rank: AtomicU64::new(NOWHERE),
            base_offset: AtomicI64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            done: AtomicU64::new(0),
            again: AtomicU64::new(0),
            offer: AtomicU64::new(0),
            marked: AtomicU64::new(0),
            batch_mask: AtomicU64::new(0),
            batch_ms: std::array::from_fn(|_| AtomicI64::new(0)),
            side: AtomicPtr::new(ptr::null_mut()),
            states: AtomicPtr::new(states),
            late: AtomicU32::new(0),
            pool_next: AtomicPtr::new(ptr::null_mut()),
            all_next,
            payload: std::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())),
            bytes: std::array::from_fn(|_| AtomicU32::new(0)),
            delta: std::array::from_fn(|_| AtomicU16::new(0)),
        };
        let segment = try_new(segment);
        if segment.is_null() && crowd {
            // SAFETY: made by `try_new` above, and nobody has seen it.
            drop(unsafe { Box::from_raw(states) });
        }
        segment
    }

    fn no_states() -> States {
        std::array::from_fn(|_| AtomicU64::new(Meta::fresh(0, 0).with_state(State::Done).0))
    }

    #[inline(always)]
    fn state(&self, slot: usize) -> &AtomicU64 {
        &self.states()[slot]
    }

    #[inline(always)]
    fn states(&self) -> &States {
        // ORDERING: Acquire — pairs with `new_states`.
        let states = self.states.load(Ordering::Acquire);
        // SAFETY: a block of states is never freed before its segment (`Spare::drop`).
        match unsafe { states.as_ref() } {
            Some(states) => states,
            None => self.new_states(),
        }
    }

    #[cold]
    fn new_states(&self) -> &States {
        own(&self.states, Self::no_states())
    }

    /// The rank of the first slot, if the segment holds messages.
    #[inline(always)]
    pub(crate) fn base_rank(&self) -> Option<u64> {
        // ORDERING: Acquire — pairs with the Release in `assign`: the fields of this base are seen.
        // Model: late_reader
        let base = self.base_rank.load(Ordering::Acquire);
        (base != NOWHERE).then_some(base)
    }

    /// The rank of the first slot, for who knows that the segment is held in place.
    #[inline(always)]
    pub(crate) fn pinned_base(&self) -> u64 {
        // ORDERING: Relaxed — the caller acquired the publish word that covers this segment.
        self.base_rank.load(Ordering::Relaxed)
    }

    /// Whether everything read since `base_rank` answered `base` belongs to it.
    #[inline(always)]
    pub(crate) fn valid_still(&self, base: u64) -> bool {
        if crate::sync::mutated("late_reader_no_check") {
            return true;
        }
        // ORDERING: Acquire fence, then Relaxed — pairs with the Release fence in `assign`: who
        // read a field of a later base also sees that the base is gone. Model: late_reader
        fence(Ordering::Acquire);
        self.base_rank.load(Ordering::Relaxed) == base
    }

    #[inline(always)]
    pub(crate) fn seq(&self) -> u64 {
        seq_of(self.pinned_base() / SLOTS)
    }

    #[inline(always)]
    pub(crate) fn next(&self) -> *mut Segment<T> {
        // ORDERING: Acquire — pairs with the Release in `link`: the next segment's fields are seen.
        self.next.load(Ordering::Acquire)
    }

    pub(crate) fn link(&self, next: *mut Segment<T>) {
        // ORDERING: Release — pairs with `next`.
        self.next.store(next, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn base_offset(&self) -> i64 {
        // ORDERING: Relaxed — ordered by `base_rank` and `valid_still`, or by the publish word.
        self.base_offset.load(Ordering::Relaxed)
    }

    /// Offset of the message in `slot`; means something only if the slot is published and the base
    /// valid.
    #[inline(always)]
    pub(crate) fn offset(&self, slot: usize) -> i64 {
        // ORDERING: Relaxed — ordered by the publish word, or checked by `valid_still`.
        let delta = self.delta[slot].load(Ordering::Relaxed);
        if delta == FAR {
            return self.far_offset(slot);
        }
        self.base_offset().wrapping_add(i64::from(delta))
    }

    #[cold]
    fn far_offset(&self, slot: usize) -> i64 {
        match self.side() {
            // ORDERING: Relaxed — as `offset`.
            Some(side) => side.offsets[slot].load(Ordering::Relaxed),
            None => i64::MAX,
        }
    }

    /// Bytes of the slots before `slot`; of all for `SEGMENT_SLOTS`.
    #[inline(always)]
    pub(crate) fn bytes_before(&self, slot: usize) -> u64 {
        // ORDERING: Relaxed — ordered by the publish word, or checked by `valid_still`.
        let bytes = self.bytes[slot].load(Ordering::Relaxed);
        if bytes == HEAVY { self.heavy_bytes(slot) } else { u64::from(bytes) }
    }

    #[cold]
    fn heavy_bytes(&self, slot: usize) -> u64 {
        // ORDERING: Relaxed — as `bytes_before`.
        self.side().map_or(0, |side| side.bytes[slot].load(Ordering::Relaxed) as u64)
    }

    #[inline(always)]
    pub(crate) fn size(&self, slot: usize) -> u32 {
        self.bytes_before(slot + 1).wrapping_sub(self.bytes_before(slot)) as u32
    }

    /// Whether a run of slots is as most are: state words unmarked, nothing in the side block.
    #[inline(always)]
    pub(crate) fn is_plain(&self, slots: Range<usize>) -> bool {
        let run = (u64::MAX >> (64 - slots.len())) << slots.start;
        // ORDERING: Relaxed — as `lane_meta`; the publish word covers what the puller did.
        self.marked.load(Ordering::Relaxed) & run == 0
            && self.side.load(Ordering::Relaxed).is_null()
    }

    /// As `lent`, for a slot of a plain run.
    ///
    /// # Safety
    /// As `lent`.
    #[inline(always)]
    pub(crate) unsafe fn lent_plain(&self, slot: usize) -> (i64, u32) {
        // SAFETY: written before the publish word, and not again while the slot is lent (caller).
        let delta = unsafe { self.delta[slot].plain_load() };
        // SAFETY: as above.
        let before = unsafe { self.bytes[slot].plain_load() };
        // SAFETY: as above.
        let after = unsafe { self.bytes[slot + 1].plain_load() };
        // SAFETY: as above.
        let base = unsafe { self.base_offset.plain_load() };
        (base + i64::from(delta), after.wrapping_sub(before))
    }

    /// Offset and size of a message on loan. Plain reads: a caller that uses neither pays for none.
    ///
    /// # Safety
    /// The caller acquired the publish word that covers the slot, and holds a loan of it.
    #[inline(always)]
    pub(crate) unsafe fn lent(&self, slot: usize) -> (i64, u32) {
        // SAFETY: written before the publish word, and not again while the slot is lent (caller).
        let delta = unsafe { self.delta[slot].plain_load() };
        // SAFETY: as above.
        let after = unsafe { self.bytes[slot + 1].plain_load() };
        if delta == FAR || after == HEAVY {
            return (self.offset(slot), self.size(slot));
        }
        // SAFETY: as above.
        unsafe { self.lent_plain(slot) }
    }

    fn side(&self) -> Option<&Side> {
        // ORDERING: Acquire — pairs with the Release in `side_or_new`.
        let side = self.side.load(Ordering::Acquire);
        // SAFETY: a side block is never freed before its segment (`free`).
        unsafe { side.as_ref() }
    }

    fn side_or_new(&self) -> &Side {
        if let Some(side) = self.side() {
            return side;
        }
        let zeroes = || std::array::from_fn(|_| AtomicI64::new(0));
        let side = Side {
            offsets: zeroes(),
            bytes: std::array::from_fn(|_| AtomicI64::new(0)),
            put_ms: zeroes(),
            taken_ms: zeroes(),
        };
        own(&self.side, side)
    }

    /// Puller: gives the segment its place. Nothing of it is visible to who follows the rules until
    /// the publish word covers it.
    pub(crate) fn assign(&self, base_rank: u64, base_offset: i64, marked: u64) -> u32 {
        // ORDERING: Relaxed, then a Release fence — pairs with `valid_still`. Model: late_reader
        self.base_rank.store(NOWHERE, Ordering::Relaxed);
        if !crate::sync::mutated("assign_no_fence") {
            fence(Ordering::Release);
        }
        // ORDERING: Relaxed — published by the Release below, or by the publish word.
        self.base_offset.store(base_offset, Ordering::Relaxed);
        self.next.store(ptr::null_mut(), Ordering::Relaxed);
        self.batch_mask.store(0, Ordering::Relaxed);
        // ORDERING: Relaxed — swaps, since a late consumer may still set a bit; see `crowd`.
        self.done.swap(0, Ordering::Relaxed);
        self.late.swap(0, Ordering::Relaxed);
        self.offer.swap(0, Ordering::Relaxed);
        self.marked.swap(marked, Ordering::Relaxed);
        let stray = self.again.swap(0, Ordering::Relaxed).count_ones();
        // ORDERING: Release — pairs with `base_rank`.
        self.base_rank.store(base_rank, Ordering::Release);
        stray
    }

    /// Puller: fills a slot that is not published yet; `seq` is that of the segment, `base` its
    /// first offset; a `crowd` needs every state word. `before` and the answer are the bytes in the
    /// segment before this slot and after it.
    ///
    /// # Safety
    /// The slot holds no payload, and only the puller knows of it.
    #[inline(always)]
    pub(crate) unsafe fn fill(
        &self,
        slot: usize,
        message: Incoming<T>,
        before: u64,
        (seq, base, crowd): (u64, i64, bool),
    ) -> u64 {
        let distance = message.offset - base;
        // ORDERING: Relaxed — the publish word's Release makes them visible. Model: put_take
        if distance < i64::from(FAR) {
            self.delta[slot].store(distance as u16, Ordering::Relaxed);
        } else {
            self.fill_far(slot, message.offset);
        }
        let bytes = before + u64::from(message.size);
        // ORDERING: Relaxed — as above.
        if bytes < u64::from(HEAVY) {
            self.bytes[slot + 1].store(bytes as u32, Ordering::Relaxed);
        } else {
            self.fill_heavy(slot + 1, bytes);
        }
        self.payload[slot].with_mut(|cell| {
            // SAFETY: unpublished, so nobody else reaches the cell (caller).
            unsafe { cell.cast::<T>().write(message.payload) };
        });
        let attempts = message.attempts.min(255) as u8;
        if crowd || attempts > 0 {
            // ORDERING: Relaxed — as above.
            self.state(slot).store(Meta::fresh(seq, attempts).0, Ordering::Relaxed);
        }
        if !crowd && attempts > 0 {
            // ORDERING: Relaxed — as above; the lane sets bits of other slots.
            self.marked.fetch_or(1 << slot, Ordering::Relaxed);
        }
        bytes
    }

    #[cold]
    fn fill_heavy(&self, slot: usize, bytes: u64) {
        // ORDERING: Relaxed — as `fill`.
        self.side_or_new().bytes[slot].store(bytes as i64, Ordering::Relaxed);
        self.bytes[slot].store(HEAVY, Ordering::Relaxed);
    }

    #[cold]
    fn fill_far(&self, slot: usize, offset: i64) {
        // ORDERING: Relaxed — as `fill`.
        self.side_or_new().offsets[slot].store(offset, Ordering::Relaxed);
        self.delta[slot].store(FAR, Ordering::Relaxed);
    }

    /// Pass holder: the state words of all slots, as `lane_meta` answers them one by one.
    pub(crate) fn lane_metas(&self) -> LaneMetas<'_> {
        // ORDERING: Relaxed — as `lane_meta`.
        let marked = self.marked.load(Ordering::Relaxed);
        LaneMetas { marked, states: if marked == 0 { None } else { Some(self.states()) } }
    }

    /// Pass holder: the state word of a slot, whether it was ever written or not. `delivery` counts
    /// the deliveries that have ended.
    #[inline(always)]
    pub(crate) fn lane_meta(&self, slot: usize) -> Meta {
        // ORDERING: Relaxed — written by the puller before it published, or by a pass holder.
        if self.marked.load(Ordering::Relaxed) & (1 << slot) == 0 {
            return Meta::fresh(0, 0);
        }
        // ORDERING: Relaxed — as above.
        Meta(self.state(slot).load(Ordering::Relaxed))
    }

    /// Pass holder: the deliveries of a run of slots end without finishing the messages.
    pub(crate) fn end_deliveries(&self, slot: usize, len: usize, attempts_plus: u8) {
        // ORDERING: Relaxed — only pass holders write; the turnstile orders them.
        let marked = self.marked.load(Ordering::Relaxed);
        for (at, state) in (slot..).zip(&self.states()[slot..slot + len]) {
            let fresh = marked & (1 << at) == 0;
            // ORDERING: Relaxed — only pass holders look; the turnstile orders them.
            let meta = if fresh { Meta::fresh(0, 0) } else { Meta(state.load(Ordering::Relaxed)) };
            let ended = meta.with_next_delivery().with_attempts_plus(attempts_plus);
            state.store(ended.0, Ordering::Relaxed);
        }
        let bits = (u64::MAX >> (64 - len)) << slot;
        // ORDERING: Relaxed — as above; the puller sets bits of other slots.
        self.marked.fetch_or(bits, Ordering::Relaxed);
    }

    /// Pass holder: leaves the payload of a slot below the consume rank to a closer.
    pub(crate) fn offer(&self, slot: usize) {
        // ORDERING: AcqRel — Release: who withdraws it sees our use of the payload before; Acquire:
        // we see that a closer was here, see `spread::offer_all`. Model: requeue_close
        let order = crate::sync::ordering("offer_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        self.offer.fetch_or(1 << slot, order);
    }

    /// Closer or pass holder: takes an offer away; who gets true has the payload.
    pub(crate) fn withdraw(&self, slot: usize) -> bool {
        // ORDERING: AcqRel — as `offer`. Model: requeue_close
        self.offer.fetch_and(!(1 << slot), Ordering::AcqRel) & (1 << slot) != 0
    }

    /// Puller: the batch that starts at `slot` was put at `now_ms`.
    #[inline]
    pub(crate) fn stamp(&self, slot: usize, now_ms: i64) {
        // ORDERING: Relaxed — only the puller writes; readers go by the publish word and
        // `valid_still`.
        let mask = self.batch_mask.load(Ordering::Relaxed);
        let index = mask.count_ones() as usize;
        // ORDERING: Relaxed — as above.
        if index < HEADER_TIMES {
            self.batch_ms[index].store(now_ms, Ordering::Relaxed);
        } else {
            self.side_or_new().put_ms[slot].store(now_ms, Ordering::Relaxed);
        }
        // ORDERING: Relaxed — as above.
        self.batch_mask.store(mask | (1 << slot), Ordering::Relaxed);
    }

    /// When the message in `slot` was put.
    pub(crate) fn put_ms(&self, slot: usize) -> i64 {
        // ORDERING: Relaxed — as `offset`.
        let upto = self.batch_mask.load(Ordering::Relaxed) & (u64::MAX >> (63 - slot));
        let index = (upto.count_ones() as usize).saturating_sub(1);
        if index < HEADER_TIMES {
            return self.batch_ms[index].load(Ordering::Relaxed);
        }
        let start = 63 - upto.leading_zeros() as usize;
        // ORDERING: Relaxed — as `offset`.
        self.side().map_or(0, |side| side.put_ms[start].load(Ordering::Relaxed))
    }

    /// Taker: must precede the state word that says so.
    pub(crate) fn set_taken_ms(&self, slot: usize, now_ms: i64) {
        // ORDERING: Relaxed — published by the state word.
        self.side_or_new().taken_ms[slot].store(now_ms, Ordering::Relaxed);
    }

    pub(crate) fn taken_ms(&self, slot: usize) -> i64 {
        // ORDERING: Relaxed — the reader acquired the state word.
        self.side().map_or(0, |side| side.taken_ms[slot].load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn load_meta(&self, slot: usize) -> Meta {
        // ORDERING: Acquire — pairs with whoever moved the message last. Model: take_complete_ready
        Meta(self.state(slot).load(Ordering::Acquire))
    }

    /// One step of a message's state; `Err` is what stands there now.
    #[inline(always)]
    pub(crate) fn move_meta(&self, slot: usize, from: Meta, to: Meta) -> Result<(), Meta> {
        // ORDERING: AcqRel — Release hands on what the mover did (payload reads of a loan before
        // the end of it); Acquire lets the mover use the payload. On failure Acquire: the caller
        // judges by the value.
        // Models: complete_complete_one, complete_claim, complete_give_back
        let success =
            crate::sync::ordering("meta_move_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        // ORDERING: as said above.
        let moved = if crate::sync::mutated("meta_move_no_cas")
            || crate::sync::mutated("take_no_cas_at_all")
        {
            // ORDERING: AcqRel — the planted bug: overwrites what another did meanwhile.
            Ok(self.state(slot).swap(to.0, Ordering::AcqRel))
        } else {
            // ORDERING: as said above.
            self.state(slot).compare_exchange(from.0, to.0, success, Ordering::Acquire)
        };
        moved.map(|_| ()).map_err(Meta)
    }

    /// Ends one loan; answers the word after it.
    #[inline(always)]
    pub(crate) fn end_loan(&self, slot: usize) -> Meta {
        // ORDERING: AcqRel — Release: our reads of the payload come before its release by another;
        // Acquire: if we are the last, everybody's reads come before our release. Model:
        // complete_give_back
        let order = crate::sync::ordering("end_loan_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        let was = Meta(self.state(slot).fetch_sub(Meta::LOAN, order));
        if crate::sync::mutated("end_loan_old_word") { was } else { was.without_loan() }
    }

    /// Who has the window alone: this slot is free.
    pub(crate) fn bury(&self, slot: usize) {
        // ORDERING: Relaxed — exclusive.
        self.state(slot).swap(Meta::DEAD, Ordering::Relaxed);
    }

    /// Closer: passes a slot; answers the word before.
    pub(crate) fn mark_dead(&self, slot: usize) -> Meta {
        // ORDERING: AcqRel — as `end_loan`. Model: close_give_back
        Meta(self.state(slot).fetch_or(Meta::DEAD, Ordering::AcqRel))
    }

    /// Lends the payload.
    ///
    /// # Safety
    /// The slot holds a payload, and a loan (or the exclusive right to the slot) keeps it
    /// there for `'b`.
    #[inline(always)]
    pub(crate) unsafe fn payload<'b>(&self, slot: usize) -> &'b T {
        self.payload[slot].with(|cell| {
            // SAFETY: initialised and not moved out while the loan lasts (caller).
            unsafe { &*cell.cast::<T>() }
        })
    }

    /// Moves the payload out.
    ///
    /// # Safety
    /// The slot holds a payload, and the caller made the transition that leaves it to nobody else.
    #[inline(always)]
    pub(crate) unsafe fn take_payload(&self, slot: usize) -> T {
        self.payload[slot].with_mut(|cell| {
            // SAFETY: initialised, and ours alone (caller).
            unsafe { cell.cast::<T>().read() }
        })
    }

    /// Concurrent mode: a slot is finished while it is still lent; before its `done` bit says so.
    pub(crate) fn wait_for_loan(&self) {
        // ORDERING: Relaxed — ordered before the head's passing by the `done` bit. Model: late_loan
        if !crate::sync::mutated("late_not_counted") {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Concurrent mode: such a slot's payload is gone. Whether the segment may go back to the pool
    /// now. It may come before `wait_for_loan`: the count wraps, and the head is not past yet.
    #[must_use]
    pub(crate) fn late_slot_is_free(&self) -> bool {
        // ORDERING: AcqRel — the last one to arrive has seen what the others did. Model: late_loan
        let order = crate::sync::ordering("late_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        self.late.fetch_sub(1, order) == PASSED + 1
    }

    /// Concurrent mode: the head went past. Whether the segment may go back to the pool now.
    #[must_use]
    pub(crate) fn pass(&self) -> bool {
        // ORDERING: AcqRel — as `late_slot_is_free`. Model: late_loan
        let order = crate::sync::ordering("late_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        self.late.fetch_add(PASSED, order) == 0
    }

    /// Frees the blocks beside the segment. It is about to be freed itself.
    pub(super) fn free_blocks(&mut self) {
        disown(&mut self.side);
        disown(&mut self.states);
    }

    /// Whether the index knows it: one of each `RUN_SEGMENTS`. For who knows that it is held in
    /// place.
    pub(crate) fn is_run_first(&self) -> bool {
        (self.pinned_base() / SLOTS).is_multiple_of(RUN_SEGMENTS)
    }

    /// Asks for the lines that consuming will read, for what was put long ago.
    #[inline]
    pub(crate) fn prefetch(&self) {
        let lines = size_of::<Self>().div_ceil(64);
        let first = ptr::from_ref(self).cast::<u8>();
        for line in 0..lines {
            crate::sync::hint::prefetch(first.wrapping_add(line * 64));
        }
    }
}

/// Null when the allocator refuses; else to be freed as a `Box`.
fn try_new<V>(value: V) -> *mut V {
    let layout = std::alloc::Layout::new::<V>();
    // SAFETY: no `V` of this module is empty.
    let place = unsafe { std::alloc::alloc(layout) }.cast::<V>();
    if !place.is_null() {
        // SAFETY: allocated for this layout just now.
        unsafe { place.write(value) };
    }
    place
}

/// Makes `value` the block that `cell` points to, unless another thread was first.
fn own<V>(cell: &AtomicPtr<V>, value: V) -> &V {
    let new = Box::into_raw(Box::new(value));
    // ORDERING: AcqRel — Release publishes the block; Acquire on failure sees the winner's.
    match cell.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: just allocated, and freed only with the segment.
            unsafe { &*new }
        }
        Err(winner) => {
            // SAFETY: ours, and nobody has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: not null, and freed only with the segment.
            unsafe { &*winner }
        }
    }
}

/// Frees the block that `cell` owns.
fn disown<V>(cell: &mut AtomicPtr<V>) {
    let block = *cell.get_mut();
    if !block.is_null() {
        // SAFETY: made by `own` or `try_new`, and this cell is the only one that points to it.
        drop(unsafe { Box::from_raw(block) });
    }
}
