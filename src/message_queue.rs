//! The name of one queue of a topic: topic, broker name, queue id.
//!
//! Clients of a group divide the queues of a topic among themselves without talking to each other:
//! each sorts the same list and takes its part. So the order, and where a hash ring is used the
//! text, must be those that Java computes, or a mixed fleet consumes some queues twice and others
//! not at all.
//!
//! Source: apache/rocketmq at commit 8fc57f1468d1, `common/src/main/java/org/apache/rocketmq/
//! common/message/MessageQueue.java`.
//!
//! Plain values: any thread, no I/O. Making one allocates, comparing and hashing do not.

#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::java;
use crate::sync::blocking::Arc;

/// One queue. Ids are 0 to `i32::MAX`, so that the order is a total one; [`Name`] has the others.
#[derive(Clone)]
pub struct MessageQueue {
    topic: Arc<str>,
    broker_name: Arc<str>,
    queue_id: i32,
}

/// A queue id that no queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InvalidQueueId(pub i32);

impl fmt::Display for InvalidQueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue id {} is negative; ids of queues are 0 to {}", self.0, i32::MAX)
    }
}
impl std::error::Error for InvalidQueueId {}

impl MessageQueue {
    /// A queue by its name. Queues of one topic may share the text: pass clones of one `Arc<str>`.
    ///
    /// # Errors
    /// [`InvalidQueueId`] if the id is negative.
    ///
    /// ```
    /// use lanekeeper::message_queue::MessageQueue;
    /// let queue = MessageQueue::new("orders", "broker-a", 3)?;
    /// assert_eq!(
    ///     queue.to_string(),
    ///     "MessageQueue [topic=orders, brokerName=broker-a, queueId=3]"
    /// );
    /// assert!(MessageQueue::new("orders", "broker-a", -1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        topic: impl Into<Arc<str>>,
        broker_name: impl Into<Arc<str>>,
        queue_id: i32,
    ) -> Result<Self, InvalidQueueId> {
        if queue_id < 0 {
            return Err(InvalidQueueId(queue_id));
        }
        Ok(Self { topic: topic.into(), broker_name: broker_name.into(), queue_id })
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The name of the broker group that holds it.
    #[must_use]
    pub fn broker_name(&self) -> &str {
        &self.broker_name
    }

    /// Its number in that broker's part of the topic, never negative.
    #[must_use]
    pub fn queue_id(&self) -> i32 {
        self.queue_id
    }

    /// `hashCode`, as Java computes it.
    #[must_use]
    pub fn hash_code(&self) -> i32 {
        self.name().hash_code()
    }

    /// The three parts, borrowed.
    #[must_use]
    pub fn name(&self) -> Name<'_> {
        Name { topic: &self.topic, broker_name: &self.broker_name, queue_id: self.queue_id }
    }
}

/// Two names of one topic mostly share its text.
fn same(a: &Arc<str>, b: &Arc<str>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

fn order(a: &Arc<str>, b: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(a, b) { Ordering::Equal } else { java::string_order(a, b) }
}

impl PartialEq for MessageQueue {
    fn eq(&self, other: &Self) -> bool {
        self.queue_id == other.queue_id
            && same(&self.broker_name, &other.broker_name)
            && same(&self.topic, &other.topic)
    }
}
impl Eq for MessageQueue {}

impl Hash for MessageQueue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Ord for MessageQueue {
    fn cmp(&self, other: &Self) -> Ordering {
        // Ids that are not negative compare as their difference does in Java.
        order(&self.topic, &other.topic)
            .then_with(|| order(&self.broker_name, &other.broker_name))
            .then_with(|| self.queue_id.cmp(&other.queue_id))
    }
}

impl PartialOrd for MessageQueue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// The parts of a name as they arrive, any id allowed: what Java answers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The name of the broker group.
    pub broker_name: &'a str,
    /// Any number.
    pub queue_id: i32,
}

impl Name<'_> {
    /// `compareTo`, the very number. The difference of two ids may overflow and then has the wrong
    /// sign, as in Java: this is no order once negative ids take part.
    #[must_use]
    pub fn compare_to(&self, other: &Self) -> i32 {
        let parts = [(self.topic, other.topic), (self.broker_name, other.broker_name)];
        let differences = parts.into_iter().map(|(a, b)| java::string_compare(a, b));
        let text = differences.into_iter().find(|&difference| difference != 0);
        text.unwrap_or_else(|| self.queue_id.wrapping_sub(other.queue_id))
    }

    /// `hashCode`: 31 times what was, plus the next, over broker name, id and topic.
    #[must_use]
    pub fn hash_code(&self) -> i32 {
        let parts =
            [java::string_hash(self.broker_name), self.queue_id, java::string_hash(self.topic)];
        parts.into_iter().fold(1_i32, |hash, part| hash.wrapping_mul(31).wrapping_add(part))
    }
}

/// `toString`.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, broker_name, queue_id } = self;
        write!(f, "MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_ids_are_refused_by_name() {
        let error = MessageQueue::new("t", "b", -7).unwrap_err();
        assert_eq!(error, InvalidQueueId(-7));
        assert_eq!(error.to_string(), "queue id -7 is negative; ids of queues are 0 to 2147483647");
        assert_eq!(MessageQueue::new("t", "b", i32::MAX).unwrap().queue_id(), i32::MAX);
    }

    #[test]
    fn the_difference_of_ids_overflows_as_in_java() {
        let name = |queue_id| Name { topic: "t", broker_name: "b", queue_id };
        assert_eq!(name(i32::MAX).compare_to(&name(-1)), i32::MIN);
        assert_eq!(name(i32::MIN).compare_to(&name(1)), i32::MAX);
    }
}
