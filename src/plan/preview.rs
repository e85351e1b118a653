//! What a visit would change, as data: for whoever looks before it happens.

use serde_json::Value;

use crate::object::name::{Gvk, Key};

/// What would become of one parent and what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub gvk: Gvk,
    pub parent: Key,
    pub changes: Vec<Change>,
    /// What would stand in the way.
    pub trouble: Option<Trouble>,
}

/// What a condition would say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub reason: String,
    pub message: String,
}

/// One object that would be another.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub gvk: Gvk,
    pub key: Key,
    pub sort: Sort,
    /// Only its status would be written.
    pub of_status: bool,
    /// As it is; null where it is not there.
    pub before: Value,
    /// As it would be; null where it would not be there.
    pub after: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Create,
    Change,
    /// It would be deleted and made anew; `after` is what is stated of it.
    Recreate,
    Delete,
    /// It would stay as it is, since a field that cannot change is to change; `after` is what is stated of it.
    Immutable,
    /// It would stay as it is: the API server refuses it.
    Refused,
}

impl Outcome {
    /// Whether it could be found out what would happen.
    pub(crate) fn is_known(&self) -> bool {
        let refused = |change: &Change| matches!(change.sort, Sort::Immutable | Sort::Refused);
        self.trouble.is_none() || self.changes.iter().any(refused)
    }
}

/// What differs for no reason of ours whenever an object is written.
const OF_THE_SERVER: [&str; 5] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"];

/// The object without what the server alone writes of it.
pub(crate) fn stated(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        OF_THE_SERVER.iter().for_each(|field| drop(metadata.shift_remove(*field)));
    }
    object
}
