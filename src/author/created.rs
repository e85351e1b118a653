//! An object of a file as the API server would hand it on once it was applied.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::author::check::requests::gvk;
use crate::author::text;
use crate::hook::local::request::looks_like_json;
use crate::hook::wire::Call;
use crate::schema::{Catalog, Kind};
use crate::template::yaml;

/// The object with its kind's defaults and what the API server adds to any, made at `now`.
pub(super) fn created(kind: Option<&Kind>, mut object: Value, now: Timestamp) -> Value {
    if let Some(kind) = kind {
        kind.fill(&mut object);
    }
    let namespaced = kind.is_none_or(|kind| kind.namespaced);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let mut add = |key: &str, value: Value| {
            metadata.entry(key).or_insert(value);
        };
        if namespaced {
            add("namespace", json!("default"));
        }
        add("uid", json!("00000000-0000-4000-8000-000000000000"));
        add("generation", json!(1));
        let second = Timestamp::from_second(now.as_second()).expect("a time without its fraction is one");
        add("creationTimestamp", second.to_string().into());
    }
    object
}

/// The body of a call, its parent as the API server has it where it stands alone and `crd.yaml` beside the hook defines its
/// kind. A request is taken as it is, and so is what a webhook is asked about.
pub(crate) fn alone(hooks: &Path, hook: &str, call: &str, body: Vec<u8>, now: Timestamp) -> Vec<u8> {
    let reviews = [Call::Validate, Call::Default, Call::Convert];
    if reviews.iter().any(|review| review.name() == call) {
        return body;
    }
    completed(&hooks.join(hook).join("crd.yaml"), &body, now).unwrap_or(body)
}

/// `None` where there is nothing to complete, or another part of the program says what is wrong.
fn completed(crd: &Path, body: &[u8], now: Timestamp) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let parent = match looks_like_json(body).then(|| serde_json::from_str(text)) {
        Some(value) => value.ok()?,
        None => one(yaml::read("", text).ok()?.into_iter().map(|document| document.value))?,
    };
    if ["parent", "object"].iter().any(|field| parent.get(*field).is_some()) {
        return None;
    }
    let mut catalog = Catalog::built_in().clone();
    let definitions = yaml::read("", &text::read(crd).ok()?).ok()?;
    definitions.iter().for_each(|definition| drop(catalog.add_crd(&definition.value)));
    let kind = catalog.kind(&gvk(&parent))?;
    let request = Map::from_iter([("parent".to_string(), created(Some(kind), parent, now))]);
    serde_json::to_vec(&request).ok()
}

fn one(mut values: impl Iterator<Item = Value>) -> Option<Value> {
    values.next().filter(|_| values.next().is_none())
}
