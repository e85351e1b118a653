//! JSON as templates see it: every value knows the path by which it was reached, and a field that is not there becomes
//! an absent value that remembers its path.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use minijinja::{Error, State};
use serde_json::Value as Json;

use crate::problem::nearest;
use crate::template::fault::{Fault, Guarded, Subject};

/// A map or a list inside the JSON that a render was given.
#[derive(Clone)]
pub(in crate::template) struct Data {
    root: Arc<Root>,
    path: Path,
}

/// One value of a context, shared by every `Data` below it.
struct Root {
    name: String,
    json: Json,
    /// Long texts become template values once, not at every look: by the address of the text in `json`.
    texts: Mutex<HashMap<usize, Arc<str>>>,
}

/// The steps from a root, nearest last; shared with the paths that go on from here.
#[derive(Clone, Default)]
struct Path(Option<Arc<Step>>);

struct Step {
    above: Path,
    key: Key,
}

#[derive(Clone)]
enum Key {
    /// After a dot.
    Field(String),
    /// In brackets: the author wrote it, or a value did.
    Item(String),
    Index(usize),
}

/// A field that is not there, or anything below it.
#[derive(Clone)]
pub(in crate::template) struct Absent(Lookup);

#[derive(Clone)]
enum Lookup {
    /// The first key on the way that `container` does not have.
    Field { container: Data, key: Key },
    /// An object that was looked for by a call, as the author wrote it, and the names that exist.
    Call { text: String, wanted: String, names: Vec<String> },
}

/// A text of this length or more is kept once for all looks at it.
const LONG_TEXT: usize = 256;

/// JSON as a template value. `name` is how messages call it when a field of it is absent.
pub(in crate::template) fn from_json(json: Json, name: &str) -> Value {
    let root = Root { name: name.to_string(), json, texts: Mutex::default() };
    Data { root: Arc::new(root), path: Path::default() }.value()
}

impl Data {
    pub(in crate::template) fn json(&self) -> &Json {
        self.path.of(&self.root.json)
    }

    /// The value at this path: scalars as such, maps and lists as data.
    fn value(self) -> Value {
        match self.json() {
            Json::Null => Value::from(()),
            Json::Bool(value) => Value::from(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) => Value::from(integer),
                (None, Some(integer)) => Value::from(integer),
                (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) if text.len() < LONG_TEXT => Value::from(text.as_str()),
            Json::String(text) => Value::from(self.root.long_text(text)),
            Json::Array(_) | Json::Object(_) => Value::from_object(self),
        }
    }

    fn step(&self, key: Key) -> Data {
        let step = Step { above: self.path.clone(), key };
        Data { root: self.root.clone(), path: Path(Some(Arc::new(step))) }
    }

    /// The value under `name`, or absence.
    pub(in crate::template) fn field(&self, name: &str) -> Value {
        self.at(name, Key::Field(name.to_string()))
    }

    fn at(&self, name: &str, key: Key) -> Value {
        match self.json() {
            Json::Object(map) if map.contains_key(name) => self.step(key).value(),
            _ => self.absent(key),
        }
    }

    fn item(&self, index: usize) -> Value {
        match self.json() {
            Json::Array(items) if index < items.len() => self.step(Key::Index(index)).value(),
            _ => self.absent(Key::Index(index)),
        }
    }

    fn absent(&self, key: Key) -> Value {
        Value::from_object(Absent(Lookup::Field { container: self.clone(), key }))
    }

    /// The path as an author would write it: `parent.spec["a b"][0]`.
    fn shown(&self) -> String {
        self.path.shown(&self.root.name)
    }

