//! Reads what was posted: a request of the protocol, v1 or v2, composite or decorator, or a parent alone, JSON or YAML.

mod posted;
pub(in crate::hook::local) mod review;

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::hook::local::Given;
use crate::hook::local::request::review::Conversion;
use crate::hook::wire::Call;
use crate::mask::{Secrets, Veil, Words};
use crate::problem::{Place, Problem, nearest};
use crate::template::{Context, yaml};

/// The fields of a request. `now` and `entropy` are ours: they make a request repeatable.
const FIELDS: [&str; 9] =
    ["controller", "parent", "object", "children", "attachments", "related", "finalizing", "now", "entropy"];

/// How places call what was posted.
pub(super) const FILE: &str = "body";

/// A request, ready to be rendered.
pub(super) struct Request {
    pub context: Context,
    pub shape: Shape,
    /// It was made of an object that stands alone, of which it is not known whether a decorator would ask about it.
    pub alone: bool,
}

/// What of the request decides the answer's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub call: Call,
    pub asker: Asker,
    /// Whether the parent is to be finalized.
    pub finalizing: bool,
    /// Where a child without a namespace goes; empty for a cluster-scoped parent.
    pub namespace: String,
    /// What `convert` is to make.
    pub conversion: Option<Conversion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Composite,
    Decorator,
}

type Family = BTreeMap<String, BTreeMap<String, Value>>;

/// Whether a body is JSON by its looks: its declared type says nothing, as curl declares every body a form.
pub(crate) fn looks_like_json(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'{')
}

impl Request {
    /// Missing parts of the body are taken as empty, `now` and `entropy` as given beside it.
    pub(super) fn read(call: Call, body: &[u8], given: Given) -> Result<Request, Problem> {
        if call.is_review() {
            return review::read(call, body, given);
        }
        Request::of(call, parse(body)?, given, Asker::Composite)
    }

    /// The same, with an object that stands alone taken for one that a decorator asks about.
    pub(super) fn read_as_decorators(call: Call, body: &[u8], given: Given) -> Result<Request, Problem> {
        Request::of(call, parse(body)?, given, Asker::Decorator)
    }

    fn of(call: Call, body: Map<String, Value>, given: Given, usual: Asker) -> Result<Request, Problem> {
        let alone = is_alone(&body);
        let mut fields = whole(body, usual)?;
        let asker = if fields.contains_key("object") { Asker::Decorator } else { Asker::Composite };
        let (parent_field, children_field) = match asker {
            Asker::Composite => ("parent", "children"),
            Asker::Decorator => ("object", "attachments"),
        };
        let parent = parent(&mut fields, parent_field)?;
        let namespace = text_at(&parent, &["metadata", "namespace"]).unwrap_or_default().to_string();
        let now = time(&mut fields)?.unwrap_or(given.now);
        let entropy = seed(&mut fields)?.unwrap_or(given.entropy);
        let mut context = Context::new(now, entropy);
        let children = fields.swap_remove(children_field);
        if asker == Asker::Decorator {
            context.set("object", parent.clone());
            set_family(&mut context, "attachments", children.clone(), children_field, &namespace)?;
        }
        set_family(&mut context, "children", children, children_field, &namespace)?;
        set_family(&mut context, "related", fields.swap_remove("related"), "related", &namespace)?;
        let finalizing = finalizing(&mut fields, call)?;
        context.set("finalizing", Value::Bool(finalizing));
        context.set("now", Value::String(now.to_string()));
        context.set("parent", parent);
        if let Some(controller) = fields.swap_remove("controller") {
            context.set("controller", controller);
        }
        let finalizing = finalizing || call == Call::Finalize;
        let shape = Shape { call, asker, finalizing, namespace, conversion: None };
        Ok(Request { context, shape, alone })
    }
}

