//! The strategies.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use super::{RingHash, SetupError, narrow};
use crate::message_queue::MessageQueue;
use crate::sync::blocking::Arc;

/// A way to divide queues among clients. Cheap to clone.
///
/// | strategy | balanced | who moves when a client joins or leaves |
/// |---|---|---|
/// | `Average` | within one | about a third of all queues; shares stay runs of neighbours |
/// | `AverageByCircle` | within one | nearly all |
/// | `ConsistentHash` | no | about one share |
/// | `BoundedLoad` | at most its percentage of the average | somewhat more than one share |
/// | `Sticky` | within one | exactly one share, the fewest that balance allows |
/// | `MachineRoom`, `MachineRoomNearby` | as their inner one, per room | as their inner one |
/// | `Config` | - | - |
///
/// [`allocation`](crate::docs::allocation) has the numbers.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// `AVG`: runs of neighbours, the first ones longer by one.
    Average,
    /// `AVG_BY_CIRCLE`: dealt out like cards.
    AverageByCircle,
    /// `CONSISTENT_HASH`.
    ConsistentHash(ConsistentHash),
    /// `CONFIG`: this list, whoever asks. It looks at neither route nor members, as upstream.
    Config(Arc<[MessageQueue]>),
    /// `MACHINE_ROOM`: only queues whose broker name is `room@name` with one of these rooms.
    MachineRoom(Arc<BTreeSet<String>>),
    /// `MACHINE_ROOM_NEARBY`: the queues of a room go to its clients, those of rooms without any
    /// client to all. Needs [`Route::with_rooms`](super::Route::with_rooms) and
    /// [`Members::with_rooms`](super::Members::with_rooms).
    MachineRoomNearby(Nearby),
    /// Not upstream's: everybody keeps what they had as far as balance allows. All members must be
    /// given the same previous owners: from an allocator at the broker, or a table of leases.
    /// Without any it is `AVG`.
    Sticky(Arc<Owners>),
    /// Not upstream's: consistent hash in which nobody gets much more than the average.
    BoundedLoad(BoundedLoad),
}

impl Strategy {
    /// The name that upstream's class answers. All clients of a group must have the same.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::MachineRoomNearby(Nearby(inner)) => match **inner {
                Self::Average => "MACHINE_ROOM_NEARBY-AVG",
                Self::AverageByCircle => "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE",
                Self::ConsistentHash(_) => "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
                Self::MachineRoom(_) => "MACHINE_ROOM_NEARBY-MACHINE_ROOM",
                Self::Sticky(_) => "MACHINE_ROOM_NEARBY-STICKY",
                _ => "MACHINE_ROOM_NEARBY-BOUNDED_LOAD",
            },
            Self::Average => "AVG",
            Self::AverageByCircle => "AVG_BY_CIRCLE",
            Self::ConsistentHash(_) => "CONSISTENT_HASH",
            Self::Config(_) => "CONFIG",
            Self::MachineRoom(_) => "MACHINE_ROOM",
            Self::Sticky(_) => "STICKY",
            Self::BoundedLoad(_) => "BOUNDED_LOAD",
        }
    }

    /// [`Strategy::MachineRoom`] of these rooms.
    #[must_use]
    pub fn machine_room<R: Into<String>>(rooms: impl IntoIterator<Item = R>) -> Self {
        Self::MachineRoom(Arc::new(rooms.into_iter().map(Into::into).collect()))
    }

    /// The ring that the strategy needs, if it does.
    pub(super) fn ring(&self) -> Option<&ConsistentHash> {
        match self {
            Self::ConsistentHash(ring) => Some(ring),
            Self::BoundedLoad(bounded) => Some(&bounded.ring),
            Self::MachineRoomNearby(Nearby(inner)) => inner.ring(),
            _ => None,
        }
    }
}

/// How many points a client has on the ring, and the hash.
#[derive(Clone, Debug)]
pub struct ConsistentHash {
    /// Points of each client. With 0 nobody owns anything, as upstream.
    pub virtual_nodes: u32,
    /// The hash.
    pub hash: RingHash,
}

impl Default for ConsistentHash {
    /// Upstream's: 10 points, MD5.
    fn default() -> Self {
        Self { virtual_nodes: 10, hash: RingHash::Md5 }
    }
}

impl ConsistentHash {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.virtual_nodes == other.virtual_nodes && self.hash.is(&other.hash)
    }
}

/// The strategy within each machine room.
#[derive(Clone, Debug)]
pub struct Nearby(pub(super) Arc<Strategy>);

