//! A mutex around two ordered maps: what the Java client does (`ProcessQueue.java`: `msgTreeMap`
//! and `consumingMsgOrderlyTreeMap` under a lock, count and size in atomics beside it). As
//! there, a map holds the message itself, and its size is read when it is removed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use lanekeeper::process_queue::Mode;
use parking_lot::Mutex;

use super::Published;
use crate::ring::{PULL_BATCH, Payload, Pulled};
use crate::subject::{AnyOrder, Cache, Commit, Complete, Observed, Ordered, Pull, Rollback};

#[derive(Default)]
struct Maps {
    ready: BTreeMap<i64, Payload>,
    in_flight: BTreeMap<i64, Payload>,
    pull_offset: i64,
}

impl Maps {
    /// The lowest outstanding offset, or the pull offset.
    fn lowest(&self) -> i64 {
        let ready = self.ready.first_key_value().map_or(self.pull_offset, |(&offset, _)| offset);
        let in_flight = self.in_flight.first_key_value().map_or(ready, |(&offset, _)| offset);
        ready.min(in_flight)
    }
}

/// Two `BTreeMap`s under a `parking_lot` mutex.
pub struct MutexBtreeMap {
    maps: CachePadded<Mutex<Maps>>,
    published: CachePadded<Published>,
}

impl Cache for MutexBtreeMap {
    const NAME: &'static str = "mutex-btreemap";
    type Puller<'q> = &'q Self;

    fn new(_mode: Mode, _room: usize) -> Self {
        Self { maps: CachePadded::default(), published: CachePadded::default() }
    }

    fn puller(&self) -> &Self {
        self
    }

    fn count(&self) -> u64 {
        self.published.count.load(Ordering::Acquire)
    }
}

impl Pull for &MutexBtreeMap {
    #[inline(always)]
    fn put(&mut self, batch: &[Pulled], _now_ms: i64) {
        let mut maps = self.maps.lock();
        let mut bytes = 0;
        for message in batch {
            maps.ready.insert(message.offset, message.payload);
            bytes += u64::from(message.size);
            maps.pull_offset = maps.pull_offset.max(message.offset + 1);
        }
        self.published.added(batch.len() as u64, bytes);
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        Cache::count(*self)
    }
}

/// The consumer's side. What it took is listed here, so that it is looked at without the lock.
pub struct Taker<'q> {
    queue: &'q MutexBtreeMap,
    taken: Vec<Payload>,
}

impl<'q> Taker<'q> {
    fn new(queue: &'q MutexBtreeMap) -> Self {
        Self { queue, taken: Vec::with_capacity(2 * PULL_BATCH) }
    }

    #[inline(always)]
    fn take_ready(&mut self, n: usize, consume: impl FnMut(Payload)) -> usize {
        self.taken.clear();
        let mut guard = self.queue.maps.lock();
        let maps = &mut *guard;
        while self.taken.len() < n {
            let Some((offset, payload)) = maps.ready.pop_first() else { break };
            maps.in_flight.insert(offset, payload);
            self.taken.push(payload);
        }
        drop(guard);
        self.taken.iter().copied().for_each(consume);
        self.taken.len()
    }
}

impl Ordered for MutexBtreeMap {
    type Turn<'q> = Taker<'q>;
    fn turn(&self) -> Taker<'_> {
        Taker::new(self)
    }
}

impl Commit for Taker<'_> {
    #[inline(always)]
    fn take(&mut self, n: usize, _now_ms: i64, consume: impl FnMut(Payload)) -> usize {
        self.take_ready(n, consume)
    }

    #[inline(always)]
    fn commit(&mut self, _now_ms: i64) -> i64 {
        let mut maps = self.queue.maps.lock();
        let bytes = maps.in_flight.values().map(|message| message.size()).sum();
        let count = maps.in_flight.len() as u64;
        maps.in_flight.clear();
        let safe_offset = maps.lowest();
        self.queue.published.finished(count, bytes, safe_offset);
        safe_offset
    }
}

impl Rollback for Taker<'_> {
    #[inline(always)]
    fn rollback(&mut self, _now_ms: i64) -> usize {
        let mut guard = self.queue.maps.lock();
        let maps = &mut *guard;
        let count = maps.in_flight.len();
        // One by one: `BTreeMap::append` would rebuild the whole ready map.
        for (offset, payload) in std::mem::take(&mut maps.in_flight) {
            maps.ready.insert(offset, payload);
        }
        count
    }
}

impl AnyOrder for MutexBtreeMap {
    type Consumer<'q> = Taker<'q>;
    fn consumer(&self) -> Taker<'_> {
        Taker::new(self)
    }
}

impl Complete for Taker<'_> {
    #[inline(always)]
    fn take(&mut self, n: usize, _now_ms: i64, consume: impl FnMut(Payload)) -> usize {
        self.take_ready(n, consume)
    }

    #[inline(always)]
    fn complete(&mut self, offset: i64, _now_ms: i64) -> i64 {
        let mut maps = self.queue.maps.lock();
        let message = maps.in_flight.remove(&offset).expect("the message is in flight");
        let safe_offset = maps.lowest();
        self.queue.published.finished(1, message.size(), safe_offset);
        safe_offset
    }
}

impl Observed for MutexBtreeMap {
    #[inline(always)]
    fn poll(&self) -> (i64, u64, i64) {
        let maps = self.maps.lock();
        let span = maps.pull_offset - maps.lowest();
        drop(maps);
        (span, Cache::count(self), self.published.safe_offset.load(Ordering::Acquire))
    }
}
