//! The verbs, recorded. Each returns the queue's own answer too, so that scripts can go on from it.

use std::sync::Arc;

use lanekeeper::process_queue::{
    Advanced, Batch, Claim, Closed, Committed, Completed, Consumer, Incoming, Message, Mode,
    Outcome, ProcessQueue, Puller, Put, PutError, Refusal, RefusedBecause, Requeued, Snapshot,
    Target, Turn, TurnEnd,
};

use super::history::{Got, Log, Step};
use super::payload::{Ledger, Token};

pub type Queue = ProcessQueue<Token>;

/// The time all recorded verbs give; only `expired` depends on it.
pub const NOW: i64 = 1_000;

fn got(message: &Message<'_, Token>) -> Got {
    message.touch(message.offset);
    Got {
        offset: message.offset,
        size: message.size,
        attempts: message.attempts,
        delivery: message.delivery,
    }
}

fn drain(batch: Batch<'_, Token>) -> Vec<Got> {
    let told = batch.len();
    let all: Vec<Got> = batch.map(|message| got(&message)).collect();
    assert_eq!(all.len(), told, "length of a batch");
    assert!(all.is_sorted_by(|a, b| a.offset < b.offset), "a batch ascends: {all:?}");
    all
}

fn refusal_of(error: &PutError) -> Refusal {
    match error {
        PutError::Refused(refusal) => *refusal,
        other => panic!("not in these scripts: {other}"),
    }
}

fn target((offset, delivery): (i64, u32)) -> Target {
    Target { offset, delivery }
}

/// What the verbs of the puller say.
impl Log {
    pub fn put(
        &mut self,
        puller: &mut Puller<'_, Token>,
        ledger: &Arc<Ledger>,
        messages: &[(i64, u32)],
    ) -> Result<Put, PutError> {
        let mut batch: Vec<_> = messages
            .iter()
            .map(|&(offset, size)| Incoming::new(offset, ledger.token(offset), size))
            .collect();
        let mut refused: Vec<(i64, RefusedBecause)> = Vec::new();
        self.begin();
        let answer = puller.put_with(&mut batch, NOW, None, |offset, token, why| {
            token.touch(offset);
            refused.push((offset, why));
        });
        let end = self.end();
        let steps = match &answer {
            Ok(put) => {
                assert!(batch.is_empty(), "Ok empties the batch");
                let copies = |offset| messages.iter().filter(|(other, _)| *other == offset).count();
                let not_taken = |&(offset, why): &(i64, _)| Step::NotTaken {
                    offset,
                    why,
                    copy: copies(offset) > 1,
                };
                let mut steps: Vec<Step> = refused.iter().map(not_taken).collect();
                steps.push(Step::Put { batch: messages.to_vec(), refused, put: *put });
                steps.push(Step::PutCarries);
                steps
            }
            Err(error) => {
                assert_eq!(batch.len(), messages.len(), "an error leaves the batch");
                vec![Step::PutRefused(refusal_of(error))]
            }
        };
        self.push(end, steps);
        answer
    }

    pub fn advance(
        &mut self,
        puller: &mut Puller<'_, Token>,
        next: i64,
    ) -> Result<Advanced, PutError> {
        self.call(
            || puller.advance(next, NOW),
            |answer| match answer {
                Ok(advanced) => vec![
                    Step::AdvanceRaises { next },
                    Step::Advance { next, safe: advanced.safe_offset },
                ],
                Err(error) => {
                    vec![Step::AdvanceRefused { next, refusal: refusal_of(error) }]
                }
            },
        )
    }
}

