//! Reports about the building blocks: maps, guards, reclamation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue};

use crate::{put, queue};

/// crossbeam-rs/crossbeam#1023: inserting over an existing key hid it for a moment. The verb
/// `replace` does not exist here, a second put of an offset is refused; what does hold is that an
/// outstanding message never seems absent, whatever moves it.
#[test]
fn crossbeam_1023_an_outstanding_message_is_never_absent() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[(10, 1), (11, 1)]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut consumer, mut puller) = (queue.consumer().unwrap(), queue.puller().unwrap());
            for _ in 0..5_000 {
                consumer.take(2, 0).unwrap();
                let put = puller.put(&mut vec![Incoming::new(10, 0, 1)], 0, None).unwrap();
                assert_eq!((put.accepted, put.duplicate), (0, 1));
                drop(consumer.claim(10i64, 0).unwrap().unwrap());
                consumer.requeue(&[11i64], 0, 0).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let cut = queue.snapshot(0);
            assert_eq!((cut.count, cut.oldest_offset, cut.safe_offset), (2, Some(10), 10));
            assert_eq!((queue.count(), queue.bytes(), queue.span()), (2, 2, 1));
        }
    });
}

/// crossbeam-rs/crossbeam#671: nodes leaked on lost races. Here the payloads tell.
#[test]
fn crossbeam_671_nothing_is_left_alive_after_a_million_messages() {
    struct Live(Arc<AtomicI64>);
    impl Drop for Live {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let live = Arc::new(AtomicI64::new(0));
    let config = Config { mode: Mode::Concurrent, ..Config::default() };
    let queue = ProcessQueue::<Live>::new(config).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut consumer, mut puller) = (queue.consumer().unwrap(), queue.puller().unwrap());
            for round in 0..10_000i64 {
                let offsets: Vec<i64> = (round * 100..round * 100 + 100).collect();
                let message = |offset: &i64| {
                    live.fetch_add(1, Ordering::Relaxed);
                    Incoming::new(*offset, Live(Arc::clone(&live)), 1)
                };
                let mut batch: Vec<Incoming<Live>> = offsets.iter().map(message).collect();
                puller.put(&mut batch, 0, None).unwrap();
                assert_eq!(consumer.complete(&offsets, 0).unwrap().finished, 100);
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            assert!(queue.snapshot(0).count <= 100);
            assert!(!queue.contains(-1));
        }
    });
    assert_eq!((queue.payloads_live(), live.load(Ordering::Relaxed)), (0, 0));
}

/// vorner/arc-swap#164: what a guard showed had been freed. Loans keep a payload alive, whoever
/// finishes the message and whatever is reused meanwhile.
#[test]
fn arc_swap_164_a_payload_on_loan_stays_whole_while_others_finish_and_reuse() {
    let config = Config { mode: Mode::Concurrent, ..Config::default() };
    let queue = ProcessQueue::<Box<i64>>::new(config).unwrap();
    let put = |from: i64| {
        let mut batch: Vec<Incoming<Box<i64>>> =
            (from..from + 256).map(|offset| Incoming::new(offset, Box::new(offset), 1)).collect();
        queue.puller().unwrap().put(&mut batch, 0, None).unwrap();
    };
    let (mut reader, mut finisher) = (queue.consumer().unwrap(), queue.consumer().unwrap());
    for round in 0..50 {
        put(round * 256);
        let messages: Vec<_> = reader.take(100, 0).unwrap().collect();
        let all: Vec<i64> = (round * 256..round * 256 + 256).collect();
        assert_eq!(finisher.complete(&all, 0).unwrap().finished, 256);
        assert_eq!(messages.len(), 100);
        assert!(messages.iter().all(|message| **message.payload() == message.offset));
    }
    assert_eq!(queue.payloads_live(), 5_000, "on loan until given back");
    drop(reader);
    assert_eq!(queue.payloads_live(), 0);
}

/// As above, with threads: every payload read is the one of its offset.
#[test]
fn arc_swap_164_payloads_read_beside_other_finishers_are_their_own() {
    let config = Config { mode: Mode::Concurrent, ..Config::default() };
    let queue = ProcessQueue::<Box<i64>>::new(config).unwrap();
    let last = 40_000i64;
    let seen: Vec<BTreeSet<i64>> = thread::scope(|scope| {
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut consumer = queue.consumer().unwrap();
                    let mut seen = BTreeSet::new();
                    while queue.safe_offset() < last {
                        let mut offsets = Vec::new();
                        if let Ok(batch) = consumer.take(7, 0) {
                            for message in batch {
                                assert_eq!(**message.payload(), message.offset);
                                offsets.push(message.offset);
                            }
                        }
                        consumer.complete(&offsets, 0).unwrap();
                        seen.extend(offsets);
                    }
                    seen
                })
            })
            .collect();
        let mut puller = queue.puller().unwrap();
        for from in (0..last).step_by(32) {
            let mut batch: Vec<Incoming<Box<i64>>> = (from..from + 32)
                .map(|offset| Incoming::new(offset, Box::new(offset), 1))
                .collect();
            puller.put(&mut batch, 0, None).unwrap();
        }
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    assert_eq!(seen.iter().map(BTreeSet::len).sum::<usize>(), last as usize, "each once");
    assert_eq!((queue.count(), queue.payloads_live()), (0, 0));
}
