//! Short random scripts, the same for real threads and for shuttle, made from a seed.

use std::sync::Arc;

use lanekeeper::process_queue::{
    Claim, Config, Consumer, Mode, ProcessQueue, Puller, Target, Turn,
};

use super::bounds;
use super::checker::{self, Order};
use super::history::{Event, Journal, Log};
use super::payload::{Ledger, Token};
use super::record::Queue;
use super::spec::Spec;

/// SplitMix64: small, and the same everywhere.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What a thread of the history does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Puller,
    Turns,
    Consumer,
    Anybody,
}

/// A history to be: threads with a seed each.
pub struct Scenario {
    pub mode: Mode,
    pub roles: Vec<Role>,
    pub calls: usize,
    pub seed: u64,
}

/// Everything a history is recorded on.
pub struct Stage {
    pub queue: Arc<Queue>,
    pub ledger: Arc<Ledger>,
    pub journal: Arc<Journal>,
    log: Log,
    start: Spec,
}

impl Scenario {
    /// One puller, two who consume, and somebody who looks, stops and closes; at most 12 calls.
    pub fn random(mode: Mode, seed: u64) -> Self {
        let consume = if mode == Mode::Orderly { Role::Turns } else { Role::Consumer };
        let mut random = Random(seed);
        let mut roles = vec![Role::Puller, consume, Role::Anybody];
        if random.once_in(2) {
            roles.push(consume);
        }
        Self { mode, calls: 12 / roles.len(), roles, seed }
    }

    /// The queue with a few messages in it already.
    pub fn stage(&self) -> Stage {
        let config = Config { mode: self.mode, consumers_max: 4, ..Config::default() };
        let journal = Journal::new();
        let stage = Stage {
            queue: Arc::new(ProcessQueue::new(config).expect("a valid configuration")),
            ledger: Ledger::new(),
            log: journal.log(0),
            journal,
            start: Spec::new(self.mode, 0),
        };
        let mut random = Random(self.seed ^ 1);
        stage.set_up(&mut random)
    }

    /// The script of one thread.
    pub fn perform(&self, index: usize, stage: &Parts) {
        let mut log = stage.journal.log(index + 1);
        let random = Random(self.seed ^ ((index as u64 + 2) << 32));
        let mut actor = Actor { log: &mut log, queue: &stage.queue, ledger: &stage.ledger, random };
        match self.roles[index] {
            Role::Puller => actor.pull(self.calls),
            Role::Turns => actor.run_turns(self.calls),
            Role::Consumer => actor.consume(self.calls),
            Role::Anybody => actor.look_around(self.calls),
        }
    }
}

/// What a thread needs of the stage.
#[derive(Clone)]
pub struct Parts {
    pub queue: Arc<Queue>,
    pub ledger: Arc<Ledger>,
    pub journal: Arc<Journal>,
}

impl Stage {
    fn set_up(mut self, random: &mut Random) -> Self {
        let count = random.below(4) as i64;
        let messages: Vec<_> = (0..count).map(|offset| (offset, 10 + offset as u32)).collect();
        let queue = Arc::clone(&self.queue);
        let mut puller = queue.puller().expect("nobody else pulls");
        self.log.put(&mut puller, &self.ledger, &messages).expect("open");
        self
    }

    pub fn parts(&self) -> Parts {
        Parts {
            queue: Arc::clone(&self.queue),
            ledger: Arc::clone(&self.ledger),
            journal: Arc::clone(&self.journal),
        }
    }

    /// After the threads: looks at everything, frees the queue, and judges. Answers the history.
    pub fn judge(self) -> Result<Vec<Event>, String> {
        let Self { queue, ledger, journal, mut log, start } = self;
        log.everything(&queue);
        drop(log);
        let (live, told) = (ledger.live(), queue.payloads_live());
        if live != told || live != queue.count() {
            return Err(format!(
                "{live} payloads live, {told} told, {} outstanding",
                queue.count()
            ));
        }
        let events = journal.take_events();
        checker::check(&start, &events, Order::RealTime)?;
        bounds::check(&events, Order::RealTime)?;
        drop(Arc::into_inner(queue).expect("the threads have ended"));
        ledger.check_settled();
        Ok(events)
    }
}

struct Actor<'s> {
    log: &'s mut Log,
    queue: &'s Queue,
    ledger: &'s Arc<Ledger>,
    random: Random,
}

