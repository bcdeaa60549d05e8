//! The messages, made before the clock starts, and the batches a pull would bring.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use lanekeeper::process_queue::Incoming;

/// Messages in one pull (`pullBatchSize`).
pub const PULL_BATCH: usize = 32;
/// Messages in the ring, unless more have to be cached at once.
pub const RING_MESSAGES: usize = 8192;

/// One message of the host: what a payload points to.
pub struct RingMessage {
    offset: AtomicI64,
    size: u32,
}

impl RingMessage {
    /// The offset the puller wrote.
    #[inline(always)]
    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// The size for flow control.
    #[inline(always)]
    pub fn size(&self) -> u64 {
        u64::from(self.size)
    }
}

/// What the implementations hold and hand over: a pointer, as a client would.
pub type Payload = &'static RingMessage;
/// One entry of a pulled batch.
pub type Pulled = Incoming<Payload>;

/// Rings made so far. They are never freed: a run takes up the one of an earlier run.
static RINGS: Mutex<Vec<&'static [RingMessage]>> = Mutex::new(Vec::new());

fn ring_of(messages: usize) -> &'static [RingMessage] {
    let mut rings = RINGS.lock().expect("no thread panics while it makes a ring");
    if let Some(ring) = rings.iter().find(|ring| ring.len() == messages) {
        return ring;
    }
    let ring: Vec<RingMessage> = (0..messages as u32)
        .map(|index| RingMessage { offset: AtomicI64::new(-1), size: 100 + index * 37 % 900 })
        .collect();
    let ring: &'static [RingMessage] = Vec::leak(ring);
    rings.push(ring);
    ring
}

/// Where the pulls come from: offsets ascend by `stride`, messages are used in turn.
pub struct Source {
    ring: &'static [RingMessage],
    next_index: usize,
    next_offset: i64,
    stride: i64,
}

impl Source {
    /// A source whose ring is large enough for `cached` messages at once.
    pub fn new(cached: usize, stride: i64) -> Self {
        let messages = RING_MESSAGES.max((cached + 2048).next_power_of_two());
        Self { ring: ring_of(messages), next_index: 0, next_offset: 0, stride }
    }

    /// Room for one pull.
    pub fn batch(&self) -> [Pulled; PULL_BATCH] {
        [Incoming::new(0, &self.ring[0], 0); PULL_BATCH]
    }

    /// One pull: writes the offsets into the messages and lists them.
    #[inline(always)]
    pub fn pull(&mut self, batch: &mut [Pulled; PULL_BATCH]) {
        let messages = &self.ring[self.next_index..self.next_index + PULL_BATCH];
        for (entry, message) in batch.iter_mut().zip(messages) {
            message.offset.store(self.next_offset, Ordering::Relaxed);
            *entry = Incoming::new(self.next_offset, message, message.size);
            self.next_offset += self.stride;
        }
        self.next_index = (self.next_index + PULL_BATCH) & (self.ring.len() - 1);
    }
}

/// The time the host tells. It goes on now and then, at about the pace of a real clock.
#[inline(always)]
pub fn now_ms(batches: u64) -> i64 {
    (batches >> 11) as i64
}
