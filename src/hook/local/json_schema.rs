//! JSON Schema for the files of a case: what `request` reads, and what a template answers.
//!
//! A file that fits is read. The reverse holds for known fields: others may be sent by newer controllers, and belong in no file.

use serde_json::{Map, Value, json};

use crate::config::json_schema::DIALECT;
use crate::config::spec::{Decoding, Role};
use crate::hook::wire::Call;
use crate::hook::wire::json_schema::{answer, parts};

/// Of `<call>.request.yaml`: a parent alone, or a request.
pub(crate) fn case_request() -> Value {
    let is_request = json!({"anyOf": [{"required": ["parent"]}, {"required": ["object"]}]});
    json!({
        "$schema": DIALECT,
        "title": "Request of a case",
        "description": "A parent alone, or a request with `parent` (for a decorator `object`) and what else the hook is to see.",
        "type": "object",
        "if": is_request,
        "then": request(),
        "else": parent_alone(),
    })
}

fn parent_alone() -> Value {
    let known =
        json!({"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}});
    json!({"required": ["apiVersion", "kind"], "properties": known})
}

fn request() -> Value {
    let parent = json!({"type": "object", "description": "The object that the hook is asked about."});
    let seen = |description: &str| {
        json!({
            "description": format!("{description} A list of objects, or `<Kind>.<apiVersion>`, then name, then object."),
            "type": ["array", "object", "null"],
            "items": observed(),
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "object"}},
        })
    };
    let optional =
        |kind: &str, description: &str| json!({"type": [kind, "null"], "description": description});
    json!({
        "properties": {
            "controller": {"description": "The definition, as `controller` in templates."},
            "parent": parent,
            "object": {
                "type": ["object", "null"],
                "description": "The object that the hook is asked about; null where one was deleted.",
            },
            "children": seen("The parent's children as they are."),
            "attachments": seen("A decorator's attachments as they are."),
            "related": seen("What the customize hook asked for."),
            "finalizing": optional("boolean", "Whether the parent is being cleaned up after; true for finalize when absent."),
            "now": {
                "type": ["string", "null"], "format": "date-time",
                "description": "The time that templates see; 2026-01-01T00:00:00Z when absent.",
            },
            "entropy": optional("string", "Any text; it seeds `random_string`."),
            "old": optional("object", "validate, default: the object before an update."),
            "operation": {
                "enum": ["CREATE", "UPDATE", "DELETE", "CONNECT", null],
                "description": "validate, default: without it, CREATE, or UPDATE where there is an `old`.",
            },
            "dry_run": optional("boolean", "validate, default: nothing is kept of the object."),
            "user": {
                "description": "validate, default: who asks.",
                "type": ["object", "null"],
                "properties": {
                    "name": {"type": "string"},
                    "groups": {"type": "array", "items": {"type": "string"}},
                },
            },
            "from": optional("string", "convert: the version of the object."),
            "to": {"type": "string", "description": "convert: the version that is asked for."},
        },
        "if": {"properties": {"object": {"type": "null"}}, "required": ["object"]},
        "then": {"properties": {"operation": {"const": "DELETE"}}, "required": ["operation"]},
        "additionalProperties": false,
    })
}

/// An element of a list of live objects.
fn observed() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let metadata = json!({"type": "object", "required": ["name"], "properties": {"name": text}});
    json!({
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {"apiVersion": text, "kind": text, "metadata": metadata},
    })
}

/// Of `<call>.response.yaml`: the whole answer of a composite's or a decorator's hook.
pub(crate) fn case_response() -> Value {
    let strict = |role, call| answer(role, call, Decoding::Strict);
    let has = |field: &str| json!({"required": [field]});
    let schemas: Map<String, Value> = parts().into_iter().collect();
    let choices = [
        ("relatedResources", strict(Role::Composite, Call::Customize)),
        ("attachments", strict(Role::Decorator, Call::Sync)),
        ("errors", judgement()),
        ("defaults", sealed(json!({"defaults": {"type": "object"}}))),
        ("apiVersion", json!({"required": ["apiVersion", "kind"]})),
    ];
    let otherwise = strict(Role::Composite, Call::Sync);
    let chosen = choices
        .into_iter()
        .rfold(otherwise, |rest, (field, schema)| json!({"if": has(field), "then": schema, "else": rest}));
    json!({
        "$schema": DIALECT,
        "title": "Answer of a case",
        "description": "The whole answer that the request beside it must get.",
        "type": "object",
        "allOf": [chosen],
        "$defs": schemas,
    })
}

/// Of `validate`.
fn judgement() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let error = sealed(json!({"field": text, "message": text}));
    let list = |items: Value| json!({"type": "array", "items": items});
    sealed(json!({"errors": list(error), "warnings": list(json!({"type": "string"}))}))
}

/// A map with exactly these fields.
fn sealed(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

#[cfg(test)]
mod tests;
