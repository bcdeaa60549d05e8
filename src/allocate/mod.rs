//! Which client of a group consumes which queues of a topic.
//!
//! Nobody coordinates: each client knows the queues of the topic and the clients of the group,
//! sorts both, and takes its own share, so all of them must compute the same. Six strategies are
//! upstream's and give exactly what its Java classes give (A2); two more are not ([`Strategy`]).
//!
//! # Use
//!
//! ```
//! use lanekeeper::allocate::{Allocation, Members, NoShare, Route, Strategy};
//! use lanekeeper::message_queue::MessageQueue;
//!
//! let queue = |id| MessageQueue::new("orders", "broker-a", id);
//! let route = Route::new((0..7).map(queue).collect::<Result<Vec<_>, _>>()?)?;
//! let members = Members::new(["client-b", "client-a", "client-c"])?;
//! let allocation = Allocation::new(Strategy::Average, route.into(), members.into())?;
//! assert_eq!(allocation.share("client-b")?.indexes(), [3, 4]);
//! assert_eq!(allocation.share("client-d").err(), Some(NoShare::NotMember));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! A [`Route`] is a topic's queues, sorted, without doubles; [`Members`] are a group's client ids,
//! sorted. Both are immutable, and so is an [`Allocation`] of one to the other, which is prepared
//! when it is made (hash keys sorted, ring built, strategies that need the whole group worked out)
//! so that asking it for a share reads only. An [`Allocator`] holds the current one: threads ask
//! it while others replace strategy, route or members, each as a whole.
//!
//! | strategy | making it | after a change of members | one share | whole group |
//! |---|---|---|---|---|
//! | averages, machine room | m, + n for a room | the same | its length | n |
//! | consistent hash | n log n, + R log R | R log R | points · log n | n log n |
//! | sticky, bounded load | n log n | the same | its length | n |
//!
//! (n queues, m clients, R = m · virtual nodes.) The hash keys of a route are computed once,
//! whatever groups it is used for. Memory: 4 bytes a queue beside its name, 12 more for the keys,
//! 16 a point of a ring.
//!
//! # When not to use it
//!
//! Where a coordinator hands out queues one by one, or shares must follow load: a share follows
//! from the two lists and nothing else. And where client ids are not unique: see A4.
//!
//! # Threads and progress
//!
//! Everything is immutable but [`Allocator`]: reads of it are wait-free, replacing is lock-free.
//! Nobody waits for anybody: two threads that make the first use of a route's hash keys at the same
//! time both compute them, and one copy is kept.
//!
//! Sources: apache/rocketmq at commit 8fc57f1468d1, `client/src/main/java/org/apache/rocketmq/
//! client/consumer/rebalance/` and `common/src/main/java/org/apache/rocketmq/common/
//! consistenthash/`; bounded load: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with
//! Bounded Loads", 2016.

#![forbid(unsafe_code)]

mod allocation;
mod allocator;
mod fixed;
mod members;
mod pool;
mod ring;
mod rooms;
mod route;
mod strategy;

use std::fmt;

pub use allocation::{Allocation, Share, Shares};
pub use allocator::Allocator;
pub use members::Members;
pub use ring::{Ring, RingHash};
pub use route::Route;
pub use strategy::{BoundedLoad, ConsistentHash, Nearby, Owners, Strategy};

/// Most queues of a route.
pub const QUEUES_MAX: usize = 1 << 24;
/// Most entries of a list of members.
pub const MEMBERS_MAX: usize = 1 << 20;
/// Most points of a ring: clients times virtual nodes.
pub const RING_POINTS_MAX: usize = 1 << 26;

/// What a route, a list of members or a strategy was refused for when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetupError {
    /// A list is longer than is supported.
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// The strategy of this name cannot be used within a machine room.
    Inner(&'static str),
    /// Bounded load without virtual nodes: nobody would own anything.
    NoVirtualNodes,
    /// A bound of the load below 100 percent: not all queues would find a place.
    LoadPercent(u32),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { what, found, most } => {
                write!(f, "{found} {what}, of which {most} are supported at most")
            }
            Self::Inner(name) => write!(
                f,
                "{name} cannot be the strategy within a machine room; take AVG, AVG_BY_CIRCLE or \
                 CONSISTENT_HASH"
            ),
            Self::NoVirtualNodes => f.write_str("bounded load needs at least 1 virtual node"),
            Self::LoadPercent(percent) => {
                write!(
                    f,
                    "load_percent is {percent}, must be at least 100 (percent of the average)"
                )
            }
        }
    }
}
impl std::error::Error for SetupError {}

/// Why there is no share. It is not an empty share: a client that is told this changes nothing,
/// except that one that is not a member gives up what it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NoShare {
    /// The client id asked for is empty.
    EmptyClientId,
    /// The route has no queue: it is not known yet, or the topic is gone.
    NoQueues,
    /// There are no members: who they are is not known.
    NoClients,
    /// The client is not in the list of members (A4).
    NotMember,
    /// The client id is in the list more than once (A4).
    DuplicateClient,
    /// MACHINE_ROOM_NEARBY: the room of this queue or client is not known.
    NoRoom(String),
}

impl fmt::Display for NoShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyClientId => f.write_str("the client id is empty"),
            Self::NoQueues => f.write_str("the route has no queue"),
            Self::NoClients => f.write_str("the list of members is empty"),
            Self::NotMember => f.write_str("the client is not in the list of members"),
            Self::DuplicateClient => {
                f.write_str("several clients of the group have this id; give each an id of its own")
            }
            Self::NoRoom(of) => write!(f, "the machine room of {of} is not known"),
        }
    }
}
impl std::error::Error for NoShare {}

/// Checks a length and gives it the width of indexes.
fn bounded(what: &'static str, found: usize, most: usize) -> Result<u32, SetupError> {
    if found > most {
        return Err(SetupError::TooMany { what, found, most });
    }
    Ok(u32::try_from(found).expect("the limits are below 2^32"))
}

/// An index in a list that was checked by [`bounded`].
fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("indexes are below the limits, which are below 2^32")
}
