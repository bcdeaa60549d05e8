//! Models of the concurrent mode: several consumer handles, claims and loans.

use std::sync::Arc;

use lanekeeper::process_queue::{Consumer, Outcome, Target};

use crate::kit::history::Log;
use crate::kit::payload::Token;
use crate::kit::record::Queue;
use crate::scene::{Rest, Scene, sized};

/// A queue with `offsets` in flight with the consumer of the main thread.
fn in_flight<'q>(scene: &mut Scene, queue: &'q Queue, offsets: &[i64]) -> Consumer<'q, Token> {
    scene.ready(offsets);
    let mut consumer = queue.consumer().expect("a free place");
    let got = scene.log.take_some(&mut consumer, offsets.len()).expect("all are ready");
    assert_eq!(got.len(), offsets.len());
    consumer
}

/// A thread with a consumer of its own that completes `offset`.
fn completes(offset: i64) -> impl FnOnce(&mut Log, &Queue, &Arc<crate::kit::payload::Ledger>) {
    move |log, queue, _| {
        if let Ok(mut consumer) = queue.consumer() {
            let _ = log.complete(&mut consumer, &[(offset, 0)]);
        }
    }
}

/// Ends the loan of the first delivery of `offset`.
fn give_back(consumer: &mut Consumer<'_, Token>, offset: i64) {
    let target = Target { offset, delivery: 1 };
    let ended = consumer.give_back_with(&[target], |offset, token| token.touch(offset));
    assert_eq!(ended, 1, "one loan");
}

/// A completion that empties the queue never stores an offset above a message that is being put.
pub fn put_complete() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(3), sized(5)]).expect("open");
    });
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(0, 1)]).expect("open");
    drop((consumer, log));
    scene.finish([puller])
}

/// What is being put is completed before its put is through: at rest the safe offset is above it.
pub fn put_complete_ready() -> Rest {
    let scene = Scene::concurrent();
    let completer = scene.spawn(2, completes(0));
    let mut log = scene.beside();
    let mut puller = scene.queue.puller().expect("the only puller");
    log.put(&mut puller, &scene.ledger, &[sized(0)]).expect("open");
    drop((puller, log));
    scene.finish([completer])
}

/// Two consumers share three messages; none is delivered twice or lost.
pub fn take_take() -> Rest {
    let mut scene = Scene::concurrent();
    scene.ready(&[0, 1, 2]);
    let other = scene.spawn(2, |log, queue, _| {
        let mut consumer = queue.consumer().expect("a free place");
        let _ = log.take_some(&mut consumer, 2);
    });
    let mut log = scene.beside();
    let mut consumer = scene.queue.consumer().expect("a free place");
    let _ = log.take_some(&mut consumer, 2);
    drop((consumer, log));
    scene.finish([other])
}

/// A batch is taken while it arrives.
pub fn put_take_concurrent() -> Rest {
    let scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = queue.consumer().expect("a free place");
    let puller = scene.spawn(2, |log, queue, ledger| {
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(0), sized(1), sized(2)]).expect("open");
    });
    let mut log = scene.beside();
    let _ = log.take_some(&mut consumer, 3);
    drop((consumer, log));
    scene.finish([puller])
}

/// A ready message is completed while somebody takes it: delivered and finished, or finished only.
pub fn take_complete_ready() -> Rest {
    let mut scene = Scene::concurrent();
    scene.ready(&[0, 1]);
    let other = scene.spawn(2, completes(0));
    let mut log = scene.beside();
    let mut consumer = scene.queue.consumer().expect("a free place");
    let _ = log.take_some(&mut consumer, 1);
    drop((consumer, log));
    scene.finish([other])
}

/// The payloads of a batch stay readable while the queue closes and the batch lives.
pub fn take_close_concurrent() -> Rest {
    let mut scene = Scene::concurrent();
    scene.ready(&[0, 1, 2]);
    let queue = Arc::clone(&scene.queue);
    let mut consumer = queue.consumer().expect("a free place");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.take_some(&mut consumer, 2);
    drop((consumer, log));
    scene.finish([closer])
}

