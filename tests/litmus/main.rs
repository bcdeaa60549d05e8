//! What the model checkers see through `lanekeeper::sync`, and what they do not.
//!
//! The proofs in `tests/loom` and `tests/shuttle` are worth what the checkers can see. Each test
//! here states one such fact and fails when it changes, so that an update of a checker that
//! lifts a limit, or brings one, is noticed. Run with
//! `RUSTFLAGS="--cfg lk_loom" cargo test --release --test litmus` (or `lk_shuttle`).
#![cfg(any(lk_loom, lk_shuttle))]

#[cfg(lk_loom)]
mod exchange;
#[cfg(lk_loom)]
mod kit;
#[cfg(lk_loom)]
mod limits;
mod mutation;
#[cfg(lk_loom)]
mod orderings;
#[cfg(lk_shuttle)]
mod shuttle;
