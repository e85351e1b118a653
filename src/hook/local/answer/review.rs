//! The answers of calls that judge or change one object: `validate`, `default`, `convert`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::hook::local::answer::{
    Response, check_texts, problem, rendered_nothing, unknown_field, wrong_type,
};
use crate::hook::local::request::Shape;
use crate::hook::local::request::review::Conversion;
use crate::hook::origin::Origin;
use crate::hook::wire::Call;
use crate::problem::Problem;
use crate::template::Document;

/// The fields of the documents, each with its origin.
type Given = BTreeMap<String, (Value, Origin)>;

/// Makes the answer. A `validate` or `default` that renders nothing finds nothing to say.
pub(super) fn assemble(documents: Vec<Document>, shape: &Shape, file: &str) -> Result<Response, Problem> {
    if documents.is_empty() && shape.call == Call::Convert {
        return Err(rendered_nothing(shape, file));
    }
    let given = given(documents)?;
    let fields = match &shape.conversion {
        Some(conversion) => converted(conversion, &given)?,
        None if shape.call == Call::Default => defaults(&given)?,
        None => judgement(&given)?,
    };
    let origins = given.into_iter().map(|(name, (_, origin))| (name, origin)).collect();
    Ok(Response {
        call: shape.call,
        children_field: shape.children_field(),
        children: Vec::new(),
        fields,
        origins,
    })
}

fn given(documents: Vec<Document>) -> Result<Given, Problem> {
    let mut given = Given::new();
    for mut document in documents {
        let value = document.value.take();
        let whole = Origin::new(Arc::new(document));
        let Value::Object(fields) = value else {
            return Err(wrong_type(&whole, &[], &value, "a map of fields"));
        };
        for (name, value) in fields {
            let origin = whole.below(&name);
            if let Some((_, earlier)) = given.get(&name) {
                return Err(problem(&origin, &[], format!("`{name}` is there twice"))
                    .found(format!("it is also at {}", earlier.place_of(&[]))));
            }
            given.insert(name, (value, origin));
        }
    }
    Ok(given)
}

fn only(given: &Given, known: &[&str]) -> Result<(), Problem> {
    match given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, (_, origin))) => Err(unknown_field(name, origin, known)),
        None => Ok(()),
    }
}

/// Of `validate`: both lists, whether they were written or not.
fn judgement(given: &Given) -> Result<Map<String, Value>, Problem> {
    only(given, &["errors", "warnings"])?;
    let list = |name: &str, check: fn(&Value, &Origin) -> Result<(), Problem>| {
        let (value, origin) = match given.get(name) {
            None | Some((Value::Null, _)) => return Ok(json!([])),
            Some(given) => given,
        };
        let Value::Array(items) = value else { return Err(wrong_type(origin, &[], value, "a list")) };
        for (index, item) in items.iter().enumerate() {
            check(item, &origin.below(index.to_string()))?;
        }
        Ok(value.clone())
    };
    let errors = list("errors", error)?;
    let warnings = list("warnings", warning)?;
    Ok(Map::from_iter([("errors".into(), errors), ("warnings".into(), warnings)]))
}

fn error(error: &Value, origin: &Origin) -> Result<(), Problem> {
    let Value::Object(fields) = error else {
        return Err(wrong_type(origin, &[], error, "a map with `field` and `message`"));
    };
    if let Some(name) = fields.keys().find(|name| !["field", "message"].contains(&name.as_str())) {
        return Err(unknown_field(name, &origin.below(name), &["field", "message"]));
    }
    for name in ["field", "message"] {
        match fields.get(name) {
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(Value::String(_)) => {
                return Err(problem(origin, &[name], format!("`{name}` of an error is empty")));
            }
            Some(other) => return Err(wrong_type(origin, &[name], other, "a text")),
            None => {
                return Err(problem(origin, &[], format!("an error has no `{name}`"))
                    .hint("write `{field: spec.replicas, message: \"…\"}`"));
            }
        }
    }
    Ok(())
}

