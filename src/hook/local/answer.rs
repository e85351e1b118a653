//! Makes one answer of the documents that a call rendered, and refuses what is no whole and valid one.
//!
//! Whoever prunes by an answer trusts it, so nothing is guessed here: an unknown field, a repeated one, two children of the
//! same name or no document at all is an error with its place.

mod review;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::config::spec::{Decoding, Role};
use crate::hook::local::request::{Asker, Shape, kind_of};
use crate::hook::origin::Origin;
use crate::hook::wire::Call;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::object::name::{Gvk, Key};
use crate::object::validity::{label_key, label_value};
use crate::problem::{Place, Problem, nearest};
use crate::template::Document;

/// What a call answers, with the place of each part in the templates.
#[derive(Debug)]
pub(crate) struct Response {
    call: Call,
    children_field: &'static str,
    children: Vec<Child>,
    /// The other fields, each checked.
    fields: Map<String, Value>,
    origins: HashMap<String, Origin>,
}

/// A wanted child and where it was written: a document of its own, or an element of a `children` list.
#[derive(Debug)]
struct Child {
    object: Map<String, Value>,
    origin: Origin,
}

/// Makes the answer. `file` is where a call that rendered nothing is to be written.
pub(super) fn assemble(documents: Vec<Document>, shape: &Shape, file: &str) -> Result<Response, Problem> {
    if shape.call.is_review() {
        return review::assemble(documents, shape, file);
    }
    if documents.is_empty() {
        return Err(rendered_nothing(shape, file));
    }
    let mut response = Response {
        call: shape.call,
        children_field: shape.children_field(),
        children: Vec::new(),
        fields: Map::new(),
        origins: HashMap::new(),
    };
    for document in documents {
        response.add(document, shape)?;
    }
    check_repeated_children(&response.children, &shape.namespace)?;
    Ok(response)
}

impl Response {
    /// The answer as the protocol has it.
    pub(crate) fn into_value(mut self) -> Value {
        if self.call.is_review() {
            return Value::Object(self.fields);
        }
        let mut answer = Map::new();
        answer.extend(self.fields.shift_remove_entry("status"));
        if self.call != Call::Customize {
            let children = self.children.into_iter().map(|child| Value::Object(child.object)).collect();
            answer.insert(self.children_field.to_string(), Value::Array(children));
        }
        answer.extend(self.fields);
        Value::Object(answer)
    }

    /// The fields beside the children, each with its origin.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Value, &Origin)> {
        self.fields.iter().filter_map(|(name, value)| Some((name.as_str(), value, self.origins.get(name)?)))
    }

    /// The children, each with its origin.
    pub(super) fn children(&self) -> impl Iterator<Item = (Value, &Origin)> {
        self.children.iter().map(|child| (Value::Object(child.object.clone()), &child.origin))
    }

    /// The answer as the controller takes it.
    pub(crate) fn into_answer(mut self) -> Result<Answer, Problem> {
        if self.call.is_review() {
            // Without children it would read as the wish that none be there.
            let name = self.call.name();
            return Err(Problem::new(format!("`{name}` answers the API server, and no controller"))
                .expected("the path of a `sync`, `finalize` or `customize`"));
        }
        let mut answer =
            Answer::from_fields(self.role(), self.call, Decoding::Loose, self.with_list_field())?;
        let desired = |Child { object, origin }| DesiredChild {
            place: Some(origin.place_of(&[])),
            origin: Some(origin),
            object,
        };
        answer.children = self.children.into_iter().map(desired).collect();
        answer.status_origin = self.origins.remove("status");
        answer.related_origin = self.origins.remove("relatedResources");
        Ok(answer)
    }

    fn role(&self) -> Role {
        if self.children_field == "attachments" { Role::Decorator } else { Role::Composite }
    }

    /// The fields, with an empty list of children: the children are handed on beside it.
    fn with_list_field(&mut self) -> Map<String, Value> {
        let mut fields = std::mem::take(&mut self.fields);
        if self.call != Call::Customize {
            fields.insert(self.children_field.into(), Value::Array(Vec::new()));
        }
        fields
    }

    fn add(&mut self, mut document: Document, shape: &Shape) -> Result<(), Problem> {
        match document.value.take() {
            Value::Object(object) if object.contains_key("apiVersion") && object.contains_key("kind") => {
                if shape.call == Call::Customize {
                    return Err(Problem::new("`customize` answers no children")
                        .at(document.place())
                        .expected("`relatedResources`"));
                }
                self.add_child(object, Origin::new(Arc::new(document)))
            }
            Value::Object(fields) => self.add_fields(fields, &Origin::new(Arc::new(document)), shape),
            other => Err(Problem::new("a document is neither a child nor a map of response fields")
                .at(document.place())
                .found(kind_of(&other))
                .expected("a manifest, or fields such as `status`")),
        }
    }

    fn add_child(&mut self, object: Map<String, Value>, origin: Origin) -> Result<(), Problem> {
        check_child(&object, &origin)?;
        self.children.push(Child { object, origin });
        Ok(())
    }

    fn add_fields(
        &mut self,
        fields: Map<String, Value>,
        document: &Origin,
        shape: &Shape,
    ) -> Result<(), Problem> {
        for (name, value) in fields {
            let origin = document.below(&name);
            if let Some(earlier) = self.origins.insert(name.clone(), origin.clone()) {
                return Err(problem(&origin, &[], format!("`{name}` is there twice"))
                    .found(format!("it is also at {}", earlier.place_of(&[]))));
            }
            if name == shape.children_field() && shape.call != Call::Customize {
                self.add_listed(value, &origin)?;
                continue;
            }
            check_field(&name, &value, &origin, shape)?;
            if !value.is_null() {
                self.fields.insert(name, value);
            }
        }
        Ok(())
    }

    /// Children in the protocol's own form.
    fn add_listed(&mut self, value: Value, origin: &Origin) -> Result<(), Problem> {
        let Value::Array(list) = value else {
            let name = self.children_field;
            return Err(wrong_type(origin, &[], &value, "a list")
                .hint(format!("write `{name}: []` when no child is wanted")));
        };
        for (index, value) in list.into_iter().enumerate() {
            let origin = origin.below(index.to_string());
            let Value::Object(object) = value else {
                return Err(wrong_type(&origin, &[], &value, "an object"));
            };
            self.add_child(object, origin)?;
        }
        Ok(())
    }
}

