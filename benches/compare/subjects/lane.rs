//! `lanekeeper` itself, through its Rust surface.

use lanekeeper::process_queue::{
    Committed, Config, Consumer, Mode, ProcessQueue, Puller, Refusal, Target, Turn,
};

use crate::ring::{Payload, Pulled};
use crate::subject::{AnyOrder, Cache, Commit, Complete, Observed, Ordered, Pull, Rollback};

/// A `ProcessQueue` of pointers.
pub struct Lane(ProcessQueue<Payload>);

impl Cache for Lane {
    const NAME: &'static str = "lanekeeper";
    type Puller<'q> = LanePuller<'q>;

    fn new(mode: Mode, room: usize) -> Self {
        let outstanding_max = Config::default().outstanding_max.max(room as u32);
        let config = Config { mode, outstanding_max, ..Config::default() };
        Self(ProcessQueue::new(config).expect("the configuration is right"))
    }

    fn puller(&self) -> LanePuller<'_> {
        LanePuller { queue: &self.0, puller: self.0.puller().expect("one puller") }
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        self.0.count()
    }
}

/// The puller, with its queue for the count.
pub struct LanePuller<'q> {
    queue: &'q ProcessQueue<Payload>,
    puller: Puller<'q, Payload>,
}

impl Pull for LanePuller<'_> {
    #[inline(always)]
    fn put(&mut self, batch: &[Pulled], now_ms: i64) {
        let refused = |offset, _, why| panic!("offset {offset} was refused: {why:?}");
        let put = self.puller.put_slice(batch, now_ms, None, refused).expect("it is accepted");
        assert_eq!(put.accepted as usize, batch.len());
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        self.queue.count()
    }
}

/// The one turn of an orderly queue.
pub struct LaneTurn<'q>(Turn<'q, Payload>);

impl Ordered for Lane {
    type Turn<'q> = LaneTurn<'q>;
    fn turn(&self) -> LaneTurn<'_> {
        LaneTurn(self.0.begin_turn(0).expect("one turn"))
    }
}

impl Commit for LaneTurn<'_> {
    #[inline(always)]
    fn take(&mut self, n: usize, now_ms: i64, mut consume: impl FnMut(Payload)) -> usize {
        match self.0.take(n, now_ms) {
            Ok(batch) => {
                let taken = batch.len();
                batch.for_each(|message| consume(*message));
                taken
            }
            Err(Refusal::Empty) => 0,
            Err(refusal) => panic!("take: {refusal}"),
        }
    }

    #[inline(always)]
    fn commit(&mut self, now_ms: i64) -> i64 {
        match self.0.commit(now_ms) {
            Ok(Committed::Finished { safe_offset, .. }) => safe_offset,
            other => panic!("commit: {other:?}"),
        }
    }
}

impl Rollback for LaneTurn<'_> {
    #[inline(always)]
    fn rollback(&mut self, now_ms: i64) -> usize {
        self.0.rollback(now_ms).expect("the queue is open") as usize
    }
}

/// One consumer of a concurrent queue.
pub struct LaneConsumer<'q>(Consumer<'q, Payload>);

impl AnyOrder for Lane {
    type Consumer<'q> = LaneConsumer<'q>;
    fn consumer(&self) -> LaneConsumer<'_> {
        LaneConsumer(self.0.consumer().expect("there is a place"))
    }
}

impl Complete for LaneConsumer<'_> {
    #[inline(always)]
    fn take(&mut self, n: usize, now_ms: i64, mut consume: impl FnMut(Payload)) -> usize {
        match self.0.take(n, now_ms) {
            Ok(batch) => {
                let taken = batch.len();
                batch.for_each(|message| consume(*message));
                taken
            }
            Err(Refusal::Empty) => 0,
            Err(refusal) => panic!("take: {refusal}"),
        }
    }

    #[inline(always)]
    fn complete(&mut self, offset: i64, now_ms: i64) -> i64 {
        let completed = self.0.complete(&[Target::from(offset)], now_ms).expect("it is open");
        assert_eq!(completed.finished, 1);
        completed.safe_offset
    }
}

impl Observed for Lane {
    #[inline(always)]
    fn poll(&self) -> (i64, u64, i64) {
        (self.0.span(), self.0.count(), self.0.safe_offset())
    }
}
