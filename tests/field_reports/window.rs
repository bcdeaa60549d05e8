//! Reports about what the queue holds: counting, putting back, expiry, reads.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread;

use lanekeeper::process_queue::{
    Committed, Config, Consumer, Incoming, Mode, Outcome, ProcessQueue, Turn,
};

use crate::{expire, put, queue, taken};

/// apache/rocketmq#10870: the highest offset was that of the last inserted message.
#[test]
fn rocketmq_10870_next_offset_does_not_depend_on_the_order_of_a_batch() {
    for order in [[5, 7, 10], [5, 10, 7], [7, 5, 10], [7, 10, 5], [10, 5, 7], [10, 7, 5]] {
        let queue = queue(Mode::Concurrent);
        put(&queue, &order.map(|offset| (offset, 1)));
        let answer = queue.consumer().unwrap().complete(&order, 0).unwrap();
        assert_eq!((answer.safe_offset, answer.finished), (11, 3), "{order:?}");
        assert_eq!(queue.snapshot(0).highest_put, 10);
    }
}

/// apache/rocketmq#7538: the size was read again at removal, after the listener had changed the
/// body, and flow control never opened. Here the payload can change freely.
#[test]
fn rocketmq_7538_the_size_is_the_one_recorded_at_put() {
    use std::sync::Mutex;
    let config = Config { mode: Mode::Concurrent, ..Config::default() };
    let queue = ProcessQueue::<Mutex<Vec<u8>>>::new(config).unwrap();
    let message = |offset, len| Incoming::new(offset, Mutex::new(vec![0; len]), len as u32);
    queue.puller().unwrap().put(&mut vec![message(10, 100), message(11, 1)], 0, None).unwrap();
    let mut consumer = queue.consumer().unwrap();
    consumer.take(1, 0).unwrap().next().unwrap().payload().lock().unwrap().clear();
    consumer.complete(&[10i64], 0).unwrap();
    assert_eq!(queue.bytes(), 1);
}

/// apache/rocketmq#196: one way of removal did not count down. Every way out is tried.
#[test]
fn rocketmq_196_every_way_out_counts_down() {
    let concurrent = |finish: &dyn Fn(&mut Consumer<'_, u64>)| {
        let queue = queue(Mode::Concurrent);
        put(&queue, &[(10, 100)]);
        let mut consumer = queue.consumer().unwrap();
        finish(&mut consumer);
        assert_eq!((queue.count(), queue.bytes(), queue.snapshot(0).count), (0, 0, 0));
    };
    concurrent(&|consumer| assert_eq!(consumer.complete(&[10i64], 0).unwrap().finished, 1));
    concurrent(&|consumer| {
        consumer.take(1, 0).unwrap();
        consumer.complete(&[10i64], 0).unwrap();
    });
    concurrent(&|consumer| {
        consumer.take(1, 0).unwrap();
        expire(consumer, 10, |_| true);
    });
    concurrent(&|consumer| {
        consumer.queue().close(0).unwrap();
    });
    let orderly = |finish: &dyn Fn(&mut Turn<'_, u64>)| {
        let queue = queue(Mode::Orderly);
        put(&queue, &[(10, 100)]);
        let mut turn = queue.begin_turn(0).unwrap();
        taken(&mut turn, 1);
        finish(&mut turn);
        assert_eq!((queue.count(), queue.bytes(), queue.snapshot(0).count), (0, 0, 0));
    };
    orderly(&|turn| assert!(turn.commit(0).is_ok()));
    orderly(&|turn| assert!(turn.complete(&[10i64], 0).is_ok()));
    orderly(&|turn| assert!(turn.queue().close(0).is_ok()));
}

/// apache/rocketmq#3937: one lost head kept the span gate shut for ever, as the sweeper had died.
/// The queue names the offset that blocks, and a sweep that failed can be run again.
#[test]
fn rocketmq_3937_a_stuck_head_is_named_and_a_failed_sweep_leaves_nothing_behind() {
    let queue = queue(Mode::Concurrent);
    let all: Vec<(i64, u32)> = (10..2100).map(|offset| (offset, 1)).collect();
    put(&queue, &all);
    let mut consumer = queue.consumer().unwrap();
    consumer.take(all.len(), 0).unwrap();
    let others: Vec<i64> = (11..2100).collect();
    assert_eq!(consumer.complete(&others, 0).unwrap().safe_offset, 10);
    assert_eq!((queue.count(), queue.bytes(), queue.span()), (1, 1, 2089));
    assert_eq!(queue.snapshot(0).oldest_offset, Some(10));
    let sweep = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        expire(&mut consumer, 10, |_| panic!("the send-back fails badly, on purpose"));
    }));
    assert!(sweep.is_err());
    assert_eq!((queue.count(), queue.snapshot(0).claimed_count), (1, 0), "not lost, not claimed");
    assert_eq!(consumer.take(1, 20).unwrap().len(), 1);
    expire(&mut consumer, 30, |_| true);
    assert_eq!((queue.span(), queue.safe_offset()), (0, 2100));
}