/// Of two completions of one offset exactly one wins (W7).
pub fn complete_complete_one() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let other = scene.spawn(2, completes(0));
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(0, 1)]).expect("open");
    drop((consumer, log));
    scene.finish([other])
}

/// Two offsets of one segment: the safe offset ends up above both.
pub fn complete_complete_two() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1]);
    let other = scene.spawn(2, completes(1));
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(0, 1)]).expect("open");
    drop((consumer, log));
    scene.finish([other])
}

/// The last open slots of two segments: both are passed, whoever is last.
pub fn complete_complete_segments() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1, 2, 3]);
    scene.log.complete(&mut consumer, &[(0, 0), (2, 0)]).expect("open");
    let other = scene.spawn(2, completes(3));
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(1, 1)]).expect("open");
    drop((consumer, log));
    scene.finish([other])
}

/// For one offset exactly one of `complete` and `claim` wins (W15).
pub fn complete_claim() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1]);
    let other = scene.spawn(2, completes(0));
    let mut log = scene.beside();
    if let Some(claim) = log.claim(&mut consumer, (0, 0)) {
        log.settle(claim, false).expect("open");
    }
    drop((consumer, log));
    scene.finish([other])
}

/// A claimed message is not named by `expired` (W14, W15).
pub fn claim_expired() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1]);
    let observer = scene.spawn(2, |log, queue, _| {
        log.snapshot(queue);
        log.expired(queue, true, 1);
    });
    let mut log = scene.beside();
    let claim = log.claim(&mut consumer, (0, 1)).expect("nobody else wants it");
    log.settle(claim, true).expect("open");
    drop((consumer, log));
    scene.finish([observer])
}

/// The segment goes back to the pool and comes again while somebody looks for what has expired: an
/// offset is not named for the delivery of another. The reader is the main thread, so that one
/// preemption is enough to catch it in the middle.
pub fn late_expired() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1]);
    scene.log.complete(&mut consumer, &[(0, 1)]).expect("open");
    drop(consumer);
    scene.ready(&[2]);
    let writer = scene.spawn(2, |log, queue, ledger| {
        let mut consumer = queue.consumer().expect("a free place");
        log.complete(&mut consumer, &[(1, 1)]).expect("open");
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(3), sized(4)]).expect("open");
        log.put(&mut puller, ledger, &[sized(5)]).expect("open");
    });
    let mut log = scene.beside();
    log.expired(&queue, true, 2);
    drop(log);
    scene.finish([writer])
}

/// The payload is released by the later of the completion and the end of the loan (W12), and the
/// reads of the one who had it on loan come before that.
pub fn complete_give_back() -> Rest {
    let mut scene = Scene::concurrent();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut consumer = queue.consumer().expect("a free place");
    let other = scene.spawn(2, completes(0));
    let mut log = scene.beside();
    if log.take_some(&mut consumer, 1).is_ok() {
        give_back(&mut consumer, 0);
    }
    drop((consumer, log));
    scene.finish([other])
}

/// As above, the other one being `close`.
pub fn close_give_back() -> Rest {
    let mut scene = Scene::concurrent();
    scene.ready(&[0]);
    let queue = Arc::clone(&scene.queue);
    let mut consumer = queue.consumer().expect("a free place");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    if log.take_some(&mut consumer, 1).is_ok() {
        give_back(&mut consumer, 0);
    }
    drop((consumer, log));
    scene.finish([closer])
}

/// Who was told a safe offset sees what was finished below it, by whomever.
pub fn complete_safe_reads() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1]);
    let others = [
        scene.spawn(2, completes(1)),
        scene.spawn(3, |log, queue, _| {
            log.safe(queue);
            log.expired(queue, true, 2);
        }),
    ];
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(0, 1)]).expect("open");
    drop((consumer, log));
    scene.finish(others)
}

/// A completion is in the final offset, or it is answered Closed and has no effect (W10).
pub fn complete_close() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0, 1]);
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.complete(&mut consumer, &[(0, 1)]);
    drop((consumer, log));
    scene.finish([closer])
}

