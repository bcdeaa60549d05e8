//! One route divided among one list of members by one strategy.

use super::pool::{Pool, Prepared, Subset};
use super::ring::{Ring, RingKeys};
use super::strategy::{ConsistentHash, NOBODY, Nearby};
use super::{Members, NoShare, Owners, RING_POINTS_MAX, Route, SetupError, Strategy};
use super::{bounded, narrow};
use crate::message_queue::MessageQueue;
use crate::sync::blocking::Arc;

/// An immutable division of a route among members, prepared so that a share is read off it.
#[derive(Debug)]
pub struct Allocation {
    strategy: Strategy,
    route: Arc<Route>,
    members: Arc<Members>,
    /// Keys and ring, if the strategy needs them, for the next allocation to reuse.
    keys: Option<Arc<RingKeys>>,
    ring: Option<Arc<Ring>>,
    divided: Divided,
}

#[derive(Debug)]
enum Divided {
    /// Route and members, if they matter, have something in them.
    Nothing(NoShare),
    Whole(Pool),
    ByRoom(ByRoom),
}

/// A pool for each room that has queues.
#[derive(Debug)]
struct ByRoom {
    /// The pool of the room of each client, by the number of the room among those of the members.
    own: Vec<Option<usize>>,
    /// Those of rooms without clients, in the order of their names.
    unmanned: Vec<usize>,
    pools: Vec<Pool>,
}

impl Allocation {
    /// Prepares a division. What that costs is in the table of the [module](super).
    ///
    /// # Errors
    /// [`SetupError::TooMany`] if a ring had more than [`RING_POINTS_MAX`] points.
    pub fn new(
        strategy: Strategy,
        route: Arc<Route>,
        members: Arc<Members>,
    ) -> Result<Self, SetupError> {
        Self::build(strategy, route, members, None)
    }

    /// The same with another strategy.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_strategy(&self, strategy: Strategy) -> Result<Self, SetupError> {
        Self::build(strategy, Arc::clone(&self.route), Arc::clone(&self.members), Some(self))
    }

    /// The same with another route; a ring is kept.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_route(&self, route: Arc<Route>) -> Result<Self, SetupError> {
        Self::build(self.strategy.clone(), route, Arc::clone(&self.members), Some(self))
    }

    /// The same with other members; hash keys of the route are kept.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_members(&self, members: Arc<Members>) -> Result<Self, SetupError> {
        Self::build(self.strategy.clone(), Arc::clone(&self.route), members, Some(self))
    }

    fn build(
        strategy: Strategy,
        route: Arc<Route>,
        members: Arc<Members>,
        before: Option<&Self>,
    ) -> Result<Self, SetupError> {
        let (mut keys, mut ring) = (None, None);
        if let Some(hashed) = strategy.ring() {
            let points = members.len().saturating_mul(hashed.virtual_nodes as usize);
            bounded("points on the ring", points, RING_POINTS_MAX)?;
            let before = before.and_then(|before| Some((before, before.strategy.ring()?)));
            keys = before
                .filter(|(b, other)| Arc::ptr_eq(&b.route, &route) && hashed.hash.is(&other.hash))
                .and_then(|(b, _)| b.keys.clone())
                .or_else(|| Some(route.keys(&hashed.hash)));
            ring = before
                .filter(|(b, other)| Arc::ptr_eq(&b.members, &members) && hashed.is(other))
                .and_then(|(b, _)| b.ring.clone())
                .or_else(|| Some(ring_of(&members, &Subset::All(members.len()), hashed)));
        }
        let owners = owners_of(&strategy, &route, &members);
        let prepared = Prepared { keys: keys.clone(), ring: ring.clone(), owners };
        let divided = divide(&strategy, &route, &members, prepared);
        Ok(Self { strategy, route, members, keys, ring, divided })
    }

    /// What divides.
    #[must_use]
    pub fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    /// What is divided.
    #[must_use]
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// Among whom.
    #[must_use]
    pub fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// The share of one client. Reads only; allocates the answer.
    ///
    /// # Errors
    /// Why there is none. `CONFIG` gives its list to whoever asks, as upstream.
    pub fn share(&self, client: &str) -> Result<Share, NoShare> {
        if let Strategy::Config(list) = &self.strategy {
            let indexes = (0..list.len()).map(narrow).collect();
            return Ok(Share { queues: Arc::clone(list), indexes });
        }
        if client.is_empty() {
            return Err(NoShare::EmptyClientId);
        }
        if let Divided::Nothing(why @ (NoShare::NoQueues | NoShare::NoClients)) = &self.divided {
            return Err(why.clone());
        }
        let position = self.members.position(client).ok_or(NoShare::NotMember)?;
        if self.members.is_duplicate(position) {
            return Err(NoShare::DuplicateClient);
        }
        let mut indexes = Vec::new();
        match &self.divided {
            Divided::Nothing(why) => return Err(why.clone()),
            Divided::Whole(pool) => pool.share(position, &mut indexes),
            Divided::ByRoom(rooms) => {
                for pool in rooms.of(&self.members, position) {
                    rooms.pools[pool].share(position, &mut indexes);
                }
            }
        }
        Ok(Share { queues: Arc::clone(self.route.shared_queues()), indexes })
    }

    /// The shares of all members in one pass.
    ///
    /// # Errors
    /// Why nobody has one.
    pub fn shares(&self) -> Result<Shares, NoShare> {
        let queues = Arc::clone(self.route.shared_queues());
        let members = Arc::clone(&self.members);
        if let Strategy::Config(list) = &self.strategy {
            let ranges = vec![(0, narrow(list.len())); members.len()];
            let indexes = (0..list.len()).map(narrow).collect();
            let queues = Arc::clone(list);
            return Ok(Shares { queues, members, ranges, indexes, of_all: true });
        }
        let (mut ranges, indexes) = match &self.divided {
            Divided::Nothing(why) => return Err(why.clone()),
            Divided::Whole(pool) => {
                let division = pool.all();
                let ranges = division.starts.windows(2).map(|pair| (pair[0], pair[1])).collect();
                (ranges, division.queues)
            }
            Divided::ByRoom(rooms) => rooms.all(&members),
        };
        for (position, range) in ranges.iter_mut().enumerate() {
            if members.is_duplicate(position) {
                *range = (0, 0);
            }
        }
        Ok(Shares { queues, members, ranges, indexes, of_all: false })
    }
}

