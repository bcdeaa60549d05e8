//! The atomics of the model builds: newtypes around loom's or shuttle's.
//!
//! loom's failed `compare_exchange` always answers the newest value. The language allows an
//! older one, and code that acts on the answer has been wrong because of it. So under loom a
//! `compare_exchange` looks first with a `Relaxed` load, which does explore older values. If
//! the value differs from the expected one, that is a failure the language allows: the failure
//! ordering is applied as a fence and the value answered. Otherwise the real one runs. The
//! look must be `Relaxed`: an acquire there would also order the success path and so hide a
//! success ordering that is too weak. Model: `litmus::stale_failed_cas`.

/// Defines an atomic. The invoking arm provides `order`, `spurious`, `failure_fence`, the
/// constant `LOOKS_FIRST`, and the macro `with_exclusive`.
macro_rules! model_atomic {
    ($name:ident $(<$generic:ident>)?, $value:ty, $inner:ty) => {
        /// A modelled atomic with the interface of its namesake in std.
        #[derive(Debug)]
        pub struct $name $(<$generic>)? ($inner, Marks);

        impl $(<$generic>)? $name $(<$generic>)? {
            /// A new atomic. Not `const`: a loom atomic belongs to the running model.
            #[track_caller]
            pub fn new(value: $value) -> Self {
                Self(<$inner>::new(value), Marks::new())
            }

            /// As in std.
            #[track_caller]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// As in std.
            #[track_caller]
            pub fn load(&self, load: Ordering) -> $value {
                self.1.read();
                self.0.load(order(load))
            }

            /// As in std.
            #[track_caller]
            pub fn store(&self, value: $value, store: Ordering) {
                self.1.write();
                self.0.store(value, order(store));
            }

            /// As in std.
            #[track_caller]
            pub fn swap(&self, value: $value, rmw: Ordering) -> $value {
                self.1.write();
                self.0.swap(value, order(rmw))
            }

            /// As in std; see the module for what the models add.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if LOOKS_FIRST {
                    self.1.read();
                    let seen = self.0.load(Ordering::Relaxed);
                    if seen != current {
                        failure_fence(failure);
                        return Err(seen);
                    }
                }
                self.1.write();
                self.0.compare_exchange(current, new, order(success), order(failure))
            }

            /// As in std; see the module for what the models add.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if spurious() {
                    self.1.read();
                    return Err(self.0.load(order(failure)));
                }
                self.compare_exchange(current, new, success, failure)
            }
        }
    };
}

/// The exclusive access that loom gives to all of its atomics but `AtomicBool`.
macro_rules! model_exclusive {
    ($name:ident $(<$generic:ident>)?, $value:ty) => {
        impl $(<$generic>)? $name $(<$generic>)? {
            /// As in std, but the borrow is a guard that writes back when dropped.
            #[track_caller]
            pub fn get_mut(&mut self) -> $crate::sync::model::GetMut<'_, Self> {
                $crate::sync::model::GetMut::new(self)
            }
        }

        impl $(<$generic>)? $crate::sync::model::Exclusive for $name $(<$generic>)? {
            type Value = $value;

            fn read(&mut self) -> $value {
                with_exclusive!(self.0, |value: &mut $value| *value)
            }

            fn write(&mut self, new: $value) {
                with_exclusive!(self.0, |value: &mut $value| *value = new);
            }
        }
    };
}

/// The arithmetic of the integer atomics.
macro_rules! model_integer {
    ($name:ident, $value:ty) => {
        model_exclusive!($name, $value);
        impl $name {
            model_rmw!(
                $value, fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min
            );
        }
    };
}

/// Forwards read-modify-write methods of one operand.
macro_rules! model_rmw {
    ($value:ty, $($method:ident)*) => { $(
        /// As in std.
        #[track_caller]
        pub fn $method(&self, operand: $value, rmw: Ordering) -> $value {
            self.1.write();
            self.0.$method(operand, order(rmw))
        }
    )* };
}

/// All atomics of the facade, over the atomics of `$from`.
macro_rules! model_atomics {
    ($from:path) => {
        use $from as inner;
        model_atomic!(AtomicBool, bool, inner::AtomicBool);
        model_atomic!(AtomicU8, u8, inner::AtomicU8);
        model_atomic!(AtomicU16, u16, inner::AtomicU16);
        model_atomic!(AtomicU32, u32, inner::AtomicU32);
        model_atomic!(AtomicU64, u64, inner::AtomicU64);
        model_atomic!(AtomicI64, i64, inner::AtomicI64);
        model_atomic!(AtomicUsize, usize, inner::AtomicUsize);
        model_atomic!(AtomicPtr<T>, *mut T, inner::AtomicPtr<T>);
        model_exclusive!(AtomicPtr<T>, *mut T);
        impl AtomicBool {
            model_rmw!(bool, fetch_and fetch_or fetch_xor);
        }
        model_integer!(AtomicU8, u8);
        model_integer!(AtomicU16, u16);
        model_integer!(AtomicU32, u32);
        model_integer!(AtomicU64, u64);
        model_integer!(AtomicI64, i64);
        model_integer!(AtomicUsize, usize);
    };
}

pub(super) use {model_atomic, model_atomics, model_exclusive, model_integer, model_rmw};

/// An atomic reached through an exclusive borrow.
pub trait Exclusive {
    /// What it holds.
    type Value: Copy;
    /// Reads without synchronisation.
    fn read(&mut self) -> Self::Value;
    /// Writes without synchronisation.
    fn write(&mut self, value: Self::Value);
}

/// What `get_mut` of a modelled atomic answers.
#[derive(Debug)]
pub struct GetMut<'a, A: Exclusive> {
    atomic: &'a mut A,
    value: A::Value,
}

impl<'a, A: Exclusive> GetMut<'a, A> {
    #[track_caller]
    pub(super) fn new(atomic: &'a mut A) -> Self {
        let value = atomic.read();
        Self { atomic, value }
    }
}

impl<A: Exclusive> std::ops::Deref for GetMut<'_, A> {
    type Target = A::Value;

    fn deref(&self) -> &A::Value {
        &self.value
    }
}

impl<A: Exclusive> std::ops::DerefMut for GetMut<'_, A> {
    fn deref_mut(&mut self) -> &mut A::Value {
        &mut self.value
    }
}

impl<A: Exclusive> Drop for GetMut<'_, A> {
    fn drop(&mut self) {
        self.atomic.write(self.value);
    }
}
