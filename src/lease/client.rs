//! The client's side (L4): a state machine that is told the time and the answers, and says what to
//! send.

use std::collections::BTreeMap;

use crate::types::Refusal;

/// A broker is asked again so long, in ms, after it was asked.
pub(super) const REFRESH_MS: i64 = 20_000;
/// Or so long, in ms, after a request got no answer.
pub(super) const RETRY_MS: i64 = 1_000;
/// A grant is valid so long, in ms, from the time its request was sent.
pub(super) const VALID_MS: i64 = 30_000;
/// A lease the broker gave cannot be another's before so long, in ms, after the request was sent.
pub(super) const LEASE_MS: i64 = 60_000;

/// Number of a request, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request to be sent now: one for each broker, with all its queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<Q, B> {
    /// To be named with the answer.
    pub id: RequestId,
    /// Whom to send it to.
    pub broker: B,
    /// The queues to lock, ascending.
    pub queues: Vec<Q>,
}

/// One queue that a broker's answer lists as locked by this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer<Q> {
    /// The queue.
    pub queue: Q,
    /// The fencing token, where the broker gives one. RocketMQ's does not.
    pub token: Option<u64>,
}

/// What an answer means for one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<Q> {
    /// The queue may be consumed from now on; it could not before. A first grant: create the
    /// assignment, the grant applies to it at once. A later one: the generation goes on.
    Granted {
        /// The queue.
        queue: Q,
        /// Of the assignment.
        generation: u64,
    },
    /// It could be consumed and still can.
    Renewed {
        /// The queue.
        queue: Q,
        /// Of the assignment.
        generation: u64,
    },
    /// Another client holds it. Its messages must not be consumed now; it is asked for again.
    Refused {
        /// The queue.
        queue: Q,
        /// Of the assignment.
        generation: u64,
    },
    /// It was granted, but another client may have consumed in between: close the generation, and
    /// start anew.
    Superseded {
        /// The queue.
        queue: Q,
        /// Of the assignment that is to be closed.
        generation: u64,
    },
    /// It was granted, but nobody here wants it any more: give it back.
    Unwanted {
        /// The queue.
        queue: Q,
    },
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    granted_at_ms: i64,
    token: Option<u64>,
}

#[derive(Debug)]
struct Entry<B> {
    broker: B,
    generation: u64,
    /// The last grant, whether it stands or not.
    last: Option<Grant>,
    /// The last grant stands: not refused, not ended by the clock, not superseded.
    stands: bool,
    superseded: bool,
    /// The newest request whose answer was applied.
    settled: u64,
    /// No more refreshing from this time on.
    refresh_until_ms: Option<i64>,
}

impl<B> Entry<B> {
    fn is_valid(&self, now_ms: i64) -> bool {
        let age = self.last.map(|grant| now_ms.saturating_sub(grant.granted_at_ms));
        self.stands && age.is_some_and(|age| (0..=VALID_MS).contains(&age))
    }

    fn is_refreshed(&self, now_ms: i64) -> bool {
        self.refresh_until_ms.is_none_or(|until| now_ms <= until)
    }
}

#[derive(Debug)]
struct Outstanding<B> {
    broker: B,
    sent_ms: i64,
}

/// Which leases this client holds, counted from the time each request was *sent*, and what to ask
/// for next.
///
/// The host calls [`due`](Self::due) when [`next_due_ms`](Self::next_due_ms) says so, sends the
/// requests, and brings the answers. Before it consumes, and before it stores an offset, it asks
/// [`is_valid`](Self::is_valid) for the generation at hand; a store action carries
/// [`token`](Self::token).
///
/// - A grant dates from the sending of its request, and is valid for 30 s; an answer to a request
///   older than one already answered changes nothing.
/// - Each broker is asked every 20 s for all queues wanted of it, also those being stopped and
///   closed, until [`forget`](Self::forget) or the time given to [`closing`](Self::closing); at
///   once for a new queue; after 1 s when an answer failed to come.
/// - Granted again within 60 s of the last grant, or with the same fencing token, the generation
///   goes on. Else [`Told::Superseded`].
/// - When the clock steps back, every grant ends, requests under way count no more, and everything
///   is asked for again. How old a grant was before the step is not forgotten.
///
/// A departure from `ProcessQueue.isLockExpired` and `RebalanceImpl.lock` of upstream (apache/
/// rocketmq at commit 8fc57f1468d1), which date a grant from the answer. Not for threads: the host
/// keeps it in one place. Allocates; times in ms.
#[derive(Debug)]
pub struct LeaseClient<Q, B> {
    entries: BTreeMap<Q, Entry<B>>,
    /// When each broker is asked next.
    brokers: BTreeMap<B, i64>,
    requests: BTreeMap<u64, Outstanding<B>>,
    requests_made: u64,
    /// The highest time told so far.
    seen_ms: i64,
}

