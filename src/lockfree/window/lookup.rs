//! Finding a segment by rank or a slot by offset, also as a late reader.
//!
//! Every step of a walk checks that the segment it stands on is still the one it meant; if not, the
//! walk starts again from the head, which has then moved: lock-free. The index is asked only when
//! the message is not near the head.

use super::{SLOTS, Window, pack_head, unpack_head};
use crate::config_consts::SEGMENT_SLOTS;
use crate::lockfree::index::OffsetIndex;
use crate::lockfree::segment::Segment;
use crate::lockfree::words;
use crate::sync::atomic::Ordering;

/// A segment as found: its base rank was `base` at the time.
pub(super) struct At<'w, T> {
    pub segment: &'w Segment<T>,
    pub base: u64,
}

impl<T> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for At<'_, T> {}

impl<'w, T> At<'w, T> {
    /// The following segment, `None` if there is none or this one is gone.
    pub(super) fn next(self) -> Option<At<'w, T>> {
        let next = self.segment.next();
        if next.is_null() || !self.segment.valid_still(self.base) {
            return None;
        }
        // SAFETY: a link of a segment of this window, and segments are freed only with the window.
        let segment = unsafe { &*next };
        (segment.base_rank()? == self.base + SLOTS)
            .then_some(At { segment, base: self.base + SLOTS })
    }
}

/// Segments walked from the head before the index is asked.
const NEAR: usize = 4;

impl<T> Window<T> {
    /// Visible messages are those with a rank below this.
    #[inline(always)]
    pub(super) fn published(&self) -> u64 {
        // ORDERING: Acquire — pairs with the puller's Release: slots below the rank are seen.
        // Model: put_take
        let order =
            crate::sync::ordering("published_relaxed", Ordering::Acquire, Ordering::Relaxed);
        words::rank(self.front.publish.load(order))
    }

    /// The first segment that is not wholly finished; `None` before the first put.
    pub(super) fn head(&self) -> Option<At<'_, T>> {
        loop {
            // ORDERING: Acquire — pairs with the Release of whoever moved it: the segment's base is
            // seen.
            let word = self.head.load(Ordering::Acquire);
            let (segment, tag) = unpack_head::<T>(word)?;
            if let Some(base) = segment.base_rank()
                && pack_head(segment, base) >> 44 == tag
            {
                return Some(At { segment, base });
            }
            crate::sync::hint::spin_loop();
        }
    }

    /// The segment that holds a visible rank, or `None` if that is wholly finished and gone.
    pub(super) fn segment_of(&self, rank: u64, hint: Option<At<'_, T>>) -> Option<At<'_, T>> {
        if let Some(hint) = hint
            && hint.base <= rank
            && let Some(found) = self.walk(hint, rank)
        {
            return Some(found);
        }
        loop {
            let head = self.head()?;
            if head.base > rank {
                return None;
            }
            if let Some(found) = self.walk(head, rank) {
                return Some(found);
            }
            crate::sync::hint::spin_loop();
        }
    }

    fn walk<'w>(&'w self, from: At<'_, T>, rank: u64) -> Option<At<'w, T>> {
        // SAFETY: segments are freed only with the window, which outlives `'w`.
        let segment = unsafe { &*std::ptr::from_ref(from.segment) };
        let mut at = At { segment, base: from.base };
        if at.segment.base_rank() != Some(at.base) {
            return None;
        }
        while at.base + SLOTS <= rank {
            at = at.next()?;
        }
        Some(at)
    }

    /// The slot of a visible message by offset; it may be finished, or gone by the time it is used.
    pub(super) fn find(&self, offset: i64) -> Option<(At<'_, T>, usize)> {
        'again: loop {
            let published = self.published();
            let head = self.head()?;
            let mut at = head;
            for step in 0.. {
                if at.segment.base_offset() > offset {
                    if at.segment.valid_still(at.base) {
                        return None;
                    }
                    continue 'again;
                }
                if step == NEAR
                    && let Some(run) = self.run_of(offset)
                    && run.base > at.base
                {
                    at = run;
                }
                match at.next() {
                    Some(next) if next.base < published && next.segment.base_offset() <= offset => {
                        at = next
                    }
                    _ => break,
                }
            }
            let slots = published.saturating_sub(at.base).min(SLOTS) as usize;
            let slot = slot_of(at.segment, slots, offset);
            if at.segment.valid_still(at.base) {
                return slot.map(|slot| (at, slot));
            }
            crate::sync::hint::spin_loop();
        }
    }

    fn run_of(&self, offset: i64) -> Option<At<'_, T>> {
        let run = self.index.floor(offset)?;
        let segment = std::ptr::with_exposed_provenance::<Segment<T>>(run.address);
        // SAFETY: the index holds segments of this window only, which are freed only with the
        // window.
        let segment = unsafe { &*segment };
        (segment.base_rank() == Some(run.base_rank)).then_some(At { segment, base: run.base_rank })
    }
}

/// Position of `offset` among the first `slots` slots, which ascend.
fn slot_of<T>(segment: &Segment<T>, slots: usize, offset: i64) -> Option<usize> {
    debug_assert!(slots <= SEGMENT_SLOTS);
    let guess = offset.wrapping_sub(segment.base_offset()) as u64;
    if guess < slots as u64 && segment.offset(guess as usize) == offset {
        return Some(guess as usize);
    }
    let (mut low, mut high) = (0, slots);
    while low < high {
        let middle = low.midpoint(high);
        match segment.offset(middle).cmp(&offset) {
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}