fn ring_of(members: &Members, clients: &Subset, hashed: &ConsistentHash) -> Arc<Ring> {
    let ids = clients.iter().map(|client| Arc::clone(&members.clients()[client as usize]));
    Arc::new(Ring::new(ids, hashed.virtual_nodes, &hashed.hash))
}

/// The previous owners, if the strategy goes by them.
fn owners_of(strategy: &Strategy, route: &Route, members: &Members) -> Option<Vec<u32>> {
    match strategy {
        Strategy::Sticky(owners) => {
            let number = |client: &str| members.position(client).map(narrow);
            Some(owners.by_route(route.shared_queues(), number))
        }
        Strategy::MachineRoomNearby(Nearby(inner)) => owners_of(inner, route, members),
        _ => None,
    }
}

fn divide(strategy: &Strategy, route: &Route, members: &Members, prepared: Prepared) -> Divided {
    if route.is_empty() {
        return Divided::Nothing(NoShare::NoQueues);
    }
    if members.is_empty() {
        return Divided::Nothing(NoShare::NoClients);
    }
    let Strategy::MachineRoomNearby(Nearby(inner)) = strategy else {
        let (queues, clients) = (Subset::All(route.len()), Subset::All(members.len()));
        return Divided::Whole(Pool::new(strategy, route, queues, clients, &prepared));
    };
    match ByRoom::new(inner, route, members, prepared) {
        Ok(rooms) => Divided::ByRoom(rooms),
        Err(why) => Divided::Nothing(why),
    }
}

impl ByRoom {
    fn new(
        inner: &Strategy,
        route: &Route,
        members: &Members,
        mut prepared: Prepared,
    ) -> Result<Self, NoShare> {
        let queue = |at: usize| route.queues()[at].to_string();
        let of_queues = match route.rooms() {
            None => return Err(NoShare::NoRoom(queue(0))),
            Some(rooms) => match rooms.first_unknown() {
                Some(at) => return Err(NoShare::NoRoom(queue(at))),
                None => rooms,
            },
        };
        let client = |at: usize| format!("the client {}", members.clients()[at]);
        let of_clients = match members.rooms() {
            None => return Err(NoShare::NoRoom(client(0))),
            Some(rooms) => match rooms.first_unknown() {
                Some(at) => return Err(NoShare::NoRoom(client(at))),
                None => rooms,
            },
        };
        let mut clients = of_clients.items();
        let whole_ring = prepared.ring.clone();
        let (mut own, mut unmanned) = (vec![None; clients.len()], Vec::new());
        let room = |queue: u32| of_queues.of(queue as usize).expect("none is unknown") as usize;
        let room_count = of_queues.names().len();
        let keys = prepared.keys.take().map(|keys| keys.split(room_count, room));
        let mut keys = keys.into_iter().flatten();
        let mut pools = Vec::with_capacity(room_count);
        for (name, queues) in of_queues.names().iter().zip(of_queues.items()) {
            let clients = match of_clients.number(name) {
                Some(room) => {
                    own[room as usize] = Some(pools.len());
                    Subset::Some(std::mem::take(&mut clients[room as usize]))
                }
                None => {
                    unmanned.push(pools.len());
                    Subset::All(members.len())
                }
            };
            prepared.keys = keys.next().map(Arc::new);
            prepared.ring = match (&clients, inner.ring()) {
                (Subset::Some(_), Some(hashed)) => Some(ring_of(members, &clients, hashed)),
                _ => whole_ring.clone(),
            };
            pools.push(Pool::new(inner, route, Subset::Some(queues), clients, &prepared));
        }
        Ok(Self { own, unmanned, pools })
    }

