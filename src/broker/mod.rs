//! A broker inside the process: topics of ordered queues, held in memory.
//!
//! It stands where a RocketMQ broker would stand, for programs that want ordered consumption
//! without a server, for tests, and as the reference for a transport: append by key, pull by
//! offset, hold a pull until something arrives, keep the committed offset of each consumer group.
//!
//! ```
//! use lanekeeper::broker::{Broker, PullStatus};
//!
//! let broker = Broker::new();
//! let orders = broker.create_topic("orders", 8)?;
//! let at = orders.append("order-17", b"paid".as_slice())?;
//! let pulled = orders.pull(at.queue_id, at.offset, 32)?;
//! assert_eq!(pulled.status, PullStatus::Found);
//! assert_eq!(pulled.messages[0].key(), "order-17");
//! orders.commit_offset("billing", at.queue_id, pulled.next_offset)?;
//! assert_eq!(orders.committed_offset("billing", at.queue_id)?, Some(1));
//! # Ok::<(), lanekeeper::broker::BrokerError>(())
//! ```
//!
//! # Guarantees
//! - Per queue, offsets are dense from 0 and the order of appends is the order of offsets. Messages
//!   of one key are all in one queue ([`select::by_key`](crate::select::by_key)); between queues
//!   there is no order.
//! - Each call on one queue is one step under that queue's lock; calls on different queues do not
//!   wait for each other. A pull sees every append that returned before it began.
//! - A wake-up is never lost: whether something is there and whether to wait is decided under the
//!   lock that an append takes.
//!
//! # When not to use
//! it
//! Nothing is written to disk and nothing is ever deleted: the log of a topic lives, and grows,
//! until the topic's last handle is dropped. Unlike the layers below, this one blocks: it uses
//! plain mutexes and condition variables, held for a few instructions and never while a host's
//! callback runs.
//!
//! Upstream counterparts, in apache/rocketmq at commit 8fc57f1468d1, below
//! `broker/src/main/java/org/apache/rocketmq/broker`: `processor/PullMessageProcessor.java`,
//! `longpolling/PullRequestHoldService.java`, `offset/ConsumerOffsetManager.java`.

#![forbid(unsafe_code)]

mod error;
mod log;
mod topic;

pub use error::BrokerError;
pub use log::{HELD_PULLS_MAX, HeldPull, PullResult, PullStatus, StoredMessage};
pub use topic::{Appended, Topic};

use std::collections::BTreeMap;

use crate::sync::blocking::{Arc, Mutex, MutexGuard, PoisonError};

/// Most queues a topic can have, as many as upstream's topic configuration accepts in practice.
pub const QUEUES_MAX: u32 = 65_536;

/// A set of topics by name.
#[derive(Debug, Default)]
pub struct Broker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    topics: BTreeMap<String, Arc<Topic>>,
    shut_down: bool,
}

impl Broker {
    /// A broker without topics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a topic of `queue_count` empty queues.
    ///
    /// # Errors
    /// [`BrokerError::TopicExists`], [`BrokerError::QueueCount`] unless it is 1 to [`QUEUES_MAX`],
    /// [`BrokerError::ShutDown`].
    pub fn create_topic(&self, name: &str, queue_count: u32) -> Result<Arc<Topic>, BrokerError> {
        if queue_count == 0 || queue_count > QUEUES_MAX {
            return Err(BrokerError::QueueCount { queue_count });
        }
        let mut state = lock(&self.state);
        if state.shut_down {
            return Err(BrokerError::ShutDown);
        }
        if state.topics.contains_key(name) {
            return Err(BrokerError::TopicExists { topic: name.to_owned() });
        }
        let topic = Arc::new(Topic::new(name, queue_count));
        state.topics.insert(name.to_owned(), Arc::clone(&topic));
        Ok(topic)
    }

    /// The topic of that name.
    ///
    /// # Errors
    /// [`BrokerError::UnknownTopic`].
    pub fn topic(&self, name: &str) -> Result<Arc<Topic>, BrokerError> {
        let found = lock(&self.state).topics.get(name).cloned();
        found.ok_or_else(|| BrokerError::UnknownTopic { topic: name.to_owned() })
    }

    /// Names of the topics, ascending.
    #[must_use]
    pub fn topic_names(&self) -> Vec<String> {
        lock(&self.state).topics.keys().cloned().collect()
    }

    /// Ends service for good: appends and pulls of every topic answer [`BrokerError::ShutDown`],
    /// and whoever waits in one is woken. Offsets can still be committed and read, so that
    /// consumers can hand over what they finished.
    pub fn shut_down(&self) {
        let topics: Vec<Arc<Topic>> = {
            let mut state = lock(&self.state);
            state.shut_down = true;
            state.topics.values().cloned().collect()
        };
        for topic in topics {
            topic.shut_down();
        }
    }
}

/// Locks, also after a panic elsewhere: every critical section of this module leaves the state
/// whole at each step that can panic, so a poisoned lock guards nothing broken.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
