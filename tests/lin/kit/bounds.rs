//! Bounds for what is not a step of its own: the single reads, and the weak ones (W8): never below
//! what was outstanding before the read and all the while it ran, never above what was outstanding
//! when it began plus what was put, or was still being finished, while it ran. With no call running
//! that is exact.

use std::collections::BTreeMap;

use lanekeeper::process_queue::{Outcome, Refusal};

use super::checker::Order;
use super::history::{Event, Step};

/// Life of one accepted message, as far as the history tells.
#[derive(Debug)]
struct Life {
    size: u32,
    put: usize,
    finished: Option<usize>,
}

/// Checks every count, bytes and span of a history that starts with an empty queue.
pub fn check(events: &[Event], order: Order) -> Result<(), String> {
    let lives = lives(events);
    let closed = events.iter().position(|event| matches!(event.step, Step::Close { .. }));
    for (index, event) in events.iter().enumerate() {
        let told = match event.step {
            Step::Count(count) => count as i64,
            Step::Bytes(bytes) => bytes as i64,
            Step::Span(span) => span,
            _ => {
                not_behind(events, index, order)?;
                continue;
            }
        };
        let (low, high) = bounds(events, &lives, closed, index, order);
        if told < low || told > high {
            return Err(format!("{event:?} is not in {low}..={high}\n{lives:?}\n{events:#?}"));
        }
    }
    Ok(())
}

/// The single reads never go back, and are never behind a call that returned before.
fn not_behind(events: &[Event], read: usize, order: Order) -> Result<(), String> {
    let before = || (0..events.len()).filter(|&other| precedes(events, other, read, order));
    let behind = match events[read].step {
        Step::Safe(safe) | Step::SafeAnswer(safe) => {
            before().filter_map(|other| safe_told(&events[other].step)).any(|told| told > safe)
        }
        Step::PullOffset(pull) => {
            before().filter_map(|other| pull_told(&events[other].step)).any(|told| told > pull)
        }
        Step::IsClosed(false) => before().any(|other| tells_closed(&events[other].step)),
        _ => false,
    };
    match behind {
        true => Err(format!("{:?} is behind a call before it\n{events:#?}", events[read])),
        false => Ok(()),
    }
}

fn safe_told(step: &Step) -> Option<i64> {
    match step {
        Step::Commit { safe, .. } | Step::Close { safe, .. } => Some(*safe),
        Step::SafeAnswer(safe) | Step::Safe(safe) => Some(*safe),
        Step::Advance { safe, .. } => *safe,
        _ => None,
    }
}

fn pull_told(step: &Step) -> Option<i64> {
    match step {
        Step::Put { batch, refused, .. } => {
            let refused = |offset: i64| refused.iter().any(|(other, _)| *other == offset);
            batch.iter().filter(|(offset, _)| !refused(*offset)).map(|(offset, _)| offset + 1).max()
        }
        Step::Advance { next, .. } => Some(*next),
        Step::PullOffset(pull) => Some(*pull),
        _ => None,
    }
}

fn tells_closed(step: &Step) -> bool {
    match step {
        Step::Close { .. } | Step::CloseRefused | Step::ClosedAnswer | Step::IsClosed(true) => true,
        Step::PutRefused(refusal) | Step::TakeRefused { refusal, .. } => {
            *refusal == Refusal::Closed
        }
        Step::AdvanceRefused { refusal, .. } => *refusal == Refusal::Closed,
        Step::Begin(answer) => *answer == Err(Refusal::Closed),
        _ => false,
    }
}

fn lives(events: &[Event]) -> BTreeMap<i64, Life> {
    let mut lives = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if let Step::Put { batch, refused, .. } = &event.step {
            for &(offset, size) in batch {
                if refused.iter().all(|(other, _)| *other != offset) {
                    lives.insert(offset, Life { size, put: index, finished: None });
                }
            }
        }
    }
    for (index, event) in events.iter().enumerate() {
        let offsets: Vec<i64> = match &event.step {
            Step::Commit { finished, .. } => finished.clone(),
            Step::Finish { offset, outcome: Outcome::Won, .. } => vec![*offset],
            Step::Settle { offset, sent: true, refused: false } => vec![*offset],
            _ => continue,
        };
        for offset in offsets {
            lives.get_mut(&offset).expect("finished, so it was put").finished = Some(index);
        }
    }
    lives
}

/// `a` returned before `b` began, as far as the order tells.
fn precedes(events: &[Event], a: usize, b: usize, order: Order) -> bool {
    let (first, second) = (&events[a], &events[b]);
    let comparable = order == Order::RealTime
        || first.thread == second.thread
        || first.thread == 0
        || second.thread == 0;
    comparable && first.end < second.begin
}

fn bounds(
    events: &[Event],
    lives: &BTreeMap<i64, Life>,
    closed: Option<usize>,
    read: usize,
    order: Order,
) -> (i64, i64) {
    // A finish that runs beside the read may be before it as a whole, however late it began.
    let after = |finish: usize| precedes(events, read, finish, order);
    let ended = |event: Option<usize>| event.is_some_and(|at| precedes(events, at, read, order));
    let close_may_run = closed.is_some_and(|close| !after(close));
    let surely = lives.iter().filter(|(_, life)| {
        precedes(events, life.put, read, order) && life.finished.is_none_or(after) && !close_may_run
    });
    let perhaps = lives.iter().filter(|(_, life)| {
        !precedes(events, read, life.put, order) && !ended(life.finished) && !ended(closed)
    });
    let (surely, perhaps): (Vec<_>, Vec<_>) = (surely.collect(), perhaps.collect());
    match events[read].step {
        Step::Count(_) => (surely.len() as i64, perhaps.len() as i64),
        Step::Bytes(_) => {
            let sum =
                |all: &[(&i64, &Life)]| all.iter().map(|(_, life)| i64::from(life.size)).sum();
            (sum(&surely), sum(&perhaps))
        }
        _ => {
            let put = |before: bool| {
                let highest = lives.iter().filter(|(_, life)| match before {
                    true => precedes(events, life.put, read, order),
                    false => !precedes(events, read, life.put, order),
                });
                highest.map(|(offset, _)| *offset).max().unwrap_or(0)
            };
            let lowest = |all: &[(&i64, &Life)]| all.first().map(|(offset, _)| **offset);
            let low = lowest(&surely).map_or(0, |lowest| put(true) - lowest);
            (low, lowest(&perhaps).map_or(0, |lowest| put(false) - lowest))
        }
    }
}
