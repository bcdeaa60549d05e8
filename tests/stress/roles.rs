//! All roles at once, as fast as they can.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use lanekeeper::process_queue::{
    Committed, Config, Incoming, Mode, Outcome, ProcessQueue, Refusal, Target,
};

use crate::duration;
use crate::payload::{Ledger, Token};

/// Messages cached before the puller waits, as upstream's flow control does.
const CACHED_MAX: u64 = 1_000;

struct Host {
    queue: ProcessQueue<Token>,
    ledger: Arc<Ledger>,
    /// No more is pulled.
    over: AtomicBool,
    pulled: AtomicBool,
    put: AtomicU64,
    finished: AtomicU64,
    tasks: AtomicU64,
    highest_safe: AtomicI64,
    hand_overs: AtomicU64,
}

impl Host {
    fn new(mode: Mode) -> Self {
        let config = Config { mode, consumers_max: 4, ..Config::default() };
        Self {
            queue: ProcessQueue::new(config).expect("a valid configuration"),
            ledger: Ledger::new(),
            over: AtomicBool::new(false),
            pulled: AtomicBool::new(false),
            put: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            tasks: AtomicU64::new(0),
            highest_safe: AtomicI64::new(0),
            hand_overs: AtomicU64::new(0),
        }
    }

    fn pull(&self) {
        let mut puller = self.queue.puller().expect("the only puller");
        let mut next = 0;
        for round in 0_i64.. {
            if self.over.load(Ordering::Relaxed) {
                break;
            }
            if self.queue.count() > CACHED_MAX {
                thread::yield_now();
                continue;
            }
            let mut batch = Vec::new();
            for index in 0..1 + round % 32 {
                next += if index % 7 == 6 { 97 } else { 0 };
                batch.push(Incoming::new(next, self.ledger.token(next), 3));
                next += 1;
            }
            let count = batch.len() as u64;
            let Ok(put) = puller.put(&mut batch, round, Some(next + 10)) else { break };
            assert_eq!(u64::from(put.accepted), count);
            self.put.fetch_add(count, Ordering::Relaxed);
            self.tasks.fetch_add(u64::from(put.schedule), Ordering::AcqRel);
            if round % 11 == 0 {
                next += 5;
                if puller.advance(next, round).is_err() {
                    break;
                }
            }
        }
        self.pulled.store(true, Ordering::Release);
    }

    fn safe_told(&self, safe: i64) {
        self.highest_safe.fetch_max(safe, Ordering::AcqRel);
    }

    fn done(&self) -> bool {
        self.pulled.load(Ordering::Acquire) && (self.queue.count() == 0 || self.queue.is_closed())
    }

