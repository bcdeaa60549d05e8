//! One division of queues among clients: of everything, or of what one machine room has.

use super::fixed::{self, Division};
use super::narrow;
use super::ring::{Ring, RingKeys};
use super::route::Route;
use super::strategy::Strategy;
use crate::sync::blocking::Arc;

/// All items of a list, or some, ascending.
#[derive(Debug)]
pub(super) enum Subset {
    All(usize),
    Some(Vec<u32>),
}

impl Subset {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Some(items) => items.len(),
        }
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        match self {
            Self::All(_) => narrow(at),
            Self::Some(items) => items[at],
        }
    }

    /// Where an item stands in it.
    pub(super) fn position(&self, item: usize) -> Option<usize> {
        match self {
            Self::All(count) => (item < *count).then_some(item),
            Self::Some(items) => items.binary_search(&narrow(item)).ok(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// How the queues at the positions 0 to n - 1 are divided among the clients 0 to m - 1.
#[derive(Debug)]
enum Plan {
    /// Runs of neighbours; the first n % m clients have one more.
    Runs,
    /// Client i has i, i + m, i + 2m, ...
    Circle,
    /// Runs of n / m; of the rest client i has the i-th.
    RunsThenRest,
    /// Worked out before.
    Fixed(Division),
    Ring(Arc<RingKeys>, Arc<Ring>),
}

/// The division.
#[derive(Debug)]
pub(super) struct Pool {
    queues: Subset,
    clients: Subset,
    plan: Plan,
}

/// What a strategy that needs them is given: keys of the queues, ring of the clients, owners by
/// index of the route in the numbering of the members.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) keys: Option<Arc<RingKeys>>,
    pub(super) ring: Option<Arc<Ring>>,
    pub(super) owners: Option<Vec<u32>>,
}

impl Pool {
    /// `clients` is not empty. `prepared` has the keys of just these queues, and its ring numbers
    /// the clients by their place in `clients`.
    pub(super) fn new(
        strategy: &Strategy,
        route: &Route,
        queues: Subset,
        clients: Subset,
        prepared: &Prepared,
    ) -> Self {
        let plan = match strategy {
            Strategy::AverageByCircle => Plan::Circle,
            Strategy::MachineRoom(rooms) => {
                let eligible = |&queue: &u32| {
                    let name = route.queues()[queue as usize].broker_name();
                    room_of(name).is_some_and(|room| rooms.contains(room))
                };
                let queues = Subset::Some(queues.iter().filter(eligible).collect());
                return Self { queues, clients, plan: Plan::RunsThenRest };
            }
            Strategy::Sticky(_) => {
                let all = prepared.owners.as_ref().expect("prepared with the owners");
                let number = |client: u32| clients.position(client as usize).map(narrow);
                let owner = |queue: u32| number(all[queue as usize]).unwrap_or(u32::MAX);
                let indexes: Vec<u32> = queues.iter().collect();
                let owners = indexes.iter().map(|&queue| owner(queue)).collect();
                Plan::Fixed(fixed::sticky(&indexes, owners, clients.len()))
            }
            Strategy::ConsistentHash(_) => {
                let (keys, ring) = prepared.on_ring();
                Plan::Ring(keys, ring)
            }
            Strategy::BoundedLoad(bounded) => {
                let (keys, ring) = prepared.on_ring();
                let percent = bounded.load_percent;
                Plan::Fixed(fixed::bounded_load(&keys, &ring, clients.len(), percent))
            }
            Strategy::Average | Strategy::Config(_) | Strategy::MachineRoomNearby(_) => Plan::Runs,
        };
        Self { queues, clients, plan }
    }

    pub(super) fn clients(&self) -> &Subset {
        &self.clients
    }

    /// Adds the share of the client at `position` of the members to `share`.
    pub(super) fn share(&self, position: usize, share: &mut Vec<u32>) {
        let Some(client) = self.clients.position(position) else { return };
        let begin = share.len();
        match &self.plan {
            Plan::Fixed(division) => share.extend_from_slice(division.share(client)),
            Plan::Ring(keys, ring) => {
                ring.collect(narrow(client), keys, share);
                share[begin..].sort_unstable();
            }
            _ => self.by_position(client, |at| share.push(self.queues.get(at))),
        }
    }

    /// The share of every client, by its place in this pool.
    pub(super) fn all(&self) -> Division {
        let client_count = self.clients.len();
        let mut pairs = Vec::with_capacity(self.queues.len());
        if let Plan::Ring(keys, ring) = &self.plan {
            if !ring.is_empty() {
                ring.each(keys, |queue, point| pairs.push((queue, ring.node_of(point))));
            }
            let mut division = Division::of(&pairs, client_count);
            division.sort();
            return division;
        }
        let mut division = Division::default();
        for client in 0..client_count {
            division.starts.push(narrow(division.queues.len()));
            match &self.plan {
                Plan::Fixed(fixed) => division.queues.extend_from_slice(fixed.share(client)),
                _ => self.by_position(client, |at| division.queues.push(self.queues.get(at))),
            }
        }
        division.starts.push(narrow(division.queues.len()));
        division
    }

    /// Tells the positions of the queues that follow from the client's position and the counts.
    fn by_position(&self, client: usize, mut tell: impl FnMut(usize)) {
        let (queues, clients) = (self.queues.len(), self.clients.len());
        let (each, rest) = (queues / clients, queues % clients);
        match self.plan {
            Plan::Circle => (client..queues).step_by(clients).for_each(tell),
            Plan::RunsThenRest => {
                (client * each..(client + 1) * each).for_each(&mut tell);
                if client < rest {
                    tell(each * clients + client);
                }
            }
            _ => {
                let begin = client * each + client.min(rest);
                (begin..begin + each + usize::from(client < rest)).for_each(tell);
            }
        }
    }
}

impl Prepared {
    fn on_ring(&self) -> (Arc<RingKeys>, Arc<Ring>) {
        let keys = self.keys.as_ref().expect("prepared with the keys");
        (Arc::clone(keys), Arc::clone(self.ring.as_ref().expect("prepared with the ring")))
    }
}

/// The room in a broker name of the form `room@name`, split as Java splits: empty parts at the end
/// do not count, and there must be exactly two.
fn room_of(broker_name: &str) -> Option<&str> {
    let (room, name) = broker_name.trim_end_matches('@').split_once('@')?;
    (!name.contains('@')).then_some(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_stands_before_the_only_at() {
        let cases = [
            ("room1@a", Some("room1")),
            ("room1@a@", Some("room1")),
            ("@a", Some("")),
            ("room1@", None),
            ("room1", None),
            ("room1@a@b", None),
            ("room1@@b", None),
            ("@", None),
            ("", None),
        ];
        for (name, room) in cases {
            assert_eq!(room_of(name), room, "{name:?}");
        }
    }
}
