//! A thread that is parked while it holds a role, or while it is inside a call, stops nobody in
//! another role. (Every step at which a thread can be stopped is gone through by
//! `tests/shuttle/stopped.rs`; here it is real.)

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use lanekeeper::process_queue::{
    Committed, Config, Incoming, Mode, ProcessQueue, Refusal, TurnEnd,
};

use crate::roles::Seen;

/// A payload whose release parks the thread that does it.
struct Parking(Option<Arc<Gate>>);

/// Tells that a thread is parked, and lets it go.
struct Gate {
    parked: SyncSender<()>,
    go: Mutex<Receiver<()>>,
}

impl Drop for Parking {
    fn drop(&mut self) {
        if let Some(gate) = &self.0 {
            gate.parked.send(()).expect("somebody waits for it");
            gate.go.lock().unwrap().recv().expect("somebody lets it go");
        }
    }
}

fn plain(offsets: std::ops::Range<i64>) -> Vec<Incoming<Parking>> {
    offsets.map(|offset| Incoming::new(offset, Parking(None), 1)).collect()
}

/// A listener sleeps over a batch of its turn: the puller, observers and the closer go on.
pub fn listener() {
    let config = Config { mode: Mode::Orderly, ..Config::default() };
    let queue = ProcessQueue::new(config).expect("a valid configuration");
    let mut puller = queue.puller().expect("the only puller");
    puller.put(&mut plain(0..100), 0, None).expect("open");
    let (parked, is_parked) = sync_channel(0);
    let (let_go, go) = sync_channel(0);
    thread::scope(|scope| {
        let queue = &queue;
        let sleeper = scope.spawn(move || {
            let mut turn = queue.begin_turn(0).expect("the first turn");
            let batch = turn.take(10, 0).expect("ready");
            parked.send(()).expect("the main thread waits");
            go.recv().expect("the main thread lets go");
            assert_eq!(batch.count(), 10, "still lent");
            assert_eq!(turn.commit(0), Err(Refusal::Closed));
            turn.end(0)
        });
        is_parked.recv().expect("the listener runs");
        assert_eq!(queue.begin_turn(0).err(), Some(Refusal::Busy), "its own role is taken");
        for first in (100..100_000).step_by(100) {
            puller.put(&mut plain(first..first + 100), 0, None).expect("open");
        }
        let cut = queue.snapshot(0);
        assert_eq!((cut.in_flight_count, cut.count, cut.safe_offset), (10, 100_000, 0));
        let closed = queue.close(0).expect("the only close");
        assert_eq!((closed.safe_offset, closed.hand_over), (0, false));
        assert_eq!(queue.payloads_live(), 10, "all but what is lent is released");
        let_go.send(()).expect("the listener waits");
        assert_eq!(sleeper.join().expect("the listener"), TurnEnd::HandOver);
    });
    assert_eq!(queue.payloads_live(), 0);
}

/// A payload's own release code sleeps inside a `complete` (W12, C4): other consumers, the puller,
/// observers and the closer go on, and what it finished counts as finished.
pub fn release() {
    let config = Config { mode: Mode::Concurrent, consumers_max: 3, ..Config::default() };
    let queue = ProcessQueue::new(config).expect("a valid configuration");
    let (parked, is_parked) = sync_channel(0);
    let (let_go, go) = sync_channel(0);
    let gate = Arc::new(Gate { parked, go: Mutex::new(go) });
    let mut puller = queue.puller().expect("the only puller");
    let mut batch = vec![Incoming::new(0, Parking(Some(gate)), 1)];
    batch.extend(plain(1..1_000));
    puller.put(&mut batch, 0, None).expect("open");
    let seen = Seen::default();
    thread::scope(|scope| {
        let (queue, seen) = (&queue, &seen);
        let sleeper = scope.spawn(move || {
            let mut consumer = queue.consumer().expect("a free place");
            let first = consumer.take(1, 0).expect("ready").next().expect("one").offset;
            seen.add(first);
            consumer.complete(&[first], 0).expect("open when it finished")
        });
        is_parked.recv().expect("the payload is being released");
        assert_eq!(queue.safe_offset(), 1, "it is finished for everybody else");
        puller.put(&mut plain(1_000..2_000), 0, None).expect("open");
        let mut consumer = queue.consumer().expect("a free place");
        while let Ok(batch) = consumer.take(7, 0) {
            let offsets: Vec<i64> = batch.map(|message| message.offset).collect();
            offsets.iter().for_each(|offset| seen.add(*offset));
            consumer.complete(&offsets, 0).expect("open");
        }
        assert_eq!((seen.len(), queue.count(), queue.safe_offset()), (2_000, 0, 2_000));
        assert_eq!(queue.close(0).expect("the only close").safe_offset, 2_000);
        let_go.send(()).expect("the release waits");
        assert_eq!(sleeper.join().expect("the sleeper").finished, 1);
    });
    orderly_release();
}

/// The same in a `commit`: the role is given back, or at least nobody else needs it.
fn orderly_release() {
    let queue = ProcessQueue::new(Config::default()).expect("a valid configuration");
    let (parked, is_parked) = sync_channel(0);
    let (let_go, go) = sync_channel(0);
    let gate = Arc::new(Gate { parked, go: Mutex::new(go) });
    let mut puller = queue.puller().expect("the only puller");
    puller.put(&mut vec![Incoming::new(0, Parking(Some(gate)), 1)], 0, None).expect("open");
    thread::scope(|scope| {
        let queue = &queue;
        let sleeper = scope.spawn(move || {
            let mut turn = queue.begin_turn(0).expect("the first turn");
            turn.take(1, 0).expect("ready");
            turn.commit(0).expect("open when it finished")
        });
        is_parked.recv().expect("the payload is being released");
        puller.put(&mut plain(1..200), 0, None).expect("open");
        assert_eq!((queue.safe_offset(), queue.count()), (1, 199));
        assert_eq!(queue.close(0).expect("the only close").safe_offset, 1);
        let_go.send(()).expect("the release waits");
        let committed = sleeper.join().expect("the sleeper");
        assert_eq!(committed, Committed::Finished { safe_offset: 1, finished: 1 });
    });
}
