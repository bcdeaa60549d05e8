//! Models of the orderly mode: one turn holder, one puller, anybody else.

use std::sync::Arc;

use lanekeeper::process_queue::{Refusal, TurnEnd};

use crate::kit::history::Log;
use crate::kit::record::Queue;
use crate::scene::{Rest, Scene, sized};

/// Both messages of a batch become visible together, payloads included, in two segments.
pub fn put_take() -> Rest {
    let mut scene = Scene::orderly();
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(0), sized(1), sized(2)]).expect("open");
    });
    let mut log = scene.beside();
    let mut taken = 0;
    for _ in 0..2 {
        taken += log.take(&mut turn, 2).map_or(0, |got| got.len());
    }
    drop(log);
    puller.join().expect("puller");
    let _ = scene.log.take(&mut turn, 3);
    assert_eq!(turn.in_flight_count(), 3, "{taken} taken before");
    scene.log.commit(&mut turn).expect("three in flight");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// Two pullers: at least one does its work, the other is told BUSY or comes later.
pub fn put_put() -> Rest {
    let scene = Scene::orderly();
    let other = scene.spawn(2, |log, queue, ledger| {
        if let Ok(mut puller) = queue.puller() {
            log.put(&mut puller, ledger, &[sized(0), sized(1)]).expect("open");
        }
    });
    let mut log = scene.beside();
    match scene.queue.puller() {
        Ok(mut puller) => {
            log.put(&mut puller, &scene.ledger, &[sized(1), sized(2)]).expect("open");
        }
        Err(refusal) => assert_eq!(refusal, Refusal::Busy),
    }
    drop(log);
    other.join().expect("the other puller");
    assert!(scene.queue.pull_offset() > 0, "nobody pulled");
    let queue = Arc::clone(&scene.queue);
    queue.puller().expect("the role is free again");
    scene.finish([])
}

/// A commit that empties the queue never stores an offset above a message that is being put.
pub fn put_commit() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(1), sized(2)]).expect("open");
    });
    let mut log = scene.beside();
    log.commit(&mut turn).expect("open");
    drop(log);
    puller.join().expect("puller");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// What is being put is taken and committed before its put is through: at rest the safe offset is
/// above it.
pub fn put_take_commit() -> Rest {
    let mut scene = Scene::orderly();
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(0)]).expect("open");
    });
    let mut log = scene.beside();
    let _ = log.take(&mut turn, 1);
    log.commit(&mut turn).expect("open");
    log.end_turn(turn);
    drop(log);
    scene.finish([puller])
}

/// The same above a gap: at rest the safe offset is that of the first message, whoever was last
/// (W3).
pub fn put_gap_commit() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(5)]).expect("open");
    });
    let mut log = scene.beside();
    log.commit(&mut turn).expect("open");
    drop(log);
    puller.join().expect("puller");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// A put is in whole, or it is answered Closed and nothing of it stays.
pub fn put_close() -> Rest {
    let scene = Scene::orderly();
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        let _ = log.put(&mut puller, ledger, &[sized(0), sized(1), sized(2)]);
    });
    let mut log = scene.beside();
    log.close(&scene.queue).expect("the only close");
    log.count(&scene.queue);
    drop(log);
    scene.finish([puller])
}

/// What `take` hands over stays readable until the turn ends, closed or not.
pub fn take_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.take(&mut turn, 2);
    for message in turn.in_flight() {
        message.touch(message.offset);
    }
    log.end_turn(turn);
    drop(log);
    scene.finish([closer])
}

/// Of a take that finds nothing and a put exactly one side goes on (W11).
pub fn take_nothing_put() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(1)]).expect("open");
    });
    let mut log = scene.beside();
    let _ = log.take(&mut turn, 1);
    drop(log);
    puller.join().expect("puller");
    scene.log.commit(&mut turn).expect("open");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// The end of a turn and a put: what is ready has somebody scheduled for it.
pub fn end_put() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    scene.log.commit(&mut turn).expect("open");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(1)]).expect("open");
    });
    let mut log = scene.beside();
    log.end_turn(turn);
    drop(log);
    scene.finish([puller])
}

