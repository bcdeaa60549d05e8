//! Runs operations on a queue and on its twin and compares everything that can be seen.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use lanekeeper::process_queue::{
    Claim, Completed, Config, Consumer, Incoming, Message, Mode, Outcome, ProcessQueue, Puller,
    Refusal, RefusedBecause, Requeued, Target, Turn,
};

use super::ops::{Batch, Delivery, Op, Pick, SplitMix};
use super::{Delivered, Twin, Who};

/// Counts what became of every payload.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Times each payload was dropped, and those dropped since last asked.
    book: Mutex<(BTreeMap<u64, u32>, Vec<u64>)>,
}

impl Ledger {
    fn take_dropped(&self) -> Vec<u64> {
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
    ledger: Arc<Ledger>,
}

impl Drop for Payload {
    fn drop(&mut self) {
        let mut book = self.ledger.book.lock().unwrap();
        *book.0.entry(self.id).or_default() += 1;
        book.1.push(self.id);
    }
}

struct ConsumerSlot<'q> {
    id: u64,
    handle: Consumer<'q, Payload>,
}

/// A queue and its twin, in step.
pub struct Driver<'q> {
    queue: &'q ProcessQueue<Payload>,
    pub twin: Twin,
    mode: Mode,
    ledger: Arc<Ledger>,
    puller: Option<Puller<'q, Payload>>,
    turn: Option<Turn<'q, Payload>>,
    consumers: Vec<ConsumerSlot<'q>>,
    claims: Vec<(Target, Claim<'q, Payload>)>,
    now_ms: i64,
    next_payload: u64,
    next_consumer: u64,
}

/// What a call handed back, in order.
type Sunk = Vec<(i64, u64)>;

fn sunk(into: &mut Sunk) -> impl FnMut(i64, Payload) + '_ {
    |offset, payload| into.push((offset, payload.id))
}

fn seen(message: &Message<'_, Payload>) -> Delivered {
    Delivered {
        offset: message.offset,
        payload: message.id,
        size: message.size,
        attempts: message.attempts,
        delivery: message.delivery,
    }
}

