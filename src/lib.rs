//! Lock-free ordered-consumption core of a RocketMQ client.
pub mod allocate;
pub mod broker;
mod config_consts;
pub mod docs;
pub mod intern;
pub mod java;
pub mod lease;
mod lockfree;
pub mod message_queue;
pub mod process_queue;
pub mod queue_lock;
pub mod select;
#[doc(hidden)]
pub mod sync;
mod types;
