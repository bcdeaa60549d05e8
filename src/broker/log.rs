//! One queue: its messages, the pulls held for it and the offsets committed on it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{BrokerError, lock};
use crate::sync::blocking::{Arc, Condvar, Mutex, PoisonError};

/// Most pulls [held](super::Topic::hold_pull) for one queue at a time.
pub const HELD_PULLS_MAX: usize = 1024;

/// A message as the broker keeps it. Never changes once appended.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredMessage {
    queue_id: u32,
    offset: i64,
    key: Box<str>,
    body: Box<[u8]>,
}

impl StoredMessage {
    /// The queue it lies in.
    #[must_use]
    pub fn queue_id(&self) -> u32 {
        self.queue_id
    }

    /// Its position in that queue, from 0.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The sharding key it was appended with; empty if it was appended to a queue by number.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The bytes given by the producer.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes of key and body, what a client counts against its cache limit; saturates.
    #[must_use]
    pub fn size(&self) -> u32 {
        u32::try_from(self.key.len() + self.body.len()).unwrap_or(u32::MAX)
    }
}

/// What a pull found; names as upstream's `PullStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PullStatus {
    /// At least one message.
    Found,
    /// The offset is the end of the queue: nothing has arrived there yet.
    NoNewMessage,
    /// The offset lies outside the queue; `next_offset` is the nearest one inside.
    OffsetIllegal,
}

/// The answer to a pull.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullResult {
    /// What was found.
    pub status: PullStatus,
    /// Where to pull next.
    pub next_offset: i64,
    /// Offset of the first message kept.
    pub min_offset: i64,
    /// One past the last message.
    pub max_offset: i64,
    /// The messages, ascending and without gaps from the offset asked for; empty unless `Found`.
    pub messages: Vec<Arc<StoredMessage>>,
}

/// Names a pull that was held, for [`cancel_pull`](super::Topic::cancel_pull).
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct HeldPull {
    pub(super) queue_id: u32,
    ticket: u64,
}

type Wake = Box<dyn FnOnce() + Send>;

struct Held {
    ticket: u64,
    /// Told when a message with this offset is there.
    offset: i64,
    wake: Wake,
}

pub(super) struct Queue {
    queue_id: u32,
    log: Mutex<Log>,
    /// Signalled when `messages` grew or `shut_down` was set.
    arrival: Condvar,
}

#[derive(Default)]
struct Log {
    messages: Vec<Arc<StoredMessage>>,
    held: Vec<Held>,
    /// Tickets given out so far.
    tickets: u64,
    /// Committed offset by consumer group.
    committed: BTreeMap<Box<str>, i64>,
    shut_down: bool,
}

impl Log {
    fn max_offset(&self) -> i64 {
        i64::try_from(self.messages.len()).expect("a vector holds fewer than 2^63 elements")
    }

    fn read(&self, offset: i64, batch_max: usize) -> PullResult {
        let max_offset = self.max_offset();
        let answer = |status, next_offset, messages| PullResult {
            status,
            next_offset,
            min_offset: 0,
            max_offset,
            messages,
        };
        let Ok(first_index) = usize::try_from(offset) else {
            return answer(PullStatus::OffsetIllegal, 0, Vec::new());
        };
        let Some(rest) = self.messages.get(first_index..) else {
            return answer(PullStatus::OffsetIllegal, max_offset, Vec::new());
        };
        if rest.is_empty() {
            return answer(PullStatus::NoNewMessage, offset, Vec::new());
        }
        // A batch of none would answer Found with nothing in it, for ever: one is the least.
        let messages = rest[..rest.len().min(batch_max.max(1))].to_vec();
        let next_offset = messages.last().map_or(offset, |last| last.offset + 1);
        answer(PullStatus::Found, next_offset, messages)
    }
}

impl Queue {
    pub(super) fn new(queue_id: u32) -> Self {
        Self { queue_id, log: Mutex::default(), arrival: Condvar::new() }
    }

