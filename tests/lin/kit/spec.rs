//! The sequential queue: what one atomic step may answer in a given state. Trivially right, slow.

use std::collections::BTreeMap;

use lanekeeper::process_queue::{Mode, Outcome, Put, Refusal, RefusedBecause, Snapshot, TurnEnd};

use super::history::{Got, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Held {
    Ready,
    InFlight,
    Claimed,
    /// Finished by a call that the close will deny.
    InVain,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    held: Held,
    size: u32,
    attempts: u8,
    delivery: u32,
}

/// State of the sequential queue between two steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    orderly: bool,
    pull: i64,
    safe: i64,
    highest: i64,
    messages: BTreeMap<i64, Message>,
    stopped: bool,
    closed: bool,
    scheduled: bool,
    turn: bool,
    noted: bool,
    /// The turn is ending and left something ready.
    left_ready: bool,
    /// A put above a gap has not carried the safe offset over it yet.
    below_gap: bool,
    /// Messages finished whose finisher has not seen to the safe offset yet.
    settling: u32,
    /// The pull offset before an advance that is half done.
    raised_from: Option<i64>,
    /// A commit answered that; a close or a later advance came before it looked again.
    lags: bool,
}

impl Spec {
    pub fn new(mode: Mode, start: i64) -> Self {
        Self {
            orderly: mode == Mode::Orderly,
            pull: start,
            safe: start,
            highest: -1,
            messages: BTreeMap::new(),
            stopped: false,
            closed: false,
            scheduled: false,
            turn: false,
            noted: false,
            left_ready: false,
            below_gap: false,
            settling: 0,
            raised_from: None,
            lags: false,
        }
    }

    pub fn is_orderly(&self) -> bool {
        self.orderly
    }

    /// Lowest outstanding offset, or the pull offset.
    fn lowest(&self) -> i64 {
        self.messages.keys().next().copied().unwrap_or(self.pull)
    }

    /// W3 at rest: the safe offset is the lowest outstanding one, or the pull offset.
    fn carry(&mut self) {
        if !self.closed {
            self.safe = self.safe.max(self.lowest());
        }
    }

    fn finished(&mut self) {
        if self.orderly {
            self.carry();
        } else {
            self.settling += 1;
        }
    }

