//! The arm of every normal build: re-exports of std.

pub use std::sync::Arc;
pub use std::thread;

/// Atomics, as std has them.
pub mod atomic {
    #[cfg(not(lk_tsan))]
    pub use std::sync::atomic::fence;
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering,
    };

    /// A fence that ThreadSanitizer can see.
    ///
    /// The sanitizer knows no fences. A read-modify-write of one word orders all fences among
    /// each other, which is what a `SeqCst` fence promises, and is visible to it.
    #[cfg(lk_tsan)]
    pub fn fence(order: Ordering) {
        static FENCES: AtomicU64 = AtomicU64::new(0);
        FENCES.fetch_add(1, Ordering::SeqCst);
        std::sync::atomic::fence(order);
    }
}

/// Spin hints, as std has them.
pub mod hint {
    pub use std::hint::spin_loop;

    /// Asks for the cache line of an address that will be read soon; any address is fine.
    #[inline(always)]
    pub fn prefetch(address: *const u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint; it does not access the address and cannot fault.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }
}

/// `std::cell::UnsafeCell` with the closure interface that loom needs to watch accesses.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    #[inline(always)]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Calls `f` with a pointer for reading. Dereferencing it is the caller's proof to make.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing. Dereferencing it is the caller's proof to make.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// The value, reached through an exclusive borrow.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
