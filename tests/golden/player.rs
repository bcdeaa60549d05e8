//! What a recorded line is played on: the queue, its twin, or both in step.

use std::fmt::Debug;

use lanekeeper::process_queue::{
    Committed, Completed, Config, ConsumerToken, Expired, Incoming, Mode, Outcome, ProcessQueue,
    Put, PutError, Refusal, Requeued, Snapshot, Target, TurnToken,
};

use crate::data::{Body, Row};
use crate::twin::{Twin, Who};

/// The verbs the recordings need.
pub trait Played {
    fn open(mode: Mode) -> Self;
    fn put(&mut self, batch: &[Body], now_ms: i64, max: Option<i64>) -> Result<Put, PutError>;
    fn take(&mut self, n: usize, now_ms: i64) -> Result<Vec<Body>, Refusal>;
    fn commit(&mut self) -> Result<Committed, Refusal>;
    fn rollback(&mut self) -> Result<u32, Refusal>;
    fn requeue(&mut self, offsets: &[i64]) -> Result<Requeued, Refusal>;
    fn complete(&mut self, offsets: &[i64]) -> Result<Completed, Refusal>;
    fn expired(&self, now_ms: i64, limit_ms: i64, max: usize) -> Vec<Expired>;
    /// Claims and settles at once; the message is not ready again before `not_before_ms`.
    fn claim_and_settle(
        &mut self,
        target: Target,
        sent: bool,
        not_before_ms: i64,
    ) -> Result<Completed, Outcome>;
    fn span(&self) -> i64;
    fn has_ready(&self) -> bool;
    fn contains(&self, offset: i64) -> bool;
    fn snapshot(&self) -> Snapshot;

    /// The state as the recordings have it. The flag says that somebody was told to consume; in
    /// concurrent mode, where nothing is taken back, that is so since the first message.
    fn row(&self, mode: Mode) -> Row {
        let s = self.snapshot();
        let flag = match mode {
            Mode::Orderly => s.scheduled,
            Mode::Concurrent => s.highest_put >= 0,
        };
        [
            s.cached_count as i64,
            s.cached_min,
            s.cached_max,
            s.in_flight_count as i64,
            s.in_flight_min,
            s.in_flight_max,
            s.count as i64,
            s.bytes as i64,
            i64::from(flag),
            s.highest_put.max(0),
            s.lag,
        ]
    }
}

fn incoming(batch: &[Body]) -> Vec<Incoming<u64>> {
    batch.iter().map(|(offset, size)| Incoming::new(*offset, *offset as u64, *size)).collect()
}

fn config(mode: Mode) -> Config {
    Config { mode, ..Config::default() }
}

fn targets(offsets: &[i64]) -> Vec<Target> {
    offsets.iter().map(|offset| Target::from(*offset)).collect()
}

/// The twin with one turn or one consumer.
pub struct TwinPlayer {
    twin: Twin,
    who: Who,
}

impl Played for TwinPlayer {
    fn open(mode: Mode) -> Self {
        let twin = Twin::new(config(mode));
        let who = match mode {
            Mode::Orderly => {
                twin.begin_turn().unwrap();
                Who::Turn
            }
            Mode::Concurrent => {
                twin.consumer(0).unwrap();
                Who::Consumer(0)
            }
        };
        Self { twin, who }
    }

    fn put(&mut self, batch: &[Body], now_ms: i64, max: Option<i64>) -> Result<Put, PutError> {
        self.twin.put(&incoming(batch), now_ms, max).map(|(put, _)| put)
    }

    fn take(&mut self, n: usize, now_ms: i64) -> Result<Vec<Body>, Refusal> {
        let taken = self.twin.take(self.who, n, now_ms)?;
        Ok(taken.iter().map(|m| (m.offset, m.size)).collect())
    }

    fn commit(&mut self) -> Result<Committed, Refusal> {
        self.twin.commit()
    }

