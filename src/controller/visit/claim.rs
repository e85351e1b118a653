//! Which live objects are a parent's children: owned ones that match, and orphans that it adopts.
//!
//! The rules are those of Kubernetes' own controllers: an owned object that no longer matches is let go,
//! a matching one without a controller is adopted, and another controller's object is never touched.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::kind::{Kind, Resource, State};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::config::spec::Role;
use crate::controller::room::Room;
use crate::object::owner::OwnerRef;
use crate::object::selector::Selector;
use crate::plan::Claim;

/// The children of one declared kind.
pub(crate) struct Family {
    /// Index of the rule in the definition.
    pub rule: usize,
    pub resource: Arc<Resource>,
    pub members: Vec<Arc<Object>>,
}

/// A declared kind that cannot be looked at.
#[derive(Clone, Debug)]
pub(crate) enum Missing {
    /// The API server does not have it: there are no such children.
    Absent(String),
    /// It may have some.
    Unknown(String),
}

impl Missing {
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Missing::Unknown(_))
    }
}

/// What is there, by declared kind.
pub(crate) struct Claimed {
    pub families: Vec<Family>,
    pub missing: Vec<(usize, Missing)>,
}

impl Claimed {
    pub(crate) fn family(&self, rule: usize) -> Option<&Family> {
        self.families.iter().find(|family| family.rule == rule)
    }
}

/// The families that can be seen without writing anything.
pub(crate) fn families(room: &Room, parent: &Object, selector: &Selector) -> Claimed {
    let mut claimed = Claimed { families: Vec::new(), missing: Vec::new() };
    for (rule, child) in room.children.iter().enumerate() {
        match child.hold.kind.state() {
            State::Live(resource) => {
                let members = owned(room, &child.hold.kind, parent)
                    .into_iter()
                    .filter(|object| selector.matches(&object.labels) && is_of_decorator(room, object));
                claimed.families.push(Family { rule, resource, members: members.collect() });
            }
            State::Absent(message) => claimed.missing.push((rule, Missing::Absent(message))),
            State::Failing(message) => claimed.missing.push((rule, Missing::Unknown(message))),
            State::Starting => {
                let message = format!("{} is being listed", child.hold.kind.plural);
                claimed.missing.push((rule, Missing::Unknown(message)));
            }
        }
    }
    claimed
}

/// Adopts and releases until ownership is what the selector says.
pub(crate) async fn settle(
    room: &Room,
    writer: &Writer<'_>,
    parent: &Object,
    selector: &Selector,
) -> Result<(), Error> {
    // A decorator takes nobody else's objects, and lets none of its own go.
    if parent.deleting || room.role() == Role::Decorator {
        return Ok(());
    }
    let claimant = Claimant { room, writer, parent, selector };
    for child in &room.children {
        if let Some(resource) = child.hold.kind.live()
            && !claimant.settle(&child.hold.kind, &resource).await?
        {
            break;
        }
    }
    Ok(())
}

/// Whether a decorator's own annotation is on the object, where a decorator asks. Of one that is being read anew it is
/// not known yet.
pub(super) fn is_of_decorator(room: &Room, object: &Object) -> bool {
    if room.role() == Role::Composite || object.body.is_none() {
        return true;
    }
    let annotations = object.parsed().pointer("/metadata/annotations").cloned().unwrap_or_default();
    annotations[Claim::DECORATOR] == room.definition.name.as_str()
}

fn adoptable(orphan: &Object, selector: &Selector) -> bool {
    !orphan.deleting && selector.matches(&orphan.labels)
}

fn owned(room: &Room, kind: &Kind, parent: &Object) -> Vec<Arc<Object>> {
    let mut owned = kind.controlled_by(&parent.uid);
    if room.parent_resource.namespaced {
        owned.retain(|object| object.key.namespace == parent.key.namespace);
    }
    owned
}

/// A parent that looks for its own.
struct Claimant<'a> {
    room: &'a Room,
    writer: &'a Writer<'a>,
    parent: &'a Object,
    selector: &'a Selector,
}

impl Claimant<'_> {
    /// Brings the ownership of one kind's objects in order. `false`: the parent is gone.
    async fn settle(&self, kind: &Kind, resource: &Resource) -> Result<bool, Error> {
        let without_us = |owners: &mut Vec<Value>| owners.retain(|owner| owner["uid"] != *self.parent.uid);
        for object in owned(self.room, kind, self.parent) {
            if !self.selector.matches(&object.labels) {
                self.change_owners(kind, resource, &object, without_us).await?;
            }
        }
        let orphans = kind.orphans(&self.parent.key.namespace);
        let wanted: Vec<Arc<Object>> =
            orphans.into_iter().filter(|orphan| adoptable(orphan, self.selector)).collect();
        if !wanted.is_empty() && !self.still_alive().await? {
            return Ok(false);
        }
        let gvk = &self.room.parent_resource.gvk;
        let us = OwnerRef::to_controller(gvk, &self.parent.key.name, &self.parent.uid).to_json();
        for orphan in wanted {
            let with_us = |owners: &mut Vec<Value>| {
                without_us(owners);
                owners.push(us.clone());
            };
            self.change_owners(kind, resource, &orphan, with_us).await?;
        }
        Ok(true)
    }

    /// A stale cache must not adopt for a parent that is gone: ask once before the first adoption.
    async fn still_alive(&self) -> Result<bool, Error> {
        let (room, parent) = (self.room, self.parent);
        let live = self.writer.read(&room.parents, &room.parent_resource, &parent.key).await?;
        Ok(live.is_some_and(|live| live.uid == parent.uid && !live.deleting))
    }

    /// Rewrites the owner references. One that has changed meanwhile ends the visit, and the next one looks again.
    async fn change_owners(
        &self,
        kind: &Kind,
        resource: &Resource,
        object: &Object,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Result<(), Error> {
        let body = match &object.body {
            Some(_) => object.parsed(),
            // Kept without its body, since it was nobody's: its owner references are read past the cache.
            None => match self.writer.read(kind, resource, &object.key).await? {
                Some(live) if live.uid == object.uid && live.version == object.version => live.parsed(),
                _ => return Ok(()),
            },
        };
        let mut owners =
            body.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
        change(&mut owners);
        let owners = json!({ "ownerReferences": owners });
        match self.writer.patch_metadata(kind, resource, object, owners).await {
            Err(error) if error.is(404) => Ok(()),
            outcome => outcome,
        }
    }
}
