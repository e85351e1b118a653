//! From what templates compute with to JSON and to text.
//!
//! The rules: integers are exact in 64 bits, whole floats are written as integers, what JSON cannot hold is refused.
//! In text, true and false are written as YAML writes them; null, maps and lists have no text.

use minijinja::value::{ObjectRepr, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use serde_json::{Map, Value as Json};

use crate::template::data::{Absent, Data};
use crate::template::fault::Fault;
use crate::template::yaml::number;

pub(in crate::template) use crate::template::data::from_json;

/// How deep a value may be nested. JSON that is read is bounded too, so only a template could build more.
pub(in crate::template) const DEEPEST: usize = 128;

/// What a value counts at least where it is written.
const LEAST_BYTES: usize = 8;

/// A template value as JSON of so many bytes at most.
pub(in crate::template) fn to_json(value: &Value, bytes: usize) -> Result<Json, Error> {
    Sink { bytes, texts: &|_| None }.json(value, 0)
}

/// A template value as it is written inside a longer text.
pub(in crate::template) fn to_text(value: &Value) -> Result<String, Fault> {
    match value.kind() {
        ValueKind::String => Ok(value.as_str().unwrap_or_default().to_string()),
        ValueKind::Bool => Ok(value.is_true().to_string()),
        ValueKind::Number => Ok(match numeric(value)? {
            Json::Number(number) => number.to_string(),
            _ => String::new(),
        }),
        ValueKind::None => Err(Fault::new("null cannot be written inside text")
            .hint("where it may be null, write `| default(\"…\", true)`")),
        _ if is_absent(value) => Err(absent(value)),
        _ => Err(Fault::new(format!("{} cannot be written inside text", kind(value)))
            .hint("write it alone, as the whole value, or as JSON with `| to_json`")),
    }
}

/// Refuses what is absent, and what a failed look-up or loop left behind.
pub(in crate::template) fn present(value: &Value) -> Result<(), Error> {
    if let Some(absent) = value.downcast_object_ref::<Absent>() {
        return Err(absent.fault().into());
    }
    match value.kind() {
        // The engine remembers where it comes from, and tells when the error passes by.
        ValueKind::Undefined => Err(undefined(value)),
        ValueKind::Invalid => {
            Err(value.try_iter().err().unwrap_or_else(|| ErrorKind::InvalidOperation.into()))
        }
        _ => Ok(()),
    }
}

/// What is said of an absent value where the engine can no longer tell of it.
fn absent(value: &Value) -> Fault {
    let known = value.downcast_object_ref::<Absent>().map(Absent::fault);
    known.unwrap_or_else(|| Fault::new("a value is absent"))
}

/// The engine's own error for an undefined value, which names the expression.
fn undefined(value: &Value) -> Error {
    value.get_attr("").err().unwrap_or_else(|| ErrorKind::UndefinedError.into())
}

/// Whether the value is absent or undefined.
pub(in crate::template) fn is_absent(value: &Value) -> bool {
    value.is_undefined() || value.downcast_object_ref::<Absent>().is_some()
}

/// What the value is, in the author's words.
pub(in crate::template) fn kind(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Map if is_macro(value) => "a macro",
        _ if is_absent(value) => "nothing",
        kind => name_of(kind),
    }
}

pub(in crate::template) fn name_of(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Undefined => "nothing",
        ValueKind::None => "null",
        ValueKind::Bool => "true or false",
        ValueKind::Number => "a number",
        ValueKind::String => "text",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "a map",
        _ => "a function",
    }
}

pub(in crate::template) fn is_macro(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Macro"))
}

/// Refuses what has no JSON form, before it is put aside: here the place of the expression is still known.
pub(in crate::template) fn writable(value: &Value, depth: usize) -> Result<(), Error> {
    present(value)?;
    match value.kind() {
        ValueKind::Number => numeric(value).map(|_| ()).map_err(Error::from),
        ValueKind::Plain | ValueKind::Bytes => Err(not_data(value).into()),
        ValueKind::Map if is_macro(value) => Err(not_data(value).into()),
        ValueKind::Map | ValueKind::Seq if value.downcast_object_ref::<Data>().is_none() => {
            if depth > DEEPEST {
                return Err(too_deep().into());
            }
            let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
            pairs.into_iter().flatten().try_for_each(|(_, inner)| writable(&inner, depth + 1))
        }
        _ => Ok(()),
    }
}

