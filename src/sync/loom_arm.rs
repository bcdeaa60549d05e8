//! The loom arm: every ordering is explored, see [`super::model`] for failed exchanges.

pub use loom::sync::{Arc, Mutex};
pub use loom::thread;

/// Modelled atomics.
pub mod atomic {
    use super::super::model::{
        model_atomic, model_atomics, model_exclusive, model_integer, model_rmw,
    };
    pub use loom::sync::atomic::{Ordering, fence};

    const LOOKS_FIRST: bool = true;

    /// Most threads of a model, the main one included.
    const THREADS_MAX: usize = 3;

    /// loom remembers one last access of an atomic when it looks for orders still to try. A thread
    /// that loads a word and then exchanges it hides, by its own load, that another thread loaded
    /// the word before: the order with the exchange first is never tried. So each atomic has a mark
    /// for each thread, stored to before every access and read by nobody: by who loads, its own;
    /// by who writes, those of the others. Stores that nobody reads order nothing, but loom takes
    /// two stores to one word as a race. Model: `litmus::load_beside_load_and_exchange`.
    #[derive(Debug)]
    struct Marks([loom::sync::atomic::AtomicU8; THREADS_MAX]);

    impl Marks {
        fn new() -> Self {
            Self(std::array::from_fn(|_| loom::sync::atomic::AtomicU8::new(0)))
        }

        fn read(&self) {
            self.0[current()].store(0, Ordering::Relaxed);
        }

        fn write(&self) {
            let own = current();
            for (thread, mark) in self.0.iter().enumerate() {
                if thread != own {
                    mark.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// Number of the running thread in its model, 0 for the main one.
    fn current() -> usize {
        use std::hash::{Hash, Hasher};
        /// Keeps the last word written: a thread's identity ends with its number.
        struct Last(usize);
        impl Hasher for Last {
            fn write(&mut self, _: &[u8]) {
                unreachable!("the identity of a loom thread is made of words");
            }
            fn write_usize(&mut self, word: usize) {
                self.0 = word;
            }
            fn finish(&self) -> u64 {
                self.0 as u64
            }
        }
        let mut last = Last(usize::MAX);
        loom::thread::current().id().hash(&mut last);
        last.0
    }

    fn order(order: Ordering) -> Ordering {
        order
    }

    /// loom does not explore these: a loop that retries is the same loop without the failure.
    fn spurious() -> bool {
        false
    }

    /// A failed exchange is a load with the failure ordering; after a `Relaxed` load that is
    /// this fence.
    fn failure_fence(failure: Ordering) {
        match failure {
            Ordering::Relaxed => {}
            Ordering::Acquire => fence(Ordering::Acquire),
            _ => fence(Ordering::SeqCst),
        }
    }

    macro_rules! with_exclusive {
        ($atomic:expr, $f:expr) => {
            $atomic.with_mut($f)
        };
    }

    model_atomics!(loom::sync::atomic);
}

/// Spin hints that let another model thread run.
pub mod hint {
    pub use loom::hint::spin_loop;

    /// Nothing: no model has caches.
    pub fn prefetch(_: *const u8) {}
}

/// A cell whose accesses loom checks for races.
#[derive(Debug)]
pub struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    #[track_caller]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Calls `f` with a pointer for reading. A write at the same time fails the model.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// Calls `f` with a pointer for writing. Any access at the same time fails the model.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }

    /// The value, reached through an exclusive borrow.
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut T {
        let pointer = self.0.with_mut(|pointer| pointer);
        // SAFETY: `&mut self` excludes every other access for as long as the result lives, and
        // the value lives in `self`.
        unsafe { &mut *pointer }
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
