//! The shared handle behind `lk_process_queue *`: a counted reference, a tag, a poison mark.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use lanekeeper_core::process_queue::{ConsumerToken, ProcessQueue, Target, TurnToken};

use crate::claim::lk_claim;
use crate::consumer::lk_consumer;
use crate::release::{HostFns, Released};
use crate::status::{Answer, LK_ERR_INVALID_ARG, LK_ERR_NO_MEMORY, LK_ERR_OVERFLOW};
use crate::status::{LK_ERR_POISONED, LK_STALE, Not};
use crate::turn::lk_turn;

/// "lkpq": a live handle.
const TAG_LIVE: u32 = 0x6c6b_7071;
/// A call on it panicked.
const TAG_POISONED: u32 = 0x6c6b_7070;
/// The last reference is gone.
const TAG_FREED: u32 = 0xdead_7071;

/// More references than this are a leak in a loop; stop before the count could wrap.
const REFERENCES_MAX: usize = isize::MAX as usize;

/// The window of pulled, not yet finished messages of one RocketMQ message queue.
///
/// A shared handle: `lk_process_queue_clone` adds a reference, `lk_process_queue_free` drops one,
/// and a thread that holds a reference of its own is safe whatever the others do. `close` is
/// separate from `free`: it makes the queue refuse work, and frees nothing.
///
/// Functions: `lk_process_queue_new`, `_clone`, `_free`, `_put`, `_advance`, `_begin_turn`,
/// `_begin_consumer`, `_stop`, `_close` and the reads; `lk_turn_*`, `lk_consumer_*` and
/// `lk_claim_*` act on a queue through a token.
pub struct lk_process_queue {
    inner: Inner,
}

/// `repr(C)` keeps the tag the first word. The outer struct is not, so that the header shows an
/// opaque type.
#[repr(C)]
struct Inner {
    tag: AtomicU32,
    references: AtomicUsize,
    /// New for every queue of the process; mixed into the tokens.
    salt: u64,
    host: HostFns,
    queue: ProcessQueue<u64>,
}

impl Deref for lk_process_queue {
    type Target = ProcessQueue<u64>;

    #[inline]
    fn deref(&self) -> &ProcessQueue<u64> {
        &self.inner.queue
    }
}

