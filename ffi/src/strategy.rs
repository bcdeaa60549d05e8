//! `lk_strategy`: how queues are divided, from a struct that begins with its size and may grow.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use lanekeeper_core::allocate::{BoundedLoad, ConsistentHash, Nearby, Owners, RingHash, Strategy};

use crate::config::{SizedConfig, read_sized};
use crate::error::{self, lk_error};
use crate::guard::{self, plain_call, write_out};
use crate::message_queue::lk_message_queue;
use crate::object::{self, Handle, Tagged};
use crate::release::lk_user_data_free_fn;
use crate::route::{queues, refused, texts};
use crate::status::{LK_ERR_INVALID_ARG, Not, lk_status};
use crate::text::lk_str;

/// Runs of neighbours, as upstream's `AllocateMessageQueueAveragely`.
pub const LK_STRATEGY_AVG: i32 = 0;
/// Dealt out one by one, as upstream's `AllocateMessageQueueAveragelyByCircle`.
pub const LK_STRATEGY_AVG_BY_CIRCLE: i32 = 1;
/// A hash ring, as upstream's `AllocateMessageQueueConsistentHash`.
pub const LK_STRATEGY_CONSISTENT_HASH: i32 = 2;
/// A list of its own whoever asks, as upstream's `AllocateMessageQueueByConfig`.
pub const LK_STRATEGY_CONFIG: i32 = 3;
/// Queues of certain machine rooms only, as upstream's `AllocateMessageQueueByMachineRoom`.
pub const LK_STRATEGY_MACHINE_ROOM: i32 = 4;
/// Room by room, as upstream's `AllocateMachineRoomNearby`.
pub const LK_STRATEGY_MACHINE_ROOM_NEARBY: i32 = 5;
/// Everybody keeps what they had as far as balance allows. Not upstream's.
pub const LK_STRATEGY_STICKY: i32 = 6;
/// A hash ring on which nobody gets much more than the average. Not upstream's.
pub const LK_STRATEGY_BOUNDED_LOAD: i32 = 7;

/// Gives the place of a text on the ring: the same for the same text in every client of the group.
/// It runs on the thread that makes an allocator or replaces a part of one, never while a share is
/// asked for. `text` is not NUL-terminated and lives until the callback returns. It must not call
/// the allocator at work, must not unwind and not `longjmp`. NULL means MD5, as upstream.
pub type lk_ring_hash_fn = Option<
    unsafe extern "C-unwind" fn(user_data: *mut c_void, text: *const c_char, len: usize) -> i64,
>;

/// What a strategy is created with. All zero means `LK_STRATEGY_AVG`; `LK_STRATEGY_CONFIG_INIT`
/// sets the size as well. Fields may be added at the end: a caller compiled against an older
/// header passes its smaller `struct_size`, and the rest counts as zero. Fields that a strategy
/// has no use for are not looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lk_strategy_config {
    /// `sizeof(lk_strategy_config)` of the caller. 0 counts as the size in version 0.1.
    pub struct_size: u32,
    /// One of `LK_STRATEGY_*`.
    pub kind: i32,
    /// Machine room nearby: the strategy within a room, any but it and `LK_STRATEGY_CONFIG`.
    pub inner: i32,
    /// Hash ring: points of each client. 0 means 10.
    pub virtual_nodes: u32,
    /// Bounded load: most of the average that a client gets, in percent, 100 or more. 0 means 125.
    pub load_percent: u32,
    /// 0.
    pub reserved: u32,
    /// Machine room: the rooms whose queues are divided.
    pub rooms: *const lk_str,
    /// How many there are.
    pub room_count: usize,
    /// Config: the list. Sticky: queues that had an owner before, each once, in any order.
    pub queues: *const lk_message_queue,
    /// How many there are.
    pub queue_count: usize,
    /// Sticky: the owners of those queues, as many.
    pub owners: *const lk_str,
    /// Hash ring: the hash.
    pub hash: lk_ring_hash_fn,
    /// Passed to `hash`, on any thread.
    pub hash_user_data: *mut c_void,
    /// Called once, when no strategy and no allocator will call `hash` any more. NULL is allowed.
    pub hash_user_data_free: lk_user_data_free_fn,
}

