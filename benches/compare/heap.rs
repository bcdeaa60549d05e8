//! Counts the bytes asked of the allocator, while told to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The system's allocator, and beside it a count that costs one well-predicted branch while it
/// is off, so that it disturbs no other workload.
struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static HELD: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// From now on allocations and frees are counted.
pub fn start_counting() {
    HELD.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
}

/// Bytes allocated and not freed since [`start_counting`].
pub fn stop_counting() -> u64 {
    ON.store(false, Ordering::Relaxed);
    HELD.load(Ordering::Relaxed).max(0) as u64
}

#[inline(always)]
fn count(bytes: i64) {
    if ON.load(Ordering::Relaxed) {
        HELD.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`; the block is the system's.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps the contract of `realloc`; the block is the system's.
        unsafe { System.realloc(block, layout, size) }
    }
}
