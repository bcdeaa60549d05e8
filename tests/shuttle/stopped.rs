//! A thread that is stopped for good, after each of its steps in turn, stops nobody in another
//! role.
//!
//! The scheduler lets the victim do `k` steps and then never again while anybody else can run; `k`
//! goes up until the victim gets to its end. The others must finish what they do in a bounded
//! number of steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lanekeeper::process_queue::{Config, Mode, ProcessQueue, Refusal};
use shuttle::Runner;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::thread;

use crate::explore::config;
use crate::kit::history::{Journal, Log};
use crate::kit::payload::Ledger;
use crate::kit::record::Queue;

/// The task that is stopped: the first one spawned.
const VICTIM: usize = 1;

/// See the module.
struct StopAfter {
    allowed: u64,
    taken: u64,
    turn: usize,
    was_stopped: Arc<AtomicBool>,
    executions: Arc<AtomicU64>,
}

impl Scheduler for StopAfter {
    fn new_execution(&mut self) -> Option<Schedule> {
        let first = self.executions.fetch_add(1, Ordering::SeqCst) == 0;
        if !first && !self.was_stopped.swap(false, Ordering::SeqCst) {
            return None;
        }
        self.allowed += u64::from(!first);
        (self.taken, self.turn) = (0, 0);
        Some(Schedule::new(0))
    }

    /// The victim first, as far as it may; then the others in turns; the victim again when nobody
    /// else can.
    fn next_task(&mut self, tasks: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        let victim = TaskId::from(VICTIM);
        let can = tasks.iter().any(|task| task.id() == victim);
        if can && self.taken < self.allowed {
            self.taken += 1;
            return Some(victim);
        }
        let others: Vec<TaskId> =
            tasks.iter().map(|task| task.id()).filter(|id| *id != victim).collect();
        self.turn += 1;
        match others.len() {
            0 => Some(victim),
            count => {
                if can {
                    self.was_stopped.store(true, Ordering::SeqCst);
                }
                Some(others[self.turn % count])
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        1 // no weak exchange fails by chance here
    }
}

struct Shared {
    queue: Queue,
    ledger: Arc<Ledger>,
    journal: Arc<Journal>,
}

type Script = fn(&mut Log, &Shared);

/// Stops `victim` after each of its steps while `others` do theirs to the end.
fn stop(name: &str, mode: Mode, set_up: Script, victim: Script, others: &'static [Script]) {
    let (was_stopped, executions) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let scheduler = StopAfter {
        allowed: 0,
        taken: 0,
        turn: 0,
        was_stopped: Arc::clone(&was_stopped),
        executions: Arc::clone(&executions),
    };
    Runner::new(scheduler, config(20_000)).run(move || {
        let queue = Config { mode, consumers_max: 4, ..Config::default() };
        let shared = Arc::new(Shared {
            queue: ProcessQueue::new(queue).expect("a valid configuration"),
            ledger: Ledger::new(),
            journal: Journal::new(),
        });
        set_up(&mut shared.journal.log(0), &shared);
        let run = |script: Script, index: usize| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || script(&mut shared.journal.log(index), &shared))
        };
        let stopped = run(victim, VICTIM);
        let threads: Vec<_> =
            others.iter().enumerate().map(|(i, script)| run(*script, i + 2)).collect();
        for other in threads {
            other.join().expect("nobody waits for the stopped thread");
        }
        stopped.join().expect("the stopped thread goes on in the end");
        let _ = shared.queue.close(0);
        let ledger = Arc::clone(&shared.ledger);
        drop(Arc::into_inner(shared).expect("the threads have ended"));
        ledger.check_settled();
    });
    let count = executions.load(Ordering::SeqCst);
    println!("{name}: stopped after each of {} steps", count.saturating_sub(2));
    assert!(count > 4, "{name}: the victim has steps to be stopped after");
}

