//! `lk_error`: the detail of a cold error, owned by the caller.

use std::ffi::c_char;

use crate::guard::{self, write_out};
use crate::status::{LK_OK, Not, lk_status};

/// What went wrong in a cold call, in words. Made by a function with an `err_out` parameter, owned
/// by the caller, immutable, free to be read from several threads at once.
/// Functions: `lk_error_message`, `lk_error_status`, `lk_error_free`.
pub struct lk_error {
    status: lk_status,
    /// Ends in a NUL, which `lk_error_message` does not count.
    message: String,
}

/// Hands an error over through `err_out`, if the caller wants one, and answers its status.
///
/// # Safety
/// `err_out` is NULL or may be written.
pub(crate) unsafe fn refuse(err_out: *mut *mut lk_error, status: lk_status, text: &str) -> Not {
    if !err_out.is_null() {
        let mut message = String::with_capacity(text.len() + 1);
        message.extend(text.chars().filter(|&c| c != '\0'));
        message.push('\0');
        let error = Box::into_raw(Box::new(lk_error { status, message }));
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(err_out, error) };
    }
    Not(status)
}

/// Gives the text of an error: UTF-8, `*len_out` bytes, and a NUL after them.
/// The text is borrowed: it lives until `lk_error_free`.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_error_message(
    error: *const lk_error,
    data_out: *mut *const c_char,
    len_out: *mut usize,
) -> lk_status {
    guard::plain_call!([error, data_out, len_out], {
        // SAFETY: not NULL; the caller vouches that it is an error not yet freed.
        let error = unsafe { &*error };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(data_out, error.message.as_ptr().cast()) };
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(len_out, error.message.len() - 1) };
        Ok(())
    })
}

/// Answers the status the failed call answered, or `LK_OK` if `error` is NULL.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_error_status(error: *const lk_error) -> lk_status {
    if error.is_null() {
        return LK_OK;
    }
    // SAFETY: not NULL; the caller vouches that it is an error not yet freed.
    unsafe { (*error).status }
}

/// Frees an error. NULL is fine.
///
/// Threads: any, exclusive: nobody else may be using the error.
/// Progress: lock-free, but for the allocator.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_error_free(error: *mut lk_error) {
    guard::quiet_call(|| {
        if !error.is_null() {
            // SAFETY: not NULL; the caller vouches that it is an error not yet freed, and ours
            // all come from `Box::into_raw` in `refuse`.
            drop(unsafe { Box::from_raw(error) });
        }
    });
}
