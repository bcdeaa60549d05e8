//! Models of the lock table and of interned ids.

use lanekeeper::intern::{Id, Interner};
use lanekeeper::process_queue::{Refusal, TurnEnd};
use lanekeeper::queue_lock::{HandOver, QueueLockTable};
use lanekeeper::sync::{Arc, UnsafeCell};
use loom::thread;

use crate::scene::Rest;

type Ids = Arc<Interner<u8>>;
type Table = Arc<QueueLockTable<u8>>;

/// Two threads intern one key: it has one id, and two references.
pub fn intern_intern() -> Rest {
    let ids: Ids = Arc::new(Interner::new());
    let other = thread::spawn({
        let ids = Arc::clone(&ids);
        move || ids.intern(&1).expect("room")
    });
    let mine = ids.intern(&1).expect("room");
    let theirs = other.join().expect("a thread of the model");
    assert_eq!(mine, theirs, "one key, one id");
    assert_eq!(ids.key(mine), Ok(1));
    assert_eq!(ids.release(mine), Ok(false));
    assert_eq!(ids.release(mine), Ok(true));
    assert_eq!(ids.find(&1), None);
    Rest::of_no_queue()
}

/// The last reference goes while somebody comes for the key: who comes has a live id, found by
/// everybody after.
pub fn intern_free() -> Rest {
    let ids: Ids = Arc::new(Interner::new());
    let id = ids.intern(&1).expect("room");
    let other = thread::spawn({
        let ids = Arc::clone(&ids);
        move || ids.release(id).expect("live")
    });
    let mine = ids.intern(&1).expect("room");
    assert_eq!(ids.key(mine), Ok(1));
    let freed = other.join().expect("a thread of the model");
    assert_eq!(freed, mine != id, "freed, then another id; else the same");
    assert_eq!(ids.find(&1), Some(mine));
    assert_eq!(ids.is_live(id), !freed);
    assert_eq!(ids.release(mine), Ok(true));
    Rest::of_no_queue()
}

/// Who has the next id of a key sees what was done under the last one.
pub fn intern_again() -> Rest {
    let ids: Ids = Arc::new(Interner::new());
    let beside = Arc::new(UnsafeCell::new(0));
    let id = ids.intern(&1).expect("room");
    let other = thread::spawn({
        let (ids, beside) = (Arc::clone(&ids), Arc::clone(&beside));
        move || {
            // SAFETY: by who holds the id, alone.
            beside.with_mut(|value| unsafe { *value = 1 });
            ids.release(id).expect("live");
        }
    });
    let mine = ids.intern(&1).expect("room");
    if mine != id {
        // SAFETY: loom watches whether it is so.
        assert_eq!(beside.with(|value| unsafe { *value }), 1);
    }
    other.join().expect("a thread of the model");
    assert_eq!(ids.release(mine), Ok(true));
    Rest::of_no_queue()
}

/// A key is read by one holder and taken out after the last one has left.
pub fn intern_read_free() -> Rest {
    let ids: Ids = Arc::new(Interner::new());
    let id = ids.intern(&1).expect("room");
    ids.add_reference(id).expect("live");
    let other = thread::spawn({
        let ids = Arc::clone(&ids);
        move || {
            assert_eq!(ids.key(id), Ok(1));
            ids.release(id).expect("live")
        }
    });
    let mine = ids.release(id).expect("live");
    let theirs = other.join().expect("a thread of the model");
    assert!(mine != theirs, "one of two was the last");
    assert_eq!(ids.find(&1), None);
    Rest::of_no_queue()
}

/// An id kept too long is stale, also when its slot has another key meanwhile.
pub fn intern_reuse() -> Rest {
    let ids: Ids = Arc::new(Interner::new());
    let old = ids.intern(&1).expect("room");
    let other = thread::spawn({
        let ids = Arc::clone(&ids);
        move || {
            ids.release(old).expect("live");
            ids.intern(&2).expect("room")
        }
    });
    match ids.key(old) {
        Ok(key) => assert_eq!(key, 1, "never another's"),
        Err(refusal) => assert_eq!(refusal, Refusal::Stale),
    }
    let new = other.join().expect("a thread of the model");
    assert_eq!(ids.key(new), Ok(2));
    assert_eq!(ids.key(old), Err(Refusal::Stale));
    assert_eq!(ids.release(new), Ok(true));
    Rest::of_no_queue()
}

/// A table with one queue, open in generation 1.
fn table() -> (Table, Id) {
    let ids: Ids = Arc::new(Interner::new());
    let queue = ids.intern(&1).expect("room");
    let table = Arc::new(QueueLockTable::new(ids));
    table.open(queue, None, 1).expect("not open yet");
    (table, queue)
}

/// Who is answered Busy while a turn ends has left a note for it; who begins, begins (T1).
pub fn table_note_end() -> Rest {
    let (table, queue) = table();
    let turn = table.begin(queue, None).expect("the first turn").suspend();
    let other = thread::spawn({
        let table = Arc::clone(&table);
        move || match table.begin(queue, None) {
            Ok(turn) => {
                assert_eq!(turn.end(), TurnEnd::Nothing);
                false
            }
            Err(refusal) => refusal == Refusal::Busy,
        }
    });
    let end = table.end(turn).expect("the current turn");
    let busy = other.join().expect("a thread of the model");
    let expected = if busy { TurnEnd::RunAgain } else { TurnEnd::Nothing };
    assert_eq!(end, expected, "a wake-up is not lost");
    assert_eq!(table.end(turn), Err(Refusal::Stale));
    Rest::of_no_queue()
}

