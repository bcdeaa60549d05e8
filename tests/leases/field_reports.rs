//! Faults that people reported about locks and leases, each as the smallest scenario here. A test
//! bears the name of the public report; each stands for its whole kind.

use std::sync::{Arc, mpsc};
use std::thread;

use lanekeeper::lease::{Answer, LeaseClient, LeaseRefusal, Told};
use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue, Refusal, TurnEnd};
use lanekeeper::queue_lock::HandOver;

use crate::{Broker, lock_table, named};

/// apache/rocketmq#4086: the consume lock ended with the listener, before the commit, so the queue
/// was handed over in between. Here a turn covers both: the hand-over is told at its end, and what
/// it commits after the close is not stored.
#[test]
fn rocketmq_4086_the_hand_over_waits_until_the_commit_is_done() {
    let (table, id) = lock_table();
    let config = Config { mode: Mode::Orderly, start_offset: 10, ..Config::default() };
    let queue = ProcessQueue::<u64>::new(config).unwrap();
    queue.puller().unwrap().put(&mut vec![Incoming::new(10, 0, 1)], 0, None).unwrap();
    table.open(id, None, 1).unwrap();

    let lock = table.begin(id, None).unwrap();
    let mut turn = queue.begin_turn(0).unwrap();
    assert_eq!(turn.take(1, 0).unwrap().len(), 1);
    // The other thread: the queue is given away. Nothing is due yet.
    assert_eq!(table.close(id, None, 1), Ok(HandOver::AtEndOfTurn));
    assert_eq!(queue.close(0).unwrap().safe_offset, 10);
    assert_eq!(turn.commit(0), Err(Refusal::Closed), "not counted, so not stored");
    assert_eq!(turn.end(0), TurnEnd::HandOver);
    assert_eq!(lock.end(), TurnEnd::HandOver);
    assert_eq!(queue.safe_offset(), 10);
}

/// apache/rocketmq#2621: the broker gave the lock, and the new queue object did not know. The grant
/// is there when the assignment is created, and dates from the sending.
#[test]
fn rocketmq_2621_a_new_assignment_may_consume_at_once() {
    let mut client = LeaseClient::new();
    client.want("q", "broker", 1, 0).unwrap();
    let request = client.due(0).remove(0);
    let told = client.answered(request.id, &[Answer { queue: "q", token: None }], 0);
    assert_eq!(told, [Told::Granted { queue: "q", generation: 1 }]);
    // Now the host creates the queue.
    assert!(client.is_valid(&"q", 1, 0));
}

/// apache/rocketmq-client-go#994: locks not released at shutdown or unsubscription. There is one
/// way out, and it says what to give back.
#[test]
fn rocketmq_client_go_994_the_next_owner_need_not_wait() {
    let broker = Broker::new();
    let mut client = LeaseClient::new();
    for queue in 0..3_usize {
        client.want(queue, "broker", 1, 0).unwrap();
        broker.acquire(0, queue, 0).unwrap();
    }
    assert_eq!(broker.acquire(1, 0, 1), Err(LeaseRefusal::Held));
    let release = client.forget(&[0, 1, 2]);
    let queues: Vec<_> = release["broker"].iter().map(|&queue| broker.queues[queue]).collect();
    let given_back = broker.table.release_batch(broker.group, &queues, broker.clients[0]);
    assert_eq!(given_back, Ok(3));
    assert!((0..3).all(|queue| broker.acquire(1, queue, 1).is_ok()));
}

/// apache/rocketmq#10750: the cleanup of expired locks removed one that was taken again meanwhile.
/// The model `sweep_reacquire` tries every interleaving; this is the order of the report.
#[test]
fn rocketmq_10750_a_sweep_removes_only_what_it_judged() {
    let broker = Broker::new();
    broker.acquire(0, 0, 0).unwrap();
    broker.acquire(0, 1, 0).unwrap();
    broker.acquire(0, 0, 60_001).unwrap();
    assert_eq!(broker.table.sweep(60_001), 1, "the other one");
    assert_eq!(broker.acquire(1, 0, 60_001), Err(LeaseRefusal::Held));
    assert!(broker.acquire(1, 1, 60_001).is_ok());
    // Looking does not renew.
    assert_eq!(broker.table.all_expired(broker.group, 120_002), Ok(true));
    assert!(broker.acquire(1, 0, 120_002).is_ok());
}

