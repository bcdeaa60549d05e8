//! One consistent cut, by reading twice.
//!
//! All words a cut is made of are read, and then read again. All but the consume word (lane) only
//! ever grow, or carry a number that does; so if both readings agree, every word had its value at
//! the moment the consume word was read the second time. A writer stopped anywhere leaves words
//! that agree; a reader tries again only if somebody made a step: lock-free. Nothing here writes
//! anything, but that who meets a close half done finishes it (`Window::words`).
//!
//! In the lane the rank of the lowest outstanding message is that of the first one at or above the
//! safe offset, so a commit whose tally is not told yet is already seen as a whole (`lane`); in a
//! spread state the record says it (`spread`).
//!
//! Models: commit_snapshot, rollback_observer, requeue_snapshot, late_reader.

use super::record::Cut;
use super::{SLOTS, Window};
use crate::lockfree::meta::{State, seq_of};
use crate::lockfree::words::{self, CLOSED, SCHEDULED, SPREAD, STOPPED};
use crate::sync::atomic::{Ordering, fence};
use crate::types::Snapshot;

/// The words of one reading.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Words {
    publish: u64,
    progress: u64,
    pull: u64,
    finished: u64,
    bytes: u64,
    consume: u64,
}

/// Counts and bounds of one kind of message.
#[derive(Clone, Copy, Default)]
struct Group {
    count: u64,
    min: i64,
    max: i64,
}

impl Group {
    fn add(&mut self, offset: i64) {
        if self.count == 0 {
            self.min = offset;
        }
        self.max = offset;
        self.count += 1;
    }
}

impl<T> Window<T> {
    fn words(&self) -> Words {
        // ORDERING: Acquire — each reading starts no earlier than the last one ended.
        let consume = self.take.consume.load(Ordering::Acquire);
        let progress = self.progress.load(Ordering::Acquire);
        let pull = self.front.pull.load(Ordering::Acquire);
        let finished = self.finished();
        let bytes = self.used_tallies().iter().map(|t| t.bytes.load(Ordering::Acquire)).sum();
        // ORDERING: Acquire — as above.
        let publish = self.front.publish.load(Ordering::Acquire);
        if progress & !publish & CLOSED != 0 && !crate::sync::mutated("look_no_freeze") {
            // Being closed: whoever is told so must find every verb closed. Model: close_look
            self.freeze();
        }
        Words { publish, progress, pull, finished, bytes, consume }
    }

    /// The fields of upstream's ProcessQueueInfo and a few more (W13).
    pub(crate) fn snapshot(&self, now_ms: i64) -> Snapshot {
        loop {
            let words = self.words();
            let record = &self.front.records[words::put_record_of(words.publish)];
            let mut cut = Snapshot {
                // ORDERING: Relaxed — checked by the second reading; the times are gauges of their
                // own.
                highest_put: record.highest.load(Ordering::Relaxed),
                lag: record.lag.load(Ordering::Relaxed),
                bytes: record.bytes.load(Ordering::Relaxed),
                last_pull_ms: self.front.last_pull_ms.load(Ordering::Relaxed),
                last_consume_ms: self.take.last_consume_ms.load(Ordering::Relaxed),
                safe_offset: words::offset(words.progress),
                scheduled: words.publish & SCHEDULED != 0,
                stopped: words.publish & STOPPED != 0,
                closed: (words.progress | words.publish) & CLOSED != 0,
                ..Snapshot::default()
            };
            cut.pull_offset = words::offset(words.pull).max(cut.highest_put + 1);
            let filled = if cut.closed {
                cut.bytes = 0;
                Some(())
            } else if self.concurrent {
                self.cut_crowd(&words, &mut cut, now_ms)
            } else {
                self.cut_lane(&words, &mut cut, now_ms)
            };
            // ORDERING: Acquire fence — what was read above is not older than the first reading,
            // and the second is not older than that. Model: commit_snapshot
            fence(Ordering::Acquire);
            if filled.is_some()
                && (crate::sync::mutated("snapshot_no_recheck") || self.words() == words)
            {
                return cut;
            }
            crate::sync::hint::spin_loop();
        }
    }

