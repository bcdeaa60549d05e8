//! Lock-free ordered-consumption core of a RocketMQ client.
pub mod broker;
pub mod java;
pub mod process_queue;
pub mod select;
