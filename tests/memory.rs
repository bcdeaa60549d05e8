//! What a queue keeps and what it allocates, counted by the allocator.
//!
//! crossbeam-rs/crossbeam#671 and tikv/tikv#19284 (nodes that were never freed) are the kind: a
//! queue that millions of messages have passed through is no bigger than before.

use std::alloc::System;
use std::collections::VecDeque;

use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const BATCH: i64 = 32;
/// Messages outstanding while the rest pass by.
const WINDOW: usize = 3_000;
const PASSING: i64 = 2_000_000;
/// Retired index nodes wait for the others' epoch; there are some of them at any time.
const SLACK_BYTES: isize = 64 << 10;

/// Lets messages pass through; answers live bytes and allocations that came to be meanwhile.
fn pass(queue: &ProcessQueue<u64>, gap: i64, mut finish: impl FnMut(&[i64])) -> (isize, usize) {
    let mut puller = queue.puller().unwrap();
    let mut batch: Vec<Incoming<u64>> = Vec::with_capacity(BATCH as usize);
    let mut outstanding: VecDeque<i64> = VecDeque::with_capacity(2 * WINDOW);
    let mut done: Vec<i64> = Vec::with_capacity(WINDOW);
    let mut round = |next: &mut i64| {
        batch.extend((0..BATCH).map(|i| Incoming::new(*next + i * gap, 0, 1)));
        outstanding.extend((0..BATCH).map(|i| *next + i * gap));
        *next += BATCH * gap;
        puller.put(&mut batch, 0, None).unwrap();
        while outstanding.len() > WINDOW {
            done.clear();
            done.extend(outstanding.drain(..BATCH as usize));
            finish(&done);
        }
    };
    let mut next = 0;
    while next < 20 * WINDOW as i64 * gap {
        round(&mut next);
    }
    let region = Region::new(GLOBAL);
    let end = next + PASSING * gap;
    while next < end {
        round(&mut next);
    }
    let stats = region.change();
    let live = stats.bytes_allocated as isize - stats.bytes_deallocated as isize;
    (live + stats.bytes_reallocated, stats.allocations + stats.reallocations)
}

fn assert_steady(mode: Mode, gap: i64, (live_bytes, allocations): (isize, usize)) {
    assert!(live_bytes < SLACK_BYTES, "{mode:?}, gap {gap}: {live_bytes} bytes more");
    // The index node of each 1024 messages, and what frees it later.
    let most = PASSING as usize / 256;
    assert!(allocations < most, "{mode:?}, gap {gap}: {allocations} allocations");
}

/// One test, since all threads count together.
#[test]
fn millions_of_messages_leave_nothing_behind() {
    for gap in [1, 97] {
        let config = Config { mode: Mode::Orderly, ..Config::default() };
        let queue = ProcessQueue::new(config).unwrap();
        let mut turn = queue.begin_turn(0).unwrap();
        let steady = pass(&queue, gap, |offsets| {
            assert_eq!(turn.take(offsets.len(), 0).unwrap().len(), offsets.len());
            turn.commit(0).unwrap();
        });
        assert_steady(Mode::Orderly, gap, steady);

        let config = Config { mode: Mode::Concurrent, ..Config::default() };
        let queue = ProcessQueue::new(config).unwrap();
        let mut consumer = queue.consumer().unwrap();
        let mut lent = true;
        let steady = pass(&queue, gap, |offsets| {
            // Every other batch is finished before anybody takes it.
            lent = !lent;
            if lent {
                consumer.take(offsets.len(), 0).unwrap();
            }
            assert_eq!(consumer.complete(offsets, 0).unwrap().finished as usize, offsets.len());
        });
        assert_steady(Mode::Concurrent, gap, steady);
    }
}