    /// Offset of a rank that was visible; `None` if it is gone.
    pub(super) fn offset_at(&self, rank: u64) -> Option<i64> {
        let at = self.segment_of(rank, None)?;
        let offset = at.segment.offset((rank - at.base) as usize);
        at.segment.valid_still(at.base).then_some(offset)
    }

    /// The rank of the first message at or above `safe`, `published` if there is none.
    pub(super) fn rank_from(&self, safe: i64, published: u64) -> Option<u64> {
        let Some(mut at) = self.head() else { return Some(0) };
        loop {
            for slot in 0..SLOTS {
                let rank = at.base + slot;
                if rank >= published || at.segment.offset(slot as usize) >= safe {
                    return at.segment.valid_still(at.base).then_some(rank.min(published));
                }
            }
            if at.base + SLOTS >= published {
                return Some(published);
            }
            at = at.next()?;
        }
    }

    fn age(&self, rank: u64, now_ms: i64) -> Option<i64> {
        let at = self.segment_of(rank, None)?;
        let put_ms = at.segment.put_ms((rank - at.base) as usize);
        at.segment.valid_still(at.base).then(|| now_ms.saturating_sub(put_ms).max(0))
    }

    fn cut_lane(&self, words: &Words, cut: &mut Snapshot, now_ms: i64) -> Option<()> {
        let published = words::rank(words.publish);
        let k = words::rank(words.consume);
        let lowest = self.rank_from(cut.safe_offset, published)?;
        cut.count = published - lowest;
        if words.consume & SPREAD != 0 {
            let record = self.record_for(words, cut.safe_offset);
            self.cut_spread(&record, published, cut)?;
        } else {
            if k > published {
                return None;
            }
            if lowest < k {
                cut.in_flight_count = k - lowest;
                cut.in_flight_min = self.offset_at(lowest)?;
                cut.in_flight_max = self.offset_at(k - 1)?;
            }
            let fresh = k.max(lowest);
            if fresh < published {
                cut.cached_count = published - fresh;
                cut.cached_min = self.offset_at(fresh)?;
                cut.cached_max = cut.highest_put;
            }
            cut.bytes = if words.finished == lowest {
                cut.bytes.wrapping_sub(words.bytes)
            } else {
                self.sizes(lowest, published)?
            };
        }
        self.cut_oldest(lowest, published, cut, now_ms)
    }

    fn cut_oldest(
        &self,
        lowest: u64,
        published: u64,
        cut: &mut Snapshot,
        now_ms: i64,
    ) -> Option<()> {
        if cut.count > 0 && lowest < published {
            cut.oldest_offset = Some(self.offset_at(lowest)?);
            cut.oldest_age_ms = self.age(lowest, now_ms)?;
        }
        Some(())
    }

    /// The record that holds, given that a step may have been decided by the progress word only.
    fn record_for(&self, words: &Words, safe: i64) -> Cut {
        let index = words::record_of(words.consume);
        let current = self.records[index].read();
        let decided = safe > current.lowest && current.lowest != i64::MAX;
        if decided { self.records[1 - index].read() } else { current }
    }

    fn cut_spread(&self, record: &Cut, published: u64, cut: &mut Snapshot) -> Option<()> {
        cut.count = published.checked_sub(record.finished)?;
        cut.bytes = cut.bytes.wrapping_sub(record.bytes);
        cut.in_flight_count = record.in_count;
        cut.in_flight_min = record.in_min;
        cut.in_flight_max = record.in_max;
        cut.cached_count = cut.count.checked_sub(record.in_count)?;
        let fresh = cut.cached_count.checked_sub(record.again_count)?;
        cut.cached_min = record.again_min;
        cut.cached_max = record.again_max;
        if fresh > 0 {
            let beyond = record.above == 0 || published > record.seen;
            cut.cached_max = if beyond { cut.highest_put } else { record.top };
            if record.again_count == 0 {
                cut.cached_min = self.offset_at(record.fresh)?;
            }
        }
        Some(())
    }

    fn sizes(&self, from: u64, to: u64) -> Option<u64> {
        let (mut sum, mut hint) = (0, None);
        for rank in from..to {
            let at = self.segment_of(rank, hint)?;
            sum += u64::from(at.segment.size((rank - at.base) as usize));
            if !at.segment.valid_still(at.base) {
                return None;
            }
            hint = Some(at);
        }
        Some(sum)
    }