/// Turns.
impl Log {
    pub fn begin_turn<'q>(&mut self, queue: &'q Queue) -> Result<Turn<'q, Token>, Refusal> {
        self.call(
            || queue.begin_turn(NOW),
            |answer| vec![Step::Begin(answer.as_ref().map(|_| ()).map_err(|refusal| *refusal))],
        )
    }

    pub fn end_turn(&mut self, turn: Turn<'_, Token>) -> TurnEnd {
        self.call(|| turn.end(NOW), |answer| vec![Step::EndLeaves, Step::End(*answer)])
    }

    pub fn take(&mut self, turn: &mut Turn<'_, Token>, n: usize) -> Result<Vec<Got>, Refusal> {
        self.call(|| turn.take(n, NOW).map(drain), |answer| vec![take_step(n, answer)])
    }

    pub fn commit(&mut self, turn: &mut Turn<'_, Token>) -> Result<Committed, Refusal> {
        for message in turn.in_flight() {
            got(&message);
        }
        let mut finished = Vec::new();
        self.begin();
        let answer = turn.commit_with(NOW, |offset, token| {
            token.touch(offset);
            finished.push(offset);
        });
        let end = self.end();
        finished.sort_unstable();
        let step = match answer {
            Ok(Committed::Nothing) => Step::CommitNothing,
            Ok(Committed::Finished { safe_offset, finished: count }) => {
                assert_eq!(count as usize, finished.len(), "finished and handed back");
                Step::Commit { safe: safe_offset, finished }
            }
            Err(Refusal::Closed) => Step::ClosedAnswer,
            Err(other) => panic!("commit answered {other:?}"),
        };
        self.push(end, [step]);
        answer
    }

    pub fn rollback(&mut self, turn: &mut Turn<'_, Token>) -> Result<u32, Refusal> {
        self.call(
            || turn.rollback(NOW),
            |answer| vec![answer.map_or(Step::ClosedAnswer, |ready| Step::Rollback { ready })],
        )
    }

    pub fn requeue(
        &mut self,
        turn: &mut Turn<'_, Token>,
        targets: &[(i64, u32)],
        plus: u8,
    ) -> Result<Requeued, Refusal> {
        let named: Vec<Target> = targets.iter().copied().map(target).collect();
        let mut outcomes = vec![None; named.len()];
        self.begin();
        let answer = turn.requeue_with(
            &named,
            plus,
            NOW,
            |index, outcome| outcomes[index] = Some(outcome),
            |offset, token| token.touch(offset),
        );
        let end = self.end();
        self.push(end, requeue_steps(&named, plus, &outcomes, &answer));
        answer
    }

    pub fn complete_held(
        &mut self,
        turn: &mut Turn<'_, Token>,
        targets: &[(i64, u32)],
    ) -> Result<Completed, Refusal> {
        let named: Vec<Target> = targets.iter().copied().map(target).collect();
        let mut outcomes = vec![None; named.len()];
        self.begin();
        let answer = turn.complete_with(
            &named,
            NOW,
            |index, outcome| outcomes[index] = Some(outcome),
            |offset, token| token.touch(offset),
        );
        let end = self.end();
        self.push(end, finish_steps(Mode::Orderly, &named, &outcomes, &answer));
        answer
    }
}

fn take_step(n: usize, answer: &Result<Vec<Got>, Refusal>) -> Step {
    match answer {
        Ok(got) => Step::Take { n, got: got.clone() },
        Err(refusal) => Step::TakeRefused { n, refusal: *refusal },
    }
}

fn requeue_steps(
    named: &[Target],
    plus: u8,
    outcomes: &[Option<Outcome>],
    answer: &Result<Requeued, Refusal>,
) -> Vec<Step> {
    if let Err(refusal) = answer {
        assert_eq!(*refusal, Refusal::Closed, "requeue");
        return vec![Step::ClosedAnswer];
    }
    let each = named.iter().zip(outcomes);
    each.map(|(target, outcome)| Step::Requeue {
        offset: target.offset,
        delivery: target.delivery,
        plus,
        outcome: outcome.expect("an outcome for each target"),
    })
    .collect()
}

