//! The judge: every delivery is told to it, and it says what was out of order and what was lost.
//!
//! It trusts nothing but the input. What was delivered is compared with the events as they were
//! read, never with what the broker or the queue say about themselves.
//!
//! - *In order*: the first deliveries of a key's events ascend, by the sequence column if there is
//!   one, else by position in the file; and a redelivery repeats a suffix: it begins at an event
//!   delivered before, leaves out none from there on, and reaches the last one before anything new.
//!   Two threads inside one queue at a time count as out of order too.
//! - *Lost*: an event that was never delivered.
//! - *Foreign*: a delivery that is not an event of the input, whole and under its own key.
//! - *Stored early*: an offset stored past an event whose consumption had not succeeded. After a
//!   crash it would be lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::input::Input;

/// What the ledger found. The first six are the totals that any client must agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub events: u64,
    pub keys: u64,
    /// Distinct events delivered.
    pub delivered: u64,
    /// Deliveries beyond the first of each event.
    pub redelivered: u64,
    pub out_of_order: u64,
    pub lost: u64,
    pub foreign: u64,
    pub stored_early: u64,
    /// Line of the first event that was found out of order.
    pub first_disorder_line: Option<u64>,
}

impl Findings {
    pub fn is_clean(&self) -> bool {
        self.out_of_order + self.lost + self.foreign + self.stored_early == 0
    }
}

pub struct Ledger<'i> {
    input: &'i Input,
    /// Per event, by position: delivered at least once.
    seen: Vec<AtomicBool>,
    /// Per key.
    keys: Vec<Mutex<KeyLog>>,
    /// Per queue.
    queues: Vec<QueueLog>,
    delivered: AtomicU64,
    redelivered: AtomicU64,
    foreign: AtomicU64,
    overlaps: AtomicU64,
    stored_early: AtomicU64,
}

/// The deliveries of one key.
#[derive(Default)]
struct KeyLog {
    /// Positions of its events, in the order of their first deliveries.
    firsts: Vec<usize>,
    /// Index into `firsts` of the latest delivery.
    latest: usize,
    out_of_order: u64,
    first_disorder_line: Option<u64>,
}

#[derive(Default)]
struct QueueLog {
    /// Somebody consumes from it now.
    entered: AtomicBool,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// By offset: consumption succeeded.
    done: Vec<bool>,
    /// Everything below is done.
    done_below: usize,
}

impl<'i> Ledger<'i> {
    pub fn new(input: &'i Input, queue_count: usize) -> Self {
        Self {
            input,
            seen: input.events.iter().map(|_| AtomicBool::new(false)).collect(),
            keys: input.keys.iter().map(|_| Mutex::default()).collect(),
            queues: (0..queue_count).map(|_| QueueLog::default()).collect(),
            delivered: AtomicU64::new(0),
            redelivered: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            overlaps: AtomicU64::new(0),
            stored_early: AtomicU64::new(0),
        }
    }

    /// The message that carries an event: its position, then its line.
    pub fn body(&self, position: usize) -> Vec<u8> {
        let mut body = (position as u64).to_le_bytes().to_vec();
        body.extend_from_slice(&self.input.events[position].row);
        body
    }

