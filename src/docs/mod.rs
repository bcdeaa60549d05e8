//! The documents of this crate, so that they are found beside the items they speak of.

#[doc = include_str!("contract.md")]
pub mod contract {}

#[doc = include_str!("rules.md")]
pub mod rules {}

#[doc = include_str!("field-reports.md")]
pub mod field_reports {}

#[doc = include_str!("allocation.md")]
pub mod allocation {}

/// Compiles and runs the README's Rust.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod readme {}

#[doc = include_str!("proofs.md")]
pub mod proofs {}