impl Default for lk_strategy_config {
    fn default() -> Self {
        Self {
            struct_size: 0,
            kind: LK_STRATEGY_AVG,
            inner: 0,
            virtual_nodes: 0,
            load_percent: 0,
            reserved: 0,
            rooms: ptr::null(),
            room_count: 0,
            queues: ptr::null(),
            queue_count: 0,
            owners: ptr::null(),
            hash: None,
            hash_user_data: ptr::null_mut(),
            hash_user_data_free: None,
        }
    }
}

// SAFETY: `repr(C)`, begins with the size, and any bits are a value of every field: integers,
// pointers, and function pointers that may be NULL.
unsafe impl SizedConfig for lk_strategy_config {
    const FIRST_SIZE: usize = size_of::<Self>();
    const FIELD_ENDS: &[usize] = &[
        offset_of!(Self, kind),
        offset_of!(Self, inner),
        offset_of!(Self, virtual_nodes),
        offset_of!(Self, load_percent),
        offset_of!(Self, reserved),
        offset_of!(Self, rooms),
        offset_of!(Self, room_count),
        offset_of!(Self, queues),
        offset_of!(Self, queue_count),
        offset_of!(Self, owners),
        offset_of!(Self, hash),
        offset_of!(Self, hash_user_data),
        offset_of!(Self, hash_user_data_free),
        size_of::<Self>(),
    ];
}

/// A way to divide queues. Immutable; any threads may use it at the same time. An allocator takes
/// a reference of its own, so that the handle may be freed at once.
///
/// Functions: `lk_strategy_new`, `_free`, `_name`.
pub struct lk_strategy {
    inner: Tagged<Strategy>,
}

impl Handle for lk_strategy {
    /// "lkst"
    const TAG: u32 = 0x6c6b_7374;
    type Value = Strategy;

    fn wrap(inner: Tagged<Strategy>) -> Self {
        Self { inner }
    }
    fn inner(&self) -> &Tagged<Strategy> {
        &self.inner
    }
}

/// The host's hash with its user data.
struct HostHash {
    hash: unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize) -> i64,
    user_data: *mut c_void,
    user_data_free: lk_user_data_free_fn,
}

// SAFETY: the header obliges the host to register callbacks and data that any thread may use.
unsafe impl Send for HostHash {}
// SAFETY: as above.
unsafe impl Sync for HostHash {}

impl HostHash {
    fn hash(&self, text: &str) -> i64 {
        // SAFETY: the host registered the two together; the text lives until the call returns.
        unsafe { (self.hash)(self.user_data, text.as_ptr().cast(), text.len()) }
    }
}

impl Drop for HostHash {
    fn drop(&mut self) {
        if let Some(user_data_free) = self.user_data_free {
            // SAFETY: the host registered the two together; nobody hashes any more.
            unsafe { user_data_free(self.user_data) };
        }
    }
}

impl lk_strategy_config {
    /// The ring by MD5, to be given the host's hash once nothing can be refused any more: a refused
    /// one stays the caller's.
    fn ring(&self) -> ConsistentHash {
        let default = ConsistentHash::default();
        match self.virtual_nodes {
            0 => default,
            virtual_nodes => ConsistentHash { virtual_nodes, ..default },
        }
    }

    fn host_ring(&self) -> ConsistentHash {
        let Some(hash) = self.hash else { return self.ring() };
        let (user_data, user_data_free) = (self.hash_user_data, self.hash_user_data_free);
        let host = HostHash { hash, user_data, user_data_free };
        let hash = RingHash::Custom(Arc::new(move |text| host.hash(text)));
        ConsistentHash { hash, ..self.ring() }
    }

    /// # Safety
    /// The lists that the kind has a use for can be read; `err_out` is NULL or may be written.
    unsafe fn to_core(self, err_out: *mut *mut lk_error) -> Result<Strategy, Not> {
        if self.kind != LK_STRATEGY_MACHINE_ROOM_NEARBY {
            // SAFETY: the caller vouches for all of it.
            return unsafe { self.simple("kind", self.kind, err_out) };
        }
        if matches!(self.inner, LK_STRATEGY_MACHINE_ROOM_NEARBY | LK_STRATEGY_CONFIG) {
            let text = format!("inner is {}, which cannot be used within a room", self.inner);
            // SAFETY: `err_out` is the caller's.
            return Err(unsafe { error::refuse(err_out, LK_ERR_INVALID_ARG, &text) });
        }
        // SAFETY: the caller vouches for all of it.
        let inner = unsafe { self.simple("inner", self.inner, err_out) }?;
        // SAFETY: `err_out` is the caller's.
        let nearby = Nearby::new(inner).map_err(|why| unsafe { refused(err_out, &why) })?;
        Ok(Strategy::MachineRoomNearby(nearby))
    }