    /// One of the threads that run turns when told to.
    fn work(&self) {
        let mut round = 0_u64;
        while !self.done() {
            let task = self
                .tasks
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |tasks| tasks.checked_sub(1));
            if task.is_err() {
                thread::yield_now();
                continue;
            }
            let Ok(mut turn) = self.queue.begin_turn(0) else { continue };
            round += 1;
            self.drain(&mut turn, round);
            match turn.end(0) {
                lanekeeper::process_queue::TurnEnd::Nothing => {}
                lanekeeper::process_queue::TurnEnd::RunAgain => {
                    self.tasks.fetch_add(1, Ordering::AcqRel);
                }
                lanekeeper::process_queue::TurnEnd::HandOver => {
                    self.hand_overs.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
    }

    fn drain(&self, turn: &mut lanekeeper::process_queue::Turn<'_, Token>, round: u64) {
        for step in 0..8 {
            let taken = turn.take(1 + (round % 40) as usize, 0).map(|batch| {
                batch
                    .map(|message| {
                        message.touch(message.offset);
                        message.offset
                    })
                    .collect::<Vec<_>>()
            });
            let Ok(offsets) = taken else { return };
            match (round + step) % 9 {
                0 => drop(turn.rollback(0)),
                1 => drop(turn.requeue(&offsets[offsets.len() / 2..], 1, 0)),
                2 => {
                    if let Ok(done) = turn.complete(&offsets[offsets.len() - 1..], 0) {
                        self.finished.fetch_add(u64::from(done.finished), Ordering::Relaxed);
                        self.safe_told(done.safe_offset);
                    }
                }
                _ => {}
            }
            turn.in_flight().for_each(|message| message.touch(message.offset));
            if let Ok(Committed::Finished { safe_offset, finished }) = turn.commit(0) {
                self.finished.fetch_add(u64::from(finished), Ordering::Relaxed);
                self.safe_told(safe_offset);
            }
        }
    }

    /// One of several consumers: takes, completes out of order, claims, requeues, gives back.
    fn consume(&self) {
        let mut consumer = self.queue.consumer().expect("a free place");
        let mut round = 0_u64;
        while !self.done() {
            round += 1;
            let taken = consumer.take(1 + (round % 20) as usize, 0).map(|batch| {
                let target = |offset, delivery| Target { offset, delivery };
                batch
                    .map(|message| {
                        message.touch(message.offset);
                        target(message.offset, message.delivery)
                    })
                    .collect::<Vec<_>>()
            });
            let Ok(mut targets) = taken else {
                thread::yield_now();
                continue;
            };
            targets.reverse();
            self.decide(&mut consumer, &targets, round);
        }
    }

    fn decide(
        &self,
        consumer: &mut lanekeeper::process_queue::Consumer<'_, Token>,
        targets: &[Target],
        round: u64,
    ) {
        let (first, rest) = (targets[0], &targets[1..]);
        match round % 5 {
            0 => drop(consumer.requeue(&[first], 1, 0)),
            1 => {
                if let Ok(Ok(claim)) = consumer.claim(first, 0) {
                    claim.touch(first.offset);
                    if let Ok(done) = claim.settle(round.is_multiple_of(2), 0, 0) {
                        self.finished.fetch_add(u64::from(done.finished), Ordering::Relaxed);
                        self.safe_told(done.safe_offset);
                    }
                }
            }
            _ => {
                let won = |outcome| u64::from(outcome == Outcome::Won);
                let mut wins = 0;
                let each = |_, outcome| wins += won(outcome);
                let sink = |offset, token: Token| token.touch(offset);
                if let Ok(done) = consumer.complete_with(&[first], 0, each, sink) {
                    self.safe_told(done.safe_offset);
                }
                self.finished.fetch_add(wins, Ordering::Relaxed);
            }
        }
        if let Ok(done) = consumer.complete(rest, 0) {
            self.finished.fetch_add(u64::from(done.finished), Ordering::Relaxed);
            self.safe_told(done.safe_offset);
        }
    }

    fn observe(&self) {
        let mut expired = Vec::new();
        let (mut safe, mut pull) = (0, 0);
        while !self.done() {
            let cut = self.queue.snapshot(0);
            let parts = cut.cached_count + cut.in_flight_count + cut.claimed_count;
            assert_eq!((cut.count, cut.bytes), (parts, parts * 3), "{cut:?}");
            assert!(safe <= cut.safe_offset && pull <= cut.pull_offset, "{cut:?}");
            assert!(cut.oldest_offset.is_none_or(|oldest| cut.safe_offset <= oldest), "{cut:?}");
            (safe, pull) = (cut.safe_offset, cut.pull_offset);
            // Errs upward by what is put while it is read: no bound here, but never an underflow.
            assert!(self.queue.count() < 1 << 40 && self.queue.bytes() < 1 << 40);
            assert!(self.queue.span() >= 0);
            self.queue.contains(safe + 3);
            expired.clear();
            self.queue.expired(1_000, 10, 8, &mut expired);
            assert!(expired.is_sorted_by(|a, b| a.offset < b.offset));
        }
    }

    fn settle(self) {
        let (put, finished) = (self.put.into_inner(), self.finished.into_inner());
        let held = self.queue.count();
        assert!(self.queue.safe_offset() >= self.highest_safe.into_inner());
        if self.queue.is_closed() {
            assert_eq!(held, 0);
            assert!(finished <= put);
            assert!(self.hand_overs.into_inner() <= 1);
        } else {
            assert_eq!((put, held), (finished, 0), "in = out");
            assert_eq!(self.queue.safe_offset(), self.queue.pull_offset());
        }
        assert_eq!((self.ledger.live(), self.queue.payloads_live()), (0, 0), "payloads");
        drop(self.queue);
        self.ledger.check_settled();
        println!("    {put} messages, {finished} finished");
    }
}

fn run(mode: Mode, consumers: usize, closes: bool) {
    let host = Host::new(mode);
    thread::scope(|scope| {
        let mut threads = vec![scope.spawn(|| host.pull()), scope.spawn(|| host.observe())];
        for _ in 0..consumers {
            threads.push(match mode {
                Mode::Orderly => scope.spawn(|| host.work()),
                Mode::Concurrent => scope.spawn(|| host.consume()),
            });
        }
        let started = Instant::now();
        while started.elapsed() < duration() / if closes { 20 } else { 1 } {
            thread::yield_now();
        }
        if closes {
            let closed = host.queue.close(0).expect("the only close");
            host.hand_overs.fetch_add(u64::from(closed.hand_over), Ordering::AcqRel);
            assert_eq!(host.queue.close(0).err(), Some(Refusal::Closed));
        }
        host.over.store(true, Ordering::Relaxed);
        // ThreadSanitizer does not see how a scope ends, but it sees a join.
        for thread in threads {
            thread.join().expect("a role ends well");
        }
    });
    host.settle();
}

/// Puller, two threads of a pool, observer.
pub fn orderly() {
    run(Mode::Orderly, 2, false);
}

/// Puller, three consumers, observer.
pub fn concurrent() {
    run(Mode::Concurrent, 3, false);
}

/// The same, many times, with a close while everything runs.
pub fn closed_in_the_middle() {
    for _ in 0..10 {
        run(Mode::Orderly, 2, true);
        run(Mode::Concurrent, 2, true);
    }
}

/// Offsets seen by all consumers together; used where each must come exactly once.
#[derive(Default)]
pub struct Seen(Mutex<HashSet<i64>>);

impl Seen {
    /// Panics if `offset` was seen before.
    pub fn add(&self, offset: i64) {
        assert!(self.0.lock().unwrap().insert(offset), "{offset} a second time");
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}
