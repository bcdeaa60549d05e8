//! Leases: which client may consume which queue (contract section 3).
//!
//! | room | side | what it is |
//! |---|---|---|
//! | [`LeaseTable`] | broker | at most one client for each (group, queue); leases expire |
//! | [`LeaseClient`] | client | which grants this client holds, and what to ask for next |
//!
//! A broker answers requests with the table; a client feeds the answers to its `LeaseClient` and
//! sends what that asks for. Neither does input or output or reads a clock.
//!
//! ```
//! use std::sync::Arc;
//! use lanekeeper::intern::Interner;
//! use lanekeeper::lease::{LeaseRefusal, LeaseTable};
//!
//! let queues = Arc::new(Interner::<(&str, i32)>::new());
//! let table = LeaseTable::new(Arc::clone(&queues), 0);
//! let queue = queues.intern(&("orders", 0)).unwrap();
//! let billing = table.group("billing").unwrap();
//! let (a, b) = (table.client("a").unwrap(), table.client("b").unwrap());
//!
//! let lease = table.acquire(billing, queue, a, 0).unwrap();
//! assert_eq!(table.acquire(billing, queue, b, 60_000), Err(LeaseRefusal::Held));
//! let taken = table.acquire(billing, queue, b, 60_001).unwrap();
//! assert!(taken.token > lease.token);
//! assert_eq!(table.release(billing, queue, a), Ok(false)); // another's: nothing changes
//! ```

#![forbid(unsafe_code)]

mod client;
mod table;

pub use client::{Answer, LeaseClient, Request, RequestId, Told};
pub use table::{Holder, Lease, LeaseRefusal, LeaseTable, Member};
