//! What could come: fields of the spec that an example leaves out, each filled in, and all of them at once.
//!
//! The values are the schema's, and seldom sensible: only what holds whatever they are is told.

use serde_json::{Map, Value};

use crate::author::check::Check;
use crate::author::check::children::place;
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::author::parents::example;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;
use crate::schema::{Whole, dotted};

/// Fields of one parent that are filled in. A larger schema is looked at in part.
const MOST_FIELDS: usize = 100;
/// Maps in maps deeper than this are left out.
const DEPTH: usize = 6;

impl Check {
    /// Children that come only where an optional field is set.
    pub(super) fn absent_fields(&mut self, request: &Request) {
        let example = self.shelf.root().join(&request.hook).join("example.yaml");
        if request.document.is_some() && example.is_file() {
            return;
        }
        let own = gvk(request.parent());
        let (Some(kind), Some(schema)) = (self.catalog.kind(&own).cloned(), self.crds.schema(&own)) else {
            return;
        };
        let fields = absent(&schema["properties"]["spec"], &request.parent()["spec"], DEPTH);
        let fields: Vec<Field> = fields.into_iter().take(MOST_FIELDS).collect();
        let alone = fields.iter().map(|field| (dotted(&in_spec(field)), filled(request.parent(), [field])));
        let together = ("the other fields of the spec".into(), filled(request.parent(), &fields));
        let before = kind.misfits(request.parent(), Whole::Yes).len();
        let parents: Vec<(String, Value)> = alone.chain([together]).collect();
        for (set, parent) in parents {
            if kind.misfits(&parent, Whole::Yes).len() > before {
                continue;
            }
            let observed: Vec<Value> = request.observed().into_iter().cloned().collect();
            let Some(answer) = self.asked_again(&request.with(&parent, &observed)) else { continue };
            self.possible(request, &answer, &set);
        }
    }

    fn possible(&mut self, request: &Request, answer: &Answer, set: &str) {
        for child in &answer.children {
            for (rule, path, problem) in self.whatever_the_values(request, child) {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let message = match set.starts_with("spec") {
                    true => format!("{}, once `parent.{set}` is set", problem.message),
                    false => format!("{}, once {set} are set", problem.message),
                };
                let problem = Problem { message, place: Some(place(child, &path)), ..problem };
                self.findings.add_seen(rule, problem, &request.file);
            }
        }
    }

    fn whatever_the_values(
        &mut self,
        request: &Request,
        child: &DesiredChild,
    ) -> Vec<(Rule, Vec<String>, Problem)> {
        let object = Value::Object(child.object.clone());
        let own = gvk(&object);
        let undeclared = self.declared(&request.hook, &own).err();
        let undeclared = undeclared.map(|problem| (Rule::UndeclaredKind, vec!["kind".to_string()], problem));
        let sure = |rule: &Rule| {
            matches!(rule, Rule::UnknownKind | Rule::UnknownField | Rule::MissingField | Rule::RepeatedKey)
        };
        let misfits = self.misfits(&own, &object, Whole::Yes, child).into_iter();
        undeclared.into_iter().chain(misfits.filter(|(rule, ..)| sure(rule))).collect()
    }
}

/// A field that is not there, and a value for it.
type Field = (Vec<String>, Value);

fn in_spec((path, _): &Field) -> Vec<String> {
    std::iter::once("spec".to_string()).chain(path.iter().cloned()).collect()
}

/// The fields that a schema has and a map lacks, in the maps that are there, too.
fn absent(schema: &Value, given: &Value, depth: usize) -> Vec<Field> {
    let mut fields = Vec::new();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        match given.get(name) {
            None => fields.push((vec![name.clone()], whole(inner, depth))),
            Some(given) if depth > 0 => {
                let below = absent(inner, given, depth - 1).into_iter();
                fields.extend(below.map(|(path, value)| ([&[name.clone()][..], &path].concat(), value)));
            }
            Some(_) => {}
        }
    }
    fields
}

/// A value with all fields that its schema has.
fn whole(schema: &Value, depth: usize) -> Value {
    let properties = schema["properties"].as_object().filter(|_| depth > 0 && schema["default"].is_null());
    let Some(properties) = properties else { return one_item(schema, depth) };
    let fields = properties.iter().map(|(name, inner)| (name.clone(), whole(inner, depth - 1)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// A list of one item, and a truth that is true: what is empty or false changes little.
fn one_item(schema: &Value, depth: usize) -> Value {
    match schema["type"].as_str() {
        Some("array") if depth > 0 && schema["items"].is_object() => {
            Value::Array(vec![whole(&schema["items"], depth - 1)])
        }
        Some("boolean") => Value::Bool(true),
        _ => example::required(schema),
    }
}

/// The parent with fields filled in.
fn filled<'a>(parent: &Value, fields: impl IntoIterator<Item = &'a Field>) -> Value {
    let mut parent = parent.clone();
    for (path, value) in fields {
        let (last, way) = path.split_last().expect("a field has a name");
        let spec = &mut parent["spec"];
        let map = way.iter().fold(spec, |map, step| &mut map[step.as_str()]);
        if map.is_object() || map.is_null() {
            map[last.as_str()] = value.clone();
        }
    }
    parent
}
