//! A single-producer single-consumer ring of pointers (`rtrb`): the physical limit. It cannot
//! put anything back, finish in another order, find an offset or account for sizes; it runs
//! where a workload asks for none of that. Messages are pushed and popped one by one, as plain
//! use of it is; by its chunks it would be about twice as fast in B1b, B5 and B8.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use lanekeeper::process_queue::Mode;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::ring::{PULL_BATCH, Payload, Pulled};
use crate::subject::{Cache, Commit, Ordered, Pull};

/// An `rtrb` ring with the two counters that flow control needs.
pub struct SpscRing {
    producer: Mutex<Option<Producer<Payload>>>,
    consumer: Mutex<Option<Consumer<Payload>>>,
    /// Messages put: written by the puller only.
    put: CachePadded<AtomicU64>,
    /// Messages finished: written by the consumer only.
    finished: CachePadded<AtomicU64>,
}

impl Cache for SpscRing {
    const NAME: &'static str = "spsc-ring";
    type Puller<'q> = RingPuller<'q>;

    fn new(_mode: Mode, room: usize) -> Self {
        let (producer, consumer) = RingBuffer::new((room + PULL_BATCH).next_power_of_two());
        Self {
            producer: Mutex::new(Some(producer)),
            consumer: Mutex::new(Some(consumer)),
            put: CachePadded::default(),
            finished: CachePadded::default(),
        }
    }

    fn puller(&self) -> RingPuller<'_> {
        let producer = self.producer.lock().expect("nobody panics with it").take();
        RingPuller { queue: self, producer: producer.expect("one puller") }
    }

    fn count(&self) -> u64 {
        let finished = self.finished.load(Ordering::Acquire);
        self.put.load(Ordering::Acquire) - finished
    }
}

/// The producer of the ring.
pub struct RingPuller<'q> {
    queue: &'q SpscRing,
    producer: Producer<Payload>,
}

impl Pull for RingPuller<'_> {
    #[inline(always)]
    fn put(&mut self, batch: &[Pulled], _now_ms: i64) {
        let put = self.queue.put.load(Ordering::Relaxed) + batch.len() as u64;
        self.queue.put.store(put, Ordering::Release);
        for message in batch {
            self.producer.push(message.payload).expect("flow control leaves room");
        }
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        self.queue.count()
    }
}

/// The consumer of the ring.
pub struct RingTurn<'q> {
    queue: &'q SpscRing,
    consumer: Consumer<Payload>,
    /// Messages taken and not committed.
    taken: u64,
    last: i64,
}

impl Ordered for SpscRing {
    type Turn<'q> = RingTurn<'q>;
    fn turn(&self) -> RingTurn<'_> {
        let consumer = self.consumer.lock().expect("nobody panics with it").take();
        RingTurn { queue: self, consumer: consumer.expect("one consumer"), taken: 0, last: -1 }
    }
}

impl Commit for RingTurn<'_> {
    #[inline(always)]
    fn take(&mut self, n: usize, _now_ms: i64, mut consume: impl FnMut(Payload)) -> usize {
        for taken in 0..n {
            let Ok(payload) = self.consumer.pop() else {
                self.taken += taken as u64;
                return taken;
            };
            self.last = payload.offset();
            consume(payload);
        }
        self.taken += n as u64;
        n
    }

    #[inline(always)]
    fn commit(&mut self, _now_ms: i64) -> i64 {
        let finished = self.queue.finished.load(Ordering::Relaxed) + self.taken;
        self.queue.finished.store(finished, Ordering::Release);
        self.taken = 0;
        self.last + 1
    }
}
