//! C ABI of lanekeeper: thin functions over the core crate, one file per C type family.
//!
//! The C header is generated from these files by `ffi/header.sh`; the doc comments here are the
//! manual C users read. Conventions:
//!
//! - every body runs inside `guard`: null checks, type tag, poison, `catch_unwind`;
//! - handles with one owner share their check and their end (`object`), structs that may grow
//!   their reading (`config`);
//! - a call enters its role (puller, turn, consumer), does the verb, puts the role down, and only
//!   then runs the release callback (`release`);
//! - tokens are salted with a number of their queue (`handle`), so that a token of another queue
//!   is answered `LK_STALE` and not taken for one of this queue.

#![allow(non_camel_case_types)]

mod allocator;
mod claim;
mod config;
mod consumer;
mod error;
mod grants;
mod guard;
mod handle;
#[cfg(test)]
mod layout;
mod leases;
mod message;
mod message_queue;
mod object;
mod outcome;
mod puller;
mod queue;
mod queue_ids;
mod queue_locks;
mod reads;
mod release;
mod route;
mod status;
mod strategy;
mod tables;
mod text;
mod turn;
mod version;
