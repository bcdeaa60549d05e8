//! Handles with one owner: a boxed value behind a tag.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::status::{LK_ERR_INVALID_ARG, LK_ERR_NULL_ARG, Not};

const TAG_FREED: u32 = 0xdead_6c6b;

/// The inside of a handle. `repr(C)` keeps the tag the first word.
#[repr(C)]
pub(crate) struct Tagged<T> {
    tag: AtomicU32,
    value: T,
}

/// An opaque type of the header, with one field: a [`Tagged`].
pub(crate) trait Handle: Sized {
    /// Tells a live handle of this type from others.
    const TAG: u32;
    /// What it holds.
    type Value;

    fn wrap(inner: Tagged<Self::Value>) -> Self;
    fn inner(&self) -> &Tagged<Self::Value>;
}

/// Makes a handle that the caller owns.
pub(crate) fn into_raw<H: Handle>(value: H::Value) -> *mut H {
    Box::into_raw(Box::new(H::wrap(Tagged { tag: AtomicU32::new(H::TAG), value })))
}

/// Best effort: catches a freed handle, or a pointer to something else, most of the time.
///
/// # Safety
/// `handle` is NULL, or a word can be read there.
unsafe fn is_live<H: Handle>(handle: *const H) -> bool {
    if !handle.is_aligned() {
        return false;
    }
    // SAFETY: aligned, and readable by the caller's promise; the tag is the first word.
    let tag = unsafe { AtomicU32::from_ptr(handle.cast::<u32>().cast_mut()) };
    // ORDERING: Relaxed: that the handle lives is the caller's promise, this only detects misuse.
    tag.load(Ordering::Relaxed) == H::TAG
}

/// What a handle holds.
///
/// # Safety
/// `handle` is NULL, or a live handle that is not freed as long as `'a`.
pub(crate) unsafe fn get<'a, H: Handle + 'a>(handle: *const H) -> Result<&'a H::Value, Not> {
    if handle.is_null() {
        return Err(Not(LK_ERR_NULL_ARG));
    }
    // SAFETY: not NULL; the caller vouches for the rest.
    if !unsafe { is_live(handle) } {
        return Err(Not(LK_ERR_INVALID_ARG));
    }
    // SAFETY: not NULL, and live as far as can be told.
    Ok(unsafe { &(*handle).inner().value })
}

/// Frees a handle; NULL and what is no live handle is left alone.
///
/// # Safety
/// `handle` is NULL, or from [`into_raw`] and the caller's to free.
pub(crate) unsafe fn free<H: Handle>(handle: *mut H) {
    if handle.is_null() {
        return;
    }
    // SAFETY: not NULL; the caller vouches for the rest.
    if !unsafe { is_live(handle) } {
        return;
    }
    // SAFETY: live, and made by `Box::into_raw`; the caller gives it up.
    let owned = unsafe { Box::from_raw(handle) };
    // ORDERING: Relaxed: for the check of misuse only.
    owned.inner().tag.store(TAG_FREED, Ordering::Relaxed);
}
