//! The clients of a group.

use super::rooms::Rooms;
use super::{MEMBERS_MAX, SetupError, bounded};
use crate::java;
use crate::sync::blocking::Arc;

/// The client ids of a group, sorted by UTF-16 units as Java sorts them. An id that is listed
/// twice stays twice: it moves the positions of those behind it, in Java as here (A1). Immutable.
#[derive(Debug)]
pub struct Members {
    clients: Vec<Arc<str>>,
    rooms: Option<Rooms>,
}

impl Members {
    /// Sorts the ids.
    ///
    /// # Errors
    /// [`SetupError::TooMany`] above [`MEMBERS_MAX`].
    pub fn new<C: Into<Arc<str>>>(
        clients: impl IntoIterator<Item = C>,
    ) -> Result<Self, SetupError> {
        let mut clients: Vec<Arc<str>> = clients.into_iter().map(Into::into).collect();
        clients.sort_unstable_by(|a, b| java::string_order(a, b));
        bounded("members", clients.len(), MEMBERS_MAX)?;
        Ok(Self { clients, rooms: None })
    }

    /// The same, each client with the machine room it stands in, for `MACHINE_ROOM_NEARBY`. `room`
    /// is asked once for each; None, or an empty name, means that it is not known.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_rooms<C: Into<Arc<str>>, R: Into<Arc<str>>>(
        clients: impl IntoIterator<Item = C>,
        mut room: impl FnMut(&str) -> Option<R>,
    ) -> Result<Self, SetupError> {
        let mut members = Self::new(clients)?;
        let rooms = members.clients.iter().map(|client| room(client).map(Into::into));
        members.rooms = Some(Rooms::new(rooms));
        Ok(members)
    }

    /// The ids in order, doubles included.
    #[must_use]
    pub fn clients(&self) -> &[Arc<str>] {
        &self.clients
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// The first position of an id.
    #[must_use]
    pub fn position(&self, client: &str) -> Option<usize> {
        let at = self.clients.partition_point(|other| java::string_order(other, client).is_lt());
        (self.clients.get(at).map(|found| &**found) == Some(client)).then_some(at)
    }

    /// Whether the id at this position stands in the list more than once.
    ///
    /// # Panics
    /// If there is no such position.
    #[must_use]
    pub fn is_duplicate(&self, position: usize) -> bool {
        let own = &self.clients[position];
        let before = position.checked_sub(1).is_some_and(|at| self.clients[at] == *own);
        before || self.clients.get(position + 1) == Some(own)
    }

    pub(super) fn rooms(&self) -> Option<&Rooms> {
        self.rooms.as_ref()
    }
}