fn problem(origin: &Origin, path: &[&str], message: impl Into<String>) -> Problem {
    Problem::new(message).at(origin.place_of(path))
}

fn wrong_type(origin: &Origin, path: &[&str], found: &Value, expected: &str) -> Problem {
    let message = match dotted(&origin.steps(path)) {
        whole if whole.is_empty() => "the document is of the wrong type".into(),
        path => format!("`{path}` is of the wrong type"),
    };
    problem(origin, path, message).found(kind_of(found)).expected(expected)
}

/// `children[0].metadata.name`.
fn dotted(path: &[&str]) -> String {
    path.iter().enumerate().fold(String::new(), |text, (index, step)| match step.parse::<usize>() {
        Ok(number) => format!("{text}[{number}]"),
        Err(_) if index == 0 => step.to_string(),
        Err(_) => format!("{text}.{step}"),
    })
}

/// Fields that belong to the answer. Under a child's own they are what a forgotten `---` leaves.
const NEVER_A_CHILDS: [&str; 3] = ["status", "resyncAfterSeconds", "finalized"];

fn check_child(object: &Map<String, Value>, origin: &Origin) -> Result<(), Problem> {
    let kind = text(object, "kind", &["kind"], origin)?;
    text(object, "apiVersion", &["apiVersion"], origin)?;
    if let Some(field) = NEVER_A_CHILDS.iter().find(|field| object.contains_key(**field)) {
        return Err(problem(
            origin,
            &[field],
            format!("child `{kind}` holds `{field}`, which is a field of the answer"),
        )
        .hint("put `---` on a line of its own between a child and the answer's fields"));
    }
    if kind == "List" && object.contains_key("items") {
        return Err(problem(origin, &["kind"], "a `List` is no child")
            .hint("give each of its items as a document of its own"));
    }
    let metadata = match object.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(wrong_type(origin, &["metadata"], other, "a map")),
        None => return Err(problem(origin, &[], format!("child `{kind}` has no `metadata`"))),
    };
    if metadata.contains_key("generateName") && !metadata.contains_key("name") {
        return Err(problem(
            origin,
            &["metadata", "generateName"],
            format!("child `{kind}` has a generated name"),
        )
        .expected("`metadata.name`")
        .hint("under a generated name it would be made anew at every sync"));
    }
    text(metadata, "name", &["metadata", "name"], origin)?;
    match metadata.get("namespace") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(other) => return Err(wrong_type(origin, &["metadata", "namespace"], other, "a text")),
    }
    for field in ["labels", "annotations"] {
        if let Some(texts) = metadata.get(field) {
            check_texts(texts, &origin.below("metadata").below(field))?;
        }
    }
    Ok(())
}

