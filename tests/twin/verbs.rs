//! The twin's verbs (W1 to W7, W9 to W11, W15, W16, T1, T2), each under the one lock.

use lanekeeper::process_queue::{
    Advanced, Closed, Committed, Completed, Incoming, Mode, Outcome, Put, PutError, Refusal,
    RefusedBecause, Requeued, Target, TurnEnd,
};

use super::{Delivered, Held, LOANS_MAX, Loan, Refused, Stage, Twin, Who};

impl Twin {
    /// W1.
    pub fn put(
        &self,
        batch: &[Incoming<u64>],
        now_ms: i64,
        broker_max: Option<i64>,
    ) -> Result<(Put, Refused), PutError> {
        let mut state = self.lock();
        state.may_pull()?;
        if let Some(index) = batch.iter().position(|m| m.offset < 0 || m.offset == i64::MAX) {
            return Err(PutError::InvalidOffset { index, offset: batch[index].offset });
        }
        let mut sorted: Vec<&Incoming<u64>> = batch.iter().collect();
        sorted.sort_by_key(|m| m.offset);
        let mut accepted: Vec<&Incoming<u64>> = Vec::new();
        let mut refused = Vec::new();
        for message in sorted {
            let copy = accepted.last().is_some_and(|m| m.offset == message.offset);
            if copy || state.held.contains_key(&message.offset) {
                refused.push((message.offset, message.payload, RefusedBecause::Duplicate));
            } else if message.offset < state.pull_offset {
                refused.push((message.offset, message.payload, RefusedBecause::Stale));
            } else {
                accepted.push(message);
            }
        }
        if state.held.len() + accepted.len() > self.config.outstanding_max as usize {
            return Err(PutError::Refused(Refusal::Limit));
        }
        let count_of = |why| refused.iter().filter(|(_, _, because)| *because == why).count();
        let mut answer = Put {
            accepted: accepted.len() as u32,
            duplicate: count_of(RefusedBecause::Duplicate) as u32,
            stale: count_of(RefusedBecause::Stale) as u32,
            schedule: false,
        };
        state.payloads_live += batch.len() as u64;
        for message in accepted {
            state.insert(message, now_ms);
        }
        for (_, payload, _) in &refused {
            state.release(*payload);
        }
        if let (Some(max), Some(last)) = (broker_max, batch.last()) {
            let lag = max.wrapping_sub(last.offset);
            if lag > 0 {
                state.lag = lag;
            }
        }
        state.last_pull_ms = now_ms;
        if self.config.mode == Mode::Orderly && !state.scheduled && state.has_ready() {
            state.scheduled = true;
            answer.schedule = true;
        }
        Ok((answer, refused))
    }

    /// W9.
    pub fn advance(&self, next: i64, now_ms: i64) -> Result<Advanced, PutError> {
        let mut state = self.lock();
        state.may_pull()?;
        if next < 0 {
            return Err(PutError::InvalidOffset { index: 0, offset: next });
        }
        if next < state.pull_offset {
            return Err(PutError::Refused(Refusal::Stale));
        }
        let before = state.safe_offset();
        state.pull_offset = next;
        state.last_pull_ms = now_ms;
        let after = state.safe_offset();
        Ok(Advanced { safe_offset: (after != before).then_some(after) })
    }

    /// T1.
    pub fn begin_turn(&self) -> Result<(), Refusal> {
        let mut state = self.lock();
        if self.config.mode != Mode::Orderly {
            return Err(Refusal::WrongMode);
        }
        if state.closed {
            return Err(Refusal::Closed);
        }
        if state.turn_running {
            state.busy_note = true;
            return Err(Refusal::Busy);
        }
        state.turn_running = true;
        state.busy_note = false;
        Ok(())
    }

    /// T1, T2: messages in flight stay in flight; the loans end.
    pub fn end_turn(&self) -> TurnEnd {
        let mut state = self.lock();
        state.turn_running = false;
        state.end_loans(Who::Turn, |_| true);
        if state.closed {
            return TurnEnd::HandOver;
        }
        state.scheduled = state.has_ready();
        let again = state.scheduled || state.busy_note;
        state.busy_note = false;
        if again { TurnEnd::RunAgain } else { TurnEnd::Nothing }
    }