/// What a thread did and was told.
#[derive(Default)]
struct Told {
    busy: u32,
    run_again: u32,
}

/// Runs turns until nobody asks for another.
fn run(table: &QueueLockTable<u8>, queue: Id, state: &UnsafeCell<u32>, told: &mut Told) {
    loop {
        match table.begin(queue, None) {
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Busy);
                told.busy += 1;
                return;
            }
            Ok(turn) => {
                // SAFETY: the turn excludes the others; loom fails the model if it does not.
                state.with_mut(|state| unsafe { *state += 1 });
                if turn.end() != TurnEnd::RunAgain {
                    return;
                }
                told.run_again += 1;
            }
        }
    }
}

/// Three threads want a turn: one at a time has it, sees what the others did, and no wake-up is
/// lost.
pub fn table_begin_begin_end() -> Rest {
    let (table, queue) = table();
    let state = Arc::new(UnsafeCell::new(0));
    let spawn = || {
        let (table, state) = (Arc::clone(&table), Arc::clone(&state));
        thread::spawn(move || {
            let mut told = Told::default();
            run(&table, queue, &state, &mut told);
            told
        })
    };
    let others = [spawn(), spawn()];
    let mut told = Told::default();
    run(&table, queue, &state, &mut told);
    for other in others {
        let theirs = other.join().expect("a thread of the model");
        told.busy += theirs.busy;
        told.run_again += theirs.run_again;
    }
    assert!(told.busy == 0 || told.run_again > 0, "Busy, and nobody ran again");
    assert!(told.run_again <= told.busy, "a note without anybody turned away");
    // SAFETY: the others have ended.
    let turns = state.with(|state| unsafe { *state });
    assert_eq!(turns + told.busy, 3 + told.run_again, "each wish is a turn or a note");
    assert_eq!(table.begin(queue, None).expect("free").end(), TurnEnd::Nothing);
    Rest::of_no_queue()
}

/// Of a close and the end of the running turn exactly one tells the hand-over (T2), and then the
/// queue's id is free.
pub fn table_close_end() -> Rest {
    let (table, queue) = table();
    assert_eq!(table.queues().release(queue), Ok(false), "the open lock holds the id");
    let turn = table.begin(queue, None).expect("the first turn").suspend();
    let other = thread::spawn({
        let table = Arc::clone(&table);
        move || table.close(queue, None, 1).expect("the only close") == HandOver::Now
    });
    let ended = table.end(turn).expect("the current turn") == TurnEnd::HandOver;
    let closed = other.join().expect("a thread of the model");
    assert!(ended != closed, "told {} times", u8::from(ended) + u8::from(closed));
    assert!(!table.queues().is_live(queue), "nothing is kept");
    assert_eq!(table.begin(queue, None).err(), Some(Refusal::Stale));
    Rest::of_no_queue()
}

/// A queue is closed and its place used for another one while somebody begins a turn of the old
/// one: that is a turn of the old one, or none (T3, T4).
pub fn table_reclaim_begin() -> Rest {
    let (table, old) = table();
    table.queues().release(old).expect("live");
    let late = thread::spawn({
        let table = Arc::clone(&table);
        move || match table.begin(old, None) {
            Ok(turn) => {
                assert_eq!((turn.generation(), turn.queue()), (1, old));
                let end = turn.end();
                assert!(end != TurnEnd::RunAgain, "nobody was turned away");
                Some(end == TurnEnd::HandOver)
            }
            Err(refusal) => {
                assert!(matches!(refusal, Refusal::Closed | Refusal::Stale), "{refusal}");
                None
            }
        }
    });
    let told = table.close(old, None, 1).expect("the only close") == HandOver::Now;
    let new = table.queues().intern(&2).expect("room");
    table.open(new, None, 2).expect("a queue of its own");
    let turn = table.begin(new, None).expect("nobody else wants the new one");
    assert_eq!((turn.generation(), turn.queue()), (2, new));
    assert_eq!(turn.end(), TurnEnd::Nothing);
    let late = late.join().expect("a thread of the model");
    assert!(late.is_some_and(|told| told) != told, "the hand-over is told once");
    Rest::of_no_queue()
}

/// Two assignments of one queue are opened at once: one of them is open.
pub fn table_open_open() -> Rest {
    let ids: Ids = Arc::new(Interner::new());
    let queue = ids.intern(&1).expect("room");
    let table = Arc::new(QueueLockTable::new(ids));
    let other = thread::spawn({
        let table = Arc::clone(&table);
        move || table.open(queue, None, 1).is_ok()
    });
    let mine = table.open(queue, None, 2).is_ok();
    let theirs = other.join().expect("a thread of the model");
    assert!(mine != theirs, "one of two opens");
    let turn = table.begin(queue, None).expect("open");
    assert_eq!(turn.generation(), if mine { 2 } else { 1 });
    assert_eq!(turn.end(), TurnEnd::Nothing);
    Rest::of_no_queue()
}
