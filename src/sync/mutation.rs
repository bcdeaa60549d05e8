//! Planted bugs, by name. See [`crate::sync`].

use std::sync::atomic::Ordering;

#[cfg(any(lk_loom, lk_shuttle))]
thread_local! {
    // loom and shuttle run every thread of a model on the OS thread that started it, so that
    // tests running side by side do not see each other's mutation. `tests/litmus` checks it.
    static ACTIVE: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// Plants the bug called `name` in every model this OS thread runs from now on.
#[cfg(any(lk_loom, lk_shuttle))]
pub fn set_mutation(name: Option<&'static str>) {
    ACTIVE.set(name);
}

/// Is the bug called `name` planted? Always false outside model builds.
#[cfg(any(lk_loom, lk_shuttle))]
#[inline]
pub fn mutated(name: &'static str) -> bool {
    ACTIVE.get() == Some(name)
}

/// Is the bug called `name` planted? Always false outside model builds.
#[cfg(not(any(lk_loom, lk_shuttle)))]
#[inline(always)]
pub const fn mutated(_name: &'static str) -> bool {
    false
}

/// `strong`, or `weak` while the bug called `name` is planted.
#[inline(always)]
pub fn ordering(name: &'static str, strong: Ordering, weak: Ordering) -> Ordering {
    if mutated(name) { weak } else { strong }
}
