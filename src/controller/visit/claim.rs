//! Which live objects are a parent's children: owned ones that match, and orphans that it adopts.
//!
//! The rules are those of Kubernetes' own controllers: an owned object that no longer matches is let go,
//! a matching one without a controller is adopted, and another controller's object is never touched.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::kind::{Resource, State};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::config::spec::Role;
use crate::controller::room::{ChildKind, Room};
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
                let members = owned(room, child, parent)
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
    for child in &room.children {
        let Some(resource) = child.hold.kind.live() else { continue };
        for object in owned(room, child, parent) {
            if !selector.matches(&object.labels) {
                release(writer, child, &resource, &object, parent).await?;
            }
        }
        let orphans = child.hold.kind.orphans(&parent.key.namespace);
        let wanted: Vec<Arc<Object>> =
            orphans.into_iter().filter(|orphan| adoptable(orphan, selector)).collect();
        if !wanted.is_empty() && !still_alive(room, writer, parent).await? {
            return Ok(());
        }
        for orphan in wanted {
            adopt(room, writer, child, &resource, &orphan, parent).await?;
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

fn owned(room: &Room, child: &ChildKind, parent: &Object) -> Vec<Arc<Object>> {
    let mut owned = child.hold.kind.controlled_by(&parent.uid);
    if room.parent_resource.namespaced {
        owned.retain(|object| object.key.namespace == parent.key.namespace);
    }
    owned
}

/// A stale cache must not adopt for a parent that is gone: ask once before the first adoption.
async fn still_alive(room: &Room, writer: &Writer<'_>, parent: &Object) -> Result<bool, Error> {
    let live = writer.read(&room.parents, &room.parent_resource, &parent.key).await?;
    Ok(live.is_some_and(|live| live.uid == parent.uid && !live.deleting))
}

async fn adopt(
    room: &Room,
    writer: &Writer<'_>,
    child: &ChildKind,
    resource: &Resource,
    orphan: &Object,
    parent: &Object,
) -> Result<(), Error> {
    let reference = OwnerRef::to_controller(&room.parent_resource.gvk, &parent.key.name, &parent.uid);
    change_owners(writer, child, resource, orphan, |owners| {
        owners.retain(|owner| owner["uid"] != *parent.uid);
        owners.push(reference.to_json());
    })
    .await
}

async fn release(
    writer: &Writer<'_>,
    child: &ChildKind,
    resource: &Resource,
    object: &Object,
    parent: &Object,
) -> Result<(), Error> {
    change_owners(writer, child, resource, object, |owners| {
        owners.retain(|owner| owner["uid"] != *parent.uid)
    })
    .await
}

/// Rewrites the owner references. One that has changed meanwhile ends the visit, and the next one looks again.
async fn change_owners(
    writer: &Writer<'_>,
    child: &ChildKind,
    resource: &Resource,
    object: &Object,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<(), Error> {
    let body = match &object.body {
        Some(_) => object.parsed(),
        // Kept without its body, since it was nobody's: its owner references are read past the cache.
        None => match writer.read(&child.hold.kind, resource, &object.key).await? {
            Some(live) if live.uid == object.uid && live.version == object.version => live.parsed(),
            _ => return Ok(()),
        },
    };
    let mut owners =
        body.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    change(&mut owners);
    match writer.patch_metadata(&child.hold.kind, resource, object, json!({"ownerReferences": owners})).await
    {
        Err(error) if error.is(404) => Ok(()),
        outcome => outcome,
    }
}
