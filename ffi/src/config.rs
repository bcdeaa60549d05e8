//! `lk_process_queue_config`: a struct that begins with its size and may grow.

use std::mem::offset_of;

use lanekeeper_core::process_queue::{Config, Mode};

use crate::error::{self, lk_error};
use crate::status::{LK_ERR_ABI_MISMATCH, LK_ERR_INVALID_ARG, Not};

/// Orderly mode: one turn holder at a time takes, commits and rolls back.
pub const LK_MODE_ORDERLY: i32 = 0;
/// Concurrent mode: any number of consumers take and complete.
pub const LK_MODE_CONCURRENT: i32 = 1;

/// What a queue is created with. All zero means the defaults; `LK_PROCESS_QUEUE_CONFIG_INIT`
/// sets the size as well. Fields may be added at the end: a caller compiled against an older
/// header passes its smaller `struct_size`, and the rest counts as zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_process_queue_config {
    /// `sizeof(lk_process_queue_config)` of the caller. 0 counts as the size in version 0.1.
    pub struct_size: u32,
    /// `LK_MODE_ORDERLY` or `LK_MODE_CONCURRENT`.
    pub mode: i32,
    /// The first offset to ask the broker for; both offsets start here. 0 or more.
    pub start_offset: i64,
    /// The number of this assignment of the queue; new for every assignment.
    pub generation: u64,
    /// How long, in ms, a turn may outlast `close` before the lease is no longer refreshed.
    /// 0 means 20,000.
    pub hand_over_ms: i64,
    /// Most messages outstanding at once; a `put` beyond it answers `LK_LIMIT`. 0 means 2^20.
    pub outstanding_max: u32,
    /// Most consumers at once (concurrent mode). 0 means 64.
    pub consumers_max: u32,
}

/// A configuration struct: it begins with its size and may grow.
///
/// # Safety
/// It is `repr(C)`, its first field is the `uint32_t` size, and any bits are a value of it.
pub(crate) unsafe trait SizedConfig: Copy + Default {
    /// The size in version 0.1.
    const FIRST_SIZE: usize;
    /// Where a field ends, which is where an older or a newer struct may end.
    const FIELD_ENDS: &[usize];
}

// SAFETY: as the struct's definition shows; all its fields are integers.
unsafe impl SizedConfig for lk_process_queue_config {
    const FIRST_SIZE: usize = size_of::<Self>();
    const FIELD_ENDS: &[usize] = &[
        offset_of!(Self, mode),
        offset_of!(Self, start_offset),
        offset_of!(Self, generation),
        offset_of!(Self, hand_over_ms),
        offset_of!(Self, outstanding_max),
        offset_of!(Self, consumers_max),
        size_of::<Self>(),
    ];
}

/// A newer struct is read to its end to see that nothing there is set; it is never this large.
const STRUCT_SIZE_MAX: usize = 4096;

/// Reads a caller's struct of whatever size it has.
///
/// # Safety
/// `config` is not NULL and as many bytes can be read there as its `struct_size` says, but at
/// least those of a `uint32_t`; if that is 0, as many as the struct had in version 0.1.
pub(crate) unsafe fn read_sized<T: SizedConfig>(
    config: *const T,
    err_out: *mut *mut lk_error,
) -> Result<T, Not> {
    let bytes = config.cast::<u8>();
    // SAFETY: at least the size can be read.
    let told = unsafe { config.cast::<u32>().read_unaligned() } as usize;
    let size = if told == 0 { T::FIRST_SIZE } else { told };
    let known = size_of::<T>();
    let sound = if size <= known { T::FIELD_ENDS.contains(&size) } else { size <= STRUCT_SIZE_MAX };
    if !sound {
        let text = format!("struct_size is {told}, which no version of the struct has");
        // SAFETY: `err_out` is the caller's.
        return Err(unsafe { error::refuse(err_out, LK_ERR_ABI_MISMATCH, &text) });
    }
    if size > known {
        // SAFETY: `size` bytes can be read, so those from `known` on can.
        let rest = unsafe { bytes.add(known) };
        // SAFETY: as above.
        let rest = unsafe { std::slice::from_raw_parts(rest, size - known) };
        if rest.iter().any(|&byte| byte != 0) {
            let text = format!("struct_size is {told} and a field beyond {known} bytes is set");
            // SAFETY: `err_out` is the caller's.
            return Err(unsafe { error::refuse(err_out, LK_ERR_ABI_MISMATCH, &text) });
        }
    }
    let mut read = T::default();
    let count = size.min(known);
    // SAFETY: `count` bytes can be read there and fit; any bits are a value of every field.
    unsafe { bytes.copy_to_nonoverlapping((&raw mut read).cast(), count) };
    Ok(read)
}

impl lk_process_queue_config {
    /// The core's form of it, with the defaults filled in.
    ///
    /// # Safety
    /// `err_out` is NULL or may be written.
    pub(crate) unsafe fn to_core(self, err_out: *mut *mut lk_error) -> Result<Config, Not> {
        let mode = match self.mode {
            LK_MODE_ORDERLY => Mode::Orderly,
            LK_MODE_CONCURRENT => Mode::Concurrent,
            other => {
                let text = format!("mode is {other}, must be 0 (orderly) or 1 (concurrent)");
                // SAFETY: `err_out` is the caller's.
                return Err(unsafe { error::refuse(err_out, LK_ERR_INVALID_ARG, &text) });
            }
        };
        let default = Config::default();
        let or = |value: u32, default: u32| if value == 0 { default } else { value };
        Ok(Config {
            mode,
            start_offset: self.start_offset,
            outstanding_max: or(self.outstanding_max, default.outstanding_max),
            consumers_max: or(self.consumers_max, default.consumers_max),
            generation: self.generation,
            hand_over_ms: match self.hand_over_ms {
                0 => default.hand_over_ms,
                told => told,
            },
        })
    }
}

impl From<Config> for lk_process_queue_config {
    fn from(config: Config) -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            mode: match config.mode {
                Mode::Orderly => LK_MODE_ORDERLY,
                Mode::Concurrent => LK_MODE_CONCURRENT,
            },
            start_offset: config.start_offset,
            generation: config.generation,
            hand_over_ms: config.hand_over_ms,
            outstanding_max: config.outstanding_max,
            consumers_max: config.consumers_max,
        }
    }
}
