//! One focused test for each rule of the queue and of turns, named after it.
//!
//! The property tests hold all rules at once against random sequences; these say in a few lines
//! what each one means.

#[path = "rules/finish.rs"]
mod finish;
#[path = "rules/life.rs"]
mod life;
#[path = "rules/put_take.rs"]
mod put_take;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue};

fn queue(mode: Mode) -> ProcessQueue<u64> {
    ProcessQueue::new(Config { mode, ..Config::default() }).unwrap()
}

fn messages(offsets: &[i64]) -> Vec<Incoming<u64>> {
    offsets.iter().map(|offset| Incoming::new(*offset, *offset as u64, 10)).collect()
}

/// Puts and answers (accepted, duplicate, stale).
fn put(queue: &ProcessQueue<u64>, offsets: &[i64]) -> (u32, u32, u32) {
    let put = queue.puller().unwrap().put(&mut messages(offsets), 0, None).unwrap();
    (put.accepted, put.duplicate, put.stale)
}

/// A payload that counts its release.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted(offset: i64) -> (Vec<Incoming<Counted>>, impl Fn() -> u32) {
    let released = Arc::new(AtomicU32::new(0));
    let payload = Counted(Arc::clone(&released));
    (vec![Incoming::new(offset, payload, 1)], move || released.load(Ordering::Relaxed))
}

fn counted_queue(mode: Mode) -> ProcessQueue<Counted> {
    ProcessQueue::new(Config { mode, ..Config::default() }).unwrap()
}
