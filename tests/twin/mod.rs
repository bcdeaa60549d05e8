//! A trivially right twin of the `ProcessQueue`: one mutex around one ordered map.
//!
//! It is written from the rules (W0 to W16, T1 to T3) and not from the algorithm, so that it can
//! serve as the expectation in the property tests, the golden replay and the fuzz target. Payloads
//! are numbers here; which of them have been released, and when, is part of what it predicts.

#![allow(dead_code)]

mod calls;
pub mod driver;
pub mod long;
pub mod ops;
mod reads;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use lanekeeper::process_queue::{
    Config, Incoming, Outcome, PutError, Refusal, RefusedBecause, Target,
};

/// Highest delivery number; after it comes 1 again.
const DELIVERY_MAX: u32 = (1 << 24) - 1;
/// A message that is on loan this often at once is not lent once more.
const LOANS_MAX: usize = 31;

/// Who holds a loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The running turn (orderly).
    Turn,
    /// A consumer handle (concurrent), by a number its test gave it.
    Consumer(u64),
    /// A claim.
    Claim,
}

/// One message as `take` hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub offset: i64,
    pub payload: u64,
    pub size: u32,
    pub attempts: u8,
    pub delivery: u32,
}

/// What a put refused, in ascending order of offset.
pub type Refused = Vec<(i64, u64, RefusedBecause)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready {
        /// Set until a take comes that is late enough.
        not_before_ms: Option<i64>,
    },
    InFlight {
        taken_ms: i64,
    },
    Claimed,
}

#[derive(Clone, Debug)]
struct Held {
    payload: u64,
    size: u32,
    attempts: u8,
    delivery: u32,
    put_ms: i64,
    stage: Stage,
}

impl Held {
    fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready { .. })
    }

    fn is_in_flight(&self) -> bool {
        matches!(self.stage, Stage::InFlight { .. })
    }
}

/// A delivery that has not been given back.
#[derive(Clone, Copy, Debug)]
struct Loan {
    who: Who,
    offset: i64,
    delivery: u32,
    payload: u64,
}

/// Everything the queue knows, under one lock.
#[derive(Debug, Default)]
struct State {
    held: BTreeMap<i64, Held>,
    pull_offset: i64,
    /// Answered once closed; while open the safe offset is computed.
    final_safe: i64,
    highest_put: i64,
    lag: i64,
    scheduled: bool,
    stopped: bool,
    closed: bool,
    closed_ms: i64,
    turn_running: bool,
    busy_note: bool,
    last_pull_ms: i64,
    last_consume_ms: i64,
    loans: Vec<Loan>,
    /// Finished or closed over, but still on loan.
    lingering: BTreeSet<u64>,
    released: Vec<u64>,
    payloads_live: u64,
    consumers: BTreeSet<u64>,
}

/// The twin.
#[derive(Debug)]
pub struct Twin {
    config: Config,
    state: Mutex<State>,
}

