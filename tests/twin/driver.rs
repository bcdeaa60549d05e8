//! Runs operations on a queue and on its twin and compares everything that can be seen.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use lanekeeper::process_queue::{
    Claim, Config, Consumer, Message, Mode, ProcessQueue, Puller, Refusal, Target, Turn,
};

use super::ops::{Op, SplitMix};
use super::{Delivered, Twin};

/// Counts what became of every payload.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Times each payload was dropped, and those dropped since last asked.
    pub(super) book: Mutex<(BTreeMap<u64, u32>, Vec<u64>)>,
}

impl Ledger {
    pub(super) fn take_dropped(&self) -> Vec<u64> {
        let mut dropped = std::mem::take(&mut self.book.lock().unwrap().1);
        dropped.sort_unstable();
        dropped
    }

    /// Every payload numbered below `made` was dropped once, and no other.
    fn assert_each_once(&self, made: u64) {
        let book = self.book.lock().unwrap();
        assert_eq!(book.0.len() as u64, made, "payloads lost, or invented");
        assert!(book.0.values().all(|times| *times == 1), "a payload was released twice");
    }
}

/// A payload that reports its end.
#[derive(Debug)]
pub struct Payload {
    pub id: u64,
    pub(super) ledger: Arc<Ledger>,
}

impl Drop for Payload {
    fn drop(&mut self) {
        let mut book = self.ledger.book.lock().unwrap();
        *book.0.entry(self.id).or_default() += 1;
        book.1.push(self.id);
    }
}

pub(super) struct ConsumerSlot<'q> {
    pub(super) id: u64,
    pub(super) handle: Consumer<'q, Payload>,
}

/// A queue and its twin, in step.
pub struct Driver<'q> {
    pub(super) queue: &'q ProcessQueue<Payload>,
    pub(super) twin: Twin,
    pub(super) mode: Mode,
    pub(super) ledger: Arc<Ledger>,
    pub(super) puller: Option<Puller<'q, Payload>>,
    pub(super) turn: Option<Turn<'q, Payload>>,
    pub(super) consumers: Vec<ConsumerSlot<'q>>,
    pub(super) claims: Vec<(Target, Claim<'q, Payload>)>,
    pub(super) now_ms: i64,
    pub(super) next_payload: u64,
    pub(super) next_consumer: u64,
}

/// What a call handed back, in order.
pub(super) type Sunk = Vec<(i64, u64)>;

pub(super) fn sunk(into: &mut Sunk) -> impl FnMut(i64, Payload) + '_ {
    |offset, payload| into.push((offset, payload.id))
}

pub(super) fn seen(message: &Message<'_, Payload>) -> Delivered {
    Delivered {
        offset: message.offset,
        payload: message.id,
        size: message.size,
        attempts: message.attempts,
        delivery: message.delivery,
    }
}

pub(super) fn same<A: PartialEq + Debug>(what: &str, core: &A, twin: &A) {
    assert!(core == twin, "{what}\n  core: {core:?}\n  twin: {twin:?}");
}

/// Runs a whole sequence from creation to the last release.
pub fn run(config: Config, ops: &[Op]) {
    let queue = ProcessQueue::new(config).expect("the configuration is valid");
    let ledger = Arc::new(Ledger::default());
    let mut driver = Driver::new(&queue, config, Arc::clone(&ledger));
    for op in ops {
        driver.step(op);
    }
    let made = driver.finish();
    let mut queue = queue;
    let mut rest: Sunk = Vec::new();
    if made.is_multiple_of(2) {
        queue.drain_with(sunk(&mut rest));
        same("payloads live after the drain", &queue.payloads_live(), &0);
    }
    drop(queue);
    ledger.assert_each_once(made);
}

impl<'q> Driver<'q> {
    pub fn new(queue: &'q ProcessQueue<Payload>, config: Config, ledger: Arc<Ledger>) -> Self {
        Self {
            queue,
            twin: Twin::new(config),
            mode: config.mode,
            ledger,
            puller: Some(queue.puller().expect("the first puller")),
            turn: None,
            consumers: Vec::new(),
            claims: Vec::new(),
            now_ms: 1_000,
            next_payload: 0,
            next_consumer: 0,
        }
    }

    /// One operation on both, then every read on both.
    pub fn step(&mut self, op: &Op) {
        self.apply(op);
        self.compare_reads();
        let (core, twin) = (self.ledger.take_dropped(), self.twin.take_released());
        same("payloads released by this call", &core, &twin);
    }

