//! The broker's side.

use std::fmt;

use crate::intern::{Id, Interner};
use crate::lockfree::lease_cell::{Ask, Found, Holding, LeaseCell, OWNERS_MAX, Seen, fits};
use crate::lockfree::pages::Pages;
use crate::sync::{Arc, mutated};
use crate::types::Refusal;

/// The leases of one group, by queue id. Used by one group after another.
type Group = Pages<LeaseCell>;

/// At most one client for each (group, queue), for one validity period at a time: the counterpart
/// of `broker/.../client/rebalance/RebalanceLockManager.java` of apache/rocketmq at commit
/// 8fc57f1468d1, with a fencing token.
///
/// # Guarantees
/// - `acquire`, `release` and the sweep of one lease are one step each, decided on owner and time
///   together: in every interleaving at most one client is told that a lease is its own (L2).
///   Batches are one step for each queue. `all_expired`, `each` and the counts are weak looks.
/// - A lease expires when `now` exceeds the time of its last renewal by more than 60,000 ms. A
///   `now` below that time counts as age 0, and is recorded by a renewal (L5).
/// - Tokens of one (group, queue) ascend; each taking by another client, or of a lease that was
///   free, gives a higher one, a renewal the same one. They begin above `token_first`: a broker
///   that starts anew passes a number above all it gave out before.
/// - A lease held has counted references to its group, queue and client, so their ids stay good.
///
/// Threads: any, all at once. Progress: lock-free; a renewal is one exchange. Allocates: for new
/// names, and when a group has leases on more queues than ever before. Memory: 32 bytes for each
/// queue id up to the highest a group has leases of, of which the system provides the parts that
/// were touched, for as many groups as were in use at once.
pub struct LeaseTable<Q: Ord + Clone + Send + Sync + 'static> {
    queues: Arc<Interner<Q>>,
    names: Interner<String>,
    clients: Interner<String>,
    groups: Pages<Group>,
    token_first: u64,
}

/// A lease that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Fencing token: refuse what comes with a lower one.
    pub token: u64,
    /// It was this client's already.
    pub renewed: bool,
}

/// Why a lease was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseRefusal {
    /// Another client has it.
    Held,
    /// The group, queue or client id is not live.
    Stale,
    /// As many clients hold leases, or ids are in use, as can be told apart.
    Limit,
    /// The time is not within 2^42 ms of 0.
    Time {
        /// The time given.
        now_ms: i64,
    },
}

impl From<Refusal> for LeaseRefusal {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::Limit { Self::Limit } else { Self::Stale }
    }
}

impl fmt::Display for LeaseRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("another client holds the lease"),
            Self::Stale => f.write_str("the group, queue or client id is no longer in use"),
            Self::Limit => f.write_str("no more ids; release those of clients that are gone"),
            Self::Time { now_ms } => {
                write!(f, "the time is {now_ms} ms; it must be within 2^42 ms of 0")
            }
        }
    }
}
impl std::error::Error for LeaseRefusal {}

/// One client in one group, both pinned: what it renews costs one look at the lease and one
/// exchange. Dropping it unpins them; the leases stay.
pub struct Member<'t, Q: Ord + Clone + Send + Sync + 'static> {
    table: &'t LeaseTable<Q>,
    group: Id,
    client: Id,
    owner: u16,
    leases: &'t Group,
}

/// Who has a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The queue.
    pub queue: Id,
    /// The client.
    pub client: Id,
    /// Time of the last renewal, in ms.
    pub last_ms: i64,
    /// Fencing token.
    pub token: u64,
}

/// Number of a client in a lease's word: 0 is nobody.
#[inline]
fn owner_number(client: Id) -> Option<u16> {
    u16::try_from(client.slot() + 1).ok()
}

