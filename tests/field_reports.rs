//! Faults that people reported against the clients and the building blocks of this kind, each as
//! the smallest scenario on this queue.
//!
//! A test bears the name of the public report; each stands for its whole kind. Reports about the
//! header and the exported symbols are tested from C: mozilla/cbindgen#326 (header and library
//! differ), rustls/rustls-ffi#286 (a function without its guard), libbpf/blazesym#84 (an integer
//! that is no enum value) and rust-lang/rust#104707 (symbol clashes of two static archives).
//! tokio-rs/loom#180 (what the model checker cannot show) has its litmus file beside the models.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use lanekeeper::process_queue::{
    Committed, Config, Consumer, Incoming, Mode, Outcome, ProcessQueue, PutError, Refusal, Target,
    Turn,
};

type Queue = ProcessQueue<u64>;

fn queue(mode: Mode) -> Queue {
    ProcessQueue::new(Config { mode, ..Config::default() }).unwrap()
}

fn put(queue: &Queue, messages: &[(i64, u32)]) {
    let mut batch: Vec<Incoming<u64>> =
        messages.iter().map(|(offset, size)| Incoming::new(*offset, 0, *size)).collect();
    let put = queue.puller().unwrap().put(&mut batch, 0, None).unwrap();
    assert_eq!(put.accepted as usize, messages.len());
}

fn taken(turn: &mut Turn<'_, u64>, n: usize) -> Vec<i64> {
    turn.take(n, 0).unwrap().map(|message| message.offset).collect()
}

/// Expiry as a host does it: `expired`, then per message `claim`, the send-back, `settle`.
fn expire(consumer: &mut Consumer<'_, u64>, now_ms: i64, mut send_back: impl FnMut(i64) -> bool) {
    let mut named = Vec::new();
    consumer.queue().expired(now_ms, 0, usize::MAX, &mut named);
    for message in named {
        let target = Target { offset: message.offset, delivery: message.delivery };
        if let Ok(claim) = consumer.claim(target, now_ms).unwrap() {
            let sent = send_back(message.offset);
            claim.settle(sent, now_ms, now_ms).unwrap();
        }
    }
}

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

/// apache/rocketmq#3937: one lost head kept the span gate shut for ever, since the sweeper had died.
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

/// apache/rocketmq-client-go#897: a thread blocked while holding the queue's lock. Here a consumer
/// that stands still inside its listener, and a host that stands still in a release callback, keep
/// nobody from anything.
#[test]
fn rocketmq_client_go_897_a_thread_that_stands_still_holds_up_nobody() {
    struct Gate(Option<(mpsc::SyncSender<()>, mpsc::Receiver<()>)>);
    impl Drop for Gate {
        fn drop(&mut self) {
            if let Some((reached, go_on)) = self.0.take() {
                reached.send(()).unwrap();
                go_on.recv().unwrap();
            }
        }
    }
    let config = Config { mode: Mode::Concurrent, ..Config::default() };
    let queue = ProcessQueue::<std::sync::Mutex<Gate>>::new(config).unwrap();
    let (reached, wait) = mpsc::sync_channel(0);
    let (let_go, go_on) = mpsc::channel();
    let gate = |inner| std::sync::Mutex::new(Gate(inner));
    let mut batch = vec![Incoming::new(0, gate(Some((reached, go_on))), 1)];
    batch.extend((1..100).map(|offset| Incoming::new(offset, gate(None), 1)));
    queue.puller().unwrap().put(&mut batch, 0, None).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stuck = queue.consumer().unwrap();
            stuck.take(1, 0).unwrap();
            stuck.complete(&[0i64], 0).unwrap();
        });
        wait.recv().unwrap();
        let mut consumer = queue.consumer().unwrap();
        assert_eq!(consumer.take(50, 0).unwrap().len(), 50);
        let offsets: Vec<i64> = (1..100).collect();
        assert_eq!(consumer.complete(&offsets, 0).unwrap().finished, 99);
        let mut more = vec![Incoming::new(100, gate(None), 1)];
        assert_eq!(queue.puller().unwrap().put(&mut more, 0, None).unwrap().accepted, 1);
        assert_eq!((queue.count(), queue.snapshot(0).count), (1, 1));
        queue.close(0).unwrap();
        let_go.send(()).unwrap();
    });
}

/// apache/rocketmq-client-go#614: who waited on a dropped queue waited for ever. Nothing waits
/// here: a consumer that was told EMPTY is told CLOSED at its next call.
#[test]
fn rocketmq_client_go_614_nobody_waits_on_a_closed_queue() {
    let queue = Arc::new(queue(Mode::Concurrent));
    let (empty, told_empty) = mpsc::channel();
    let waiting = thread::spawn({
        let queue = Arc::clone(&queue);
        move || {
            let mut consumer = queue.consumer().unwrap();
            assert_eq!(consumer.take(1, 0).err(), Some(Refusal::Empty));
            empty.send(()).unwrap();
            loop {
                match consumer.take(1, 0).err() {
                    Some(Refusal::Empty) => thread::yield_now(),
                    other => return other,
                }
            }
        }
    });
    told_empty.recv().unwrap();
    queue.close(0).unwrap();
    assert_eq!(waiting.join().unwrap(), Some(Refusal::Closed));
    for _ in 0..1_000 {
        let queue = self::queue(Mode::Orderly);
        put(&queue, &[(0, 1)]);
        let mut turn = queue.begin_turn(0).unwrap();
        taken(&mut turn, 1);
        queue.close(0).unwrap();
    }
}

