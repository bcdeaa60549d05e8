//! The embedded broker through its public surface.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use lanekeeper::broker::{
    Broker, BrokerError, HELD_PULLS_MAX, PullStatus, QUEUES_MAX, StoredMessage, Topic,
};
use lanekeeper::select;

/// Long enough that a test which runs into it has failed.
const NEVER: Duration = Duration::from_secs(60);

fn topic(queue_count: u32) -> Arc<Topic> {
    Broker::new().create_topic("orders", queue_count).expect("a new broker has no topics")
}

fn append_n(topic: &Topic, queue_id: u32, n: u8) {
    for number in 0..n {
        topic.append_to(queue_id, [number].as_slice()).unwrap();
    }
}

fn offsets(messages: &[Arc<StoredMessage>]) -> Vec<i64> {
    messages.iter().map(|message| message.offset()).collect()
}

#[test]
fn topics_are_created_once_and_found_by_name() {
    let broker = Broker::new();
    let made = broker.create_topic("orders", 4).unwrap();
    assert_eq!((made.name(), made.queue_count()), ("orders", 4));
    assert!(Arc::ptr_eq(&made, &broker.topic("orders").unwrap()));
    assert_eq!(
        broker.create_topic("orders", 8).unwrap_err(),
        BrokerError::TopicExists { topic: "orders".into() }
    );
    assert_eq!(
        broker.topic("order").unwrap_err(),
        BrokerError::UnknownTopic { topic: "order".into() }
    );
    broker.create_topic("bills", 1).unwrap();
    assert_eq!(broker.topic_names(), ["bills", "orders"]);
}

#[test]
fn a_topic_has_at_least_one_queue_and_not_too_many() {
    let broker = Broker::new();
    for queue_count in [0, QUEUES_MAX + 1, u32::MAX] {
        assert_eq!(
            broker.create_topic("orders", queue_count).unwrap_err(),
            BrokerError::QueueCount { queue_count }
        );
    }
    assert!(broker.topic_names().is_empty());
    assert!(broker.create_topic("wide", QUEUES_MAX).is_ok());
}

#[test]
fn a_key_always_goes_to_the_queue_its_java_hash_selects() {
    let topic = topic(7);
    let mut ends: BTreeMap<u32, i64> = BTreeMap::new();
    for number in 0..500 {
        let key = format!("订单-{}", number % 50);
        let at = topic.append(&key, [].as_slice()).unwrap();
        assert_eq!(at.queue_id, select::by_key(&key, 7).unwrap());
        let end = ends.entry(at.queue_id).or_default();
        assert_eq!(at.offset, *end, "offsets are dense from 0");
        *end += 1;
    }
    assert!(ends.len() > 1, "fifty keys do not all meet in one queue");
    for (queue_id, end) in ends {
        assert_eq!(topic.max_offset(queue_id), Ok(end));
    }
}

#[test]
fn a_pull_hands_out_what_was_appended_in_batches() {
    let topic = topic(2);
    append_n(&topic, 1, 10);
    let first = topic.pull(1, 0, 4).unwrap();
    assert_eq!(first.status, PullStatus::Found);
    assert_eq!((first.next_offset, first.min_offset, first.max_offset), (4, 0, 10));
    assert_eq!(offsets(&first.messages), [0, 1, 2, 3]);
    let last = topic.pull(1, 8, 4).unwrap();
    assert_eq!((offsets(&last.messages), last.next_offset), (vec![8, 9], 10));
    let message = &last.messages[1];
    assert_eq!((message.queue_id(), message.key(), message.body()), (1, "", [9].as_slice()));
    assert_eq!(topic.pull(0, 0, 4).unwrap().status, PullStatus::NoNewMessage, "other queue");
}

#[test]
fn a_batch_of_none_still_makes_progress() {
    let topic = topic(1);
    append_n(&topic, 0, 3);
    let pulled = topic.pull(0, 1, 0).unwrap();
    assert_eq!((offsets(&pulled.messages), pulled.next_offset), (vec![1], 2));
}

#[test]
fn the_end_of_the_queue_is_not_an_error() {
    let topic = topic(1);
    append_n(&topic, 0, 3);
    let pulled = topic.pull(0, 3, 32).unwrap();
    assert_eq!((pulled.status, pulled.next_offset), (PullStatus::NoNewMessage, 3));
    assert!(pulled.messages.is_empty());
}

#[test]
fn an_offset_outside_the_queue_is_answered_with_the_nearest_inside() {
    let topic = topic(1);
    append_n(&topic, 0, 3);
    for (offset, next) in [(4, 3), (i64::MAX, 3), (-1, 0), (i64::MIN, 0)] {
        let pulled = topic.pull(0, offset, 32).unwrap();
        assert_eq!((pulled.status, pulled.next_offset), (PullStatus::OffsetIllegal, next));
        let started = Instant::now();
        let waited = topic.pull_wait(0, offset, 32, NEVER).unwrap();
        assert_eq!(waited, pulled);
        assert!(started.elapsed() < NEVER / 2, "an illegal offset must not be waited for");
    }
}