pub(in crate::template) fn no_key(value: &Value) -> Fault {
    Fault::new(format!("a key cannot be {}", kind(value))).expected("text, a number, true or false")
}

fn not_data(value: &Value) -> Fault {
    let fault = Fault::new(format!("{} is not a value that can be written", kind(value)));
    if value.kind() == ValueKind::Bytes { fault } else { fault.hint("call it: `…()`") }
}

fn numeric(value: &Value) -> Result<Json, Fault> {
    if let Some(integer) = value.as_i64().filter(|_| value.is_integer()) {
        return Ok(Json::from(integer));
    }
    if value.is_integer() {
        return u64::try_from(value.clone())
            .map(Json::from)
            .map_err(|_| Fault::new("this number is beyond 64 bits").hint("keep it as text"));
    }
    match f64::try_from(value.clone()) {
        Ok(float) if float.is_finite() => Ok(number(float)),
        _ => Err(Fault::new("this number is infinite or undefined, which JSON cannot hold")),
    }
}

/// Where JSON goes: counts the bytes that may still be written.
pub(in crate::template) struct Sink<'a> {
    pub bytes: usize,
    /// Captured text as a string, `None` where a text is none.
    pub texts: &'a dyn Fn(&Value) -> Option<Result<String, Fault>>,
}

impl Sink<'_> {
    pub(in crate::template) fn json(&mut self, value: &Value, depth: usize) -> Result<Json, Error> {
        if depth > DEEPEST {
            return Err(too_deep().into());
        }
        if let Some(data) = value.downcast_object_ref::<Data>() {
            return Ok(self.copy(data.json())?);
        }
        self.spend(LEAST_BYTES)?;
        match value.kind() {
            ValueKind::None => Ok(Json::Null),
            ValueKind::Bool => Ok(Json::Bool(value.is_true())),
            ValueKind::Number => Ok(numeric(value)?),
            ValueKind::String => Ok(self.text(value)?),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth),
            ValueKind::Map if !is_macro(value) => self.map(value, depth),
            _ if is_absent(value) => Err(absent(value).into()),
            _ => Err(not_data(value).into()),
        }
    }

    fn text(&mut self, value: &Value) -> Result<Json, Fault> {
        let text = match (self.texts)(value) {
            Some(captured) => captured?,
            None => value.as_str().unwrap_or_default().to_string(),
        };
        self.spend(text.len())?;
        Ok(Json::String(text))
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<Json, Error> {
        let mut items = Vec::new();
        for item in value.try_iter()?.checked() {
            items.push(self.json(&item?, depth + 1)?);
        }
        Ok(Json::Array(items))
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<Json, Error> {
        let mut map = Map::new();
        let object = value.as_object().filter(|object| object.repr() == ObjectRepr::Map);
        for (key, inner) in object.and_then(|object| object.try_iter_pairs()).into_iter().flatten() {
            present(&key)?;
            let key = to_text(&key).map_err(|_| no_key(&key))?;
            self.spend(key.len())?;
            map.insert(key, self.json(&inner, depth + 1)?);
        }
        Ok(Json::Object(map))
    }

    /// JSON that the render was given, with whole floats as integers.
    fn copy(&mut self, json: &Json) -> Result<Json, Fault> {
        self.spend(LEAST_BYTES)?;
        match json {
            Json::Number(given) if given.is_f64() => Ok(given.as_f64().map_or(Json::Null, number)),
            Json::String(text) => self.spend(text.len()).map(|()| json.clone()),
            Json::Array(items) => items.iter().map(|item| self.copy(item)).collect(),
            Json::Object(map) => {
                let pairs = map.iter().map(|(key, inner)| {
                    self.spend(key.len())?;
                    Ok((key.clone(), self.copy(inner)?))
                });
                pairs.collect()
            }
            scalar => Ok(scalar.clone()),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => return Err(too_large()),
        }
        Ok(())
    }
}

pub(in crate::template) fn too_large() -> Fault {
    Fault::new("the render went over its budget of output")
}

pub(in crate::template) fn too_deep() -> Fault {
    Fault::new(format!("this value is nested deeper than {DEEPEST} levels"))
}
