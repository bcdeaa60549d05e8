//! What a worker thread does: turns. Take a batch, hand it to the listener, settle the result.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lanekeeper::broker::StoredMessage;
use lanekeeper::process_queue::{Committed, Refusal, Target, Turn, TurnEnd};

use crate::client::{Assignment, Client};
use crate::fault::Fault;
use crate::random::Random;

type OrderTurn<'q> = Turn<'q, Arc<StoredMessage>>;

/// A turn yields to other queues after so many batches.
const TURN_BATCHES_MAX: u32 = 64;
/// After so many deliveries a message stops failing, or a fail rate of 1 would never end.
const DELIVERIES_FAILING_MAX: u32 = 8;

/// How a batch ends.
enum Verdict {
    Success,
    /// The listener gave up at the message with this index in the batch.
    Failed {
        index: usize,
        how: FailedHow,
    },
}

/// What the client makes of a failed batch.
#[derive(Clone, Copy)]
enum FailedHow {
    /// All of it once more, attempts + 1: upstream's SUSPEND_CURRENT_QUEUE_A_MOMENT.
    SuspendAll,
    /// All of it once more, as it was: upstream's ROLLBACK.
    Rollback,
    /// What the listener had done is finished, the rest once more, attempts + 1.
    SuspendRest,
}

/// How a turn goes on.
enum Next {
    Batch,
    /// Leave, and come back after the suspend time.
    Suspend,
    Leave,
}

