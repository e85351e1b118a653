//! Makes a parent that shows a fault as small as it can be and still show it.

use serde_json::{Value, json};

use crate::author::properties::Found;
use crate::author::properties::judge::Judge;

/// More steps than this are not worth a person's waiting.
const STEPS: usize = 400;

/// The smallest parent that is found to show the same fault.
pub(super) fn smallest(judge: &Judge, found: Found) -> Found {
    let mut smallest = found;
    let mut steps = 0;
    loop {
        let before = steps;
        for smaller in smaller(&smallest.parent) {
            steps += 1;
            if steps > STEPS {
                return smallest;
            }
            let Some(parent) = judge.allowed(smaller).filter(|parent| *parent != smallest.parent) else {
                continue;
            };
            if size(&parent) >= size(&smallest.parent) {
                continue;
            }
            if let Err(other) = judge.fault(&parent)
                && is_same(&other, &smallest)
            {
                smallest = *other;
                break;
            }
        }
        if steps - before >= smaller(&smallest.parent).len() {
            return smallest;
        }
    }
}

/// The same place, or the same words where there is no place.
fn is_same(one: &Found, other: &Found) -> bool {
    let place = |found: &Found| found.problem.place.clone();
    match (place(one), place(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            let words =
                |found: &Found| found.problem.message.rsplit("`: ").next().unwrap_or_default().to_string();
            words(one) == words(other)
        }
        _ => false,
    }
}

/// Shorter is smaller; of two that are equally long, the one that comes first is, so that nothing goes in circles.
fn size(value: &Value) -> (usize, String) {
    let text = value.to_string();
    (text.len(), text)
}

/// The parent with one thing left out or made plain, in every way; the largest steps first.
fn smaller(parent: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for field in ["status", "spec"] {
        if parent.get(field).is_some() {
            let mut without = parent.clone();
            without.as_object_mut().expect("a parent is a map").shift_remove(field);
            all.push(without);
        }
    }
    let mut plain = parent.clone();
    plain["metadata"]["name"] = json!("a");
    all.push(plain);
    for inner in variants(&parent["spec"]) {
        let mut other = parent.clone();
        other["spec"] = inner;
        all.push(other);
    }
    all
}

fn variants(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(fields) => {
            let mut all = Vec::new();
            for key in fields.keys() {
                let mut without = fields.clone();
                without.shift_remove(key);
                all.push(Value::Object(without));
            }
            for (key, inner) in fields {
                for variant in variants(inner) {
                    let mut other = fields.clone();
                    other.insert(key.clone(), variant);
                    all.push(Value::Object(other));
                }
            }
            all
        }
        Value::Array(items) => {
            let mut all = Vec::new();
            for index in 0..items.len() {
                let mut without = items.clone();
                without.remove(index);
                all.push(Value::Array(without));
            }
            for (index, item) in items.iter().enumerate() {
                for variant in variants(item) {
                    let mut other = items.clone();
                    other[index] = variant;
                    all.push(Value::Array(other));
                }
            }
            all
        }
        Value::String(text) if text.chars().count() > 1 => {
            let half: String = text.chars().take(text.chars().count() / 2).collect();
            vec![json!(""), json!("a"), json!(half)]
        }
        Value::Number(number) if number.as_f64() != Some(0.0) => vec![json!(0), json!(1)],
        _ => Vec::new(),
    }
}