    /// The keys of a map in their order.
    pub(in crate::template) fn keys(&self) -> Vec<&str> {
        match self.json() {
            Json::Object(map) => map.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

impl Root {
    fn long_text(&self, text: &str) -> Arc<str> {
        let mut texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        texts.entry(text.as_ptr().addr()).or_insert_with(|| text.into()).clone()
    }
}

impl Path {
    fn of<'j>(&self, root: &'j Json) -> &'j Json {
        let Some(step) = &self.0 else { return root };
        let above = step.above.of(root);
        match &step.key {
            Key::Field(name) | Key::Item(name) => &above[name.as_str()],
            Key::Index(index) => &above[*index],
        }
    }

    fn ends_in(&self, name: &str) -> bool {
        let last = self.0.as_ref().map(|step| &step.key);
        matches!(last, Some(Key::Field(last) | Key::Item(last)) if last == name)
    }

    fn shown(&self, root: &str) -> String {
        match &self.0 {
            None => root.to_string(),
            Some(step) => step.above.shown(root) + &step.key.shown(),
        }
    }
}

impl Key {
    fn shown(&self) -> String {
        match self {
            Key::Index(index) => format!("[{index}]"),
            Key::Field(name) | Key::Item(name) if is_name(name) => format!(".{name}"),
            Key::Field(name) | Key::Item(name) => format!("[{name:?}]"),
        }
    }
}

/// Whether the text can be written after a dot.
pub(in crate::template) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Object for Data {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.json().is_array() { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if let Some(name) = key.as_str() {
            return Some(self.at(name, Key::Item(name.to_string())));
        }
        match key.as_usize().filter(|_| self.json().is_array()) {
            Some(index) => Some(self.item(index)),
            None => Some(self.absent(Key::Item(key.to_string()))),
        }
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        Some(self.field(key))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.json() {
            Json::Array(items) => Enumerator::Seq(items.len()),
            _ => Enumerator::Values(self.keys().into_iter().map(Value::from).collect()),
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        match self.json() {
            Json::Array(items) => Some(items.len()),
            Json::Object(map) => Some(map.len()),
            _ => Some(0),
        }
    }
}

impl Absent {
    /// An object that `text` (a call, as the author wrote it) did not find among `names`.
    pub(in crate::template) fn call(text: String, wanted: &str, names: Vec<String>) -> Value {
        Value::from_object(Absent(Lookup::Call { text, wanted: wanted.to_string(), names }))
    }

    /// What is said when an absent value is used where only a value will do.
    pub(in crate::template) fn fault(&self) -> Fault {
        match &self.0 {
            Lookup::Field { container, key } => {
                let path = container.shown() + &key.shown();
                let mut fault = Fault::new(format!("`{path}` is absent")).hint(field_hint(container, key));
                if let Key::Item(name) = key {
                    let message = format!("`{}[…]` is absent", container.shown());
                    fault.guarded = Some(Guarded { word: name.clone(), message });
                }
                fault
            }
            Lookup::Call { text, wanted, names } => {
                let hint = match nearest(wanted, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "it does not exist yet; ask with `is defined`, or write `| default(…)`".into(),
                };
                Fault::new(format!("`{text}` is absent")).hint(hint)
            }
        }
    }
}

/// What the API server puts into the metadata of every object, and files leave out.
const GIVEN_BY_THE_SERVER: [&str; 4] = ["uid", "creationTimestamp", "generation", "resourceVersion"];

fn field_hint(container: &Data, key: &Key) -> String {
    const MOST_KEYS: usize = 8;
    let known = container.keys();
    if let Key::Field(name) | Key::Item(name) = key
        && GIVEN_BY_THE_SERVER.contains(&name.as_str())
        && container.path.ends_in("metadata")
    {
        return "in a cluster every object has it: write it into this one".into();
    }
    match (container.json(), key) {
        (Json::Array(items), Key::Index(_)) => format!("the list has {}", count(items.len(), "item")),
        (Json::Array(_), Key::Field(_) | Key::Item(_)) => {
            format!("`{}` is a list; take one item, or loop over it", container.shown())
        }
        (_, Key::Field(name) | Key::Item(name)) if nearest(name, known.iter().copied()).is_some() => {
            format!("did you mean `{}`?", nearest(name, known.iter().copied()).unwrap_or_default())
        }
        (Json::Object(fields), Key::Field(name)) if holder(fields, name).is_some() => {
            format!("did you mean `{}.{name}`?", holder(fields, name).unwrap_or_default())
        }
        _ if known.is_empty() => {
            format!("`{}` is empty; where that may be, write `| default(…)`", container.shown())
        }
        _ if known.len() > MOST_KEYS => "where it may be missing, write `| default(…)`".into(),
        _ => {
            let keys: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
            format!("it has {}; where one may be missing, write `| default(…)`", keys.join(", "))
        }
    }
}

/// The field that has a field of that name.
fn holder<'f>(fields: &'f serde_json::Map<String, Json>, name: &str) -> Option<&'f str> {
    fields.iter().find(|(_, inner)| inner.get(name).is_some()).map(|(field, _)| field.as_str())
}

pub(in crate::template) fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

impl Object for Absent {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    /// Below what is absent everything is, and the first absent path is the one to tell of.
    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(Value::from_dyn_object(self.clone()))
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let refusal = Value::from(Error::from(self.fault()));
        Enumerator::Iter(Box::new(std::iter::once(refusal)))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        None
    }

    fn call(self: &Arc<Self>, _: &mut State, _: &[Value]) -> Result<Value, Error> {
        Err(self.fault().into())
    }

    fn call_method(self: &Arc<Self>, _: &mut State, _: &str, _: &[Value]) -> Result<Value, Error> {
        Err(self.fault().about_its(Subject::Receiver).into())
    }
}

/// Never the data itself: debug output ends in logs.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.shown())
    }
}

impl fmt::Debug for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<absent>")
    }
}