impl Client<'_> {
    /// Body of a worker thread; ends when the run queue is closed.
    pub fn work_loop(&self) -> Result<(), Box<dyn Error>> {
        let mut targets = Vec::new();
        while let Some(assignment) = self.runs.next() {
            self.run_turn(&assignment, &mut targets)?;
        }
        Ok(())
    }

    fn run_turn(
        &self,
        assignment: &Arc<Assignment>,
        targets: &mut Vec<Target>,
    ) -> Result<(), Box<dyn Error>> {
        let mut turn = match assignment.queue.begin_turn(self.now_ms()) {
            Ok(turn) => turn,
            // Busy left a note: the turn that is running will answer RunAgain. Closed: handed over.
            Err(Refusal::Busy | Refusal::Closed) => return Ok(()),
            Err(refusal) => return Err(refusal.into()),
        };
        self.ledger.entered(assignment.queue_id);
        let mut next = Next::Batch;
        for _ in 0..TURN_BATCHES_MAX {
            next = self.consume_batch(assignment, &mut turn, targets)?;
            if !matches!(next, Next::Batch) {
                break;
            }
        }
        self.ledger.left(assignment.queue_id);
        match turn.end(self.now_ms()) {
            TurnEnd::Nothing => {}
            TurnEnd::RunAgain => {
                let again = Arc::clone(assignment);
                match next {
                    Next::Suspend => self.runs.submit_after(again, self.settings.suspend),
                    Next::Batch | Next::Leave => self.runs.submit(again),
                }
            }
            TurnEnd::HandOver => self.hand_over(assignment)?,
        }
        Ok(())
    }

    fn consume_batch(
        &self,
        assignment: &Assignment,
        turn: &mut OrderTurn<'_>,
        targets: &mut Vec<Target>,
    ) -> Result<Next, Box<dyn Error>> {
        let verdict = match self.listen(assignment, turn, targets) {
            Ok(verdict) => verdict,
            Err(Refusal::Empty | Refusal::Closed) => return Ok(Next::Leave),
            Err(refusal) => return Err(refusal.into()),
        };
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
        let settled = match verdict {
            Verdict::Success => self.settle_success(assignment, turn, targets),
            Verdict::Failed { index, how } => {
                self.counters.failed_batches.fetch_add(1, Ordering::Relaxed);
                self.settle_failure(assignment, turn, targets, index, how)
            }
        };
        match settled {
            Ok(next) => Ok(next),
            Err(error) => match error.downcast_ref() {
                // Given away in the middle: nothing of this batch counts, its turn's end will tell.
                Some(Refusal::Closed) => Ok(Next::Leave),
                _ => Err(error),
            },
        }
    }

    /// Takes a batch and hands it to the listener, which here is the ledger.
    fn listen(
        &self,
        assignment: &Assignment,
        turn: &mut OrderTurn<'_>,
        targets: &mut Vec<Target>,
    ) -> Result<Verdict, Refusal> {
        targets.clear();
        let batch = turn.take(self.settings.consume_batch, self.now_ms())?;
        let size = batch.len();
        let mut verdict = Verdict::Success;
        for (index, message) in batch.enumerate() {
            if index == 0 {
                verdict = self.decide(assignment, message.offset, message.delivery, size);
            }
            targets.push(Target { offset: message.offset, delivery: message.delivery });
            match verdict {
                Verdict::Failed { index: failed, .. } if index > failed => {}
                _ if self.plan.strikes(Fault::Corrupt) => {
                    let mut body = message.body().to_vec();
                    *body.last_mut().expect("a body begins with a position") ^= 1;
                    self.ledger.delivered(message.key(), &body);
                }
                _ => self.ledger.delivered(message.key(), message.body()),
            }
        }
        Ok(verdict)
    }

    fn decide(&self, assignment: &Assignment, offset: i64, delivery: u32, size: usize) -> Verdict {
        let parts = [
            u64::from(assignment.queue_id),
            assignment.queue.generation(),
            offset.cast_unsigned(),
            u64::from(delivery),
        ];
        let mut random = Random::of(self.settings.seed, &parts);
        if delivery > DELIVERIES_FAILING_MAX || !random.chance(self.settings.fail_rate) {
            return Verdict::Success;
        }
        if self.plan.is(Fault::PartialReplay) {
            return Verdict::Failed { index: size - 1, how: FailedHow::SuspendRest };
        }
        let how = match random.below(3) {
            0 => FailedHow::SuspendAll,
            1 => FailedHow::Rollback,
            _ => FailedHow::SuspendRest,
        };
        Verdict::Failed { index: random.below(size as u64) as usize, how }
    }

    fn settle_success(
        &self,
        assignment: &Assignment,
        turn: &mut OrderTurn<'_>,
        targets: &[Target],
    ) -> Result<Next, Box<dyn Error>> {
        self.succeeded(assignment, targets);
        match turn.commit(self.now_ms())? {
            Committed::Finished { safe_offset, finished } => {
                self.progressed(assignment, safe_offset, finished)?;
            }
            Committed::Nothing => return Err("a batch was taken, and nothing is in flight".into()),
        }
        Ok(Next::Batch)
    }

    fn settle_failure(
        &self,
        assignment: &Assignment,
        turn: &mut OrderTurn<'_>,
        targets: &[Target],
        index: usize,
        how: FailedHow,
    ) -> Result<Next, Box<dyn Error>> {
        let now_ms = self.now_ms();
        let (done, rest) = match how {
            _ if self.plan.is(Fault::FinishFailed) => (targets, &targets[..0]),
            _ if self.plan.is(Fault::PartialReplay) => (&targets[1..], &targets[..1]),
            FailedHow::SuspendAll | FailedHow::Rollback => (&targets[..0], targets),
            FailedHow::SuspendRest => targets.split_at(index),
        };
        if !done.is_empty() {
            if !self.plan.is(Fault::FinishFailed) {
                self.succeeded(assignment, done);
            }
            let completed = turn.complete(done, now_ms)?;
            self.progressed(assignment, completed.safe_offset, completed.finished)?;
        }
        match how {
            FailedHow::Rollback => _ = turn.rollback(now_ms)?,
            FailedHow::SuspendAll | FailedHow::SuspendRest => _ = turn.requeue(rest, 1, now_ms)?,
        }
        Ok(Next::Suspend)
    }

    fn succeeded(&self, assignment: &Assignment, targets: &[Target]) {
        for target in targets {
            self.ledger.succeeded(assignment.queue_id, target.offset);
        }
    }

    fn progressed(
        &self,
        assignment: &Assignment,
        safe_offset: i64,
        finished: u32,
    ) -> Result<(), Box<dyn Error>> {
        self.store(assignment.queue_id, safe_offset)?;
        self.resume_if_drained(assignment);
        self.finished(finished)
    }
}