/// The body as one map.
fn parse(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let wanted = "a request or a parent object, as JSON or YAML";
    let text = std::str::from_utf8(body).map_err(|error| {
        Problem::new(format!("the body is not UTF-8 text: byte {} is none", error.valid_up_to()))
            .expected(wanted)
    })?;
    let value = if looks_like_json(body) {
        // What is no JSON may still be a flow mapping of YAML.
        serde_json::from_str(text)
            .or_else(|error| parse_yaml(text).map_err(|_| json_problem(text, &error)))?
    } else {
        parse_yaml(text).map_err(|problem| posted::mangled(text, problem))?
    };
    match value {
        Value::Object(map) => Ok(map),
        Value::Null if text.trim() == "null" => Err(Problem::new("the body is `null`").expected(wanted)),
        Value::Null => Err(Problem::new("the body is empty").expected(wanted)),
        other => Err(Problem::new("the body is no request").found(kind_of(&other)).expected(wanted)),
    }
}

/// Hides the values of the Secrets in a body. One that cannot be read shows nothing of itself but its lines.
pub(super) fn veil(body: &[u8]) -> Veil {
    let kind = b"Secret";
    let mentioned = body.windows(kind.len()).any(|part| part == kind);
    let fields = mentioned.then(|| parse(body).ok()).flatten();
    let secrets = fields.map(|fields| Secrets::of(&Value::Object(fields))).unwrap_or_default();
    Veil::new(&secrets, Words::Told)
}

fn parse_yaml(text: &str) -> Result<Value, Problem> {
    let mut documents = yaml::read(FILE, text)?;
    match documents.len() {
        0 => Ok(Value::Null),
        1 => Ok(documents.remove(0).value),
        many => Err(Problem::new(format!("the body holds {many} documents")).expected("one")),
    }
}

fn json_problem(text: &str, error: &serde_json::Error) -> Problem {
    let whole = error.to_string();
    let message = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(message, _)| message);
    let place = Place { file: FILE.into(), line: error.line(), column: error.column().max(1) };
    Problem::new(format!("the body is no JSON: {message}")).at(place).with_source(text, 1)
}

fn is_alone(fields: &Map<String, Value>) -> bool {
    let has = |key: &str| fields.contains_key(key);
    !has("parent") && !has("object") && has("apiVersion") && has("kind")
}

/// Makes a request of a parent that stands alone.
fn whole(fields: Map<String, Value>, usual: Asker) -> Result<Map<String, Value>, Problem> {
    if fields.contains_key("parent") || fields.contains_key("object") {
        check_names(&fields, &FIELDS)?;
        return Ok(fields);
    }
    if is_alone(&fields) {
        if let Some(problem) = posted::review(&fields) {
            return Err(problem);
        }
        if let Some(name) = beside(&fields) {
            return Err(Problem::new(format!(
                "`{name}` stands beside the parent's own fields, where it is one of them"
            ))
            .hint(format!("put the parent below `parent:`, and `{name}:` beside that")));
        }
        let field = if usual == Asker::Decorator { "object" } else { "parent" };
        return Ok(Map::from_iter([(field.to_string(), Value::Object(fields))]));
    }
    let found: Vec<String> = fields.keys().take(8).map(|key| format!("`{key}`")).collect();
    let expected = "a parent (`apiVersion`, `kind`, …) or a request (`parent`, `children`, …)";
    Err(Problem::new("the body is neither a parent nor a request")
        .found(if found.is_empty() { "an empty map".into() } else { found.join(", ") })
        .expected(expected))
}

/// A field of a request beside the fields of a parent that stands alone: it holds objects, which no field of a parent's own
/// by that name does.
fn beside(parent: &Map<String, Value>) -> Option<&'static str> {
    let is_object = |value: &Value| value.get("kind").is_some() && value.get("metadata").is_some();
    ["children", "attachments", "related"].into_iter().find(|name| match parent.get(*name) {
        Some(Value::Array(objects)) => objects.iter().any(is_object),
        Some(Value::Object(groups)) => {
            groups.values().filter_map(Value::as_object).flat_map(Map::values).any(is_object)
        }
        _ => false,
    })
}

/// Refuses a misspelt field. Others pass: a newer controller may send more than we know.
fn check_names(fields: &Map<String, Value>, known: &[&str]) -> Result<(), Problem> {
    for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
        if let Some(near) = nearest(key, known.iter().copied()) {
            return Err(Problem::new(format!("unknown request field `{key}`"))
                .hint(format!("did you mean `{near}`?")));
        }
    }
    Ok(())
}

