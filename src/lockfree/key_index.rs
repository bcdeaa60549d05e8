//! The index from key to id: Crossbeam's skip map, or, where a model checker has to see into it, a
//! mutex around an ordered map.

use super::intern::Id;

#[cfg(not(any(lk_loom, lk_shuttle)))]
mod real {
    use super::Id;
    use crossbeam_skiplist::SkipMap;

    pub(crate) struct KeyIndex<K>(SkipMap<K, Id>);

    impl<K: Ord + Send + 'static> KeyIndex<K> {
        pub(crate) fn new() -> Self {
            Self(SkipMap::new())
        }
        pub(crate) fn get(&self, key: &K) -> Option<Id> {
            self.0.get(key).map(|entry| *entry.value())
        }
        /// The id that the key has now: this one, unless there was one.
        pub(crate) fn get_or_insert(&self, key: K, id: Id) -> Id {
            *self.0.get_or_insert(key, id).value()
        }
        /// Only if the key still has this id.
        pub(crate) fn remove(&self, key: &K, id: Id) {
            if let Some(entry) = self.0.get(key)
                && *entry.value() == id
            {
                // This very entry: one put in its place meanwhile stays.
                entry.remove();
            }
        }
        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }
    }
}

#[cfg(any(lk_loom, lk_shuttle))]
mod model {
    use super::Id;
    use crate::sync::{Mutex, mutated};
    use std::collections::BTreeMap;

    pub(crate) struct KeyIndex<K>(Mutex<BTreeMap<K, Id>>);

    impl<K: Ord + Send + 'static> KeyIndex<K> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(BTreeMap::new()))
        }
        pub(crate) fn get(&self, key: &K) -> Option<Id> {
            self.0.lock().unwrap().get(key).copied()
        }
        pub(crate) fn get_or_insert(&self, key: K, id: Id) -> Id {
            *self.0.lock().unwrap().entry(key).or_insert(id)
        }
        pub(crate) fn remove(&self, key: &K, id: Id) {
            let mut map = self.0.lock().unwrap();
            if map.get(key) == Some(&id) || mutated("intern_remove_any") {
                map.remove(key);
            }
        }
        pub(crate) fn len(&self) -> usize {
            self.0.lock().unwrap().len()
        }
    }
}

#[cfg(any(lk_loom, lk_shuttle))]
pub(crate) use model::KeyIndex;
#[cfg(not(any(lk_loom, lk_shuttle)))]
pub(crate) use real::KeyIndex;
