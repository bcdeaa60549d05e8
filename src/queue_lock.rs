//! Consumption turns of many queues (contract section 2): the counterpart of
//! `client/.../impl/consumer/MessageQueueLock.java` of apache/rocketmq at commit 8fc57f1468d1.
//!
//! Upstream hands out an object to synchronise on, one for each queue and shard it ever saw. Here
//! nobody waits: who finds a turn running is answered `Busy` and leaves a note, and the end of the
//! running turn answers `RunAgain`. And nothing is kept for queues given away.
//!
//! ```
//! use std::sync::Arc;
//! use lanekeeper::intern::Interner;
//! use lanekeeper::process_queue::{Refusal, TurnEnd};
//! use lanekeeper::queue_lock::{HandOver, QueueLockTable};
//!
//! let queues = Arc::new(Interner::<(&str, i32)>::new());
//! let table = QueueLockTable::new(Arc::clone(&queues));
//! let queue = queues.intern(&("orders", 3))?;
//! table.open(queue, None, 1)?; // generation 1 of the assignment
//!
//! let turn = table.begin(queue, None)?;
//! assert_eq!(table.begin(queue, None).err(), Some(Refusal::Busy)); // leaves a note
//! assert_eq!(turn.end(), TurnEnd::RunAgain);
//!
//! let turn = table.begin(queue, None)?;
//! assert_eq!(table.close(queue, None, 1), Ok(HandOver::AtEndOfTurn));
//! assert_eq!(turn.end(), TurnEnd::HandOver);
//! assert_eq!(table.begin(queue, None).err(), Some(Refusal::Closed));
//! # Ok::<(), Refusal>(())
//! ```
//!
//! # Guarantees
//! - At most one turn at a time for a queue, and for each shard of a queue. Beginning, ending,
//!   opening and closing are one step each; `open_count` and `held_count` are weak looks.
//! - Threads: any, all at once. Progress: lock-free, and beginning and ending a turn of a whole
//!   queue touch only that queue's cache line. Allocates: when more queues are open at once than
//!   ever before, and for each shard opened.
//! - An open lock holds a counted reference to its queue until the hand-over is told, so the id
//!   stays good while a turn runs. After that the entry is another queue's to use: the table is as
//!   large as the most queues open at once.
//!
//! # When not to use it
//! For a queue that has its `ProcessQueue`: that one has the turn built in, with the messages.

#![forbid(unsafe_code)]

use crate::intern::{Id, Interner};
use crate::lockfree::pages::Pages;
use crate::lockfree::turn_cell::TurnCell;
use crate::lockfree::turnstile::Released;
use crate::sync::Arc;
use crate::types::{Refusal, TurnEnd};

/// See the module.
pub struct QueueLockTable<K: Ord + Clone + Send + Sync + 'static> {
    queues: Arc<Interner<K>>,
    whole: Pages<TurnCell>,
    /// Queue and shard.
    shards: Interner<(Id, u32)>,
    shard_cells: Pages<TurnCell>,
}

/// Who tells that a closed queue is to be handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum HandOver {
    /// This call: no turn runs, so it is due now.
    Now,
    /// The end of the turn that runs.
    AtEndOfTurn,
}

/// Which entry of the table: a queue, or a shard of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lock {
    Whole(Id),
    Shard { queue: Id, shard: Id },
}

impl Lock {
    fn id(self) -> Id {
        match self {
            Self::Whole(id) | Self::Shard { shard: id, .. } => id,
        }
    }
}

/// A turn put down with [`Turn::suspend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockToken {
    lock: Lock,
    number: u64,
    generation: u64,
}

impl LockToken {
    /// Queue, shard (0 for the whole queue), number and generation, for hosts that keep numbers.
    #[must_use]
    pub fn to_parts(self) -> [u64; 4] {
        let (queue, shard) = match self.lock {
            Lock::Whole(queue) => (queue, 0),
            Lock::Shard { queue, shard } => (queue, shard.to_bits()),
        };
        [queue.to_bits(), shard, self.number, self.generation]
    }

