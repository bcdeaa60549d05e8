//! A topic: the queues of one name, and every call a client makes on them.

use std::time::Duration;

use super::BrokerError;
use super::log::{HeldPull, PullResult, Queue};
use crate::select;

/// Where a message was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Appended {
    /// The queue.
    pub queue_id: u32,
    /// Its offset there.
    pub offset: i64,
}

/// A named set of queues, numbered from 0. Shared by reference between any number of threads.
#[derive(Debug)]
pub struct Topic {
    name: Box<str>,
    queues: Box<[Queue]>,
    /// The length of `queues`, in the width that queue ids have.
    queue_count: u32,
}

impl Topic {
    pub(super) fn new(name: &str, queue_count: u32) -> Self {
        let queues = (0..queue_count).map(Queue::new).collect();
        Self { name: name.into(), queues, queue_count }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many queues it has; their ids are 0 to one less.
    #[must_use]
    pub fn queue_count(&self) -> u32 {
        self.queue_count
    }

    /// Appends to the queue that the key selects, as upstream's `SelectMessageQueueByHash` does.
    ///
    /// # Errors
    /// [`BrokerError::ShutDown`].
    pub fn append(&self, key: &str, body: impl Into<Box<[u8]>>) -> Result<Appended, BrokerError> {
        let queue_id = select::by_key(key, self.queue_count).expect("a topic has a queue");
        let offset = self.queue(queue_id)?.append(key, body.into())?;
        Ok(Appended { queue_id, offset })
    }

    /// Appends to a queue by number, with an empty key: for hosts with a selection of their own.
    ///
    /// # Errors
    /// [`BrokerError::UnknownQueue`], [`BrokerError::ShutDown`].
    pub fn append_to(
        &self,
        queue_id: u32,
        body: impl Into<Box<[u8]>>,
    ) -> Result<Appended, BrokerError> {
        let offset = self.queue(queue_id)?.append("", body.into())?;
        Ok(Appended { queue_id, offset })
    }

    /// At most `batch_max` messages from `offset` on; never waits. A `batch_max` of 0 counts as 1.
    ///
    /// # Errors
    /// [`BrokerError::UnknownQueue`], [`BrokerError::ShutDown`].
    pub fn pull(
        &self,
        queue_id: u32,
        offset: i64,
        batch_max: usize,
    ) -> Result<PullResult, BrokerError> {
        self.queue(queue_id)?.pull(offset, batch_max)
    }

    /// As [`pull`](Self::pull), but at the end of the queue it blocks the thread until a message
    /// arrives, the broker is shut down, or `timeout` is over (then: `NoNewMessage`).
    ///
    /// # Errors
    /// [`BrokerError::UnknownQueue`], [`BrokerError::ShutDown`].
    pub fn pull_wait(
        &self,
        queue_id: u32,
        offset: i64,
        batch_max: usize,
        timeout: Duration,
    ) -> Result<PullResult, BrokerError> {
        self.queue(queue_id)?.pull_wait(offset, batch_max, timeout)
    }

    /// Holds a pull without a thread waiting for it, as upstream's `PullRequestHoldService`: `wake`
    /// is called once, as soon as the queue has a message at `offset` or the broker is shut down.
    /// That may be at once and on this thread, otherwise it is on the appending one; no lock of the
    /// broker is held meanwhile. `wake` only says "pull again", and should be short.
    ///
    /// Whoever loses interest, as the owner of a queue that is given away, says so with
    /// [`cancel_pull`](Self::cancel_pull): a held pull does not go away by itself.
    ///
    /// # Errors
    /// [`BrokerError::UnknownQueue`], [`BrokerError::TooManyHeld`]; `wake` is then dropped
    /// uncalled.
    pub fn hold_pull(
        &self,
        queue_id: u32,
        offset: i64,
        wake: impl FnOnce() + Send + 'static,
    ) -> Result<HeldPull, BrokerError> {
        self.queue(queue_id)?.hold_pull(offset, Box::new(wake))
    }

    /// Takes back a pull held by this topic; its `wake` is dropped uncalled. False if it was told
    /// already, or is being told just now.
    pub fn cancel_pull(&self, held: HeldPull) -> bool {
        self.queue(held.queue_id).is_ok_and(|queue| queue.cancel_pull(&held))
    }

    /// One past the last message of a queue: the offset the next append gets.
    ///
    /// # Errors
    /// [`BrokerError::UnknownQueue`].
    pub fn max_offset(&self, queue_id: u32) -> Result<i64, BrokerError> {
        Ok(self.queue(queue_id)?.max_offset())
    }

    /// Stores the next offset that `group` has to consume. A plain store: who may store, and that
    /// it never goes back, is the business of the one who owns the queue.
    ///
    /// # Errors
    /// [`BrokerError::InvalidOffset`] if it is negative or past the end,
    /// [`BrokerError::UnknownQueue`].
    pub fn commit_offset(
        &self,
        group: &str,
        queue_id: u32,
        offset: i64,
    ) -> Result<(), BrokerError> {
        self.queue(queue_id)?.commit_offset(group, offset)
    }

    /// What `group` stored last, or None if it never did.
    ///
    /// # Errors
    /// [`BrokerError::UnknownQueue`].
    pub fn committed_offset(&self, group: &str, queue_id: u32) -> Result<Option<i64>, BrokerError> {
        Ok(self.queue(queue_id)?.committed_offset(group))
    }

    pub(super) fn shut_down(&self) {
        for queue in &self.queues {
            queue.shut_down();
        }
    }

    fn queue(&self, queue_id: u32) -> Result<&Queue, BrokerError> {
        let found = usize::try_from(queue_id).ok().and_then(|index| self.queues.get(index));
        found.ok_or_else(|| BrokerError::UnknownQueue {
            topic: self.name.to_string(),
            queue_id,
            queue_count: self.queue_count,
        })
    }
}