impl Nearby {
    /// # Errors
    /// [`SetupError::Inner`] for `Config` and for another `MachineRoomNearby`.
    pub fn new(inner: Strategy) -> Result<Self, SetupError> {
        match inner {
            Strategy::Config(_) | Strategy::MachineRoomNearby(_) => {
                Err(SetupError::Inner(inner.name()))
            }
            _ => Ok(Self(Arc::new(inner))),
        }
    }
}

/// A ring with a bound: a client whose share has reached it passes further queues on to the next
/// point of somebody else.
#[derive(Clone, Debug)]
pub struct BoundedLoad {
    pub(super) ring: ConsistentHash,
    pub(super) load_percent: u32,
}

impl BoundedLoad {
    /// Nobody gets more than `load_percent` of the average, rounded up. 125 is a good value: the
    /// lower, the more queues move.
    ///
    /// # Errors
    /// [`SetupError::NoVirtualNodes`]; [`SetupError::LoadPercent`] below 100.
    pub fn new(ring: ConsistentHash, load_percent: u32) -> Result<Self, SetupError> {
        if ring.virtual_nodes == 0 {
            return Err(SetupError::NoVirtualNodes);
        }
        if load_percent < 100 {
            return Err(SetupError::LoadPercent(load_percent));
        }
        Ok(Self { ring, load_percent })
    }
}

/// Who had which queue before.
#[derive(Clone, Default)]
pub struct Owners {
    /// Sorted, each once.
    queues: Arc<[MessageQueue]>,
    /// For each queue an index in `clients`, or [`NOBODY`].
    owners: Vec<u32>,
    clients: Vec<Arc<str>>,
}

/// The owner of a queue that nobody had, or that nobody of the group has.
pub(super) const NOBODY: u32 = u32::MAX;

impl Owners {
    /// From pairs in any order; of several owners of one queue the last one counts.
    pub fn new<C: Into<Arc<str>>>(pairs: impl IntoIterator<Item = (MessageQueue, C)>) -> Self {
        let mut pairs: Vec<(MessageQueue, Arc<str>)> =
            pairs.into_iter().map(|(queue, client)| (queue, client.into())).collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = Arc::clone(&later.1);
            }
            same
        });
        let mut clients: Vec<Arc<str>> = Vec::new();
        let mut numbers: HashMap<Arc<str>, u32> = HashMap::new();
        let mut queues = Vec::with_capacity(pairs.len());
        let mut owners = Vec::with_capacity(pairs.len());
        for (queue, client) in pairs {
            let number = *numbers.entry(client).or_insert_with_key(|client| {
                clients.push(Arc::clone(client));
                narrow(clients.len() - 1)
            });
            queues.push(queue);
            owners.push(number);
        }
        Self { queues: queues.into(), owners, clients }
    }

    pub(super) fn of(
        queues: Arc<[MessageQueue]>,
        owners: Vec<u32>,
        clients: Vec<Arc<str>>,
    ) -> Self {
        Self { queues, owners, clients }
    }

    /// How many queues have an owner.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owners.iter().filter(|&&owner| owner != NOBODY).count()
    }

    /// Whether no queue has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each queue that has an owner, with it, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&MessageQueue, &str)> {
        let pairs = self.queues.iter().zip(&self.owners);
        pairs.filter(|&(_, &owner)| owner != NOBODY).map(|(queue, &owner)| {
            let client: &str = &self.clients[owner as usize];
            (queue, client)
        })
    }

    /// For each of `queues` a client of `number`'s numbering, or [`NOBODY`].
    pub(super) fn by_route(
        &self,
        queues: &Arc<[MessageQueue]>,
        number: impl Fn(&str) -> Option<u32>,
    ) -> Vec<u32> {
        let numbers: Vec<u32> =
            self.clients.iter().map(|client| number(client).unwrap_or(NOBODY)).collect();
        let owner = |at: usize| match self.owners[at] {
            NOBODY => NOBODY,
            client => numbers[client as usize],
        };
        if Arc::ptr_eq(&self.queues, queues) {
            return (0..queues.len()).map(owner).collect();
        }
        let mut at = 0;
        let owner_of = |queue: &MessageQueue| {
            while self.queues.get(at).is_some_and(|known| known < queue) {
                at += 1;
            }
            if self.queues.get(at) == Some(queue) { owner(at) } else { NOBODY }
        };
        queues.iter().map(owner_of).collect()
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owners of {} queues", self.len())
    }
}
