//! What the handles of tables have in common: a tag, a poison mark, and strings as C passes them.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use lanekeeper_core::lease::LeaseRefusal;

use crate::guard::{fault, quiet_call, slice, status_of};
use crate::status::{Answer, LK_BUSY, LK_ERR_INVALID_ARG, LK_ERR_NULL_ARG, LK_ERR_PANIC};
use crate::status::{LK_ERR_POISONED, LK_LIMIT, LK_STALE, Not, lk_status};

/// Of a handle a call on which panicked.
const POISONED: u32 = 0x8000_0000;

/// A value behind a handle. The tag is the first word.
#[repr(C)]
pub(crate) struct Tagged<T> {
    tag: AtomicU32,
    value: T,
}

/// A handle: a struct whose only field is a `Tagged`.
pub(crate) trait Handle: Sized {
    /// Tells handles of this type from others. The highest bit is not set.
    const TAG: u32;
    type Value;
    fn wrap(inner: Tagged<Self::Value>) -> Self;
    fn inner(&self) -> &Tagged<Self::Value>;
}

/// Declares what `Handle` needs.
macro_rules! handle {
    ($name:ident, $value:ty, $tag:expr) => {
        impl $crate::tables::Handle for $name {
            const TAG: u32 = $tag;
            type Value = $value;
            fn wrap(inner: $crate::tables::Tagged<$value>) -> Self {
                Self { inner }
            }
            fn inner(&self) -> &$crate::tables::Tagged<$value> {
                &self.inner
            }
        }
    };
}
pub(crate) use handle;

/// Makes a handle and gives it out.
///
/// # Safety
/// `out` is not NULL, and may be written.
pub(crate) unsafe fn give_out<H: Handle>(out: *mut *mut H, value: H::Value) {
    let handle = H::wrap(Tagged { tag: AtomicU32::new(H::TAG), value });
    // SAFETY: by the caller's promise.
    unsafe { out.write(Box::into_raw(Box::new(handle))) };
}

/// Frees a handle, unless it is NULL or none.
///
/// # Safety
/// `handle` is NULL, or a word can be read there; and no call uses it any more.
pub(crate) unsafe fn free<H: Handle>(handle: *mut H) {
    quiet_call(|| {
        if handle.is_null() {
            return;
        }
        // SAFETY: by the caller's promise.
        let Some(tag) = (unsafe { tag_of(handle) }) else { return };
        // ORDERING: Relaxed: only detects misuse; that nobody uses it is the caller's promise.
        if tag.load(Ordering::Relaxed) & !POISONED == H::TAG {
            // ORDERING: Relaxed: as above.
            tag.store(0, Ordering::Relaxed);
            // SAFETY: live, made by `give_out`, and the caller's to free.
            drop(unsafe { Box::from_raw(handle) });
        }
    });
}

/// # Safety
/// `handle` is not NULL and a word can be read there.
unsafe fn tag_of<'a, H: Handle>(handle: *const H) -> Option<&'a AtomicU32> {
    if !handle.is_aligned() {
        return None;
    }
    // SAFETY: aligned, readable by the caller's promise; the tag is the first word.
    Some(unsafe { AtomicU32::from_ptr(handle.cast::<u32>().cast_mut()) })
}

/// What is behind a handle, if it may be used. Best effort, as for `lk_process_queue`.
///
/// # Safety
/// `handle` is NULL, or a handle that lives as long as `'a`.
pub(crate) unsafe fn open<'a, H: Handle + 'a>(
    handle: *const H,
) -> Result<&'a Tagged<H::Value>, lk_status> {
    if handle.is_null() {
        return Err(LK_ERR_NULL_ARG);
    }
    // SAFETY: not NULL; the caller vouches for the rest.
    let tag = unsafe { tag_of(handle) }.ok_or(LK_ERR_INVALID_ARG)?;
    // ORDERING: Relaxed: detects misuse, see `lk_process_queue::tag`.
    match tag.load(Ordering::Relaxed) {
        live if live == H::TAG => {}
        poisoned if poisoned == H::TAG | POISONED => return Err(LK_ERR_POISONED),
        _ => return Err(LK_ERR_INVALID_ARG),
    }
    // SAFETY: not NULL, and a live handle as far as can be told.
    Ok(unsafe { &*handle }.inner())
}

impl<T> Tagged<T> {
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    /// Runs the body of a call on this handle; a panic poisons it.
    pub(crate) fn run(&self, body: impl FnOnce() -> Answer) -> lk_status {
        let guarded = AssertUnwindSafe(|| {
            fault::point();
            body()
        });
        match catch_unwind(guarded) {
            Ok(answer) => status_of(answer),
            Err(panic) => {
                // ORDERING: Relaxed: as in `open`.
                self.tag.fetch_or(POISONED, Ordering::Relaxed);
                std::mem::forget(panic);
                LK_ERR_PANIC
            }
        }
    }
}

/// The body of a function on a table: the handle and every pointer named are checked for NULL.
macro_rules! table_call {
    ($handle:ident, [$($pointer:ident),* $(,)?], $body:block) => {{
        $( if $pointer.is_null() { return $crate::status::LK_ERR_NULL_ARG; } )*
        // SAFETY: the caller vouches that a handle that is not NULL is one of this type, and that
        // it is not freed before the end of this call.
        let inner = match unsafe { $crate::tables::open($handle) } {
            Ok(inner) => inner,
            Err(status) => return status,
        };
        let $handle = inner.value();
        inner.run(|| -> $crate::status::Answer { $body })
    }};
}
pub(crate) use table_call;

/// Writes one element of a caller's array.
///
/// # Safety
/// `data` is aligned and has room for more than `index` values.
pub(crate) unsafe fn write_at<T>(data: *mut T, index: usize, value: T) {
    // SAFETY: inside the array, by the caller's promise.
    let place = unsafe { data.add(index) };
    // SAFETY: as above.
    unsafe { place.write(value) };
}

/// A caller's text: UTF-8 without NUL.
///
/// # Safety
/// As for `guard::slice`.
pub(crate) unsafe fn text(data: *const c_char, len: usize) -> Result<String, Not> {
    // SAFETY: by the caller's promise.
    let bytes = unsafe { slice(data.cast::<u8>(), len) }?;
    let text = std::str::from_utf8(bytes).map_err(|_| Not(LK_ERR_INVALID_ARG))?;
    if text.contains('\0') { Err(Not(LK_ERR_INVALID_ARG)) } else { Ok(text.to_owned()) }
}

impl From<LeaseRefusal> for Not {
    fn from(refusal: LeaseRefusal) -> Self {
        Not(match refusal {
            LeaseRefusal::Held => LK_BUSY,
            LeaseRefusal::Stale => LK_STALE,
            LeaseRefusal::Limit => LK_LIMIT,
            LeaseRefusal::Time { .. } => LK_ERR_INVALID_ARG,
        })
    }
}
