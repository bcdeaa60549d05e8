//! An array that grows and never moves.
//!
//! ```text
//! pages:  page 0       page 1           page 2
//!         [FIRST]      [2 FIRST]        [4 FIRST] ...    made when an index in them is asked for
//! ```
//!
//! An element lives as long as the array, so a reference to it needs no guard. Two threads that
//! make the same page both allocate; the exchange decides, and the loser frees its own
//! (linearization point). Progress: reading wait-free, growing lock-free but for the allocator.
//! Memory: at most twice what the highest index needs. Where elements begin as zeros, the
//! system provides memory for those parts of a large page only that were touched.

use std::ptr;

use crate::config_consts::{PAGE_FIRST, PAGES_MAX};
use crate::sync::atomic::{AtomicPtr, Ordering};

/// See the module.
pub(crate) struct Pages<T> {
    pages: [AtomicPtr<T>; PAGES_MAX],
}

/// The page of an index, and the place in it.
#[inline(always)]
fn place(index: usize) -> (usize, usize) {
    let shifted = index + PAGE_FIRST;
    let page = (shifted.ilog2() - PAGE_FIRST.ilog2()) as usize;
    (page, shifted - (PAGE_FIRST << page))
}

/// What an element begins as.
///
/// # Safety
/// If `IS_ZERO`, all zero bytes are a valid value, the same as `blank()`.
pub(crate) unsafe trait Blank: Sized {
    #[cfg_attr(any(lk_loom, lk_shuttle), expect(dead_code, reason = "models allocate one by one"))]
    const IS_ZERO: bool;
    fn blank() -> Self;
}

// SAFETY: a number.
#[cfg(test)]
unsafe impl Blank for u64 {
    const IS_ZERO: bool = true;
    fn blank() -> Self {
        0
    }
}

fn blanks<T: Blank>(count: usize) -> Box<[T]> {
    #[cfg(not(any(lk_loom, lk_shuttle)))]
    if T::IS_ZERO {
        let zeros = Box::new_zeroed_slice(count);
        // SAFETY: zeros are values of T, as it promises.
        return unsafe { zeros.assume_init() };
    }
    (0..count).map(|_| T::blank()).collect()
}

impl<T: Blank> Pages<T> {
    pub(crate) fn new() -> Self {
        Self { pages: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) }
    }

    /// The element, if its page was made.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (page, offset) = place(index);
        // ORDERING: Acquire — pairs with the Release of `make`: the elements are seen as made.
        let start = self.pages.get(page)?.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: a page holds `PAGE_FIRST << page` elements, and `place` answers less than that.
        let element = unsafe { start.add(offset) };
        // SAFETY: made before it was published (`make`), and freed only with the array.
        Some(unsafe { &*element })
    }

    /// The element; `None` beyond the last page.
    pub(crate) fn get_or_make(&self, index: usize) -> Option<&T> {
        let (page, _) = place(index);
        match self.get(index) {
            Some(element) => Some(element),
            None => {
                Self::make(self.pages.get(page)?, PAGE_FIRST << page);
                self.get(index)
            }
        }
    }

    #[cold]
    fn make(page: &AtomicPtr<T>, count: usize) {
        let made = Box::into_raw(blanks::<T>(count)).cast::<T>();
        // ORDERING: Release — the elements are made before they are found. Relaxed on failure: the
        // pointer is not used. Model: intern_intern
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        if page.compare_exchange(ptr::null_mut(), made, success, failure).is_err() {
            // SAFETY: came from `into_raw` above with this length, and was not published.
            drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(made, count)) });
        }
    }

    /// Every element of the pages made so far, ascending: a weak look.
    pub(crate) fn each(&self, mut look: impl FnMut(usize, &T)) {
        for page in 0..PAGES_MAX {
            let first = (PAGE_FIRST << page) - PAGE_FIRST;
            if self.get(first).is_none() {
                continue;
            }
            for index in first..first + (PAGE_FIRST << page) {
                if let Some(element) = self.get(index) {
                    look(index, element);
                }
            }
        }
    }
}

// SAFETY: no page was made.
unsafe impl<T: Blank> Blank for Pages<T> {
    const IS_ZERO: bool = true;
    fn blank() -> Self {
        Self::new()
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        for (page, start) in self.pages.iter_mut().enumerate() {
            let start = *start.get_mut();
            if !start.is_null() {
                let elements = ptr::slice_from_raw_parts_mut(start, PAGE_FIRST << page);
                // SAFETY: came from `into_raw` in `make` with this length; the borrow is exclusive.
                drop(unsafe { Box::from_raw(elements) });
            }
        }
    }
}

#[cfg(all(test, not(any(lk_loom, lk_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn indexes_have_places_of_their_own_and_pages_are_made_on_demand() {
        let array: Pages<u64> = Pages::new();
        assert!(array.get(0).is_none());
        let mut addresses = std::collections::BTreeSet::new();
        for index in 0..1000 {
            let element: *const u64 = array.get_or_make(index).unwrap();
            assert!(addresses.insert(element as usize), "{index}");
            assert!(ptr::eq(element, array.get(index).unwrap()));
        }
        let mut seen = 0;
        array.each(|index, _| {
            assert_eq!(index, seen);
            seen += 1;
        });
        assert!(seen >= 1000);
        let last = (PAGE_FIRST << PAGES_MAX) - PAGE_FIRST;
        assert!(last > u32::MAX as usize);
        assert!(array.get(last).is_none() && array.get_or_make(last).is_none());
    }
}
