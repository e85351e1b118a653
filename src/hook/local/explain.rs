//! Where each field of an answer comes from: the line of the template, and what was computed with.

use serde_json::Value;

use crate::hook::local::answer::Response;
use crate::hook::origin::Origin;
use crate::template::Written;

/// One field of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Explained {
    /// `Deployment shop`, or nothing for a field of the response itself.
    pub object: Option<String>,
    /// `spec.replicas`
    pub path: String,
    /// A scalar, or an empty map or list.
    pub value: Value,
    pub written: Written,
}

impl Response {
    /// Every field, in the order of the answer.
    pub(crate) fn explain(&self) -> Vec<Explained> {
        let mut explained = Vec::new();
        for (name, value, origin) in self.fields() {
            explain(None, value, name, &mut Vec::new(), origin, &mut explained);
        }
        for (object, origin) in self.children() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
            let name = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
            for (field, value) in object.as_object().into_iter().flatten() {
                let mut way = vec![field.clone()];
                explain(Some(&name), value, field, &mut way, origin, &mut explained);
            }
        }
        explained
    }
}

/// Notes the leaves of a value. `way` leads to it from its origin, `path` is how a person calls it.
fn explain(
    object: Option<&str>,
    value: &Value,
    path: &str,
    way: &mut Vec<String>,
    origin: &Origin,
    explained: &mut Vec<Explained>,
) {
    let mut below = |step: String, path: String, value: &Value| {
        way.push(step);
        explain(object, value, &path, way, origin, explained);
        way.pop();
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                below(key.clone(), joined(path, key), value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                below(index.to_string(), format!("{path}[{index}]"), item);
            }
        }
        leaf => {
            let steps: Vec<&str> = way.iter().map(String::as_str).collect();
            explained.push(Explained {
                object: object.map(str::to_string),
                path: path.to_string(),
                value: leaf.clone(),
                written: origin.written(&steps),
            });
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { format!("{path}.{key}") } else { format!("{path}[\"{key}\"]") }
}
