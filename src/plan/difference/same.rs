//! When two values count as the same.

use serde_json::{Number, Value};

use crate::object::quantity::Quantity;

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Equal scalars; a whole number equals the integer.
pub(super) fn same_scalar(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Object(_) | Value::Array(_), _) => false,
        (left, right) => left == right,
    }
}

fn same_number(left: &Number, right: &Number) -> bool {
    left == right || ((left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64())
}

pub(super) fn same_amount(left: &Value, right: &Value) -> bool {
    match (Quantity::from_json(left), Quantity::from_json(right)) {
        (Some(left), Some(right)) => left == right,
        _ => false,
    }
}