fn warning(warning: &Value, origin: &Origin) -> Result<(), Problem> {
    if warning.is_string() { Ok(()) } else { Err(wrong_type(origin, &[], warning, "a text")) }
}

/// What `default` may fill in of an object beside its marks is whatever its kind calls its own.
const NOT_FILLED: [&str; 3] = ["apiVersion", "kind", "status"];

fn defaults(given: &Given) -> Result<Map<String, Value>, Problem> {
    only(given, &["defaults"])?;
    let defaults = match given.get("defaults") {
        None | Some((Value::Null, _)) => json!({}),
        Some((Value::Object(defaults), origin)) => {
            if let Some(name) = NOT_FILLED.iter().find(|name| defaults.contains_key(**name)) {
                return Err(problem(origin, &[name], format!("`{name}` has no defaults"))
                    .expected("fields such as `spec`, labels or annotations"));
            }
            if let Some(metadata) = defaults.get("metadata") {
                check_marks(metadata, &origin.below("metadata"), None)?;
            }
            Value::Object(defaults.clone())
        }
        Some((other, origin)) => return Err(wrong_type(origin, &[], other, "a map")),
    };
    Ok(Map::from_iter([("defaults".into(), defaults)]))
}

/// Of `convert`: the whole object. A field that is not answered stays as it was; one that is null goes.
fn converted(conversion: &Conversion, given: &Given) -> Result<Map<String, Value>, Problem> {
    let mut object = conversion.object.clone();
    object.insert("apiVersion".into(), Value::String(conversion.api_version.clone()));
    for (name, (value, origin)) in given {
        match name.as_str() {
            "apiVersion" | "kind" => same(name, &object[name], value, origin)?,
            "metadata" => {
                check_marks(value, origin, object.get("metadata"))?;
                merge_marks(&mut object, value);
            }
            _ if value.is_null() => drop(object.shift_remove(name)),
            _ => drop(object.insert(name.clone(), value.clone())),
        }
    }
    Ok(object)
}

fn same(name: &str, expected: &Value, found: &Value, origin: &Origin) -> Result<(), Problem> {
    if expected == found {
        return Ok(());
    }
    Err(problem(origin, &[], format!("`{name}` cannot be changed"))
        .found(format!("`{}`", found.as_str().map_or_else(|| found.to_string(), str::to_string)))
        .expected(format!("`{}`, or no `{name}`", expected.as_str().unwrap_or_default())))
}

/// Labels and annotations alone may differ: the API server refuses any other change of the metadata.
fn check_marks(metadata: &Value, origin: &Origin, live: Option<&Value>) -> Result<(), Problem> {
    let Value::Object(fields) = metadata else { return Err(wrong_type(origin, &[], metadata, "a map")) };
    for (name, value) in fields {
        match name.as_str() {
            "labels" | "annotations" => check_texts(value, &origin.below(name))?,
            _ if live.and_then(|live| live.get(name)) == Some(value) => {}
            _ => {
                return Err(problem(origin, &[name], format!("`metadata.{name}` cannot be changed"))
                    .expected("`labels` or `annotations`"));
            }
        }
    }
    Ok(())
}

fn merge_marks(object: &mut Map<String, Value>, metadata: &Value) {
    let own = object.entry("metadata").or_insert_with(|| json!({}));
    for name in ["labels", "annotations"] {
        let Some(Value::Object(marks)) = metadata.get(name) else { continue };
        if !own[name].is_object() {
            own[name] = json!({});
        }
        let kept = own[name].as_object_mut().expect("made a map above");
        for (key, value) in marks {
            match value {
                Value::Null => drop(kept.shift_remove(key)),
                _ => drop(kept.insert(key.clone(), value.clone())),
            }
        }
        if kept.is_empty() {
            own.as_object_mut().expect("metadata is a map").shift_remove(name);
        }
    }
}
