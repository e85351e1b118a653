//! The hook protocol as bytes: requests, and answers decoded with the hook's strictness.
//!
//! Knows no transport. A request is put together out of objects that are already JSON text.

pub(crate) mod answer;
pub(crate) mod json_schema;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::config::spec::{HookVersion, Role};
use crate::mask::Veil;
use crate::object::name::Key;
use crate::problem::Problem;

/// What is asked of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    Sync,
    Finalize,
    Customize,
    Validate,
    Default,
    Convert,
}

impl Call {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Call::Sync => "sync",
            Call::Finalize => "finalize",
            Call::Customize => "customize",
            Call::Validate => "validate",
            Call::Default => "default",
            Call::Convert => "convert",
        }
    }

    /// Whether the API server asks, about one object, and not a controller about a parent and its children.
    pub(crate) fn is_review(self) -> bool {
        matches!(self, Call::Validate | Call::Default | Call::Convert)
    }
}

/// Objects by `<Kind>.<apiVersion>`, then by the key that `inner_key` gives. A declared kind has its group even when empty.
pub(crate) type Groups<'a> = BTreeMap<String, BTreeMap<String, &'a RawValue>>;

/// The body of a sync or finalize call.
pub(crate) struct Request<'a> {
    pub role: Role,
    pub controller: &'a RawValue,
    pub parent: &'a RawValue,
    pub children: &'a Groups<'a>,
    pub related: &'a Groups<'a>,
    pub finalizing: bool,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (parent, children) = match self.role {
            Role::Composite => ("parent", "children"),
            Role::Decorator => ("object", "attachments"),
        };
        let mut fields = serializer.serialize_struct("Request", 5)?;
        fields.serialize_field("controller", self.controller)?;
        fields.serialize_field(parent, self.parent)?;
        fields.serialize_field(children, self.children)?;
        fields.serialize_field("related", self.related)?;
        fields.serialize_field("finalizing", &self.finalizing)?;
        fields.end()
    }
}

impl Request<'_> {
    pub(crate) fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.length());
        serde_json::to_writer(&mut body, self).expect("JSON text is written to memory");
        body.into()
    }

    /// Enough for the body, so that it is allocated once.
    fn length(&self) -> usize {
        let groups = [self.children, self.related];
        let objects = groups.iter().flat_map(|groups| groups.values()).flatten();
        let keys: usize = groups.iter().flat_map(|groups| groups.keys()).map(|key| key.len() + 8).sum();
        let objects: usize = objects.map(|(key, object)| key.len() + object.get().len() + 8).sum();
        self.controller.get().len() + self.parent.get().len() + keys + objects + 128
    }
}

/// The body of a customize call.
#[derive(Serialize)]
pub(crate) struct CustomizeRequest<'a> {
    pub controller: &'a RawValue,
    pub parent: &'a RawValue,
}

impl CustomizeRequest<'_> {
    pub(crate) fn body(&self) -> Bytes {
        serde_json::to_vec(self).expect("JSON text is written to memory").into()
    }
}

/// The inner key of an object in a request, or `None` where a v1 hook must not see the object at all.
///
/// A v1 hook of a namespaced parent sees only its own namespace, by bare names.
pub(crate) fn inner_key<'k>(version: HookVersion, parent: &Key, object: &'k Key) -> Option<Cow<'k, str>> {
    if version == HookVersion::V2 || parent.namespace.is_empty() {
        return Some(if object.namespace.is_empty() {
            Cow::Borrowed(&object.name)
        } else {
            Cow::Owned(object.to_string())
        });
    }
    (object.namespace == parent.namespace).then_some(Cow::Borrowed(&object.name))
}

/// Why there is no answer. Nothing is ever deleted after one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// The hook refuses this request, or its answer is no valid answer: asking the same again gives the same.
    ///
    /// A remote hook may be repaired without anything changing in the cluster, so ask again, but slowly.
    Refused(Problem),
    /// No answer came, or the hook's server said that it can't now.
    Unavailable { message: String, retry_after: Option<Duration> },
    /// Something that the hook is reached with is missing: a Secret, say. No failure: who provides it wakes the parents.
    Unready(Problem),
    /// The hook is there and asks for patience (429): no failure, no event. `None` leaves the delay to the backoff.
    Busy { after: Option<Duration> },
}

impl Failure {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Failure::Refused(_) => "refused",
            Failure::Unavailable { .. } => "unavailable",
            Failure::Unready(_) => "unready",
            Failure::Busy { .. } => "busy",
        }
    }

    /// The same without what a veil hides.
    pub(super) fn reworded(self, veil: &Veil) -> Failure {
        let hidden = |text: &str| veil.text(text).into_owned();
        match self {
            Failure::Refused(problem) => Failure::Refused(problem.reworded(hidden)),
            Failure::Unavailable { message, retry_after } => {
                Failure::Unavailable { message: hidden(&message), retry_after }
            }
            other => other,
        }
    }
}

/// As the log and the parent's condition have it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(problem) | Failure::Unready(problem) => problem.fmt(f),
            Failure::Unavailable { message, .. } => f.write_str(message),
            Failure::Busy { .. } => f.write_str("busy"),
        }
    }
}
