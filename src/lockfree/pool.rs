//! The pool that the segments of one window come from and return to.

use std::ptr;

use super::segment::Segment;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// The segments of one window: a stack that anybody pushes to and only the puller empties.
///
/// The puller takes the whole stack with one swap, so there is no pop that could suffer from ABA.
pub(crate) struct Pool<T> {
    returned: AtomicPtr<Segment<T>>,
}

/// The puller's side of the pool.
pub(crate) struct Spare<T> {
    first: *mut Segment<T>,
    /// Segments from `first` on.
    ready: u64,
    all: *mut Segment<T>,
    pub(crate) allocated: u64,
    crowd: bool,
}

impl<T> Pool<T> {
    /// In a `crowd` each segment needs its state words from the start.
    pub(crate) fn new(crowd: bool) -> (Self, Spare<T>) {
        let none = ptr::null_mut();
        let spare = Spare { first: none, ready: 0, all: none, allocated: 0, crowd };
        (Self { returned: AtomicPtr::new(ptr::null_mut()) }, spare)
    }

    /// Any thread that made the transition which retires the segment.
    pub(crate) fn give_back(&self, segment: &Segment<T>) {
        // ORDERING: Relaxed — a first guess.
        let mut first = self.returned.load(Ordering::Relaxed);
        loop {
            // ORDERING: Relaxed — published by the swap below.
            segment.pool_next.store(first, Ordering::Relaxed);
            let this = ptr::from_ref(segment).cast_mut();
            // ORDERING: Release — pairs with the Acquire in `take`: all use of the segment is over.
            // Model: recycle
            let order =
                crate::sync::ordering("pool_push_relaxed", Ordering::Release, Ordering::Relaxed);
            match self.returned.compare_exchange_weak(first, this, order, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => {
                    first = now;
                    crate::sync::hint::spin_loop();
                }
            }
        }
    }

    /// Puller: sees to it that `count` calls of `take` find a segment; false when the allocator
    /// refuses.
    pub(crate) fn reserve(&self, spare: &mut Spare<T>, count: u64) -> bool {
        if spare.ready < count {
            // ORDERING: Acquire — pairs with `give_back`.
            let mut segment = self.returned.swap(ptr::null_mut(), Ordering::Acquire);
            while !segment.is_null() {
                // SAFETY: in the pool, so a segment of this window that nobody else uses.
                let next = unsafe { &(*segment).pool_next };
                // ORDERING: Relaxed — seen through the Acquire above, then the puller's own.
                let rest = next.load(Ordering::Relaxed);
                next.store(spare.first, Ordering::Relaxed);
                spare.first = segment;
                spare.ready += 1;
                debug_assert!(spare.ready <= spare.allocated, "a segment is in the pool twice");
                segment = rest;
            }
        }
        while spare.ready < count {
            let segment = Segment::allocate(spare.all, spare.crowd);
            if segment.is_null() {
                return false;
            }
            spare.all = segment;
            spare.allocated += 1;
            // SAFETY: just allocated and written.
            let next = unsafe { &(*segment).pool_next };
            // ORDERING: Relaxed — the puller's own.
            next.store(spare.first, Ordering::Relaxed);
            spare.first = segment;
            spare.ready += 1;
        }
        true
    }

    /// Puller: a segment that belongs to nobody, reserved before.
    pub(crate) fn take<'w>(&'w self, spare: &mut Spare<T>) -> &'w Segment<T> {
        assert!(spare.ready > 0, "a segment is reserved before it is taken");
        spare.ready -= 1;
        // SAFETY: reserved, and segments are freed only with the window, which outlives `'w`.
        let segment = unsafe { &*spare.first };
        // ORDERING: Relaxed — the puller's own.
        spare.first = segment.pool_next.load(Ordering::Relaxed);
        segment
    }
}

impl<T> Spare<T> {
    /// Calls `visit` with every segment there is.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Segment<T>)) {
        let mut at = self.all;
        while !at.is_null() {
            // SAFETY: in the list of all segments, so allocated and not yet freed.
            let segment = unsafe { &*at };
            visit(segment);
            at = segment.all_next;
        }
    }
}

impl<T> Drop for Spare<T> {
    fn drop(&mut self) {
        while !self.all.is_null() {
            // SAFETY: made by `try_new`, in this list once, and the window (its only user) is being
            // dropped.
            let mut segment = unsafe { Box::from_raw(self.all) };
            self.all = segment.all_next;
            segment.free_blocks();
        }
    }
}

// SAFETY: a spare list is plain ownership of segments, whose payloads are Send.
unsafe impl<T: Send> Send for Spare<T> {}
