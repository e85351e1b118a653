//! JSON Schema for files of definitions, made of the CRDs that this program carries, so that an editor says of a file what
//! `config` will say of it.
//!
//! What a schema of the API server can't say it doesn't say either: that one of `url`, `service` and `path` is needed, say.

use serde_json::{Map, Value, json};

use crate::config::API_VERSION;
use crate::config::schema::schema_of;
use crate::config::spec::Role;

/// The dialect of all schemas that are printed.
pub(crate) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// What `config` reads as a list of definitions.
const LISTS: [&str; 3] = ["List", "CompositeControllerList", "DecoratorControllerList"];
/// A duration as Go writes it. JSON Schema's own format `duration` is another one.
const DURATION: &str = "^[+-]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
const SUBDOMAIN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Of one document of `controllers.yaml`.
pub(crate) fn definitions() -> Value {
    let roles = [Role::Composite, Role::Decorator];
    let kinds: Vec<&str> = roles.into_iter().map(Role::kind).chain(LISTS).collect();
    let mut alternatives: Vec<Value> =
        roles.into_iter().map(|role| alternative(&[role.kind()], role.kind())).collect();
    alternatives.push(alternative(&LISTS, "List"));
    let mut schemas: Map<String, Value> =
        roles.into_iter().map(|role| (role.kind().to_string(), definition(role))).collect();
    let items = json!({"type": "array", "items": {"$ref": "#/$defs/definition"}});
    schemas.insert(
        "List".into(),
        json!({"type": "object", "required": ["items"], "properties": {"items": items}}),
    );
    schemas.insert(
        "definition".into(),
        json!({"type": "object", "required": ["kind"], "allOf": alternatives[..2],
        "properties": {"kind": {"enum": kinds[..2]}}}),
    );
    json!({
        "$schema": DIALECT,
        "title": "Definitions of syncwright",
        "description": "One document of a file of CompositeControllers and DecoratorControllers.",
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": kinds}},
        "allOf": alternatives,
        "$defs": schemas,
    })
}

/// An editor shows the problems of the kind that is written, and not that no kind fits.
fn alternative(kinds: &[&str], schema: &str) -> Value {
    let is_it = json!({"required": ["kind"], "properties": {"kind": {"enum": kinds}}});
    json!({"if": is_it, "then": {"$ref": format!("#/$defs/{schema}")}})
}

fn definition(role: Role) -> Value {
    let mut schema = closed(schema_of(role.kind()).expect("the program carries its own CRDs"));
    schema["properties"]["apiVersion"] = json!({"const": API_VERSION});
    schema["properties"]["kind"] = json!({"const": role.kind()});
    schema["properties"]["metadata"] = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 253, "pattern": SUBDOMAIN}},
    });
    schema["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    schema
}

/// A schema of a CRD as JSON Schema: without the API server's extensions, and with no room for unknown fields.
pub(crate) fn closed(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return schema.clone() };
    let mut closed = Map::new();
    for (key, value) in schema.iter().filter(|(key, _)| !key.starts_with("x-kubernetes-")) {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => Value::Object(
                fields.iter().map(|(name, schema)| (name.clone(), self::closed(schema))).collect(),
            ),
            ("items" | "additionalProperties", schema) => self::closed(schema),
            _ => value.clone(),
        };
        closed.insert(key.clone(), value);
    }
    if closed.contains_key("properties") {
        closed.insert("additionalProperties".into(), json!(false));
    }
    if closed.get("type") == Some(&json!("integer")) {
        closed.insert("minimum".into(), json!(i32::MIN));
        closed.insert("maximum".into(), json!(i32::MAX));
    }
    if closed.get("format") == Some(&json!("duration")) {
        closed.remove("format");
        closed.insert("pattern".into(), json!(DURATION));
    }
    // Times are in a status alone, which is the API server's to check.
    if closed.get("format") == Some(&json!("date-time")) {
        closed.remove("format");
    }
    Value::Object(closed)
}

#[cfg(test)]
mod tests;
