//! The lock-free parts: no word of the domain, and all the unsafe code of the core.
//!
//! | room | what it is |
//! |---|---|
//! | [`window`] | the ordered window itself: put side, lane (exclusive consumer), crowd (many consumers), close, reads |
//! | [`segment`], [`pool`] | 64 messages each; where they come from and return to |
//! | [`meta`], [`words`] | bit layouts |
//! | [`index`] | offset to segment, on a skip list |
//! | [`role`], [`turnstile`] | exclusive roles without waiting |
//! | [`pages`] | an array that grows and never moves |
//! | [`intern`], [`key_index`] | counted numbers for keys |
//! | [`turn_cell`], [`lease_cell`] | a turn, a lease: one word that decides, for tables of many |

pub(crate) mod index;
pub(crate) mod intern;
pub(crate) mod key_index;
pub(crate) mod lease_cell;
pub(crate) mod meta;
pub(crate) mod pages;
pub(crate) mod pool;
pub(crate) mod role;
pub(crate) mod segment;
pub(crate) mod turn_cell;
pub(crate) mod turnstile;
pub(crate) mod window;
pub(crate) mod words;
