//! Two states of one object, made unreadable where they are secret, so that it still shows where they differ.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::mask::Veil;
use crate::mask::secrets::{VALUES, drop_records, is_secret};

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
            let word = |when: &str| Value::from(if same { "(masked)".into() } else { mask(when) });
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

/// Hides the values of Secrets in two states of any object. Where one of them has a secret, the other has that of another
/// time, which no Secret holds any more.
pub(crate) fn hide(veil: &Veil, before: &mut Value, after: &mut Value) {
    if is_secret(before) || is_secret(after) {
        veil.hide(before);
        veil.hide(after);
        return;
    }
    match (&mut *before, &mut *after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, old) in &mut *old {
                hide(veil, old, new.get_mut(key).unwrap_or(&mut Value::Null));
            }
            new.iter_mut().filter(|(key, _)| !old.contains_key(*key)).for_each(|(_, new)| veil.hide(new));
            veil.hide_keys(old);
            veil.hide_keys(new);
        }
        (Value::Array(old), Value::Array(new)) => {
            let both = old.len().min(new.len());
            old.iter_mut().zip(&mut *new).for_each(|(old, new)| hide(veil, old, new));
            old.iter_mut().chain(&mut *new).skip(both).for_each(|rest| veil.hide(rest));
        }
        (Value::String(old), Value::String(new)) if old != new => hide_texts(veil, old, new),
        (old, new) => {
            veil.hide(old);
            veil.hide(new);
        }
    }
}

fn hide_texts(veil: &Veil, before: &mut String, after: &mut String) {
    match (veil.text(before).into_owned(), veil.text(after).into_owned()) {
        (old, new) if old == *before && new == *after => {}
        (old, new) if old == *before => (*before, *after) = (mask("before"), new),
        (old, new) if new == *after => (*before, *after) = (old, mask("after")),
        (old, new) => (*before, *after) = (old, new),
    }
}

fn mask(when: &str) -> String {
    format!("(masked, {when})")
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
}