    pub(super) fn append(&self, key: &str, body: Box<[u8]>) -> Result<i64, BrokerError> {
        let (offset, due) = {
            let mut log = lock(&self.log);
            if log.shut_down {
                return Err(BrokerError::ShutDown);
            }
            let offset = log.max_offset();
            let message = StoredMessage { queue_id: self.queue_id, offset, key: key.into(), body };
            log.messages.push(Arc::new(message));
            let due: Vec<_> = log.held.extract_if(.., |held| held.offset <= offset).collect();
            (offset, due)
        };
        self.arrival.notify_all();
        // Outside the lock: a callback may pull, append or hold again.
        for held in due {
            (held.wake)();
        }
        Ok(offset)
    }

    pub(super) fn pull(&self, offset: i64, batch_max: usize) -> Result<PullResult, BrokerError> {
        let log = lock(&self.log);
        if log.shut_down { Err(BrokerError::ShutDown) } else { Ok(log.read(offset, batch_max)) }
    }

    pub(super) fn pull_wait(
        &self,
        offset: i64,
        batch_max: usize,
        timeout: Duration,
    ) -> Result<PullResult, BrokerError> {
        // Waits only at the very end of the queue; an illegal offset is answered at once.
        let nothing_yet = |log: &mut Log| !log.shut_down && offset == log.max_offset();
        let (log, _) = self
            .arrival
            .wait_timeout_while(lock(&self.log), timeout, nothing_yet)
            .unwrap_or_else(PoisonError::into_inner);
        if log.shut_down { Err(BrokerError::ShutDown) } else { Ok(log.read(offset, batch_max)) }
    }

    pub(super) fn hold_pull(&self, offset: i64, wake: Wake) -> Result<HeldPull, BrokerError> {
        let (name, wake) = {
            let mut log = lock(&self.log);
            let is_due = log.shut_down || log.max_offset() > offset;
            if !is_due && log.held.len() == HELD_PULLS_MAX {
                return Err(BrokerError::TooManyHeld);
            }
            let ticket = log.tickets;
            log.tickets += 1;
            let name = HeldPull { queue_id: self.queue_id, ticket };
            if !is_due {
                log.held.push(Held { ticket, offset, wake });
                return Ok(name);
            }
            (name, wake)
        };
        wake();
        Ok(name)
    }

    pub(super) fn cancel_pull(&self, name: &HeldPull) -> bool {
        let cancelled = {
            let mut log = lock(&self.log);
            let index = log.held.iter().position(|held| held.ticket == name.ticket);
            index.map(|index| log.held.swap_remove(index))
        };
        // Dropped here, outside the lock: what a callback owns may do anything when it goes.
        cancelled.is_some()
    }

    pub(super) fn max_offset(&self) -> i64 {
        lock(&self.log).max_offset()
    }

    pub(super) fn commit_offset(&self, group: &str, offset: i64) -> Result<(), BrokerError> {
        let mut log = lock(&self.log);
        let max_offset = log.max_offset();
        if !(0..=max_offset).contains(&offset) {
            return Err(BrokerError::InvalidOffset { offset, max_offset });
        }
        match log.committed.get_mut(group) {
            Some(committed) => *committed = offset,
            None => {
                log.committed.insert(group.into(), offset);
            }
        }
        Ok(())
    }

    pub(super) fn committed_offset(&self, group: &str) -> Option<i64> {
        lock(&self.log).committed.get(group).copied()
    }

    pub(super) fn shut_down(&self) {
        let held = {
            let mut log = lock(&self.log);
            log.shut_down = true;
            std::mem::take(&mut log.held)
        };
        self.arrival.notify_all();
        for held in held {
            (held.wake)();
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = lock(&self.log);
        f.debug_struct("Queue")
            .field("queue_id", &self.queue_id)
            .field("max_offset", &log.max_offset())
            .field("held", &log.held.len())
            .field("committed", &log.committed)
            .field("shut_down", &log.shut_down)
            .finish()
    }
}