    /// The pools that the client at `position` has a part in: of its own room, then the others.
    fn of(&self, members: &Members, position: usize) -> impl Iterator<Item = usize> {
        let room = members.rooms().and_then(|rooms| rooms.of(position));
        let own = room.and_then(|room| self.own[room as usize]);
        own.into_iter().chain(self.unmanned.iter().copied())
    }

    fn all(&self, members: &Members) -> (Vec<(u32, u32)>, Vec<u32>) {
        let divisions: Vec<_> = self.pools.iter().map(Pool::all).collect();
        let (mut ranges, mut indexes) = (Vec::with_capacity(members.len()), Vec::new());
        for position in 0..members.len() {
            let begin = narrow(indexes.len());
            for pool in self.of(members, position) {
                if let Some(client) = self.pools[pool].clients().position(position) {
                    indexes.extend_from_slice(divisions[pool].share(client));
                }
            }
            ranges.push((begin, narrow(indexes.len())));
        }
        (ranges, indexes)
    }
}

/// The queues of one client, in the order in which upstream lists them.
#[derive(Clone, Debug)]
pub struct Share {
    queues: Arc<[MessageQueue]>,
    indexes: Vec<u32>,
}

impl Share {
    /// Their indexes in the route (for `CONFIG`: in its list).
    #[must_use]
    pub fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// The queues.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &MessageQueue> {
        self.indexes.iter().map(|&index| &self.queues[index as usize])
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indexes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }
}

/// The shares of all members.
#[derive(Clone, Debug)]
pub struct Shares {
    queues: Arc<[MessageQueue]>,
    members: Arc<Members>,
    ranges: Vec<(u32, u32)>,
    indexes: Vec<u32>,
    /// `CONFIG` does not look at the members.
    of_all: bool,
}

impl Shares {
    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is none (only with `CONFIG`).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The id of the member at `position`.
    ///
    /// # Panics
    /// If there is no such position; so do the other two.
    #[must_use]
    pub fn client(&self, position: usize) -> &str {
        &self.members.clients()[position]
    }

    /// The indexes in the route of the queues of the member at `position`, as in [`Share`].
    ///
    /// # Errors
    /// [`NoShare::DuplicateClient`].
    pub fn indexes(&self, position: usize) -> Result<&[u32], NoShare> {
        if !self.of_all && self.members.is_duplicate(position) {
            return Err(NoShare::DuplicateClient);
        }
        let (begin, end) = self.ranges[position];
        Ok(&self.indexes[begin as usize..end as usize])
    }

    /// The queues themselves.
    ///
    /// # Errors
    /// [`NoShare::DuplicateClient`].
    pub fn queues(
        &self,
        position: usize,
    ) -> Result<impl ExactSizeIterator<Item = &MessageQueue>, NoShare> {
        let indexes = self.indexes(position)?;
        Ok(indexes.iter().map(|&index| &self.queues[index as usize]))
    }

    /// Who has what, as the previous owners for the next [`Strategy::Sticky`].
    #[must_use]
    pub fn owners(&self) -> Owners {
        if self.of_all {
            let pairs = self.queues.iter().flat_map(|queue| {
                let client = self.members.clients().first()?;
                Some((queue.clone(), Arc::clone(client)))
            });
            return Owners::new(pairs);
        }
        let mut owners = vec![NOBODY; self.queues.len()];
        for (position, &(begin, end)) in self.ranges.iter().enumerate() {
            for &index in &self.indexes[begin as usize..end as usize] {
                owners[index as usize] = narrow(position);
            }
        }
        Owners::of(Arc::clone(&self.queues), owners, self.members.clients().to_vec())
    }
}