fn same<A: PartialEq + Debug>(what: &str, core: &A, twin: &A) {
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
    if made % 2 == 0 {
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

    fn put(&mut self, batch: &Batch, sink: bool) {
        let offsets = batch.offsets(self.twin.pull_offset());
        let made: Vec<Incoming<u64>> = offsets
            .iter()
            .enumerate()
            .map(|(i, offset)| Incoming {
                offset: *offset,
                payload: self.next_payload + i as u64,
                size: batch.size.wrapping_add(i as u32),
                attempts: batch.attempts,
            })
            .collect();
        self.next_payload += made.len() as u64;
        let mut core_batch: Vec<Incoming<Payload>> = made
            .iter()
            .map(|m| Incoming {
                offset: m.offset,
                payload: Payload { id: m.payload, ledger: Arc::clone(&self.ledger) },
                size: m.size,
                attempts: m.attempts,
            })
            .collect();
        let broker_max = batch
            .broker_ahead
            .and_then(|ahead| offsets.last().map(|last| last.saturating_add(i64::from(ahead))));
        let expected = self.twin.put(&made, self.now_ms, broker_max);
        let puller = self.puller.as_mut().expect("always held between steps");
        let mut refused: Vec<(i64, u64, RefusedBecause)> = Vec::new();
        let answer = if sink {
            puller.put_with(&mut core_batch, self.now_ms, broker_max, |offset, payload, why| {
                refused.push((offset, payload.id, why));
            })
        } else {
            puller.put(&mut core_batch, self.now_ms, broker_max)
        };
        match expected {
            Ok((put, mut expected_refused)) => {
                same("put", &answer, &Ok(put));
                assert!(core_batch.is_empty(), "an accepted batch is emptied");
                if sink {
                    let key = |r: &(i64, u64, RefusedBecause)| (r.0, r.1);
                    refused.sort_by_key(key);
                    expected_refused.sort_by_key(key);
                    same("refused", &refused, &expected_refused);
                }
            }
            Err(error) => {
                same("put", &answer, &Err(error));
                let left: Vec<(i64, u64)> =
                    core_batch.iter().map(|m| (m.offset, m.payload.id)).collect();
                let given: Vec<(i64, u64)> = made.iter().map(|m| (m.offset, m.payload)).collect();
                same("batch after a put that took nothing", &left, &given);
                drop(core_batch);
                self.ledger.take_dropped();
            }
        }
    }

    fn advance(&mut self, by: i64) {
        let next = self.twin.pull_offset().saturating_add(by);
        let puller = self.puller.as_mut().expect("always held between steps");
        let core = puller.advance(next, self.now_ms);
        same("advance", &core, &self.twin.advance(next, self.now_ms));
    }

    fn begin(&mut self) {
        let core = self.queue.begin_turn(self.now_ms);
        same("begin_turn", &core.as_ref().map(|_| ()).map_err(|e| *e), &self.twin.begin_turn());
        if let Ok(turn) = core {
            self.turn = Some(turn);
        }
    }

    fn end_turn(&mut self, sink: bool) {
        let Some(turn) = self.turn.take() else { return };
        let mut back = Sunk::new();
        let core =
            if sink { turn.end_with(self.now_ms, sunk(&mut back)) } else { turn.end(self.now_ms) };
        same("end of turn", &core, &self.twin.end_turn());
        self.check_sunk(sink, back);
    }

    fn suspend_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let token = turn.token();
        same("token of the turn", &turn.suspend(), &token);
        self.turn = Some(self.queue.resume_turn(token).expect("it was suspended"));
        assert_eq!(self.queue.resume_turn(token).err(), Some(Refusal::Busy));
    }

    /// What a form with a sink handed over is all that the call released.
    fn check_sunk(&self, sink: bool, mut back: Sunk) {
        if sink {
            back.sort_by_key(|(_, payload)| *payload);
            let handed: Vec<u64> = back.iter().map(|(_, payload)| *payload).collect();
            let book = self.ledger.book.lock().unwrap();
            let mut dropped = book.1.clone();
            dropped.sort_unstable();
            same("payloads handed to the sink", &handed, &dropped);
        }
    }

    fn slot(&self, who: u8) -> Option<usize> {
        index(who, self.consumers.len())
    }

    fn take(&mut self, who: u8, n: usize) {
        let now_ms = self.now_ms;
        let collect = |core: Result<lanekeeper::process_queue::Batch<'_, Payload>, Refusal>| {
            core.map(|batch| {
                let len = batch.len();
                let taken: Vec<Delivered> = batch.map(|m| seen(&m)).collect();
                assert_eq!(taken.len(), len, "a batch knows its length");
                taken
            })
        };
        if let Some(turn) = &mut self.turn {
            same("take", &collect(turn.take(n, now_ms)), &self.twin.take(Who::Turn, n, now_ms));
        } else if let Some(at) = self.slot(who) {
            let slot = &mut self.consumers[at];
            let twin = self.twin.take(Who::Consumer(slot.id), n, now_ms);
            same("take", &collect(slot.handle.take(n, now_ms)), &twin);
        }
    }

    fn commit(&mut self, sink: bool) {
        let Some(turn) = &mut self.turn else { return };
        let mut back = Sunk::new();
        let core = if sink {
            turn.commit_with(self.now_ms, sunk(&mut back))
        } else {
            turn.commit(self.now_ms)
        };
        same("commit", &core, &self.twin.commit());
        self.check_sunk(sink, back);
    }

    fn rollback(&mut self, sink: bool) {
        let Some(turn) = &mut self.turn else { return };
        let mut back = Sunk::new();
        let core = if sink {
            turn.rollback_with(self.now_ms, sunk(&mut back))
        } else {
            turn.rollback(self.now_ms)
        };
        same("rollback", &core, &self.twin.rollback());
        self.check_sunk(sink, back);
    }

    /// A pick as the call will name it.
    fn target(&self, pick: Pick) -> Target {
        let outstanding = self.twin.outstanding();
        let offset = if pick.stray || outstanding.is_empty() {
            self.twin.pull_offset().saturating_sub(i64::from(pick.nth)).saturating_add(2)
        } else {
            outstanding[pick.nth as usize % outstanding.len()]
        };
        let current = self.twin.delivery_of(offset).unwrap_or(1);
        let delivery = match pick.delivery {
            Delivery::Any => 0,
            Delivery::Current => current,
            Delivery::Older => current.saturating_sub(1),
            Delivery::Newer => current + 1,
        };
        Target { offset, delivery }
    }

    fn targets(&self, picks: &[Pick]) -> Vec<Target> {
        picks.iter().map(|pick| self.target(*pick)).collect()
    }

    fn requeue(&mut self, who: u8, picks: &[Pick], plus: u8, sink: bool) {
        let targets = self.targets(picks);
        let (at, now_ms) = (self.slot(who), self.now_ms);
        let mut each = vec![None; targets.len()];
        let mut back = Sunk::new();
        let note = |i: usize, outcome: Outcome| note_outcome(&mut each, i, outcome);
        let (core, who): (Result<Requeued, Refusal>, Who) = if let Some(turn) = &mut self.turn {
            let core = if sink {
                turn.requeue_with(&targets, plus, now_ms, note, sunk(&mut back))
            } else {
                turn.requeue(&targets, plus, now_ms)
            };
            (core, Who::Turn)
        } else if let Some(at) = at {
            let slot = &mut self.consumers[at];
            let core = if sink {
                slot.handle.requeue_with(&targets, plus, now_ms, note, sunk(&mut back))
            } else {
                slot.handle.requeue(&targets, plus, now_ms)
            };
            (core, Who::Consumer(slot.id))
        } else {
            return;
        };
        let twin = self.twin.requeue(who, &targets, plus);
        same("requeue", &core, &twin.as_ref().map(|(answer, _)| *answer).map_err(|e| *e));
        check_each(sink, &targets, each, twin.ok().map(|(_, each)| each));
        self.check_sunk(sink, back);
    }

    fn complete(&mut self, who: u8, picks: &[Pick], sink: bool) {
        let targets = self.targets(picks);
        let (at, now_ms) = (self.slot(who), self.now_ms);
        let mut each = vec![None; targets.len()];
        let mut back = Sunk::new();
        let note = |i: usize, outcome: Outcome| note_outcome(&mut each, i, outcome);
        let (core, who): (Result<Completed, Refusal>, Who) = if let Some(turn) = &mut self.turn {
            let core = if sink {
                turn.complete_with(&targets, now_ms, note, sunk(&mut back))
            } else {
                turn.complete(&targets, now_ms)
            };
            (core, Who::Turn)
        } else if let Some(at) = at {
            let slot = &mut self.consumers[at];
            let core = if sink {
                slot.handle.complete_with(&targets, now_ms, note, sunk(&mut back))
            } else {
                slot.handle.complete(&targets, now_ms)
            };
            (core, Who::Consumer(slot.id))
        } else {
            return;
        };
        let twin = self.twin.complete(who, &targets);
        same("complete", &core, &twin.as_ref().map(|(answer, _)| *answer).map_err(|e| *e));
        check_each(sink, &targets, each, twin.ok().map(|(_, each)| each));
        self.check_sunk(sink, back);
    }

    fn new_consumer(&mut self) {
        let id = self.next_consumer;
        self.next_consumer += 1;
        let core = self.queue.consumer();
        same("consumer", &core.as_ref().map(|_| ()).map_err(|e| *e), &self.twin.consumer(id));
        if let Ok(handle) = core {
            self.consumers.push(ConsumerSlot { id, handle });
        }
    }

    fn drop_consumer(&mut self, who: u8, sink: bool) {
        let Some(at) = self.slot(who) else { return };
        let ConsumerSlot { id, handle } = self.consumers.swap_remove(at);
        let mut back = Sunk::new();
        if sink {
            handle.end_with(sunk(&mut back));
        } else {
            drop(handle);
        }
        self.twin.end_consumer(id);
        self.check_sunk(sink, back);
    }

    fn give_back(&mut self, who: u8, picks: &[Pick], sink: bool) {
        let targets = self.targets(picks);
        let Some(at) = self.slot(who) else { return };
        let slot = &mut self.consumers[at];
        let mut back = Sunk::new();
        let core = if sink {
            slot.handle.give_back_with(&targets, sunk(&mut back))
        } else {
            slot.handle.give_back(&targets)
        };
        same("give_back", &core, &self.twin.give_back(Who::Consumer(slot.id), &targets));
        self.check_sunk(sink, back);
    }

    fn claim(&mut self, who: u8, pick: Pick) {
        let target = self.target(pick);
        let Some(at) = self.slot(who) else { return };
        let slot = &mut self.consumers[at];
        let core = slot.handle.claim(target, self.now_ms);
        let twin = self.twin.claim(Who::Consumer(slot.id), target);
        let plain = match &core {
            Ok(Ok(claim)) => Ok(Ok(Target { offset: claim.offset(), delivery: claim.delivery() })),
            Ok(Err(outcome)) => Ok(Err(*outcome)),
            Err(refusal) => Err(*refusal),
        };
        same("claim", &plain, &twin);
        if let (Ok(Ok(claim)), Ok(Ok(target))) = (core, twin) {
            self.claims.push((target, claim));
        }
    }

    fn settle(&mut self, nth: u8, sent: bool, delay_ms: i64, sink: bool) {
        let Some(at) = index(nth, self.claims.len()) else {
            return;
        };
        let (target, claim) = self.claims.swap_remove(at);
        let not_before_ms = self.now_ms + delay_ms;
        let mut back = Sunk::new();
        let core = if sink {
            claim.settle_with(sent, not_before_ms, self.now_ms, sunk(&mut back))
        } else {
            claim.settle(sent, not_before_ms, self.now_ms)
        };
        same("settle", &core, &self.twin.settle(target, sent, not_before_ms, self.now_ms));
        self.check_sunk(sink, back);
    }

    fn expired(&mut self, limit_ms: i64, max: usize) {
        let mut core = Vec::new();
        let named = self.queue.expired(self.now_ms, limit_ms, max, &mut core);
        assert_eq!(named, core.len(), "expired counts what it names");
        same("expired", &core, &self.twin.expired(self.now_ms, limit_ms, max));
    }

    fn close(&mut self, sink: bool) {
        let mut back = Sunk::new();
        let core = if sink {
            self.queue.close_with(self.now_ms, sunk(&mut back))
        } else {
            self.queue.close(self.now_ms)
        };
        same("close", &core, &self.twin.close(self.now_ms));
        self.check_sunk(sink, back);
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
fn index(nth: u8, len: usize) -> Option<usize> {
    (len > 0).then(|| nth as usize % len)
}

fn note_outcome(each: &mut [Option<Outcome>], i: usize, outcome: Outcome) {
    assert!(each[i].replace(outcome).is_none(), "target {i} was told twice");
}

/// The outcome of every target, where a form of the verb was used that tells; on a closed queue
/// nothing is promised about them.
fn check_each(
    told: bool,
    targets: &[Target],
    core: Vec<Option<Outcome>>,
    twin: Option<Vec<Outcome>>,
) {
    if let (true, Some(twin)) = (told, twin) {
        let twin: Vec<Option<Outcome>> = twin.into_iter().map(Some).collect();
        assert!(core == twin, "outcomes of {targets:?}\n  core: {core:?}\n  twin: {twin:?}");
    }
}
