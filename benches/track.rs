//! A small stable set, to see a change of our own from one commit to the next. How we stand
//! beside others is told by `compare`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lanekeeper::process_queue::{Config, Incoming, Mode, ProcessQueue, Puller};

const BATCH: usize = 32;
const CACHED: usize = 512;

fn queue(mode: Mode) -> ProcessQueue<u64> {
    ProcessQueue::new(Config { mode, ..Config::default() }).expect("the configuration is right")
}

/// Puts the next 32 messages.
struct Feed<'q> {
    puller: Puller<'q, u64>,
    next: i64,
}

impl<'q> Feed<'q> {
    fn new(queue: &'q ProcessQueue<u64>, cached: usize) -> Self {
        let puller = queue.puller().expect("one puller");
        let mut feed = Self { puller, next: 0 };
        (0..cached / BATCH).for_each(|_| feed.put());
        feed
    }

    fn put(&mut self) {
        let batch: [Incoming<u64>; BATCH] = std::array::from_fn(|i| {
            let offset = self.next + i as i64;
            Incoming::new(offset, offset as u64, 100)
        });
        let put = self.puller.put_slice(&batch, 0, None, |_, _, _| ());
        assert_eq!(put.expect("it is accepted").accepted as usize, BATCH);
        self.next += BATCH as i64;
    }
}

fn put_take_commit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("track");
    group.throughput(Throughput::Elements(BATCH as u64));
    for take in [1, BATCH] {
        let queue = queue(Mode::Orderly);
        let mut feed = Feed::new(&queue, 0);
        let mut turn = queue.begin_turn(0).expect("one turn");
        group.bench_function(format!("put_take_{take}_commit"), |bencher| {
            bencher.iter(|| {
                feed.put();
                for _ in 0..BATCH / take {
                    let batch = turn.take(take, 0).expect("they are ready");
                    batch.for_each(|message| assert_eq!(message.offset as u64, *message));
                    black_box(turn.commit(0).expect("it is open"));
                }
            });
        });
    }
    group.finish();
}

fn rollback(criterion: &mut Criterion) {
    let queue = queue(Mode::Orderly);
    drop(Feed::new(&queue, CACHED));
    let mut turn = queue.begin_turn(0).expect("one turn");
    criterion.bench_function("track/take_32_rollback", |bencher| {
        bencher.iter(|| {
            black_box(turn.take(BATCH, 0).expect("they are ready").len());
            assert_eq!(turn.rollback(0), Ok(BATCH as u32));
        });
    });
}

fn complete(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("track");
    group.throughput(Throughput::Elements(BATCH as u64));
    let queue = queue(Mode::Concurrent);
    let mut feed = Feed::new(&queue, 0);
    let mut consumer = queue.consumer().expect("there is a place");
    group.bench_function("put_take_complete_backwards", |bencher| {
        bencher.iter(|| {
            feed.put();
            assert_eq!(consumer.take(BATCH, 0).expect("they are ready").len(), BATCH);
            for offset in (feed.next - BATCH as i64..feed.next).rev() {
                black_box(consumer.complete(&[offset], 0).expect("it is open"));
            }
        });
    });
    group.finish();
}

fn reads(criterion: &mut Criterion) {
    let queue = queue(Mode::Orderly);
    drop(Feed::new(&queue, CACHED));
    let mut turn = queue.begin_turn(0).expect("one turn");
    assert_eq!(turn.take(BATCH, 0).expect("they are ready").len(), BATCH);
    criterion.bench_function("track/snapshot", |bencher| {
        bencher.iter(|| assert_eq!(queue.snapshot(1).count as usize, CACHED));
    });
    criterion.bench_function("track/span_count_safe_offset", |bencher| {
        bencher.iter(|| black_box((queue.span(), queue.count(), queue.safe_offset())));
    });
}

fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = track;
    config = short();
    targets = put_take_commit, rollback, complete, reads
}
criterion_main!(track);
