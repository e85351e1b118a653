//! What a file is that was given as a hook's parent or request, and is neither.
//!
//! Jinja would only find a field absent in it; its author took one file for another.

use std::path::Path;

use serde_json::{Map, Value};

use crate::author::check::crds::kinds;
use crate::author::check::requests::gvk;
use crate::author::text;
use crate::object::name::Gvk;
use crate::problem::Problem;
use crate::template::yaml;

/// Why a file cannot be what `hook`, a folder below `hooks`, is asked about; `None` where it can, and where its own text is
/// at fault. `file` is how messages call it.
pub(crate) fn unfit(hooks: &Path, hook: &str, file: &str, body: &[u8]) -> Option<Problem> {
    let text = std::str::from_utf8(body).ok()?;
    let folder = Folder::of(hooks, hook);
    let told = |what: &str| Problem::new(format!("`{file}` {what}")).expected(folder.expected());
    let documents = match yaml::read(file, text) {
        Ok(documents) => documents,
        Err(_) if text.contains("{%") || text.contains("{{") => {
            return Some(folder.hinted(told("is a template, and not what a template is given")));
        }
        Err(_) => return None,
    };
    let values: Vec<&Value> = documents.iter().map(|document| &document.value).collect();
    match values.as_slice() {
        [Value::Object(fields)] => of_one(fields, &folder, told),
        [] | [_] => None,
        many => {
            let kinds: Vec<String> = many.iter().map(|value| called(value)).collect();
            let problem = told(&format!("holds {} documents", many.len())).found(kinds.join(", "));
            Some(match &folder.example {
                Some(example) if example == file => problem.hint("give one of them alone"),
                _ => folder.hinted(problem),
            })
        }
    }
}

fn of_one(fields: &Map<String, Value>, folder: &Folder, told: impl Fn(&str) -> Problem) -> Option<Problem> {
    if let Some(parent) = fields.get("parent").or_else(|| fields.get("object")) {
        return folder
            .is_strange(parent)
            .then(|| folder.hinted(told(&format!("is a request about {}", called(parent)))));
    }
    let kind = fields.get("kind").and_then(Value::as_str);
    let Some(kind) = kind.filter(|_| fields.contains_key("apiVersion")) else {
        let answer = ["status", "children", "attachments", "allowed", "finalized", "relatedResources"];
        let found: Vec<String> = answer
            .iter()
            .filter(|field| fields.contains_key(**field))
            .map(|field| format!("`{field}`"))
            .collect();
        return (!found.is_empty()).then(|| {
            let problem = told("is an answer of a hook, and not what it is asked").found(found.join(", "));
            problem.hint("of a case, give `<call>.request.yaml`")
        });
    };
    let whole = Value::Object(fields.clone());
    let what = match kind {
        "List" => {
            let count = fields.get("items").and_then(Value::as_array).map_or(0, Vec::len);
            let problem = told(&format!("is a List of {count}"));
            return Some(problem.hint("give one of them: `kubectl get KIND NAME -o yaml` prints it alone"));
        }
        _ if !folder.is_strange(&whole) => return None,
        "CustomResourceDefinition" => "defines a kind, and is no object of it".into(),
        "CompositeController" | "DecoratorController" => {
            format!("is a {kind}, which says what hooks are called, and is no parent")
        }
        _ => format!("is {}", called(&whole)),
    };
    Some(folder.hinted(told(&what)))
}

/// Kind and name, as far as it has them.
fn called(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match (kind.as_str(), name.as_str()) {
        ("", _) => "something without a kind".into(),
        (kind, "") if kind.starts_with(['A', 'E', 'I', 'O']) => format!("an {kind}"),
        (kind, "") => format!("a {kind}"),
        (kind, name) => format!("the {kind} `{name}`"),
    }
}

/// What a hook's folder says of its parents.
struct Folder {
    /// Of its `crd.yaml`; empty where it has none, as a decorator's.
    kinds: Vec<Gvk>,
    /// Its example, where it has one.
    example: Option<String>,
}

impl Folder {
    fn of(hooks: &Path, hook: &str) -> Folder {
        let folder = hooks.join(hook);
        let file = folder.join("crd.yaml");
        let text = text::read(&file).unwrap_or_default();
        let documents = yaml::read(&file.display().to_string(), &text).unwrap_or_default();
        let example = Some(folder.join("example.yaml")).filter(|file| file.is_file());
        Folder {
            kinds: documents.iter().flat_map(|document| kinds(&document.value)).collect(),
            example: example.map(|file| file.display().to_string()),
        }
    }

    /// Whether an object is of no kind that `crd.yaml` defines; of whatever version, as conversions go between them.
    fn is_strange(&self, object: &Value) -> bool {
        let own = gvk(object);
        let same = |kind: &Gvk| (&kind.group, &kind.kind) == (&own.group, &own.kind);
        let said = object.get("kind").is_some() && object.get("apiVersion").is_some();
        if self.kinds.is_empty() {
            return ["CompositeController", "DecoratorController"].contains(&own.kind.as_str());
        }
        said && !self.kinds.iter().any(same)
    }

    fn expected(&self) -> String {
        match self.kinds.first() {
            Some(kind) => {
                let version = if kind.group.is_empty() {
                    kind.version.clone()
                } else {
                    format!("{}/{}", kind.group, kind.version)
                };
                format!("one {} (`apiVersion: {version}`), or a request with `parent`", kind.kind)
            }
            None => "one parent, or a request with `parent`".into(),
        }
    }

    fn hinted(&self, problem: Problem) -> Problem {
        match &self.example {
            Some(example) => problem.hint(format!("try `{example}`")),
            None => problem,
        }
    }
}
