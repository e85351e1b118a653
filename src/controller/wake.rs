//! Which parents a change concerns: one of their own, of a child's, or of an orphan that they would adopt.
//!
//! Only looks and tells; a visit finds out what the change means.

use std::sync::{Arc, Weak};

use crate::cluster::kind::{Kind, Origin};
use crate::cluster::object::Object;
use crate::cluster::store::Change;
use crate::controller::queue::Queue;
use crate::controller::room::CONTROLLER_UID;
use crate::controller::selectors::Selectors;
use crate::controller::waiting::Waiting;
use crate::object::name::{Gvk, Key};
use crate::object::selector::Labels;

/// Wakes the parent that has changed.
pub(super) struct ParentListener {
    pub number: u64,
    pub ignore_status: bool,
    pub queue: Arc<Queue>,
}

impl ParentListener {
    pub(super) fn hear(&self, change: &Change, origin: Option<&Origin>) {
        let Some(object) = change.new.as_ref().or(change.old.as_ref()) else { return };
        let ours =
            origin.is_some_and(|origin| origin.controller == self.number && origin.parent == object.key);
        if ours || (self.ignore_status && only_status_changed(change)) {
            return;
        }
        self.queue.add(object.key.clone());
    }
}

/// Which parents adopt an orphan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    BySelector,
    ByUid,
    /// None.
    Left,
}

/// Finds the parents that a change of a child concerns.
pub(super) struct ChildListener {
    pub waiting: Arc<Waiting>,
    pub stated: Arc<Waiting>,
    pub number: u64,
    pub parents: Weak<Kind>,
    pub gvk: Gvk,
    pub namespaced: bool,
    pub queue: Arc<Queue>,
    pub orphans: Orphans,
    pub selectors: Arc<Selectors>,
}

impl ChildListener {
    pub(super) fn hear(&self, change: &Change, origin: Option<&Origin>) {
        let Some(parents) = self.parents.upgrade() else { return };
        if let Some(name) = freed(change) {
            self.waiting.take(name).into_iter().for_each(|parent| self.queue.add(parent));
        }
        self.wake_stating(change, origin);
        let mut told: Option<Key> = None;
        for object in [&change.old, &change.new].into_iter().flatten() {
            match self.owner(&parents, object) {
                Some(key) if told.as_ref() != Some(&key) => {
                    told = Some(key.clone());
                    self.wake(key, origin);
                }
                Some(_) => {}
                None if object.controller.is_none() && change.new.is_some() => {
                    self.wake_selecting(&parents, object, origin)
                }
                None => {}
            }
        }
    }

    /// What a parent states of somebody else's object is applied when the object comes, and brought back.
    fn wake_stating(&self, change: &Change, origin: Option<&Origin>) {
        let Some(object) = change.new.as_ref() else { return };
        for parent in self.stated.take(&object.key) {
            if origin.is_some_and(|origin| origin.controller == self.number && origin.parent == parent) {
                self.stated.add(&object.key, &parent);
            } else {
                self.queue.add(parent);
            }
        }
    }

    fn wake(&self, key: Key, origin: Option<&Origin>) {
        if origin.is_none_or(|origin| origin.controller != self.number || origin.parent != key) {
            self.queue.add(key);
        }
    }

    fn owner(&self, parents: &Kind, object: &Object) -> Option<Key> {
        let owner = object.controller.as_ref()?;
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        if group != self.gvk.group || *owner.kind != *self.gvk.kind {
            return None;
        }
        let namespace = if self.namespaced { object.key.namespace.clone() } else { String::new() };
        let key = Key::new(namespace, &*owner.name);
        // One that follows an owner of its name may have waited for the name of this object.
        parents.get(&key).map(|_| key)
    }

    /// An orphan concerns every parent that would adopt it.
    fn wake_selecting(&self, parents: &Kind, orphan: &Object, origin: Option<&Origin>) {
        if orphan.labels.is_empty() || orphan.deleting || self.orphans == Orphans::Left {
            return;
        }
        if self.orphans == Orphans::ByUid {
            let Some(uid) = orphan.labels.label(CONTROLLER_UID) else { return };
            for parent in parents.all().iter().filter(|parent| *parent.uid == *uid) {
                self.wake(parent.key.clone(), origin);
            }
            return;
        }
        let namespace = if self.namespaced { &*orphan.key.namespace } else { "" };
        for parent in self.selectors.picking(parents, namespace, &orphan.labels) {
            self.wake(parent, origin);
        }
    }
}

/// The name of an object that is gone, or belongs to somebody else than before.
fn freed(change: &Change) -> Option<&Key> {
    let old = change.old.as_ref()?;
    let still = change.new.as_ref().is_some_and(|new| new.uid == old.uid && new.controller == old.controller);
    (!still).then_some(&old.key)
}

/// Whether an update left alone everything that `ignoreStatusChanges` still looks at.
fn only_status_changed(change: &Change) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return false };
    if new.deleting != old.deleting || new.generation != old.generation || new.labels != old.labels {
        return false;
    }
    let (mut old, mut new) = (old.parsed(), new.parsed());
    if old.pointer("/metadata/annotations") != new.pointer("/metadata/annotations") {
        return false;
    }
    // Kinds without a generation do not tell their content's changes by it.
    if new.pointer("/metadata/generation").is_some() {
        return true;
    }
    for body in [&mut old, &mut new] {
        if let Some(fields) = body.as_object_mut() {
            fields.shift_remove("metadata");
            fields.shift_remove("status");
        }
    }
    old == new
}