#[test]
fn queues_that_do_not_exist_are_named_in_the_error() {
    let topic = topic(3);
    let unknown = BrokerError::UnknownQueue { topic: "orders".into(), queue_id: 3, queue_count: 3 };
    assert_eq!(topic.append_to(3, [].as_slice()).unwrap_err(), unknown);
    assert_eq!(topic.pull(3, 0, 1).unwrap_err(), unknown);
    assert_eq!(topic.pull_wait(3, 0, 1, NEVER).unwrap_err(), unknown);
    assert_eq!(topic.hold_pull(3, 0, || ()).unwrap_err(), unknown);
    assert_eq!(topic.max_offset(3).unwrap_err(), unknown);
    assert_eq!(topic.commit_offset("g", 3, 0).unwrap_err(), unknown);
    assert_eq!(topic.committed_offset("g", 3).unwrap_err(), unknown);
    assert_eq!(unknown.to_string(), "topic \"orders\" has queues 0 to 2, not 3");
}

// A consumer that never stored anything and one that stored 0 are different things (O2).
#[test]
fn committed_offsets_are_kept_per_group_and_queue() {
    let topic = topic(2);
    append_n(&topic, 0, 5);
    assert_eq!(topic.committed_offset("a", 0), Ok(None));
    topic.commit_offset("a", 0, 0).unwrap();
    topic.commit_offset("b", 0, 5).unwrap();
    assert_eq!(topic.committed_offset("a", 0), Ok(Some(0)));
    assert_eq!(topic.committed_offset("b", 0), Ok(Some(5)));
    assert_eq!(topic.committed_offset("a", 1), Ok(None));
    topic.commit_offset("b", 0, 2).unwrap();
    assert_eq!(topic.committed_offset("b", 0), Ok(Some(2)), "an operator may set it back");
}

#[test]
fn impossible_offsets_are_not_stored() {
    let topic = topic(1);
    append_n(&topic, 0, 5);
    topic.commit_offset("a", 0, 3).unwrap();
    for offset in [-1, i64::MIN, 6, i64::MAX] {
        assert_eq!(
            topic.commit_offset("a", 0, offset).unwrap_err(),
            BrokerError::InvalidOffset { offset, max_offset: 5 }
        );
    }
    assert_eq!(topic.committed_offset("a", 0), Ok(Some(3)));
}

#[test]
fn a_waiting_pull_is_woken_by_an_append_to_its_queue_only() {
    let topic = topic(2);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(topic.pull_wait(0, 0, 32, NEVER).unwrap()).unwrap());
        topic.append_to(1, b"other".as_slice()).unwrap();
        assert!(receiver.recv_timeout(Duration::from_millis(30)).is_err(), "woken by mistake");
        topic.append_to(0, b"mine".as_slice()).unwrap();
        let pulled = receiver.recv_timeout(NEVER).expect("the wake-up was lost");
        assert_eq!(pulled.messages[0].body(), b"mine");
    });
}

#[test]
fn a_waiting_pull_ends_with_its_timeout() {
    let topic = topic(1);
    let started = Instant::now();
    let pulled = topic.pull_wait(0, 0, 32, Duration::from_millis(20)).unwrap();
    assert_eq!(pulled.status, PullStatus::NoNewMessage);
    assert!(started.elapsed() >= Duration::from_millis(20));
}

#[test]
fn no_wake_up_is_lost_between_a_look_and_the_wait() {
    let topic = topic(1);
    for round in 0..500 {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                topic.append_to(0, [].as_slice()).unwrap();
            });
            barrier.wait();
            let pulled = topic.pull_wait(0, round, 1, NEVER).unwrap();
            assert_eq!(pulled.status, PullStatus::Found, "round {round}");
        });
    }
}

#[test]
fn a_held_pull_is_told_once_and_only_when_its_offset_arrives() {
    let topic = topic(1);
    let told = Arc::new(AtomicU32::new(0));
    let hold = |offset| {
        let told = Arc::clone(&told);
        topic.hold_pull(0, offset, move || _ = told.fetch_add(1, Ordering::SeqCst)).unwrap()
    };
    hold(1);
    append_n(&topic, 0, 1);
    assert_eq!(told.load(Ordering::SeqCst), 0, "offset 1 is still to come");
    append_n(&topic, 0, 1);
    assert_eq!(told.load(Ordering::SeqCst), 1);
    append_n(&topic, 0, 3);
    assert_eq!(told.load(Ordering::SeqCst), 1, "a held pull is answered once");
    hold(4);
    assert_eq!(told.load(Ordering::SeqCst), 2, "there already: told from the call itself");
}

