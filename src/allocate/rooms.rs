//! The machine rooms of the queues of a route, or of the clients of a group.

use std::collections::HashMap;

use super::narrow;
use crate::java;
use crate::sync::blocking::Arc;

/// A room for each item of a sorted list. Rooms are numbered in Java's order of their names.
#[derive(Debug)]
pub(super) struct Rooms {
    names: Vec<Arc<str>>,
    of: Vec<u32>,
}

/// Stands for "not known".
const NONE: u32 = u32::MAX;

impl Rooms {
    /// An empty name is no room, as upstream's.
    pub(super) fn new(rooms: impl Iterator<Item = Option<Arc<str>>>) -> Self {
        let rooms: Vec<Option<Arc<str>>> =
            rooms.map(|room| room.filter(|name| !name.is_empty())).collect();
        let mut names: Vec<Arc<str>> = rooms.iter().flatten().cloned().collect();
        names.sort_unstable_by(|a, b| java::string_order(a, b));
        names.dedup();
        let numbers: HashMap<&str, u32> =
            names.iter().enumerate().map(|(number, name)| (&**name, narrow(number))).collect();
        let of = rooms.iter().map(|room| room.as_ref().map_or(NONE, |name| numbers[&**name]));
        let of = of.collect();
        Self { names, of }
    }

    /// Names in Java's order.
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.names.binary_search_by(|other| java::string_order(other, name)).ok().map(narrow)
    }

    /// The room of an item.
    pub(super) fn of(&self, item: usize) -> Option<u32> {
        Some(self.of[item]).filter(|&room| room != NONE)
    }

    /// The first item whose room is not known.
    pub(super) fn first_unknown(&self) -> Option<usize> {
        self.of.iter().position(|&room| room == NONE)
    }

    /// The items of each room, ascending.
    pub(super) fn items(&self) -> Vec<Vec<u32>> {
        let mut items = vec![Vec::new(); self.names.len()];
        for (item, &room) in self.of.iter().enumerate() {
            if let Some(items) = items.get_mut(room as usize) {
                items.push(narrow(item));
            }
        }
        items
    }
}
