//! The one harness: the same loops around every implementation.

use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use crossbeam_utils::CachePadded;
use lanekeeper::process_queue::Mode;

use crate::heap;
use crate::ring::{PULL_BATCH, Payload, Pulled, Source, now_ms};
use crate::subject::{AnyOrder, Cache, Commit, Complete, Observed, Ordered, Pull, Rollback};

/// Flow control: the puller waits while more are outstanding (`pullThresholdForQueue`).
const COUNT_LIMIT: u64 = 1000;
/// Messages that the out-of-order consumer holds.
const HELD: usize = 64;
/// Batches before the clock of a workload with one thread starts.
const WARM_BATCHES: u64 = 256;

/// What differs between workloads of one kind.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Messages in one take.
    pub take: usize,
    /// Distance between offsets.
    pub stride: i64,
    /// Messages cached before the clock starts.
    pub cached: usize,
}

impl Shape {
    /// Room that a queue needs for this workload.
    fn room(&self) -> usize {
        self.cached + 2 * COUNT_LIMIT as usize
    }

    fn limit(&self) -> u64 {
        self.cached as u64 + COUNT_LIMIT
    }
}

/// What one run measured.
#[derive(Clone, Copy)]
pub struct Measured {
    /// How long it took.
    pub elapsed: Duration,
    /// Messages, or cycles, in that time.
    pub units: u64,
    /// Polls of an observer in that time.
    pub polls: u64,
    /// Bytes of heap that are held at the end.
    pub bytes: u64,
}

impl Measured {
    fn new(elapsed: Duration, units: u64) -> Self {
        Self { elapsed, units, polls: 0, bytes: 0 }
    }
}

/// The first core and the last of those this program may use, looked up before anybody is pinned.
pub fn cores() -> Option<(CoreId, CoreId)> {
    static CORES: OnceLock<Option<(CoreId, CoreId)>> = OnceLock::new();
    *CORES.get_or_init(|| {
        let cores = core_affinity::get_core_ids()?;
        Some((*cores.first()?, *cores.last()?))
    })
}

/// Pins the calling thread to the first core, or the last.
pub fn pin(first: bool) {
    let core = cores().map(|cores| if first { cores.0 } else { cores.1 });
    if !core.is_some_and(core_affinity::set_for_current) {
        eprintln!("warning: a thread could not be pinned to its core");
    }
}

#[cold]
#[inline(never)]
fn wrong(what: &str, expected: i64, found: i64) -> ! {
    eprintln!("{what}: expected {expected}, found {found}");
    std::process::exit(1)
}

/// The puller: asks flow control, pulls and puts.
struct Feed<P> {
    puller: P,
    source: Source,
    batch: [Pulled; PULL_BATCH],
    batches: u64,
    limit: u64,
}

impl<P: Pull> Feed<P> {
    fn new(puller: P, shape: &Shape) -> Self {
        let source = Source::new(shape.cached, shape.stride);
        let batch = source.batch();
        Self { puller, source, batch, batches: 0, limit: shape.limit() }
    }

    #[inline(always)]
    fn pull(&mut self) {
        while self.puller.count() > self.limit {
            for _ in 0..4 {
                spin_loop();
            }
        }
        self.source.pull(&mut self.batch);
        self.puller.put(&self.batch, now_ms(self.batches));
        self.batches += 1;
    }
}

/// The consumer's checks: every offset, and every answer.
struct Check {
    next: i64,
    stride: i64,
    answer: i64,
}

impl Check {
    fn new(stride: i64) -> Self {
        Self { next: 0, stride, answer: 0 }
    }

    #[inline(always)]
    fn message(&mut self, message: Payload) {
        let offset = message.offset();
        if offset != self.next {
            wrong("offset taken", self.next, offset);
        }
        self.next += self.stride;
    }

    /// The answer never goes back, and never beyond the next message. With nobody else at work it
    /// lies above everything finished, too: `exact`.
    #[inline(always)]
    fn answer(&mut self, answer: i64, exact: bool) {
        let lowest = if exact { self.next - self.stride + 1 } else { self.answer };
        if answer < lowest || answer > self.next {
            wrong("offset to store", self.next, answer);
        }
        self.answer = answer;
    }
}

#[inline(always)]
fn consume<C: Commit>(turn: &mut C, n: usize, now: i64, check: &mut Check, exact: bool) -> usize {
    let taken = turn.take(n, now, |message| check.message(message));
    if taken != 0 {
        check.answer(turn.commit(now), exact);
    }
    taken
}

/// B1, B1b, B5, B8: one thread puts 32, then takes and commits them.
pub fn one_thread<Q: Ordered>(shape: &Shape, batches: u64) -> Measured {
    let queue = Q::new(Mode::Orderly, shape.room());
    let mut feed = Feed::new(queue.puller(), shape);
    let mut turn = queue.turn();
    let mut check = Check::new(shape.stride);
    for _ in 0..shape.cached.div_ceil(PULL_BATCH) {
        feed.pull();
    }
    let mut step = || {
        feed.pull();
        let now = now_ms(feed.batches);
        for _ in 0..PULL_BATCH / shape.take {
            let taken = consume(&mut turn, shape.take, now, &mut check, true);
            if taken != shape.take {
                wrong("messages taken", shape.take as i64, taken as i64);
            }
        }
    };
    (0..WARM_BATCHES).for_each(|_| step());
    let start = Instant::now();
    (0..batches).for_each(|_| step());
    Measured::new(start.elapsed(), batches * PULL_BATCH as u64)
}

/// Starts two threads together.
#[derive(Default)]
struct Start(CachePadded<AtomicU64>);

impl Start {
    fn wait(&self) -> Instant {
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < 2 {
            spin_loop();
        }
        Instant::now()
    }
}

