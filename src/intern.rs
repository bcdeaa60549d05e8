//! Interned keys: queues, client ids and group names as small counted numbers.
//!
//! The tables of turns and leases address their entries by these numbers, so that their hot paths
//! neither hash nor compare strings. Whoever keeps an [`Id`] holds a counted reference for it
//! (T4): the host one for each queue, group and client it uses, an open lock one to its queue, a
//! held lease one each to its group, queue and client. An id whose last reference is gone is
//! answered `Stale` for ever after; its place is used again under a new number.
//!
//! ```
//! use lanekeeper::intern::Interner;
//! use lanekeeper::process_queue::Refusal;
//!
//! let names: Interner<String> = Interner::new();
//! let id = names.intern(&"broker-a".to_owned())?;
//! assert_eq!(names.key(id)?, "broker-a");
//! assert_eq!(names.release(id), Ok(true)); // that was the last reference
//! assert_eq!(names.key(id), Err(Refusal::Stale));
//! # Ok::<(), Refusal>(())
//! ```
//!
//! Not for keys that come and go at every message: a new key costs an allocation and an insertion
//! into an ordered index.

#![forbid(unsafe_code)]

pub use crate::lockfree::intern::{Id, Interner};