    /// W2.
    pub fn take(&self, who: Who, n: usize, now_ms: i64) -> Result<Vec<Delivered>, Refusal> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refusal::Closed);
        }
        if state.stopped {
            return Err(Refusal::Stopped);
        }
        if n == 0 {
            return Ok(Vec::new());
        }
        let taken = state.take(who, n, now_ms);
        if taken.is_empty() {
            if self.config.mode == Mode::Orderly {
                state.scheduled = false;
            }
            return Err(Refusal::Empty);
        }
        Ok(taken)
    }

    /// Offset and payload of what is in flight, ascending. On a closed queue: what the turn still
    /// has on loan.
    pub fn in_flight(&self) -> Vec<(i64, u64)> {
        let state = self.lock();
        let mut flying: Vec<(i64, u64)> = if state.closed {
            let lent = state.loans.iter().filter(|loan| loan.who == Who::Turn);
            lent.map(|loan| (loan.offset, loan.payload)).collect()
        } else {
            let held = state.held.iter().filter(|(_, held)| held.is_in_flight());
            held.map(|(offset, held)| (*offset, held.payload)).collect()
        };
        flying.sort_unstable();
        flying
    }

    /// W4.
    pub fn commit(&self) -> Result<Committed, Refusal> {
        let mut state = self.lock();
        state.end_loans(Who::Turn, |_| true);
        if state.closed {
            return Err(Refusal::Closed);
        }
        let flying = state.in_flight_offsets();
        for offset in &flying {
            state.finish(*offset);
        }
        if flying.is_empty() {
            return Ok(Committed::Nothing);
        }
        let finished = flying.len() as u32;
        Ok(Committed::Finished { safe_offset: state.safe_offset(), finished })
    }

    /// W5.
    pub fn rollback(&self) -> Result<u32, Refusal> {
        let mut state = self.lock();
        state.end_loans(Who::Turn, |_| true);
        if state.closed {
            return Err(Refusal::Closed);
        }
        let flying = state.in_flight_offsets();
        for offset in &flying {
            state.make_ready(*offset, 0, None);
        }
        Ok(flying.len() as u32)
    }

    /// W6.
    pub fn requeue(
        &self,
        who: Who,
        targets: &[Target],
        attempts_plus: u8,
    ) -> Result<(Requeued, Vec<Outcome>), Refusal> {
        let mut state = self.lock();
        state.end_named_loans(who, targets);
        if state.closed {
            return Err(Refusal::Closed);
        }
        let mut answer = Requeued::default();
        let mut each = Vec::new();
        for target in targets {
            let outcome = state.judge(*target, Held::is_in_flight);
            match outcome {
                Outcome::Won => {
                    state.make_ready(target.offset, attempts_plus, None);
                    answer.requeued += 1;
                }
                Outcome::Unknown => answer.unknown += 1,
                Outcome::Stale => answer.stale += 1,
            }
            each.push(outcome);
        }
        Ok((answer, each))
    }

    /// W7: orderly, what is in flight; concurrent, what is ready as well.
    pub fn complete(
        &self,
        who: Who,
        targets: &[Target],
    ) -> Result<(Completed, Vec<Outcome>), Refusal> {
        let mut state = self.lock();
        state.end_named_loans(who, targets);
        if state.closed {
            return Err(Refusal::Closed);
        }
        let ready_too = self.config.mode == Mode::Concurrent;
        let mut answer = Completed { safe_offset: 0, finished: 0, unknown: 0, stale: 0, ready: 0 };
        let mut each = Vec::new();
        for target in targets {
            let outcome =
                state.judge(*target, |held| held.is_in_flight() || (ready_too && held.is_ready()));
            match outcome {
                Outcome::Won => {
                    state.finish(target.offset);
                    answer.finished += 1;
                }
                Outcome::Unknown => answer.unknown += 1,
                Outcome::Stale => answer.stale += 1,
            }
            each.push(outcome);
        }
        answer.safe_offset = state.safe_offset();
        Ok((answer, each))
    }

    /// A new consumer handle, under a number of the test's choosing.
    pub fn consumer(&self, id: u64) -> Result<(), Refusal> {
        let mut state = self.lock();
        if self.config.mode != Mode::Concurrent {
            return Err(Refusal::WrongMode);
        }
        if state.closed {
            return Err(Refusal::Closed);
        }
        if state.consumers.len() >= self.config.consumers_max as usize {
            return Err(Refusal::Limit);
        }
        state.consumers.insert(id);
        Ok(())
    }

    /// W12: the handle's loans end; what it had in flight stays in flight.
    pub fn end_consumer(&self, id: u64) {
        let mut state = self.lock();
        state.consumers.remove(&id);
        state.end_loans(Who::Consumer(id), |_| true);
    }

    /// Ends loans without deciding about the messages.
    pub fn give_back(&self, who: Who, targets: &[Target]) -> u32 {
        self.lock().end_named_loans(who, targets)
    }

    /// W15. A loan that the claimer has of the current delivery goes over to the claim.
    pub fn claim(&self, who: Who, target: Target) -> Result<Result<Target, Outcome>, Refusal> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refusal::Closed);
        }
        let Target { offset, .. } = target;
        let current = state.held.get(&offset).map_or(0, |held| held.delivery);
        let goes_over =
            |loan: &Loan| loan.who == who && loan.offset == offset && loan.delivery == current;
        let own = state.loans.iter().position(goes_over);
        let lent = state.loans.iter().filter(|loan| loan.offset == offset).count();
        let may_lend = own.is_some() || lent < LOANS_MAX;
        match state.judge(target, |held| held.is_in_flight() && may_lend) {
            Outcome::Won => {
                let held = state.held.get_mut(&offset).unwrap();
                held.stage = Stage::Claimed;
                let (delivery, payload) = (held.delivery, held.payload);
                if let Some(own) = own {
                    state.loans.swap_remove(own);
                }
                state.loans.push(Loan { who: Who::Claim, offset, delivery, payload });
                Ok(Ok(Target { offset, delivery }))
            }
            other => Ok(Err(other)),
        }
    }

    /// W15: `claim` must be one that `claim` answered and that was not settled before.
    pub fn settle(
        &self,
        claim: Target,
        sent: bool,
        not_before_ms: i64,
        now_ms: i64,
    ) -> Result<Completed, Refusal> {
        let mut state = self.lock();
        state.end_loans(Who::Claim, |loan| loan.offset == claim.offset);
        if state.closed {
            return Err(Refusal::Closed);
        }
        if sent {
            state.finish(claim.offset);
        } else {
            let later = (not_before_ms > now_ms).then_some(not_before_ms);
            state.make_ready(claim.offset, 1, later);
        }
        Ok(Completed {
            safe_offset: state.safe_offset(),
            finished: u32::from(sent),
            unknown: 0,
            stale: 0,
            ready: u32::from(!sent),
        })
    }

    /// W16.
    pub fn stop(&self) {
        self.lock().stopped = true;
    }

    /// W10.
    pub fn close(&self, now_ms: i64) -> Result<Closed, Refusal> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refusal::Closed);
        }
        state.final_safe = state.safe_offset();
        state.closed = true;
        state.closed_ms = now_ms;
        // A turn may look at everything in flight once more, so while it runs it holds all of it.
        if state.turn_running {
            let flying = state.held.iter().filter(|(_, held)| held.is_in_flight());
            let lent: Vec<Loan> = flying
                .map(|(offset, held)| Loan {
                    who: Who::Turn,
                    offset: *offset,
                    delivery: held.delivery,
                    payload: held.payload,
                })
                .collect();
            state.end_loans(Who::Turn, |_| true);
            state.loans.extend(lent);
        }
        let offsets: Vec<i64> = state.held.keys().copied().collect();
        for offset in offsets {
            state.finish(offset);
        }
        Ok(Closed { safe_offset: state.final_safe, hand_over: !state.turn_running })
    }
}
