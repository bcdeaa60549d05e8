//! Versions of the loaded library. The numbers come from Cargo.toml, through cargo's environment.

use std::ffi::{CStr, c_char};

/// Number of the binary interface. It changes with every break: a struct, a function or the
/// meaning of a number. Compare it with `lk_abi_version()`, or call `lk_abi_matches()`.
pub const LK_ABI_VERSION: u32 = 1;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("the version of a package holds no NUL"),
    };

const fn number(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("the version of a package is made of numbers"),
    }
}

const MAJOR: u32 = number(env!("CARGO_PKG_VERSION_MAJOR"));
const MINOR: u32 = number(env!("CARGO_PKG_VERSION_MINOR"));
const PATCH: u32 = number(env!("CARGO_PKG_VERSION_PATCH"));
const VERSION_NUMBER: u32 = (MAJOR << 24) | (MINOR << 16) | (PATCH << 8);

/// Answers the version of the loaded library as one number,
/// `major << 24 | minor << 16 | patch << 8`; `LK_VERSION_NUMBER` is the one of the header.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lk_version_number() -> u32 {
    VERSION_NUMBER
}

/// Answers the version of the loaded library as a constant NUL-terminated string, such as
/// `"0.1.0"`.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lk_version_string() -> *const c_char {
    VERSION.as_ptr()
}

/// Answers the `LK_ABI_VERSION` the loaded library was built with.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lk_abi_version() -> u32 {
    LK_ABI_VERSION
}

/// Tells whether the loaded library has at least the version given.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lk_runtime_at_least(major: u32, minor: u32) -> bool {
    (MAJOR, MINOR) >= (major, minor)
}