impl Actor<'_> {
    fn pull(&mut self, calls: usize) {
        let Ok(mut puller) = self.queue.puller() else { return };
        for _ in 0..calls {
            self.pull_once(&mut puller);
        }
    }

    fn pull_once(&mut self, puller: &mut Puller<'_, Token>) {
        // Read through the role, not recorded: only the puller moves it.
        let from = self.queue.pull_offset();
        if self.random.once_in(4) {
            let next = from + self.random.below(4) as i64 - 1;
            let _ = self.log.advance(puller, next.max(0));
            return;
        }
        let mut offset = from - i64::from(self.random.once_in(4)) * self.random.below(3) as i64;
        let mut messages = Vec::new();
        for _ in 0..self.random.below(4) {
            offset += i64::from(self.random.once_in(3)) * self.random.below(70_000) as i64;
            messages.push((offset.max(0), 10 + offset.max(0) as u32));
            offset = offset.max(0) + 1;
        }
        let _ = self.log.put(puller, self.ledger, &messages);
    }

    fn run_turns(&mut self, calls: usize) {
        let mut left = calls;
        while left > 0 {
            left -= 1;
            let Ok(mut turn) = self.log.begin_turn(self.queue) else { continue };
            let inside = self.random.below(left as u64 + 1) as usize;
            let mut held: Vec<i64> = turn.in_flight().map(|message| message.offset).collect();
            for _ in 0..inside {
                self.turn_once(&mut turn, &mut held);
            }
            left = left.saturating_sub(inside);
            self.log.end_turn(turn);
        }
    }

    fn turn_once(&mut self, turn: &mut Turn<'_, Token>, held: &mut Vec<i64>) {
        let one = |random: &mut Random, held: &[i64]| match held.is_empty() {
            true => 0,
            false => held[random.below(held.len() as u64) as usize],
        };
        match self.random.below(8) {
            0..3 => {
                let n = 1 + self.random.below(3) as usize;
                if let Ok(got) = self.log.take(turn, n) {
                    held.extend(got.iter().map(|message| message.offset));
                }
            }
            3 | 4 => {
                let _ = self.log.commit(turn);
                held.clear();
            }
            5 => {
                let _ = self.log.rollback(turn);
                held.clear();
            }
            6 => {
                let offset = one(&mut self.random, held);
                let _ = self.log.requeue(turn, &[(offset, 0)], 1);
                held.retain(|other| *other != offset);
            }
            _ => {
                let offset = one(&mut self.random, held);
                let _ = self.log.complete_held(turn, &[(offset, 0)]);
                held.retain(|other| *other != offset);
            }
        }
    }

    fn consume(&mut self, calls: usize) {
        let Ok(mut consumer) = self.queue.consumer() else { return };
        let mut held = Vec::new();
        let mut claim = None;
        for _ in 0..calls {
            self.consume_once(&mut consumer, &mut held, &mut claim);
        }
        // An unsettled claim is settled by its drop, which is not recorded: settle it here.
        if let Some(claim) = claim {
            let _ = self.log.settle(claim, true);
        }
    }

    fn consume_once<'q>(
        &mut self,
        consumer: &mut Consumer<'q, Token>,
        held: &mut Vec<(i64, u32)>,
        claim: &mut Option<Claim<'q, Token>>,
    ) {
        let (offset, delivery) = match held.is_empty() {
            // Perhaps somebody else's, or nobody's.
            true => (self.random.below(4) as i64, 0),
            false => held.swap_remove(self.random.below(held.len() as u64) as usize),
        };
        let named = if self.random.once_in(2) { delivery } else { 0 };
        let mut keeps = false;
        match self.random.below(8) {
            0..3 => {
                let n = 1 + self.random.below(2) as usize;
                if let Ok(got) = self.log.take_some(consumer, n) {
                    held.extend(got.iter().map(|message| (message.offset, message.delivery)));
                }
                keeps = true;
            }
            3 | 4 => {
                let _ = self.log.complete(consumer, &[(offset, named)]);
            }
            5 => {
                let _ = self.log.requeue_some(consumer, &[(offset, named)], 1);
            }
            6 => match claim.take() {
                Some(claim) => {
                    let sent = self.random.once_in(2);
                    let _ = self.log.settle(claim, sent);
                    keeps = true;
                }
                None => *claim = self.log.claim(consumer, (offset, named)),
            },
            _ => {
                consumer.give_back(&[Target { offset, delivery }]);
            }
        }
        if keeps && delivery != 0 {
            held.push((offset, delivery));
        }
    }

    fn look_around(&mut self, calls: usize) {
        for _ in 0..calls {
            match self.random.below(16) {
                0..5 => drop(self.log.snapshot(self.queue)),
                5 => drop(self.log.safe(self.queue)),
                6 => drop(self.log.pull_offset(self.queue)),
                7 => drop(self.log.is_closed(self.queue)),
                8 => drop(self.log.has_ready(self.queue)),
                9 => {
                    let offset = self.random.below(6) as i64;
                    self.log.contains(self.queue, offset);
                }
                10 => drop(self.log.count(self.queue)),
                11 => drop(self.log.bytes(self.queue)),
                12 => drop(self.log.span(self.queue)),
                13 => {
                    let max = 1 + self.random.below(2) as usize;
                    self.log.expired(self.queue, true, max);
                }
                14 if self.random.once_in(3) => self.log.stop(self.queue),
                _ => drop(self.log.close(self.queue)),
            }
        }
    }
}