    fn held(&self, held: Held) -> impl DoubleEndedIterator<Item = i64> + '_ {
        self.messages
            .iter()
            .filter(move |(_, message)| message.held == held)
            .map(|(&offset, _)| offset)
    }

    fn any_ready(&self) -> bool {
        self.held(Held::Ready).next().is_some()
    }

    /// The state after `step`, or `None` if a queue in this state cannot have answered so.
    pub fn after(&self, step: &Step) -> Option<Self> {
        let mut next = self.clone();
        next.apply(step).then_some(next)
    }

    /// All states that may follow `step`.
    pub fn all_after(&self, step: &Step) -> Vec<Self> {
        match step {
            Step::FinishInVain { .. } => {
                std::iter::once(self.clone()).chain(self.after(step)).collect()
            }
            Step::TakeInVain => {
                let ready: Vec<i64> = match self.closed {
                    true => Vec::new(),
                    false => self.held(Held::Ready).collect(),
                };
                let lent = |offset: i64| {
                    let mut next = self.clone();
                    let message = next.messages.get_mut(&offset).expect("just listed");
                    message.held = Held::InFlight;
                    message.delivery += 1;
                    next
                };
                std::iter::once(self.clone()).chain(ready.into_iter().map(lent)).collect()
            }
            step => self.after(step).into_iter().collect(),
        }
    }

    fn apply(&mut self, step: &Step) -> bool {
        match step {
            Step::Put { batch, refused, put } => self.put(batch, refused, put),
            Step::PutRefused(refusal) => self.puller_refused(*refusal),
            Step::NotTaken { offset, why, copy } => match why {
                RefusedBecause::Duplicate => *copy || self.messages.contains_key(offset),
                RefusedBecause::Stale => {
                    *offset < self.pull
                        && self.messages.get(offset).is_none_or(|m| m.held == Held::InVain)
                }
            },
            Step::TakeBesideOthers(got) => self.take_one(got),
            Step::TakeNothingBesideOthers => !self.closed && !self.stopped,
            Step::PutCarries => {
                self.carry();
                self.below_gap = false;
                true
            }
            Step::FinishCarries => {
                self.carry();
                self.settling -= 1;
                true
            }
            Step::AdvanceRaises { next } => {
                let legal = !self.closed && !self.stopped && *next >= self.pull;
                self.raised_from = Some(self.pull);
                self.pull = self.pull.max(*next);
                legal
            }
            Step::Advance { next, safe } => self.advance(*next, *safe),
            Step::AdvanceRefused { next, refusal } => match refusal {
                Refusal::Stale => !self.closed && !self.stopped && *next < self.pull,
                other => self.puller_refused(*other),
            },
            Step::Begin(answer) => self.begin(*answer),
            Step::EndLeaves => self.end_leaves(),
            Step::End(answer) => self.end(*answer),
            Step::TakePasses => !self.orderly && !self.closed && !self.stopped,
            Step::Take { n, got } => self.take(*n, got),
            Step::TakeRefused { n, refusal } => self.take_refused(*n, *refusal),
            Step::Commit { safe, finished } => self.commit(*safe, finished),
            Step::CommitNothing => !self.closed && self.held(Held::InFlight).next().is_none(),
            Step::Rollback { ready } => self.rollback(*ready),
            Step::Requeue { offset, delivery, plus, outcome } => {
                self.requeue(*offset, *delivery, *plus, *outcome)
            }
            Step::Finish { offset, delivery, outcome } => self.finish(*offset, *delivery, *outcome),
            Step::FinishInVain { offset } => self.finish_in_vain(*offset),
            Step::Claim { offset, delivery, outcome } => self.claim(*offset, *delivery, *outcome),
            Step::Settle { offset, sent, refused } => self.settle(*offset, *sent, *refused),
            Step::Stop => {
                self.stopped = true;
                true
            }
            Step::Close { safe, hand_over } => self.close(*safe, *hand_over),
            Step::CloseRefused | Step::ClosedAnswer => self.closed,
            read => self.read(read),
        }
    }

    fn puller_refused(&self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::Closed => self.closed,
            Refusal::Stopped => self.stopped && !self.closed,
            _ => false,
        }
    }

    fn put(&mut self, batch: &[(i64, u32)], refused: &[(i64, RefusedBecause)], put: &Put) -> bool {
        if self.closed || self.stopped {
            return false;
        }
        let floor = self.pull;
        let mut count = 0;
        for &(offset, size) in batch {
            // What lies below was refused, and so was the second copy of what lies above.
            if offset < floor || self.messages.contains_key(&offset) {
                continue;
            }
            let message = Message { held: Held::Ready, size, attempts: 0, delivery: 0 };
            self.messages.insert(offset, message);
            self.pull = self.pull.max(offset + 1);
            self.highest = self.highest.max(offset);
            count += 1;
        }
        self.below_gap = count > 0 && self.safe < self.lowest();
        let schedule = self.orderly && !self.scheduled && self.any_ready();
        self.scheduled |= schedule;
        let counts = put.duplicate as usize + put.stale as usize == refused.len();
        counts
            && put.accepted == count
            && count as usize + refused.len() == batch.len()
            && put.schedule == schedule
    }

    fn advance(&mut self, next: i64, safe: Option<i64>) -> bool {
        if self.closed || self.stopped || next < self.pull {
            return false;
        }
        let before = self.safe;
        self.pull = next;
        self.raised_from = None;
        if (self.settling > 0 || self.lags) && safe.is_none() {
            return true;
        }
        self.lags = false;
        self.carry();
        safe == (self.safe != before).then_some(self.safe)
    }

    fn begin(&mut self, answer: Result<(), Refusal>) -> bool {
        match answer {
            Ok(()) if !self.closed && !self.turn => {
                self.turn = true;
                true
            }
            Err(Refusal::Busy) if !self.closed && self.turn => {
                self.noted = true;
                true
            }
            Err(Refusal::Closed) => self.closed,
            _ => false,
        }
    }

    fn end_leaves(&mut self) -> bool {
        self.scheduled = self.any_ready();
        self.left_ready = self.any_ready();
        self.turn
    }

    fn end(&mut self, answer: TurnEnd) -> bool {
        let expected = if self.closed {
            TurnEnd::HandOver
        } else if self.left_ready || self.noted {
            TurnEnd::RunAgain
        } else {
            TurnEnd::Nothing
        };
        let legal = self.turn && expected == answer;
        self.turn = false;
        self.left_ready = false;
        self.noted = false;
        legal
    }

    /// The `n` lowest ready messages, or all there are.
    fn take(&mut self, n: usize, got: &[Got]) -> bool {
        // Concurrent: `TakePasses` came before.
        if self.closed || (self.orderly && self.stopped && n > 0) {
            return false;
        }
        let due: Vec<i64> = self.held(Held::Ready).take(n).collect();
        if n > 0 && due.is_empty() || due.len() != got.len() {
            return false;
        }
        due.iter().zip(got).all(|(offset, got)| *offset == got.offset && self.take_one(got))
    }

    /// This message, ready and perhaps not the lowest.
    fn take_one(&mut self, got: &Got) -> bool {
        let Some(message) = self.messages.get_mut(&got.offset) else { return false };
        let was = std::mem::replace(&mut message.held, Held::InFlight);
        message.delivery += 1;
        !self.closed
            && was == Held::Ready
            && (message.size, message.attempts, message.delivery)
                == (got.size, got.attempts, got.delivery)
    }

    fn take_refused(&mut self, n: usize, refusal: Refusal) -> bool {
        match refusal {
            Refusal::Empty if n > 0 && !self.closed && !self.stopped && !self.any_ready() => {
                self.scheduled = false;
                true
            }
            Refusal::Stopped => self.stopped && !self.closed,
            Refusal::Closed => self.closed,
            _ => false,
        }
    }

    fn commit(&mut self, safe: i64, finished: &[i64]) -> bool {
        let due: Vec<i64> = self.held(Held::InFlight).collect();
        if self.closed || due.is_empty() || due != finished {
            return false;
        }
        self.messages.retain(|_, message| message.held != Held::InFlight);
        if self.raised_from == Some(safe) && self.messages.is_empty() && safe < self.pull {
            self.lags = true;
            self.safe = safe;
            return true;
        }
        self.carry();
        safe == self.safe
    }

    fn rollback(&mut self, ready: u32) -> bool {
        let mut count = 0;
        for message in self.messages.values_mut().filter(|message| message.held == Held::InFlight) {
            message.held = Held::Ready;
            count += 1;
        }
        !self.closed && count == ready
    }

    /// What a verb on one message must answer, `applies` telling the states it works in.
    fn expect(&self, offset: i64, delivery: u32, applies: impl Fn(Held) -> bool) -> Outcome {
        match self.messages.get(&offset) {
            None | Some(Message { held: Held::InVain, .. }) => Outcome::Unknown,
            Some(message) if delivery != 0 && delivery != message.delivery => Outcome::Stale,
            Some(message) if applies(message.held) => Outcome::Won,
            Some(_) => Outcome::Unknown,
        }
    }

    fn requeue(&mut self, offset: i64, delivery: u32, plus: u8, outcome: Outcome) -> bool {
        let expected = self.expect(offset, delivery, |held| held == Held::InFlight);
        if expected == Outcome::Won {
            let message = self.messages.get_mut(&offset).expect("just found");
            message.held = Held::Ready;
            message.attempts = message.attempts.saturating_add(plus);
        }
        !self.closed && expected == outcome
    }

    fn finish(&mut self, offset: i64, delivery: u32, outcome: Outcome) -> bool {
        let orderly = self.orderly;
        let expected = self.expect(offset, delivery, |held| match held {
            Held::InFlight => true,
            Held::Ready => !orderly,
            Held::Claimed | Held::InVain => false,
        });
        if expected == Outcome::Won {
            self.messages.remove(&offset);
            self.finished();
        }
        !self.closed && expected == outcome
    }

    fn finish_in_vain(&mut self, offset: i64) -> bool {
        let Some(message) = self.messages.get_mut(&offset) else { return false };
        message.held = Held::InVain;
        !self.closed && !self.orderly
    }

    fn claim(&mut self, offset: i64, delivery: u32, outcome: Outcome) -> bool {
        let expected = self.expect(offset, delivery, |held| held == Held::InFlight);
        if expected == Outcome::Won {
            self.messages.get_mut(&offset).expect("just found").held = Held::Claimed;
        }
        !self.closed && expected == outcome
    }

    fn settle(&mut self, offset: i64, sent: bool, refused: bool) -> bool {
        if self.closed || refused {
            return self.closed && refused;
        }
        let Some(message) = self.messages.get_mut(&offset) else { return false };
        if message.held != Held::Claimed {
            return false;
        }
        if sent {
            self.messages.remove(&offset);
            self.finished();
        } else {
            message.held = Held::Ready;
            message.attempts = message.attempts.saturating_add(1);
        }
        true
    }

    fn close(&mut self, safe: i64, hand_over: bool) -> bool {
        let legal = !self.closed;
        // Beside a put above a gap it may lag, and stays below the gap: that skips nothing (W3).
        if !(self.below_gap && safe == self.safe) {
            self.carry();
        }
        self.closed = true;
        self.messages.clear();
        legal && safe == self.safe && hand_over != self.turn
    }

    fn read(&self, step: &Step) -> bool {
        match step {
            // May lag while calls overlap, never leads (W3); `bounds` checks that it is not behind
            // what was told before.
            Step::Safe(safe) | Step::SafeAnswer(safe) => *safe <= self.safe,
            Step::PullOffset(pull) => *pull <= self.pull,
            Step::IsClosed(closed) => !*closed || self.closed,
            Step::IsStopped(stopped) => !*stopped || self.stopped || self.closed,
            Step::AtRest { safe, pull, closed } => {
                let late = self.lags && !self.closed;
                !late && (*safe, *pull, *closed) == (self.safe, self.pull, self.closed)
            }
            Step::Contains { offset, answer } => {
                *answer == self.messages.get(offset).is_some_and(|m| m.held == Held::Ready)
            }
            Step::HasReady(answer) => *answer == self.any_ready(),
            Step::Snapshot(snapshot) => self.snapshot(snapshot),
            Step::Expired { limit_over, max, offsets } => {
                let most = if *limit_over && !self.orderly { *max } else { 0 };
                let due = self.held(Held::InFlight).take(most);
                due.eq(offsets.iter().copied())
            }
            Step::ExpiredNames(offset) => {
                !self.closed && self.messages.get(offset).is_some_and(|m| m.held == Held::InFlight)
            }
            Step::Count(_) | Step::Bytes(_) | Step::Span(_) => true,
            _ => false,
        }
    }

    /// One consistent cut: every field of one state.
    fn snapshot(&self, told: &Snapshot) -> bool {
        let edge = |offset: Option<i64>| offset.unwrap_or(0);
        let count = |held| self.held(held).count() as u64;
        let held = || self.messages.iter().filter(|(_, message)| message.held != Held::InVain);
        let (ready, in_flight) = (Held::Ready, Held::InFlight);
        // Concurrent: the safe offset follows the completion that frees it, and may lag until then
        // (W3).
        let safe = match self.orderly {
            true => told.safe_offset == self.safe,
            false => told.safe_offset <= self.safe,
        };
        let offsets = safe
            && told.pull_offset == self.pull
            && told.highest_put == self.highest
            && told.oldest_offset == held().next().map(|(&offset, _)| offset);
        let flags = told.closed == self.closed
            && (self.closed || told.stopped == self.stopped)
            && (self.closed || told.scheduled == self.scheduled);
        offsets
            && flags
            && told.count == held().count() as u64
            && told.bytes == held().map(|(_, message)| u64::from(message.size)).sum::<u64>()
            && (told.cached_count, told.in_flight_count) == (count(ready), count(in_flight))
            && told.claimed_count == count(Held::Claimed)
            && told.cached_min == edge(self.held(ready).next())
            && told.cached_max == edge(self.held(ready).next_back())
            && told.in_flight_min == edge(self.held(in_flight).next())
            && told.in_flight_max == edge(self.held(in_flight).next_back())
    }
}
