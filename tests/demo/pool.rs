//! The tasks of the worker threads, some of them not due yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Handed out by due time, and first in first out among equals.
pub struct RunQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    tasks: BinaryHeap<Reverse<Task<T>>>,
    submitted: u64,
    closed: bool,
}

struct Task<T> {
    due: Instant,
    number: u64,
    work: T,
}

impl<T> RunQueue<T> {
    pub fn new() -> Self {
        let state = State { tasks: BinaryHeap::new(), submitted: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub fn submit(&self, work: T) {
        self.submit_after(work, Duration::ZERO);
    }

    pub fn submit_after(&self, work: T, delay: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.submitted += 1;
        let task = Task { due: Instant::now() + delay, number: state.submitted, work };
        state.tasks.push(Reverse(task));
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for a task that is due; None once the queue was closed.
    pub fn next(&self) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.closed {
                return None;
            }
            let now = Instant::now();
            let wait = state.tasks.peek().map(|task| task.0.due.saturating_duration_since(now));
            state = match wait {
                Some(Duration::ZERO) => {
                    let task = state.tasks.pop().expect("it was just looked at");
                    if !state.tasks.is_empty() {
                        // The wake-up for the next one may have been this thread's own.
                        self.changed.notify_one();
                    }
                    return Some(task.0.work);
                }
                Some(wait) => {
                    let woken = self.changed.wait_timeout(state, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Wakes everybody; tasks not handed out yet never will be.
    pub fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.changed.notify_all();
    }
}

impl<T> Ord for Task<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}
impl<T> PartialOrd for Task<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> PartialEq for Task<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<T> Eq for Task<T> {}
