//! Checks a manifest against the schema in its CRD, and fills in the schema's defaults, as the API server does.
//!
//! Knows the part of structural schemas that the manifests under `crds/` use. All faults are found, not the first.

use std::fmt;
use std::sync::LazyLock;

use serde_json::Value;

use crate::problem::{Problem, nearest, shown};
use crate::schedule::duration::parse_duration;
use crate::template::yaml;

/// The kinds of this API, ready to be applied to a cluster.
pub(crate) const CRDS: [(&str, &str); 3] = [
    ("compositecontrollers.yaml", include_str!("crds/compositecontrollers.yaml")),
    ("decoratorcontrollers.yaml", include_str!("crds/decoratorcontrollers.yaml")),
    ("controllerrevisions.yaml", include_str!("crds/controllerrevisions.yaml")),
];

/// The CRD manifests as objects.
pub(crate) fn crds() -> &'static [Value] {
    static PARSED: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let read = |(file, text)| yaml::read(file, text).expect("the CRD manifests in this program are YAML");
        CRDS.into_iter().flat_map(read).map(|document| document.value).collect()
    });
    &PARSED
}

/// The schema of one of our kinds.
pub(crate) fn schema_of(kind: &str) -> Option<&'static Value> {
    let crd = crds().iter().find(|crd| crd["spec"]["names"]["kind"] == kind)?;
    Some(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
}

/// The way to a field: `spec.childResources[1].resource`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Path {
    pub(crate) fn key(&self, key: &str) -> Path {
        self.then(Step::Key(key.into()))
    }

    pub(crate) fn index(&self, index: usize) -> Path {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Path {
        Path(self.0.iter().cloned().chain([step]).collect())
    }

    /// The way to a field of the field at this path.
    pub(crate) fn join(&self, inner: &Path) -> Path {
        Path(self.0.iter().chain(&inner.0).cloned().collect())
    }

    /// Keys, and indices as text.
    pub(crate) fn steps(&self) -> Vec<String> {
        let text = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        };
        self.0.iter().map(text).collect()
    }

    pub(crate) fn last_key(&self) -> Option<&str> {
        match self.0.last() {
            Some(Step::Key(key)) => Some(key),
            _ => None,
        }
    }

    /// The field in `value`, if it is there.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A problem with a field, before its place in a file is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub path: Path,
    pub problem: Problem,
}

impl Fault {
    pub(crate) fn new(path: &Path, problem: Problem) -> Fault {
        Fault { path: path.clone(), problem }
    }
}

/// What is done about fields that the schema doesn't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Refused,
    /// The API server has dealt with them.
    Ignored,
}

/// Every way in which `value` doesn't fit the schema.
pub(crate) fn check(schema: &Value, value: &Value, unknown: Unknown) -> Vec<Fault> {
    let mut check = Check { unknown, faults: Vec::new() };
    check.node(schema, value, &Path::default());
    check.faults
}

struct Check {
    unknown: Unknown,
    faults: Vec<Fault>,
}

impl Check {
    fn node(&mut self, schema: &Value, value: &Value, path: &Path) {
        let kind = schema["type"].as_str().unwrap_or_default();
        match (kind, value) {
            ("object", Value::Object(_)) => self.object(schema, value, path),
            ("array", Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.node(&schema["items"], item, &path.index(index));
                }
            }
            ("string", Value::String(text)) => self.text(schema, text, path),
            ("string", Value::Number(number)) if schema["format"] == "duration" => {
                let problem = Problem::new(format!("`{path}` is {}", shown(value)))
                    .expected("a duration such as `90s`, `1h30m` or `1.5h`")
                    .hint(format!("`{number}s` is this number of seconds"));
                self.fault(path, problem);
            }
            ("integer", Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {}
            ("boolean", Value::Bool(_)) => {}
            _ => self
                .fault(path, Problem::new(format!("`{path}` is {}", shown(value))).expected(expected(kind))),
        }
    }

    fn object(&mut self, schema: &Value, value: &Value, path: &Path) {
        let fields = value.as_object().into_iter().flatten();
        if let Some(values) = schema.get("additionalProperties") {
            fields.for_each(|(key, value)| self.node(values, value, &path.key(key)));
            return;
        }
        // `metadata` and `status` are the API machinery's: their schemas say no more than `object`.
        let Some(known) = schema["properties"].as_object() else { return };
        for (key, value) in fields {
            match known.get(key) {
                Some(schema) => self.node(schema, value, &path.key(key)),
                None if self.unknown == Unknown::Refused => {
                    let names: Vec<&str> = known.keys().map(String::as_str).collect();
                    let path = path.key(key);
                    let problem = unknown_field(&path, key, &names);
                    self.fault(&path, problem);
                }
                None => {}
            }
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(key).is_none() {
                self.fault(path, missing(path, key));
            }
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &Path) {
        if let Some(allowed) = schema["enum"].as_array() {
            let allowed: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
            if !allowed.contains(&text) {
                self.fault(path, not_one_of(path, text, &allowed));
            }
        }
        if schema["format"] == "duration"
            && let Err(error) = parse_duration(text)
        {
            let mut problem = Problem::new(format!("`{path}` is the text `{text}`")).expected(error.expected);
            problem.hint = error.hint;
            self.fault(path, problem);
        }
    }

    fn fault(&mut self, path: &Path, problem: Problem) {
        self.faults.push(Fault::new(path, problem));
    }
}

fn expected(kind: &str) -> &'static str {
    match kind {
        "object" => "a map",
        "array" => "a list",
        "string" => "a text",
        "integer" => "a whole number",
        _ => "`true` or `false`",
    }
}

fn unknown_field(path: &Path, key: &str, known: &[&str]) -> Problem {
    let problem = Problem::new(format!("unknown field `{path}`"));
    match nearest(key, known.iter().copied()) {
        Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
        None => problem.expected(listed(known)),
    }
}

fn missing(path: &Path, key: &str) -> Problem {
    match path.0.is_empty() {
        true => Problem::new(format!("`{key}` is missing")),
        false => Problem::new(format!("`{path}` has no `{key}`")),
    }
}

fn not_one_of(path: &Path, text: &str, allowed: &[&str]) -> Problem {
    let problem = Problem::new(format!("`{path}` is the text `{text}`")).expected(listed(allowed));
    match nearest(text, allowed.iter().copied()) {
        Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
        None => problem,
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Fills in the defaults of absent fields, in every object that is there.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                match (fields.get_mut(key), schema.get("default")) {
                    (Some(field), _) => fill(schema, field),
                    (None, Some(default)) => {
                        fields.insert(key.clone(), default.clone());
                    }
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&schema["items"], item)),
        _ => {}
    }
}
