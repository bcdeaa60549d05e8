//! Models of the lease table: whoever decides at the same time, one client is told "yours".

use lanekeeper::intern::{Id, Interner};
use lanekeeper::lease::{Lease, LeaseRefusal, LeaseTable};
use lanekeeper::sync::{Arc, UnsafeCell};
use loom::thread;

use crate::scene::Rest;

/// The longest age at which a lease is still held, and the shortest at which it is not, in ms.
const HELD_MS: i64 = 60_000;
const EXPIRED_MS: i64 = 60_001;

type Given = Result<Lease, LeaseRefusal>;

#[derive(Clone)]
struct Stage {
    table: Arc<LeaseTable<u8>>,
    group: Id,
    queue: Id,
    a: Id,
    b: Id,
}

impl Stage {
    /// One group, one queue, two clients; with a time: A took the lease then.
    fn new(taken_ms: Option<i64>) -> Self {
        let queues = Arc::new(Interner::new());
        let queue = queues.intern(&0).expect("room");
        let table = Arc::new(LeaseTable::new(queues, 0));
        let group = table.group("g").expect("room");
        let (a, b) = (table.client("a").expect("room"), table.client("b").expect("room"));
        let stage = Self { table, group, queue, a, b };
        if let Some(now_ms) = taken_ms {
            let lease = stage.acquire(a, now_ms).expect("free");
            assert_eq!(lease, Lease { token: 1, renewed: false });
        }
        stage
    }

    fn acquire(&self, client: Id, now_ms: i64) -> Given {
        self.table.acquire(self.group, self.queue, client, now_ms)
    }

    fn release(&self, client: Id) -> bool {
        self.table.release(self.group, self.queue, client).expect("live ids")
    }

    fn spawn<R: 'static>(
        &self,
        script: impl FnOnce(&Self) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let stage = self.clone();
        thread::spawn(move || script(&stage))
    }

    /// Gives everything back: what is left over is a reference that somebody forgot.
    fn finish(self) -> Rest {
        let Self { table, group, queue, a, b } = self;
        for client in [a, b] {
            let _ = table.release(group, queue, client);
            table.release_client(client).expect("live");
        }
        table.release_group(group).expect("live");
        assert_eq!(table.name_counts(), (0, 0), "groups and clients still named");
        assert_eq!(table.queues().release(queue), Ok(true), "the queue is still named");
        Rest::of_no_queue()
    }
}

fn join<R>(thread: thread::JoinHandle<R>) -> R {
    thread.join().expect("a thread of the model")
}

/// One of the two answers is a lease, and the table says the same.
fn one_of_two(stage: &Stage, a: Given, b: Given) {
    assert!(a.is_ok() != b.is_ok(), "a {a:?}, b {b:?}");
    let (winner, given) = if a.is_ok() { (stage.a, a) } else { (stage.b, b) };
    assert_eq!(a.and(b), Err(LeaseRefusal::Held));
    let holder = stage.table.holder(stage.group, stage.queue).expect("held");
    assert_eq!(holder.client, winner);
    assert_eq!(Ok(holder.token), given.map(|lease| lease.token));
}

/// Two clients want a free lease.
pub fn acquire_acquire_free() -> Rest {
    let stage = Stage::new(None);
    let other = stage.spawn(|stage| stage.acquire(stage.b, 0));
    let mine = stage.acquire(stage.a, 0);
    one_of_two(&stage, mine, join(other));
    stage.finish()
}

/// Two clients want the expired lease of a third.
pub fn acquire_acquire_expired() -> Rest {
    let stage = Stage::new(None);
    let third = stage.table.client("c").expect("room");
    let before = stage.acquire(third, 0).expect("free");
    let other = stage.spawn(|stage| stage.acquire(stage.b, EXPIRED_MS));
    let mine = stage.acquire(stage.a, EXPIRED_MS);
    let theirs = join(other);
    one_of_two(&stage, mine, theirs);
    let token = mine.or(theirs).expect("one of them").token;
    assert!(token > before.token, "a takeover changes the fencing token");
    stage.table.release_client(third).expect("live");
    stage.finish()
}

/// A lease is renewed at the last moment while another client finds it expired.
pub fn renew_takeover() -> Rest {
    let stage = Stage::new(Some(0));
    let other = stage.spawn(|stage| stage.acquire(stage.b, EXPIRED_MS));
    let mine = stage.acquire(stage.a, HELD_MS);
    let theirs = join(other);
    one_of_two(&stage, mine, theirs);
    if let Ok(lease) = mine {
        assert_eq!(lease, Lease { token: 1, renewed: true });
    }
    stage.finish()
}

