//! A whole client around one queue: who is told to run a turn runs one, nobody else does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lanekeeper::process_queue::{
    Committed, Config, Incoming, Mode, Outcome, ProcessQueue, Refusal, Target, Turn, TurnEnd,
};
use shuttle::thread;

use crate::kit::payload::{Ledger, Token};
use crate::kit::record::Queue;
use crate::kit::scenario::Random;

const BATCHES: u64 = 8;

/// What the host knows. Standard atomics: the schedulers need not explore the host.
struct Host {
    queue: Queue,
    ledger: Arc<Ledger>,
    seed: u64,
    /// Turns somebody was told to run and nobody runs yet.
    tasks: AtomicU64,
    running: AtomicU64,
    pulled: AtomicBool,
    put: AtomicU64,
    finished: AtomicU64,
    hand_overs: AtomicU64,
    /// Highest first delivery so far.
    first_deliveries: AtomicI64,
    /// How often each offset was finished.
    wins: Mutex<BTreeMap<i64, u32>>,
    highest_safe: AtomicI64,
}

impl Host {
    fn new(mode: Mode, seed: u64) -> Arc<Self> {
        let config = Config { mode, consumers_max: 3, ..Config::default() };
        Arc::new(Self {
            queue: ProcessQueue::new(config).expect("a valid configuration"),
            ledger: Ledger::new(),
            seed,
            tasks: AtomicU64::new(0),
            running: AtomicU64::new(0),
            pulled: AtomicBool::new(false),
            put: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            hand_overs: AtomicU64::new(0),
            first_deliveries: AtomicI64::new(-1),
            wins: Mutex::new(BTreeMap::new()),
            highest_safe: AtomicI64::new(0),
        })
    }

    fn random(&self, thread: u64) -> Random {
        Random(self.seed ^ (thread << 40))
    }

    fn told_safe(&self, safe: i64) {
        self.highest_safe.fetch_max(safe, Ordering::SeqCst);
    }

    fn finish(&self, offset: i64) {
        *self.wins.lock().unwrap().entry(offset).or_default() += 1;
        self.finished.fetch_add(1, Ordering::SeqCst);
    }

    fn pull(&self) {
        let mut random = self.random(1);
        let mut puller = self.queue.puller().expect("the only puller");
        let mut next = 0;
        for _ in 0..BATCHES {
            let mut batch = Vec::new();
            for _ in 0..random.below(5) {
                next += i64::from(random.once_in(4)) * random.below(9) as i64;
                batch.push(Incoming::new(next, self.ledger.token(next), 5));
                next += 1;
            }
            let count = batch.len() as u64;
            match puller.put(&mut batch, 0, None) {
                Ok(put) => {
                    assert_eq!(u64::from(put.accepted), count);
                    self.put.fetch_add(count, Ordering::SeqCst);
                    self.tasks.fetch_add(u64::from(put.schedule), Ordering::SeqCst);
                }
                Err(_) => break,
            }
            if random.once_in(3) {
                next += random.below(5) as i64;
                let Ok(advanced) = puller.advance(next, 0) else { break };
                advanced.safe_offset.inspect(|safe| self.told_safe(*safe));
            }
        }
        self.pulled.store(true, Ordering::SeqCst);
    }

