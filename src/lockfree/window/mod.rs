//! The ordered window: messages by ascending offset, put at one end, finished anywhere, safe offset
//! at the other.
//!
//! # When not to use
//! Not a general map or queue: one puller, offsets that ascend from put to put,
//! and every message finished in the end.
//!
//! # Structure
//! Accepted messages are numbered by *rank* from 0. Rank `r` lives in the segment whose
//! `base_rank` is `r` rounded down to the segment size; segments are linked in order. `head` is the
//! first segment that is not wholly finished. The words are in [`words`], the slot
//! state in [`meta`](super::meta).
//!
//! ```text
//!            head                 consume.rank          publish.rank
//!              |                       |                     |
//!  finished ...[ in flight, claimed, again ready, done ][ ready ][ not yet put
//!              ^ progress.offset
//! ```
//!
//! # Who writes what
//!
//! | word | puller | lane (orderly) | crowd (concurrent) | stop, close |
//! |---|---|---|---|---|
//! | publish | CAS: rank, SCHEDULED | CAS: SCHEDULED | – | or: STOPPED, CLOSED |
//! | pull | CAS: offset | – | – | or: CLOSED |
//! | consume | – | CAS: rank, version | CAS: rank | or: STOPPED, CLOSED |
//! | progress | CAS: over gaps, `advance` | CAS: commit, complete | CAS: complete, settle | CAS: CLOSED |
//! | head | store, once, when empty | store | CAS | – |
//! | tally | – | store (its own) | store (each its own) | – |
//!
//! # Linearization points
//!
//! | operation | point | model |
//! |---|---|---|
//! | put | CAS of publish | put_take, put_commit, put_close |
//! | advance | CAS of pull | advance_commit, advance_close |
//! | take, rollback, requeue (lane) | CAS of consume | take_close, rollback_observer, requeue_snapshot |
//! | commit, complete (lane), moving the safe offset | CAS of progress | commit_close, commit_snapshot |
//! | commit, complete (lane), not moving it | CAS of consume | requeue_snapshot |
//! | complete, claim, settle (crowd), per message | CAS of the slot's state word | complete_complete_one, complete_claim |
//! | close | CAS of progress that sets CLOSED | commit_close |
//!
//! `close` sets its bit in pull, progress, consume and publish, in this order; whoever finds one of
//! them set finishes the row before it answers CLOSED (`freeze`), so after one CLOSED answer
//! nothing that starts later succeeds.
//!
//! # Progress guarantee
//! All verbs are lock-free; `count`, `bytes`, `safe_offset`, `pull_offset`,
//! `is_closed` wait-free. No thread waits for another: a role that is taken answers busy, and a
//! half-done transition is either invisible or can be read past.
//!
//! # Memory
//! Segments are reused and freed with the window: there are at most 2 more than the largest number
//! outstanding needs, and in concurrent mode one more for each that a loan still pins. A message
//! takes about 16 bytes in orderly mode and 24 in concurrent mode, where each has a state word.
//! Nothing is allocated in the steady state but the index node of each 1024 messages.
//!
//! Source: after `ProcessQueue.java` (Apache RocketMQ 5.3), rebuilt; the segment list with
//! published rank follows the ticket rings of the literature (Morrison and Afek, PPoPP 2013), the
//! two-version records follow Lamport's "Concurrent reading and writing" (CACM 1977) as bounded by
//! a version check.

mod batch;
mod close;
mod crowd;
mod crowd_finish;
mod lane;
mod loans;
mod lookup;
mod put;
mod record;
mod snapshot;
mod spread;

use crossbeam_utils::CachePadded;

pub use batch::{Batch, Message};
pub(crate) use batch::{DropSink, Sink, To};
pub(crate) use close::CloseSink;
pub(crate) use crowd::{ClaimAt, MemberState};
pub(crate) use lane::LaneState;
pub(crate) use put::PullerState;

