//! The twin's reads (W8, W13, W14).

use lanekeeper::process_queue::{Expired, Mode, Snapshot};

use super::{Held, Stage, State, Twin};

impl Twin {
    pub fn count(&self) -> u64 {
        self.lock().held.len() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.lock().bytes()
    }

    pub fn span(&self) -> i64 {
        let state = self.lock();
        state.held.keys().next().map_or(0, |lowest| state.highest_put - lowest)
    }

    pub fn safe_offset(&self) -> i64 {
        self.lock().safe_offset()
    }

    pub fn pull_offset(&self) -> i64 {
        self.lock().pull_offset
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    pub fn contains(&self, offset: i64) -> bool {
        self.lock().held.get(&offset).is_some_and(Held::is_ready)
    }

    pub fn has_ready(&self) -> bool {
        self.lock().has_ready()
    }

    pub fn payloads_live(&self) -> u64 {
        self.lock().payloads_live
    }

    pub fn hand_over_overdue(&self, now_ms: i64) -> bool {
        let state = self.lock();
        let since_ms = now_ms.saturating_sub(state.closed_ms);
        state.closed && state.turn_running && since_ms >= self.config.hand_over_ms
    }

    /// Payloads released since this was last asked, ascending.
    pub fn take_released(&self) -> Vec<u64> {
        let mut released = std::mem::take(&mut self.lock().released);
        released.sort_unstable();
        released
    }

    /// Every offset outstanding, ascending.
    pub fn outstanding(&self) -> Vec<i64> {
        self.lock().held.keys().copied().collect()
    }

    /// The current delivery of an outstanding message.
    pub fn delivery_of(&self, offset: i64) -> Option<u32> {
        self.lock().held.get(&offset).map(|held| held.delivery)
    }

    pub fn snapshot(&self, now_ms: i64) -> Snapshot {
        let state = self.lock();
        let (cached_count, cached_min, cached_max) = state.extent(Held::is_ready);
        let (in_flight_count, in_flight_min, in_flight_max) = state.extent(Held::is_in_flight);
        let (claimed_count, ..) = state.extent(|held| held.stage == Stage::Claimed);
        let oldest = state.held.iter().next();
        Snapshot {
            cached_count,
            cached_min,
            cached_max,
            in_flight_count,
            in_flight_min,
            in_flight_max,
            claimed_count,
            count: state.held.len() as u64,
            bytes: state.bytes(),
            safe_offset: state.safe_offset(),
            pull_offset: state.pull_offset,
            highest_put: state.highest_put,
            oldest_offset: oldest.map(|(offset, _)| *offset),
            oldest_age_ms: oldest.map_or(0, |(_, h)| now_ms.saturating_sub(h.put_ms).max(0)),
            lag: state.lag,
            scheduled: state.scheduled,
            stopped: state.stopped,
            closed: state.closed,
            last_pull_ms: state.last_pull_ms,
            last_consume_ms: state.last_consume_ms,
        }
    }

    pub fn expired(&self, now_ms: i64, limit_ms: i64, max: usize) -> Vec<Expired> {
        let state = self.lock();
        if self.config.mode != Mode::Concurrent {
            return Vec::new();
        }
        let old = state.held.iter().filter_map(|(offset, held)| match held.stage {
            Stage::InFlight { taken_ms } => {
                let age_ms = now_ms.saturating_sub(taken_ms);
                let expired = Expired { offset: *offset, delivery: held.delivery, age_ms };
                (age_ms > limit_ms).then_some(expired)
            }
            _ => None,
        });
        old.take(max).collect()
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.held.values().map(|held| u64::from(held.size)).sum()
    }

    /// Count, lowest and highest of the messages that are so; zeros if there are none.
    fn extent(&self, so: impl Fn(&Held) -> bool) -> (u64, i64, i64) {
        let mut offsets = self.held.iter().filter(|(_, held)| so(held)).map(|(offset, _)| *offset);
        let Some(lowest) = offsets.next() else {
            return (0, 0, 0);
        };
        let (more, highest) = offsets.fold((0, lowest), |(n, _), offset| (n + 1, offset));
        (more + 1, lowest, highest)
    }
}