fn finish_steps(
    mode: Mode,
    named: &[Target],
    outcomes: &[Option<Outcome>],
    answer: &Result<Completed, Refusal>,
) -> Vec<Step> {
    let completed = match answer {
        Ok(completed) => completed,
        Err(refusal) => {
            assert_eq!(*refusal, Refusal::Closed, "complete");
            return vec![Step::ClosedAnswer];
        }
    };
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == Some(wanted)).count();
    let told = (completed.finished, completed.unknown, completed.stale);
    let counted = (count(Outcome::Won), count(Outcome::Unknown), count(Outcome::Stale));
    assert_eq!((told.0 as usize, told.1 as usize, told.2 as usize), counted, "counts of complete");
    let each = named.iter().zip(outcomes);
    let mut steps: Vec<Step> = each
        .map(|(target, outcome)| Step::Finish {
            offset: target.offset,
            delivery: target.delivery,
            outcome: outcome.expect("an outcome for each target"),
        })
        .collect();
    if mode == Mode::Concurrent {
        steps.extend((0..completed.finished).map(|_| Step::FinishCarries));
    }
    steps.push(Step::SafeAnswer(completed.safe_offset));
    steps
}

/// Consumers. A `take` of several is one step for each message: batches of several takers
/// interleave.
impl Log {
    pub fn take_some(
        &mut self,
        consumer: &mut Consumer<'_, Token>,
        n: usize,
    ) -> Result<Vec<Got>, Refusal> {
        self.call(
            || consumer.take(n, NOW).map(drain),
            |answer| match answer {
                Ok(all) => {
                    let one = |got: &Got| Step::Take { n: 1, got: vec![*got] };
                    std::iter::once(Step::TakePasses).chain(all.iter().map(one)).collect()
                }
                Err(refusal) => {
                    let in_vain = if *refusal == Refusal::Closed { n } else { 0 };
                    let mut steps = vec![Step::TakeInVain; in_vain];
                    steps.push(take_step(n, answer));
                    steps
                }
            },
        )
    }

    pub fn complete(
        &mut self,
        consumer: &mut Consumer<'_, Token>,
        targets: &[(i64, u32)],
    ) -> Result<Completed, Refusal> {
        let named: Vec<Target> = targets.iter().copied().map(target).collect();
        let mut outcomes = vec![None; named.len()];
        self.begin();
        let answer = consumer.complete_with(
            &named,
            NOW,
            |index, outcome| outcomes[index] = Some(outcome),
            |offset, token| token.touch(offset),
        );
        let end = self.end();
        if answer.is_err() {
            let in_vain = |target: &Target| Step::FinishInVain { offset: target.offset };
            self.push(end, named.iter().map(in_vain));
        }
        self.push(end, finish_steps(Mode::Concurrent, &named, &outcomes, &answer));
        answer
    }

    pub fn requeue_some(
        &mut self,
        consumer: &mut Consumer<'_, Token>,
        targets: &[(i64, u32)],
        plus: u8,
    ) -> Result<Requeued, Refusal> {
        let named: Vec<Target> = targets.iter().copied().map(target).collect();
        let mut outcomes = vec![None; named.len()];
        self.begin();
        let answer = consumer.requeue_with(
            &named,
            plus,
            NOW,
            |index, outcome| outcomes[index] = Some(outcome),
            |offset, token| token.touch(offset),
        );
        let end = self.end();
        self.push(end, requeue_steps(&named, plus, &outcomes, &answer));
        answer
    }

