//! An exclusive role with a state of its own, entered without waiting.
//!
//! Linearization point of entering: the `swap`. Progress: wait-free. Who finds the role taken is
//! told so.

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::store_release;

/// State that only the holder of the role touches.
pub(crate) struct RoleCell<S> {
    entered: AtomicU64,
    state: UnsafeCell<S>,
}

// SAFETY: `state` is reached only by the thread that moved `entered` from 0 to 1, until it moves it
// back.
unsafe impl<S: Send> Sync for RoleCell<S> {}
// SAFETY: plain ownership of the state.
unsafe impl<S: Send> Send for RoleCell<S> {}

/// The role, held.
pub(crate) struct RoleGuard<'r, S> {
    cell: &'r RoleCell<S>,
}

impl<S> RoleCell<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { entered: AtomicU64::new(0), state: UnsafeCell::new(state) }
    }

    /// `None` when somebody else holds it.
    pub(crate) fn enter(&self) -> Option<RoleGuard<'_, S>> {
        // ORDERING: Acquire — pairs with the Release in `drop`: what the last holder did to the
        // state is seen. Model: put_put
        let order =
            crate::sync::ordering("role_enter_relaxed", Ordering::Acquire, Ordering::Relaxed);
        // Lazily: a guard that is made and dropped would let the holder's role go.
        (self.entered.swap(1, order) == 0).then(|| RoleGuard { cell: self })
    }

    /// The state, without the role: exclusive by the borrow.
    pub(crate) fn get_mut(&mut self) -> &mut S {
        self.state.get_mut()
    }
}

impl<S> RoleGuard<'_, S> {
    #[inline(always)]
    pub(crate) fn state(&mut self) -> &mut S {
        self.cell.state.with_mut(|state| {
            // SAFETY: this guard is the only one (RoleCell::enter), and it is borrowed exclusively.
            unsafe { &mut *state }
        })
    }
}

impl<S> Drop for RoleGuard<'_, S> {
    fn drop(&mut self) {
        // ORDERING: Release — pairs with the Acquire in `enter`. While it is 1, a swap by `enter`
        // writes the same.
        store_release(&self.cell.entered, 0);
    }
}