/// A commit is in the final offset, or it is answered Closed and has no effect (W10).
pub fn commit_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 2).expect("ready");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
        log.safe(queue);
    });
    let mut log = scene.beside();
    let _ = log.commit(&mut turn);
    log.end_turn(turn);
    drop(log);
    scene.finish([closer])
}

/// No snapshot and no read sees half a commit (W4, W13).
pub fn commit_snapshot() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    let observer = scene.spawn(2, |log, queue, _| {
        log.snapshot(queue);
    });
    let mut log = scene.beside();
    log.commit(&mut turn).expect("open");
    drop(log);
    observer.join().expect("observer");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// A put while somebody looks: the batch is in the cut as a whole.
pub fn put_snapshot() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let observer = scene.spawn(2, |log, queue, _| {
        log.snapshot(queue);
    });
    let mut log = scene.beside();
    let mut puller = scene.queue.puller().expect("the only puller");
    log.put(&mut puller, &scene.ledger, &[sized(1), sized(2)]).expect("open");
    drop(puller);
    drop(log);
    scene.finish([observer])
}

/// A rollback is one step for whoever looks (W5).
pub fn rollback_observer() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    let observer = scene.spawn(2, |log, queue, _| {
        log.snapshot(queue);
        log.contains(queue, 0);
        log.count(queue);
    });
    let mut log = scene.beside();
    log.rollback(&mut turn).expect("open");
    drop(log);
    observer.join().expect("observer");
    scene.log.take(&mut turn, 1).expect("the lowest again");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// A requeue in the middle of what is in flight, and an observer (W6).
pub fn requeue_snapshot() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    let observer = scene.spawn(2, |log, queue, _| {
        log.snapshot(queue);
    });
    let mut log = scene.beside();
    log.requeue(&mut turn, &[(1, 0)], 1).expect("open");
    drop(log);
    observer.join().expect("observer");
    scene.log.take(&mut turn, 1).expect("the one put back");
    scene.log.commit(&mut turn).expect("open");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// A requeue is before the close, or answered Closed; the payloads go exactly once either way.
pub fn requeue_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.requeue(&mut turn, &[(1, 0)], 1);
    let _ = log.take(&mut turn, 1);
    log.end_turn(turn);
    drop(log);
    scene.finish([closer])
}

/// A completion out of order by the turn holder, and a close.
pub fn complete_lane_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.complete_held(&mut turn, &[(1, 0)]);
    let _ = log.complete_held(&mut turn, &[(0, 0)]);
    log.end_turn(turn);
    drop(log);
    scene.finish([closer])
}

/// A rollback is before the close, or answered Closed.
pub fn rollback_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 2).expect("ready");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.rollback(&mut turn);
    log.end_turn(turn);
    drop(log);
    scene.finish([closer])
}

/// A snapshot while the turn holder completes out of order, the lowest last: one cut each time.
pub fn complete_lane_snapshot() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    scene.log.complete_held(&mut turn, &[(1, 0)]).expect("open");
    let observer = scene.spawn(2, |log, queue, _| {
        log.snapshot(queue);
    });
    let mut log = scene.beside();
    log.complete_held(&mut turn, &[(0, 0)]).expect("open");
    drop(log);
    observer.join().expect("observer");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// A turn put down by one thread and taken up by another that races for it with a third.
pub fn token_round() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let token = turn.suspend();
    let other = scene.spawn(2, move |log, queue, _| match queue.resume_turn(token) {
        Ok(mut turn) => {
            let _ = log.commit(&mut turn);
            log.end_turn(turn);
        }
        Err(refusal) => assert!(matches!(refusal, Refusal::Busy | Refusal::Stale)),
    });
    let mut log = scene.beside();
    match queue.resume_turn(token) {
        Ok(mut turn) => {
            let _ = log.commit(&mut turn);
            log.end_turn(turn);
        }
        Err(refusal) => assert!(matches!(refusal, Refusal::Busy | Refusal::Stale)),
    }
    drop(log);
    other.join().expect("the other thread");
    assert_eq!(queue.resume_turn(token).err(), Some(Refusal::Stale), "somebody ended it");
    scene.finish([])
}