/// The text at `path`, whose last step is `key` in `object`.
fn text<'a>(
    object: &'a Map<String, Value>,
    key: &str,
    path: &[&str],
    origin: &Origin,
) -> Result<&'a str, Problem> {
    match object.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) => Err(problem(origin, path, format!("`{}` is empty", dotted(path)))),
        Some(other @ (Value::Number(_) | Value::Bool(_))) => {
            Err(wrong_type(origin, path, other, "a text").hint("put it in quotes"))
        }
        Some(other) => Err(wrong_type(origin, path, other, "a text")),
        None => {
            let parents = &path[..path.len() - 1];
            Err(problem(origin, parents, format!("a child has no `{}`", dotted(path))))
        }
    }
}

/// Labels and annotations hold texts. The API server answers any other type with a 500 and without a place.
fn check_texts(texts: &Value, origin: &Origin) -> Result<(), Problem> {
    let texts = match texts {
        Value::Null => return Ok(()),
        Value::Object(texts) => texts,
        other => return Err(wrong_type(origin, &[], other, "a map")),
    };
    match texts.iter().find(|(_, text)| !matches!(text, Value::String(_) | Value::Null)) {
        None => Ok(()),
        Some((name, other @ (Value::Number(_) | Value::Bool(_)))) => {
            Err(wrong_type(origin, &[name], other, "a text").hint("put it in quotes"))
        }
        Some((name, other)) => Err(wrong_type(origin, &[name], other, "a text")),
    }
}

fn check_field(name: &str, value: &Value, origin: &Origin, shape: &Shape) -> Result<(), Problem> {
    let known = shape.fields();
    if !known.contains(&name) {
        return Err(unknown_field(name, origin, &known));
    }
    match (name, value) {
        ("status", Value::Object(status)) => check_status(status, origin),
        ("status", Value::Null) if shape.asker == Asker::Decorator => Ok(()),
        ("status", other) => {
            Err(wrong_type(origin, &[], other, "a map").hint("write `status: {}` for an empty one"))
        }
        ("resyncAfterSeconds", Value::Number(number)) => {
            let seconds = number.as_f64().unwrap_or(f64::NAN);
            match Duration::try_from_secs_f64(seconds) {
                Ok(_) => Ok(()),
                Err(_) => Err(problem(origin, &[], "`resyncAfterSeconds` is no delay")
                    .found(format!("`{number}`"))
                    .expected("a number of seconds, 0 or more")),
            }
        }
        ("resyncAfterSeconds", other) => Err(wrong_type(origin, &[], other, "a number of seconds")),
        // It would say nothing, and whoever writes it means another call: one that wants no children any more.
        ("finalized", Value::Bool(true)) if !shape.finalizing => Err(problem(
            origin,
            &[],
            "`finalized: true` is the answer to a parent that is being deleted",
        )
        .found("a parent that lives")
        .hint("write it in `finalize.yaml`; where one template answers both, `finalized: {{ finalizing }}`")),
        ("finalized", Value::Bool(_)) => Ok(()),
        ("finalized", other) => Err(wrong_type(origin, &[], other, "`true` or `false`")),
        ("relatedResources", list) => check_related(list, origin),
        ("labels" | "annotations", marks) => {
            check_texts(marks, origin)?;
            check_marks(name, marks, origin)
        }
        _ => check_texts(value, origin),
    }
}

/// What a decorator puts on its object is refused by the API server as a whole where one of it is wrong.
fn check_marks(name: &str, marks: &Value, origin: &Origin) -> Result<(), Problem> {
    for (key, value) in marks.as_object().into_iter().flatten() {
        if let Err(why) = label_key(key) {
            return Err(problem(origin, &[key], format!("`{name}`: the key `{key}` {why}")));
        }
        let text = value.as_str().filter(|_| name == "labels").unwrap_or_default();
        if let Err(why) = label_value(text) {
            let problem = problem(origin, &[key], format!("`labels.{key}`: the value `{text}` {why}"));
            return Err(problem.hint("`dns_name(…, max=63)` makes a value of any text"));
        }
    }
    Ok(())
}

/// A forgotten `---` also puts a whole child into the status.
fn check_status(status: &Map<String, Value>, origin: &Origin) -> Result<(), Problem> {
    if ["apiVersion", "kind", "metadata"].iter().all(|key| status.contains_key(*key)) {
        return Err(problem(origin, &["apiVersion"], "`status` holds a child")
            .hint("put `---` on a line of its own before the child, and begin its lines at the margin"));
    }
    Ok(())
}

