//! What is secret: the values in `data` and `stringData` of Secrets, and the parts of them that templates take out.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Fields of a Secret whose values are secret.
pub(super) const VALUES: [&str; 2] = ["data", "stringData"];
/// Annotations in which a client keeps the whole object, values included.
const RECORD: &str = "/last-applied-configuration";
/// The fields of a request that hold whom it is about.
const ASKED_ABOUT: [&str; 2] = ["parent", "object"];
/// A group of Secrets in a hook's request.
const GROUP: &str = "Secret.v1";

/// Whether an object is a Secret of Kubernetes' own.
pub(super) fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

/// The values of Secrets, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    pub(super) values: Vec<Vec<u8>>,
    /// Texts that are secret only by their digest: the values of a Secret as one text.
    pub(super) digested: Vec<String>,
    /// Words that are to be read: the names of keys, and of those whom a text is about.
    pub(super) open: BTreeSet<String>,
    seen: BTreeSet<Vec<u8>>,
}

impl Secrets {
    /// The values of all Secrets in an object or a request. Whom a request is about is no secret.
    pub(crate) fn of(value: &Value) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add(value);
        for subject in ASKED_ABOUT {
            secrets.leave_names(&value[subject]);
        }
        secrets
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds those of all Secrets in a value.
    pub(crate) fn add(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if is_secret(value) {
                    self.add_secret(value);
                }
                // Fixtures may leave out what the group says.
                let group = fields.get(GROUP).and_then(Value::as_object);
                group.into_iter().flat_map(Map::values).for_each(|secret| self.add_secret(secret));
                fields.values().for_each(|value| self.add(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.add(value)),
            _ => {}
        }
    }

    /// Leaves the name and the namespace of an object to be read, and its kind.
    pub(crate) fn leave_names(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let names = [&metadata["name"], &metadata["namespace"], &object["kind"]];
        self.open.extend(names.into_iter().filter_map(Value::as_str).map(str::to_string));
    }

    /// Leaves a word to be read.
    pub(crate) fn leave(&mut self, word: &str) {
        self.open.insert(word.into());
    }

    /// Adds a secret that is in no Secret's field.
    pub(crate) fn add_text(&mut self, text: &str) {
        self.add_value(text.into());
    }

    fn add_secret(&mut self, secret: &Value) {
        for field in VALUES {
            let Some(values) = secret[field].as_object().filter(|values| !values.is_empty()) else {
                continue;
            };
            self.digested.push(Value::from(values.clone()).to_string());
            for (key, value) in values {
                self.open.insert(key.clone());
                self.add_value(value_of(value));
            }
        }
        let annotations = secret["metadata"]["annotations"].as_object().into_iter().flatten();
        for (_, text) in annotations.filter(|(name, _)| name.ends_with(RECORD)) {
            let record = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            record.iter().for_each(|record| self.add(record));
        }
    }

    fn add_value(&mut self, value: Vec<u8>) {
        if !value.is_empty() && self.seen.insert(value.clone()) {
            self.values.push(value);
        }
    }
}

/// What a value of a Secret is once it is decoded: base64 in `data` and plain in `stringData`; what is no base64 is plain.
pub(super) fn value_of(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes()),
        Value::Null => Vec::new(),
        other => other.to_string().into_bytes(),
    }
}

/// Takes away the annotations in which a client keeps the whole object.
pub(super) fn drop_records(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|name, _| !name.ends_with(RECORD));
    }
}

/// The parts of a value that a template is likely to take out of it: lines, what stands after `=` or `:` in one, the
/// leaves of JSON, the password in a URL, and what is base64 once more.
pub(super) fn parts(value: &str) -> Vec<String> {
    let mut parts = Vec::new();
    if let Ok(json) = serde_json::from_str::<Value>(value) {
        leaves(&json, &mut parts);
    }
    let many = value.trim().contains('\n');
    for line in value.lines().map(str::trim).filter(|line| !line.starts_with("-----")) {
        if many {
            parts.push(line.into());
        }
        for sign in ['=', ':'] {
            parts.extend(line.split_once(sign).map(|(_, rest)| bare(rest)));
        }
        parts.extend(password(line));
    }
    let again = STANDARD.decode(value.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    parts.extend(again);
    parts
}

fn leaves(json: &Value, parts: &mut Vec<String>) {
    match json {
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, parts)),
        Value::Array(items) => items.iter().for_each(|value| leaves(value, parts)),
        Value::String(text) => parts.push(text.clone()),
        _ => {}
    }
}

/// `s3cret` out of `db://root:s3cret@host/`.
fn password(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("://")?;
    let (user, _) = rest.rsplit_once('@')?;
    Some(user.split_once(':')?.1.into())
}

fn bare(text: &str) -> String {
    text.trim().trim_end_matches([',', ';']).trim_matches(['"', '\'']).into()
}
