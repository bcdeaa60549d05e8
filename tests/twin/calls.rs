//! The single calls of the driver: each on the queue and on the twin, answers compared.

use std::sync::Arc;

use lanekeeper::process_queue::{
    Completed, Incoming, Outcome, Refusal, RefusedBecause, Requeued, Target,
};

use super::driver::{ConsumerSlot, Driver, Payload, Sunk, index, same, seen, sunk};
use super::ops::{Batch, Delivery, Pick};
use super::{Delivered, Who};

impl Driver<'_> {
    pub(super) fn put(&mut self, batch: &Batch, sink: bool) {
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

    pub(super) fn advance(&mut self, by: i64) {
        let next = self.twin.pull_offset().saturating_add(by);
        let puller = self.puller.as_mut().expect("always held between steps");
        let core = puller.advance(next, self.now_ms);
        same("advance", &core, &self.twin.advance(next, self.now_ms));
    }

    pub(super) fn begin(&mut self) {
        let core = self.queue.begin_turn(self.now_ms);
        same("begin_turn", &core.as_ref().map(|_| ()).map_err(|e| *e), &self.twin.begin_turn());
        if let Ok(turn) = core {
            self.turn = Some(turn);
        }
    }

    pub(super) fn end_turn(&mut self, sink: bool) {
        let Some(turn) = self.turn.take() else { return };
        let mut back = Sunk::new();
        let core =
            if sink { turn.end_with(self.now_ms, sunk(&mut back)) } else { turn.end(self.now_ms) };
        same("end of turn", &core, &self.twin.end_turn());
        self.check_sunk(sink, back);
    }

    pub(super) fn suspend_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let token = turn.token();
        same("token of the turn", &turn.suspend(), &token);
        self.turn = Some(self.queue.resume_turn(token).expect("it was suspended"));
        assert_eq!(self.queue.resume_turn(token).err(), Some(Refusal::Busy));
    }

    /// What a form with a sink handed over is all that the call released.
    pub(super) fn check_sunk(&self, sink: bool, mut back: Sunk) {
        if sink {
            back.sort_by_key(|(_, payload)| *payload);
            let handed: Vec<u64> = back.iter().map(|(_, payload)| *payload).collect();
            let book = self.ledger.book.lock().unwrap();
            let mut dropped = book.1.clone();
            dropped.sort_unstable();
            same("payloads handed to the sink", &handed, &dropped);
        }
    }

    pub(super) fn slot(&self, who: u8) -> Option<usize> {
        index(who, self.consumers.len())
    }

    pub(super) fn take(&mut self, who: u8, n: usize) {
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

    pub(super) fn commit(&mut self, sink: bool) {
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

    pub(super) fn rollback(&mut self, sink: bool) {
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
    pub(super) fn target(&self, pick: Pick) -> Target {
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

    pub(super) fn targets(&self, picks: &[Pick]) -> Vec<Target> {
        picks.iter().map(|pick| self.target(*pick)).collect()
    }

    pub(super) fn requeue(&mut self, who: u8, picks: &[Pick], plus: u8, sink: bool) {
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

    pub(super) fn complete(&mut self, who: u8, picks: &[Pick], sink: bool) {
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

    pub(super) fn new_consumer(&mut self) {
        let id = self.next_consumer;
        self.next_consumer += 1;
        let core = self.queue.consumer();
        same("consumer", &core.as_ref().map(|_| ()).map_err(|e| *e), &self.twin.consumer(id));
        if let Ok(handle) = core {
            self.consumers.push(ConsumerSlot { id, handle });
        }
    }

    pub(super) fn drop_consumer(&mut self, who: u8, sink: bool) {
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

    pub(super) fn give_back(&mut self, who: u8, picks: &[Pick], sink: bool) {
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

    pub(super) fn claim(&mut self, who: u8, pick: Pick) {
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

    pub(super) fn settle(&mut self, nth: u8, sent: bool, delay_ms: i64, sink: bool) {
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

    pub(super) fn expired(&mut self, limit_ms: i64, max: usize) {
        let mut core = Vec::new();
        let named = self.queue.expired(self.now_ms, limit_ms, max, &mut core);
        assert_eq!(named, core.len(), "expired counts what it names");
        same("expired", &core, &self.twin.expired(self.now_ms, limit_ms, max));
    }

    pub(super) fn close(&mut self, sink: bool) {
        let mut back = Sunk::new();
        let core = if sink {
            self.queue.close_with(self.now_ms, sunk(&mut back))
        } else {
            self.queue.close(self.now_ms)
        };
        same("close", &core, &self.twin.close(self.now_ms));
        self.check_sunk(sink, back);
    }
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
