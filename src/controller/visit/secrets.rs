//! Which Secrets a visit has in hand, so that whatever it says is said without their values.
//!
//! They are only named here, and read when something is said: a quiet visit says nothing.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::cluster::kind::Resource;
use crate::cluster::object::Object;
use crate::hook::wire::answer::DesiredChild;
use crate::mask::scope;
use crate::object::name::Gvk;

/// Objects of this kind, which the hook is shown.
pub(super) fn know_seen(resource: &Resource, objects: &[Arc<Object>]) {
    if !is_secret(&resource.gvk) {
        return;
    }
    for object in objects.iter().filter(|object| object.body.is_some()) {
        let object = object.clone();
        scope::know(move || object.parsed());
    }
}

/// Children that the hook wants.
pub(super) fn know_wanted(children: &[DesiredChild]) {
    for DesiredChild { object, .. } in children.iter().filter(|child| is_wanted_secret(&child.object)) {
        let object = object.clone();
        scope::know(move || Value::Object(object));
    }
}

/// Whether a text holds a value of a Secret that the visit has in hand.
pub(super) fn is_secret_text(text: &str) -> bool {
    matches!(scope::spoken(text), Cow::Owned(_))
}

fn is_secret(gvk: &Gvk) -> bool {
    gvk.group_kind() == ("", "Secret")
}

fn is_wanted_secret(object: &Map<String, Value>) -> bool {
    object.get("kind").is_some_and(|kind| kind == "Secret")
}