    /// From [`to_parts`](Self::to_parts) of the same table.
    #[must_use]
    pub fn from_parts([queue, shard, number, generation]: [u64; 4]) -> Self {
        let queue = Id::from_bits(queue);
        let lock = match shard {
            0 => Lock::Whole(queue),
            shard => Lock::Shard { queue, shard: Id::from_bits(shard) },
        };
        Self { lock, number, generation }
    }
}

/// A running turn of one queue, or of one shard of it. Dropping it ends it, but loses the answer;
/// so a listener that panics or returns early leaves nothing locked.
#[must_use]
pub struct Turn<'t, K: Ord + Clone + Send + Sync + 'static> {
    table: &'t QueueLockTable<K>,
    cell: &'t TurnCell,
    token: LockToken,
}

impl<K: Ord + Clone + Send + Sync + 'static> QueueLockTable<K> {
    /// A table for queues of this interner.
    #[must_use]
    pub fn new(queues: Arc<Interner<K>>) -> Self {
        Self { queues, whole: Pages::new(), shards: Interner::new(), shard_cells: Pages::new() }
    }

    /// The interner whose ids this table takes.
    pub fn queues(&self) -> &Arc<Interner<K>> {
        &self.queues
    }

    /// Lets turns begin, for one assignment of the queue to this client. `Stale`: the id names no
    /// queue any more. `Busy`: it is open, or the last turn of the assignment before has not ended.
    /// `Limit`: no more ids.
    pub fn open(&self, queue: Id, shard: Option<u32>, generation: u64) -> Result<(), Refusal> {
        self.queues.add_reference(queue)?;
        let lock = match shard {
            None => Ok(Lock::Whole(queue)),
            Some(index) => {
                self.shards.intern(&(queue, index)).map(|shard| Lock::Shard { queue, shard })
            }
        };
        let opened = lock.and_then(|lock| {
            let cells = self.cells(lock);
            let cell = cells.get_or_make(lock.id().slot()).ok_or(Refusal::Limit);
            let opened = cell.and_then(|cell| cell.open(lock.id().to_bits(), generation));
            if let (Err(_), Lock::Shard { shard, .. }) = (opened, lock) {
                let _ = self.shards.release(shard);
            }
            opened
        });
        if opened.is_err() {
            let _ = self.queues.release(queue);
        }
        opened
    }

    /// Begins a turn. `Busy`: one is running, and its end will answer `RunAgain`. `Closed`: the
    /// queue was closed, or not opened. `Stale`: the id names no queue any more.
    #[inline]
    pub fn begin(&self, queue: Id, shard: Option<u32>) -> Result<Turn<'_, K>, Refusal> {
        let lock = match shard {
            None => Lock::Whole(queue),
            Some(index) => match self.shards.find(&(queue, index)) {
                Some(shard) => Lock::Shard { queue, shard },
                None => return Err(self.not_open(queue)),
            },
        };
        let Some(cell) = self.cells(lock).get(lock.id().slot()) else {
            return Err(self.not_open(queue));
        };
        match cell.begin(lock.id().to_bits()) {
            Ok(begun) => {
                let token = LockToken { lock, number: begun.number, generation: begun.generation };
                Ok(Turn { table: self, cell, token })
            }
            Err(Refusal::Closed) => Err(self.not_open(queue)),
            Err(refusal) => Err(refusal),
        }
    }

    #[cold]
    fn not_open(&self, queue: Id) -> Refusal {
        if self.queues.is_live(queue) { Refusal::Closed } else { Refusal::Stale }
    }

    /// Lets no turn begin any more, and neither waits for a running one nor cuts it short. Exactly
    /// one of this call and the end of that turn tells that the hand-over is due. `Closed`: this
    /// assignment was closed before. `Stale`: it is not the current one.
    pub fn close(
        &self,
        queue: Id,
        shard: Option<u32>,
        generation: u64,
    ) -> Result<HandOver, Refusal> {
        let lock = match shard {
            None => Lock::Whole(queue),
            Some(index) => {
                let shard = self.shards.find(&(queue, index)).ok_or(Refusal::Stale)?;
                Lock::Shard { queue, shard }
            }
        };
        let cell = self.cells(lock).get(lock.id().slot()).ok_or(Refusal::Stale)?;
        if cell.close(lock.id().to_bits(), generation)? {
            return Ok(HandOver::AtEndOfTurn);
        }
        self.reclaim(lock);
        Ok(HandOver::Now)
    }

    /// Ends the turn of a token. `Stale`: it has ended.
    pub fn end(&self, token: LockToken) -> Result<TurnEnd, Refusal> {
        let lock = token.lock;
        let cell = self.cells(lock).get(lock.id().slot()).ok_or(Refusal::Stale)?;
        if !cell.is_of(lock.id().to_bits()) {
            return Err(Refusal::Stale);
        }
        self.end_in(cell, token)
    }

    #[inline]
    fn end_in(&self, cell: &TurnCell, token: LockToken) -> Result<TurnEnd, Refusal> {
        let Released { noted, closed } = cell.end(token.number)?;
        if closed {
            self.reclaim(token.lock);
            return Ok(TurnEnd::HandOver);
        }
        Ok(if noted { TurnEnd::RunAgain } else { TurnEnd::Nothing })
    }

    /// Turns running: a weak look, for tests and gauges.
    pub fn held_count(&self) -> usize {
        let mut count = 0;
        for cells in [&self.whole, &self.shard_cells] {
            cells.each(|_, cell| count += usize::from(cell.is_held()));
        }
        count
    }

    #[inline]
    fn cells(&self, lock: Lock) -> &Pages<TurnCell> {
        match lock {
            Lock::Whole(_) => &self.whole,
            Lock::Shard { .. } => &self.shard_cells,
        }
    }

    /// The hand-over is told: gives back what `open` took.
    #[cold]
    fn reclaim(&self, lock: Lock) {
        let queue = match lock {
            Lock::Whole(queue) => queue,
            Lock::Shard { queue, shard } => {
                // The shard knows better than a token that came from outside.
                let queue = self.shards.key(shard).map_or(queue, |(queue, _)| queue);
                let _ = self.shards.release(shard);
                queue
            }
        };
        let _ = self.queues.release(queue);
    }
}

