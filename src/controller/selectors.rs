//! The selectors of a definition's parents, kept while their parents are the same: each orphan is held against all.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::cluster::kind::Kind;
use crate::cluster::object::{Object, Version};
use crate::controller::room::own_selector;
use crate::object::labels::LabelSet;
use crate::object::name::Key;
use crate::object::selector::Selector;

/// What was read of each parent. Nothing in here decides: a visit reads its parent's selector itself.
#[derive(Default)]
pub(super) struct Selectors(Mutex<HashMap<Key, Read>>);

struct Read {
    of: MadeOf,
    /// None where the parent has none that can be used.
    selector: Option<Selector>,
}

/// The state of a parent that its selector was read from. A kind without generations has only versions.
#[derive(PartialEq)]
struct MadeOf {
    uid: Box<str>,
    generation: i64,
    version: Option<Version>,
}

impl MadeOf {
    fn new(parent: &Object) -> Self {
        let version = (parent.generation == 0).then(|| parent.version.clone());
        MadeOf { uid: parent.uid.clone(), generation: parent.generation, version }
    }
}

impl Selectors {
    /// The parents, of one namespace or (empty) of all, whose selectors pick these labels.
    pub(super) fn picking(&self, parents: &Kind, namespace: &str, labels: &LabelSet) -> Vec<Key> {
        let near = |parent: &Object| namespace.is_empty() || parent.key.namespace == namespace;
        // One without a body is not selected.
        let near = parents.select(|parent| parent.body.is_some() && near(parent));
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if known.len() > 2 * parents.count() {
            known.retain(|parent, _| parents.get(parent).is_some());
        }
        let mut picks = |parent: &Object| known_of(&mut known, parent).is_some_and(|own| own.matches(labels));
        near.iter().filter(|parent| picks(parent)).map(|parent| parent.key.clone()).collect()
    }
}

fn known_of<'k>(known: &'k mut HashMap<Key, Read>, parent: &Object) -> Option<&'k Selector> {
    let of = MadeOf::new(parent);
    if known.get(&parent.key).is_none_or(|read| read.of != of) {
        let selector = own_selector(parent).ok();
        known.insert(parent.key.clone(), Read { of, selector });
    }
    known.get(&parent.key)?.selector.as_ref()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cluster::object::Managers;

    fn parent(uid: &str, generation: i64, version: u64, selector: &str) -> Object {
        let text = format!(
            r#"{{"apiVersion":"demo.io/v1","kind":"Shelf","metadata":{{"namespace":"n","name":"a","uid":"{uid}","generation":{generation},"resourceVersion":"{version}"}},"spec":{{"selector":{{{selector}}}}}}}"#
        );
        let managers = Managers { objects: "m".into(), status: "s".into() };
        Object::read(&text, ("demo.io/v1", "Shelf"), &managers).expect("readable")
    }

    #[test]
    fn selector_is_read_anew_when_its_parent_is_another() {
        let mut known = HashMap::new();
        let mut picks = |parent: Object, label: &str| {
            let labels = BTreeMap::from([("app", label)]);
            known_of(&mut known, &parent).is_some_and(|selector| selector.matches(&labels))
        };
        let (a, b) = (r#""matchLabels":{"app":"a"}"#, r#""matchLabels":{"app":"b"}"#);
        assert!(picks(parent("u1", 1, 1, a), "a"));
        assert!(picks(parent("u1", 1, 2, b), "a"), "its content cannot have changed");
        assert!(picks(parent("u1", 2, 3, b), "b"));
        assert!(picks(parent("u2", 2, 4, a), "a"));
        assert!(!picks(parent("u2", 3, 5, ""), "a"), "one without a selector picks nothing");
        assert!(picks(parent("u2", 0, 6, b), "b"));
        assert!(picks(parent("u2", 0, 7, a), "a"), "without generations each version is another content");
    }
}
