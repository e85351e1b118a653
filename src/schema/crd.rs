//! What the API server refuses in a CustomResourceDefinition, beyond what its own schema says.
//!
//! The rules are those of Kubernetes' validation of `apiextensions.k8s.io/v1`: structural schemas, one stored version, printer
//! columns and the scale subresource. An expression is only looked at as far as its brackets and its ends.

use serde_json::{Map, Value};

use crate::problem::{nearest, shown};
use crate::schema::misfit::{Misfit, Nature, dotted};

/// Every fault of a CRD, with the path of the field.
pub(crate) fn faults(crd: &Value) -> Vec<Misfit> {
    let mut look = Look { path: Vec::new(), found: Vec::new() };
    look.whole(crd);
    look.found
}

/// Keywords of JSON Schema and OpenAPI that a structural schema may not hold.
const FORBIDDEN: [&str; 12] = [
    "$ref",
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "discriminator",
    "readOnly",
    "writeOnly",
    "deprecated",
    "xml",
    "id",
    "$schema",
];
const COLUMN_TYPES: [&str; 5] = ["integer", "number", "string", "boolean", "date"];
const COLUMN_FORMATS: [&str; 8] =
    ["int32", "int64", "float", "double", "byte", "date", "date-time", "password"];

struct Look {
    path: Vec<String>,
    found: Vec<Misfit>,
}

impl Look {
    fn inside(&mut self, step: impl AsRef<str>, look: impl FnOnce(&mut Self)) {
        self.within(&[step.as_ref()], look);
    }

    /// The same several steps down.
    fn within(&mut self, steps: &[&str], look: impl FnOnce(&mut Self)) {
        let above = self.path.len();
        self.path.extend(steps.iter().copied().map(String::from));
        look(self);
        self.path.truncate(above);
    }

    fn say(&mut self, message: impl Into<String>) -> &mut Misfit {
        self.found.push(Misfit::new(Nature::Value, &self.path, message));
        self.found.last_mut().expect("one was put there")
    }

    fn whole(&mut self, crd: &Value) {
        self.inside("spec", |look| {
            let spec = &crd["spec"];
            look.scope(&spec["scope"]);
            look.group(crd, &spec["group"]);
            look.inside("names", |look| look.names(&spec["names"]));
            look.inside("versions", |look| look.versions(&spec["versions"]));
        });
    }

    fn scope(&mut self, scope: &Value) {
        if let Value::String(text) = scope
            && !["Namespaced", "Cluster"].contains(&text.as_str())
        {
            self.inside("scope", |look| {
                look.say(format!("`scope` is `{text}`")).expected = Some("`Namespaced` or `Cluster`".into());
            });
        }
    }

    fn group(&mut self, crd: &Value, group: &Value) {
        let Value::String(text) = group else { return };
        let approval = &crd["metadata"]["annotations"]["api-approved.kubernetes.io"];
        self.inside("group", |look| {
            if !text.contains('.') || !text.split('.').all(is_label) {
                look.say(format!("`group` is `{text}`")).expected =
                    Some("a domain in lower case with a dot, such as `example.com`".into());
            } else if [".k8s.io", ".kubernetes.io"].iter().any(|end| text.ends_with(end))
                && approval.is_null()
            {
                let fault = look.say(format!("`group` is `{text}`, which is Kubernetes' own"));
                fault.expected = Some("a domain of yours, such as `example.com`".into());
            }
        });
    }