    /// A listener was handed this message.
    pub fn delivered(&self, key: &str, body: &[u8]) {
        let Some(position) = self.identify(key, body) else {
            self.foreign.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let event = &self.input.events[position];
        let mut log = lock(&self.keys[event.key]);
        // Under the key's lock, so that of two deliveries of one event exactly one is the first.
        let again = self.seen[position].swap(true, Ordering::Relaxed);
        let count = if again { &self.redelivered } else { &self.delivered };
        count.fetch_add(1, Ordering::Relaxed);
        let in_order = if again { log.repeat(position) } else { log.first(position, self.input) };
        if !in_order {
            log.out_of_order += 1;
            log.first_disorder_line.get_or_insert(event.line);
        }
    }

    /// A thread begins to consume from a queue.
    pub fn entered(&self, queue_id: u32) {
        if self.queues[queue_id as usize].entered.swap(true, Ordering::AcqRel) {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It has stopped, and has not yet told the queue.
    pub fn left(&self, queue_id: u32) {
        self.queues[queue_id as usize].entered.store(false, Ordering::Release);
    }

    /// The listener answered success for the message at that offset.
    pub fn succeeded(&self, queue_id: u32, offset: i64) {
        let index = usize::try_from(offset).expect("queues count from 0");
        let progress = &mut *lock(&self.queues[queue_id as usize].progress);
        if progress.done.len() <= index {
            progress.done.resize(index + 1, false);
        }
        progress.done[index] = true;
        while progress.done.get(progress.done_below) == Some(&true) {
            progress.done_below += 1;
        }
    }

    /// An offset is about to be stored at the broker.
    pub fn stored(&self, queue_id: u32, offset: i64) {
        let below = usize::try_from(offset).expect("queues count from 0");
        let progress = lock(&self.queues[queue_id as usize].progress);
        let open = (progress.done_below..below)
            .filter(|index| progress.done.get(*index) != Some(&true))
            .count();
        self.stored_early.fetch_add(open as u64, Ordering::Relaxed);
    }

    /// Distinct events delivered, and deliveries beyond those; weak while consumers run.
    pub fn deliveries(&self) -> (u64, u64) {
        (self.delivered.load(Ordering::Relaxed), self.redelivered.load(Ordering::Relaxed))
    }

    /// The verdict. Call it when nobody consumes any more.
    pub fn findings(&self) -> Findings {
        let (delivered, redelivered) = self.deliveries();
        let mut out_of_order = self.overlaps.load(Ordering::Relaxed);
        let mut first_disorder_line: Option<u64> = None;
        for log in &self.keys {
            let log = lock(log);
            out_of_order += log.out_of_order + u64::from(log.is_replaying());
            let lines = [first_disorder_line, log.first_disorder_line];
            first_disorder_line = lines.into_iter().flatten().min();
        }
        let unseen = |seen: &&AtomicBool| !seen.load(Ordering::Relaxed);
        Findings {
            events: self.input.events.len() as u64,
            keys: self.input.keys.len() as u64,
            delivered,
            redelivered,
            out_of_order,
            lost: self.seen.iter().filter(unseen).count() as u64,
            foreign: self.foreign.load(Ordering::Relaxed),
            stored_early: self.stored_early.load(Ordering::Relaxed),
            first_disorder_line,
        }
    }

    fn identify(&self, key: &str, body: &[u8]) -> Option<usize> {
        let (position, row) = body.split_first_chunk()?;
        let position = usize::try_from(u64::from_le_bytes(*position)).ok()?;
        let event = self.input.events.get(position)?;
        (*event.row == *row && *self.input.keys[event.key] == *key).then_some(position)
    }
}

impl KeyLog {
    /// The first delivery of an event; whether it is in order.
    fn first(&mut self, position: usize, input: &Input) -> bool {
        let rank = |position: usize| (input.events[position].seq, position);
        let ascends = self.firsts.last().is_none_or(|last| {
            let (last, this) = (rank(*last), rank(position));
            // With a sequence column its values alone decide, and two equal ones do not ascend.
            if last.0.is_some() { last.0 < this.0 } else { last.1 < this.1 }
        });
        let in_order = ascends && !self.is_replaying();
        self.latest = self.firsts.len();
        self.firsts.push(position);
        in_order
    }

    /// A later delivery of an event; whether it is in order.
    fn repeat(&mut self, position: usize) -> bool {
        // From the end, for a redelivery is rarely far back.
        let index = self.firsts.iter().rposition(|first| *first == position);
        let index = index.expect("an event seen before is among the first deliveries");
        let in_order = index <= self.latest + 1;
        self.latest = index;
        in_order
    }

    /// A redelivery began and has not come to the last event delivered before it.
    fn is_replaying(&self) -> bool {
        self.latest + 1 < self.firsts.len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