/// Two threads that take the turn up, use it and put it down again: each sees what the last one
/// did.
pub fn token_park() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1]);
    let queue = Arc::clone(&scene.queue);
    let token = scene.log.begin_turn(&queue).expect("the first turn").suspend();
    let use_it = move |log: &mut Log, queue: &Queue| match queue.resume_turn(token) {
        Ok(mut turn) => {
            log.take(&mut turn, 1).expect("ready");
            turn.suspend();
        }
        Err(refusal) => assert_eq!(refusal, Refusal::Busy),
    };
    let other = scene.spawn(2, move |log, queue, _| use_it(log, queue));
    let mut log = scene.beside();
    use_it(&mut log, &queue);
    drop(log);
    other.join().expect("the other thread");
    let mut turn = queue.resume_turn(token).expect("put down");
    scene.log.commit(&mut turn).expect("open");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// A gap below what is put into an empty queue is not outstanding (W8).
pub fn put_gap_span() -> Rest {
    let scene = Scene::orderly();
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(5), sized(6)]).expect("open");
    });
    let mut log = scene.beside();
    log.span(&scene.queue);
    drop(log);
    scene.finish([puller])
}

/// Three batches, the third of which uses the record of the first, and a reader that may be late.
/// The third needs no new segment, which would order more than a put does.
fn put_thrice_under(read: impl Fn(&mut Log, &Queue)) -> Rest {
    let scene = Scene::orderly();
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(5)]).expect("open");
        log.put(&mut puller, ledger, &[sized(6), sized(7)]).expect("open");
        log.put(&mut puller, ledger, &[sized(8)]).expect("open");
    });
    let mut log = scene.beside();
    read(&mut log, &scene.queue);
    drop(log);
    scene.finish([puller])
}

/// A cut is of one moment (W13).
pub fn put_thrice_snapshot() -> Rest {
    put_thrice_under(|log, queue| {
        log.snapshot(queue);
    })
}

/// And so is the span (W8).
pub fn put_thrice_span() -> Rest {
    put_thrice_under(|log, queue| {
        log.span(queue);
    })
}

/// Who was told that the queue is stopped finds it stopped (W16).
pub fn stop_take_put() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    let mut puller = queue.puller().expect("the only puller");
    let stopper = scene.spawn(2, |log, queue, _| log.stop(queue));
    let mut log = scene.beside();
    let _ = log.take(&mut turn, 1);
    let _ = log.put(&mut puller, &scene.ledger, &[sized(1)]);
    log.end_turn(turn);
    drop((puller, log));
    scene.finish([stopper])
}

/// Who was shown a closed queue finds it closed (W10).
pub fn close_look() -> Rest {
    let scene = Scene::orderly();
    let queue = Arc::clone(&scene.queue);
    let mut puller = queue.puller().expect("the only puller");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    log.snapshot(&queue);
    let _ = log.advance(&mut puller, 0);
    drop((puller, log));
    scene.finish([closer])
}

/// Exactly the later of an advance and the commit that empties the queue tells the new offset (W9).
pub fn advance_commit() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let puller = scene.spawn(2, |log, queue, _| {
        let mut puller = queue.puller().expect("the only puller");
        log.advance(&mut puller, 7).expect("open");
    });
    let mut log = scene.beside();
    log.commit(&mut turn).expect("open");
    drop(log);
    puller.join().expect("puller");
    scene.log.end_turn(turn);
    scene.finish([])
}

/// An advance is in the final offset or answered Closed.
pub fn advance_close() -> Rest {
    let scene = Scene::orderly();
    let puller = scene.spawn(2, |log, queue, _| {
        let mut puller = queue.puller().expect("the only puller");
        let _ = log.advance(&mut puller, 7);
    });
    let mut log = scene.beside();
    log.close(&scene.queue).expect("the only close");
    drop(log);
    scene.finish([puller])
}