    /// One thread of the pool.
    fn work(&self, thread: u64) {
        let mut random = self.random(thread);
        loop {
            let pulled = self.pulled.load(Ordering::SeqCst);
            let running = self.running.load(Ordering::SeqCst);
            let claimed = self
                .tasks
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |tasks| tasks.checked_sub(1));
            if claimed.is_ok() {
                self.running.fetch_add(1, Ordering::SeqCst);
                self.run_turn(&mut random);
                self.running.fetch_sub(1, Ordering::SeqCst);
            } else if pulled && running == 0 {
                return;
            } else {
                thread::yield_now();
            }
        }
    }

    fn run_turn(&self, random: &mut Random) {
        let mut turn = match self.queue.begin_turn(0) {
            Ok(turn) => turn,
            Err(refusal) => {
                assert!(matches!(refusal, Refusal::Busy | Refusal::Closed), "{refusal:?}");
                return;
            }
        };
        for _ in 0..2 {
            let taken = turn
                .take(1 + random.below(4) as usize, 0)
                .map(|batch| batch.map(|message| self.listen(&message)).collect::<Vec<_>>());
            match taken {
                Ok(offsets) => self.conclude(&mut turn, random, &offsets),
                Err(_) => break,
            }
        }
        match turn.end(0) {
            TurnEnd::Nothing => {}
            TurnEnd::RunAgain => {
                self.tasks.fetch_add(1, Ordering::SeqCst);
            }
            TurnEnd::HandOver => {
                self.hand_overs.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// First deliveries ascend, whoever runs the turn.
    fn listen(&self, message: &lanekeeper::process_queue::Message<'_, Token>) -> i64 {
        message.touch(message.offset);
        if message.delivery == 1 {
            let before = self.first_deliveries.swap(message.offset, Ordering::SeqCst);
            assert!(before < message.offset, "{} after {before}", message.offset);
        }
        message.offset
    }

    fn conclude(&self, turn: &mut Turn<'_, Token>, random: &mut Random, offsets: &[i64]) {
        match random.below(6) {
            0 => drop(turn.rollback(0)),
            1 => {
                let _ = turn.requeue(&offsets[offsets.len() / 2..], 1, 0);
            }
            2 => {
                let mut won = Vec::new();
                let last = [offsets[offsets.len() - 1]];
                let each = |_, outcome| won.extend((outcome == Outcome::Won).then_some(last[0]));
                if let Ok(done) = turn.complete_with(&last, 0, each, |_, token| drop(token)) {
                    self.told_safe(done.safe_offset);
                }
                won.into_iter().for_each(|offset| self.finish(offset));
            }
            _ => {
                let mut handed = Vec::new();
                let answer = turn.commit_with(0, |offset, token| {
                    token.touch(offset);
                    handed.push(offset);
                });
                if let Ok(Committed::Finished { safe_offset, .. }) = answer {
                    handed.into_iter().for_each(|offset| self.finish(offset));
                    self.told_safe(safe_offset);
                }
            }
        }
    }

    fn observe(&self) {
        let (mut safe, mut pull) = (0, 0);
        for _ in 0..6 {
            let told = self.queue.safe_offset();
            let cut = self.queue.snapshot(0);
            let parts = cut.cached_count + cut.in_flight_count + cut.claimed_count;
            assert_eq!(cut.count, parts, "{cut:?}");
            assert_eq!(cut.bytes, cut.count * 5, "{cut:?}");
            assert!(cut.safe_offset >= told && told >= safe, "{cut:?} after {told} after {safe}");
            assert!(cut.pull_offset >= pull && cut.safe_offset <= cut.pull_offset, "{cut:?}");
            assert!(cut.oldest_offset.is_none_or(|oldest| cut.safe_offset <= oldest), "{cut:?}");
            (safe, pull) = (cut.safe_offset, cut.pull_offset);
        }
    }

    fn close(&self) {
        let mut random = self.random(9);
        for _ in 0..random.below(60) {
            thread::yield_now();
        }
        let closed = self.queue.close(0).expect("the only close");
        assert!(closed.safe_offset >= self.highest_safe.load(Ordering::SeqCst));
        self.hand_overs.fetch_add(u64::from(closed.hand_over), Ordering::SeqCst);
    }

    /// Concurrent mode: takes, completes, claims, requeues, until everything is finished or closed.
    fn consume(&self, thread: u64) {
        let mut random = self.random(thread);
        let Ok(mut consumer) = self.queue.consumer() else { return };
        loop {
            let pulled = self.pulled.load(Ordering::SeqCst);
            let taken = consumer.take(1 + random.below(3) as usize, 0).map(|batch| {
                let targets = batch.map(|message| {
                    message.touch(message.offset);
                    Target { offset: message.offset, delivery: message.delivery }
                });
                targets.collect::<Vec<_>>()
            });
            let targets = match taken {
                Ok(targets) => targets,
                Err(Refusal::Closed) => return,
                Err(Refusal::Empty) if pulled && self.queue.count() == 0 => return,
                Err(_) => {
                    thread::yield_now();
                    continue;
                }
            };
            for target in targets {
                self.decide(&mut consumer, &mut random, target);
            }
        }
    }

    fn decide(
        &self,
        consumer: &mut lanekeeper::process_queue::Consumer<'_, Token>,
        random: &mut Random,
        target: Target,
    ) {
        let won = |outcome: Outcome| outcome == Outcome::Won;
        match random.below(6) {
            0 => drop(consumer.requeue(&[target], 1, 0)),
            1 => {
                let Ok(Ok(claim)) = consumer.claim(target, 0) else { return };
                claim.touch(target.offset);
                let sent = random.once_in(2);
                match claim.settle(sent, 0, 0) {
                    Ok(settled) => {
                        assert_eq!(settled.finished, u32::from(sent), "settled by its holder");
                        self.told_safe(settled.safe_offset);
                        (0..settled.finished).for_each(|_| self.finish(target.offset));
                    }
                    Err(refusal) => assert_eq!(refusal, Refusal::Closed),
                }
            }
            _ => {
                let mut wins = 0;
                let each = |_, outcome| wins += u32::from(won(outcome));
                if let Ok(done) = consumer.complete_with(&[target], 0, each, |_, token| drop(token))
                {
                    self.told_safe(done.safe_offset);
                }
                (0..wins).for_each(|_| self.finish(target.offset));
            }
        }
    }

    /// After all threads: conservation, exactly one hand-over, nothing lost, nothing finished
    /// twice.
    fn settle(self: Arc<Self>, mode: Mode) {
        let closed = self.queue.is_closed();
        let (put, finished) =
            (self.put.load(Ordering::SeqCst), self.finished.load(Ordering::SeqCst));
        let wins = self.wins.lock().unwrap();
        assert!(wins.values().all(|count| *count == 1), "finished twice: {wins:?}");
        drop(wins);
        if closed {
            assert_eq!(self.ledger.live(), 0, "closed, and nothing is lent");
            let expected = u64::from(mode == Mode::Orderly);
            assert!(self.hand_overs.load(Ordering::SeqCst) >= expected, "hand-over never told");
            assert!(self.hand_overs.load(Ordering::SeqCst) <= 1, "hand-over told twice");
        } else if mode == Mode::Concurrent {
            assert_eq!((put, self.queue.count()), (finished, 0), "all is finished");
            assert_eq!(self.queue.safe_offset(), self.queue.pull_offset());
        } else {
            let cut = self.queue.snapshot(0);
            assert_eq!(cut.cached_count, 0, "something is ready and nobody was told: {cut:?}");
            assert_eq!(put, finished + cut.count, "in = out + held");
        }
        assert!(self.queue.safe_offset() >= self.highest_safe.load(Ordering::SeqCst));
        let ledger = Arc::clone(&self.ledger);
        drop(Arc::into_inner(self).expect("the threads have ended"));
        ledger.check_settled();
    }
}

/// A thread of the client.
type Script = fn(&Host);

fn run(mode: Mode, seed: u64, scripts: &[Script]) {
    let host = Host::new(mode, seed);
    let threads: Vec<_> = scripts
        .iter()
        .map(|script| {
            let (script, host) = (*script, Arc::clone(&host));
            thread::spawn(move || script(&host))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread of the client");
    }
    host.settle(mode);
}

/// Every other seed closes the queue in the middle.
pub fn orderly(seed: u64) {
    let all: [Script; 5] =
        [Host::pull, |host| host.work(2), |host| host.work(3), Host::observe, Host::close];
    run(Mode::Orderly, seed, &all[..4 + (seed % 2) as usize]);
}

/// As above.
pub fn concurrent(seed: u64) {
    let all: [Script; 6] = [
        Host::pull,
        |host| host.consume(2),
        |host| host.consume(3),
        |host| host.consume(4),
        Host::observe,
        Host::close,
    ];
    run(Mode::Concurrent, seed, &all[..5 + (seed % 2) as usize]);
}
