//! What the model-checking and stress tests share: telling payloads, recorded verbs, the sequential
//! queue and the linearizability checker.
#![allow(dead_code, unreachable_pub)] // each test binary uses its part

pub mod bounds;
pub mod checker;
pub mod history;
pub mod payload;
pub mod record;
pub mod scenario;
pub mod spec;