fn check_related(list: &Value, origin: &Origin) -> Result<(), Problem> {
    if !list.is_array() {
        return Err(
            wrong_type(origin, &[], list, "a list").hint("write `relatedResources: []` when none is wanted")
        );
    }
    let fields = Map::from_iter([("relatedResources".to_string(), list.clone())]);
    let place = |problem: Problem| {
        let index =
            problem.message.split_once("relatedResources[").and_then(|(_, rest)| rest.split(']').next());
        let place = origin.place_of(&index.into_iter().collect::<Vec<_>>());
        problem.at(place)
    };
    Answer::from_fields(Role::Composite, Call::Customize, Decoding::Strict, fields).map(drop).map_err(place)
}

fn unknown_field(name: &str, origin: &Origin, known: &[&str]) -> Problem {
    let problem = problem(origin, &[], format!("unknown response field `{name}`"));
    if known == ["defaults"] {
        return problem.hint("put what is to be filled in below `defaults:`");
    }
    let has_children = known.contains(&"children") || known.contains(&"attachments");
    if has_children && matches!(name, "apiVersion" | "kind" | "metadata" | "spec") {
        return problem.hint("a child needs both `apiVersion` and `kind`");
    }
    match nearest(name, known.iter().copied()) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.expected(known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// Whether a template was refused for what only a decorator's is given, or may answer.
pub(super) fn is_decorators(refused: &Problem) -> bool {
    let asks = ["object", "attachments"].map(|name| format!("`{name}` is not given to this call"));
    let answers =
        ["labels", "annotations", "attachments"].map(|name| format!("unknown response field `{name}`"));
    asks.iter().chain(&answers).any(|message| refused.message == *message)
}

/// The API server has one object for each group, kind, namespace and name, so the last child would win, and fight.
fn check_repeated_children(children: &[Child], namespace: &str) -> Result<(), Problem> {
    let mut seen: HashMap<(Gvk, &str, &str), &Origin> = HashMap::with_capacity(children.len());
    for Child { object, origin } in children {
        let kind = Gvk::new(text_in(object, "apiVersion"), text_in(object, "kind"));
        let metadata = object["metadata"].as_object().expect("a checked child has metadata");
        let own = Some(text_in(metadata, "namespace")).filter(|own| !own.is_empty()).unwrap_or(namespace);
        let name = text_in(metadata, "name");
        let said = format!("{} `{}`", kind.kind, Key::new(own, name));
        let same = Gvk { version: String::new(), ..kind };
        if let Some(earlier) = seen.insert((same, own, name), origin) {
            return Err(problem(origin, &["metadata", "name"], format!("child {said} is there twice"))
                .found(format!("it is also at {}", earlier.place_of(&["metadata", "name"]))));
        }
    }
    Ok(())
}

fn text_in<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn rendered_nothing(shape: &Shape, file: &str) -> Problem {
    let name = shape.children_field();
    let nothing = Problem::new("rendered nothing: not a single document").at(Place {
        file: file.into(),
        line: 1,
        column: 1,
    });
    if shape.call == Call::Convert {
        return nothing.expected("fields of the object in its other version, such as `spec`");
    }
    if shape.call == Call::Finalize {
        return nothing
            .expected("a child that is still needed, or a field of the answer")
            .hint("write `finalized: true` where nothing is left to be done, or the parent stays for ever");
    }
    if shape.call == Call::Customize {
        return nothing
            .expected("`relatedResources`")
            .hint("write `relatedResources: []` to say that none is wanted");
    }
    nothing
        .expected("a child, or a field of the answer")
        .hint(format!("write `{name}: []` to say that none is wanted"))
}

impl Shape {
    fn children_field(&self) -> &'static str {
        match self.asker {
            Asker::Composite => "children",
            Asker::Decorator => "attachments",
        }
    }

    /// The fields of an answer to this request.
    fn fields(&self) -> Vec<&'static str> {
        match (self.call, self.asker) {
            (Call::Customize, _) => vec!["relatedResources"],
            (_, Asker::Composite) => vec!["status", "children", "resyncAfterSeconds", "finalized"],
            (_, Asker::Decorator) => {
                vec!["status", "attachments", "labels", "annotations", "resyncAfterSeconds", "finalized"]
            }
        }
    }
}