/// apache/rocketmq-client-go#574: a dropped queue looked like one with nothing to do yet.
#[test]
fn rocketmq_client_go_574_closed_is_not_empty_and_stays() {
    let queue = queue(Mode::Orderly);
    let mut turn = queue.begin_turn(0).unwrap();
    assert_eq!(turn.take(1, 0).err(), Some(Refusal::Empty));
    queue.close(0).unwrap();
    for _ in 0..10 {
        assert_eq!(turn.take(1, 0).err(), Some(Refusal::Closed));
    }
    turn.end(0);
    assert_eq!(queue.begin_turn(0).err(), Some(Refusal::Closed));
    let mut batch = vec![Incoming::new(0, 0, 1)];
    let error = queue.puller().unwrap().put(&mut batch, 0, None).unwrap_err();
    assert_eq!(error, PutError::Refused(Refusal::Closed));
}

/// apache/rocketmq-client-cpp#322: "nothing new up to 11" moved the offset past a message in flight.
#[test]
fn rocketmq_client_cpp_322_an_answer_with_nothing_new_does_not_pass_what_is_in_flight() {
    let orderly = queue(Mode::Orderly);
    put(&orderly, &[(10, 1)]);
    let mut turn = orderly.begin_turn(0).unwrap();
    taken(&mut turn, 1);
    assert_eq!(orderly.puller().unwrap().advance(11, 0).unwrap().safe_offset, None);
    assert_eq!(orderly.safe_offset(), 10);

    let concurrent = queue(Mode::Concurrent);
    put(&concurrent, &[(10, 1)]);
    let mut consumer = concurrent.consumer().unwrap();
    consumer.take(1, 0).unwrap();
    let claim = consumer.claim(10i64, 0).unwrap().unwrap();
    assert_eq!(concurrent.puller().unwrap().advance(12, 0).unwrap().safe_offset, None);
    assert_eq!(concurrent.safe_offset(), 10, "a claimed one is not finished either");
    assert_eq!(claim.settle(true, 0, 0).unwrap().safe_offset, 12);
}

/// apache/rocketmq-clients#1340: a drain has to reopen the gate. The gate is a layer above; what it
/// goes by is tested here: each drain is visible at once in `count`, `bytes` and `span`, and a
/// refused pull leaves no trace that a late timer could act on.
#[test]
fn rocketmq_clients_1340_a_drain_is_visible_at_once() {
    let config = Config { outstanding_max: 4, ..Config::default() };
    let queue = Queue::new(config).unwrap();
    put(&queue, &[(0, 5), (1, 5), (2, 5), (3, 5)]);
    let try_put = |offset| {
        queue.puller().unwrap().put(&mut vec![Incoming::new(offset, 0, 5)], 0, None).map(drop)
    };
    for _ in 0..2 {
        assert_eq!(try_put(4), Err(PutError::Refused(Refusal::Limit)));
    }
    let mut turn = queue.begin_turn(0).unwrap();
    taken(&mut turn, 3);
    turn.commit(0).unwrap();
    assert_eq!((queue.count(), queue.bytes(), queue.span()), (1, 5, 0));
    assert_eq!(try_put(4), Ok(()));
}

/// apache/rocketmq-clients#1327: a retry pulled without asking the gate. On this layer: whoever
/// puts, and however often, the limit holds.
#[test]
fn rocketmq_clients_1327_the_limit_holds_for_every_put() {
    let config = Config { outstanding_max: 100, mode: Mode::Concurrent, ..Config::default() };
    let queue = Queue::new(config).unwrap();
    let mut consumer = queue.consumer().unwrap();
    let mut next = 0;
    for round in 0..200 {
        let mut batch: Vec<Incoming<u64>> =
            (next..next + 32).map(|offset| Incoming::new(offset, 0, 1)).collect();
        match queue.puller().unwrap().put(&mut batch, 0, None) {
            Ok(_) => next += 32,
            Err(error) => assert_eq!(error, PutError::Refused(Refusal::Limit)),
        }
        assert!(queue.count() <= 100);
        if round % 3 == 0 {
            consumer.complete(&[queue.safe_offset()], 0).unwrap();
        }
    }
    assert!(next > 100);
}

/// mxsm/rocketmq-rust#6598: sizes cut to MiB before they were added, and unchecked arithmetic at
/// the ends of the offset range.
#[test]
fn rocketmq_rust_6598_sizes_add_up_exactly_and_the_last_offsets_are_errors_not_wraps() {
    let queues: Vec<Queue> = (0..100).map(|_| queue(Mode::Concurrent)).collect();
    for queue in &queues {
        put(queue, &[(0, 900 << 10)]);
    }
    assert_eq!(queues.iter().map(Queue::bytes).sum::<u64>() >> 20, 87);

    let queue = queue(Mode::Concurrent);
    let big = u32::MAX;
    put(&queue, &[(0, big), (1, big), (2, big)]);
    assert_eq!(queue.bytes(), 3 * u64::from(big));
    let mut puller = queue.puller().unwrap();
    let error = puller.put(&mut vec![Incoming::new(i64::MAX, 0, 1)], 0, None).unwrap_err();
    assert_eq!(error, PutError::InvalidOffset { index: 0, offset: i64::MAX });
    let mut consumer = queue.consumer().unwrap();
    let strays = [i64::MAX, i64::MIN, -1];
    assert_eq!(consumer.complete(&strays, 0).unwrap().unknown, 3);
    puller.put(&mut vec![Incoming::new(i64::MAX - 1, 0, 1)], 0, None).unwrap();
    assert_eq!((queue.pull_offset(), queue.span()), (i64::MAX, i64::MAX - 1));
    let answer = consumer.complete(&[i64::MAX - 1, 0, 1, 2], 0).unwrap();
    assert_eq!((answer.finished, answer.safe_offset, queue.span()), (4, i64::MAX, 0));
}

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