/// apache/rocketmq#5481: sent back by the sweep, and again by the late listener.
#[test]
fn rocketmq_5481_an_expired_message_is_sent_back_once() {
    let queue = queue(Mode::Concurrent);
    put(&queue, &[(10, 1)]);
    let (mut listener, mut sweeper) = (queue.consumer().unwrap(), queue.consumer().unwrap());
    listener.take(1, 0).unwrap();
    let mut sent = 0;
    expire(&mut sweeper, 10, |_| {
        sent += 1;
        // The result comes in just now: it cannot have the message.
        assert_eq!(listener.claim(10i64, 10).unwrap().err(), Some(Outcome::Unknown));
        true
    });
    assert_eq!(listener.claim(10i64, 10).unwrap().err(), Some(Outcome::Unknown));
    assert_eq!(listener.complete(&[10i64], 10).unwrap().unknown, 1);
    assert_eq!((sent, queue.count()), (1, 0));
}

/// As above, with real threads: of all who want a message exactly one gets it.
#[test]
fn rocketmq_5481_of_racing_results_and_sweeps_one_wins() {
    let queue = queue(Mode::Concurrent);
    let all: Vec<(i64, u32)> = (0..2_000).map(|offset| (offset, 1)).collect();
    put(&queue, &all);
    queue.consumer().unwrap().take(all.len(), 0).unwrap();
    let won = AtomicU32::new(0);
    thread::scope(|scope| {
        for who in 0..4 {
            let (queue, won) = (&queue, &won);
            scope.spawn(move || {
                let mut consumer = queue.consumer().unwrap();
                for offset in 0..2_000i64 {
                    let got = if (offset + who) % 2 == 0 {
                        consumer.complete(&[offset], 0).unwrap().finished
                    } else {
                        let claim = consumer.claim(offset, 0).unwrap();
                        claim.map_or(0, |claim| claim.settle(true, 0, 0).unwrap().finished)
                    };
                    won.fetch_add(got, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((won.into_inner(), queue.count(), queue.safe_offset()), (2_000, 0, 2_000));
}

/// apache/rocketmq-client-go#615: the way back to ready was a second put, which counts.
#[test]
fn rocketmq_client_go_615_putting_back_does_not_count_again() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[(10, 7)]);
    let mut turn = queue.begin_turn(0).unwrap();
    for delivery in 1..=2000 {
        assert_eq!(turn.take(1, 0).unwrap().next().unwrap().delivery, delivery);
        assert_eq!(turn.requeue(&[10i64], 1, 0).unwrap().requeued, 1);
        assert_eq!((queue.count(), queue.bytes()), (1, 7));
    }
    taken(&mut turn, 1);
    turn.commit(0).unwrap();
    assert_eq!((queue.count(), queue.bytes()), (0, 0));
    let again = queue.puller().unwrap().put(&mut vec![Incoming::new(10, 0, 7)], 0, None).unwrap();
    assert_eq!((again.accepted, again.stale, queue.count()), (0, 1, 0));
}

/// apache/rocketmq-client-go#618: putting back did nothing, so the message was lost.
#[test]
fn rocketmq_client_go_618_a_message_put_back_comes_again_and_holds_the_offset() {
    let queue = queue(Mode::Orderly);
    put(&queue, &[(10, 1), (11, 1), (12, 1)]);
    let mut turn = queue.begin_turn(0).unwrap();
    assert_eq!(taken(&mut turn, 1), [10]);
    turn.requeue(&[10i64], 1, 0).unwrap();
    assert_eq!(taken(&mut turn, 1), [10]);
    assert_eq!(taken(&mut turn, 1), [11]);
    turn.requeue(&[10i64], 1, 0).unwrap();
    assert_eq!(turn.commit(0), Ok(Committed::Finished { safe_offset: 10, finished: 1 }));
    assert_eq!(taken(&mut turn, 9), [10, 12]);
    assert_eq!(turn.commit(0), Ok(Committed::Finished { safe_offset: 13, finished: 2 }));
}

/// apache/rocketmq-client-go#166: reads without the lock.
#[test]
fn rocketmq_client_go_166_reads_beside_a_puller_see_only_what_was_put() {
    let queue = queue(Mode::Orderly);
    let (done, most) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut puller = queue.puller().unwrap();
            for round in 0..2_000i64 {
                most.store(round * 30 + 20, Ordering::Release);
                let offsets = [round * 30, round * 30 + 10, round * 30 + 20];
                let mut batch = offsets.map(|offset| Incoming::new(offset, 0, 1)).to_vec();
                puller.put(&mut batch, 0, None).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let (count, bytes, span) = (queue.count(), queue.bytes(), queue.span());
            let cut = queue.snapshot(0);
            let most = most.load(Ordering::Acquire);
            assert!(count % 3 == 0 && bytes % 3 == 0, "a batch is seen whole");
            assert!(span <= most && cut.cached_max <= most && cut.highest_put <= most);
            assert_eq!(cut.count, cut.bytes);
            assert!(matches!(cut.oldest_offset, None | Some(0)));
        }
    });
    assert_eq!((queue.count(), queue.span()), (6_000, 59_990));
}
