//! What one render is given beside its file: observed children from a folder of manifests.

use std::path::Path;

use serde_json::{Map, Value};

use crate::author::manifests;
use crate::hook::local::request::looks_like_json;
use crate::problem::Problem;
use crate::template::yaml;

/// The body of a call, with the manifests of a folder or a file as the observed children.
pub(crate) fn with_children(file: &str, body: &[u8], children: &Path) -> Result<Vec<u8>, Problem> {
    let mut request = whole(file, body)?;
    let field = if request.contains_key("object") { "attachments" } else { "children" };
    if request.contains_key(field) {
        return Err(Problem::new(format!("`{file}` has `{field}` already"))
            .hint("leave them out of the file, or leave out `--children`"));
    }
    let observed = manifests::read(children)?;
    request.insert(field.into(), Value::Array(observed));
    Ok(Value::Object(request).to_string().into_bytes())
}

/// The body as a request; a parent that stands alone is made one.
fn whole(file: &str, body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let text = String::from_utf8_lossy(body);
    let value = match looks_like_json(body).then(|| serde_json::from_str(&text)) {
        Some(Ok(value)) => value,
        _ => yaml::read(file, &text)?.into_iter().next().map(|document| document.value).unwrap_or_default(),
    };
    match value {
        Value::Object(request) if request.contains_key("parent") || request.contains_key("object") => {
            Ok(request)
        }
        Value::Object(parent) => Ok(Map::from_iter([("parent".to_string(), Value::Object(parent))])),
        _ => Err(Problem::new(format!("`{file}` is neither a parent nor a request"))),
    }
}
