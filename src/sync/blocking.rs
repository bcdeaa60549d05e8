//! What blocks: for the layers above the core, which no model runs.

pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