use super::index::{Due, DueSet, Index, OffsetIndex};
use super::pool::Pool;
use super::role::{RoleCell, RoleGuard};
use super::segment::Segment;
use super::turnstile::Turnstile;
use super::words::{self, CLOSED, STOPPED};
use crate::config_consts::SEGMENT_SLOTS;
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use crate::types::{Config, Mode};

pub(super) const SLOTS: u64 = SEGMENT_SLOTS as u64;

/// What the puller publishes beside the rank; two of them, chosen by the parity of the publish
/// word.
struct PutRecord {
    bytes: AtomicU64,
    highest: AtomicI64,
    lag: AtomicI64,
    /// A batch that came above a gap, not necessarily the last one: the highest offset before it
    /// and its first. Nothing was ever put between.
    gap_below: AtomicI64,
    gap_first: AtomicI64,
}

/// The puller's line.
struct Front {
    publish: AtomicU64,
    pull: AtomicU64,
    records: [PutRecord; 2],
    last_pull_ms: AtomicI64,
}

/// The taker's line.
struct Take {
    consume: AtomicU64,
    last_consume_ms: AtomicI64,
}

/// What one finisher has finished; each has its own, so that they do not share a line.
struct Tally {
    count: AtomicU64,
    bytes: AtomicU64,
    released: AtomicU64,
}

/// One place for a consumer handle.
pub(crate) struct Member<T> {
    /// 0: free. Else the number of the handle that has the place.
    pub(crate) owner: AtomicU64,
    pub(crate) role: RoleCell<MemberState<T>>,
}

/// Words of concurrent mode that the hot path reads seldom.
struct CrowdWords {
    /// Bits set in the segments' `again` words.
    again: AtomicU64,
    /// Entries in the due set.
    due: AtomicU64,
    /// One above the highest rank that was finished before it was taken.
    early: AtomicU64,
    /// Handles that ever had a place.
    members_used: AtomicU64,
    /// Number of the next handle.
    member_number: AtomicU64,
}

/// See the module.
pub(crate) struct Window<T> {
    front: CachePadded<Front>,
    take: CachePadded<Take>,
    progress: CachePadded<AtomicU64>,
    head: CachePadded<AtomicU64>,
    records: CachePadded<[record::LaneRecord; 2]>,
    tallies: Box<[CachePadded<Tally>]>,
    crowd: CachePadded<CrowdWords>,
    closer_released: AtomicU64,
    pool: Pool<T>,
    index: Index,
    due: Due,
    outstanding_max: u64,
    concurrent: bool,
    pub(crate) puller: RoleCell<PullerState<T>>,
    pub(crate) lane: Turnstile<LaneState<T>>,
    pub(crate) members: Box<[CachePadded<Member<T>>]>,
}

