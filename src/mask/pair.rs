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

/// Hides the values of Secrets in two states of an object of any kind. Where one of them has a secret, the other has that
/// of another time, which no Secret holds any more.
pub(crate) fn hide(veil: &Veil, before: &mut Value, after: &mut Value) {
    let of_secret = |before: &mut Value, after: &mut Value| {
        pair(before, after);
        veil.hide_beside(before);
        veil.hide_beside(after);
    };
    Walk { veil, of_secret }.both(before, after);
}

/// The same of two texts of an author's, each with its fields where they are.
pub(crate) fn hide_written(veil: &Veil, one: &mut Value, other: &mut Value) {
    let of_secret = |one: &mut Value, other: &mut Value| {
        veil.hide(one);
        veil.hide(other);
    };
    Walk { veil, of_secret }.both(one, other);
}

struct Walk<'a, S> {
    veil: &'a Veil,
    of_secret: S,
}

impl<S: Fn(&mut Value, &mut Value)> Walk<'_, S> {
    fn both(&self, before: &mut Value, after: &mut Value) {
        if is_secret(before) || is_secret(after) {
            return (self.of_secret)(before, after);
        }
        match (&mut *before, &mut *after) {
            (Value::Object(old), Value::Object(new)) => self.fields(old, new),
            (Value::Array(old), Value::Array(new)) => {
                let both = old.len().min(new.len());
                let rest = old.iter_mut().skip(both).chain(new.iter_mut().skip(both));
                rest.for_each(|rest| self.veil.hide(rest));
                old.iter_mut().zip(new).for_each(|(old, new)| self.both(old, new));
            }
            (Value::String(old), Value::String(new)) if old != new => self.texts(old, new),
            (old, new) => {
                self.veil.hide(old);
                self.veil.hide(new);
            }
        }
    }

    fn fields(&self, old: &mut Map<String, Value>, new: &mut Map<String, Value>) {
        new.iter_mut().filter(|(key, _)| !old.contains_key(*key)).for_each(|(_, new)| self.veil.hide(new));
        for (key, old) in &mut *old {
            match new.get_mut(key) {
                Some(new) => self.both(old, new),
                None => self.veil.hide(old),
            }
        }
        self.veil.hide_keys(old);
        self.veil.hide_keys(new);
    }

    /// Line by line, where each has its counterpart.
    fn texts(&self, before: &mut String, after: &mut String) {
        let pairs: Vec<(String, String)> = if before.split('\n').count() == after.split('\n').count() {
            before.split('\n').zip(after.split('\n')).map(|(old, new)| self.lines(old, new)).collect()
        } else {
            vec![self.lines(before, after)]
        };
        let (old, new): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
        (*before, *after) = (old.join("\n"), new.join("\n"));
    }

    fn lines(&self, before: &str, after: &str) -> (String, String) {
        let (old, new) = (self.veil.text(before).into_owned(), self.veil.text(after).into_owned());
        match (old == before, new == after) {
            (true, false) => ("(masked)".into(), new),
            (false, true) => (old, "(masked)".into()),
            _ => (old, new),
        }
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
