//! A shared reference that is replaced as a whole while others read it.
//!
//! In a normal build it is `arc_swap::ArcSwap`: readers never wait and never retry, writers replace
//! by compare-and-swap. Its inside is not visible to the models, so there it is a mutex of theirs,
//! which makes each call one step: the models test what is built on it, not the crate.

#[cfg(not(any(lk_loom, lk_shuttle)))]
use arc_swap::{ArcSwap, Guard};

use super::blocking::Arc;

/// The cell.
#[derive(Debug)]
pub struct Swap<T>(
    #[cfg(not(any(lk_loom, lk_shuttle)))] ArcSwap<T>,
    #[cfg(any(lk_loom, lk_shuttle))] super::Mutex<Arc<T>>,
);

#[cfg(not(any(lk_loom, lk_shuttle)))]
impl<T> Swap<T> {
    /// A cell that holds `value`.
    #[must_use]
    pub fn new(value: Arc<T>) -> Self {
        Self(ArcSwap::new(value))
    }

    /// What it holds now. Wait-free.
    #[must_use]
    pub fn load(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Calls `read` on what it holds now, without touching its count as a rule. Wait-free, but for
    /// `read`.
    pub fn with<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.0.load())
    }

    /// Replaces `current` by `next`; if it holds something else by now, answers that instead.
    ///
    /// # Errors
    /// What it holds, if that is not `current`. Nothing was changed.
    pub fn compare_and_swap(&self, current: &Arc<T>, next: Arc<T>) -> Result<(), Arc<T>> {
        let before = self.0.compare_and_swap(current, next);
        if Arc::ptr_eq(&before, current) { Ok(()) } else { Err(Guard::into_inner(before)) }
    }
}

#[cfg(any(lk_loom, lk_shuttle))]
#[allow(missing_docs, reason = "as above")]
impl<T> Swap<T> {
    #[must_use]
    pub fn new(value: Arc<T>) -> Self {
        Self(super::Mutex::new(value))
    }

    #[must_use]
    pub fn load(&self) -> Arc<T> {
        Arc::clone(&self.0.lock().expect("nobody panics inside"))
    }

    pub fn with<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.load())
    }

    pub fn compare_and_swap(&self, current: &Arc<T>, next: Arc<T>) -> Result<(), Arc<T>> {
        let mut held = self.0.lock().expect("nobody panics inside");
        if !Arc::ptr_eq(&held, current) {
            return Err(Arc::clone(&held));
        }
        *held = next;
        Ok(())
    }
}
