//! Odd values that a schema allows: the ends of ranges, empty and missing parts, long names, texts that other languages
//! would read as their own.
//!
//! What is made is meant to be allowed, and mostly is; whoever uses it asks the schema once more.

use serde_json::{Map, Value, json};

use crate::author::parents::dice::Dice;
use crate::author::parents::example::{ITEMS, least, lengthened};
use crate::author::parents::{example, pattern};

/// Texts that break what is careless with them.
const TEXTS: [&str; 22] = [
    "a",
    "",
    "x-1",
    "A B",
    "no",
    "null",
    "1e3",
    "012",
    "-",
    "- a",
    "a: b",
    "#",
    "{{ x }}",
    "{% if %}",
    "'\"",
    "\\",
    "$(HOME)",
    "two\nlines",
    " padded ",
    "é",
    "/a//b/",
    "100%",
];

/// Names that Kubernetes takes for an object.
const NAMES: [&str; 5] = ["a", "shop", "1st", "with-dashes-in-it", "with.a.dot"];

/// Keys of maps.
const KEYS: [&str; 5] = ["a", "KEY_1", "some.key", "some-key", "b"];

/// A parent of this kind, whose spec is made from the schema of the whole object.
pub(crate) fn parent(api_version: &str, kind: &str, schema: &Value, known: &Value, dice: &mut Dice) -> Value {
    let mut parent = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name(dice),
            "namespace": "default",
            "uid": "5b1f3d2e-0000-4000-8000-000000000000",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
    });
    let required = &schema["required"];
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        let is_machinery = matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status");
        if !is_machinery && (is_in(required, field) || dice.below(8) > 0) {
            parent[field] = value(schema, &known[field], dice);
        }
    }
    parent
}

fn name(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => "n".repeat(63),
        1 => format!("{}.{}", "long-".repeat(12) + "a", "b".repeat(180)),
        _ => dice.pick(&NAMES).to_string(),
    }
}

fn is_in(list: &Value, name: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|item| item == name))
}

/// A value for this schema. `known` is one that is known to be good, where there is any.
fn value(schema: &Value, known: &Value, dice: &mut Dice) -> Value {
    // A rule in CEL is the API server's to judge: only what it is known to take is given.
    if schema["x-kubernetes-validations"].is_array() && !schema["properties"].is_object() {
        let good = [known, &schema["default"]].into_iter().find(|value| !value.is_null());
        return good.cloned().unwrap_or_else(|| example::required(schema));
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.is_empty()) {
        return dice.pick(allowed).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return dice
            .pick(&[json!(0), json!(1), json!("1"), json!("100m"), json!("1Gi"), json!("50%")])
            .clone();
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, known, dice),
        Some("array") => list(schema, known, dice),
        Some("boolean") => json!(dice.below(2) == 0),
        Some("integer") => integer(schema, dice),
        Some("number") if dice.below(2) == 0 => json!(0.5),
        Some("number") => integer(schema, dice),
        Some("string") => json!(text(schema, dice)),
        _ => json!({}),
    }
}

fn object(schema: &Value, known: &Value, dice: &mut Dice) -> Value {
    let mut fields = Map::new();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if is_in(&schema["required"], name) || dice.below(2) == 0 {
            fields.insert(name.clone(), value(inner, &known[name], dice));
        }
    }
    if schema["additionalProperties"].is_object() {
        for _ in 0..least(schema, "minProperties", ITEMS).max(dice.below(3)) {
            fields.insert(
                dice.pick(&KEYS).to_string(),
                value(&schema["additionalProperties"], &Value::Null, dice),
            );
        }
    }
    Value::Object(fields)
}

fn list(schema: &Value, known: &Value, dice: &mut Dice) -> Value {
    let least = least(schema, "minItems", ITEMS);
    let most = schema["maxItems"].as_u64().map_or(usize::MAX, |most| most as usize);
    let length = (least + dice.below(3)).min(most);
    (0..length).map(|index| value(&schema["items"], &known[index], dice)).collect()
}

/// The ends of the range and next to them, and what is special about any number.
fn integer(schema: &Value, dice: &mut Dice) -> Value {
    let widest = if schema["format"] == "int32" { i64::from(i32::MAX) } else { 1 << 53 };
    let bound = |key: &str, other: i64| schema[key].as_f64().map_or(other, |bound| bound as i64);
    let (least, most) = (bound("minimum", -widest), bound("maximum", widest));
    let odd = [least, least.saturating_add(1), most.saturating_sub(1), most, 0, 1, 2, -1];
    let allowed: Vec<i64> = odd.into_iter().filter(|number| (least..=most).contains(number)).collect();
    if allowed.is_empty() { json!(least) } else { json!(dice.pick(&allowed)) }
}

fn text(schema: &Value, dice: &mut Dice) -> String {
    if let Some(expression) = schema["pattern"].as_str() {
        let matching = pattern::matching(expression, &mut |bound| dice.below(bound));
        return matching.unwrap_or_default();
    }
    if schema["format"].is_string() {
        return example::required(schema).as_str().unwrap_or_default().to_string();
    }
    let most = schema["maxLength"].as_u64().map_or(300, |most| most as usize);
    let text = match dice.below(10) {
        0 => "x".repeat(most.min(300)),
        1 => "x".repeat(64.min(most)),
        _ => dice.pick(&TEXTS).chars().take(most).collect(),
    };
    lengthened(text, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_parents_and_each_run_another() {
        let schema = json!({"properties": {"spec": {"type": "object", "properties": {
            "n": {"type": "integer", "minimum": 3, "maximum": 9}, "t": {"type": "string"},
        }}}});
        let made = |run| parent("a.io/v1", "A", &schema, &Value::Null, &mut Dice::new(7, run));
        assert_eq!(made(1), made(1));
        let parents: Vec<Value> = (0..50).map(made).collect();
        assert!(parents.iter().any(|parent| parent["spec"]["n"] == 9));
        assert!(parents.iter().any(|parent| parent["spec"]["n"] == 3));
        assert!(parents.iter().any(|parent| parent["spec"].get("n").is_none()));
        let allowed = |parent: &Value| parent["spec"]["n"].as_i64().is_none_or(|n| (3..=9).contains(&n));
        assert!(parents.iter().all(allowed));
    }
}