    fn names(&mut self, names: &Value) {
        for field in ["plural", "singular"] {
            if let Some(text) = names[field].as_str().filter(|text| !is_label(text)) {
                self.inside(field, |look| {
                    look.say(format!("`{field}` is `{text}`")).expected =
                        Some("lower-case letters, digits and `-`".into());
                });
            }
        }
        for field in ["shortNames", "categories"] {
            for (index, text) in names[field].as_array().into_iter().flatten().enumerate() {
                if let Some(text) = text.as_str().filter(|text| !is_label(text)) {
                    self.within(&[field, &index.to_string()], |look| {
                        look.say(format!("`{field}` holds `{text}`")).expected =
                            Some("lower-case letters, digits and `-`".into());
                    });
                }
            }
        }
        if let Some(text) = names["kind"].as_str().filter(|text| !is_label(&text.to_lowercase())) {
            self.inside("kind", |look| {
                look.say(format!("`kind` is `{text}`")).expected = Some("letters, digits and `-`".into());
            });
        }
        if names["listKind"].is_string() && names["listKind"] == names["kind"] {
            self.inside("listKind", |look| {
                look.say("`listKind` is the kind itself").hint = Some("leave it out".into());
            });
        }
    }

    fn versions(&mut self, versions: &Value) {
        let Value::Array(all) = versions else { return };
        let stored: Vec<usize> = all
            .iter()
            .enumerate()
            .filter(|(_, one)| one["storage"] == true)
            .map(|(index, _)| index)
            .collect();
        match stored[..] {
            [_] => {}
            [] => {
                self.say("no version is the stored one").expected =
                    Some("`storage: true` in one of the versions".into());
            }
            [_, second, ..] => self.inside(second.to_string(), |look| {
                look.inside("storage", |look| {
                    look.say("there is another version with `storage: true`").expected =
                        Some("one stored version, and `storage: false` in the others".into());
                });
            }),
        }
        for (index, version) in all.iter().enumerate() {
            self.inside(index.to_string(), |look| look.version(index, version, all));
        }
    }