    /// Reads every state word between the head and the consume rank, twice, as they are not counted
    /// anywhere.
    fn cut_crowd(&self, words: &Words, cut: &mut Snapshot, now_ms: i64) -> Option<()> {
        let published = words::rank(words.publish);
        let k = words::rank(words.consume).min(published);
        // ORDERING: Acquire — raised before the state word of an early finish.
        let early = self.crowd.early.load(Ordering::Acquire).min(published);
        let from = self.head().map_or(0, |head| head.base);
        let (mut ready, mut lent, mut claimed) =
            (Group::default(), Group::default(), Group::default());
        let (mut lowest, mut bytes) = (None, 0);
        let mut seen = Vec::new();
        self.read_metas(from, k.max(early), |rank, state, offset, size, word| {
            seen.push(word);
            let group = match state {
                State::Ready => &mut ready,
                State::InFlight => &mut lent,
                State::Claimed => &mut claimed,
                State::Done => return,
            };
            group.add(offset);
            bytes += size;
            lowest = lowest.or(Some(rank));
        })?;
        // ORDERING: Acquire fence — the second reading is not older than the first.
        fence(Ordering::Acquire);
        let mut again = seen.iter();
        let mut same = true;
        self.read_metas(from, k.max(early), |_, _, _, _, word| {
            same &= again.next() == Some(&word)
        })?;
        // ORDERING: Acquire — an early finish meanwhile lies outside what was read.
        let calm = self.crowd.early.load(Ordering::Acquire).min(published) == early;
        if !same || !calm {
            return None;
        }
        let fresh = k.max(early);
        if fresh < published {
            ready.add(self.offset_at(fresh)?);
            ready.count += published - fresh - 1;
            ready.max = cut.highest_put;
            lowest = lowest.or(Some(fresh));
        }
        cut.count = ready.count + lent.count + claimed.count;
        (cut.cached_count, cut.cached_min, cut.cached_max) = (ready.count, ready.min, ready.max);
        (cut.in_flight_count, cut.in_flight_min, cut.in_flight_max) =
            (lent.count, lent.min, lent.max);
        cut.claimed_count = claimed.count;
        cut.bytes = if words.finished == published - cut.count {
            cut.bytes.wrapping_sub(words.bytes)
        } else {
            bytes + self.sizes(fresh, published)?
        };
        self.cut_oldest(lowest.unwrap_or(published), published, cut, now_ms)
    }

    fn read_metas(
        &self,
        from: u64,
        to: u64,
        mut visit: impl FnMut(u64, State, i64, u64, u64),
    ) -> Option<()> {
        let mut hint = None;
        for rank in from..to {
            let at = self.segment_of(rank, hint)?;
            let slot = (rank - at.base) as usize;
            let meta = at.segment.load_meta(slot);
            let (offset, size) = (at.segment.offset(slot), u64::from(at.segment.size(slot)));
            if !at.segment.valid_still(at.base) || meta.seq() != seq_of(at.base / SLOTS) {
                return None;
            }
            visit(rank, meta.state(), offset, size, meta.0);
            hint = Some(at);
        }
        Some(())
    }

    /// Asked of the ready messages (upstream's `containsMessage`).
    pub(crate) fn contains(&self, offset: i64) -> bool {
        loop {
            let words = self.words();
            if (words.publish | words.progress) & CLOSED != 0
                || offset < words::offset(words.progress)
            {
                return false;
            }
            let Some((at, slot)) = self.find(offset) else { return false };
            let ready = if self.concurrent {
                at.segment.load_meta(slot).state() == State::Ready
            } else {
                // ORDERING: Acquire — the lane's bits.
                let done = at.segment.done.load(Ordering::Acquire) & (1 << slot) != 0;
                let again = at.segment.again.load(Ordering::Acquire) & (1 << slot) != 0;
                !done && (again || at.base + slot as u64 >= words::rank(words.consume))
            };
            if at.segment.valid_still(at.base) && self.words() == words {
                return ready;
            }
            crate::sync::hint::spin_loop();
        }
    }
}