impl<Q: Ord + Clone, B: Ord + Clone> Default for LeaseClient<Q, B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Q: Ord + Clone, B: Ord + Clone> LeaseClient<Q, B> {
    /// One that wants nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            brokers: BTreeMap::new(),
            requests: BTreeMap::new(),
            requests_made: 0,
            seen_ms: i64::MIN,
        }
    }

    /// Wants the lease of a queue, for the assignment with this generation; its broker is asked at
    /// once. `Busy`: an older assignment of this queue is still here: `forget` it first.
    pub fn want(
        &mut self,
        queue: Q,
        broker: B,
        generation: u64,
        now_ms: i64,
    ) -> Result<(), Refusal> {
        self.observe(now_ms);
        if self.entries.contains_key(&queue) {
            return Err(Refusal::Busy);
        }
        let entry = Entry {
            broker: broker.clone(),
            generation,
            last: None,
            stands: false,
            superseded: false,
            // Whatever is under way was not asked for by this assignment.
            settled: self.requests_made,
            refresh_until_ms: None,
        };
        self.brokers.insert(broker, now_ms);
        self.entries.insert(queue, entry);
        Ok(())
    }

    /// When `due` has something to say next; `None` if nothing is wanted.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<i64> {
        self.brokers.values().min().copied()
    }

    /// The requests to be sent now, at most one for each broker. They count as sent at `now_ms`.
    pub fn due(&mut self, now_ms: i64) -> Vec<Request<Q, B>> {
        self.observe(now_ms);
        // What was sent so long ago grants nothing any more.
        self.requests.retain(|_, request| now_ms.saturating_sub(request.sent_ms) <= LEASE_MS);
        let mut requests = Vec::new();
        for (broker, next_ms) in &mut self.brokers {
            if *next_ms > now_ms {
                continue;
            }
            *next_ms = now_ms.saturating_add(REFRESH_MS);
            let wanted = self.entries.iter().filter(|(_, entry)| {
                entry.broker == *broker && entry.is_refreshed(now_ms) && !entry.superseded
            });
            let queues: Vec<Q> = wanted.map(|(queue, _)| queue.clone()).collect();
            if queues.is_empty() {
                continue;
            }
            self.requests_made += 1;
            let outstanding = Outstanding { broker: broker.clone(), sent_ms: now_ms };
            self.requests.insert(self.requests_made, outstanding);
            let id = RequestId(self.requests_made);
            requests.push(Request { id, broker: broker.clone(), queues });
        }
        requests
    }

    /// An answer came: the queues it lists are locked by this client, the others that were asked
    /// for are not. An unknown, older or second answer means nothing.
    pub fn answered(&mut self, id: RequestId, granted: &[Answer<Q>], now_ms: i64) -> Vec<Told<Q>> {
        self.observe(now_ms);
        let Some(request) = self.requests.remove(&id.0) else { return Vec::new() };
        let tokens: BTreeMap<&Q, Option<u64>> =
            granted.iter().map(|answer| (&answer.queue, answer.token)).collect();
        let mut told = Vec::new();
        for (queue, entry) in &mut self.entries {
            // Not asked for by this request, or told more by a later one.
            let asked = entry.broker == request.broker && entry.is_refreshed(request.sent_ms);
            if !asked || entry.superseded || entry.settled >= id.0 {
                continue;
            }
            entry.settled = id.0;
            let token = tokens.get(queue).copied();
            let generation = entry.generation;
            let queue = queue.clone();
            told.push(match token.map(|token| entry.apply(request.sent_ms, token, now_ms)) {
                None => {
                    entry.stands = false;
                    Told::Refused { queue, generation }
                }
                Some(Applied::Superseded) => Told::Superseded { queue, generation },
                Some(Applied::Granted) => Told::Granted { queue, generation },
                Some(Applied::Renewed) => Told::Renewed { queue, generation },
                // Too late to be of use: as if it had not come.
                Some(Applied::TooLate) => continue,
            });
        }
        let unwanted = tokens.keys().filter(|queue| !self.entries.contains_key(**queue));
        told.extend(unwanted.map(|queue| Told::Unwanted { queue: (*queue).clone() }));
        told
    }

    /// No answer will come: the broker is asked again in a second.
    pub fn failed(&mut self, id: RequestId, now_ms: i64) {
        self.observe(now_ms);
        let Some(request) = self.requests.remove(&id.0) else { return };
        if let Some(next_ms) = self.brokers.get_mut(&request.broker) {
            *next_ms = (*next_ms).min(now_ms.saturating_add(RETRY_MS));
        }
    }

    /// Whether the assignment may consume and store offsets now.
    pub fn is_valid(&mut self, queue: &Q, generation: u64, now_ms: i64) -> bool {
        self.observe(now_ms);
        let entry = self.entries.get(queue).filter(|entry| entry.generation == generation);
        entry.is_some_and(|entry| entry.is_valid(now_ms))
    }

    /// The fencing token of the last grant, for store actions of this generation.
    #[must_use]
    pub fn token(&self, queue: &Q, generation: u64) -> Option<u64> {
        let entry = self.entries.get(queue).filter(|entry| entry.generation == generation)?;
        entry.last?.token
    }

    /// The queue was closed while a turn runs: its lease is refreshed for `hand_over_ms` more at
    /// most (T2). A second call does not prolong it.
    pub fn closing(&mut self, queue: &Q, generation: u64, now_ms: i64, hand_over_ms: i64) {
        self.observe(now_ms);
        if let Some(entry) = self.entries.get_mut(queue)
            && entry.generation == generation
            && entry.refresh_until_ms.is_none()
        {
            entry.refresh_until_ms = Some(now_ms.saturating_add(hand_over_ms.max(0)));
        }
    }

    /// The hand-over is done: wants these queues no longer. Answers, for each broker, which of them
    /// to give back there now. Those not wanted are left out.
    pub fn forget(&mut self, queues: &[Q]) -> BTreeMap<B, Vec<Q>> {
        let mut release: BTreeMap<B, Vec<Q>> = BTreeMap::new();
        for queue in queues {
            if let Some(entry) = self.entries.remove(queue) {
                release.entry(entry.broker).or_default().push(queue.clone());
            }
        }
        let entries = &self.entries;
        self.brokers.retain(|broker, _| entries.values().any(|entry| entry.broker == *broker));
        release
    }

    /// Queues wanted.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Takes note of the time; a step back ends every grant (L5).
    fn observe(&mut self, now_ms: i64) {
        let back = self.seen_ms.saturating_sub(now_ms);
        if back > 0 && self.seen_ms != i64::MIN {
            // Their times of sending mean nothing on the new clock.
            self.requests.clear();
            for entry in self.entries.values_mut() {
                entry.stands = false;
                if let Some(grant) = &mut entry.last {
                    // Keeps the age it had.
                    grant.granted_at_ms = grant.granted_at_ms.saturating_sub(back);
                }
                if let Some(until_ms) = &mut entry.refresh_until_ms {
                    *until_ms = until_ms.saturating_sub(back);
                }
            }
            self.brokers.values_mut().for_each(|next_ms| *next_ms = now_ms);
        }
        self.seen_ms = now_ms;
    }
}

enum Applied {
    Granted,
    Renewed,
    Superseded,
    TooLate,
}

impl<B> Entry<B> {
    fn apply(&mut self, sent_ms: i64, token: Option<u64>, now_ms: i64) -> Applied {
        let goes_on = self.last.is_none_or(|last| {
            let within = sent_ms.saturating_sub(last.granted_at_ms) <= LEASE_MS;
            within || token.is_some() && token == last.token
        });
        if !goes_on {
            self.superseded = true;
            self.stands = false;
            return Applied::Superseded;
        }
        let before = self.is_valid(now_ms);
        self.last = Some(Grant { granted_at_ms: sent_ms, token });
        self.stands = true;
        match (before, self.is_valid(now_ms)) {
            (_, false) => Applied::TooLate,
            (true, true) => Applied::Renewed,
            (false, true) => Applied::Granted,
        }
    }
}
