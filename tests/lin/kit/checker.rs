//! Wing and Gong's check with memo: is there a sequential order of the steps that keeps who
//! returned before whom began, and in which the sequential queue gives every answer that was given?
//!
//! J. M. Wing and C. Gong, "Testing and verifying concurrent objects", 1993; the memo of states
//! already seen with the same set of steps done is G. Lowe's.

use std::collections::HashSet;

use lanekeeper::process_queue::Refusal;

use super::history::{Event, Step};
use super::spec::Spec;

/// What orders two steps of different threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One call returned before the other began: for real threads, and for shuttle.
    RealTime,
    /// Nothing but the program: for loom, where a load may return an old value although the store
    /// came earlier in the schedule. Events of `main_thread` before and after the threads ran keep
    /// their place.
    Program,
}

/// Steps sorted and indexed, with the set of steps that must come first for each.
struct Search<'h> {
    events: Vec<&'h Event>,
    before: Vec<u64>,
    seen: HashSet<(u64, Spec)>,
}

/// Most steps in one history: they are a bit set.
pub const STEPS_MAX: usize = 64;

/// Checks the history; the error is a readable listing of it.
pub fn check(start: &Spec, events: &[Event], order: Order) -> Result<(), String> {
    let events: Vec<&Event> = events.iter().filter(|event| !is_weak(&event.step)).collect();
    assert!(events.len() <= STEPS_MAX, "history of {} steps", events.len());
    let events = beside_others(start, &events, order);
    let events: Vec<&Event> = events.iter().collect();
    let before = (0..events.len()).map(|later| predecessors(&events, later, order)).collect();
    let mut search = Search { events, before, seen: HashSet::new() };
    if search.run(0, start) { Ok(()) } else { Err(listing(&search.events)) }
}

/// Concurrent mode: a take beside another take or a message on its way back tells less than one
/// that ran alone: not that nothing lower was ready, or nothing at all. And a scan for what has
/// expired beside others is a step for each message that it names.
///
/// Orderly mode: a take of fewer than it may have took all there was when it looked; a put beside
/// it may have come by then, for who looks from outside.
fn beside_others(start: &Spec, events: &[&Event], order: Order) -> Vec<Event> {
    let moves = |step: &Step| {
        let back = matches!(step, Step::Requeue { .. } | Step::Settle { .. });
        back || matches!(step, Step::Take { .. } | Step::TakeRefused { .. })
    };
    let apart = |a: usize, b: usize| precedes(events, a, b, order) || precedes(events, b, a, order);
    let is_beside = |a: usize, b: usize| {
        events[a].thread != events[b].thread && !apart(a, b) && moves(&events[b].step)
    };
    let beside_put = |index: usize| {
        let puts = |other: usize| matches!(events[other].step, Step::Put { .. });
        (0..events.len()).any(|other| {
            events[other].thread != events[index].thread && !apart(index, other) && puts(other)
        })
    };
    let nothing = |step: &Step| {
        matches!(step, Step::TakeRefused { refusal: Refusal::Empty, .. }) && !start.is_orderly()
    };
    let alone = |index: usize| {
        (0..events.len())
            .all(|other| events[other].thread == events[index].thread || apart(index, other))
    };
    let weakened = |index: usize| {
        let mut event = events[index].clone();
        if let Step::Expired { offsets, .. } = &event.step
            && !alone(index)
        {
            let named = |offset: &i64| Event { step: Step::ExpiredNames(*offset), ..event.clone() };
            return offsets.iter().map(named).collect();
        }
        let beside = || (0..events.len()).any(|other| is_beside(index, other));
        event.step = match event.step {
            step if nothing(&step) && beside() => Step::TakeNothingBesideOthers,
            Step::Take { got, .. } if !start.is_orderly() && got.len() == 1 && beside() => {
                Step::TakeBesideOthers(got[0])
            }
            Step::Take { n, got } if got.len() < n && beside_put(index) => {
                Step::Take { n: got.len(), got }
            }
            step => step,
        };
        vec![event]
    };
    (0..events.len()).flat_map(weakened).collect()
}

/// Bounds are checked elsewhere (`bounds`).
fn is_weak(step: &Step) -> bool {
    matches!(step, Step::Count(_) | Step::Bytes(_) | Step::Span(_))
}

fn predecessors(events: &[&Event], later: usize, order: Order) -> u64 {
    let mut set = 0;
    for earlier in 0..events.len() {
        if precedes(events, earlier, later, order) {
            set |= 1 << earlier;
        }
    }
    set
}

fn precedes(events: &[&Event], earlier: usize, later: usize, order: Order) -> bool {
    let (a, b) = (events[earlier], events[later]);
    if a.thread == b.thread {
        return earlier < later;
    }
    match order {
        Order::RealTime => a.end < b.begin,
        // Thread 0 sets up and looks afterwards; while the others run it records as another thread.
        Order::Program => (a.thread == 0 || b.thread == 0) && a.end < b.begin,
    }
}

impl Search<'_> {
    fn run(&mut self, done: u64, state: &Spec) -> bool {
        let count = self.events.len();
        if done.count_ones() as usize == count {
            return true;
        }
        if !self.seen.insert((done, state.clone())) {
            return false;
        }
        (0..count).any(|index| {
            let open = done & (1 << index) == 0 && self.before[index] & !done == 0;
            let step = self.events[index].step.clone();
            open && state.all_after(&step).iter().any(|next| self.run(done | (1 << index), next))
        })
    }
}

fn listing(events: &[&Event]) -> String {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| (event.begin, event.end));
    let mut text = String::from("no sequential order explains this history:\n");
    for event in sorted {
        text += &format!(
            "  [{}..{}] thread {}: {:?}\n",
            event.begin, event.end, event.thread, event.step
        );
    }
    text
}