impl<Q: Ord + Clone + Send + Sync + 'static> LeaseTable<Q> {
    /// A table for queues of this interner; tokens begin above `token_first`.
    #[must_use]
    pub fn new(queues: Arc<Interner<Q>>, token_first: u64) -> Self {
        Self {
            queues,
            names: Interner::new(),
            clients: Interner::with_limit(OWNERS_MAX),
            groups: Pages::new(),
            token_first,
        }
    }

    /// The id of a group, with one more reference.
    pub fn group(&self, name: &str) -> Result<Id, LeaseRefusal> {
        Ok(self.names.intern(&name.to_owned())?)
    }

    /// The id of a client, with one more reference: keep it while the client is connected. `Limit`:
    /// 65,535 clients are connected or hold leases.
    pub fn client(&self, name: &str) -> Result<Id, LeaseRefusal> {
        Ok(self.clients.intern(&name.to_owned())?)
    }

    /// Gives back a reference of [`group`](Self::group).
    pub fn release_group(&self, group: Id) -> Result<(), LeaseRefusal> {
        Ok(self.names.release(group).map(drop)?)
    }

    /// Gives back a reference of [`client`](Self::client). Leases it holds stay, and keep its id.
    pub fn release_client(&self, client: Id) -> Result<(), LeaseRefusal> {
        Ok(self.clients.release(client).map(drop)?)
    }

    /// The interner whose ids this table takes.
    pub fn queues(&self) -> &Arc<Interner<Q>> {
        &self.queues
    }

    /// The name of a client.
    pub fn client_name(&self, client: Id) -> Result<String, LeaseRefusal> {
        Ok(self.clients.key(client)?)
    }

    /// Names in use: groups and clients.
    pub fn name_counts(&self) -> (usize, usize) {
        (self.names.count(), self.clients.count())
    }

    /// Takes or renews a lease: succeeds if it is free, the client's own, or expired (L1).
    #[inline]
    pub fn acquire(
        &self,
        group: Id,
        queue: Id,
        client: Id,
        now_ms: i64,
    ) -> Result<Lease, LeaseRefusal> {
        if !fits(now_ms) {
            return Err(LeaseRefusal::Time { now_ms });
        }
        let owner = owner_number(client).ok_or(LeaseRefusal::Stale)?;
        let ask = Ask { queue: queue.to_bits(), owner, now_ms };
        if self.names.is_live(group)
            && self.clients.is_live(client)
            && let Some(cell) =
                self.groups.get(group.slot()).and_then(|group| group.get(queue.slot()))
        {
            match cell.ask(&ask) {
                Found::Renewed { token } => return Ok(self.lease(token, true)),
                Found::Held => return Err(LeaseRefusal::Held),
                Found::OtherQueue => return Err(LeaseRefusal::Stale),
                Found::Free(_) | Found::Expired(_) => {}
            }
        }
        self.take(group, client, queue, &ask)
    }

    fn lease(&self, token: u64, renewed: bool) -> Lease {
        Lease { token: token + self.token_first, renewed }
    }

    /// Pins a group and a client, for a host that serves many requests of the client.
    pub fn member(&self, group: Id, client: Id) -> Result<Member<'_, Q>, LeaseRefusal> {
        let owner = owner_number(client).ok_or(LeaseRefusal::Stale)?;
        self.names.add_reference(group)?;
        let pinned = self.clients.add_reference(client).map_err(LeaseRefusal::from);
        let leases = self.groups.get_or_make(group.slot()).ok_or(LeaseRefusal::Limit);
        match (pinned, leases) {
            (Ok(()), Ok(leases)) => Ok(Member { table: self, group, client, owner, leases }),
            (pinned, leases) => {
                let _ = self.names.release(group);
                if pinned.is_ok() {
                    let _ = self.clients.release(client);
                }
                Err(pinned.err().or(leases.err()).unwrap_or(LeaseRefusal::Stale))
            }
        }
    }

    /// Pins the ids, then takes.
    #[cold]
    fn take(&self, group: Id, client: Id, queue: Id, ask: &Ask) -> Result<Lease, LeaseRefusal> {
        self.names.add_reference(group)?;
        if let Err(refusal) = self.queues.add_reference(queue) {
            let _ = self.names.release(group);
            return Err(refusal.into());
        }
        if let Err(refusal) = self.clients.add_reference(client) {
            let _ = self.queues.release(queue);
            let _ = self.names.release(group);
            return Err(refusal.into());
        }
        let answer = self.take_pinned(group, queue, ask);
        if !matches!(answer, Ok(Lease { renewed: false, .. })) {
            self.unpin(group, queue, ask.owner);
        }
        answer
    }

    /// Takes with references to all three ids; they are the cell's if the answer is a lease that
    /// was not renewed.
    fn take_pinned(&self, group: Id, queue: Id, ask: &Ask) -> Result<Lease, LeaseRefusal> {
        let place = self.groups.get_or_make(group.slot());
        let cell =
            place.and_then(|group| group.get_or_make(queue.slot())).ok_or(LeaseRefusal::Limit)?;
        loop {
            let seen = match cell.ask(ask) {
                Found::Renewed { token } => return Ok(self.lease(token, true)),
                Found::Held => return Err(LeaseRefusal::Held),
                Found::OtherQueue => return Err(LeaseRefusal::Stale),
                Found::Free(seen) | Found::Expired(seen) => seen,
            };
            if mutated("lease_owner_early") && seen.owner() != 0 {
                self.unpin(group, queue, seen.owner());
            }
            if let Some(token) = cell.take(seen, ask) {
                self.replaced(group, queue, seen);
                return Ok(self.lease(token, false));
            }
        }
    }

    /// The references that the cell had before it was taken.
    fn replaced(&self, group: Id, queue: Id, seen: Seen) {
        if seen.owner() != 0 && !mutated("lease_owner_early") {
            self.unpin(group, queue, seen.owner());
        }
    }

    /// Drops one reference each. The owner's number names it as long as one is held.
    fn unpin(&self, group: Id, queue: Id, owner: u16) {
        if let Some(client) = self.clients.id_in(usize::from(owner) - 1) {
            let _ = self.clients.release(client);
        }
        let _ = self.queues.release(queue);
        let _ = self.names.release(group);
    }

    /// Acquires each of `queues`, in their order; `each` learns the answer for each position. Each
    /// is one step, the batch is not (L3). Answers how many were given.
    pub fn acquire_batch(
        &self,
        group: Id,
        queues: &[Id],
        client: Id,
        now_ms: i64,
        mut each: impl FnMut(usize, Result<Lease, LeaseRefusal>),
    ) -> usize {
        let mut given = 0;
        for (index, &queue) in queues.iter().enumerate() {
            let answer = self.acquire(group, queue, client, now_ms);
            given += usize::from(answer.is_ok());
            each(index, answer);
        }
        given
    }

    /// Gives a lease back, expired or not; answers whether it was this client's. What another
    /// holds is not changed (L3).
    pub fn release(&self, group: Id, queue: Id, client: Id) -> Result<bool, LeaseRefusal> {
        let owner = owner_number(client).ok_or(LeaseRefusal::Stale)?;
        if !self.names.is_live(group) || !self.clients.is_live(client) {
            return Err(LeaseRefusal::Stale);
        }
        let cell = self.groups.get(group.slot()).and_then(|group| group.get(queue.slot()));
        let released = cell.and_then(|cell| cell.release(queue.to_bits(), owner)).is_some();
        if released {
            self.unpin(group, queue, owner);
        } else if !self.queues.is_live(queue) {
            return Err(LeaseRefusal::Stale);
        }
        Ok(released)
    }

    /// Gives back each of `queues`; answers how many were this client's.
    pub fn release_batch(
        &self,
        group: Id,
        queues: &[Id],
        client: Id,
    ) -> Result<usize, LeaseRefusal> {
        let mut released = 0;
        for &queue in queues {
            match self.release(group, queue, client) {
                Ok(own) => released += usize::from(own),
                // The queue's id alone does not spoil the others.
                Err(_) if self.names.is_live(group) && self.clients.is_live(client) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(released)
    }

    /// Whether no lease of the group is valid; also if it has none. A weak look, one lease at a
    /// time. `Stale`: the group's id.
    pub fn all_expired(&self, group: Id, now_ms: i64) -> Result<bool, LeaseRefusal> {
        let mut expired = true;
        self.each_holding(group, |holding| expired &= holding.is_expired(now_ms))?;
        Ok(expired)
    }

    /// Frees every lease that has expired; answers how many. One step for each lease: one that is
    /// renewed or taken meanwhile stays. Optional: an expired lease is taken over all the same.
    pub fn sweep(&self, now_ms: i64) -> usize {
        let mut freed = 0;
        self.groups.each(|slot, cells| {
            cells.each(|_, cell| {
                let Some(holding) = cell.sweep(now_ms) else { return };
                // The reference that was the lease's is ours now, so the slot has its group still.
                if let Some(group) = self.names.id_in(slot) {
                    self.unpin(group, Id::from_bits(holding.queue), holding.owner);
                }
                freed += 1;
            });
        });
        freed
    }

    /// Who has a lease, expired or not; `None` if it is free or an id is stale.
    pub fn holder(&self, group: Id, queue: Id) -> Option<Holder> {
        if !self.names.is_live(group) {
            return None;
        }
        let holding = self.groups.get(group.slot())?.get(queue.slot())?.holding()?;
        self.shown(&holding).filter(|holder| holder.queue == queue)
    }

    /// Every lease of a group, expired or not, by ascending place of its queue: a weak look.
    pub fn each(&self, group: Id, mut look: impl FnMut(Holder)) -> Result<(), LeaseRefusal> {
        self.each_holding(group, |holding| {
            if let Some(holder) = self.shown(holding) {
                look(holder);
            }
        })
    }

    fn each_holding(&self, group: Id, mut look: impl FnMut(&Holding)) -> Result<(), LeaseRefusal> {
        if !self.names.is_live(group) {
            return Err(LeaseRefusal::Stale);
        }
        if let Some(group) = self.groups.get(group.slot()) {
            group.each(|_, cell| {
                if let Some(holding) = cell.holding() {
                    look(&holding);
                }
            });
        }
        Ok(())
    }

    /// `None` if the owner gave it up meanwhile.
    fn shown(&self, holding: &Holding) -> Option<Holder> {
        Some(Holder {
            queue: Id::from_bits(holding.queue),
            client: self.clients.id_in(usize::from(holding.owner) - 1)?,
            last_ms: holding.last_ms,
            token: holding.token + self.token_first,
        })
    }
}

/// The leases still held give their references back: nothing names those queues any more.
impl<Q: Ord + Clone + Send + Sync + 'static> Drop for LeaseTable<Q> {
    fn drop(&mut self) {
        self.groups.each(|_, group| {
            group.each(|_, cell| {
                if let Some(holding) = cell.holding() {
                    let _ = self.queues.release(Id::from_bits(holding.queue));
                }
            });
        });
    }
}

impl<Q: Ord + Clone + Send + Sync + 'static> Member<'_, Q> {
    /// As [`LeaseTable::acquire`].
    #[inline]
    pub fn acquire(&self, queue: Id, now_ms: i64) -> Result<Lease, LeaseRefusal> {
        let ask = Ask { queue: queue.to_bits(), owner: self.owner, now_ms };
        if let Some(cell) = self.leases.get(queue.slot())
            && fits(now_ms)
            && let Found::Renewed { token } = cell.ask(&ask)
        {
            return Ok(self.table.lease(token, true));
        }
        self.table.acquire(self.group, queue, self.client, now_ms)
    }

    /// As [`LeaseTable::release`].
    pub fn release(&self, queue: Id) -> Result<bool, LeaseRefusal> {
        self.table.release(self.group, queue, self.client)
    }
}

impl<Q: Ord + Clone + Send + Sync + 'static> Drop for Member<'_, Q> {
    fn drop(&mut self) {
        let _ = self.table.clients.release(self.client);
        let _ = self.table.names.release(self.group);
    }
}