// A callback under the broker's lock would deadlock here.
#[test]
fn a_held_pull_may_use_the_broker_when_it_is_told() {
    let topic = topic(1);
    let (sender, receiver) = mpsc::channel();
    let again = Arc::clone(&topic);
    let wake = move || {
        let pulled = again.pull(0, 0, 32).unwrap();
        again.append_to(0, b"reply".as_slice()).unwrap();
        sender.send(pulled.messages.len()).unwrap();
    };
    topic.hold_pull(0, 0, wake).unwrap();
    topic.append_to(0, b"request".as_slice()).unwrap();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(topic.max_offset(0), Ok(2));
}

#[test]
fn held_pulls_are_limited_and_the_one_too_many_is_never_told() {
    let topic = topic(1);
    let told = Arc::new(AtomicU32::new(0));
    let hold = || {
        let told = Arc::clone(&told);
        topic.hold_pull(0, 0, move || _ = told.fetch_add(1, Ordering::SeqCst))
    };
    for _ in 0..HELD_PULLS_MAX {
        hold().unwrap();
    }
    assert_eq!(hold(), Err(BrokerError::TooManyHeld));
    append_n(&topic, 0, 1);
    assert_eq!(told.load(Ordering::SeqCst) as usize, HELD_PULLS_MAX);
    assert!(hold().is_ok(), "the places are free again");
}

#[test]
fn a_cancelled_pull_is_never_told_and_frees_its_place() {
    let topic = topic(1);
    let told = Arc::new(AtomicU32::new(0));
    let hold = || {
        let told = Arc::clone(&told);
        topic.hold_pull(0, 0, move || _ = told.fetch_add(1, Ordering::SeqCst)).unwrap()
    };
    for _ in 0..2 * HELD_PULLS_MAX {
        let held = hold();
        assert!(topic.cancel_pull(held));
    }
    assert_eq!(Arc::strong_count(&told), 1, "the callbacks are gone");
    let (kept, cancelled) = (hold(), hold());
    assert!(topic.cancel_pull(cancelled));
    append_n(&topic, 0, 1);
    assert_eq!(told.load(Ordering::SeqCst), 1);
    assert!(!topic.cancel_pull(kept), "told already");
    assert!(!topic.cancel_pull(hold()), "told at once");
}

#[test]
fn shutting_down_wakes_everybody_and_keeps_the_offsets() {
    let broker = Broker::new();
    let topic = broker.create_topic("orders", 1).unwrap();
    append_n(&topic, 0, 2);
    let (sender, receiver) = mpsc::channel();
    topic.hold_pull(0, 2, move || sender.send(()).unwrap()).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| topic.pull_wait(0, 2, 32, NEVER));
        thread::sleep(Duration::from_millis(10));
        broker.shut_down();
        assert_eq!(waiting.join().unwrap(), Err(BrokerError::ShutDown));
    });
    assert!(receiver.try_recv().is_ok());
    assert_eq!(topic.append("k", [].as_slice()), Err(BrokerError::ShutDown));
    assert_eq!(topic.pull(0, 0, 1), Err(BrokerError::ShutDown));
    assert_eq!(broker.create_topic("late", 1).unwrap_err(), BrokerError::ShutDown);
    topic.commit_offset("g", 0, 1).unwrap();
    assert_eq!(topic.committed_offset("g", 0), Ok(Some(1)));
}

#[test]
fn concurrent_appends_and_pulls_lose_and_reorder_nothing() {
    const WRITERS: u32 = 3;
    const EACH: u32 = 2_000;
    let topic = topic(1);
    let total = i64::from(WRITERS * EACH);
    let seen = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let topic = &topic;
            scope.spawn(move || {
                for number in 0..EACH {
                    let body = [writer.to_le_bytes(), number.to_le_bytes()].concat();
                    topic.append_to(0, body).unwrap();
                }
            });
        }
        let mut seen = Vec::new();
        while (seen.len() as i64) < total {
            let pulled = topic.pull_wait(0, seen.len() as i64, 32, NEVER).unwrap();
            assert_eq!(pulled.status, PullStatus::Found);
            seen.extend(pulled.messages);
        }
        seen
    });
    assert_eq!(offsets(&seen), (0..total).collect::<Vec<_>>());
    let mut next = [0; WRITERS as usize];
    for message in seen {
        let (writer, number) = message.body().split_at(4);
        let writer = u32::from_le_bytes(writer.try_into().unwrap()) as usize;
        assert_eq!(u32::from_le_bytes(number.try_into().unwrap()), next[writer]);
        next[writer] += 1;
    }
    assert_eq!(next, [EACH; WRITERS as usize]);
}
