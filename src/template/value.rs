//! Between JSON and the values that templates compute with.

use minijinja::Error;
use minijinja::value::{Serde, Value};
use serde_json::Value as Json;

use crate::template::fault::Fault;

/// JSON as a template value. `name` is how messages call it when a field of it is absent.
pub(in crate::template) fn from_json(json: Json, _name: &str) -> Value {
    Value::from(Serde(json))
}

/// A template value as JSON: integers exact, whole floats as integers; refuses what JSON cannot hold.
pub(in crate::template) fn to_json(value: &Value) -> Result<Json, Error> {
    serde_json::to_value(value).map_err(|_| Fault::new("this value has no JSON form").into())
}
