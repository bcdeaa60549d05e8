//! Lock-free ordered-consumption core of a RocketMQ client.
pub mod process_queue;
