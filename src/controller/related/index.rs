//! Finds the parents that may be concerned by a change of an object of one kind, without looking at all of them.

use std::collections::{BTreeSet, HashMap};

use crate::controller::related::rule::{Rule, Scope};
use crate::object::name::Key;

/// Parents by what their rules for one kind ask for.
#[derive(Default)]
pub(super) struct Index {
    by_name: HashMap<String, BTreeSet<Key>>,
    /// The empty namespace is that of cluster-scoped objects.
    by_namespace: HashMap<String, BTreeSet<Key>>,
    everywhere: BTreeSet<Key>,
}

impl Index {
    pub(super) fn add(&mut self, rule: &Rule, parent: &Key) {
        for name in &rule.names {
            self.by_name.entry(name.clone()).or_default().insert(parent.clone());
        }
        for namespace in namespaces(rule) {
            self.by_namespace.entry(namespace.to_string()).or_default().insert(parent.clone());
        }
        if is_everywhere(rule) {
            self.everywhere.insert(parent.clone());
        }
    }

    pub(super) fn remove(&mut self, rule: &Rule, parent: &Key) {
        for name in &rule.names {
            take(&mut self.by_name, name, parent);
        }
        for namespace in namespaces(rule) {
            take(&mut self.by_namespace, namespace, parent);
        }
        if is_everywhere(rule) {
            self.everywhere.remove(parent);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty() && self.by_namespace.is_empty() && self.everywhere.is_empty()
    }

    /// Parents whose rules may pick the object of this name.
    pub(super) fn candidates(&self, object: &Key) -> impl Iterator<Item = &Key> {
        let named = self.by_name.get(&object.name).into_iter().flatten();
        let near = self.by_namespace.get(&object.namespace).into_iter().flatten();
        named.chain(near).chain(&self.everywhere)
    }

    pub(super) fn parents(&self) -> BTreeSet<Key> {
        let sets = self.by_name.values().chain(self.by_namespace.values());
        sets.flatten().chain(&self.everywhere).cloned().collect()
    }
}

/// The namespaces under which a rule without names is found.
fn namespaces(rule: &Rule) -> Vec<&str> {
    match &rule.scope {
        _ if !rule.names.is_empty() => Vec::new(),
        Scope::Within(namespace) => vec![namespace],
        Scope::Namespace(namespace) => vec![namespace, ""],
        Scope::Everywhere | Scope::Labelled(_) => Vec::new(),
    }
}

fn is_everywhere(rule: &Rule) -> bool {
    rule.names.is_empty() && matches!(rule.scope, Scope::Everywhere | Scope::Labelled(_))
}

fn take(index: &mut HashMap<String, BTreeSet<Key>>, at: &str, parent: &Key) {
    if let Some(parents) = index.get_mut(at) {
        parents.remove(parent);
        if parents.is_empty() {
            index.remove(at);
        }
    }
}
