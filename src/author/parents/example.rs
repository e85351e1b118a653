//! A plain parent that a schema allows: the required fields, with values that read well.

use serde_json::{Map, Number, Value, json};

use crate::author::parents::pattern;

/// The required fields of a schema, each with its default, its first allowed value, or one that fits.
pub(crate) fn required(schema: &Value) -> Value {
    of(schema, "")
}

/// Items and entries of what is made. A schema may ask for more than any object can hold.
pub(super) const ITEMS: usize = 32;
/// Letters of what is made.
const LETTERS: usize = 1 << 16;

/// How many a schema asks for at least, as far as there can be as many.
pub(super) fn least(schema: &Value, key: &str, most: usize) -> usize {
    schema[key].as_u64().map_or(0, |least| usize::try_from(least).unwrap_or(most).min(most))
}

/// The text, as long as the schema wants it at least.
pub(super) fn lengthened(mut text: String, schema: &Value) -> String {
    let missing = least(schema, "minLength", LETTERS).saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('x', missing));
    text
}

/// A value for a field of this name.
fn of(schema: &Value, name: &str) -> Value {
    let given = ["default", "example"].into_iter().find_map(|key| schema.get(key));
    let allowed = schema["enum"].as_array().and_then(|allowed| allowed.first());
    if let Some(value) = given.or(allowed) {
        return value.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("object") => object(schema),
        Some("array") => {
            let item = of(&schema["items"], name);
            Value::Array(vec![item; least(schema, "minItems", ITEMS)])
        }
        Some("boolean") => json!(false),
        Some("integer") => number(schema).as_f64().map_or(json!(0), |number| json!(number as i64)),
        Some("number") => number(schema),
        Some("string") => Value::String(text(schema, name)),
        _ => json!({}),
    }
}

fn object(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields = required.map(|name| (name.to_string(), of(&schema["properties"][name], name)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// One where it is allowed, else the bound that is next to it.
fn number(schema: &Value) -> Value {
    let step = schema["multipleOf"].as_f64().filter(|step| *step > 0.0);
    let unit = step.unwrap_or(1.0);
    let bound = |key: &str, exclusive: &str, inwards: f64| {
        let bound = schema[key].as_f64()?;
        Some(if schema[exclusive] == true { bound + inwards * unit } else { bound })
    };
    let least = bound("minimum", "exclusiveMinimum", 1.0).unwrap_or(f64::MIN);
    let most = bound("maximum", "exclusiveMaximum", -1.0).unwrap_or(f64::MAX);
    let number = unit.max(least).min(most);
    let number = step.map_or(number, |step| (number / step).ceil() * step);
    if number.fract() == 0.0 {
        json!(number as i64)
    } else {
        Number::from_f64(number).map_or(json!(0), Value::Number)
    }
}

fn text(schema: &Value, name: &str) -> String {
    if let Some(text) = schema["pattern"].as_str().and_then(pattern::shortest) {
        return text;
    }
    let text = match schema["format"].as_str() {
        Some("date-time" | "datetime") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("duration") => "1h",
        Some("email") => "somebody@example.com",
        Some("hostname") => "example.com",
        Some("uri") => "https://example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("byte") => "YQ==",
        _ if name.is_empty() => "text",
        _ => name,
    };
    let most = schema["maxLength"].as_u64().map_or(usize::MAX, |most| most as usize);
    lengthened(text.chars().take(most).collect(), schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_there_and_reads_well() {
        let schema = json!({"type": "object", "required": ["host", "port", "size", "mode", "tags", "at"], "properties": {
            "host": {"type": "string", "minLength": 6},
            "port": {"type": "integer", "minimum": 1024},
            "size": {"type": "string", "pattern": "^[0-9]+Gi$"},
            "mode": {"type": "string", "enum": ["fast", "safe"]},
            "tags": {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 2}},
            "at": {"type": "string", "format": "date-time"},
            "other": {"type": "string"},
        }});
        let expected = json!({
            "host": "hostxx", "port": 1024, "size": "1Gi", "mode": "fast", "tags": ["ta"], "at": "2026-01-01T00:00:00Z",
        });
        assert_eq!(required(&schema), expected);
    }
}
