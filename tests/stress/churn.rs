//! Puts and finishes without end, with offsets far apart and offsets close together: index nodes,
//! segments, side blocks and payloads come and go, and nothing of them may pile up. Field reports:
//! crossbeam#671 (references of nodes not given back) and crossbeam#1023 (a reader that finds
//! nothing while an entry is replaced).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::Instant;

use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue};

use crate::duration;
use crate::payload::{Ledger, Token};

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("a Linux machine");
    let pages: u64 = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("pages");
    pages * 4096
}

/// Memory measured under a sanitizer is the sanitizer's.
fn is_measured() -> bool {
    !cfg!(lk_tsan) && !std::env::var("RUSTFLAGS").is_ok_and(|flags| flags.contains("sanitizer"))
}

fn batch(ledger: &Arc<Ledger>, first: i64, step: i64) -> Vec<Incoming<Token>> {
    let offsets = (0..64).map(|index| first + index * step);
    offsets.map(|offset| Incoming::new(offset, ledger.token(offset), 1)).collect()
}

/// One round: 64 in, 64 out, one of them late.
fn round(
    queue: &ProcessQueue<Token>,
    ledger: &Arc<Ledger>,
    puller: &mut lanekeeper::process_queue::Puller<'_, Token>,
    consumer: &mut lanekeeper::process_queue::Consumer<'_, Token>,
    late: &mut Option<i64>,
    step: i64,
) {
    let mut incoming = batch(ledger, queue.pull_offset(), step);
    puller.put(&mut incoming, 0, None).expect("open");
    let mut offsets = Vec::new();
    while let Ok(taken) = consumer.take(17, 0) {
        offsets.extend(taken.map(|message| message.offset));
    }
    assert_eq!(offsets.len(), 64, "all of the batch");
    let next_late = offsets.swap_remove(offsets.len() / 2);
    let done = consumer.complete(&offsets, 0).expect("open");
    assert_eq!(done.finished, 63);
    if let Some(late) = late.replace(next_late) {
        assert_eq!(consumer.complete(&[late], 0).expect("open").finished, 1);
    }
}

/// Many rounds on one thread; at the end nothing is alive, and memory is what it was after the
/// warm-up.
pub fn nothing_left() {
    let config = Config { mode: Mode::Concurrent, consumers_max: 2, ..Config::default() };
    let queue = ProcessQueue::new(config).expect("a valid configuration");
    let ledger = Ledger::new();
    let mut puller = queue.puller().expect("the only puller");
    let mut consumer = queue.consumer().expect("a free place");
    let mut late = None;
    let started = Instant::now();
    let (mut rounds, mut before) = (0_u64, 0);
    while started.elapsed() < duration() {
        if started.elapsed() > duration() / 4 && before == 0 {
            before = resident();
        }
        // Dense, as tag filtering leaves them, and farther apart than a segment's short distances.
        let step = [1, 97, 100_000][(rounds / 100 % 3) as usize];
        round(&queue, &ledger, &mut puller, &mut consumer, &mut late, step);
        assert!(ledger.live() <= 64, "payloads pile up");
        rounds += 1;
    }
    let grown = resident().saturating_sub(before);
    assert!(!is_measured() || grown < 4 << 20, "{grown} bytes more after {rounds} rounds");
    consumer.complete(&[late.expect("some rounds")], 0).expect("open");
    drop((puller, consumer));
    assert_eq!((ledger.live(), queue.count(), queue.payloads_live()), (0, 0, 0));
    assert_eq!(queue.safe_offset(), queue.pull_offset());
    drop(queue);
    ledger.check_settled();
    println!("    {rounds} rounds, {grown} bytes more than after the warm-up");
}

/// The same beside readers that go through the index all the time: a message known to be
/// outstanding is found whenever it is looked for, and an offset that was never put never is.
pub fn beside_readers() {
    let config = Config { mode: Mode::Concurrent, consumers_max: 2, ..Config::default() };
    let queue = ProcessQueue::new(config).expect("a valid configuration");
    let ledger = Ledger::new();
    let (over, pinned) = (AtomicBool::new(false), AtomicI64::new(-1));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut puller = queue.puller().expect("the only puller");
            let mut consumer = queue.consumer().expect("a free place");
            let started = Instant::now();
            while started.elapsed() < duration() {
                pin_and_churn(&queue, &ledger, &mut puller, &mut consumer, &pinned);
            }
            over.store(true, Ordering::Release);
        });
        let mut readers = Vec::new();
        for _ in 0..2 {
            readers.push(scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    let before = pinned.load(Ordering::Acquire);
                    let found = before >= 0 && queue.contains(before);
                    let after = pinned.load(Ordering::Acquire);
                    assert!(
                        before != after || before < 0 || found,
                        "{before} is ready, and not found"
                    );
                    assert!(!queue.contains(before + 1), "never put");
                }
            }));
        }
        // ThreadSanitizer does not see how a scope ends, but it sees a join.
        writer.join().expect("the churn ends well");
        for reader in readers {
            reader.join().expect("a reader ends well");
        }
    });
    assert_eq!(ledger.live(), queue.payloads_live());
    drop(queue);
    ledger.check_settled();
}

/// Keeps one message ready, below a lot that comes and goes; its number is `pinned` while it is.
fn pin_and_churn(
    queue: &ProcessQueue<Token>,
    ledger: &Arc<Ledger>,
    puller: &mut lanekeeper::process_queue::Puller<'_, Token>,
    consumer: &mut lanekeeper::process_queue::Consumer<'_, Token>,
    pinned: &AtomicI64,
) {
    let first = queue.pull_offset() + 1;
    let mut incoming = batch(ledger, first, 2);
    puller.put(&mut incoming, 0, None).expect("open");
    pinned.store(first, Ordering::Release);
    for _ in 0..20 {
        let from = queue.pull_offset() + 1;
        let mut incoming = batch(ledger, from, 2);
        puller.put(&mut incoming, 0, None).expect("open");
        // Never taken: completed as upstream's removeMessage would.
        let offsets: Vec<i64> = (0..64).map(|index| from + 2 * index).collect();
        assert_eq!(consumer.complete(&offsets, 0).expect("open").finished, 64);
    }
    pinned.store(-1, Ordering::Release);
    let offsets: Vec<i64> = (0..64).map(|index| first + 2 * index).collect();
    assert_eq!(consumer.complete(&offsets, 0).expect("open").finished, 64);
}
