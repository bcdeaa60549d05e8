//! The queues of a topic.

use super::ring::{RingHash, RingKeys};
use super::rooms::Rooms;
use super::{QUEUES_MAX, SetupError, bounded};
use crate::message_queue::MessageQueue;
use crate::sync::blocking::Arc;
use crate::sync::swap::Swap;

/// The queues of a topic, sorted as upstream sorts them and each once (A1). Immutable: share it
/// between groups and threads as an `Arc`.
#[derive(Debug)]
pub struct Route {
    queues: Arc<[MessageQueue]>,
    rooms: Option<Rooms>,
    /// The keys by the usual hash, once somebody needed them.
    keys: Swap<Option<Arc<RingKeys>>>,
}

impl Route {
    /// Sorts the queues and drops doubles.
    ///
    /// # Errors
    /// [`SetupError::TooMany`] above [`QUEUES_MAX`].
    pub fn new(queues: impl Into<Vec<MessageQueue>>) -> Result<Self, SetupError> {
        let mut queues = queues.into();
        queues.sort_unstable();
        queues.dedup();
        bounded("queues", queues.len(), QUEUES_MAX)?;
        Ok(Self { queues: queues.into(), rooms: None, keys: Swap::new(Arc::new(None)) })
    }

    /// The same, each queue with the machine room that its broker stands in, for
    /// `MACHINE_ROOM_NEARBY`. `room` is asked once for each queue; None, or an empty name, means
    /// that it is not known.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_rooms<R: Into<Arc<str>>>(
        queues: impl Into<Vec<MessageQueue>>,
        mut room: impl FnMut(&MessageQueue) -> Option<R>,
    ) -> Result<Self, SetupError> {
        let mut route = Self::new(queues)?;
        let rooms = route.queues.iter().map(|queue| room(queue).map(Into::into));
        route.rooms = Some(Rooms::new(rooms));
        Ok(route)
    }

    /// The queues in order.
    #[must_use]
    pub fn queues(&self) -> &[MessageQueue] {
        &self.queues
    }

    pub(super) fn shared_queues(&self) -> &Arc<[MessageQueue]> {
        &self.queues
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn rooms(&self) -> Option<&Rooms> {
        self.rooms.as_ref()
    }

    /// The keys by `hash`. Those of the usual one are computed once and kept: who needs them while
    /// another thread computes them does so too, rather than wait.
    pub(super) fn keys(&self, hash: &RingHash) -> Arc<RingKeys> {
        let compute = || Arc::new(RingKeys::new(&self.queues, hash));
        if matches!(hash, RingHash::Custom(_)) {
            return compute();
        }
        let none = self.keys.load();
        if let Some(keys) = &*none {
            return Arc::clone(keys);
        }
        let keys = compute();
        match self.keys.compare_and_swap(&none, Arc::new(Some(Arc::clone(&keys)))) {
            Ok(()) => keys,
            // Somebody was faster; one copy is enough.
            Err(kept) => kept.as_ref().as_ref().map_or(keys, Arc::clone),
        }
    }
}
