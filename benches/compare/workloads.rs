//! What is measured: the workloads, and which implementation runs which.

use crate::harness::{
    Measured, Shape, any_order, filled, observed, one_thread, take_and_rollback, two_threads,
};
use crate::subject::Cache;
use crate::subjects::{Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair, SpscRing};

/// Name of the C program's results.
pub const LANE_C: &str = "lanekeeper-c";
/// All names, in the order of the table.
pub const IMPLEMENTATIONS: [&str; 6] = [
    Lane::NAME,
    LANE_C,
    MutexBtreeMap::NAME,
    MutexVecDeque::NAME,
    SkipMapPair::NAME,
    SpscRing::NAME,
];

/// How a workload runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Put and consume on one thread.
    OneThread,
    /// A puller thread and a consumer thread.
    TwoThreads,
    /// The same, finished in any order.
    AnyOrder,
    /// Take and put back.
    Rollback,
    /// One thread, and one that reads.
    Observed,
    /// Fill, and look at the heap.
    Filled,
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// How it runs.
    pub kind: Kind,
    /// Sizes.
    pub shape: Shape,
}

/// One run of a workload: so many batches or cycles.
pub type Run = fn(&Shape, u64) -> Measured;

const fn workload(
    name: &'static str,
    about: &'static str,
    kind: Kind,
    (take, stride, cached): (usize, i64, usize),
) -> Workload {
    Workload { name, about, kind, shape: Shape { take, stride, cached } }
}

/// All workloads, in the order of the table.
pub const WORKLOADS: [Workload; 14] = [
    workload("B1", "put 32, 32 x (take 1, commit)", Kind::OneThread, (1, 1, 0)),
    workload("B1b", "put 32, take 32, commit", Kind::OneThread, (32, 1, 0)),
    workload("B2", "two threads, take 1, commit", Kind::TwoThreads, (1, 1, 0)),
    workload("B2b", "two threads, take 32, commit", Kind::TwoThreads, (32, 1, 0)),
    workload("B3", "two threads, complete any of 64", Kind::AnyOrder, (1, 1, 0)),
    workload("B4", "take 32, rollback; a cycle", Kind::Rollback, (32, 1, 1000)),
    workload("B5", "B1b, every 97th offset", Kind::OneThread, (32, 97, 0)),
    workload("B6", "B1b over 512, with an observer", Kind::Observed, (32, 1, 512)),
    workload("B7-dense", "fill with 1,000,000", Kind::Filled, (32, 1, 1_000_000)),
    workload("B7-sparse", "the same, every 97th offset", Kind::Filled, (32, 97, 1_000_000)),
    workload("B8-0", "B1b over none", Kind::OneThread, (32, 1, 0)),
    workload("B8-1k", "B1b over 1,000", Kind::OneThread, (32, 1, 1000)),
    workload("B8-100k", "B1b over 100,000", Kind::OneThread, (32, 1, 100_000)),
    workload("B8-1M", "B1b over 1,000,000", Kind::OneThread, (32, 1, 1_000_000)),
];

impl Workload {
    /// Who runs it, and how. The C program is not among them.
    pub fn runs(&self) -> Vec<(&'static str, Run)> {
        macro_rules! each {
            ($run:ident: $($subject:ty),*) => {
                vec![$((<$subject>::NAME, $run::<$subject> as Run)),*]
            };
        }
        match self.kind {
            Kind::OneThread => {
                each!(one_thread: Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair, SpscRing)
            }
            Kind::TwoThreads => {
                each!(two_threads: Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair, SpscRing)
            }
            Kind::AnyOrder => each!(any_order: Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair),
            Kind::Rollback => {
                each!(take_and_rollback: Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair)
            }
            Kind::Observed => each!(observed: Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair),
            Kind::Filled => {
                each!(filled: Lane, MutexBtreeMap, MutexVecDeque, SkipMapPair, SpscRing)
            }
        }
    }

    /// The C program runs what goes through the verbs of puller and consumer.
    pub fn in_c(&self) -> bool {
        !matches!(self.kind, Kind::Observed | Kind::Filled)
    }
}
