//! Payloads on their way back to the host.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use lanekeeper_core::process_queue::{Completed, Refusal};

use crate::guard::{check_array, write_out};
use crate::outcome::lk_complete_result;
use crate::status::{Answer, LK_LIMIT, Not};

/// Gives one payload back to the host: called exactly once for each payload of the queue, but for
/// those handed back in an array of the caller (the `_into` functions).
///
/// It runs on the thread whose call released the payload, after that call has taken effect and
/// has given its role back, with no lock and no reclamation guard held. It may call anything,
/// also functions on its own queue and `lk_process_queue_free`. It must not unwind and not
/// `longjmp`. NULL means that nobody is told.
pub type lk_payload_release_fn =
    Option<unsafe extern "C-unwind" fn(user_data: *mut c_void, payload: u64)>;

/// Ends the life of a `user_data`: called once, when the last reference of its queue is gone and
/// no callback with it will run any more. It must not unwind. NULL is allowed.
pub type lk_user_data_free_fn = Option<unsafe extern "C-unwind" fn(user_data: *mut c_void)>;

/// The host's callbacks with their user data.
#[derive(Clone, Copy)]
pub(crate) struct HostFns {
    pub(crate) release: lk_payload_release_fn,
    pub(crate) user_data: *mut c_void,
    pub(crate) user_data_free: lk_user_data_free_fn,
}

// SAFETY: the header obliges the host to register callbacks and data that any thread may use.
unsafe impl Send for HostFns {}
// SAFETY: as above.
unsafe impl Sync for HostFns {}

impl HostFns {
    #[inline]
    pub(crate) fn release(self, payload: u64) {
        if let Some(release) = self.release {
            // SAFETY: the host registered the two together.
            unsafe { release(self.user_data, payload) };
        }
    }

    pub(crate) fn end(self) {
        if let Some(user_data_free) = self.user_data_free {
            // SAFETY: the host registered the two together; the queue is gone.
            unsafe { user_data_free(self.user_data) };
        }
    }
}

const ON_STACK: usize = 256;

/// What one call released, kept until the call has given its role back. The first few are on the
/// stack, so that an ordinary batch allocates nothing.
pub(crate) struct Released {
    len: usize,
    stack: [MaybeUninit<u64>; ON_STACK],
    spilled: Vec<u64>,
}

impl Released {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { len: 0, stack: [MaybeUninit::uninit(); ON_STACK], spilled: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, payload: u64) {
        match self.stack.get_mut(self.len) {
            Some(slot) => {
                slot.write(payload);
                self.len += 1;
            }
            None => self.spill(payload),
        }
    }

    #[cold]
    fn spill(&mut self, payload: u64) {
        self.spilled.push(payload);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn each(&self, mut f: impl FnMut(u64)) {
        for slot in &self.stack[..self.len] {
            // SAFETY: `push` has written the first `len` slots.
            f(unsafe { slot.assume_init() });
        }
        for &payload in &self.spilled {
            f(payload);
        }
    }
}

/// A caller's array that payloads are handed back in.
pub(crate) struct PayloadArray {
    data: *mut u64,
    capacity: usize,
    len: usize,
}

impl PayloadArray {
    /// # Safety
    /// `capacity` values may be written at `data`; it is not NULL unless `capacity` is 0.
    pub(crate) unsafe fn new(data: *mut u64, capacity: usize) -> Self {
        Self { data, capacity, len: 0 }
    }

    /// An array for a `complete` of `count` targets; told in `*len_out` if that is too many.
    ///
    /// # Safety
    /// As for `new`, and `len_out` may be written.
    pub(crate) unsafe fn with_room(
        data: *mut u64,
        capacity: usize,
        count: usize,
        len_out: *mut usize,
    ) -> Result<Self, Not> {
        check_array(data, capacity)?;
        if capacity < count {
            // SAFETY: the caller vouches for it.
            unsafe { write_out(len_out, count) };
            return Err(Not(LK_LIMIT));
        }
        // SAFETY: the caller vouches for it.
        Ok(unsafe { Self::new(data, capacity) })
    }

    /// Writes the outputs of a `complete`. Its loans ended even if the queue was closed.
    ///
    /// # Safety
    /// Both outputs may be written.
    pub(crate) unsafe fn answer(
        self,
        completed: Result<Completed, Refusal>,
        len_out: *mut usize,
        result_out: *mut lk_complete_result,
    ) -> Answer {
        if matches!(completed, Ok(_) | Err(Refusal::Closed)) {
            // SAFETY: the caller vouches for it.
            unsafe { write_out(len_out, self.len) };
        }
        // SAFETY: the caller vouches for it.
        unsafe { write_out(result_out, completed?.into()) };
        Ok(())
    }

    pub(crate) fn push(&mut self, payload: u64) {
        assert!(self.len < self.capacity, "the call checked the room before it began");
        // SAFETY: inside the array, by the assertion and the promise made to `new`.
        let slot = unsafe { self.data.add(self.len) };
        // SAFETY: as above.
        unsafe { slot.write(payload) };
        self.len += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Runs a verb of the core with a sink for what it releases, then the release callback. The verb
/// must give the role back before it ends. A queue without a callback does not look at its
/// payloads at all: the verb gets a sink that does nothing, or the form after `else` runs.
macro_rules! releasing {
    ($handle:expr, |$sink:ident| $verb:expr) => {
        $crate::release::releasing!($handle, |$sink| $verb, else {
            #[allow(unused_mut)]
            let mut $sink = |_: i64, _: u64| {};
            $verb
        })
    };
    ($handle:expr, |$sink:ident| $verb:expr, else $plain:expr) => {
        if $handle.wants_released() {
            let mut released = $crate::release::Released::new();
            let answer = {
                #[allow(unused_mut)]
                let mut $sink = |_: i64, payload: u64| released.push(payload);
                $verb
            };
            $handle.release(&released);
            answer
        } else {
            $plain
        }
    };
}
pub(crate) use releasing;
