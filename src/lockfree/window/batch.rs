//! What a take hands over: messages on loan.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::config_consts::SEGMENT_SLOTS;
use crate::lockfree::segment::Segment;

/// A slot of a held segment.
pub(super) struct Place<T> {
    pub(super) segment: *const Segment<T>,
    pub(super) slot: usize,
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Place<T> {}

// SAFETY: an address; the window it came from shares its segments between threads.
unsafe impl<T: Send> Send for Place<T> {}

impl<T> Place<T> {
    pub(super) fn new(segment: &Segment<T>, slot: usize) -> Self {
        Self { segment, slot }
    }

    #[inline(always)]
    pub(super) fn segment<'w>(self) -> &'w Segment<T> {
        // SAFETY: made from a reference to a segment of the window, and segments are freed only
        // with the window, which every user of a Place borrows.
        unsafe { &*self.segment }
    }
}

/// A message as it was when it was taken: what its state word says later may be about another
/// delivery.
pub(super) struct Taken<T> {
    pub(super) place: Place<T>,
    pub(super) attempts: u8,
    pub(super) delivery: u32,
}

impl<T> Taken<T> {
    /// Pass holder of the lane: a message in flight.
    pub(super) fn in_lane(place: Place<T>) -> Self {
        let meta = place.segment().lane_meta(place.slot);
        Self { place, attempts: meta.attempts(), delivery: meta.delivery_plus(1) }
    }
}

/// Messages just taken, lent until their delivery is decided about; lowest offset first.
///
/// The borrow keeps the turn or consumer from deciding while a payload is still referred to.
pub struct Batch<'b, T> {
    run: Place<T>,
    run_left: usize,
    list: std::slice::Iter<'b, Taken<T>>,
    lent: PhantomData<&'b T>,
}

// SAFETY: a batch is a set of shared references to payloads.
unsafe impl<T: Sync> Send for Batch<'_, T> {}
// SAFETY: as above; its shared use reads plain fields only.
unsafe impl<T: Sync> Sync for Batch<'_, T> {}

/// One message on loan; dereferences to its payload.
#[derive(Debug)]
pub struct Message<'b, T> {
    /// Queue offset.
    pub offset: i64,
    /// Size recorded at put, bytes.
    pub size: u32,
    /// Times consumed before, saturating at 255.
    pub attempts: u8,
    /// Which delivery of this message this is, from 1; wraps after 2^24 - 1.
    pub delivery: u32,
    payload: &'b T,
}

impl<'b, T> Message<'b, T> {
    /// The payload, for as long as the batch is borrowed.
    pub fn payload(&self) -> &'b T {
        self.payload
    }
}

impl<T> Deref for Message<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.payload
    }
}

impl<'b, T> Batch<'b, T> {
    pub(super) fn run(first: Place<T>, len: usize) -> Self {
        Self { run: first, run_left: len, list: [].iter(), lent: PhantomData }
    }

    pub(super) fn list(taken: &'b [Taken<T>]) -> Self {
        let nowhere = Place { segment: std::ptr::null(), slot: 0 };
        Self { run: nowhere, run_left: 0, list: taken.iter(), lent: PhantomData }
    }

    pub(super) fn empty() -> Self {
        Self::list(&[])
    }
}

impl<'b, T> Batch<'b, T> {
    #[inline(always)]
    fn message(taken: &Taken<T>) -> Message<'b, T> {
        let Taken { place, attempts, delivery } = *taken;
        let segment = place.segment::<'b>();
        Message {
            offset: segment.offset(place.slot),
            size: segment.size(place.slot),
            attempts,
            delivery,
            // SAFETY: the taker holds a loan of this slot, which cannot end while `'b` borrows the
            // taker.
            payload: unsafe { segment.payload(place.slot) },
        }
    }
}

impl<'b, T> Iterator for Batch<'b, T> {
    type Item = Message<'b, T>;

    #[inline]
    fn next(&mut self) -> Option<Message<'b, T>> {
        if self.run_left == 0 {
            return self.list.next().map(Self::message);
        }
        self.run_left -= 1;
        if self.run.slot == SEGMENT_SLOTS {
            self.run = Place { segment: self.run.segment().next(), slot: 0 };
        }
        let place = self.run;
        self.run.slot += 1;
        Some(Self::message(&Taken::in_lane(place)))
    }

    #[inline]
    fn fold<B, F: FnMut(B, Message<'b, T>) -> B>(mut self, init: B, mut f: F) -> B {
        let mut sum = init;
        while self.run_left > 0 {
            let first = if self.run.slot == SEGMENT_SLOTS {
                Place { segment: self.run.segment().next(), slot: 0 }
            } else {
                self.run
            };
            let len = self.run_left.min(SEGMENT_SLOTS - first.slot);
            for slot in first.slot..first.slot + len {
                sum =
                    f(sum, Self::message(&Taken::in_lane(Place { segment: first.segment, slot })));
            }
            self.run_left -= len;
            self.run = Place { segment: first.segment, slot: first.slot + len };
        }
        let list = self.list.clone();
        list.fold(sum, |sum, taken| f(sum, Self::message(taken)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.run_left + self.list.len();
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}

/// Takes payloads that nobody needs any more.
pub(crate) trait Sink<T> {
    /// Nothing is to be done with them, not even dropping.
    fn is_idle(&self) -> bool {
        false
    }
    fn give(&mut self, offset: i64, payload: T);
}

/// Drops them.
pub(crate) struct DropSink;

impl<T> Sink<T> for DropSink {
    #[inline(always)]
    fn is_idle(&self) -> bool {
        !std::mem::needs_drop::<T>()
    }
    fn give(&mut self, _: i64, payload: T) {
        drop(payload);
    }
}

/// Gives them to a closure.
pub(crate) struct To<F>(pub(crate) F);

impl<T, F: FnMut(i64, T)> Sink<T> for To<F> {
    fn give(&mut self, offset: i64, payload: T) {
        (self.0)(offset, payload);
    }
}
