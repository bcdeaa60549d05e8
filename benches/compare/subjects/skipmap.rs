//! A pair of lock-free ordered maps with an entry for each message. A batch is not one step for
//! it, nor is a commit: it is faster to write than it is right, and here for its speed only.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crossbeam_skiplist::SkipMap;
use crossbeam_utils::CachePadded;
use lanekeeper::process_queue::Mode;

use crate::ring::{Payload, Pulled};
use crate::subject::{AnyOrder, Cache, Commit, Complete, Observed, Ordered, Pull, Rollback};

/// A number that grows on the one side of the queue, and where that side stands.
#[derive(Default)]
struct Side {
    count: AtomicU64,
    bytes: AtomicU64,
    offset: AtomicI64,
}

/// Two `crossbeam_skiplist::SkipMap`s.
pub struct SkipMapPair {
    ready: SkipMap<i64, Payload>,
    in_flight: SkipMap<i64, Payload>,
    /// What was put, and the pull offset. Only the puller writes it.
    put: CachePadded<Side>,
    /// What was finished, and the safe offset. Any consumer may write it.
    finished: CachePadded<Side>,
}

impl SkipMapPair {
    /// The lowest outstanding offset, or the pull offset.
    fn lowest(&self) -> i64 {
        let pull_offset = self.put.offset.load(Ordering::Acquire);
        let ready = self.ready.front().map_or(pull_offset, |entry| *entry.key());
        self.in_flight.front().map_or(ready, |entry| ready.min(*entry.key()))
    }

    #[inline(always)]
    fn finish(&self, count: u64, bytes: u64) -> i64 {
        let lowest = self.lowest();
        self.finished.count.fetch_add(count, Ordering::Release);
        self.finished.bytes.fetch_add(bytes, Ordering::Release);
        // Part of a batch may be consumed before the pull offset is raised: that leads back.
        lowest.max(self.finished.offset.fetch_max(lowest, Ordering::AcqRel))
    }

    #[inline(always)]
    fn take_ready(&self, n: usize, mut consume: impl FnMut(Payload)) -> usize {
        for taken in 0..n {
            let Some(entry) = self.ready.pop_front() else { return taken };
            self.in_flight.insert(*entry.key(), *entry.value());
            consume(entry.value());
        }
        n
    }
}

impl Cache for SkipMapPair {
    const NAME: &'static str = "skipmap-pair";
    type Puller<'q> = &'q Self;

    fn new(_mode: Mode, _room: usize) -> Self {
        Self {
            ready: SkipMap::new(),
            in_flight: SkipMap::new(),
            put: CachePadded::default(),
            finished: CachePadded::default(),
        }
    }

    fn puller(&self) -> &Self {
        self
    }

    fn count(&self) -> u64 {
        let finished = self.finished.count.load(Ordering::Acquire);
        self.put.count.load(Ordering::Acquire) - finished
    }
}

impl Pull for &SkipMapPair {
    #[inline(always)]
    fn put(&mut self, batch: &[Pulled], _now_ms: i64) {
        let bytes: u64 = batch.iter().map(|message| u64::from(message.size)).sum();
        let put = &self.put;
        // Counted first, so that the count never falls below what is outstanding.
        let count = put.count.load(Ordering::Relaxed) + batch.len() as u64;
        put.count.store(count, Ordering::Release);
        put.bytes.store(put.bytes.load(Ordering::Relaxed) + bytes, Ordering::Release);
        for message in batch {
            self.ready.insert(message.offset, message.payload);
        }
        put.offset.store(batch[batch.len() - 1].offset + 1, Ordering::Release);
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        Cache::count(*self)
    }
}

impl Ordered for SkipMapPair {
    type Turn<'q> = &'q Self;
    fn turn(&self) -> &Self {
        self
    }
}

impl Commit for &SkipMapPair {
    #[inline(always)]
    fn take(&mut self, n: usize, _now_ms: i64, consume: impl FnMut(Payload)) -> usize {
        self.take_ready(n, consume)
    }

    #[inline(always)]
    fn commit(&mut self, _now_ms: i64) -> i64 {
        let (mut count, mut bytes) = (0, 0);
        while let Some(entry) = self.in_flight.pop_front() {
            count += 1;
            bytes += entry.value().size();
        }
        self.finish(count, bytes)
    }
}

impl Rollback for &SkipMapPair {
    #[inline(always)]
    fn rollback(&mut self, _now_ms: i64) -> usize {
        let mut count = 0;
        while let Some(entry) = self.in_flight.pop_front() {
            self.ready.insert(*entry.key(), *entry.value());
            count += 1;
        }
        count
    }
}

impl AnyOrder for SkipMapPair {
    type Consumer<'q> = &'q Self;
    fn consumer(&self) -> &Self {
        self
    }
}

impl Complete for &SkipMapPair {
    #[inline(always)]
    fn take(&mut self, n: usize, _now_ms: i64, consume: impl FnMut(Payload)) -> usize {
        self.take_ready(n, consume)
    }

    #[inline(always)]
    fn complete(&mut self, offset: i64, _now_ms: i64) -> i64 {
        let entry = self.in_flight.remove(&offset).expect("the message is in flight");
        self.finish(1, entry.value().size())
    }
}

impl Observed for SkipMapPair {
    #[inline(always)]
    fn poll(&self) -> (i64, u64, i64) {
        let lowest = self.lowest();
        let span = self.put.offset.load(Ordering::Acquire) - lowest;
        (span, Cache::count(self), self.finished.offset.load(Ordering::Acquire))
    }
}
