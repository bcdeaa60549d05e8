//! `lk_str`: text as a pointer and a length, in both directions.

use std::ffi::c_char;
use std::ptr;

use crate::guard::slice;
use crate::status::{LK_ERR_INVALID_ARG, Not};

/// Text: UTF-8, `len` bytes without a NUL among them. `(NULL, 0)` is the empty text. As an
/// argument it is only read during the call. As a result it is a borrowed view, which lives as
/// long as the function that gives it says; no NUL follows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct lk_str {
    /// The first byte.
    pub data: *const c_char,
    /// Number of bytes.
    pub len: usize,
}

impl Default for lk_str {
    fn default() -> Self {
        Self { data: ptr::null(), len: 0 }
    }
}

impl From<&str> for lk_str {
    fn from(text: &str) -> Self {
        Self { data: text.as_ptr().cast(), len: text.len() }
    }
}

impl lk_str {
    /// The text.
    ///
    /// # Safety
    /// If `data` is not NULL, `len` bytes can be read there as long as `'a`.
    pub(crate) unsafe fn read<'a>(self) -> Result<&'a str, Not> {
        // SAFETY: the caller vouches for it.
        let bytes: &[u8] = unsafe { slice(self.data.cast(), self.len) }?;
        match std::str::from_utf8(bytes) {
            Ok(text) if !bytes.contains(&0) => Ok(text),
            _ => Err(Not(LK_ERR_INVALID_ARG)),
        }
    }
}
