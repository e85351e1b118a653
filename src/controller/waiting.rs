//! Names of objects that matter to parents without being their children: whoever waits for one is told once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

use crate::object::name::Key;

/// Which parents wait for which names of one kind.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<HashMap<Key, BTreeSet<Key>>>);

impl Waiting {
    pub(crate) fn add(&self, name: &Key, parent: &Key) {
        self.lock().entry(name.clone()).or_default().insert(parent.clone());
    }

    /// The parents that wait for this name; they wait no more.
    pub(crate) fn take(&self, name: &Key) -> BTreeSet<Key> {
        self.lock().remove(name).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, BTreeSet<Key>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
