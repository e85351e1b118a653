//! Reads the request of a call that judges or changes one object: `validate`, `default`, `convert`.

use serde_json::{Map, Value};

use crate::hook::local::Given;
use crate::hook::local::request::{
    Asker, Request, Shape, check_names, kind_of, parse, seed, time, wrong_type,
};
use crate::hook::wire::Call;
use crate::problem::Problem;
use crate::template::Context;

/// The fields of a request to judge an object. `now` and `entropy` are ours: they make a request repeatable.
const ADMISSION: [&str; 7] = ["object", "old", "operation", "dry_run", "user", "now", "entropy"];
const CONVERSION: [&str; 5] = ["object", "from", "to", "now", "entropy"];
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// What is converted, and to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hook::local) struct Conversion {
    pub object: Map<String, Value>,
    /// `db.example.com/v1`
    pub api_version: String,
}

pub(super) fn read(call: Call, body: &[u8], given: Given) -> Result<Request, Problem> {
    let known: &[&str] = if call == Call::Convert { &CONVERSION } else { &ADMISSION };
    let mut fields = whole(parse(body)?, known)?;
    let now = time(&mut fields)?.unwrap_or(given.now);
    let entropy = seed(&mut fields)?.unwrap_or(given.entropy);
    let mut context = Context::new(now, entropy);
    context.set("now", Value::String(now.to_string()));
    let object = fields.swap_remove("object").unwrap_or_default();
    let conversion = if call == Call::Convert {
        Some(conversion(&mut fields, &object, &mut context)?)
    } else {
        admission(&mut fields, &object, &mut context)?;
        None
    };
    context.set("object", object);
    let shape =
        Shape { call, asker: Asker::Composite, finalizing: false, namespace: String::new(), conversion };
    Ok(Request { context, shape, alone: false })
}

/// Makes a request of an object that stands alone.
fn whole(fields: Map<String, Value>, known: &[&str]) -> Result<Map<String, Value>, Problem> {
    if fields.contains_key("object") {
        check_names(&fields, known)?;
        return Ok(fields);
    }
    if fields.contains_key("apiVersion") && fields.contains_key("kind") {
        return Ok(Map::from_iter([("object".to_string(), Value::Object(fields))]));
    }
    Err(Problem::new("the body is neither an object nor a request")
        .expected(format!("an object (`apiVersion`, `kind`, …) or a request (`object`, `{}`, …)", known[1])))
}

fn admission(fields: &mut Map<String, Value>, object: &Value, context: &mut Context) -> Result<(), Problem> {
    let old = fields.swap_remove("old").unwrap_or_default();
    let usual = if old.is_null() { "CREATE" } else { "UPDATE" };
    let operation = match fields.swap_remove("operation") {
        None | Some(Value::Null) => usual.to_string(),
        Some(Value::String(text)) if OPERATIONS.contains(&text.as_str()) => text,
        Some(other) => {
            return Err(Problem::new("`operation` is none")
                .found(format!("`{other}`"))
                .expected("`CREATE`, `UPDATE`, `DELETE` or `CONNECT`"));
        }
    };
    for (name, value) in [("object", object), ("old", &old)] {
        let may_lack = name == "old" || operation == "DELETE";
        if !(value.is_object() || (may_lack && value.is_null())) {
            return Err(wrong_type(name, "an object", value));
        }
    }
    let dry_run = match fields.swap_remove("dry_run") {
        None | Some(Value::Null) => Value::Bool(false),
        Some(flag @ Value::Bool(_)) => flag,
        Some(other) => return Err(wrong_type("dry_run", "`true` or `false`", &other)),
    };
    let user = match fields.swap_remove("user") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(user)) => user,
        Some(other) => return Err(wrong_type("user", "a map with `name` and `groups`", &other)),
    };
    let part = |name: &str, absent: Value| user.get(name).cloned().unwrap_or(absent);
    let user = [("name", Value::String(String::new())), ("groups", Value::Array(Vec::new()))]
        .map(|(name, absent)| (name.to_string(), part(name, absent)));
    context.set("user", Value::Object(Map::from_iter(user)));
    context.set("old", old);
    context.set("operation", Value::String(operation));
    context.set("dry_run", dry_run);
    Ok(())
}

fn conversion(
    fields: &mut Map<String, Value>,
    object: &Value,
    context: &mut Context,
) -> Result<Conversion, Problem> {
    let Value::Object(whole) = object else { return Err(wrong_type("object", "an object", object)) };
    let text = |name: &str, value: Option<Value>| match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        other => Err(Problem::new(format!("`{name}` is no version"))
            .found(kind_of(&other.unwrap_or_default()))
            .expected("a version such as `v1beta1`")
            .hint("a conversion is asked for as `{object: …, to: v1beta1}`")),
    };
    let own = text("object.apiVersion", whole.get("apiVersion").cloned())?;
    let (group, version) = match own.rsplit_once('/') {
        Some((group, version)) => (format!("{group}/"), version.to_string()),
        None => (String::new(), own),
    };
    let from = fields.swap_remove("from").filter(|from| !from.is_null());
    let from = text("from", from.or_else(|| Some(Value::String(version.clone()))))?;
    if from != version {
        return Err(Problem::new("`from` is not the version of the object")
            .found(format!("`{from}`"))
            .expected(format!("`{version}`, or no `from`")));
    }
    let to = text("to", fields.swap_remove("to"))?;
    let api_version = format!("{group}{to}");
    context.set("from", Value::String(from));
    context.set("to", Value::String(to));
    Ok(Conversion { object: whole.clone(), api_version })
}
