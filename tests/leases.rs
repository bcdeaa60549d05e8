//! Turns of many queues and leases (rules T1-T4, L1-L5): a test for each rule, the recordings of
//! the Java classes, and the faults others had.

#[path = "leases/client.rs"]
mod client;
#[path = "leases/field_reports.rs"]
mod field_reports;
#[path = "leases/golden.rs"]
mod golden;
#[path = "leases/table.rs"]
mod table;
#[path = "leases/turns.rs"]
mod turns;

use std::sync::Arc;

use lanekeeper::intern::{Id, Interner};
use lanekeeper::lease::{Lease, LeaseRefusal, LeaseTable};
use lanekeeper::queue_lock::QueueLockTable;

/// Topic, broker name, queue id.
type Queue = (String, String, i32);

fn named(queue_id: i32) -> Queue {
    ("topic".to_owned(), "broker".to_owned(), queue_id)
}

/// A table of turns with one queue, its id held by the test.
fn lock_table() -> (QueueLockTable<Queue>, Id) {
    let queues = Arc::new(Interner::new());
    let queue = queues.intern(&named(0)).unwrap();
    (QueueLockTable::new(queues), queue)
}

/// A lease table with one group, three queues and three clients.
struct Broker {
    table: LeaseTable<Queue>,
    group: Id,
    queues: Vec<Id>,
    clients: [Id; 3],
}

impl Broker {
    fn new() -> Self {
        let interner = Arc::new(Interner::new());
        let queues = (0..3).map(|index| interner.intern(&named(index)).unwrap()).collect();
        let table = LeaseTable::new(interner, 0);
        let group = table.group("g").unwrap();
        let clients = ["a", "b", "c"].map(|name| table.client(name).unwrap());
        Self { table, group, queues, clients }
    }

    /// Client `client` asks for queue `queue`.
    fn acquire(&self, client: usize, queue: usize, now_ms: i64) -> Result<Lease, LeaseRefusal> {
        self.table.acquire(self.group, self.queues[queue], self.clients[client], now_ms)
    }

    fn release(&self, client: usize, queue: usize) -> bool {
        self.table.release(self.group, self.queues[queue], self.clients[client]).unwrap()
    }
}
