//! Names of objects that matter to parents without being their children: whoever waits for one is told once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

use crate::object::name::Key;

/// Which parents wait for which names of one kind.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Pairs>);

/// The same pairs, from both sides.
#[derive(Default)]
struct Pairs {
    by_name: HashMap<Key, BTreeSet<Key>>,
    by_parent: HashMap<Key, BTreeSet<Key>>,
}

impl Waiting {
    pub(crate) fn add(&self, name: &Key, parent: &Key) {
        self.lock().add(name, parent);
    }

    /// Puts these names in the place of all that the parent has waited for.
    pub(crate) fn wait_for<'n>(&self, parent: &Key, names: impl Iterator<Item = &'n Key>) {
        let mut pairs = self.lock();
        pairs.forget(parent);
        names.for_each(|name| pairs.add(name, parent));
    }

    /// The parents that wait for this name; they wait no more.
    pub(crate) fn take(&self, name: &Key) -> BTreeSet<Key> {
        let mut pairs = self.lock();
        let parents = pairs.by_name.remove(name).unwrap_or_default();
        parents.iter().for_each(|parent| remove(&mut pairs.by_parent, parent, name));
        parents
    }

    /// Waits for nothing more on behalf of a parent that is gone.
    pub(crate) fn forget(&self, parent: &Key) {
        self.lock().forget(parent);
    }

    fn lock(&self) -> MutexGuard<'_, Pairs> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Pairs {
    fn add(&mut self, name: &Key, parent: &Key) {
        self.by_name.entry(name.clone()).or_default().insert(parent.clone());
        self.by_parent.entry(parent.clone()).or_default().insert(name.clone());
    }

    fn forget(&mut self, parent: &Key) {
        for name in self.by_parent.remove(parent).unwrap_or_default() {
            remove(&mut self.by_name, &name, parent);
        }
    }
}

fn remove(side: &mut HashMap<Key, BTreeSet<Key>>, at: &Key, other: &Key) {
    if let Some(others) = side.get_mut(at) {
        others.remove(other);
        if others.is_empty() {
            side.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("n", name)
    }

    #[test]
    fn nothing_is_left_of_parents_that_wait_for_other_names_or_are_gone() {
        let waiting = Waiting::default();
        waiting.add(&key("name"), &key("a"));
        waiting.add(&key("name"), &key("b"));
        waiting.wait_for(&key("a"), [key("one"), key("two")].iter());
        assert_eq!(waiting.take(&key("name")), BTreeSet::from([key("b")]));
        assert_eq!(waiting.take(&key("one")), BTreeSet::from([key("a")]));
        waiting.forget(&key("a"));
        assert!(waiting.take(&key("two")).is_empty());
        let pairs = waiting.lock();
        assert!(pairs.by_name.is_empty() && pairs.by_parent.is_empty());
    }
}
