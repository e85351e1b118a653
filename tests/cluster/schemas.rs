//! The schemas that the program carries are those of the API server's version: `src/schema/kubernetes.json.gz`.
//!
//! `UPDATE=1 cargo test --test cluster schemas::` writes the file anew from the control plane that the tests run on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use controlplane::ControlPlane;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

/// What of a schema decides whether a value fits. Descriptions are nine tenths of the rest.
const KEPT: [&str; 12] = [
    "$ref",
    "additionalProperties",
    "default",
    "enum",
    "format",
    "items",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
];
/// The names of Kubernetes' own definitions begin so; those of a CRD's kind begin with its group, last part first.
const KUBERNETES: [&str; 4] =
    ["io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator."];
/// Beside the version, the program has to carry no more than this.
const MOST_BYTES: usize = 150 << 10;

#[test]
fn carried_schemas_are_those_of_the_api_server() {
    let plane = ControlPlane::shared();
    let live = reduced(&plane.get("/openapi/v2").expect("the API server tells its schemas"));
    if std::env::var_os("UPDATE").is_some() {
        write(&live);
    }
    let bytes = fs::read(carried()).expect("the file is in the repository");
    assert!(bytes.len() <= MOST_BYTES, "{} bytes", bytes.len());
    let carried: Value = serde_json::from_reader(GzDecoder::new(&bytes[..])).expect("it is compressed JSON");
    if plane.is_existing() && carried["info"]["version"] != live["info"]["version"] {
        return;
    }
    for part in ["info", "paths", "definitions"] {
        let differing = differing(&carried[part], &live[part]);
        assert!(differing.is_empty(), "{part} differ in {differing:?}: run this test with UPDATE=1");
    }
}

fn carried() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema/kubernetes.json.gz")
}

fn write(reduced: &Value) {
    let mut file =
        GzEncoder::new(File::create(carried()).expect("the folder can be written"), Compression::best());
    file.write_all(reduced.to_string().as_bytes()).and_then(|()| file.finish()).expect("it can be written");
}

fn differing<'a>(one: &'a Value, other: &'a Value) -> BTreeSet<&'a str> {
    let keys = |value: &'a Value| value.as_object().into_iter().flat_map(|map| map.keys());
    keys(one).chain(keys(other)).filter(|key| one[*key] != other[*key]).map(String::as_str).collect()
}

/// The document with nothing in it but the kinds that can be created and what their schemas refer to.
fn reduced(openapi: &Value) -> Value {
    let paths = openapi["paths"].as_object().expect("an OpenAPI document has paths");
    let definitions = &openapi["definitions"];
    let kinds: BTreeMap<String, Value> = paths
        .iter()
        .filter_map(|(path, operations)| Some((path.clone(), created_at(path, operations)?)))
        .collect();
    let mut kept = BTreeMap::new();
    for (name, definition) in definitions.as_object().expect("an OpenAPI document has definitions") {
        let own = definition["x-kubernetes-group-version-kind"].as_array();
        let is_kind = own.is_some_and(|own| own.len() == 1 && kinds.values().any(|kind| *kind == own[0]));
        // Other tests' kinds are in the document too, those of `metacontroller.k8s.io` among them.
        if is_kind && KUBERNETES.iter().any(|part| name.starts_with(part)) {
            keep(name, definitions, &mut kept);
        }
    }
    let built_in = |kind: &Value| {
        kept.values().any(|definition: &Value| definition["x-kubernetes-group-version-kind"][0] == *kind)
    };
    let paths: Map<String, Value> = kinds
        .iter()
        .filter(|(_, kind)| built_in(kind))
        .map(|(path, kind)| (path.clone(), json!({"post": {"x-kubernetes-group-version-kind": kind}})))
        .collect();
    let version = openapi["info"]["version"].as_str().unwrap_or_default();
    let minor = version.split('.').take(2).collect::<Vec<_>>().join(".");
    json!({"swagger": "2.0", "info": {"version": minor}, "paths": paths, "definitions": kept})
}

/// The kind that a POST to the path creates, where the path is that of a whole collection.
fn created_at(path: &str, operations: &Value) -> Option<Value> {
    let post = &operations["post"];
    let whole = path.ends_with(|c: char| c.is_ascii_lowercase()) && !path.contains("{name}");
    (whole && post["x-kubernetes-action"] == "post").then(|| post["x-kubernetes-group-version-kind"].clone())
}

fn keep(name: &str, definitions: &Value, kept: &mut BTreeMap<String, Value>) {
    if kept.contains_key(name) {
        return;
    }
    let mut schema = stripped(&definitions[name]);
    if let Some([kind]) = definitions[name]["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) {
        schema["x-kubernetes-group-version-kind"] = json!([kind]);
    }
    let mut named = Vec::new();
    references(&schema, &mut named);
    kept.insert(name.to_owned(), schema);
    named.iter().for_each(|name| keep(name, definitions, kept));
}

fn stripped(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let part = |(key, value): (&String, &Value)| {
        let value = match key.as_str() {
            "properties" => value
                .as_object()
                .expect("properties have names")
                .iter()
                .map(|(name, schema)| (name.clone(), stripped(schema)))
                .collect(),
            "items" | "additionalProperties" => stripped(value),
            _ => value.clone(),
        };
        (key.clone(), value)
    };
    fields.iter().filter(|(key, _)| KEPT.contains(&key.as_str())).map(part).collect()
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found.extend(name.strip_prefix("#/definitions/").map(str::to_owned));
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