/// A lease is given back while another client wants it: what the first did comes before.
pub fn release_acquire() -> Rest {
    let stage = Stage::new(Some(0));
    let state = Arc::new(UnsafeCell::new(0));
    let other = stage.spawn({
        let state = Arc::clone(&state);
        move |stage| {
            let given = stage.acquire(stage.b, 0);
            if given.is_ok() {
                // SAFETY: the lease excludes the other; loom fails the model if it does not.
                state.with_mut(|state| unsafe { *state += 1 });
            }
            given
        }
    });
    // SAFETY: as above.
    state.with_mut(|state| unsafe { *state += 1 });
    assert!(stage.release(stage.a), "its own");
    match join(other) {
        Ok(lease) => assert_eq!(lease, Lease { token: 2, renewed: false }),
        Err(refusal) => assert_eq!(refusal, LeaseRefusal::Held),
    }
    stage.finish()
}

/// An expired lease is given back by its owner and taken over at the same time: the new one stays.
pub fn release_takeover() -> Rest {
    let stage = Stage::new(Some(0));
    let other = stage.spawn(|stage| stage.acquire(stage.b, EXPIRED_MS));
    stage.release(stage.a);
    let theirs = join(other);
    assert!(theirs.is_ok(), "free or expired: {theirs:?}");
    let holder = stage.table.holder(stage.group, stage.queue).expect("held");
    assert_eq!(holder.client, stage.b);
    stage.finish()
}

/// apache/rocketmq#10750: a sweep beside the owner, who takes its expired lease again, and another
/// client, who takes it over.
pub fn sweep_reacquire() -> Rest {
    let stage = Stage::new(Some(0));
    let sweeper = stage.spawn(|stage| stage.table.sweep(EXPIRED_MS));
    let other = stage.spawn(|stage| stage.acquire(stage.b, EXPIRED_MS));
    let mine = stage.acquire(stage.a, EXPIRED_MS);
    let theirs = join(other);
    join(sweeper);
    one_of_two(&stage, mine, theirs);
    stage.finish()
}

/// A batch of renewals at the last moment, and a batch of takeovers of the same queues in opposite
/// order: each queue has one owner.
pub fn batch_batch() -> Rest {
    let stage = Stage::new(Some(0));
    let second = stage.table.queues().intern(&1).expect("room");
    let queues = [stage.queue, second];
    let batch = move |stage: &Stage, queues: [Id; 2], client, now_ms| {
        let mut given = [false; 2];
        let each = |index: usize, answer: Given| given[index] = answer.is_ok();
        let count = stage.table.acquire_batch(stage.group, &queues, client, now_ms, each);
        assert_eq!(count, given.iter().filter(|given| **given).count());
        given
    };
    assert_eq!(batch(&stage, queues, stage.a, 0), [true; 2]);
    let opposite = [second, stage.queue];
    let other = stage.spawn(move |stage| batch(stage, opposite, stage.b, EXPIRED_MS));
    let mine = batch(&stage, queues, stage.a, HELD_MS);
    let theirs = join(other);
    for (index, queue) in queues.into_iter().enumerate() {
        assert!(mine[index] != theirs[1 - index], "queue {index}: {mine:?} {theirs:?}");
        let winner = if mine[index] { stage.a } else { stage.b };
        assert_eq!(stage.table.holder(stage.group, queue).expect("held").client, winner);
    }
    for client in [stage.a, stage.b] {
        stage.table.release_batch(stage.group, &queues, client).expect("live ids");
    }
    assert_eq!(stage.table.queues().release(second), Ok(true));
    stage.finish()
}

/// A client that is gone still holds a lease, which is taken over; a new client never gets its
/// number while the lease names it.
pub fn owner_reuse() -> Rest {
    let stage = Stage::new(Some(0));
    stage.table.release_client(stage.a).expect("live");
    let other = stage.spawn(|stage| stage.acquire(stage.b, EXPIRED_MS));
    let new = stage.table.client("c").expect("room");
    let given = stage.acquire(new, 1);
    assert_eq!(given, Err(LeaseRefusal::Held), "it never had the lease");
    let theirs = join(other).expect("expired");
    assert_eq!(theirs, Lease { token: 2, renewed: false });
    let stage = Stage { a: new, ..stage };
    stage.finish()
}

/// A look at a lease while it changes hands shows one holder with its own token.
pub fn holder_takeover() -> Rest {
    let stage = Stage::new(Some(0));
    let other = stage.spawn(|stage| stage.acquire(stage.b, EXPIRED_MS).expect("expired"));
    let holder = stage.table.holder(stage.group, stage.queue).expect("held by one of them");
    let seen = (holder.client, holder.token, holder.last_ms);
    assert!([(stage.a, 1, 0), (stage.b, 2, EXPIRED_MS)].contains(&seen), "{seen:?}");
    join(other);
    stage.finish()
}