impl<T> Window<T> {
    /// `None` when the allocator refuses.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let start = config.start_offset as u64;
        let concurrent = config.mode == Mode::Concurrent;
        let (pool, spare) = Pool::new(concurrent);
        let places = if concurrent { config.consumers_max as usize } else { 0 };
        // The first tally is the lane's, or the one that all members share.
        let record = || PutRecord {
            bytes: AtomicU64::new(0),
            highest: AtomicI64::new(-1),
            lag: AtomicI64::new(0),
            gap_below: AtomicI64::new(i64::MAX),
            gap_first: AtomicI64::new(0),
        };
        let tally = || {
            CachePadded::new(Tally {
                count: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                released: AtomicU64::new(0),
            })
        };
        let member = || {
            CachePadded::new(Member {
                owner: AtomicU64::new(0),
                role: RoleCell::new(MemberState::new()),
            })
        };
        let tallies = boxed(places + 1, tally)?;
        // Tokens of two queues, or of two generations, must not be mistaken for each other: their
        // numbers start somewhere else.
        let salt = (tallies.as_ptr().addr() as u64 ^ config.generation.rotate_left(32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 7;
        Some(Self {
            front: CachePadded::new(Front {
                publish: AtomicU64::new(0),
                pull: AtomicU64::new(start),
                records: [record(), record()],
                last_pull_ms: AtomicI64::new(0),
            }),
            take: CachePadded::new(Take {
                consume: AtomicU64::new(0),
                last_consume_ms: AtomicI64::new(0),
            }),
            progress: CachePadded::new(AtomicU64::new(start)),
            head: CachePadded::new(AtomicU64::new(0)),
            records: CachePadded::new([record::LaneRecord::new(), record::LaneRecord::new()]),
            tallies,
            crowd: CachePadded::new(CrowdWords {
                again: AtomicU64::new(0),
                due: AtomicU64::new(0),
                early: AtomicU64::new(0),
                members_used: AtomicU64::new(0),
                member_number: AtomicU64::new(salt >> 6),
            }),
            closer_released: AtomicU64::new(0),
            pool,
            index: Index::new(),
            due: Due::new(),
            outstanding_max: u64::from(config.outstanding_max),
            concurrent,
            puller: RoleCell::new(PullerState::new(spare, config.start_offset)),
            lane: Turnstile::new(LaneState::new(), salt),
            members: boxed(places, member)?,
        })
    }

    /// The lane's tally, or the one that all members share.
    #[inline(always)]
    fn first_tally(&self) -> &Tally {
        // SAFETY: `new` makes one for each place and one more.
        unsafe { self.tallies.get_unchecked(0) }
    }

    /// The tallies that may be in use.
    fn used_tallies(&self) -> &[CachePadded<Tally>] {
        if !self.concurrent {
            return &self.tallies;
        }
        // ORDERING: Acquire — a handle raises it before it finishes anything.
        let used = self.crowd.members_used.load(Ordering::Acquire) as usize;
        &self.tallies[..=used.min(self.members.len())]
    }

    /// Messages finished. Read before the publish word, so that the difference errs upward.
    fn finished(&self) -> u64 {
        // ORDERING: Acquire — pairs with the Release stores of the tallies: who reads a finish also
        // reads the put that came before it. Model: reads_bounds
        self.used_tallies().iter().map(|tally| tally.count.load(Ordering::Acquire)).sum()
    }

    pub(crate) fn count(&self) -> u64 {
        let finished = self.finished();
        // ORDERING: Acquire — not older than the puts whose finishes were just read.
        let publish = self.front.publish.load(Ordering::Acquire);
        if publish & CLOSED != 0 { 0 } else { words::rank(publish).saturating_sub(finished) }
    }

    pub(crate) fn bytes(&self) -> u64 {
        // ORDERING: Acquire — as `finished`.
        let finished: u64 =
            self.used_tallies().iter().map(|tally| tally.bytes.load(Ordering::Acquire)).sum();
        // ORDERING: Acquire — as `count`; the record was written before the word that names it, and
        // later values only grow.
        let publish = self.front.publish.load(Ordering::Acquire);
        let put = self.front.records[words::put_record_of(publish)].bytes.load(Ordering::Relaxed);
        if publish & CLOSED != 0 { 0 } else { put.saturating_sub(finished) }
    }

    /// Lock-free: looks again when a batch was published meanwhile.
    ///
    /// A put above a gap into an empty queue publishes its batch before it carries the safe offset
    /// over the gap, which is not outstanding and must not be counted (W8). Models: put_gap_span,
    /// put_thrice_span
    pub(crate) fn span(&self) -> i64 {
        loop {
            // ORDERING: Acquire — the record of this word is seen.
            let publish = self.front.publish.load(Ordering::Acquire);
            if publish & CLOSED != 0 {
                return 0;
            }
            let highest = self.highest(publish);
            let record = &self.front.records[words::put_record_of(publish)];
            // ORDERING: Relaxed — ordered by the publish word, checked by reading it again.
            let below = record.gap_below.load(Ordering::Relaxed);
            let first = record.gap_first.load(Ordering::Relaxed);
            let mut lowest = self.safe_offset();
            if lowest > below && !crate::sync::mutated("span_with_gap") {
                lowest = lowest.max(first);
            }
            // ORDERING: Acquire fence, Relaxed load — pairs with the Release fence in `publish`:
            // who read a later use of the record also sees that a batch came between.
            fence(Ordering::Acquire);
            let now = self.front.publish.load(Ordering::Relaxed);
            if words::rank(now) == words::rank(publish) || crate::sync::mutated("span_no_recheck") {
                return if lowest > highest { 0 } else { highest - lowest };
            }
            crate::sync::hint::spin_loop();
        }
    }

    /// Highest offset put as of a publish word, or of a later one.
    #[inline(always)]
    fn highest(&self, publish: u64) -> i64 {
        // ORDERING: Relaxed — ordered by the publish word.
        self.front.records[words::put_record_of(publish)].highest.load(Ordering::Relaxed)
    }

    pub(crate) fn safe_offset(&self) -> i64 {
        // ORDERING: Acquire — not behind an operation that returned before; whoever stores the
        // offset elsewhere sees what made it safe.
        words::offset(self.progress.load(Ordering::Acquire))
    }

    /// Never below a safe offset read before: what is published counts as pulled, though the puller
    /// may not have raised its word yet.
    pub(crate) fn pull_offset(&self) -> i64 {
        let word = self.pull_word();
        // ORDERING: Acquire — the record of this word is seen; who made the safe offset saw it too.
        let publish = self.front.publish.load(Ordering::Acquire);
        word.max(self.highest(publish) + 1)
    }

    /// What a finisher that finds nothing outstanding goes by; read before the publish word (W3).
    pub(super) fn pull_word(&self) -> i64 {
        // ORDERING: Acquire — pairs with the Release in `raise_pull`: the messages below are seen.
        words::offset(self.front.pull.load(Ordering::Acquire))
    }

    /// For a finisher: what the safe offset is if nothing below the published rank is outstanding,
    /// and that rank. A put raises the pull word after it published, so what is published counts as
    /// pulled: it may be finished before its put is through, and nobody comes back for it.
    /// Lock-free: looks again when a batch was published meanwhile. Models: put_take_commit,
    /// put_complete_ready
    pub(super) fn pulled(&self) -> (i64, u64) {
        // The pull word first: whatever was published by then is seen by the second read (W3).
        let pull = self.pull_word();
        loop {
            // ORDERING: Acquire — as `published`.
            let publish = self.front.publish.load(Ordering::Acquire);
            let above = self.highest(publish) + 1;
            // ORDERING: Acquire fence, Relaxed load — pairs with the Release fence in `publish`:
            // the record was that of this word.
            fence(Ordering::Acquire);
            let now = self.front.publish.load(Ordering::Relaxed);
            if words::rank(now) == words::rank(publish) {
                let pulled = if crate::sync::mutated("pulled_word_only") { pull } else { above };
                return (pull.max(pulled), words::rank(publish));
            }
            crate::sync::hint::spin_loop();
        }
    }

    /// Reads the last word that `freeze` closes: once this says so, every verb does.
    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: Acquire — pairs with the Release in `freeze`.
        self.front.publish.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Sets STOPPED in every word that decides something, as `freeze` does with CLOSED; who finds
    /// it in one of them sees to the others before telling anybody. Model: stop_take_put
    pub(crate) fn stop(&self) {
        // ORDERING: AcqRel — flags; no data hangs on them but each other, the last one read first.
        self.take.consume.fetch_or(STOPPED, Ordering::AcqRel);
        self.front.publish.fetch_or(STOPPED, Ordering::AcqRel);
    }

    /// Reads the last word that `stop` sets.
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Acquire — not behind a `stop` that returned before.
        self.front.publish.load(Ordering::Acquire) & STOPPED != 0
    }

