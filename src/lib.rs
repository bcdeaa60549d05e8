//! Lock-free ordered-consumption core of a RocketMQ client.
pub mod allocate;
pub mod broker;
mod config_consts;
pub mod docs;
pub mod java;
mod lockfree;
pub mod message_queue;
pub mod process_queue;
pub mod select;
#[doc(hidden)]
pub mod sync;
mod types;