fn parent(fields: &mut Map<String, Value>, name: &str) -> Result<Value, Problem> {
    match fields.swap_remove(name) {
        Some(parent @ Value::Object(_)) => Ok(parent),
        other => Err(wrong_type(name, "an object", &other.unwrap_or_default())),
    }
}

fn time(fields: &mut Map<String, Value>) -> Result<Option<Timestamp>, Problem> {
    let expected = "a time such as `2026-11-30T17:00:00Z`";
    match fields.swap_remove("now") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Timestamp::from_str(&text)
            .map(Some)
            .map_err(|_| Problem::new("`now` is no time").found(format!("`{text}`")).expected(expected)),
        Some(other) => Err(wrong_type("now", expected, &other)),
    }
}

/// Any text seeds the randomness of a render, so that a fixture can hold a readable one.
fn seed(fields: &mut Map<String, Value>) -> Result<Option<[u8; 32]>, Problem> {
    match fields.swap_remove("entropy") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(Sha256::digest(text).into())),
        Some(other) => Err(wrong_type("entropy", "a text", &other)),
    }
}

fn finalizing(fields: &mut Map<String, Value>, call: Call) -> Result<bool, Problem> {
    match fields.swap_remove("finalizing") {
        None | Some(Value::Null) => Ok(call == Call::Finalize),
        Some(Value::Bool(finalizing)) => Ok(finalizing),
        Some(other) => Err(wrong_type("finalizing", "`true` or `false`", &other)),
    }
}

/// Observed objects: grouped as the protocol groups them, which names every declared kind, or as a fixture's plain list.
fn set_family(
    context: &mut Context,
    name: &str,
    given: Option<Value>,
    field: &str,
    namespace: &str,
) -> Result<(), Problem> {
    match given {
        None | Some(Value::Null) => context.set_partial_family(name, Family::new()),
        Some(Value::Array(objects)) => context.set_partial_family(name, grouped(field, objects, namespace)?),
        Some(Value::Object(groups)) => context.set_family(name, groups_of(field, groups)?),
        Some(other) => {
            return Err(wrong_type(field, "objects by kind and name, or a list of objects", &other));
        }
    }
    Ok(())
}

fn groups_of(field: &str, groups: Map<String, Value>) -> Result<Family, Problem> {
    groups.into_iter().map(|(kind, group)| Ok((kind.clone(), group_of(field, &kind, group)?))).collect()
}

fn group_of(name: &str, kind: &str, group: Value) -> Result<BTreeMap<String, Value>, Problem> {
    let path = format!("{name}[\"{kind}\"]");
    let Value::Object(objects) = group else {
        return Err(wrong_type(&path, "objects by name", &group));
    };
    match objects.iter().find(|(_, object)| !object.is_object()) {
        Some((key, object)) => Err(wrong_type(&format!("{path}[\"{key}\"]"), "an object", object)),
        None => Ok(objects.into_iter().collect()),
    }
}

fn grouped(name: &str, objects: Vec<Value>, namespace: &str) -> Result<Family, Problem> {
    let mut family = Family::new();
    for (index, object) in objects.into_iter().enumerate() {
        let path = format!("{name}[{index}]");
        let field = |way: &[&str]| {
            let missing = || Problem::new(format!("`{path}` has no `{}`", way.join(".")));
            text_at(&object, way).filter(|text| !text.is_empty()).ok_or_else(missing)
        };
        let kind = format!("{}.{}", field(&["kind"])?, field(&["apiVersion"])?);
        let own = text_at(&object, &["metadata", "namespace"]).unwrap_or(namespace);
        let key = match field(&["metadata", "name"])? {
            bare if own == namespace => bare.to_string(),
            bare => format!("{own}/{bare}"),
        };
        if family.entry(kind.clone()).or_default().insert(key.clone(), object).is_some() {
            return Err(Problem::new(format!("`{path}` repeats `{kind}` `{key}`")));
        }
    }
    Ok(family)
}

pub(in crate::hook) fn text_at<'a>(value: &'a Value, way: &[&str]) -> Option<&'a str> {
    way.iter().try_fold(value, |value, key| value.get(key))?.as_str()
}

fn wrong_type(path: &str, expected: &str, found: &Value) -> Problem {
    Problem::new(format!("`{path}` is of the wrong type")).found(kind_of(found)).expected(expected)
}

/// What a value is, without showing it.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