impl Twin {
    pub fn new(config: Config) -> Self {
        let state = State {
            pull_offset: config.start_offset,
            final_safe: config.start_offset,
            highest_put: -1,
            ..State::default()
        };
        Self { config, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

fn delivered(offset: i64, held: &Held) -> Delivered {
    Delivered {
        offset,
        payload: held.payload,
        size: held.size,
        attempts: held.attempts,
        delivery: held.delivery,
    }
}

impl State {
    fn may_pull(&self) -> Result<(), PutError> {
        match (self.closed, self.stopped) {
            (true, _) => Err(PutError::Refused(Refusal::Closed)),
            (_, true) => Err(PutError::Refused(Refusal::Stopped)),
            _ => Ok(()),
        }
    }

    fn has_ready(&self) -> bool {
        self.held.values().any(Held::is_ready)
    }

    fn safe_offset(&self) -> i64 {
        if self.closed {
            return self.final_safe;
        }
        self.held.keys().next().copied().unwrap_or(self.pull_offset)
    }

    fn in_flight_offsets(&self) -> Vec<i64> {
        self.held.iter().filter(|(_, h)| h.is_in_flight()).map(|(offset, _)| *offset).collect()
    }

    fn insert(&mut self, message: &Incoming<u64>, now_ms: i64) {
        let held = Held {
            payload: message.payload,
            size: message.size,
            attempts: u8::try_from(message.attempts).unwrap_or(u8::MAX),
            delivery: 0,
            put_ms: now_ms,
            stage: Stage::Ready { not_before_ms: None },
        };
        self.held.insert(message.offset, held);
        self.pull_offset = message.offset + 1;
        self.highest_put = self.highest_put.max(message.offset);
    }

    fn take(&mut self, who: Who, n: usize, now_ms: i64) -> Vec<Delivered> {
        self.wake_due(now_ms);
        let mut taken = Vec::new();
        for (offset, held) in &mut self.held {
            if held.stage != (Stage::Ready { not_before_ms: None }) {
                continue;
            }
            let lent = self.loans.iter().filter(|loan| loan.offset == *offset).count();
            if lent == LOANS_MAX {
                continue;
            }
            held.stage = Stage::InFlight { taken_ms: now_ms };
            held.delivery = if held.delivery == DELIVERY_MAX { 1 } else { held.delivery + 1 };
            let (delivery, payload) = (held.delivery, held.payload);
            self.loans.push(Loan { who, offset: *offset, delivery, payload });
            taken.push(delivered(*offset, held));
            if taken.len() == n {
                break;
            }
        }
        if !taken.is_empty() {
            self.last_consume_ms = now_ms;
        }
        taken
    }

    /// What is due by now is ready without more ado from now on, whatever the clock does.
    fn wake_due(&mut self, now_ms: i64) {
        for held in self.held.values_mut() {
            if let Stage::Ready { not_before_ms: due @ Some(_) } = &mut held.stage
                && *due <= Some(now_ms)
            {
                *due = None;
            }
        }
    }

    /// Would a verb that works on messages of this `stage` get this one?
    fn judge(&self, target: Target, stage: impl Fn(&Held) -> bool) -> Outcome {
        let Some(held) = self.held.get(&target.offset) else { return Outcome::Unknown };
        let other_delivery = target.delivery != 0 && target.delivery != held.delivery;
        match (other_delivery, stage(held)) {
            (true, _) => Outcome::Stale,
            (_, true) => Outcome::Won,
            (_, false) => Outcome::Unknown,
        }
    }

    fn make_ready(&mut self, offset: i64, attempts_plus: u8, not_before_ms: Option<i64>) {
        let held = self.held.get_mut(&offset).unwrap();
        held.attempts = held.attempts.saturating_add(attempts_plus);
        held.stage = Stage::Ready { not_before_ms };
    }

    fn finish(&mut self, offset: i64) {
        let held = self.held.remove(&offset).unwrap();
        if self.loans.iter().any(|loan| loan.payload == held.payload) {
            self.lingering.insert(held.payload);
        } else {
            self.release(held.payload);
        }
    }

    fn release(&mut self, payload: u64) {
        self.released.push(payload);
        self.payloads_live -= 1;
    }

    fn end_loans(&mut self, who: Who, which: impl Fn(&Loan) -> bool) -> u32 {
        let (ended, kept): (Vec<Loan>, Vec<Loan>) =
            self.loans.iter().partition(|loan| loan.who == who && which(loan));
        self.loans = kept;
        for loan in &ended {
            let last = !self.loans.iter().any(|other| other.payload == loan.payload);
            if last && self.lingering.remove(&loan.payload) {
                self.release(loan.payload);
            }
        }
        ended.len() as u32
    }

    /// Each target ends one loan of that holder: the delivery it names, or else the newest.
    fn end_named_loans(&mut self, who: Who, targets: &[Target]) -> u32 {
        let mut ended = 0;
        for target in targets {
            let named = |loan: &&Loan| {
                loan.who == who
                    && loan.offset == target.offset
                    && (target.delivery == 0 || target.delivery == loan.delivery)
            };
            let newest = self.loans.iter().filter(named).map(|loan| loan.delivery).max();
            if let Some(delivery) = newest {
                let this = |loan: &Loan| loan.offset == target.offset && loan.delivery == delivery;
                ended += self.end_loans(who, this);
            }
        }
        ended
    }
}
