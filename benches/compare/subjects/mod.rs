//! The implementations: ours, and the rivals. Each rival is what a careful engineer would write
//! with the same building block, and answers what ours answers.

mod btreemap;
mod lane;
mod skipmap;
mod spsc;
mod vecdeque;

pub use btreemap::MutexBtreeMap;
pub use lane::Lane;
pub use skipmap::SkipMapPair;
pub use spsc::SpscRing;
pub use vecdeque::MutexVecDeque;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Words that a mutex-guarded queue publishes to whoever does not hold the mutex. They are
/// written under it, so a load and a store do; an atomic addition would cost more.
#[derive(Default)]
struct Published {
    count: AtomicU64,
    bytes: AtomicU64,
    safe_offset: AtomicI64,
}

impl Published {
    #[inline(always)]
    fn added(&self, count: u64, bytes: u64) {
        let sum = self.count.load(Ordering::Relaxed) + count;
        self.count.store(sum, Ordering::Release);
        let sum = self.bytes.load(Ordering::Relaxed) + bytes;
        self.bytes.store(sum, Ordering::Release);
    }

    #[inline(always)]
    fn finished(&self, count: u64, bytes: u64, safe_offset: i64) {
        let rest = self.count.load(Ordering::Relaxed) - count;
        self.count.store(rest, Ordering::Release);
        let rest = self.bytes.load(Ordering::Relaxed) - bytes;
        self.bytes.store(rest, Ordering::Release);
        self.safe_offset.store(safe_offset, Ordering::Release);
    }
}
