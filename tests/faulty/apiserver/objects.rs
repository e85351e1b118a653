//! The objects of the fake API server: versions, server-side apply, preconditions, finalizers, and what happened when.
//!
//! As much of Kubernetes as a controller can tell: `managedFields` with plausible `fieldsV1`, a status subresource that
//! the main resource never touches, writes that change nothing and so make no version.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A kind that the server has.
#[derive(Clone, Debug)]
pub struct Kind {
    pub api_version: String,
    pub kind: String,
    /// Unique among all kinds here: it stands for the kind.
    pub plural: String,
    pub has_status: bool,
}

/// Where an object lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub plural: String,
    pub namespace: String,
    pub name: String,
}

/// In the one namespace of these tests.
pub fn place(plural: &str, name: &str) -> Place {
    Place { plural: plural.into(), namespace: "shop".into(), name: name.into() }
}

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub struct Event {
    pub version: u64,
    pub plural: String,
    pub sort: &'static str,
    pub object: Value,
}

/// Why a request was not done.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
}

impl Refusal {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, reason, message: message.into() }
    }

    pub fn status(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": self.code, "reason": self.reason, "message": self.message,
            "details": {"causes": self.causes()},
        })
    }

    /// `… is invalid: FIELD: WHY` as a cause.
    fn causes(&self) -> Vec<Value> {
        let invalid = self.message.split_once(" is invalid: ").and_then(|(_, cause)| cause.split_once(": "));
        let cause = |(field, why): (&str, &str)| json!({"reason": "FieldValueInvalid", "field": field, "message": why});
        invalid.map(cause).into_iter().collect()
    }
}

/// Everything that is stored.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub version: u64,
    pub kinds: Vec<Kind>,
    pub objects: BTreeMap<Place, Value>,
    pub history: Vec<Event>,
    /// Watches cannot go on from a version before this one.
    pub forgotten: u64,
    uids: u64,
}

