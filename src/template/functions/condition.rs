//! Status conditions with the bookkeeping that Kubernetes expects of them.

use jiff::Timestamp;
use minijinja::value::{Value, ValueKind};
use minijinja::{Error, State};

use crate::template::fault::Fault;
use crate::template::functions::arguments::{Arguments, Builtin, Shape, quoted};
use crate::template::render::inputs;
use crate::template::value::kind;

pub(super) const BUILTINS: [Builtin; 2] = [
    Builtin {
        name: "condition",
        parameters: &["type", "status", "reason", "message", "previous"],
        shape: Shape::Fixed,
        call: condition,
    },
    Builtin {
        name: "merge_conditions",
        parameters: &["conditions", "previous"],
        shape: Shape::Fixed,
        call: merge_conditions,
    },
];

/// The API machinery's bounds for `reason` and `message`; a longer message is cut, since an error's text can be any length.
const LONGEST_REASON: usize = 1024;
const LONGEST_MESSAGE: usize = 32_768;

fn condition(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let name = type_of(arguments)?;
    let status = status_of(arguments)?;
    let reason = reason_of(arguments)?;
    let message = arguments.optional_text("message", "text")?.unwrap_or("");
    let previous = previous(state, arguments)?;
    let now = whole_second(inputs(state)?.now).to_string();
    let since = previous.iter().find(|condition| field(condition, "type").as_str() == Some(name));
    let since = since.filter(|condition| field(condition, "status").as_str() == Some(status));
    let since = since.map(|condition| field(condition, "lastTransitionTime"));
    let since = since.filter(|time| time.as_str().is_some_and(|time| !time.is_empty()));
    let mut made = vec![
        ("type", Value::from(name)),
        ("status", status.into()),
        ("reason", reason.into()),
        ("message", message.chars().take(LONGEST_MESSAGE).collect::<String>().into()),
        ("lastTransitionTime", since.unwrap_or_else(|| now.into())),
    ];
    let generation = field(&field(&parent(state), "metadata"), "generation");
    if generation.is_integer() {
        made.push(("observedGeneration", generation));
    }
    Ok(Value::from_pairs(made))
}

fn type_of(arguments: &Arguments) -> Result<&str, Fault> {
    const EXPECTED: &str = "a condition type such as `Ready`";
    let name = arguments.text("type", EXPECTED)?;
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let good = outer(name.chars().next())
        && outer(name.chars().last())
        && name.chars().all(inner)
        && name.len() <= 316;
    if good { Ok(name) } else { Err(arguments.refuse("type").found(quoted(name)).expected(EXPECTED)) }
}

/// A boolean is as good as the text that Kubernetes wants.
fn status_of(arguments: &Arguments) -> Result<&'static str, Fault> {
    const EXPECTED: &str = "`True`, `False` or `Unknown`";
    let value = arguments.required("status", EXPECTED)?;
    let text = match value.kind() {
        ValueKind::Bool if value.is_true() => "True",
        ValueKind::Bool => "False",
        _ => arguments.text("status", EXPECTED)?,
    };
    let known = ["True", "False", "Unknown"];
    known.into_iter().find(|status| *status == text).ok_or_else(|| {
        let fault = arguments.refuse("status").found(quoted(text)).expected(EXPECTED);
        match known.into_iter().find(|status| status.eq_ignore_ascii_case(text)) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault,
        }
    })
}

fn reason_of(arguments: &Arguments) -> Result<&str, Fault> {
    const EXPECTED: &str = "a reason in CamelCase such as `WaitingForReplicas`";
    let reason = arguments.text("reason", EXPECTED)?;
    let begins = reason.starts_with(|c: char| c.is_ascii_uppercase());
    let ends = reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let inner = reason.chars().all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c));
    if begins && ends && inner && reason.len() <= LONGEST_REASON {
        return Ok(reason);
    }
    Err(arguments.refuse("reason").found(quoted(reason)).expected(EXPECTED))
}

/// Replaces the conditions of the same types in the previous list, keeps the others, adds the new ones at the end.
fn merge_conditions(state: &mut State, arguments: &Arguments) -> Result<Value, Error> {
    let given = arguments.required("conditions", A_LIST)?;
    let mut new = list(arguments, "conditions", given)?;
    if let Some(bad) = new.iter().find(|condition| field(condition, "type").as_str().is_none()) {
        return Err(arguments
            .refuse("conditions")
            .found(format!("{} without a `type` in the list", kind(bad)))
            .expected(A_LIST)
            .into());
    }
    state.consume_fuel(new.len() as u64)?;
    let mut merged = Vec::new();
    for old in previous(state, arguments)? {
        let same = new.iter().position(|condition| field(condition, "type") == field(&old, "type"));
        merged.push(same.map_or(old, |index| new.remove(index)));
    }
    merged.extend(new);
    Ok(merged.into())
}

const A_LIST: &str = "a list of conditions";

/// The list in `previous`, or the parent's, which may not exist yet.
fn previous(state: &State, arguments: &Arguments) -> Result<Vec<Value>, Error> {
    if let Some(given) = arguments.optional("previous") {
        return Ok(list(arguments, "previous", given)?);
    }
    let conditions = field(&field(&parent(state), "status"), "conditions");
    Ok(items(&conditions).unwrap_or_default())
}

fn list(arguments: &Arguments, name: &str, value: &Value) -> Result<Vec<Value>, Fault> {
    items(value).ok_or_else(|| arguments.refuse(name).found(kind(value)).expected(A_LIST))
}

fn items(value: &Value) -> Option<Vec<Value>> {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
        .then(|| value.try_iter().ok().map(Iterator::collect))?
}

fn parent(state: &State) -> Value {
    state.lookup("parent").unwrap_or_default()
}

/// A field that may be missing at any depth.
fn field(value: &Value, name: &str) -> Value {
    match value.kind() {
        ValueKind::Map => value.get_attr(name).unwrap_or_default(),
        _ => Value::UNDEFINED,
    }
}

/// `lastTransitionTime` has no fraction in the API.
fn whole_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
