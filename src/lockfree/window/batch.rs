//! What a take hands over: messages on loan.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::config_consts::SEGMENT_SLOTS;
use crate::lockfree::meta::Meta;
use crate::lockfree::segment::Segment;

const LEFT_SHIFT: u32 = 32;
const ONE_LEFT: u64 = 1 << LEFT_SHIFT;
const LIST: u64 = 1 << 31;
const SLOT: u64 = LIST - 1;

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
    #[cold]
    fn next_segment(self) -> Self {
        Self { segment: self.segment().next(), slot: 0 }
    }

    /// A message in flight in a lane, by its state word.
    #[inline(always)]
    fn taken(self, meta: Meta) -> Taken<T> {
        Taken { place: self, attempts: meta.attempts(), delivery: meta.delivery_plus(1) }
    }

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
        place.taken(place.segment().lane_meta(place.slot))
    }
}

/// Messages just taken, lent until their delivery is decided about; lowest offset first.
///
/// The borrow keeps the turn or consumer from deciding while a payload is still referred to.
pub struct Batch<'b, T> {
    /// Of a run: the segment. Of a list: the next `Taken`, which outlives `'b`.
    ///
    /// Two words in all, and a niche, so that the answer of a take is handed on in registers: a
    /// larger one is copied through memory, which stalls (measured: a third of a take).
    at: NonNull<()>,
    /// `left` in the upper half; below it the next slot of a run, which may be one past the end of
    /// the segment, or LIST.
    rest: u64,
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
    #[inline(always)]
    pub(super) fn run(first: Place<T>, len: usize) -> Self {
        let at = NonNull::from(first.segment()).cast();
        Self { at, rest: (len as u64) << LEFT_SHIFT | first.slot as u64, lent: PhantomData }
    }

    pub(super) fn list(taken: &'b [Taken<T>]) -> Self {
        let at = NonNull::from(taken).cast();
        Self { at, rest: (taken.len() as u64) << LEFT_SHIFT | LIST, lent: PhantomData }
    }

    pub(super) fn empty() -> Self {
        Self::list(&[])
    }
}

impl<'b, T> Batch<'b, T> {
    #[inline(always)]
    fn left(&self) -> usize {
        (self.rest >> LEFT_SHIFT) as usize
    }

    #[inline(always)]
    fn is_list(&self) -> bool {
        self.rest & LIST != 0
    }

    /// The next message; this is a run, and not at its end.
    #[inline(always)]
    fn next_of_run(&mut self) -> Message<'b, T> {
        let slot = (self.rest & SLOT) as usize;
        let mut place = Place { segment: self.at.as_ptr().cast_const().cast(), slot };
        if slot == SEGMENT_SLOTS {
            place = place.next_segment();
            self.at = NonNull::from(place.segment()).cast();
            self.rest &= !SLOT;
        }
        self.rest = self.rest + 1 - ONE_LEFT;
        Self::message(&Taken::in_lane(place))
    }

    /// The next message; this is a list, and not at its end.
    fn next_of_list(&mut self) -> Message<'b, T> {
        let next = self.at.cast::<Taken<T>>();
        // SAFETY: `left` of the slice it was made from are still to come.
        let taken = unsafe { next.as_ref() };
        // SAFETY: at most one past the end of that slice.
        self.at = unsafe { next.add(1) }.cast();
        self.rest -= ONE_LEFT;
        Self::message(taken)
    }

    /// Kept out of the loop over a run, which is the common case.
    #[cold]
    #[inline(never)]
    fn fold_list<B>(mut self, mut sum: B, f: &mut impl FnMut(B, Message<'b, T>) -> B) -> B {
        while self.left() > 0 {
            sum = f(sum, self.next_of_list());
        }
        sum
    }

    /// A message of a plain run, which was never taken before.
    #[inline(always)]
    fn plain(place: Place<T>) -> Message<'b, T> {
        let segment = place.segment::<'b>();
        // SAFETY: as the payload below.
        let (offset, size) = unsafe { segment.lent_plain(place.slot) };
        // SAFETY: as in `message`.
        let payload = unsafe { segment.payload(place.slot) };
        Message { offset, size, attempts: 0, delivery: 1, payload }
    }

    #[inline(always)]
    fn message(taken: &Taken<T>) -> Message<'b, T> {
        let Taken { place, attempts, delivery } = *taken;
        let segment = place.segment::<'b>();
        // SAFETY: as the payload below.
        let (offset, size) = unsafe { segment.lent(place.slot) };
        Message {
            offset,
            size,
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
        match self.left() {
            0 => None,
            _ if self.is_list() => Some(self.next_of_list()),
            _ => Some(self.next_of_run()),
        }
    }

    #[inline(always)]
    fn fold<B, F: FnMut(B, Message<'b, T>) -> B>(self, init: B, mut f: F) -> B {
        if self.is_list() {
            return self.fold_list(init, &mut f);
        }
        let (mut sum, mut left) = (init, self.left());
        let first = (self.rest & SLOT) as usize;
        let mut place = Place { segment: self.at.as_ptr().cast_const().cast(), slot: first };
        if left == 1 && first < SEGMENT_SLOTS && place.segment().is_plain(first..first + 1) {
            return f(sum, Self::plain(place));
        }
        while left > 0 {
            if place.slot == SEGMENT_SLOTS {
                place = place.next_segment();
            }
            let end = SEGMENT_SLOTS.min(place.slot + left);
            let segment = place.segment();
            if segment.is_plain(place.slot..end) {
                for slot in place.slot..end {
                    sum = f(sum, Self::plain(Place { slot, ..place }));
                }
            } else {
                let metas = segment.lane_metas();
                for slot in place.slot..end {
                    sum = f(sum, Self::message(&Place { slot, ..place }.taken(metas.get(slot))));
                }
            }
            left -= end - place.slot;
            place.slot = end;
        }
        sum
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left(), Some(self.left()))
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
