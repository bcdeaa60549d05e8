//! `lk_status`: one list of numbers for the whole library, never reused.

use std::ffi::c_char;

use lanekeeper_core::process_queue::{PutError, Refusal};

/// What a call answers. 0 is success; a positive number is an expected "no" that changed nothing
/// unless the function says otherwise; a negative number is an error: a bug of the caller, or of
/// the library. Outputs are written only with `LK_OK`, unless the function says otherwise.
/// Test for the sign to be ready for numbers added later.
pub type lk_status = i32;

/// Done.
pub const LK_OK: lk_status = 0;
/// Nothing is ready.
pub const LK_EMPTY: lk_status = 1;
/// The role is held by somebody else just now: another thread, or a turn that has not ended.
pub const LK_BUSY: lk_status = 2;
/// The token, the delivery or the offset is not the current one.
pub const LK_STALE: lk_status = 3;
/// The queue was stopped: nothing new goes in or out.
pub const LK_STOPPED: lk_status = 4;
/// The queue is closed, for good.
pub const LK_CLOSED: lk_status = 5;
/// A limit of the configuration is reached, or an array of the caller is too small.
pub const LK_LIMIT: lk_status = 6;
/// The client is not in the list of members.
pub const LK_NOT_MEMBER: lk_status = 7;
/// There was nothing in flight to commit.
pub const LK_NOTHING: lk_status = 8;
/// Several clients of the group have this id.
pub const LK_DUPLICATE_CLIENT: lk_status = 9;
// The last positive number given out is 9.

/// A pointer that must not be NULL is.
pub const LK_ERR_NULL_ARG: lk_status = -1;
/// An argument has a value it cannot have.
pub const LK_ERR_INVALID_ARG: lk_status = -2;
/// An earlier call on this queue panicked; only `free` works on it from then on.
pub const LK_ERR_POISONED: lk_status = -3;
/// A bug of the library: the call panicked. Its queue is poisoned now.
pub const LK_ERR_PANIC: lk_status = -4;
/// The allocator had no memory left; nothing was done.
pub const LK_ERR_NO_MEMORY: lk_status = -5;
/// A struct has a size that this library cannot read: it was compiled against another header.
pub const LK_ERR_ABI_MISMATCH: lk_status = -6;
/// A number would leave its range.
pub const LK_ERR_OVERFLOW: lk_status = -7;
/// The function belongs to the other mode, orderly or concurrent.
pub const LK_ERR_WRONG_MODE: lk_status = -8;
// The last negative number given out is -8.

/// What a guarded body returns: an early `?` carries the status that is not `LK_OK`.
pub(crate) type Answer = Result<(), Not>;

/// A status other than `LK_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Not(pub(crate) lk_status);

impl From<Refusal> for Not {
    fn from(refusal: Refusal) -> Self {
        Not(match refusal {
            Refusal::Empty => LK_EMPTY,
            Refusal::Busy => LK_BUSY,
            Refusal::Stale => LK_STALE,
            Refusal::Stopped => LK_STOPPED,
            Refusal::Closed => LK_CLOSED,
            Refusal::Limit => LK_LIMIT,
            Refusal::WrongMode => LK_ERR_WRONG_MODE,
        })
    }
}

impl From<PutError> for Not {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Refused(refusal) => refusal.into(),
            PutError::InvalidOffset { .. } => Not(LK_ERR_INVALID_ARG),
            PutError::NoMemory => Not(LK_ERR_NO_MEMORY),
        }
    }
}

/// Answers the name of a status, as a constant NUL-terminated string such as `"LK_BUSY"`. Any
/// number is allowed; one that is no status answers `"LK_UNKNOWN_STATUS"`.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: none.
#[unsafe(no_mangle)]
pub extern "C" fn lk_status_name(status: lk_status) -> *const c_char {
    let name = match status {
        LK_OK => c"LK_OK",
        LK_EMPTY => c"LK_EMPTY",
        LK_BUSY => c"LK_BUSY",
        LK_STALE => c"LK_STALE",
        LK_STOPPED => c"LK_STOPPED",
        LK_CLOSED => c"LK_CLOSED",
        LK_LIMIT => c"LK_LIMIT",
        LK_NOT_MEMBER => c"LK_NOT_MEMBER",
        LK_NOTHING => c"LK_NOTHING",
        LK_DUPLICATE_CLIENT => c"LK_DUPLICATE_CLIENT",
        LK_ERR_NULL_ARG => c"LK_ERR_NULL_ARG",
        LK_ERR_INVALID_ARG => c"LK_ERR_INVALID_ARG",
        LK_ERR_POISONED => c"LK_ERR_POISONED",
        LK_ERR_PANIC => c"LK_ERR_PANIC",
        LK_ERR_NO_MEMORY => c"LK_ERR_NO_MEMORY",
        LK_ERR_ABI_MISMATCH => c"LK_ERR_ABI_MISMATCH",
        LK_ERR_OVERFLOW => c"LK_ERR_OVERFLOW",
        LK_ERR_WRONG_MODE => c"LK_ERR_WRONG_MODE",
        _ => c"LK_UNKNOWN_STATUS",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::lk_status_name;

    const HEADER: &str = include_str!("../../include/lanekeeper.h");

    fn name_of(status: i32) -> &'static str {
        // SAFETY: the function answers constants that end in a NUL.
        unsafe { CStr::from_ptr(lk_status_name(status)) }.to_str().unwrap()
    }

    #[test]
    fn every_status_of_the_header_has_its_name() {
        let mut seen = Vec::new();
        for line in HEADER.lines().filter_map(|line| line.strip_prefix("#define LK_")) {
            let Some((name, value)) = line.split_once(' ') else {
                continue;
            };
            let known = name_of(value.trim().parse().unwrap_or(i32::MIN));
            let status = name == "OK" || name.starts_with("ERR_") || known == format!("LK_{name}");
            if status {
                assert_eq!(known, format!("LK_{name}"));
                seen.push(value.to_owned());
            }
        }
        assert_eq!(seen.len(), 18, "{seen:?}");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 18, "a number is used twice");
    }

    #[test]
    fn any_number_has_a_name() {
        for status in [i32::MIN, -9, 10, 77, i32::MAX] {
            assert_eq!(name_of(status), "LK_UNKNOWN_STATUS");
        }
    }
}