impl Objects {
    pub fn kind(&self, plural: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.plural == plural)
    }

    pub fn of_kind(&self, plural: &str) -> Vec<&Value> {
        let first = Place { plural: plural.into(), namespace: String::new(), name: String::new() };
        let places = self.objects.range(first..).take_while(|(place, _)| place.plural == plural);
        places.map(|(_, object)| object).collect()
    }

    pub fn find(&self, plural: &str, name: &str) -> Option<&Value> {
        self.objects.get(&place(plural, name))
    }

    pub fn beginning_with(&self, plural: &str, beginning: &str) -> Vec<&Value> {
        let places = self.objects.range(place(plural, beginning)..);
        let same = |at: &Place| at.plural == plural && at.name.starts_with(beginning);
        places.take_while(|(at, _)| same(at)).map(|(_, object)| object).collect()
    }

    /// Server-side apply of the object itself, or of its status.
    pub fn apply(
        &mut self,
        place: &Place,
        subresource: &str,
        manager: &str,
        body: &Value,
    ) -> Result<Value, Refusal> {
        let live = self.objects.get(place).cloned();
        let wanted_uid = body.pointer("/metadata/uid");
        let live_uid = live.as_ref().map(|live| &live["metadata"]["uid"]);
        if subresource == "status" && live.is_none() {
            return Err(not_found(place));
        }
        if wanted_uid.is_some() && wanted_uid != live_uid {
            let message = format!("Operation cannot be fulfilled on {}: uid mismatch", place.name);
            return Err(Refusal::new(409, "Conflict", message));
        }
        let manager = Manager { name: manager, api_version: &body["apiVersion"], subresource };
        let body = relevant(body, subresource);
        if let Some(mut object) = live {
            merge_owned(&mut object, &body, &manager);
            return Ok(self.store(place, object));
        }
        let mut object = json!({"metadata": {}});
        merge_owned(&mut object, &body, &manager);
        Ok(self.insert(place, object))
    }

    /// Puts in a new object as it is, as if someone had created it.
    pub fn insert(&mut self, place: &Place, mut object: Value) -> Value {
        let kind = self.kind(&place.plural).expect("a kind of this server").clone();
        self.uids += 1;
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(place.name);
        if !place.namespace.is_empty() {
            metadata["namespace"] = json!(place.namespace);
        }
        metadata["uid"] = json!(format!("uid-{}", self.uids));
        metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        if kind.has_status {
            metadata["generation"] = json!(1);
        }
        self.happened(place, "ADDED", object)
    }

    /// Stores an object that exists, if anything about it is new.
    pub fn store(&mut self, place: &Place, mut object: Value) -> Value {
        let before = &self.objects[place];
        if *before == object {
            return object;
        }
        if spec(before) != spec(&object)
            && let Some(generation) = before["metadata"]["generation"].as_i64()
        {
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let ends = object["metadata"].get("deletionTimestamp").is_some();
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if ends && !held {
            return self.happened(place, "DELETED", object);
        }
        self.happened(place, "MODIFIED", object)
    }

    /// A JSON patch of whole fields, guarded by the version in it.
    pub fn patch(&mut self, place: &Place, steps: &[Value]) -> Result<Value, Refusal> {
        let mut object = self.objects.get(place).cloned().ok_or_else(|| not_found(place))?;
        for step in steps {
            let path = step["path"].as_str().expect("a path");
            if path == "/metadata/resourceVersion" && step["value"] != object["metadata"]["resourceVersion"] {
                return Err(Refusal::new(409, "Conflict", "the object has been modified"));
            }
            let (above, field) = path.rsplit_once('/').expect("a path of fields");
            let above = object.pointer_mut(above).and_then(Value::as_object_mut).expect("the object has it");
            let field = field.replace("~1", "/");
            match step.get("value") {
                Some(value) => above.insert(field, value.clone()),
                None => above.shift_remove(&field),
            };
        }
        Ok(self.store(place, object))
    }

    /// A whole object in the place of the one with its uid and version. What the server sets itself stays.
    pub fn replace(&mut self, place: &Place, mut object: Value) -> Result<Value, Refusal> {
        let guards = json!({"metadata": {
            "uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"],
        }});
        object["metadata"] = self.merge(place, &guards)?["metadata"].clone();
        Ok(self.store(place, object))
    }

    /// A merge patch, guarded by the uid and the version in it.
    pub fn merge(&mut self, place: &Place, patch: &Value) -> Result<Value, Refusal> {
        let live = self.objects.get(place).ok_or_else(|| not_found(place))?;
        for guard in ["uid", "resourceVersion"] {
            let wanted = patch["metadata"].get(guard);
            if wanted.is_some() && wanted != live["metadata"].get(guard) {
                let message = format!(
                    "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the latest version and try again",
                    place.name
                );
                return Err(Refusal::new(409, "Conflict", message));
            }
        }
        let mut object = live.clone();
        merge_patch(&mut object, patch);
        Ok(self.store(place, object))
    }

    /// Deletes an object, or marks it where a finalizer holds it.
    pub fn delete(&mut self, place: &Place, uid: Option<&Value>) -> Result<Value, Refusal> {
        let mut object = self.objects.get(place).cloned().ok_or_else(|| not_found(place))?;
        if uid.is_some_and(|uid| *uid != object["metadata"]["uid"]) {
            let message = "Precondition failed: UID in precondition is not the object's";
            return Err(Refusal::new(409, "Conflict", message));
        }
        if object["metadata"]["finalizers"].as_array().is_none_or(|list| list.is_empty()) {
            self.happened(place, "DELETED", object);
            return Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}));
        }
        if object["metadata"].get("deletionTimestamp").is_none() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:01Z");
            if let Some(generation) = object["metadata"]["generation"].as_i64() {
                object["metadata"]["generation"] = json!(generation + 1);
            }
            object = self.happened(place, "MODIFIED", object);
        }
        Ok(object)
    }

    /// What the garbage collector does: objects whose controller is gone go too.
    pub fn collect_garbage(&mut self) {
        let uids: Vec<Value> =
            self.objects.values().map(|object| object["metadata"]["uid"].clone()).collect();
        let lost = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| {
                !owners.is_empty() && !owners.iter().any(|owner| uids.contains(&owner["uid"]))
            })
        };
        let lost: Vec<Place> =
            self.objects.iter().filter(|(_, object)| lost(object)).map(|(place, _)| place.clone()).collect();
        for place in lost {
            self.delete(&place, None).expect("it was there");
        }
    }

    fn happened(&mut self, place: &Place, sort: &'static str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if sort == "DELETED" {
            self.objects.remove(place);
        } else {
            self.objects.insert(place.clone(), object.clone());
        }
        self.history.push(Event {
            version: self.version,
            plural: place.plural.clone(),
            sort,
            object: object.clone(),
        });
        object
    }
}

