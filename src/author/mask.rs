//! Values of Secrets, made unreadable: a diff and a case are shown, kept and sent around.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Fields of a Secret whose values are secret.
const VALUES: [&str; 2] = ["data", "stringData"];
/// A shorter text is found in too many places to be a secret.
const LEAST: usize = 4;

/// Whether an object is a Secret of Kubernetes' own.
fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

/// Masks two states of one object, so that it still shows where they differ.
pub(crate) fn pair(before: &mut Value, after: &mut Value) {
    if !is_secret(before) && !is_secret(after) {
        return;
    }
    fold(before);
    fold(after);
    for field in VALUES {
        let mut old = values(before, field);
        let mut new = values(after, field);
        for key in old.keys().chain(new.keys()).cloned().collect::<Vec<_>>() {
            let same = old.get(&key) == new.get(&key);
            let word =
                |when: &str| Value::from(if same { "(masked)".into() } else { format!("(masked, {when})") });
            if let Some(value) = old.get_mut(&key) {
                *value = word("before");
            }
            if let Some(value) = new.get_mut(&key) {
                *value = word("after");
            }
        }
        put(before, field, old);
        put(after, field, new);
    }
    for object in [before, after] {
        drop_records(object);
    }
}

/// Puts `stringData` into `data`, as the API server does.
fn fold(object: &mut Value) {
    let plain = values(object, "stringData");
    if plain.is_empty() {
        return;
    }
    let mut data = values(object, "data");
    data.extend(plain.into_iter().map(|(key, value)| {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        (key, Value::from(encoded))
    }));
    put(object, "data", data);
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("stringData");
    }
}

fn values(object: &Value, field: &str) -> Map<String, Value> {
    object[field].as_object().cloned().unwrap_or_default()
}

fn put(object: &mut Value, field: &str, values: Map<String, Value>) {
    if !values.is_empty() {
        object[field] = Value::Object(values);
    }
}

/// Annotations in which a client keeps the whole object, values included.
fn drop_records(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| !name.ends_with("/last-applied-configuration"));
    }
}

/// Masks every Secret in a value, and whatever else in it holds one of their values. Equal values stay equal.
pub(crate) fn whole(value: &mut Value) {
    let mut found = Found::default();
    found.collect(value);
    found.hide(value);
}

/// The values of all Secrets, with what stands in their place.
#[derive(Default)]
struct Found {
    by_value: BTreeMap<Vec<u8>, String>,
}

impl Found {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if is_secret(value) {
                    for (_, text) in VALUES.iter().flat_map(|field| values(value, field)) {
                        self.add(text.as_str().unwrap_or_default());
                    }
                }
                fields.values().for_each(|value| self.collect(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    /// Values are base64 in `data` and plain in `stringData`; what is no base64 is plain.
    fn add(&mut self, text: &str) {
        let value = STANDARD.decode(text).unwrap_or_else(|_| text.into());
        let number = self.by_value.len() + 1;
        self.by_value.entry(value).or_insert_with(|| format!("masked-{number}"));
    }

    fn hide(&self, value: &mut Value) {
        if is_secret(value) {
            self.hide_secret(value);
        }
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| self.hide(value)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.hide(value)),
            Value::String(text) => self.hide_in(text),
            _ => {}
        }
    }

    fn hide_secret(&self, secret: &mut Value) {
        for field in VALUES {
            let mut values = values(secret, field);
            for value in values.values_mut() {
                let text = value.as_str().unwrap_or_default();
                let decoded = STANDARD.decode(text).unwrap_or_else(|_| text.into());
                let word = self.by_value.get(&decoded).cloned().unwrap_or_default();
                *value = Value::from(if field == "data" { STANDARD.encode(word) } else { word });
            }
            put(secret, field, values);
        }
        drop_records(secret);
    }

    /// A template may have put a value into another object.
    fn hide_in(&self, text: &mut String) {
        for (value, word) in &self.by_value {
            let Ok(plain) = std::str::from_utf8(value) else { continue };
            if plain.len() < LEAST || self.by_value.values().any(|word| word.contains(plain)) {
                continue;
            }
            if text.contains(plain) {
                *text = text.replace(plain, word);
            }
            let encoded = STANDARD.encode(plain);
            if text.contains(&encoded) {
                *text = text.replace(&encoded, &STANDARD.encode(word));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(data: Value) -> Value {
        let annotations =
            json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":1}", "a": "b"});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": annotations}, "data": data})
    }

    #[test]
    fn pair_shows_where_it_differs_and_no_value() {
        let mut before = secret(json!({"same": "YQ==", "other": "Yg==", "gone": "Yw=="}));
        let mut after = secret(json!({"same": "YQ==", "other": "ZA==", "new": "ZQ=="}));
        pair(&mut before, &mut after);
        let masked = json!({"same": "(masked)", "other": "(masked, before)", "gone": "(masked, before)"});
        assert_eq!(before["data"], masked);
        let masked = json!({"same": "(masked)", "other": "(masked, after)", "new": "(masked, after)"});
        assert_eq!(after["data"], masked);
        assert_eq!(after["metadata"]["annotations"], json!({"a": "b"}));
    }

    #[test]
    fn plain_values_are_compared_as_the_server_keeps_them() {
        let mut before = secret(json!({"same": "YQ==", "other": "Yg=="}));
        let mut after = secret(json!({}));
        after["stringData"] = json!({"same": "a", "other": "c"});
        pair(&mut before, &mut after);
        assert_eq!(after["data"], json!({"same": "(masked)", "other": "(masked, after)"}));
        assert_eq!(after.get("stringData"), None);
    }

    #[test]
    fn other_kinds_are_no_secret() {
        let (mut before, mut after) = (json!({"kind": "ConfigMap", "data": {"a": "1"}}), json!({}));
        pair(&mut before, &mut after);
        assert_eq!(before["data"]["a"], "1");
    }

    #[test]
    fn values_are_hidden_wherever_they_stand_and_equal_ones_stay_equal() {
        let encoded = |text: &str| STANDARD.encode(text);
        let mut request = json!({
            "parent": {"spec": {"password": "hunter22", "hint": encoded("hunter22"), "replicas": 3}},
            "children": {"Secret.v1": {
                "a": secret(json!({"p": encoded("hunter22"), "short": encoded("no")})),
                "b": secret(json!({"q": encoded("hunter22"), "r": encoded("other-one")})),
            }},
            "related": {"ConfigMap.v1": {"c": {"data": {"url": "mysql://root:hunter22@db", "answer": "no"}}}},
        });
        whole(&mut request);
        let text = request.to_string();
        for value in ["hunter22", "other-one", &encoded("hunter22"), &encoded("other-one"), &encoded("no")] {
            assert!(!text.contains(value), "{value} in {text}");
        }
        let secrets = &request["children"]["Secret.v1"];
        assert_eq!(secrets["a"]["data"]["p"], secrets["b"]["data"]["q"]);
        assert_ne!(secrets["b"]["data"]["q"], secrets["b"]["data"]["r"]);
        let word =
            String::from_utf8(STANDARD.decode(secrets["a"]["data"]["p"].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(request["parent"]["spec"]["password"], word.as_str());
        assert_eq!(request["related"]["ConfigMap.v1"]["c"]["data"]["url"], format!("mysql://root:{word}@db"));
        assert_eq!(request["related"]["ConfigMap.v1"]["c"]["data"]["answer"], "no", "too short to be one");
    }
}
