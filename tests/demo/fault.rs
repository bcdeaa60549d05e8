//! Faults to plant on purpose, so that tests see the ledger find them. Not for users.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use lanekeeper::broker::StoredMessage;
use lanekeeper::process_queue::Incoming;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// The puller forgets one message.
    Drop,
    /// The puller exchanges two messages of one key.
    Swap,
    /// A message reaches the listener with a byte of its body changed.
    Corrupt,
    /// A hand-over stores the pull offset instead of the safe offset.
    StoreAhead,
    /// A failed batch is finished as if it had succeeded.
    FinishFailed,
    /// Of a failed batch only the first message is tried again: the redelivery is not a suffix.
    PartialReplay,
    /// The puller stops pulling one queue: the run never ends by itself.
    Stall,
}

/// A fault, and whether it has been committed: those of the puller happen once a run.
pub struct Plan {
    fault: Option<Fault>,
    armed: AtomicBool,
}

impl Plan {
    pub fn new(fault: Option<Fault>) -> Self {
        Self { fault, armed: AtomicBool::new(true) }
    }

    pub fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// True once for the planned fault.
    pub fn strikes(&self, fault: Fault) -> bool {
        self.is(fault) && self.armed.swap(false, Ordering::Relaxed)
    }

    /// Spoils a pulled batch, if that is the plan and the batch allows it.
    pub fn spoil(&self, batch: &mut Vec<Incoming<Arc<StoredMessage>>>) {
        let last = batch.len() - 1;
        match self.fault {
            Some(Fault::Drop) if last >= 1 && self.strikes(Fault::Drop) => {
                _ = batch.remove(last - 1)
            }
            Some(Fault::Swap) => {
                let same_key =
                    (0..last).find_map(|left| Some((left, following_of_same_key(batch, left)?)));
                if let Some((left, right)) = same_key
                    && self.strikes(Fault::Swap)
                {
                    let (head, tail) = batch.split_at_mut(right);
                    std::mem::swap(&mut head[left].payload, &mut tail[0].payload);
                }
            }
            _ => {}
        }
    }
}

fn following_of_same_key(batch: &[Incoming<Arc<StoredMessage>>], left: usize) -> Option<usize> {
    let key = batch[left].payload.key();
    (left + 1..batch.len()).find(|right| batch[*right].payload.key() == key)
}
