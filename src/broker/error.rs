//! What a broker refuses, and why.

use std::fmt;

use super::QUEUES_MAX;
use super::log::HELD_PULLS_MAX;

/// A call that changed nothing, with the values that made it impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerError {
    /// No topic of that name.
    UnknownTopic {
        /// The name asked for.
        topic: String,
    },
    /// A topic of that name exists.
    TopicExists {
        /// The name asked for.
        topic: String,
    },
    /// A topic cannot have that many queues.
    QueueCount {
        /// The number asked for.
        queue_count: u32,
    },
    /// The topic has no such queue.
    UnknownQueue {
        /// The topic.
        topic: String,
        /// The queue asked for.
        queue_id: u32,
        /// How many queues the topic has.
        queue_count: u32,
    },
    /// A consume offset that the queue cannot have: negative, or past its end.
    InvalidOffset {
        /// The offset given.
        offset: i64,
        /// One past the queue's last message.
        max_offset: i64,
    },
    /// [`HELD_PULLS_MAX`] pulls of that queue wait already.
    TooManyHeld,
    /// The broker was shut down.
    ShutDown,
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTopic { topic } => write!(f, "there is no topic {topic:?}"),
            Self::TopicExists { topic } => write!(f, "topic {topic:?} exists already"),
            Self::QueueCount { queue_count } => {
                write!(f, "a topic has 1 to {QUEUES_MAX} queues, not {queue_count}")
            }
            Self::UnknownQueue { topic, queue_id, queue_count } => {
                write!(f, "topic {topic:?} has queues 0 to {}, not {queue_id}", queue_count - 1)
            }
            Self::InvalidOffset { offset, max_offset } => {
                write!(f, "offset {offset} is not in 0 to {max_offset}, the end of the queue")
            }
            Self::TooManyHeld => write!(f, "{HELD_PULLS_MAX} pulls of the queue are held already"),
            Self::ShutDown => f.write_str("the broker was shut down"),
        }
    }
}
impl std::error::Error for BrokerError {}