    fn rollback(&mut self) -> Result<u32, Refusal> {
        self.twin.rollback()
    }

    fn requeue(&mut self, offsets: &[i64]) -> Result<Requeued, Refusal> {
        self.twin.requeue(self.who, &targets(offsets), 0).map(|(answer, _)| answer)
    }

    fn complete(&mut self, offsets: &[i64]) -> Result<Completed, Refusal> {
        self.twin.complete(self.who, &targets(offsets)).map(|(answer, _)| answer)
    }

    fn expired(&self, now_ms: i64, limit_ms: i64, max: usize) -> Vec<Expired> {
        self.twin.expired(now_ms, limit_ms, max)
    }

    fn claim_and_settle(
        &mut self,
        target: Target,
        sent: bool,
        not_before_ms: i64,
    ) -> Result<Completed, Outcome> {
        let claim = self.twin.claim(self.who, target).unwrap()?;
        Ok(self.twin.settle(claim, sent, not_before_ms, 0).unwrap())
    }

    fn span(&self) -> i64 {
        self.twin.span()
    }

    fn has_ready(&self) -> bool {
        self.twin.has_ready()
    }

    fn contains(&self, offset: i64) -> bool {
        self.twin.contains(offset)
    }

    fn snapshot(&self) -> Snapshot {
        self.twin.snapshot(0)
    }
}

/// The queue itself; turn and consumer are put down between calls.
pub struct QueuePlayer {
    queue: ProcessQueue<u64>,
    turn: Option<TurnToken>,
    consumer: Option<ConsumerToken>,
}

/// Runs `$body` with the turn or the consumer, whichever there is, as `$handle`.
macro_rules! with_handle {
    ($player:expr, |$handle:ident| $body:expr) => {
        if let Some(token) = $player.turn {
            let mut $handle = $player.queue.resume_turn(token).unwrap();
            let answer = $body;
            $player.turn = Some($handle.suspend());
            answer
        } else {
            let token = $player.consumer.unwrap();
            let mut $handle = $player.queue.resume_consumer(token).unwrap();
            let answer = $body;
            $player.consumer = Some($handle.suspend());
            answer
        }
    };
}

impl Played for QueuePlayer {
    fn open(mode: Mode) -> Self {
        let queue = ProcessQueue::new(config(mode)).unwrap();
        let orderly = mode == Mode::Orderly;
        let turn = orderly.then(|| queue.begin_turn(0).unwrap().suspend());
        let consumer = (!orderly).then(|| queue.consumer().unwrap().suspend());
        Self { queue, turn, consumer }
    }

    fn put(&mut self, batch: &[Body], now_ms: i64, max: Option<i64>) -> Result<Put, PutError> {
        self.queue.puller().unwrap().put(&mut incoming(batch), now_ms, max)
    }

    fn take(&mut self, n: usize, now_ms: i64) -> Result<Vec<Body>, Refusal> {
        with_handle!(self, |handle| {
            handle.take(n, now_ms).map(|batch| {
                batch
                    .map(|m| {
                        assert_eq!(*m, m.offset as u64, "the payload of another message");
                        (m.offset, m.size)
                    })
                    .collect()
            })
        })
    }

    fn commit(&mut self) -> Result<Committed, Refusal> {
        let mut turn = self.queue.resume_turn(self.turn.unwrap()).unwrap();
        let answer = turn.commit(0);
        self.turn = Some(turn.suspend());
        answer
    }

    fn rollback(&mut self) -> Result<u32, Refusal> {
        let mut turn = self.queue.resume_turn(self.turn.unwrap()).unwrap();
        let answer = turn.rollback(0);
        self.turn = Some(turn.suspend());
        answer
    }

    fn requeue(&mut self, offsets: &[i64]) -> Result<Requeued, Refusal> {
        with_handle!(self, |handle| handle.requeue(offsets, 0, 0))
    }

    fn complete(&mut self, offsets: &[i64]) -> Result<Completed, Refusal> {
        with_handle!(self, |handle| handle.complete(offsets, 0))
    }