pub fn not_found(place: &Place) -> Refusal {
    Refusal::new(404, "NotFound", format!("{} \"{}\" not found", place.plural, place.name))
}

/// What counts for the generation.
fn spec(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().expect("an object is a map").iter();
    fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status")).collect()
}

/// The part of an applied body that the resource or subresource takes.
fn relevant(body: &Value, subresource: &str) -> Value {
    let mut body = body.clone();
    let fields = body.as_object_mut().expect("a body is a map");
    fields.retain(|name, _| match subresource {
        "status" => name == "status",
        _ => !matches!(name.as_str(), "status" | "apiVersion" | "kind"),
    });
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| {
            matches!(name.as_str(), "labels" | "annotations" | "ownerReferences" | "finalizers")
        });
    }
    body
}

/// Who applies.
struct Manager<'a> {
    name: &'a str,
    api_version: &'a Value,
    subresource: &'a str,
}

/// Takes in what a manager applies, drops what it has applied before and does no longer, and notes what it owns.
fn merge_owned(object: &mut Value, body: &Value, manager: &Manager) {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let ours = |entry: &Value| {
        let subresource = entry["subresource"].as_str().unwrap_or_default();
        entry["manager"] == manager.name && subresource == manager.subresource
    };
    let before =
        entries.iter().find(|entry| ours(entry)).map_or(Value::Null, |entry| entry["fieldsV1"].clone());
    let now = fields(body);
    drop_fields(object, &before, &now);
    merge(object, body);
    entries.retain(|entry| !ours(entry));
    let mut entry = json!({
        "manager": manager.name, "operation": "Apply", "apiVersion": manager.api_version,
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": now,
    });
    if !manager.subresource.is_empty() {
        entry["subresource"] = json!(manager.subresource);
    }
    entries.push(entry);
    object["metadata"]["managedFields"] = json!(entries);
}

/// The `fieldsV1` of a value: maps by field, lists as a whole but for owners.
fn fields(value: &Value) -> Value {
    let mut owned = Map::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let below = match (name.as_str(), value) {
            ("ownerReferences", Value::Array(owners)) => owners
                .iter()
                .map(|owner| (format!("k:{{\"uid\":{}}}", owner["uid"]), json!({})))
                .collect::<Map<_, _>>()
                .into(),
            _ => fields(value),
        };
        owned.insert(format!("f:{name}"), below);
    }
    owned.into()
}

fn drop_fields(object: &mut Value, before: &Value, now: &Value) {
    for (field, below) in before.as_object().into_iter().flatten() {
        let Some(name) = field.strip_prefix("f:") else { continue };
        match now.get(field) {
            Some(still) => {
                if let Some(inner) = object.get_mut(name) {
                    drop_fields(inner, below, still);
                }
            }
            None => {
                if let Some(map) = object.as_object_mut() {
                    map.shift_remove(name);
                }
            }
        }
    }
}

fn merge(object: &mut Value, body: &Value) {
    match (object, body) {
        (Value::Object(object), Value::Object(body)) => {
            for (name, value) in body {
                merge(object.entry(name).or_insert(Value::Null), value);
            }
        }
        (object, body) => *object = body.clone(),
    }
}

fn merge_patch(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    object.shift_remove(name);
                } else {
                    merge_patch(object.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (object, patch) => *object = patch.clone(),
    }
}
