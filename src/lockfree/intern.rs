//! Small numbers for keys, counted, and used again once nobody names them.
//!
//! ```text
//! id (64 bits):     generation 32..64 | slot 0..32
//! state of a slot:  generation 32..64 | references 0..32
//!
//!   free --intern--> live --last release--> dead --key leaves the index--> free, generation + 1
//!   (0 references)   (1..)                  (0 references)
//! ```
//!
//! An id is dead from the step that takes its last reference: nobody makes it live again, so who
//! comes for the key then puts a new id in its place, and who takes the key out of the index takes
//! only the dead id out. A slot is used again under the next generation, so that an id kept too
//! long never names another key: it is answered STALE. A slot whose generations are used up, after
//! 2^32 - 1 lives, is not used again.
//!
//! The key in a slot is written before its first reference and taken out after its last, and read
//! only with a reference held. Linearization points: the exchange of the state that adds or drops a
//! reference; interning a new key, its insertion into the index. Lock-free, but for the allocator
//! and the index (a skip list, which frees the nodes of removed keys when no thread can see them).
//! Memory: slots for the most keys that were live at once.
//!
//! The stack of free slots has a tag of 32 bits beside the slot on top, one more for every change,
//! so that a thread would have to sleep through 2^32 of them to take an old top for the present.
//!
//! Models: intern_intern, intern_free, intern_reuse.

use std::fmt;

use super::key_index::KeyIndex;
use super::pages::{Blank, Pages};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{mutated, ordering};
use crate::types::Refusal;

const HALF: u32 = 32;
const LOW: u64 = u32::MAX as u64;

/// The number of an interned key: a slot and the generation of its use. Plain data; it names its
/// key as long as somebody holds a counted reference, and is STALE from then on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    fn new(slot: u32, generation: u32) -> Self {
        Self(u64::from(generation) << HALF | u64::from(slot))
    }

    /// As one number, never 0.
    #[inline]
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// From [`to_bits`](Self::to_bits); a number that is no id is answered STALE where it is used.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Small, and unique among the ids alive: an index for arrays.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.0 & LOW) as usize
    }

    #[inline]
    fn generation(self) -> u64 {
        self.0 >> HALF
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({}.{})", self.slot(), self.generation())
    }
}

struct Slot<K> {
    state: AtomicU64,
    /// The next free slot + 1, while this one is free.
    next: AtomicU64,
    /// Boxed, so that zero is none of them.
    key: UnsafeCell<Option<Box<K>>>,
}

// SAFETY: numbers, and no box.
unsafe impl<K> Blank for Slot<K> {
    const IS_ZERO: bool = true;
    fn blank() -> Self {
        Self { state: AtomicU64::new(0), next: AtomicU64::new(0), key: UnsafeCell::new(None) }
    }
}

/// Interns keys. See the module for what it promises.
///
/// Threads: any. Progress: lock-free. Allocates: when a key is new.
pub struct Interner<K> {
    slots: Pages<Slot<K>>,
    keys: KeyIndex<K>,
    /// tag 32..64 | free slot + 1, 0 for none
    free: AtomicU64,
    /// Slots used at least once.
    fresh: AtomicU64,
    /// Keys that were taken out of the index: orders the end of an id before the next one of its
    /// key.
    ends: AtomicU64,
    slots_max: u64,
}

// SAFETY: a key is written and taken out by the only thread that knows its slot, and only read in
// between, through `&K`: keys move between threads and are shared by them.
unsafe impl<K: Send + Sync> Sync for Interner<K> {}
// SAFETY: plain ownership of the keys.
unsafe impl<K: Send> Send for Interner<K> {}