    fn expired(&self, now_ms: i64, limit_ms: i64, max: usize) -> Vec<Expired> {
        let mut named = Vec::new();
        self.queue.expired(now_ms, limit_ms, max, &mut named);
        named
    }

    fn claim_and_settle(
        &mut self,
        target: Target,
        sent: bool,
        not_before_ms: i64,
    ) -> Result<Completed, Outcome> {
        let mut consumer = self.queue.resume_consumer(self.consumer.unwrap()).unwrap();
        let answer = match consumer.claim(target, 0).unwrap() {
            Ok(claim) => Ok(claim.settle(sent, not_before_ms, 0).unwrap()),
            Err(outcome) => Err(outcome),
        };
        self.consumer = Some(consumer.suspend());
        answer
    }

    fn span(&self) -> i64 {
        self.queue.span()
    }

    fn has_ready(&self) -> bool {
        self.queue.has_ready()
    }

    fn contains(&self, offset: i64) -> bool {
        self.queue.contains(offset)
    }

    fn snapshot(&self) -> Snapshot {
        self.queue.snapshot(0)
    }
}

/// Queue and twin in step: every answer must be the same.
pub struct Both {
    queue: QueuePlayer,
    twin: TwinPlayer,
}

fn agreed<A: PartialEq + Debug>(what: &str, queue: A, twin: A) -> A {
    assert!(queue == twin, "{what}\n  queue: {queue:?}\n  twin: {twin:?}");
    queue
}

impl Played for Both {
    fn open(mode: Mode) -> Self {
        Self { queue: QueuePlayer::open(mode), twin: TwinPlayer::open(mode) }
    }

    fn put(&mut self, batch: &[Body], now_ms: i64, max: Option<i64>) -> Result<Put, PutError> {
        agreed("put", self.queue.put(batch, now_ms, max), self.twin.put(batch, now_ms, max))
    }

    fn take(&mut self, n: usize, now_ms: i64) -> Result<Vec<Body>, Refusal> {
        agreed("take", self.queue.take(n, now_ms), self.twin.take(n, now_ms))
    }

    fn commit(&mut self) -> Result<Committed, Refusal> {
        agreed("commit", self.queue.commit(), self.twin.commit())
    }

    fn rollback(&mut self) -> Result<u32, Refusal> {
        agreed("rollback", self.queue.rollback(), self.twin.rollback())
    }

    fn requeue(&mut self, offsets: &[i64]) -> Result<Requeued, Refusal> {
        agreed("requeue", self.queue.requeue(offsets), self.twin.requeue(offsets))
    }

    fn complete(&mut self, offsets: &[i64]) -> Result<Completed, Refusal> {
        agreed("complete", self.queue.complete(offsets), self.twin.complete(offsets))
    }

    fn expired(&self, now_ms: i64, limit_ms: i64, max: usize) -> Vec<Expired> {
        let twin = self.twin.expired(now_ms, limit_ms, max);
        agreed("expired", self.queue.expired(now_ms, limit_ms, max), twin)
    }

    fn claim_and_settle(
        &mut self,
        target: Target,
        sent: bool,
        not_before_ms: i64,
    ) -> Result<Completed, Outcome> {
        let twin = self.twin.claim_and_settle(target, sent, not_before_ms);
        agreed("settle", self.queue.claim_and_settle(target, sent, not_before_ms), twin)
    }

    fn span(&self) -> i64 {
        agreed("span", self.queue.span(), self.twin.span())
    }

    fn has_ready(&self) -> bool {
        agreed("has_ready", self.queue.has_ready(), self.twin.has_ready())
    }

    fn contains(&self, offset: i64) -> bool {
        agreed("contains", self.queue.contains(offset), self.twin.contains(offset))
    }

    fn snapshot(&self) -> Snapshot {
        agreed("snapshot", self.queue.snapshot(), self.twin.snapshot())
    }
}
