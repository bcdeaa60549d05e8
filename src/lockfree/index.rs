//! The ordered index from offset to the run of segments that holds it, and the set of messages that
//! wait for a time.
//!
//! Crossbeam's skip lists, behind traits: a model checker cannot see into them, so there it runs a
//! mutex around an ordered map, and everything else is the real code. A thread asleep inside a call
//! holds back retired index nodes (epoch reclamation), nothing else.

/// Where a run of segments starts.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Exposed address of the first segment.
    pub(crate) address: usize,
    /// Its base rank when it was inserted.
    pub(crate) base_rank: u64,
}

/// An ordered map from the first offset of a run to the run.
pub(crate) trait OffsetIndex: Send + Sync {
    fn new() -> Self;
    /// Keys ascend, and none comes twice.
    fn insert(&self, first_offset: i64, run: Run);
    /// The run with the highest first offset not above `offset`.
    fn floor(&self, offset: i64) -> Option<Run>;
    fn remove(&self, first_offset: i64);
}

/// An ordered set of (due time, rank).
pub(crate) trait DueSet: Send + Sync {
    fn new() -> Self;
    fn insert(&self, due_ms: i64, rank: u64);
    /// Removes and answers the first entry due at `now_ms`.
    fn pop_due(&self, now_ms: i64) -> Option<u64>;
}

#[cfg(not(any(lk_loom, lk_shuttle)))]
mod real {
    use super::{DueSet, OffsetIndex, Run};
    use crossbeam_skiplist::{SkipMap, SkipSet};
    use std::ops::Bound;

    pub(crate) struct Index(SkipMap<i64, Run>);

    impl OffsetIndex for Index {
        fn new() -> Self {
            Self(SkipMap::new())
        }
        fn insert(&self, first_offset: i64, run: Run) {
            self.0.insert(first_offset, run);
        }
        fn floor(&self, offset: i64) -> Option<Run> {
            self.0.upper_bound(Bound::Included(&offset)).map(|entry| *entry.value())
        }
        fn remove(&self, first_offset: i64) {
            self.0.remove(&first_offset);
        }
    }

    pub(crate) struct Due(SkipSet<(i64, u64)>);

    impl DueSet for Due {
        fn new() -> Self {
            Self(SkipSet::new())
        }
        fn insert(&self, due_ms: i64, rank: u64) {
            self.0.insert((due_ms, rank));
        }
        fn pop_due(&self, now_ms: i64) -> Option<u64> {
            loop {
                let first = self.0.front()?;
                if first.value().0 > now_ms {
                    return None;
                }
                if first.remove() {
                    return Some(first.value().1);
                }
            }
        }
    }
}

#[cfg(any(lk_loom, lk_shuttle))]
mod model {
    use super::{DueSet, OffsetIndex, Run};
    use crate::sync::Mutex;
    use std::collections::{BTreeMap, BTreeSet};

    pub(crate) struct Index(Mutex<BTreeMap<i64, Run>>);

    impl OffsetIndex for Index {
        fn new() -> Self {
            Self(Mutex::new(BTreeMap::new()))
        }
        fn insert(&self, first_offset: i64, run: Run) {
            self.0.lock().unwrap().insert(first_offset, run);
        }
        fn floor(&self, offset: i64) -> Option<Run> {
            self.0.lock().unwrap().range(..=offset).next_back().map(|(_, run)| *run)
        }
        fn remove(&self, first_offset: i64) {
            self.0.lock().unwrap().remove(&first_offset);
        }
    }

    pub(crate) struct Due(Mutex<BTreeSet<(i64, u64)>>);

    impl DueSet for Due {
        fn new() -> Self {
            Self(Mutex::new(BTreeSet::new()))
        }
        fn insert(&self, due_ms: i64, rank: u64) {
            self.0.lock().unwrap().insert((due_ms, rank));
        }
        fn pop_due(&self, now_ms: i64) -> Option<u64> {
            let mut set = self.0.lock().unwrap();
            let first = *set.first()?;
            if first.0 > now_ms {
                return None;
            }
            set.remove(&first);
            Some(first.1)
        }
    }
}

#[cfg(any(lk_loom, lk_shuttle))]
pub(crate) use model::{Due, Index};
#[cfg(not(any(lk_loom, lk_shuttle)))]
pub(crate) use real::{Due, Index};
