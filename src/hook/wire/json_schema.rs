//! JSON Schema for the messages of the hook protocol: each call of each version, request and answer.
//!
//! Stands beside the code that writes requests and reads answers; the tests hold the two together, both ways.

use serde_json::{Map, Value, json};

use crate::config::json_schema::DIALECT;
use crate::config::spec::{Decoding, HookVersion, Role};
use crate::hook::wire::Call;
use crate::hook::wire::answer::{RULE_FIELDS, known_fields, list_of};

/// One sort of message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub role: Role,
    pub version: HookVersion,
    pub call: Call,
    pub side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Answer,
}

impl Message {
    fn all() -> impl Iterator<Item = Message> {
        let roles = [Role::Composite, Role::Decorator].into_iter();
        roles.flat_map(|role| {
            [Call::Sync, Call::Finalize, Call::Customize].into_iter().flat_map(move |call| {
                [HookVersion::V1, HookVersion::V2].into_iter().flat_map(move |version| {
                    [Side::Request, Side::Answer].map(|side| Message { role, version, call, side })
                })
            })
        })
    }

    /// `composite-sync-v1-request`
    pub(crate) fn name(self) -> String {
        let role = match self.role {
            Role::Composite => "composite",
            Role::Decorator => "decorator",
        };
        let version = match self.version {
            HookVersion::V1 => "v1",
            HookVersion::V2 => "v2",
        };
        let side = match self.side {
            Side::Request => "request",
            Side::Answer => "answer",
        };
        format!("{role}-{}-{version}-{side}", self.call.name())
    }

    fn schema(self) -> Value {
        match (self.side, self.call) {
            (Side::Answer, _) => answer(self.role, self.call, usual_decoding(self.version)),
            (Side::Request, Call::Customize) => customize_request(self.role),
            (Side::Request, call) => request(self.role, call, self.version),
        }
    }
}

/// As `responseUnMarshallMode` has it when it is absent.
fn usual_decoding(version: HookVersion) -> Decoding {
    match version {
        HookVersion::V1 => Decoding::Loose,
        HookVersion::V2 => Decoding::Strict,
    }
}

/// All messages in one document, each under its name in `$defs`.
pub(crate) fn messages() -> Value {
    let names = || Message::all().map(Message::name);
    let references: Vec<Value> = names().map(|name| json!({"$ref": format!("#/$defs/{name}")})).collect();
    let mut schemas: Map<String, Value> =
        Message::all().map(|message| (message.name(), message.schema())).collect();
    schemas.extend(parts());
    json!({
        "$schema": DIALECT,
        "title": "Messages of the hook protocol",
        "description": "A request is posted as JSON; the answer is JSON under the status 200. Each message is under its name in `$defs`.",
        "anyOf": references,
        "$defs": schemas,
    })
}

/// What the messages have in common, by the names under which they refer to it in `$defs`.
pub(crate) fn parts() -> [(String, Value); 5] {
    [
        ("object".into(), object()),
        ("child".into(), child()),
        ("marks".into(), marks()),
        ("labelSelector".into(), label_selector()),
        ("status".into(), json!({"type": ["object", "null"]})),
    ]
}

fn part(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// Of a sync or finalize request. Nothing in it is ever left out.
fn request(role: Role, call: Call, version: HookVersion) -> Value {
    let (parent, children) = match role {
        Role::Composite => ("parent", "children"),
        Role::Decorator => ("object", "attachments"),
    };
    let mut properties = Map::new();
    properties.insert("controller".into(), controller(role));
    properties.insert(parent.into(), part("object"));
    properties.insert(
        children.into(),
        groups("Objects that belong to the parent, an entry for each declared kind."),
    );
    properties.insert(
        "related".into(),
        groups("What the customize hook asked for, an entry for each of its rules' kinds."),
    );
    properties.insert("finalizing".into(), json!({"const": call == Call::Finalize}));
    let mut schema = sealed(properties);
    if version == HookVersion::V1 {
        let namespaced = json!({"properties": {"metadata": {"required": ["namespace"]}}});
        let bare = json!({"additionalProperties": {"propertyNames": {"not": {"pattern": "/"}}}});
        schema["if"] = json!({"properties": {parent: namespaced}});
        schema["then"] = json!({"properties": {children: bare.clone(), "related": bare}});
        schema["description"] = json!(
            "Objects are named by their bare name, and below a cluster-scoped parent by `namespace/name`."
        );
    } else {
        schema["description"] = json!("Objects in a namespace are named by `namespace/name`.");
    }
    schema
}

/// A decorator's target is called `parent` here.
fn customize_request(role: Role) -> Value {
    sealed(Map::from_iter([("controller".into(), controller(role)), ("parent".into(), part("object"))]))
}

/// A map with exactly these fields.
fn sealed(properties: Map<String, Value>) -> Value {
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn controller(role: Role) -> Value {
    json!({
        "type": "object",
        "description": "The definition that the request is made for.",
        "required": ["apiVersion", "kind", "metadata", "spec", "status"],
        "properties": {
            "apiVersion": {"const": crate::config::API_VERSION},
            "kind": {"const": role.kind()},
            "metadata": {"type": "object", "required": ["name"]},
            "spec": {"type": "object"},
            "status": {"type": "object"},
        },
    })
}

/// A live object.
fn object() -> Value {
    json!({
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}, "uid": {"type": "string"}},
            },
        },
    })
}

