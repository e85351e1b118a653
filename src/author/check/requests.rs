//! What is rendered: every case, and every example as a parent that has just been made.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::author::case;
use crate::author::check::finding::Rule;
use crate::author::check::{Check, is_review};
use crate::author::created::created;
use crate::author::text;
use crate::config::spec::Role;
use crate::object::name::Gvk;
use crate::template::yaml::{self, Document};

/// One request to one hook.
pub(super) struct Request {
    pub hook: String,
    pub call: String,
    /// As the author knows it.
    pub file: String,
    pub body: Vec<u8>,
    /// The body's fields, if it is a request or a parent that can be read.
    pub fields: Map<String, Value>,
    /// A case's own text, with its places.
    pub document: Option<Document>,
    /// The template is to refuse it.
    pub refused: bool,
}

impl Request {
    pub(super) fn parent(&self) -> &Value {
        self.fields.get("parent").or(self.fields.get("object")).unwrap_or(&Value::Null)
    }

    /// The observed children, whatever form they are given in.
    pub(super) fn observed(&self) -> Vec<&Value> {
        match self.fields.get("children").or(self.fields.get("attachments")) {
            Some(Value::Array(objects)) => objects.iter().collect(),
            Some(Value::Object(groups)) => {
                groups.values().filter_map(Value::as_object).flat_map(Map::values).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The parent and the observed children of a case, each with its way from the top of the file.
    pub(super) fn objects(&self) -> Vec<(Vec<String>, &Value)> {
        let Some(whole) = self.document.as_ref().map(|document| &document.value) else { return Vec::new() };
        let mut objects = Vec::new();
        let mut field = |name: &str| {
            let value = whole.get(name);
            value.into_iter().for_each(|value| objects.push((vec![name.to_string()], value)));
            value.is_some()
        };
        if !(field("parent") | field("object")) {
            objects.push((Vec::new(), whole));
        }
        for name in ["children", "attachments"] {
            match &whole[name] {
                Value::Array(list) => objects.extend(
                    list.iter()
                        .enumerate()
                        .map(|(index, object)| (vec![name.into(), index.to_string()], object)),
                ),
                Value::Object(groups) => objects.extend(groups.iter().flat_map(|(group, members)| {
                    let members = members.as_object().into_iter().flatten();
                    members.map(|(key, object)| (vec![name.into(), group.clone(), key.clone()], object))
                })),
                _ => {}
            }
        }
        objects
    }

    /// The same request with its children in groups, as the protocol has them.
    pub(super) fn with_groups(&self, groups: Map<String, Value>) -> Request {
        let mut other = self.with(self.parent(), &[]);
        other.fields.insert(self.children_field().into(), groups.into());
        other.body = serde_json::to_vec(&other.fields).expect("JSON is written to memory");
        other
    }

    fn children_field(&self) -> &'static str {
        if self.fields.contains_key("object") { "attachments" } else { "children" }
    }

    /// The same request with another parent and other observed children.
    pub(super) fn with(&self, parent: &Value, observed: &[Value]) -> Request {
        let mut fields = self.fields.clone();
        let parent_field = if fields.contains_key("object") { "object" } else { "parent" };
        fields.insert(parent_field.into(), parent.clone());
        fields.insert(self.children_field().into(), observed.into());
        let body = serde_json::to_vec(&fields).expect("JSON is written to memory");
        let (hook, call, file) = (self.hook.clone(), self.call.clone(), self.file.clone());
        Request { hook, call, file, body, fields, document: None, refused: false }
    }

    /// The same request at another time.
    pub(super) fn at(mut self, now: Timestamp) -> Request {
        self.fields.insert("now".into(), now.to_string().into());
        self.body = serde_json::to_vec(&self.fields).expect("JSON is written to memory");
        self
    }

    /// The time of the request.
    pub(super) fn now(&self) -> Timestamp {
        let stated = self.fields.get("now").and_then(Value::as_str).and_then(|now| now.parse().ok());
        stated.unwrap_or(case::usually_given().now)
    }

    pub(super) fn is_finalizing(&self) -> bool {
        self.call == "finalize" || self.fields.get("finalizing") == Some(&Value::Bool(true))
    }
}

/// The kind that an object says it is of.
pub(in crate::author) fn gvk(object: &Value) -> Gvk {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    Gvk::new(text("apiVersion"), text("kind"))
}

impl Check {
    /// Everything that can be rendered in a hooks folder.
    pub(super) fn requests(&mut self, hooks: &Path) -> io::Result<Vec<Request>> {
        let mut requests = Vec::new();
        for case in case::find(hooks)? {
            let Some(question) = case.question() else { continue };
            let body = match text::read(&question.file) {
                Ok(text) => text.into_bytes(),
                Err(problem) => {
                    self.findings.add(Rule::Syntax, problem);
                    continue;
                }
            };
            let document = document(&question.file, &body);
            let fields = document.as_ref().map(fields).unwrap_or_default();
            requests.push(Request {
                hook: question.hook.into(),
                call: question.call.into(),
                file: question.file.display().to_string(),
                body,
                fields,
                document,
                refused: question.refused,
            });
        }
        for (hook, folder) in case::folders_in(hooks)? {
            let file = folder.join("example.yaml");
            // What cannot be read is told where it is held against its schema.
            if let Ok(text) = text::read(&file) {
                requests.extend(self.example_requests(&hook, &file.display().to_string(), &text));
            }
        }
        Ok(requests)
    }

    /// The parents of an example, as the API server would hand them on.
    fn example_requests(&self, hook: &str, file: &str, text: &str) -> Vec<Request> {
        let calls: Vec<&'static str> =
            self.calls_of(hook).into_iter().filter(|call| *call != "finalize" && !is_review(call)).collect();
        let documents = yaml::read(file, text).unwrap_or_default();
        let parents = documents.iter().filter(|document| self.is_parent(hook, &document.value));
        let requests = parents.flat_map(|document| {
            let parent = self.as_created(document.value.clone());
            calls.iter().map(move |call| (*call, parent.clone())).collect::<Vec<_>>()
        });
        let field = if self.role_of(hook) == Role::Decorator { "object" } else { "parent" };
        requests
            .map(|(call, parent)| {
                let fields = Map::from_iter([(field.to_string(), parent)]);
                Request {
                    hook: hook.into(),
                    call: call.into(),
                    file: file.into(),
                    body: serde_json::to_vec(&fields).expect("JSON is written to memory"),
                    fields,
                    document: None,
                    refused: false,
                }
            })
            .collect()
    }

    fn calls_of(&self, hook: &str) -> Vec<&'static str> {
        let hooks = self.shelf.state().hooks;
        let own = hooks.into_iter().find(|state| state.hook == hook);
        own.into_iter().flat_map(|state| state.calls).map(|call| call.call.name()).collect()
    }

    /// Whether an example is one of the hook's parents, and not an object that it needs beside them.
    pub(super) fn is_parent(&self, hook: &str, object: &Value) -> bool {
        let parents = self.parents(hook);
        if parents.is_empty() { object.is_object() } else { parents.contains(&gvk(object)) }
    }

    /// The kinds of a hook's parents, as far as they are known.
    pub(super) fn parents(&self, hook: &str) -> Vec<Gvk> {
        let called = self.callers(hook);
        let named = called.iter().filter_map(|definition| {
            let parent = &definition.spec.parent.resource;
            Some(self.catalog.resource(&parent.api_version, &parent.resource)?.gvk.clone())
        });
        let mut parents: Vec<Gvk> = Vec::new();
        for parent in named.chain(self.crds.of_hook(hook).cloned()) {
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        parents
    }

    fn role_of(&self, hook: &str) -> Role {
        self.callers(hook).first().map(|definition| definition.spec.role).unwrap_or_default()
    }

    /// The object with its kind's defaults and what the API server adds to any.
    pub(super) fn as_created(&self, object: Value) -> Value {
        created(self.catalog.kind(&gvk(&object)).map(|kind| &**kind), object, case::usually_given().now)
    }
}

/// The body of a case, if it can be read.
fn document(file: &Path, body: &[u8]) -> Option<Document> {
    let text = String::from_utf8_lossy(body);
    yaml::read(&file.display().to_string(), &text).unwrap_or_default().into_iter().next()
}

/// The fields of a request, or of a parent alone.
fn fields(document: &Document) -> Map<String, Value> {
    let Value::Object(fields) = document.value.clone() else { return Map::new() };
    if fields.contains_key("parent") || fields.contains_key("object") {
        return fields;
    }
    Map::from_iter([("parent".to_string(), Value::Object(fields))])
}