    /// # Safety
    /// As for `to_core`.
    unsafe fn simple(
        self,
        field: &str,
        kind: i32,
        err_out: *mut *mut lk_error,
    ) -> Result<Strategy, Not> {
        Ok(match kind {
            LK_STRATEGY_AVG => Strategy::Average,
            LK_STRATEGY_AVG_BY_CIRCLE => Strategy::AverageByCircle,
            LK_STRATEGY_CONSISTENT_HASH => Strategy::ConsistentHash(self.host_ring()),
            LK_STRATEGY_CONFIG => {
                // SAFETY: the caller vouches for the list and `err_out`.
                let list = unsafe { queues(self.queues, self.queue_count, err_out) }?;
                Strategy::Config(list.into())
            }
            LK_STRATEGY_MACHINE_ROOM => {
                // SAFETY: as above.
                let rooms = unsafe { texts("rooms", self.rooms, self.room_count, err_out) }?;
                Strategy::machine_room(rooms)
            }
            LK_STRATEGY_STICKY => {
                // SAFETY: as above.
                let list = unsafe { queues(self.queues, self.queue_count, err_out) }?;
                // SAFETY: as above.
                let owners = unsafe { texts("owners", self.owners, self.queue_count, err_out) }?;
                Strategy::Sticky(Arc::new(Owners::new(list.into_iter().zip(owners))))
            }
            LK_STRATEGY_BOUNDED_LOAD => {
                let percent = if self.load_percent == 0 { 125 } else { self.load_percent };
                // SAFETY: `err_out` is the caller's.
                let refuse = |why| unsafe { refused(err_out, &why) };
                BoundedLoad::new(self.ring(), percent).map_err(refuse)?;
                let bounded = BoundedLoad::new(self.host_ring(), percent).map_err(refuse)?;
                Strategy::BoundedLoad(bounded)
            }
            other => {
                let text = format!("{field} is {other}, must be one of LK_STRATEGY_*, 0 to 7");
                // SAFETY: `err_out` is the caller's.
                return Err(unsafe { error::refuse(err_out, LK_ERR_INVALID_ARG, &text) });
            }
        })
    }
}

/// Makes a strategy. `config` and `strategy_out` must not be NULL; `err_out` may be.
///
/// Ownership: the handle is the caller's, to be given to `lk_strategy_free`; so is an error object.
/// The lists are copied. With `LK_OK` the strategy owns `hash_user_data` if it uses `hash`; in any
/// other case the caller keeps it.
///
/// Threads: any.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: yes.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (a value of the configuration; the error object
///   names it), LK_ERR_ABI_MISMATCH (its size), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_strategy_new(
    config: *const lk_strategy_config,
    strategy_out: *mut *mut lk_strategy,
    err_out: *mut *mut lk_error,
) -> lk_status {
    plain_call!([config, strategy_out], {
        // SAFETY: not NULL; the caller vouches for its size, and for `err_out`.
        let config = unsafe { read_sized(config, err_out) }?;
        // SAFETY: the caller vouches for the lists and for `err_out`.
        let strategy = unsafe { config.to_core(err_out) }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(strategy_out, object::into_raw(strategy)) };
        Ok(())
    })
}

/// Frees a strategy. NULL is fine. Allocators that use it go on.
///
/// Threads: any, exclusive: nobody else may be using the handle.
/// Progress: lock-free, but for the allocation of memory.
/// Allocates: never.
/// Calls back: `hash_user_data_free`, if nobody else uses the hash.
/// Errors: none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lk_strategy_free(strategy: *mut lk_strategy) {
    // SAFETY: the caller vouches that it is NULL or theirs to free.
    guard::quiet_call(|| unsafe { object::free(strategy) });
}

/// Reads the name that upstream's class gives itself, such as `"AVG"`. It is constant.
///
/// Threads: any.
/// Progress: wait-free.
/// Allocates: never.
/// Calls back: never.
/// Errors: LK_ERR_NULL_ARG, LK_ERR_INVALID_ARG (not a live handle; best effort), LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_strategy_name(
    strategy: *const lk_strategy,
    name_out: *mut lk_str,
) -> lk_status {
    plain_call!([strategy, name_out], {
        // SAFETY: the caller vouches for the handle.
        let strategy = unsafe { object::get(strategy) }?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(name_out, strategy.name().into()) };
        Ok(())
    })
}
