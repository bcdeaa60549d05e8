//! The boundary every exported body runs behind: null checks, poison, and no panic past it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::handle::lk_process_queue;
use crate::status::{Answer, LK_ERR_INVALID_ARG, LK_ERR_NULL_ARG, LK_ERR_PANIC, LK_OK};
use crate::status::{Not, lk_status};

/// The body of a function on a queue: the handle and every pointer named in the list are checked
/// for NULL before the body runs; inside it the handle is a reference.
macro_rules! queue_call {
    ($queue:ident, [$($pointer:ident),* $(,)?], $body:block) => {{
        $( if $pointer.is_null() { return $crate::status::LK_ERR_NULL_ARG; } )*
        let body = |$queue: &$crate::handle::lk_process_queue| -> $crate::status::Answer { $body };
        // SAFETY: the caller vouches that a handle that is not NULL came from
        // `lk_process_queue_new` or `_clone` and that its reference is not freed before the end
        // of this call (but by the release callback, which `release` provides for).
        unsafe { $crate::guard::with_queue($queue, body) }
    }};
}
pub(crate) use queue_call;

/// The body of a function without a queue.
macro_rules! plain_call {
    ([$($pointer:ident),* $(,)?], $body:block) => {{
        $( if $pointer.is_null() { return $crate::status::LK_ERR_NULL_ARG; } )*
        $crate::guard::status_call(|| $body)
    }};
}
pub(crate) use plain_call;

/// Runs `body` on a live, unpoisoned queue; a panic poisons it.
///
/// # Safety
/// `queue` is NULL, or a handle whose reference lives as long as this call needs it.
#[inline]
pub(crate) unsafe fn with_queue(
    queue: *const lk_process_queue,
    body: impl FnOnce(&lk_process_queue) -> Answer,
) -> lk_status {
    if queue.is_null() {
        return LK_ERR_NULL_ARG;
    }
    // SAFETY: not NULL; the caller vouches for the rest.
    if let Err(Not(status)) = unsafe { lk_process_queue::check(queue) } {
        return status;
    }
    // SAFETY: not NULL, and a live handle as far as can be told.
    let handle = unsafe { &*queue };
    let guarded = AssertUnwindSafe(|| {
        fault::point();
        body(handle)
    });
    match catch_unwind(guarded) {
        Ok(answer) => status_of(answer),
        Err(panic) => {
            handle.poison();
            // Its own drop could panic in turn, and nobody is left to catch that.
            std::mem::forget(panic);
            LK_ERR_PANIC
        }
    }
}

/// Runs `body`, which touches no queue.
pub(crate) fn status_call(body: impl FnOnce() -> Answer) -> lk_status {
    let guarded = AssertUnwindSafe(|| {
        fault::point();
        body()
    });
    match catch_unwind(guarded) {
        Ok(answer) => status_of(answer),
        Err(panic) => {
            std::mem::forget(panic);
            LK_ERR_PANIC
        }
    }
}

/// Runs the body of a function that answers nothing; a panic in it ends there.
pub(crate) fn quiet_call(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| {
        fault::point();
        body();
    })) {
        std::mem::forget(panic);
    }
}

#[inline]
pub(crate) fn status_of(answer: Answer) -> lk_status {
    match answer {
        Ok(()) => LK_OK,
        Err(Not(status)) => status,
    }
}

/// Writes one output.
///
/// # Safety
/// `out` is not NULL, aligned, and may be written.
#[inline]
pub(crate) unsafe fn write_out<T>(out: *mut T, value: T) {
    // SAFETY: as above.
    unsafe { out.write(value) };
}

/// A caller's array as a slice; `(NULL, 0)` and `(pointer, 0)` are empty ones.
///
/// # Safety
/// If `count > 0` and `data` is neither NULL nor misaligned, `count` values can be read there
/// as long as `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T>(data: *const T, count: usize) -> Result<&'a [T], Not> {
    check_array(data, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: not NULL, aligned, not larger than an object can be; the caller vouches for the
    // rest.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// Checks an array of `count` values that is only written, or read later.
#[inline]
pub(crate) fn check_array<T>(data: *const T, count: usize) -> Answer {
    if count == 0 {
        return Ok(());
    }
    if data.is_null() {
        return Err(Not(LK_ERR_NULL_ARG));
    }
    if !data.is_aligned() || count > isize::MAX as usize / size_of::<T>() {
        return Err(Not(LK_ERR_INVALID_ARG));
    }
    Ok(())
}

/// Panics on demand, for the tests of this boundary.
pub(crate) mod fault {
    #[cfg(feature = "fault-injection")]
    mod armed {
        use std::cell::Cell;

        thread_local! {
            static NEXT: Cell<bool> = const { Cell::new(false) };
        }

        pub(crate) fn point() {
            assert!(!NEXT.take(), "a panic asked for by lk_test_panic_next");
        }

        /// Makes the next guarded body on this thread panic. Only in libraries built for tests.
        #[unsafe(no_mangle)]
        pub extern "C" fn lk_test_panic_next(armed: bool) {
            NEXT.set(armed);
        }
    }
    #[cfg(feature = "fault-injection")]
    pub(crate) use armed::point;

    #[cfg(not(feature = "fault-injection"))]
    #[inline(always)]
    pub(crate) fn point() {}
}