fn three_ready(log: &mut Log, shared: &Shared) {
    let mut puller = shared.queue.puller().expect("nobody else pulls");
    log.put(&mut puller, &shared.ledger, &[(0, 1), (1, 1), (2, 1)]).expect("open");
}

fn put(log: &mut Log, shared: &Shared) {
    let mut puller = shared.queue.puller().expect("the only puller");
    for first in [3, 20, 100_000] {
        let answer = log.put(&mut puller, &shared.ledger, &[(first, 1), (first + 2, 1)]);
        assert!(answer.is_ok() || shared.queue.is_closed(), "{answer:?}");
    }
    let _ = log.advance(&mut puller, 200_000);
}

fn turn(log: &mut Log, shared: &Shared) {
    let Ok(mut turn) = log.begin_turn(&shared.queue) else {
        assert!(shared.queue.is_closed(), "the only turn");
        return;
    };
    let _ = log.take(&mut turn, 2);
    let _ = log.rollback(&mut turn);
    let _ = log.take(&mut turn, 3);
    let _ = log.requeue(&mut turn, &[(1, 0)], 1);
    let _ = log.complete_held(&mut turn, &[(2, 0)]);
    let _ = log.commit(&mut turn);
    let _ = log.take(&mut turn, 9);
    let _ = log.commit(&mut turn);
    log.end_turn(turn);
}

fn consume(log: &mut Log, shared: &Shared) {
    let mut consumer = match shared.queue.consumer() {
        Ok(consumer) => consumer,
        Err(refusal) => return assert_eq!(refusal, Refusal::Closed, "a free place"),
    };
    let Ok(got) = log.take_some(&mut consumer, 2) else { return };
    let _ = log.complete(&mut consumer, &[(got[0].offset, 0)]);
    if let Some(last) = got.get(1)
        && let Some(claim) = log.claim(&mut consumer, (last.offset, last.delivery))
    {
        let _ = log.settle(claim, false);
    }
    if let Ok(got) = log.take_some(&mut consumer, 1) {
        let _ = log.requeue_some(&mut consumer, &[(got[0].offset, 0)], 1);
    }
    let _ = log.complete(&mut consumer, &[(0, 0), (1, 0), (2, 0)]);
}

fn look(log: &mut Log, shared: &Shared) {
    log.snapshot(&shared.queue);
    log.contains(&shared.queue, 1);
    log.has_ready(&shared.queue);
    log.count(&shared.queue);
    log.bytes(&shared.queue);
    log.span(&shared.queue);
    log.expired(&shared.queue, true, 3);
    log.snapshot(&shared.queue);
}

fn close(log: &mut Log, shared: &Shared) {
    match log.close(&shared.queue) {
        Ok(_) => assert!(shared.queue.is_closed()),
        Err(refusal) => assert_eq!(refusal, Refusal::Closed),
    }
}

/// In orderly mode: whoever is stopped, the other roles go on.
#[test]
fn nobody_waits_for_a_stopped_thread_orderly() {
    let mode = Mode::Orderly;
    stop("puller", mode, three_ready, put, &[turn, look]);
    stop("turn holder", mode, three_ready, turn, &[put, look]);
    stop("observer", mode, three_ready, look, &[put, turn]);
    stop("closer", mode, three_ready, close, &[put, turn, look]);
    stop("puller, with a closer", mode, three_ready, put, &[close, turn, look]);
    stop("turn holder, with a closer", mode, three_ready, turn, &[close, put, look]);
}

/// In concurrent mode likewise; other consumers are another role.
#[test]
fn nobody_waits_for_a_stopped_thread_concurrent() {
    let mode = Mode::Concurrent;
    stop("puller", mode, three_ready, put, &[consume, consume, look]);
    stop("consumer", mode, three_ready, consume, &[put, consume, look]);
    stop("observer", mode, three_ready, look, &[put, consume, consume]);
    stop("closer", mode, three_ready, close, &[put, consume, look]);
    stop("consumer, with a closer", mode, three_ready, consume, &[close, consume, put]);
}