    fn version(&mut self, index: usize, version: &Value, all: &[Value]) {
        if let Some(name) = version["name"].as_str() {
            let first = all.iter().position(|other| other["name"] == name);
            self.inside("name", |look| {
                if !is_label(name) {
                    look.say(format!("`{name}` is no version")).expected =
                        Some("such as `v1` or `v1alpha1`".into());
                } else if first != Some(index) {
                    look.say(format!("there are two versions `{name}`"));
                }
            });
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        self.within(&["schema", "openAPIV3Schema"], |look| look.root(schema));
        self.inside("additionalPrinterColumns", |look| {
            for (index, column) in
                version["additionalPrinterColumns"].as_array().into_iter().flatten().enumerate()
            {
                look.inside(index.to_string(), |look| look.column(column, schema));
            }
        });
        let scale = &version["subresources"]["scale"];
        self.within(&["subresources", "scale"], |look| look.scale(scale, schema));
    }

    fn root(&mut self, schema: &Value) {
        let Value::Object(fields) = schema else { return };
        if fields.get("type").is_some_and(|kind| kind != "object") {
            self.inside("type", |look| {
                look.say("the schema is not that of an object").expected = Some("`type: object`".into());
            });
        }
        let metadata = &schema["properties"]["metadata"];
        for name in metadata["properties"].as_object().into_iter().flat_map(Map::keys) {
            if !["name", "generateName"].contains(&name.as_str()) {
                self.within(&["properties", "metadata", "properties", name], |look| {
                    look.say(format!("the schema says something of `metadata.{name}`")).hint = Some(
                        "Kubernetes knows what metadata holds: only `name` and `generateName` may be restricted"
                            .into(),
                    );
                });
            }
        }
        self.schema(fields, &mut Vec::new());
    }

    /// One schema; `field` is the way to what it is about.
    fn schema(&mut self, schema: &Map<String, Value>, field: &mut Vec<String>) {
        let of = |field: &[String]| match field {
            [] => "the schema".to_string(),
            _ => format!("the schema of `{}`", dotted(field)),
        };
        let is = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let kind = schema.get("type").and_then(Value::as_str);
        for name in FORBIDDEN.iter().filter(|name| schema.contains_key(**name)) {
            self.inside(*name, |look| {
                let fault = look.say(format!("{} has `{name}`, which Kubernetes does not allow", of(field)));
                if *name == "$ref" {
                    fault.hint = Some("write out what it refers to".into());
                }
            });
        }
        let free = is("x-kubernetes-int-or-string") || is("x-kubernetes-preserve-unknown-fields");
        if kind.is_none() && !free {
            let fault = self.say(format!("{} has no `type`", of(field)));
            fault.expected = Some("`object`, `array`, `string`, `integer`, `number` or `boolean`".into());
            fault.hint = Some("`x-kubernetes-preserve-unknown-fields: true` allows anything".into());
        }
        if is("uniqueItems") {
            self.inside("uniqueItems", |look| {
                look.say(format!("{} has `uniqueItems: true`, which Kubernetes does not allow", of(field)))
                    .hint = Some("`x-kubernetes-list-type: set` does the same".into());
            });
        }
        self.pattern(schema, &of(field));
        self.list(schema, kind, &of(field));
        self.rules(schema);
        self.below(schema, field, &of(field.as_slice()));
    }

    fn pattern(&mut self, schema: &Map<String, Value>, of: &str) {
        let Some(Err(error)) = schema.get("pattern").and_then(Value::as_str).map(regex_syntax::parse) else {
            return;
        };
        // Its first line is a title, and the pattern with a mark follows.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        self.inside("pattern", |look| {
            look.say(format!("{of} has a pattern that cannot be read: {why}"));
        });
    }

    fn list(&mut self, schema: &Map<String, Value>, kind: Option<&str>, of: &str) {
        match schema.get("items") {
            Some(Value::Array(_)) => self.inside("items", |look| {
                look.say(format!("{of} has a list as `items`")).expected =
                    Some("one schema, for all elements".into());
            }),
            None if kind == Some("array") => {
                self.say(format!("{of} has no `items`")).expected =
                    Some("the schema of an element, such as `items: {type: string}`".into());
            }
            _ => {}
        }
        let Some(sort) = schema.get("x-kubernetes-list-type").and_then(Value::as_str) else { return };
        if !["atomic", "set", "map"].contains(&sort) {
            self.inside("x-kubernetes-list-type", |look| {
                look.say(format!("`x-kubernetes-list-type` is `{sort}`")).expected =
                    Some("`atomic`, `set` or `map`".into());
            });
        }
        let none = Vec::new();
        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or(&none);
        if sort == "map" && keys.is_empty() {
            self.say(format!("{of} has `x-kubernetes-list-type: map` and no keys")).expected =
                Some("`x-kubernetes-list-map-keys`, such as `[name]`".into());
        }
        let items = schema.get("items").unwrap_or(&Value::Null);
        let required = items["required"].as_array().unwrap_or(&none);
        for (index, key) in keys.iter().enumerate() {
            let Some(name) = key.as_str() else { continue };
            let property = &items["properties"][name];
            self.within(&["x-kubernetes-list-map-keys", &index.to_string()], |look| {
                if property.is_null() {
                    look.say(format!("{of} has no property `{name}` in its items, which is to be a key"));
                } else if !required.contains(key) && property["default"].is_null() {
                    look.say(format!("the key `{name}` of {of} may be absent")).expected =
                        Some("it in the `required` of the items, or a default".into());
                }
            });
        }
    }

    fn rules(&mut self, schema: &Map<String, Value>) {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        for (index, rule) in rules.into_iter().flatten().enumerate() {
            let Some(why) = rule["rule"].as_str().and_then(not_an_expression) else { continue };
            self.within(&["x-kubernetes-validations", &index.to_string(), "rule"], |look| {
                look.say(format!("the rule is no expression of CEL: {why}"));
            });
        }
    }

    fn below(&mut self, schema: &Map<String, Value>, field: &mut Vec<String>, of: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, inner) in properties.into_iter().flatten() {
            let Value::Object(inner) = inner else { continue };
            field.push(name.clone());
            self.within(&["properties", name], |look| look.schema(inner, field));
            field.pop();
        }
        if let Some(Value::Object(items)) = schema.get("items") {
            field.push("0".into());
            self.inside("items", |look| look.schema(items, field));
            field.pop();
        }
        let more = schema.get("additionalProperties");
        if let Some(Value::Object(values)) = more {
            field.push("*".into());
            self.inside("additionalProperties", |look| look.schema(values, field));
            field.pop();
        }
        if more.is_some() && properties.is_some_and(|all| !all.is_empty()) {
            self.inside("additionalProperties", |look| {
                look.say(format!("{of} has both `properties` and `additionalProperties`")).expected =
                    Some("one of them: known fields, or free keys whose values are alike".into());
            });
        }
    }

    fn column(&mut self, column: &Value, schema: &Value) {
        for (field, allowed) in [("type", &COLUMN_TYPES[..]), ("format", &COLUMN_FORMATS[..])] {
            if let Some(text) = column[field].as_str().filter(|text| !allowed.contains(text)) {
                self.inside(field, |look| {
                    look.say(format!("the column's `{field}` is `{text}`")).expected =
                        Some(format!("`{}`", allowed.join("`, `")));
                });
            }
        }
        let Some(path) = column["jsonPath"].as_str() else { return };
        self.inside("jsonPath", |look| {
            if !path.starts_with('.') {
                look.say(format!("the column's path is `{path}`")).expected = Some(format!("`.{path}`"));
            } else {
                look.known(path, schema, "the column is always empty");
            }
        });
    }

    fn scale(&mut self, scale: &Value, schema: &Value) {
        for (field, top) in
            [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status."), ("labelSelectorPath", ".s")]
        {
            let Some(path) = scale[field].as_str() else { continue };
            self.inside(field, |look| {
                if !path.starts_with(top) || path.contains('[') {
                    look.say(format!("`{field}` is `{path}`")).expected = Some(format!(
                        "a field below `{}`, such as `.spec.replicas`",
                        top.trim_end_matches('.')
                    ));
                } else {
                    look.known(path, schema, "nothing is scaled by it");
                }
            });
        }
    }

    /// A path of names that leads to no field of the schema. One with filters and indices is followed as far as they.
    fn known(&mut self, path: &str, schema: &Value, effect: &str) {
        let plain = path.find('[').map_or(path, |end| &path[..end]);
        let mut node = schema;
        for name in plain.split('.').skip(1) {
            let open = node["x-kubernetes-preserve-unknown-fields"] == true
                || node.get("additionalProperties").is_some()
                || node["type"] != "object"
                || node["x-kubernetes-embedded-resource"] == true;
            if open || matches!(name, "metadata" | "apiVersion" | "kind") || name.contains('\\') {
                return;
            }
            match node["properties"].get(name) {
                Some(inner) => node = inner,
                None => {
                    let names = node["properties"].as_object().into_iter().flat_map(Map::keys);
                    let near = nearest(name, names.map(String::as_str)).map(str::to_owned);
                    let fault = self.say(format!("the schema has no `{plain}`: {effect}"));
                    fault.hint = near.map(|near| format!("did you mean `{near}`?"));
                    return;
                }
            }
        }
    }
}

/// A DNS label that begins with a letter, as names of kinds, groups and versions are made of.
fn is_label(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit())
        && text.len() <= 63
        && !text.ends_with('-')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Why a text cannot be an expression, as far as brackets, quotes and its two ends tell.
fn not_an_expression(text: &str) -> Option<String> {
    let mut open = Vec::new();
    let mut rest = text.chars();
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Some("nothing".into());
    }
    while let Some(c) = rest.next() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return Some(format!("a `{c}` that closes nothing")),
            '"' | '\'' => loop {
                match rest.next() {
                    Some('\\') => drop(rest.next()),
                    Some(end) if end == c => break,
                    Some(_) => {}
                    None => return Some(format!("a {c} that is not closed")),
                }
            },
            _ => {}
        }
    }
    if let Some(end) = open.pop() {
        return Some(format!("no `{end}` at the end of {}", shown(&Value::from(trimmed))));
    }
    const ENDS: [&str; 17] =
        ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "?", ":", ".", "!"];
    ENDS.iter().find(|end| trimmed.ends_with(**end)).map(|end| format!("nothing after `{end}`"))
}