impl<K: Ord + Clone + Send + Sync + 'static> Default for Interner<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone + Send + Sync + 'static> Interner<K> {
    /// An empty one, for up to 2^32 - 1 keys at once.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(u32::MAX)
    }

    /// An empty one, for up to `keys_max` keys at once.
    #[must_use]
    pub fn with_limit(keys_max: u32) -> Self {
        Self {
            slots: Pages::new(),
            keys: KeyIndex::new(),
            free: AtomicU64::new(0),
            fresh: AtomicU64::new(0),
            ends: AtomicU64::new(0),
            slots_max: u64::from(keys_max),
        }
    }

    /// The id of `key`, with one more reference, which [`release`](Self::release) gives back.
    /// `Limit`: as many keys as allowed are in use, or this one has 2^32 - 1 references.
    pub fn intern(&self, key: &K) -> Result<Id, Refusal> {
        loop {
            if let Some(id) = self.keys.get(key) {
                match self.add_reference(id) {
                    Err(Refusal::Stale) => self.unindex(key, id),
                    Err(refusal) => return Err(refusal),
                    Ok(()) => return Ok(id),
                }
            }
            // ORDERING: AcqRel — pairs with `unindex`, which came before what we found missing:
            // what holders of the key's last id did is seen by those of the next. A
            // read-modify-write, which cannot come before one that we saw the effect of. No model:
            // there the index is a mutex, which orders this too; ThreadSanitizer watches it in
            // `turns_come_and_go`.
            self.ends.fetch_add(0, Ordering::AcqRel);
            let id = self.allot(key.clone())?;
            let winner = self.keys.get_or_insert(key.clone(), id);
            if winner == id || mutated("intern_no_check") {
                return Ok(id);
            }
            // Somebody was faster. Nobody else knows this id.
            self.retire(id, false);
        }
    }

    /// Takes a dead id out of the index.
    fn unindex(&self, key: &K, id: Id) {
        // ORDERING: AcqRel — pairs with `intern`.
        self.ends.fetch_add(1, Ordering::AcqRel);
        self.keys.remove(key, id);
    }

    /// The id of `key`, if it has one, without a reference: it may be stale at any moment.
    pub fn find(&self, key: &K) -> Option<Id> {
        self.keys.get(key).filter(|&id| self.is_live(id))
    }

    /// One more reference to a live id. `Stale`: it is not live. `Limit`: it has 2^32 - 1.
    pub fn add_reference(&self, id: Id) -> Result<(), Refusal> {
        let slot = self.slots.get(id.slot()).ok_or(Refusal::Stale)?;
        // ORDERING: Acquire — who finds the id stale sees what its holders did before. Model:
        // intern_again
        let stale = ordering("intern_stale_relaxed", Ordering::Acquire, Ordering::Relaxed);
        let mut state = slot.state.load(stale);
        loop {
            let dead = state & LOW == 0 && !mutated("intern_revive");
            if state >> HALF != id.generation() || id.generation() == 0 || dead {
                return Err(Refusal::Stale);
            }
            if state & LOW == LOW {
                return Err(Refusal::Limit);
            }
            // ORDERING: Acquire — pairs with the Release of `allot`: the key may be read with this
            // reference. AcqRel as it continues the release sequence of the references dropped.
            // Model: intern_free
            // On failure as the load.
            match slot.state.compare_exchange(state, state + 1, Ordering::AcqRel, stale) {
                Ok(_) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }

    /// Gives one reference back; answers whether it was the last and the id is free now. `Stale`:
    /// the id is not live.
    pub fn release(&self, id: Id) -> Result<bool, Refusal> {
        let slot = self.slots.get(id.slot()).ok_or(Refusal::Stale)?;
        // ORDERING: Relaxed — a first guess; the exchange decides.
        let mut state = slot.state.load(Ordering::Relaxed);
        loop {
            if state >> HALF != id.generation() || state & LOW == 0 {
                return Err(Refusal::Stale);
            }
            // ORDERING: AcqRel — Release: this holder's reading of the key comes before its end;
            // Acquire, by the last one: so does everybody's. Model: intern_free
            let order = ordering("intern_release_relaxed", Ordering::AcqRel, Ordering::Relaxed);
            match slot.state.compare_exchange(state, state - 1, order, Ordering::Relaxed) {
                Ok(_) if state & LOW == 1 => {
                    self.retire(id, true);
                    return Ok(true);
                }
                Ok(_) => return Ok(false),
                Err(now) => state = now,
            }
        }
    }

    /// Whether somebody holds a reference.
    #[inline]
    pub fn is_live(&self, id: Id) -> bool {
        self.slots.get(id.slot()).is_some_and(|slot| {
            // ORDERING: Acquire — not behind the interning or the release that the caller knows of.
            let state = slot.state.load(Ordering::Acquire);
            state >> HALF == id.generation() && state & LOW != 0
        })
    }

    /// The key of a live id. `Stale`: it is not live.
    pub fn key(&self, id: Id) -> Result<K, Refusal> {
        self.add_reference(id)?;
        let slot = self.slots.get(id.slot()).ok_or(Refusal::Stale)?;
        let key = slot.key.with(|key| {
            // SAFETY: a reference is held, so the key is there and nobody writes it: `allot` wrote
            // it before the first, `retire` takes it after the last.
            unsafe { (*key).as_deref().cloned() }
        });
        self.release(id)?;
        key.ok_or(Refusal::Stale)
    }

    /// Keys in the index: those live, and for a moment those dying. Walks nothing.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Slots ever used: the most keys that were live at once, nearly.
    pub fn slots_used(&self) -> u64 {
        // ORDERING: Acquire — not behind what the caller has seen of it.
        self.fresh.load(Ordering::Acquire)
    }

    /// The id that lives in a slot now.
    pub(crate) fn id_in(&self, slot: usize) -> Option<Id> {
        // ORDERING: Acquire — not behind the interning that the caller knows of.
        let state = self.slots.get(slot)?.state.load(Ordering::Acquire);
        (state & LOW != 0).then(|| Id::new(slot as u32, (state >> HALF) as u32))
    }

    /// A slot for this thread, with one reference and the key in it.
    fn allot(&self, key: K) -> Result<Id, Refusal> {
        let index = self.pop().or_else(|| self.fresh_slot()).ok_or(Refusal::Limit)?;
        let slot = self.slots.get_or_make(index as usize).ok_or(Refusal::Limit)?;
        let key = Box::new(key);
        slot.key.with_mut(|place| {
            // SAFETY: the slot is free and taken off the stack by this thread: nobody reads it.
            unsafe { *place = Some(key) }
        });
        // ORDERING: Relaxed — only this thread changes the state of a slot without references.
        let generation = (slot.state.load(Ordering::Relaxed) >> HALF).max(1);
        // ORDERING: Release — the key is there before anybody gets a reference. A swap, since an
        // exchange by who has an old id may run beside it. Model: intern_reuse
        slot.state.swap(generation << HALF | 1, Ordering::Release);
        Ok(Id::new(index, generation as u32))
    }

    fn fresh_slot(&self) -> Option<u32> {
        // ORDERING: Relaxed — a counter.
        let mut fresh = self.fresh.load(Ordering::Relaxed);
        while fresh < self.slots_max {
            // ORDERING: Relaxed — hands out a number and nothing with it.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.fresh.compare_exchange(fresh, fresh + 1, success, failure) {
                Ok(_) => return u32::try_from(fresh).ok(),
                Err(now) => fresh = now,
            }
        }
        None
    }

    /// Takes a dead id out of use. `indexed`: its key may lead to it.
    #[cold]
    fn retire(&self, id: Id, indexed: bool) {
        let Some(slot) = self.slots.get(id.slot()) else { return };
        let key = slot.key.with_mut(|key| {
            // SAFETY: the last reference is gone, or was never given out, and only its holder comes
            // here: nobody else reads or writes the key.
            unsafe { (*key).take() }
        });
        if let (true, Some(key)) = (indexed, &key) {
            self.unindex(key, id);
        }
        drop(key);
        if id.generation() == LOW {
            return; // Used up: it stays dead.
        }
        let next = if mutated("intern_same_generation") { 0 } else { 1 };
        // ORDERING: Release — what was done to the slot comes before its next use. A swap, since
        // an exchange by who has an old id may run beside it. Model: intern_reuse
        slot.state.swap((id.generation() + next) << HALF, Ordering::Release);
        self.push(id.slot() as u32, slot);
    }

    fn push(&self, index: u32, slot: &Slot<K>) {
        // ORDERING: Relaxed — a first guess; the exchange decides.
        let mut top = self.free.load(Ordering::Relaxed);
        loop {
            // ORDERING: Relaxed — published by the exchange below. A swap, since a thread with an
            // old top may read it.
            slot.next.swap(top & LOW, Ordering::Relaxed);
            let next = ((top >> HALF).wrapping_add(1) << HALF) | (u64::from(index) + 1);
            // ORDERING: Release — pairs with the Acquire of `pop`: the slot is free of its key and
            // has its next generation. AcqRel continues the release sequence of older pushes.
            // Model: intern_reuse
            match self.free.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn pop(&self) -> Option<u32> {
        // ORDERING: Acquire — pairs with the Release of `push`: `next` is that of this top.
        let mut top = self.free.load(Ordering::Acquire);
        while top & LOW != 0 {
            let index = (top & LOW) as u32 - 1;
            let slot = self.slots.get(index as usize)?;
            // ORDERING: Relaxed — ordered by the Acquire of the top; if the slot went and came
            // meanwhile the tag has changed and the exchange fails.
            let next = slot.next.load(Ordering::Relaxed);
            let next = ((top >> HALF).wrapping_add(1) << HALF) | next;
            // ORDERING: Acquire — as above, and the slot is ours from here on. Model: intern_reuse
            match self.free.compare_exchange(top, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(now) => top = now,
            }
        }
        None
    }
}

#[cfg(all(test, not(any(lk_loom, lk_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_whose_generations_are_used_up_is_not_used_again() {
        let ids: Interner<u32> = Interner::new();
        let id = ids.intern(&7).unwrap();
        let slot = ids.slots.get(id.slot()).unwrap();
        // ORDERING: Relaxed — one thread.
        slot.state.store(LOW << HALF | 1, Ordering::Relaxed);
        let last = Id::new(id.slot() as u32, u32::MAX);
        ids.keys.remove(&7, id);
        assert_eq!(ids.release(last), Ok(true));
        assert!(!ids.is_live(last));
        let other = ids.intern(&8).unwrap();
        assert_ne!(other.slot(), id.slot());
        assert_eq!(ids.add_reference(last), Err(Refusal::Stale));
    }

    #[test]
    fn the_count_of_references_does_not_wrap() {
        let ids: Interner<u32> = Interner::new();
        let id = ids.intern(&7).unwrap();
        let slot = ids.slots.get(id.slot()).unwrap();
        // ORDERING: Relaxed — one thread.
        slot.state.store(id.generation() << HALF | LOW, Ordering::Relaxed);
        assert_eq!(ids.add_reference(id), Err(Refusal::Limit));
        assert_eq!(ids.intern(&7), Err(Refusal::Limit));
        assert_eq!(ids.release(id), Ok(false));
        assert_eq!(ids.intern(&7), Ok(id));
    }

    #[test]
    fn numbers_that_are_no_ids_are_stale() {
        let ids: Interner<u32> = Interner::new();
        ids.intern(&7).unwrap();
        for bits in [0, 1, LOW, 1 << HALF | 1, 1 << HALF | 99_999, 2 << HALF, u64::MAX] {
            let id = Id::from_bits(bits);
            assert_eq!(ids.add_reference(id), Err(Refusal::Stale), "{bits:#x}");
            assert_eq!(ids.release(id), Err(Refusal::Stale), "{bits:#x}");
            assert_eq!(ids.key(id), Err(Refusal::Stale), "{bits:#x}");
            assert!(!ids.is_live(id), "{bits:#x}");
        }
    }
}