    /// Drops every guard, in an order that differs from run to run; answers the number of payloads
    /// made.
    fn finish(mut self) -> u64 {
        let mut random = SplitMix(self.next_payload);
        random.shuffle(&mut self.claims);
        random.shuffle(&mut self.consumers);
        if random.below(2) == 0 {
            while !self.claims.is_empty() {
                self.step(&Op::DropClaim { nth: 0 });
            }
        }
        if self.turn.is_some() {
            self.step(&Op::DropTurn);
        }
        while !self.consumers.is_empty() {
            self.step(&Op::DropConsumer { who: 0, sink: false });
        }
        while !self.claims.is_empty() {
            self.step(&Op::DropClaim { nth: 0 });
        }
        self.next_payload
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Put { batch, sink } => self.put(batch, *sink),
            Op::Advance { by } => self.advance(*by),
            Op::Puller => {
                assert_eq!(self.queue.puller().err(), Some(Refusal::Busy));
                self.puller = None;
                self.puller = Some(self.queue.puller().expect("the role was given up"));
            }
            Op::Begin => self.begin(),
            Op::End { sink } => self.end_turn(*sink),
            Op::DropTurn => {
                if self.turn.take().is_some() {
                    self.twin.end_turn();
                }
            }
            Op::SuspendTurn => self.suspend_turn(),
            Op::Take { who, n } => self.take(*who, *n as usize),
            Op::InFlight => {
                if let Some(turn) = &mut self.turn {
                    let twin = self.twin.in_flight();
                    same("in_flight_count", &turn.in_flight_count(), &(twin.len() as u64));
                    let core: Vec<(i64, u64)> =
                        turn.in_flight().map(|m| (m.offset, m.id)).collect();
                    same("in_flight", &core, &twin);
                }
            }
            Op::Commit { sink } => self.commit(*sink),
            Op::Rollback { sink } => self.rollback(*sink),
            Op::Requeue { who, picks, plus, sink } => self.requeue(*who, picks, *plus, *sink),
            Op::Complete { who, picks, sink } => self.complete(*who, picks, *sink),
            Op::Expired { limit_ms, max } => self.expired(i64::from(*limit_ms), *max as usize),
            Op::Tick { ms } => self.now_ms += i64::from(*ms),
            Op::Stop => {
                self.queue.stop();
                self.twin.stop();
            }
            Op::Close { sink } => self.close(*sink),
            other => self.apply_to_consumers(other),
        }
    }

    fn apply_to_consumers(&mut self, op: &Op) {
        match op {
            Op::NewConsumer => self.new_consumer(),
            Op::DropConsumer { who, sink } => self.drop_consumer(*who, *sink),
            Op::SuspendConsumer { who } => {
                if let Some(at) = self.slot(*who) {
                    let ConsumerSlot { id, handle } = self.consumers.swap_remove(at);
                    let token = handle.suspend();
                    let handle = self.queue.resume_consumer(token).expect("it was suspended");
                    self.consumers.push(ConsumerSlot { id, handle });
                }
            }
            Op::GiveBack { who, picks, sink } => self.give_back(*who, picks, *sink),
            Op::Claim { who, pick } => self.claim(*who, *pick),
            Op::Settle { nth, sent, delay_ms, sink } => {
                self.settle(*nth, *sent, i64::from(*delay_ms), *sink);
            }
            Op::DropClaim { nth } => {
                if let Some(at) = index(*nth, self.claims.len()) {
                    let (target, claim) = self.claims.swap_remove(at);
                    drop(claim);
                    let _ = self.twin.settle(target, false, i64::MIN, i64::MIN);
                }
            }
            Op::SuspendClaim { nth } => {
                if let Some(at) = index(*nth, self.claims.len()) {
                    let (target, claim) = self.claims.swap_remove(at);
                    let token = claim.suspend();
                    same("token of a claim", &token, &target);
                    let claim = self.queue.resume_claim(token).expect("it was suspended");
                    self.claims.push((target, claim));
                }
            }
            other => unreachable!("{other:?} is not an operation of consumers"),
        }
    }

    fn compare_reads(&self) {
        let (queue, twin) = (self.queue, &self.twin);
        same("count", &queue.count(), &twin.count());
        same("bytes", &queue.bytes(), &twin.bytes());
        same("span", &queue.span(), &twin.span());
        same("safe_offset", &queue.safe_offset(), &twin.safe_offset());
        same("pull_offset", &queue.pull_offset(), &twin.pull_offset());
        same("is_closed", &queue.is_closed(), &twin.is_closed());
        same("is_stopped", &queue.is_stopped(), &twin.is_stopped());
        same("has_ready", &queue.has_ready(), &twin.has_ready());
        same("payloads_live", &queue.payloads_live(), &twin.payloads_live());
        let snapshot = twin.snapshot(self.now_ms);
        same("snapshot", &queue.snapshot(self.now_ms), &snapshot);
        let overdue = twin.hand_over_overdue(self.now_ms);
        same("hand_over_overdue", &queue.hand_over_overdue(self.now_ms), &overdue);
        let ends = [snapshot.cached_min, snapshot.in_flight_min, snapshot.pull_offset];
        for offset in ends.into_iter().flat_map(|end| [end.saturating_sub(1), end]) {
            same("contains", &queue.contains(offset), &twin.contains(offset));
        }
    }
}

/// `nth` of `len`, if there is any.
pub(super) fn index(nth: u8, len: usize) -> Option<usize> {
    (len > 0).then(|| nth as usize % len)
}