fn with_puller<Q: Cache>(
    queue: &Q,
    shape: &Shape,
    batches: u64,
    consumer: impl FnOnce(&Start) -> Duration,
) -> Measured {
    let start = Start::default();
    let elapsed = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(false);
            let mut feed = Feed::new(queue.puller(), shape);
            start.wait();
            (0..batches).for_each(|_| feed.pull());
        });
        consumer(&start)
    });
    if queue.count() != 0 {
        wrong("messages outstanding", 0, queue.count() as i64);
    }
    Measured::new(elapsed, batches * PULL_BATCH as u64)
}

/// B2, B2b: a puller thread, and this one takes and commits.
pub fn two_threads<Q: Ordered>(shape: &Shape, batches: u64) -> Measured {
    let queue = Q::new(Mode::Orderly, shape.room());
    let total = batches * PULL_BATCH as u64;
    with_puller(&queue, shape, batches, |start| {
        let mut turn = queue.turn();
        let mut check = Check::new(shape.stride);
        let mut done = 0;
        let since = start.wait();
        while done < total {
            let now = now_ms(done / PULL_BATCH as u64);
            match consume(&mut turn, shape.take, now, &mut check, false) {
                0 => spin_loop(),
                taken => done += taken as u64,
            }
        }
        since.elapsed()
    })
}

/// A small generator of random numbers (xorshift64).
struct Random(u64);

impl Random {
    #[inline(always)]
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * bound as u64) >> 32) as usize
    }
}

/// B3: a puller thread, and this one finishes a random one of the 64 oldest, one at a time.
pub fn any_order<Q: AnyOrder>(shape: &Shape, batches: u64) -> Measured {
    let queue = Q::new(Mode::Concurrent, shape.room());
    let total = batches * PULL_BATCH as u64;
    with_puller(&queue, shape, batches, |start| {
        let mut consumer = queue.consumer();
        let mut check = Check::new(shape.stride);
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut held = Vec::with_capacity(HELD);
        let mut taken = 0;
        let since = start.wait();
        while taken < total || !held.is_empty() {
            let now = now_ms(taken / PULL_BATCH as u64);
            while held.len() < HELD && taken < total {
                let count = consumer.take(HELD - held.len(), now, |message| {
                    check.message(message);
                    held.push(message.offset());
                });
                taken += count as u64;
                if count == 0 {
                    spin_loop();
                }
            }
            let offset = held.swap_remove(random.below(held.len()));
            check.answer(consumer.complete(offset, now), false);
        }
        since.elapsed()
    })
}

/// B4: takes 32 and puts them back, with 1000 cached; per cycle.
pub fn take_and_rollback<Q: Ordered>(shape: &Shape, batches: u64) -> Measured
where
    for<'q> Q::Turn<'q>: Rollback,
{
    let queue = Q::new(Mode::Orderly, shape.room());
    let mut feed = Feed::new(queue.puller(), shape);
    for _ in 0..shape.cached.div_ceil(PULL_BATCH) {
        feed.pull();
    }
    let mut turn = queue.turn();
    let mut step = |cycle: u64| {
        let now = now_ms(cycle);
        let mut check = Check::new(shape.stride);
        let taken = turn.take(shape.take, now, |message| check.message(message));
        let back = turn.rollback(now);
        if taken != shape.take || back != taken {
            wrong("messages put back", shape.take as i64, back as i64);
        }
    };
    (0..WARM_BATCHES).for_each(&mut step);
    let start = Instant::now();
    (0..batches).for_each(step);
    Measured::new(start.elapsed(), batches)
}

/// B6: as [`one_thread`], while another thread reads span, count and safe offset.
pub fn observed<Q: Observed>(shape: &Shape, batches: u64) -> Measured {
    let queue = Q::new(Mode::Orderly, shape.room());
    let mut feed = Feed::new(queue.puller(), shape);
    for _ in 0..shape.cached.div_ceil(PULL_BATCH) {
        feed.pull();
    }
    let (start, done) = (Start::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            pin(false);
            let (mut polls, mut last) = (0_u64, 0);
            start.wait();
            while !done.load(Ordering::Relaxed) {
                for _ in 0..64 {
                    let (span, count, safe_offset) = queue.poll();
                    if span < 0 || safe_offset < last {
                        wrong("safe offset read", last, safe_offset);
                    }
                    black_box(count);
                    last = safe_offset;
                }
                polls += 64;
            }
            polls
        });
        let mut turn = queue.turn();
        let mut check = Check::new(shape.stride);
        let since = start.wait();
        for _ in 0..batches {
            feed.pull();
            let now = now_ms(feed.batches);
            consume(&mut turn, shape.take, now, &mut check, true);
        }
        let elapsed = since.elapsed();
        done.store(true, Ordering::Relaxed);
        let polls = observer.join().expect("the observer ends");
        Measured { polls, ..Measured::new(elapsed, batches * PULL_BATCH as u64) }
    })
}

/// B7: heap held for the cached messages; the time is that of filling.
pub fn filled<Q: Cache>(shape: &Shape, _batches: u64) -> Measured {
    let batches = shape.cached.div_ceil(PULL_BATCH) as u64;
    // The ring is the host's, and made before.
    let _ = Source::new(shape.cached, shape.stride);
    heap::start_counting();
    let queue = Q::new(Mode::Orderly, shape.room());
    let mut feed = Feed::new(queue.puller(), shape);
    let start = Instant::now();
    (0..batches).for_each(|_| feed.pull());
    let elapsed = start.elapsed();
    let bytes = heap::stop_counting();
    Measured { bytes, ..Measured::new(elapsed, batches * PULL_BATCH as u64) }
}