/// The same with real threads: two holders at once would both be told in one period.
#[test]
fn rocketmq_10750_threads_that_sweep_and_acquire_leave_one_holder() {
    let broker = Broker::new();
    thread::scope(|scope| {
        let (stop, stopped) = mpsc::channel::<()>();
        let sweeper = scope.spawn({
            let broker = &broker;
            move || {
                let mut rounds = 0_i64;
                while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                    broker.table.sweep(rounds % 2_000 * 60_001);
                    rounds += 1;
                }
            }
        });
        for period in 0..2_000_i64 {
            let now_ms = period * 60_001;
            let given = [0, 1].map(|client| broker.acquire(client, 0, now_ms).is_ok());
            // The sweeper may be ahead and free it in between: then the second one is told too,
            // at a time when the first one's lease was over for the sweeper.
            assert!(given.contains(&true), "period {period}");
        }
        drop(stop);
        sweeper.join().unwrap();
    });
    let (group, [a, b, c]) = (broker.group, broker.clients);
    broker.table.sweep(i64::MAX);
    for client in [a, b, c] {
        broker.table.release_client(client).unwrap();
    }
    broker.table.release_group(group).unwrap();
    assert_eq!(broker.table.name_counts(), (0, 0), "every reference was given back once");
}

/// apache/rocketmq#8704: a branch that returned early left the queue locked. Here the turn is a
/// value whose end is that of its scope, whatever happens in it.
#[test]
fn rocketmq_8704_a_turn_ends_whatever_happens_in_it() {
    let (table, queue) = lock_table();
    table.open(queue, None, 1).unwrap();
    let early = |fail: bool| -> Result<(), Refusal> {
        let _turn = table.begin(queue, None)?;
        if fail { Err(Refusal::Empty) } else { Ok(()) }
    };
    assert_eq!(early(false), Ok(()));
    assert_eq!(early(true), Err(Refusal::Empty));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _turn = table.begin(queue, None).unwrap();
        panic!("the listener");
    }));
    assert!(panic.is_err());
    assert_eq!(table.held_count(), 0);
    let turn = table.begin(queue, None).unwrap();
    assert_eq!(table.close(queue, None, 1), Ok(HandOver::AtEndOfTurn));
    drop(turn);
    assert_eq!(table.held_count(), 0);
    assert_eq!(table.begin(queue, None).err(), Some(Refusal::Closed));
}

/// mxsm/rocketmq-rust#8806: a lock of the whole table, held while waiting for one queue. Here a
/// turn that stands still keeps its own queue busy and no other; and a late answer for an old
/// assignment is told from the new one's.
#[test]
fn rocketmq_rust_8806_a_turn_that_stands_still_holds_up_no_other_queue() {
    let (table, stuck) = lock_table();
    let other = table.queues().intern(&named(1)).unwrap();
    table.open(stuck, None, 1).unwrap();
    table.open(other, None, 1).unwrap();
    let table = Arc::new(table);
    let (reached, wait) = mpsc::sync_channel::<()>(0);
    let (let_go, go_on) = mpsc::channel::<()>();
    let holder = thread::spawn({
        let table = Arc::clone(&table);
        move || {
            let turn = table.begin(stuck, None).unwrap();
            reached.send(()).unwrap();
            go_on.recv().unwrap();
            turn.end()
        }
    });
    wait.recv().unwrap();
    assert_eq!(table.close(stuck, None, 1), Ok(HandOver::AtEndOfTurn));
    assert_eq!(table.begin(other, None).unwrap().end(), TurnEnd::Nothing);
    assert_eq!(table.close(other, None, 1), Ok(HandOver::Now));
    let_go.send(()).unwrap();
    assert_eq!(holder.join().unwrap(), TurnEnd::HandOver);
}