impl lk_process_queue {
    /// Moves a queue into a handle with one reference. Gives it back where there is no memory.
    pub(crate) fn allocate(queue: ProcessQueue<u64>, host: HostFns) -> Result<*mut Self, Not> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(layout) }.cast::<Self>();
        if memory.is_null() {
            return Err(Not(LK_ERR_NO_MEMORY));
        }
        let inner = Inner {
            tag: AtomicU32::new(TAG_LIVE),
            references: AtomicUsize::new(1),
            salt: next_salt(),
            host,
            queue,
        };
        // SAFETY: fresh memory of the right layout.
        unsafe { memory.write(Self { inner }) };
        Ok(memory)
    }

    /// `Ok` if the handle may be used. Best effort: catches a freed handle or a pointer to
    /// something else most of the time. Only the tag is looked at, through the raw pointer.
    ///
    /// # Safety
    /// `this` is not NULL and a word can be read there.
    #[inline]
    pub(crate) unsafe fn check(this: *const Self) -> Answer {
        // SAFETY: by the caller's promise.
        match unsafe { Self::tag(this) } {
            TAG_LIVE => Ok(()),
            TAG_POISONED => Err(Not(LK_ERR_POISONED)),
            _ => Err(Not(LK_ERR_INVALID_ARG)),
        }
    }

    /// # Safety
    /// As for `check`.
    #[inline]
    unsafe fn tag(this: *const Self) -> u32 {
        if !this.is_aligned() {
            return TAG_FREED;
        }
        // SAFETY: aligned, and readable by the caller's promise; the tag is the first word.
        let tag = unsafe { AtomicU32::from_ptr(this.cast::<u32>().cast_mut()) };
        // ORDERING: Relaxed: that the reference is live is the caller's promise, this only detects
        // misuse; and whoever has to see the poison at once was told LK_ERR_PANIC by the call
        // that left it.
        tag.load(Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn poison(&self) {
        // ORDERING: Relaxed: see `tag`.
        self.inner.tag.store(TAG_POISONED, Ordering::Relaxed);
    }

    /// Whether anybody wants the payloads that are released.
    #[inline]
    pub(crate) fn wants_released(&self) -> bool {
        self.inner.host.release.is_some()
    }

    /// Runs the release callback over what a call released. The call must have given its role
    /// back. The callback may free the caller's reference, so this holds one of its own.
    #[inline]
    pub(crate) fn release(&self, released: &Released) {
        if released.is_empty() {
            return;
        }
        let host = self.inner.host;
        let this = ptr::from_ref(self).cast_mut();
        // ORDERING: Relaxed: made from a live reference, as in `add_reference`.
        self.inner.references.fetch_add(1, Ordering::Relaxed);
        // The release callback must not unwind; a `Drop` guard would only hide that it did.
        released.each(|payload| host.release(payload));
        // SAFETY: gives back the reference taken above, and `self` is not used after it.
        unsafe { Self::drop_reference(this) };
    }

    pub(crate) fn add_reference(&self) -> Result<(), Not> {
        // ORDERING: Relaxed: a new reference is made from a live one, which keeps the queue.
        let before = self.inner.references.fetch_add(1, Ordering::Relaxed);
        if before >= REFERENCES_MAX {
            // ORDERING: Relaxed: undoes the line above.
            self.inner.references.fetch_sub(1, Ordering::Relaxed);
            return Err(Not(LK_ERR_OVERFLOW));
        }
        Ok(())
    }

    /// Whether the caller may drop a reference: a poisoned queue too is freed.
    ///
    /// # Safety
    /// As for `check`.
    pub(crate) unsafe fn may_be_freed(this: *const Self) -> bool {
        // SAFETY: by the caller's promise.
        matches!(unsafe { Self::tag(this) }, TAG_LIVE | TAG_POISONED)
    }

    /// Drops one reference; the last one releases every payload still held and frees the queue.
    ///
    /// # Safety
    /// `this` is a live handle and the reference is the caller's to drop.
    pub(crate) unsafe fn drop_reference(this: *mut Self) {
        // SAFETY: live, by the caller's promise.
        let handle = unsafe { &*this };
        // ORDERING: AcqRel: Release makes this thread's use of the queue happen before its end,
        // Acquire (by the last one) makes everybody's do so. A fence would do; ThreadSanitizer
        // does not see those.
        if handle.inner.references.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // ORDERING: Relaxed: for the check of misuse only; the last user's poison is seen, by the
        // line above.
        let poisoned = handle.inner.tag.swap(TAG_FREED, Ordering::Relaxed) == TAG_POISONED;
        // SAFETY: the last reference is gone, so nobody else uses the value; it is moved out once.
        let Inner { host, mut queue, .. } = unsafe { this.read() }.inner;
        // SAFETY: the value was moved out; the memory came from `allocate` with this layout.
        unsafe { dealloc(this.cast(), Layout::new::<Self>()) };
        if poisoned {
            // What a panic left behind is not walked again: leaked rather than released twice.
            std::mem::forget(queue);
        } else {
            let mut released = Released::new();
            if host.release.is_some() {
                queue.drain_with(|_, payload| released.push(payload));
            }
            drop(queue);
            released.each(|payload| host.release(payload));
        }
        host.end();
    }

    // Tokens. A token as C sees it is the core's, mixed with the queue's salt; one of another
    // queue turns into a number the core never gave out.

    pub(crate) fn wrap_turn(&self, token: TurnToken) -> lk_turn {
        lk_turn { token: token.0 ^ self.inner.salt }
    }

    #[inline]
    pub(crate) fn turn_token(&self, turn: lk_turn) -> TurnToken {
        TurnToken(turn.token ^ self.inner.salt)
    }

    pub(crate) fn wrap_consumer(&self, token: ConsumerToken) -> lk_consumer {
        lk_consumer { token: token.0 ^ self.inner.salt }
    }

    #[inline]
    pub(crate) fn consumer_token(&self, consumer: lk_consumer) -> ConsumerToken {
        ConsumerToken(consumer.token ^ self.inner.salt)
    }

    pub(crate) fn wrap_claim(&self, claim: Target) -> lk_claim {
        lk_claim { offset: claim.offset, delivery: claim.delivery, queue: self.inner.salt as u32 }
    }

    pub(crate) fn claim_target(&self, claim: lk_claim) -> Result<Target, Not> {
        // No delivery is 0: that is how an `lk_target` says "whichever".
        if claim.queue != self.inner.salt as u32 || claim.delivery == 0 {
            return Err(Not(LK_STALE));
        }
        Ok(Target { offset: claim.offset, delivery: claim.delivery })
    }
}

/// A number that differs from queue to queue in its upper half and in its lower half: the
/// finaliser of splitmix64, a bijection, over a count.
pub(crate) fn next_salt() -> u64 {
    static QUEUES: AtomicU64 = AtomicU64::new(0);
    // ORDERING: Relaxed: only the number has to be new.
    let count = QUEUES.fetch_add(1, Ordering::Relaxed);
    let mut salt = count.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    salt = (salt ^ (salt >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    salt = (salt ^ (salt >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    salt ^ (salt >> 31)
}

#[cfg(test)]
mod tests {
    use super::next_salt;

    /// A claim carries the lower half only, so that half alone has to tell queues apart.
    #[test]
    fn salts_differ_in_each_half() {
        let salts: Vec<u64> = (0..2000).map(|_| next_salt()).collect();
        for half in [0, 32] {
            let mut halves: Vec<u32> = salts.iter().map(|salt| (salt >> half) as u32).collect();
            halves.sort_unstable();
            halves.dedup();
            assert!(halves.len() >= salts.len() - 1, "shift {half}: {} differ", halves.len());
        }
    }
}