/// `{"Pod.v1": {"web-0": …}}`
fn groups(description: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("{description} By `<Kind>.<apiVersion>`, then by name."),
        "propertyNames": {"pattern": "^[^.]+[.].+$"},
        "additionalProperties": {
            "type": "object",
            "propertyNames": {"pattern": "^([^/]+/)?[^/]+$"},
            "additionalProperties": part("object"),
        },
    })
}

/// What a hook of this role may answer. Where unknown fields are let pass, one that must be a misspelt list is refused all the
/// same; a schema can't say that.
pub(crate) fn answer(role: Role, call: Call, decoding: Decoding) -> Value {
    let known = known_fields(role, call);
    let properties: Map<String, Value> =
        known.iter().map(|field| (field.to_string(), field_of(field, role, call))).collect();
    let said: Vec<Value> = known.iter().map(|field| json!({"required": [field]})).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "anyOf": said,
    });
    if known.len() > 1 {
        schema["description"] = json!(format!("Without `{}` none is wanted.", known[0]));
    }
    if decoding == Decoding::Strict {
        schema["additionalProperties"] = json!(false);
    }
    if call == Call::Customize {
        schema["properties"]["relatedResources"]["items"] = related_rule(decoding);
    }
    schema
}

fn field_of(field: &str, role: Role, call: Call) -> Value {
    match field {
        "status" if role == Role::Composite => {
            described("status", "The parent's status; absent or null empties it.")
        }
        "status" => described("status", "The target's status; absent or null leaves it alone."),
        "labels" => described("marks", "Labels of the target to set, or to remove where they are null."),
        "annotations" => {
            described("marks", "Annotations of the target to set, or to remove where they are null.")
        }
        "resyncAfterSeconds" => json!({
            "type": ["number", "null"],
            "description": "When to call the hook again, if nothing else does; not above 0 is never.",
        }),
        "finalized" => json!({
            "type": ["boolean", "null"], "description": "On finalize: nothing is left to do, the parent may go.",
        }),
        "relatedResources" => json!({
            "type": ["array", "null"], "description": "Objects that the sync and finalize hooks want to see.",
        }),
        list => {
            debug_assert_eq!(list, list_of(role));
            // On finalize hooks in Go write an empty list so; else it would delete every child.
            let types = if call == Call::Finalize { json!(["array", "null"]) } else { json!("array") };
            json!({
                "type": types, "items": part("child"),
                "description": "Every object that is to be there, whole; the others of the declared kinds are deleted.",
            })
        }
    }
}

fn described(name: &str, description: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}"), "description": description})
}

/// A wanted object.
fn child() -> Value {
    json!({
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": text(),
            "kind": text(),
            "metadata": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": text(),
                    "namespace": {"type": ["string", "null"], "description": "The parent's when absent."},
                },
            },
        },
    })
}

fn marks() -> Value {
    json!({"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}})
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn related_rule(decoding: Decoding) -> Value {
    let field = |field: &&str| {
        let schema = match *field {
            "apiVersion" => text(),
            "resource" => {
                json!({"type": "string", "minLength": 1, "description": "The plural, such as `secrets`."})
            }
            "names" => json!({"type": ["array", "null"], "items": text()}),
            "namespace" => json!({"type": ["string", "null"], "description": "The empty text is any."}),
            _ => part("labelSelector"),
        };
        (field.to_string(), schema)
    };
    let properties: Map<String, Value> = RULE_FIELDS.iter().map(field).collect();
    let given = |name: &str, schema: Value| json!({"required": [name], "properties": {name: schema}});
    let selector = |name: &str| given(name, json!({"type": "object"}));
    let selects = json!({"anyOf": [selector("labelSelector"), selector("namespaceSelector")]});
    let names = given("names", json!({"type": "array", "minItems": 1}));
    let namespace = given("namespace", text());
    let mut schema = json!({
        "type": "object",
        "description": "Objects by name or by selector; `namespace` or `namespaceSelector`.",
        "required": ["apiVersion", "resource"],
        "properties": properties,
        "allOf": [
            {"not": {"allOf": [names, selects]}},
            {"not": {"allOf": [namespace, selector("namespaceSelector")]}},
        ],
    });
    if decoding == Decoding::Strict {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

/// A LabelSelector as `object::selector` reads it. Null is as good as absent.
fn label_selector() -> Value {
    // The prefix is a DNS subdomain of at most 253 characters, the name has at most 63.
    const KEY: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
    const VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
    let value = json!({"type": "string", "pattern": VALUE});
    let expression = json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {"type": "string", "pattern": KEY},
            "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
            "values": {"type": ["array", "null"], "items": value},
        },
        "additionalProperties": false,
        "if": {"properties": {"operator": {"enum": ["In", "NotIn"]}}},
        "then": {"required": ["values"], "properties": {"values": {"type": "array", "minItems": 1}}},
        "else": {"properties": {"values": {"maxItems": 0}}},
    });
    json!({
        "type": ["object", "null"],
        "description": "Absent or empty is all of them.",
        "properties": {
            "matchLabels": {"type": ["object", "null"], "propertyNames": {"pattern": KEY}, "additionalProperties": value},
            "matchExpressions": {"type": ["array", "null"], "items": expression},
        },
        // Kept as it is read: a field that is null says nothing, whatever it is called.
        "additionalProperties": {"type": "null"},
    })
}

#[cfg(test)]
mod tests;
