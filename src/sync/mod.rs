//! One facade over std, loom (`--cfg lk_loom`) and shuttle (`--cfg lk_shuttle`).
//!
//! Nothing else in this crate names `std::sync`, `std::thread` or `UnsafeCell`: what the
//! models cannot see they cannot test. In a normal build every item here is a re-export or an
//! `#[inline(always)]` wrapper and costs nothing.
//!
//! # What the arms do differently
//!
//! | item | std | loom | shuttle |
//! |---|---|---|---|
//! | orderings | as written | as written | all `SeqCst` (its model has no other) |
//! | failed `compare_exchange` | may answer an old value | may answer an old value, see `model` | newest value |
//! | `compare_exchange_weak` | may fail for no reason | never does | fails on the toss of a coin |
//! | `hint::spin_loop` | pause | yields the model thread | yields the model thread |
//! | `fence` under `lk_tsan` | also a read-modify-write TSan can see | - | - |
//!
//! `tests/litmus` states what loom does and does not see through this facade, executably.
//!
//! # Mutations
//!
//! [`mutated`] and [`ordering`] are how a model test plants a bug: the code names a place that
//! may be weakened, the test activates that name and must then see the model fail. In a normal
//! build they are constants.

#[cfg(all(lk_loom, lk_shuttle))]
compile_error!("lk_loom and lk_shuttle exclude each other");

pub mod blocking;
#[cfg(any(lk_loom, lk_shuttle))]
mod model;
mod mutation;
pub mod swap;

#[cfg_attr(lk_loom, path = "loom_arm.rs")]
#[cfg_attr(all(lk_shuttle, not(lk_loom)), path = "shuttle_arm.rs")]
#[cfg_attr(not(any(lk_loom, lk_shuttle)), path = "std_arm.rs")]
mod arm;

pub use arm::{Arc, UnsafeCell, atomic, hint, thread};

#[cfg(any(lk_loom, lk_shuttle))]
pub use arm::Mutex;

#[cfg(any(lk_loom, lk_shuttle))]
pub use mutation::set_mutation;
pub use mutation::{mutated, ordering};

/// A Release store to a word that others read-modify-write meanwhile, where that is harmless.
///
/// Loom takes such a store for a race (tokio-rs/loom#254), so the models swap instead.
#[inline(always)]
pub fn store_release(word: &atomic::AtomicU64, value: u64) {
    #[cfg(not(any(lk_loom, lk_shuttle)))]
    // ORDERING: Release — the caller says with what it pairs.
    word.store(value, atomic::Ordering::Release);
    #[cfg(any(lk_loom, lk_shuttle))]
    word.swap(value, atomic::Ordering::Release);
}

/// A `SeqCst` fence right after a read-modify-write of the same thread.
///
/// On x86-64 that read-modify-write is a full barrier already, and a second one costs as much
/// again; only the compiler has to be told. crossbeam-epoch does the same when it pins.
#[inline(always)]
pub fn fence_after_rmw() {
    #[cfg(all(target_arch = "x86_64", not(any(lk_loom, lk_shuttle, lk_tsan))))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(any(lk_loom, lk_shuttle, lk_tsan)))))]
    // ORDERING: SeqCst — as named.
    atomic::fence(atomic::Ordering::SeqCst);
}

/// A plain read of an atomic, which a compiler may leave out where nobody uses it.
pub trait PlainLoad {
    /// What is read.
    type Value;

    /// The value; models read it atomically.
    ///
    /// # Safety
    /// Nobody writes meanwhile, and the last write happened before.
    unsafe fn plain_load(&self) -> Self::Value;
}

macro_rules! plain_load {
    ($($atomic:ident: $value:ty),*) => { $(
        impl PlainLoad for atomic::$atomic {
            type Value = $value;

            #[inline(always)]
            unsafe fn plain_load(&self) -> $value {
                #[cfg(not(any(lk_loom, lk_shuttle)))]
                // SAFETY: valid as long as the atomic, and not written meanwhile (caller).
                return unsafe { self.as_ptr().read() };
                #[cfg(any(lk_loom, lk_shuttle))]
                // ORDERING: Relaxed — see above.
                return self.load(atomic::Ordering::Relaxed);
            }
        }
    )* };
}
plain_load!(AtomicU16: u16, AtomicU32: u32, AtomicI64: i64);