    /// Payloads held. Weak while calls run.
    pub(crate) fn payloads_live(&self) -> u64 {
        // ORDERING: Acquire — as `finished`; a gauge.
        let released: u64 =
            self.used_tallies().iter().map(|tally| tally.released.load(Ordering::Acquire)).sum();
        let closer = self.closer_released.load(Ordering::Acquire);
        // The lane releases what it finishes, and counts it once.
        let lane = if self.concurrent { 0 } else { self.finished() };
        words::rank(self.front.publish.load(Ordering::Acquire))
            .saturating_sub(released + closer + lane)
    }

    /// Adds to a tally that only the caller writes.
    #[inline(always)]
    fn add_finished(tally: &Tally, count: u64, bytes: u64) {
        // ORDERING: Relaxed load — own counter. Release store — pairs with `finished`, `bytes`.
        tally.bytes.store(tally.bytes.load(Ordering::Relaxed) + bytes, Ordering::Release);
        tally.count.store(tally.count.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    #[inline(always)]
    fn add_released(tally: &Tally, count: u64) {
        // ORDERING: Relaxed load — own counter. Release store — a gauge.
        tally.released.store(tally.released.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    /// A place for a consumer handle.
    pub(crate) fn join(&self) -> Option<(usize, u64, RoleGuard<'_, MemberState<T>>)> {
        // ORDERING: Relaxed — only uniqueness matters.
        let number = self.crowd.member_number.fetch_add(1, Ordering::Relaxed) + 1;
        for (place, member) in self.members.iter().enumerate() {
            // ORDERING: Acquire — pairs with the Release in `leave`. Relaxed failure: try the next.
            if member
                .owner
                .compare_exchange(0, number, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                let Some(role) = member.role.enter() else {
                    // ORDERING: Release — gives the place back untouched. Its last handle is just
                    // leaving.
                    member.owner.swap(0, Ordering::Release);
                    continue;
                };
                // ORDERING: AcqRel — before anything is finished here; pairs with `used_tallies`.
                self.crowd.members_used.fetch_max(place as u64 + 1, Ordering::AcqRel);
                return Some((place, number, role));
            }
        }
        None
    }

    /// Gives a place back; the role must be given back after it.
    pub(crate) fn leave(&self, place: usize) {
        // ORDERING: Release — pairs with the Acquire in `join`.
        self.members[place].owner.swap(0, Ordering::Release);
    }

    /// The handle number that has `place`, 0 if none.
    pub(crate) fn owner_of(&self, place: usize) -> u64 {
        // ORDERING: Acquire — not behind a `join` that returned before.
        self.members.get(place).map_or(0, |member| member.owner.load(Ordering::Acquire))
    }
}

impl<T> Drop for Window<T> {
    fn drop(&mut self) {
        self.drain(|_, payload| drop(payload));
    }
}

fn boxed<V>(len: usize, make: impl Fn() -> V) -> Option<Box<[V]>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).ok()?;
    all.extend((0..len).map(|_| make()));
    Some(all.into_boxed_slice())
}

/// Address and number of a segment in one word; see [`words`].
pub(super) fn pack_head<T>(segment: &Segment<T>, base_rank: u64) -> u64 {
    let address = std::ptr::from_ref(segment).expose_provenance() as u64;
    debug_assert!(address >> 47 == 0 && address.is_multiple_of(8));
    (address >> 3) | ((base_rank / SLOTS) << 44)
}

/// The segment of a head word, and the tag its number must have.
pub(super) fn unpack_head<'w, T>(head: u64) -> Option<(&'w Segment<T>, u64)> {
    let address = ((head & ((1 << 44) - 1)) << 3) as usize;
    if address == 0 {
        return None;
    }
    let segment = std::ptr::with_exposed_provenance::<Segment<T>>(address);
    // SAFETY: packed from a segment of this window, and segments are freed only with the window.
    Some((unsafe { &*segment }, head >> 44))
}
