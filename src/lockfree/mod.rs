//! The lock-free parts: no word of the domain, and all the unsafe code of the core.
//!
//! | room | what it is |
//! |---|---|
//! | [`window`] | the ordered window itself: put side, lane (exclusive consumer), crowd (many consumers), close, reads |
//! | [`segment`], [`pool`] | 64 messages each; where they come from and return to |
//! | [`meta`], [`words`] | bit layouts |
//! | [`index`] | offset to segment, on a skip list |
//! | [`role`], [`turnstile`] | exclusive roles without waiting |

pub(crate) mod index;
pub(crate) mod meta;
pub(crate) mod pool;
pub(crate) mod role;
pub(crate) mod segment;
pub(crate) mod turnstile;
pub(crate) mod window;
pub(crate) mod words;