/// A claim ends with the queue; its holder is told (W15).
pub fn settle_close() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let claim = scene.log.claim(&mut consumer, (0, 1)).expect("nobody else wants it");
    let closer = scene.spawn(2, |log, queue, _| {
        log.close(queue).expect("the only close");
    });
    let mut log = scene.beside();
    let _ = log.settle(claim, true);
    drop((consumer, log));
    scene.finish([closer])
}

/// Exactly the later of an advance and the completion that empties the queue reaches the new
/// offset.
pub fn advance_complete() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let puller = scene.spawn(2, |log, queue, _| {
        let mut puller = queue.puller().expect("the only puller");
        log.advance(&mut puller, 7).expect("open");
    });
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(0, 1)]).expect("open");
    drop((consumer, log));
    scene.finish([puller])
}

/// A thread names a message whose segment is finished, given to the pool and filled again
/// meanwhile.
pub fn recycle() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    scene.ready(&[0, 1, 2]);
    let mut consumer = queue.consumer().expect("a free place");
    scene.log.complete(&mut consumer, &[(0, 0)]).expect("open");
    let late = scene.spawn(2, completes(1));
    let mut log = scene.beside();
    log.complete(&mut consumer, &[(1, 0)]).expect("open");
    let mut puller = queue.puller().expect("the only puller");
    log.put(&mut puller, &scene.ledger, &[sized(3), sized(4)]).expect("open");
    drop((puller, consumer, log));
    scene.finish([late])
}

/// A message is finished while it is lent, and its segment passed: the segment comes again only
/// after the loan has ended.
pub fn late_loan() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    scene.ready(&[0, 1, 2]);
    let mut borrower = queue.consumer().expect("a free place");
    scene.log.take_some(&mut borrower, 1).expect("three are ready");
    let other = scene.spawn(2, |log, queue, ledger| {
        let mut consumer = queue.consumer().expect("a free place");
        log.complete(&mut consumer, &[(0, 0), (1, 0)]).expect("open");
        let mut puller = queue.puller().expect("the only puller");
        log.put(&mut puller, ledger, &[sized(3), sized(4)]).expect("open");
    });
    let target = Target { offset: 0, delivery: 1 };
    borrower.give_back_with(&[target], |offset, token| token.touch(offset));
    drop(borrower);
    scene.finish([other])
}

/// A loan, a completion and a close at once: the payload is released once, and read by nobody
/// after.
pub fn payload_once() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let others = [
        scene.spawn(2, completes(0)),
        scene.spawn(3, |log, queue, _| {
            log.close(queue).expect("the only close");
        }),
    ];
    give_back(&mut consumer, 0);
    drop(consumer);
    scene.finish(others)
}

/// A requeued message is taken by another consumer while its old delivery is named late (W7).
pub fn requeue_take_stale() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let other = scene.spawn(2, |log, queue, _| {
        let mut consumer = queue.consumer().expect("a free place");
        if let Ok(got) = log.take_some(&mut consumer, 1) {
            assert_eq!(got[0].delivery, 2);
            let _ = log.complete(&mut consumer, &[(0, 1)]);
        }
    });
    let mut log = scene.beside();
    log.requeue_some(&mut consumer, &[(0, 1)], 1).expect("open");
    drop((consumer, log));
    scene.finish([other])
}

/// Two claims of one message: one wins.
pub fn claim_claim() -> Rest {
    let mut scene = Scene::concurrent();
    let queue = Arc::clone(&scene.queue);
    let mut consumer = in_flight(&mut scene, &queue, &[0]);
    let other = scene.spawn(2, |log, queue, _| {
        let mut consumer = queue.consumer().expect("a free place");
        if let Some(claim) = log.claim(&mut consumer, (0, 0)) {
            log.settle(claim, true).expect("open");
        }
    });
    let won = {
        let mut log = scene.beside();
        let claim = log.claim(&mut consumer, (0, 0));
        claim.map(|claim| log.settle(claim, true).expect("open").finished)
    };
    assert_ne!(won, Some(0), "settled as sent, so finished: {:?}", Outcome::Won);
    drop(consumer);
    scene.finish([other])
}
