//! The shuttle arm: interleavings at scale. Its model knows only `SeqCst`, so it says nothing
//! about orderings; spurious failures of the weak exchange are added here.

pub use shuttle::sync::{Arc, Mutex};
pub use shuttle::thread;

/// Modelled atomics.
pub mod atomic {
    use super::super::model::{
        model_atomic, model_atomics, model_exclusive, model_integer, model_rmw,
    };
    use shuttle::rand::RngCore;
    pub use shuttle::sync::atomic::Ordering;

    const LOOKS_FIRST: bool = false;

    /// shuttle tries schedules at random and needs no hint which accesses race.
    #[derive(Debug)]
    struct Marks;

    impl Marks {
        fn new() -> Self {
            Self
        }

        fn read(&self) {}

        fn write(&self) {}
    }

    /// shuttle treats all orderings alike and warns about all but this one.
    fn order(_: Ordering) -> Ordering {
        Ordering::SeqCst
    }

    /// One weak exchange in four fails although the value matches.
    fn spurious() -> bool {
        shuttle::rand::thread_rng().next_u32().is_multiple_of(4)
    }

    fn failure_fence(_: Ordering) {}

    /// Nothing to do where everything is sequentially consistent.
    pub fn fence(fence: Ordering) {
        shuttle::sync::atomic::fence(order(fence));
    }

    macro_rules! with_exclusive {
        ($atomic:expr, $f:expr) => {
            $f($atomic.get_mut())
        };
    }

    model_atomics!(shuttle::sync::atomic);
}

/// Spin hints that let another model thread run.
pub mod hint {
    pub use shuttle::hint::spin_loop;

    /// Nothing: no model has caches.
    pub fn prefetch(_: *const u8) {}
}

/// A plain cell: shuttle does not look for data races.
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Calls `f` with a pointer for reading. Dereferencing it is the caller's proof to make.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing. Dereferencing it is the caller's proof to make.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// The value, reached through an exclusive borrow.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
