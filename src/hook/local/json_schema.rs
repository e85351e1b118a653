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
            "object": parent,
            "children": seen("The parent's children as they are."),
            "attachments": seen("A decorator's attachments as they are."),
            "related": seen("What the customize hook asked for."),
            "finalizing": optional("boolean", "Whether the parent is being cleaned up after; true for finalize when absent."),
            "now": {
                "type": ["string", "null"], "format": "date-time",
                "description": "The time that templates see; 2026-01-01T00:00:00Z when absent.",
            },
            "entropy": optional("string", "Any text; it seeds `random_string`."),
        },
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
    json!({
        "$schema": DIALECT,
        "title": "Answer of a case",
        "description": "The whole answer that the request beside it must get.",
        "type": "object",
        "if": has("relatedResources"),
        "then": strict(Role::Composite, Call::Customize),
        "else": {
            "if": has("attachments"),
            "then": strict(Role::Decorator, Call::Sync),
            "else": strict(Role::Composite, Call::Sync),
        },
        "$defs": schemas,
    })
}

#[cfg(test)]
mod tests;
