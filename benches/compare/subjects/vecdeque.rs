//! A mutex around two ring buffers, ready and in flight: the maps of the Java client with the
//! cheaper container, which will do while offsets ascend.
//!
//! It moves messages one by one, as the maps do. Moving the whole batch by slices would make B1b
//! about 1.6 times as fast, and so would one ring buffer with a number that tells how much of its
//! head is in flight (B4 five times), which however could not make one message ready again and
//! leave the others in flight.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use lanekeeper::process_queue::Mode;
use parking_lot::Mutex;

use super::Published;
use crate::ring::{PULL_BATCH, Payload, Pulled};
use crate::subject::{AnyOrder, Cache, Commit, Complete, Observed, Ordered, Pull, Rollback};

#[derive(Clone, Copy)]
struct Held {
    offset: i64,
    payload: Payload,
    size: u32,
    done: bool,
}

#[derive(Default)]
struct Window {
    ready: VecDeque<Held>,
    in_flight: VecDeque<Held>,
    pull_offset: i64,
}

impl Window {
    /// The lowest outstanding offset, or the pull offset.
    #[inline(always)]
    fn lowest(&self) -> i64 {
        let lowest = self.in_flight.front().or_else(|| self.ready.front());
        lowest.map_or(self.pull_offset, |held| held.offset)
    }

    /// Where the message in flight is: by the distance from the head if offsets have no gaps.
    #[inline(always)]
    fn position(&self, offset: i64) -> usize {
        let guess = (offset - self.lowest()) as usize;
        match self.in_flight.get(guess) {
            Some(held) if held.offset == offset => guess,
            _ => self
                .in_flight
                .binary_search_by_key(&offset, |held| held.offset)
                .expect("the message is in flight"),
        }
    }
}

/// Two `VecDeque`s under a `parking_lot` mutex.
pub struct MutexVecDeque {
    window: CachePadded<Mutex<Window>>,
    published: CachePadded<Published>,
}

impl Cache for MutexVecDeque {
    const NAME: &'static str = "mutex-vecdeque";
    type Puller<'q> = &'q Self;

    fn new(_mode: Mode, _room: usize) -> Self {
        Self { window: CachePadded::default(), published: CachePadded::default() }
    }

    fn puller(&self) -> &Self {
        self
    }

    fn count(&self) -> u64 {
        self.published.count.load(Ordering::Acquire)
    }
}

impl Pull for &MutexVecDeque {
    #[inline(always)]
    fn put(&mut self, batch: &[Pulled], _now_ms: i64) {
        let bytes = batch.iter().map(|message| u64::from(message.size)).sum();
        let mut window = self.window.lock();
        window.ready.extend(batch.iter().map(|message| Held {
            offset: message.offset,
            payload: message.payload,
            size: message.size,
            done: false,
        }));
        window.pull_offset = batch[batch.len() - 1].offset + 1;
        self.published.added(batch.len() as u64, bytes);
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        Cache::count(*self)
    }
}

/// The consumer's side. What it took is listed here, so that it is looked at without the lock.
pub struct Taker<'q> {
    queue: &'q MutexVecDeque,
    taken: Vec<Payload>,
}

impl<'q> Taker<'q> {
    fn new(queue: &'q MutexVecDeque) -> Self {
        Self { queue, taken: Vec::with_capacity(2 * PULL_BATCH) }
    }

    #[inline(always)]
    fn take_ready(&mut self, n: usize, consume: impl FnMut(Payload)) -> usize {
        self.taken.clear();
        let mut guard = self.queue.window.lock();
        let window = &mut *guard;
        while self.taken.len() < n {
            let Some(held) = window.ready.pop_front() else { break };
            window.in_flight.push_back(held);
            self.taken.push(held.payload);
        }
        drop(guard);
        self.taken.iter().copied().for_each(consume);
        self.taken.len()
    }
}

impl Ordered for MutexVecDeque {
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
        let mut window = self.queue.window.lock();
        let count = window.in_flight.len();
        let bytes = window.in_flight.iter().map(|held| u64::from(held.size)).sum();
        window.in_flight.clear();
        let safe_offset = window.lowest();
        self.queue.published.finished(count as u64, bytes, safe_offset);
        safe_offset
    }
}

impl Rollback for Taker<'_> {
    #[inline(always)]
    fn rollback(&mut self, _now_ms: i64) -> usize {
        let mut guard = self.queue.window.lock();
        let window = &mut *guard;
        let count = window.in_flight.len();
        for held in window.in_flight.drain(..).rev() {
            window.ready.push_front(held);
        }
        count
    }
}

impl AnyOrder for MutexVecDeque {
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
        let mut window = self.queue.window.lock();
        let position = window.position(offset);
        let held = &mut window.in_flight[position];
        assert!(!held.done, "offset {offset} was finished twice");
        held.done = true;
        let bytes = u64::from(held.size);
        while window.in_flight.front().is_some_and(|held| held.done) {
            window.in_flight.pop_front();
        }
        let safe_offset = window.lowest();
        self.queue.published.finished(1, bytes, safe_offset);
        safe_offset
    }
}

impl Observed for MutexVecDeque {
    #[inline(always)]
    fn poll(&self) -> (i64, u64, i64) {
        let window = self.window.lock();
        let span = window.pull_offset - window.lowest();
        drop(window);
        (span, Cache::count(self), self.published.safe_offset.load(Ordering::Acquire))
    }
}
