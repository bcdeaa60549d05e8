//! The current allocation of a group, replaced as a whole while it is read.

use super::{Allocation, Members, NoShare, Route, SetupError, Share, Shares, Strategy};
use crate::sync::blocking::Arc;
use crate::sync::mutated;
use crate::sync::swap::Swap;

/// Holds the current [`Allocation`]. Any thread reads it, any thread replaces a part of it; a
/// replacement keeps the other parts as they are at that moment, so that none of two at the same
/// time is lost. Model: `allocator_replacements`.
///
/// Reading is wait-free and takes no lock. Replacing prepares the new allocation first, on the
/// calling thread, and is lock-free: if another replacement came in between it prepares again.
#[derive(Debug)]
pub struct Allocator {
    current: Swap<Allocation>,
}

impl Allocator {
    /// An allocator that begins with this one.
    #[must_use]
    pub fn new(first: Allocation) -> Self {
        Self { current: Swap::new(Arc::new(first)) }
    }

    /// What is current, to ask several questions of the same.
    #[must_use]
    pub fn load(&self) -> Arc<Allocation> {
        self.current.load()
    }

    /// [`Allocation::share`] of what is current.
    ///
    /// # Errors
    /// Why there is none.
    pub fn share(&self, client: &str) -> Result<Share, NoShare> {
        self.current.with(|allocation| allocation.share(client))
    }

    /// [`Allocation::shares`] of what is current.
    ///
    /// # Errors
    /// Why nobody has one.
    pub fn shares(&self) -> Result<Shares, NoShare> {
        self.current.with(Allocation::shares)
    }

    /// Replaces the strategy.
    ///
    /// # Errors
    /// As for [`Allocation::new`]; then nothing was replaced.
    pub fn set_strategy(&self, strategy: &Strategy) -> Result<(), SetupError> {
        self.replace(|current| current.with_strategy(strategy.clone()))
    }

    /// Replaces the route.
    ///
    /// # Errors
    /// As for [`Allocation::new`]; then nothing was replaced.
    pub fn set_route(&self, route: &Arc<Route>) -> Result<(), SetupError> {
        self.replace(|current| current.with_route(Arc::clone(route)))
    }

    /// Replaces the members.
    ///
    /// # Errors
    /// As for [`Allocation::new`]; then nothing was replaced.
    pub fn set_members(&self, members: &Arc<Members>) -> Result<(), SetupError> {
        self.replace(|current| current.with_members(Arc::clone(members)))
    }

    fn replace(
        &self,
        next: impl Fn(&Allocation) -> Result<Allocation, SetupError>,
    ) -> Result<(), SetupError> {
        let mut current = self.current.load();
        loop {
            let prepared = Arc::new(next(&current)?);
            if mutated("allocator_blind") {
                current = self.current.load();
            }
            match self.current.compare_and_swap(&current, prepared) {
                Ok(()) => return Ok(()),
                Err(other) => current = other,
            }
        }
    }
}
