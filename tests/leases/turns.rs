//! The lock table: rules T1 to T4.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use lanekeeper::intern::Interner;
use lanekeeper::lease::LeaseTable;
use lanekeeper::process_queue::{Refusal, TurnEnd};
use lanekeeper::queue_lock::{HandOver, QueueLockTable};

use crate::{lock_table, named};

#[test]
fn t1_one_turn_a_queue_and_shard_and_a_wake_up_is_never_lost() {
    let (table, queue) = lock_table();
    for shard in [None, Some(0), Some(1)] {
        table.open(queue, shard, 7).unwrap();
    }
    let turn = table.begin(queue, None).unwrap();
    let other = table.begin(queue, Some(0)).unwrap();
    assert_eq!((turn.queue(), turn.generation()), (queue, 7));
    assert_eq!(table.begin(queue, None).err(), Some(Refusal::Busy));
    assert_eq!(table.held_count(), 2);
    assert_eq!(turn.end(), TurnEnd::RunAgain);
    assert_eq!(other.end(), TurnEnd::Nothing, "the note was for the other lock");
    assert_eq!(table.begin(queue, None).unwrap().end(), TurnEnd::Nothing, "told once");
    assert_eq!(table.begin(queue, Some(2)).err(), Some(Refusal::Closed), "not opened");
    assert_eq!(table.held_count(), 0);
}

#[test]
fn t1_threads_exclude_each_other_and_every_wish_is_served() {
    const THREADS: u32 = 3;
    const WISHES: u32 = 20_000;
    let (table, queue) = lock_table();
    table.open(queue, None, 1).unwrap();
    let (inside, served, busy) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..WISHES {
                    // As a pool does: until nobody asks for another turn.
                    loop {
                        let Ok(turn) = table.begin(queue, None) else {
                            busy.fetch_add(1, Ordering::Relaxed);
                            break;
                        };
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        served.fetch_add(1, Ordering::Relaxed);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        if turn.end() != TurnEnd::RunAgain {
                            break;
                        }
                    }
                }
            });
        }
    });
    let (served, busy) = (served.into_inner(), busy.into_inner());
    assert!(served + busy >= THREADS * WISHES, "{served} turns, {busy} notes");
    assert_eq!(table.begin(queue, None).unwrap().end(), TurnEnd::Nothing, "no note is left");
}

#[test]
fn t2_exactly_one_of_close_and_end_tells_the_hand_over() {
    let (table, queue) = lock_table();
    table.open(queue, None, 1).unwrap();
    assert_eq!(table.close(queue, None, 1), Ok(HandOver::Now));
    assert_eq!(table.close(queue, None, 1), Err(Refusal::Closed));
    assert_eq!(table.begin(queue, None).err(), Some(Refusal::Closed));

    table.open(queue, None, 2).unwrap();
    let turn = table.begin(queue, None).unwrap();
    assert_eq!(table.close(queue, None, 2), Ok(HandOver::AtEndOfTurn));
    assert_eq!(table.begin(queue, None).err(), Some(Refusal::Closed), "no note after the close");
    assert_eq!(turn.end(), TurnEnd::HandOver);
    assert_eq!(table.close(queue, None, 2), Err(Refusal::Closed));
}

#[test]
fn t3_turns_of_an_old_generation_do_nothing_to_a_newer_one() {
    let (table, queue) = lock_table();
    table.open(queue, None, 1).unwrap();
    let old = table.begin(queue, None).unwrap().suspend();
    assert_eq!(table.open(queue, None, 2), Err(Refusal::Busy), "open");
    assert_eq!(table.close(queue, None, 1), Ok(HandOver::AtEndOfTurn));
    assert_eq!(table.open(queue, None, 2), Err(Refusal::Busy), "its turn has not ended");
    assert_eq!(table.end(old), Ok(TurnEnd::HandOver));
    table.open(queue, None, 2).unwrap();
    assert_eq!(table.close(queue, None, 1), Err(Refusal::Stale));
    let turn = table.begin(queue, None).unwrap();
    assert_eq!(turn.generation(), 2);
    assert_eq!(table.end(old), Err(Refusal::Stale));
    assert_eq!(table.held_count(), 1);
    let token = turn.suspend();
    assert_eq!(table.end(token), Ok(TurnEnd::Nothing));
    assert_eq!(table.end(token), Err(Refusal::Stale));
}

#[test]
fn t4_the_table_does_not_grow_with_history() {
    let queues = Arc::new(Interner::new());
    let table = QueueLockTable::new(Arc::clone(&queues));
    let mut kept = Vec::new();
    for round in 0..3_000_i32 {
        let queue = queues.intern(&named(round)).unwrap();
        let generation = u64::try_from(round).unwrap();
        let shard = (round % 3 == 0).then_some(5);
        table.open(queue, shard, generation).unwrap();
        assert_eq!(queues.release(queue), Ok(false), "the open lock names it");
        let turn = table.begin(queue, shard).unwrap();
        let closed = table.close(queue, shard, generation);
        assert_eq!((closed, turn.end()), (Ok(HandOver::AtEndOfTurn), TurnEnd::HandOver));
        assert!(!queues.is_live(queue));
        kept.push((queue, shard));
    }
    assert_eq!(queues.count(), 0);
    assert!(queues.slots_used() <= 2, "{} slots", queues.slots_used());
    // None of them names the one that has the place now.
    let now = queues.intern(&named(-1)).unwrap();
    table.open(now, None, 1).unwrap();
    for (queue, shard) in kept {
        assert_eq!(table.begin(queue, shard).err(), Some(Refusal::Stale));
        assert_eq!(table.open(queue, shard, 9), Err(Refusal::Stale));
        assert_eq!(table.close(queue, shard, 1).err(), Some(Refusal::Stale));
        assert_eq!(queues.key(queue), Err(Refusal::Stale));
    }
    assert_eq!(table.begin(now, None).unwrap().end(), TurnEnd::Nothing);
}

#[test]
fn t4_a_refused_opening_leaves_no_reference_behind() {
    let (table, queue) = lock_table();
    for shard in [None, Some(3)] {
        table.open(queue, shard, 1).unwrap();
        assert_eq!(table.open(queue, shard, 2), Err(Refusal::Busy));
        assert_eq!(table.close(queue, shard, 1), Ok(HandOver::Now));
    }
    assert_eq!(table.queues().release(queue), Ok(true));
}

#[test]
fn t4_a_table_that_is_gone_names_nothing() {
    let queues = Arc::new(Interner::new());
    let table = QueueLockTable::new(Arc::clone(&queues));
    let leases = LeaseTable::new(Arc::clone(&queues), 0);
    let group = leases.group("g").unwrap();
    let client = leases.client("a").unwrap();
    for (index, shard) in [(0, None), (1, Some(4)), (2, None), (3, Some(0)), (4, None)] {
        let queue = queues.intern(&named(index)).unwrap();
        table.open(queue, shard, 1).unwrap();
        match index {
            0 | 1 => assert_eq!(table.close(queue, shard, 1), Ok(HandOver::Now)),
            2 => {
                let _ = table.begin(queue, shard).unwrap().suspend();
                assert_eq!(table.close(queue, shard, 1), Ok(HandOver::AtEndOfTurn));
            }
            _ => {}
        }
        leases.acquire(group, queue, client, 0).unwrap();
        queues.release(queue).unwrap();
    }
    assert_eq!(queues.count(), 5);
    drop(leases);
    assert_eq!(queues.count(), 3);
    drop(table);
    assert_eq!(queues.count(), 0);
}
