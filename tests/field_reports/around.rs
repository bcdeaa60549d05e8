//! Reports about threads, closing, limits and the ends of the number range.

use std::sync::{Arc, mpsc};
use std::thread;

use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue, PutError, Refusal};

use crate::{Queue, put, queue, taken};

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

/// apache/rocketmq-client-cpp#322: "nothing new up to 11" moved the offset past one in flight.
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
