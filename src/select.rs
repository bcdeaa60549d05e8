//! Which queue of a topic a message goes to: the producer's half of ordering.
//!
//! Messages with one key must meet in one queue, and must do so for every producer of a mixed
//! fleet. The rule is upstream's: the remainder first, the absolute value second. The other order
//! is a known fault: `abs` of the smallest integer is negative, and so was the index
//! (apache/rocketmq#2421).
//!
//! Source: apache/rocketmq at commit 8fc57f1468d1, `client/src/main/java/org/apache/rocketmq/
//! client/producer/selector/SelectMessageQueueByHash.java`.
//!
//! Pure functions: no state, no allocation, any thread.

#![forbid(unsafe_code)]

use std::fmt;

use crate::java;

/// There is no queue to choose from: the topic has none, or its route is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoQueues;

impl fmt::Display for NoQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no queue to choose from: the topic has none, or its route is not known yet")
    }
}
impl std::error::Error for NoQueues {}

/// The index, below `queue_count`, for a key whose Java `hashCode` is `hash`.
///
/// Keys that are numbers in Java hash by [`java::long_hash`] and its siblings; strings by
/// [`by_key`].
///
/// # Errors
/// [`NoQueues`] if `queue_count` is 0.
///
/// ```
/// use lanekeeper::select::by_hash;
/// assert_eq!(by_hash(i32::MIN, 3), Ok(2));
/// assert!(by_hash(7, 0).is_err());
/// ```
pub fn by_hash(hash: i32, queue_count: u32) -> Result<u32, NoQueues> {
    if queue_count == 0 {
        return Err(NoQueues);
    }
    // 64 bits, so that counts above i32::MAX need no rule of their own; Java has no such lists.
    let remainder = i64::from(hash) % i64::from(queue_count);
    Ok(u32::try_from(remainder.unsigned_abs()).expect("a remainder is below the u32 divisor"))
}

/// [`by_hash`] of a string key.
///
/// # Errors
/// [`NoQueues`] if `queue_count` is 0.
pub fn by_key(key: &str, queue_count: u32) -> Result<u32, NoQueues> {
    by_hash(java::string_hash(key), queue_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    // apache/rocketmq#2421, #4349, #5716: a negative index from abs(MIN).
    #[test]
    fn the_smallest_hash_gives_an_index_in_range() {
        for (queue_count, index) in [(3, 2), (4, 0), (5, 3), (7, 2)] {
            assert_eq!(by_key("polygenelubricants", queue_count), Ok(index));
        }
    }

    #[test]
    fn no_queues_is_an_error() {
        assert_eq!(by_key("a", 0), Err(NoQueues));
        assert_eq!(by_hash(i32::MIN, 0), Err(NoQueues));
    }

    #[test]
    fn every_index_is_below_the_count() {
        let hashes = [i32::MIN, i32::MIN + 1, -7, -1, 0, 1, 7, i32::MAX];
        for hash in hashes {
            for queue_count in [1, 2, 3, 8, 255, i32::MAX.cast_unsigned(), 1 << 31, u32::MAX] {
                assert!(by_hash(hash, queue_count).unwrap() < queue_count);
            }
        }
        assert_eq!(by_hash(i32::MIN, u32::MAX), Ok(1 << 31));
    }
}