    pub fn claim<'q>(
        &mut self,
        consumer: &mut Consumer<'q, Token>,
        (offset, delivery): (i64, u32),
    ) -> Option<Claim<'q, Token>> {
        let answer = self.call(
            || consumer.claim(target((offset, delivery)), NOW),
            |answer| {
                let step = |outcome| Step::Claim { offset, delivery, outcome };
                vec![match answer {
                    Ok(Ok(_)) => step(Outcome::Won),
                    Ok(Err(outcome)) => step(*outcome),
                    Err(Refusal::Closed) => Step::ClosedAnswer,
                    Err(other) => panic!("claim answered {other:?}"),
                }]
            },
        );
        let claim = answer.ok()?.ok()?;
        claim.touch(offset);
        Some(claim)
    }

    pub fn settle(&mut self, claim: Claim<'_, Token>, sent: bool) -> Result<Completed, Refusal> {
        let offset = claim.offset();
        claim.touch(offset);
        self.call(
            || claim.settle_with(sent, 0, NOW, |offset, token| token.touch(offset)),
            |answer| match answer {
                Ok(completed) => {
                    let mut steps = vec![Step::Settle { offset, sent, refused: false }];
                    steps.extend(sent.then_some(Step::FinishCarries));
                    steps.push(Step::SafeAnswer(completed.safe_offset));
                    steps
                }
                Err(Refusal::Closed) => vec![
                    Step::FinishInVain { offset },
                    Step::Settle { offset, sent, refused: true },
                ],
                Err(other) => panic!("settle answered {other:?}"),
            },
        )
    }

    pub fn expired(&mut self, queue: &Queue, limit_over: bool, max: usize) -> Vec<i64> {
        let limit = if limit_over { 5 } else { 1_000_000 };
        let mut out = Vec::new();
        self.begin();
        let told = queue.expired(NOW + 10, limit, max, &mut out);
        let end = self.end();
        assert_eq!(told, out.len());
        let offsets: Vec<i64> = out.iter().map(|expired| expired.offset).collect();
        self.push(end, [Step::Expired { limit_over, max, offsets: offsets.clone() }]);
        offsets
    }
}

/// Verbs of anybody, and the reads.
impl Log {
    pub fn stop(&mut self, queue: &Queue) {
        self.call(|| queue.stop(), |()| vec![Step::Stop]);
    }

    pub fn close(&mut self, queue: &Queue) -> Result<Closed, Refusal> {
        self.call(
            || queue.close_with(NOW, |offset, token| token.touch(offset)),
            |answer| {
                vec![match answer {
                    Ok(closed) => {
                        Step::Close { safe: closed.safe_offset, hand_over: closed.hand_over }
                    }
                    Err(Refusal::Closed) => Step::CloseRefused,
                    Err(other) => panic!("close answered {other:?}"),
                }]
            },
        )
    }

    pub fn snapshot(&mut self, queue: &Queue) -> Snapshot {
        self.call(|| queue.snapshot(NOW), |told| vec![Step::Snapshot(Box::new(*told))])
    }

    pub fn safe(&mut self, queue: &Queue) -> i64 {
        self.call(|| queue.safe_offset(), |safe| vec![Step::Safe(*safe)])
    }

    pub fn pull_offset(&mut self, queue: &Queue) -> i64 {
        self.call(|| queue.pull_offset(), |pull| vec![Step::PullOffset(*pull)])
    }

    pub fn is_closed(&mut self, queue: &Queue) -> bool {
        self.call(|| queue.is_closed(), |closed| vec![Step::IsClosed(*closed)])
    }

    pub fn contains(&mut self, queue: &Queue, offset: i64) -> bool {
        self.call(
            || queue.contains(offset),
            |answer| vec![Step::Contains { offset, answer: *answer }],
        )
    }

    pub fn has_ready(&mut self, queue: &Queue) -> bool {
        self.call(|| queue.has_ready(), |answer| vec![Step::HasReady(*answer)])
    }

    pub fn count(&mut self, queue: &Queue) -> u64 {
        self.call(|| queue.count(), |count| vec![Step::Count(*count)])
    }

    pub fn bytes(&mut self, queue: &Queue) -> u64 {
        self.call(|| queue.bytes(), |bytes| vec![Step::Bytes(*bytes)])
    }

    pub fn span(&mut self, queue: &Queue) -> i64 {
        self.call(|| queue.span(), |span| vec![Step::Span(*span)])
    }

    /// Everything there is to read, when no other call runs.
    pub fn everything(&mut self, queue: &Queue) {
        self.snapshot(queue);
        self.call(
            || (queue.safe_offset(), queue.pull_offset(), queue.is_closed()),
            |&(safe, pull, closed)| vec![Step::AtRest { safe, pull, closed }],
        );
        self.has_ready(queue);
        self.count(queue);
        self.bytes(queue);
        self.span(queue);
    }
}