/// `close` succeeds once.
pub fn close_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1]);
    let other = scene.spawn(2, |log, queue, _| {
        let _ = log.close(queue);
    });
    let mut log = scene.beside();
    let _ = log.close(&scene.queue);
    drop(log);
    scene.finish([other])
}

/// Exactly one of `close` and the end of the turn tells that hand-over is due (T2).
pub fn end_close() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    log.end_turn(turn);
    drop(log);
    scene.finish([closer])
}

/// No turn begins on a queue that was handed over.
pub fn begin_close() -> Rest {
    let scene = Scene::orderly();
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    if let Ok(turn) = log.begin_turn(&scene.queue) {
        log.end_turn(turn);
    }
    drop(log);
    scene.finish([closer])
}

/// Whoever is answered Busy has left a note, and the turn's end says RunAgain (T1).
pub fn begin_begin_end() -> Rest {
    let mut scene = Scene::orderly();
    let queue = Arc::clone(&scene.queue);
    let turn = scene.log.begin_turn(&queue).expect("the first turn");
    let begin = |log: &mut Log, queue: &Queue, _: &_| {
        if let Ok(turn) = log.begin_turn(queue) {
            log.end_turn(turn);
        }
    };
    let others = [scene.spawn(2, begin), scene.spawn(3, begin)];
    let mut log = scene.beside();
    let end = log.end_turn(turn);
    assert_ne!(end, TurnEnd::HandOver, "nobody closed");
    drop(log);
    scene.finish(others)
}

/// A batch, its consumer and an observer of the single reads.
pub fn reads_bounds() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 1).expect("one ready");
    let others = [
        scene.spawn(2, |log, queue, ledger| {
            let mut puller = queue.puller().expect("the only puller");
            log.put(&mut puller, ledger, &[sized(1)]).expect("open");
        }),
        scene.spawn(3, |log, queue, _| {
            log.count(queue);
            log.span(queue);
        }),
    ];
    let mut log = scene.beside();
    log.commit(&mut turn).expect("open");
    log.end_turn(turn);
    drop(log);
    scene.finish(others)
}

/// A segment goes back to the pool and comes again while somebody is still looking into it. The
/// reader is the main thread, so that one preemption is enough to catch it in the middle.
fn recycle_under(read: impl Fn(&mut Log, &Queue)) -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 2).expect("ready");
    let token = turn.suspend();
    let writer = scene.spawn(2, move |log, queue, ledger| {
        let mut turn = queue.resume_turn(token).expect("nobody else has it");
        log.commit(&mut turn).expect("open");
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(3), sized(4)]).expect("open");
        log.end_turn(turn);
    });
    let mut log = scene.beside();
    read(&mut log, &queue);
    drop(log);
    scene.finish([writer])
}

/// By offset.
pub fn late_reader() -> Rest {
    recycle_under(|log, queue| {
        log.contains(queue, 2);
    })
}

/// A cut.
pub fn late_snapshot() -> Rest {
    recycle_under(|log, queue| {
        log.snapshot(queue);
    })
}

/// Two steps of a spread state: the second writes over the record that a reader of the first may be
/// in. The reader starts last, and what it sees may be as old as the memory model allows. Something
/// is ready all the time, in the first state below what was taken, in the last above it.
pub fn requeue_twice_reader() -> Rest {
    let mut scene = Scene::orderly();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut turn = scene.log.begin_turn(&queue).expect("the first turn");
    scene.log.take(&mut turn, 3).expect("ready");
    scene.log.requeue(&mut turn, &[(0, 0)], 1).expect("open");
    let reader = scene.spawn(2, |log, queue, _| {
        assert!(log.has_ready(queue), "something is ready all the time");
    });
    let mut log = scene.beside();
    log.rollback(&mut turn).expect("open");
    log.take(&mut turn, 2).expect("ready");
    log.complete_held(&mut turn, &[(1, 0)]).expect("open");
    drop(log);
    reader.join().expect("reader");
    scene.log.end_turn(turn);
    scene.finish([])
}