/// What is open still gives its references back: nothing names those queues any more.
impl<K: Ord + Clone + Send + Sync + 'static> Drop for QueueLockTable<K> {
    fn drop(&mut self) {
        self.whole.each(|_, cell| {
            if let Some(queue) = cell.in_use() {
                let _ = self.queues.release(Id::from_bits(queue));
            }
        });
        self.shard_cells.each(|_, cell| {
            let shard = cell.in_use().map(Id::from_bits);
            if let Some(Ok((queue, _))) = shard.map(|shard| self.shards.key(shard)) {
                let _ = self.queues.release(queue);
            }
        });
    }
}

impl<'t, K: Ord + Clone + Send + Sync + 'static> Turn<'t, K> {
    /// The queue.
    pub fn queue(&self) -> Id {
        match self.token.lock {
            Lock::Whole(queue) | Lock::Shard { queue, .. } => queue,
        }
    }

    /// Number of the assignment it belongs to (T3).
    pub fn generation(&self) -> u64 {
        self.token.generation
    }

    /// Ends it and tells what is to be done now (T1, T2).
    #[inline]
    pub fn end(self) -> TurnEnd {
        let turn = std::mem::ManuallyDrop::new(self);
        // The type keeps others from ending it, so it is not stale.
        turn.table.end_in(turn.cell, turn.token).unwrap_or(TurnEnd::Nothing)
    }

    /// Puts it down without ending it, for hosts that hold tokens.
    pub fn suspend(self) -> LockToken {
        std::mem::ManuallyDrop::new(self).token
    }
}

impl<K: Ord + Clone + Send + Sync + 'static> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        let _ = self.table.end_in(self.cell, self.token);
    }
}
