//! What a controller is: definitions out of `controllers.yaml` or out of the cluster's custom resources.
//!
//! Pure: reads no file and no cluster, looks no resource up. Whether a kind exists is found out by `cluster`.

pub(crate) mod json_schema;
mod manifest;
pub(crate) mod marks;
mod meaning;
#[cfg(test)]
mod mutations;
pub(crate) mod schema;
pub(crate) mod spec;
#[cfg(test)]
mod tests;
mod webhook;

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::config::manifest::{CompositeSpec, DecoratorSpec};
use crate::config::schema::{Fault, Path, Unknown};
use crate::config::spec::{Role, Spec};
use crate::object::validity;
use crate::problem::{Place, Problem, nearest, shown};
use crate::template::yaml;

/// What definitions are written in.
pub(crate) const API_VERSION: &str = "metacontroller.k8s.io/v1alpha1";

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File,
    Cluster,
}

/// One controller: what was written, and what it means. A DecoratorController makes one for each of its resources.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub name: String,
    pub spec: Spec,
    /// The complete object as hooks are sent it under `controller`.
    pub raw: Value,
    /// The text of `raw`.
    pub json: Box<RawValue>,
}

impl Definition {
    /// Tells one definition from all others.
    pub(crate) fn id(&self) -> String {
        match self.spec.role {
            Role::Composite => self.name.clone(),
            // No name has a slash in it.
            Role::Decorator => format!("{}/{}", self.name, self.spec.parent.resource),
        }
    }

    /// Whether there can be a parent that both have, whose status both would write.
    pub(crate) fn shares_parents_with(&self, other: &Definition) -> bool {
        let (one, two) = (&self.spec, &other.spec);
        let kind =
            |spec: &Spec| (spec.parent.resource.group().to_string(), spec.parent.resource.resource.clone());
        one.role == Role::Composite
            && two.role == Role::Composite
            && self.name != other.name
            && kind(one) == kind(two)
            && !one.parent.selector.excludes(&two.parent.selector)
    }

    /// The definitions in a custom resource. Unknown fields are let pass: the API server has dealt with them.
    pub(crate) fn from_object(object: Value) -> Result<Vec<Definition>, Vec<Problem>> {
        read(object, Source::Cluster)
            .map_err(|faults| faults.into_iter().map(|fault| fault.problem).collect())
    }
}

/// The definitions in the text of a file that is called `file` in problems. All problems are reported at once.
pub(crate) fn load(file: &str, text: &str) -> Result<Vec<Definition>, Vec<Problem>> {
    let documents = yaml::read(file, text).map_err(|problem| vec![problem])?;
    let mut loaded = Loaded { text, named: BTreeMap::new(), definitions: Vec::new(), problems: Vec::new() };
    documents.iter().for_each(|document| loaded.add_document(document));
    if loaded.problems.is_empty() { Ok(loaded.definitions) } else { Err(loaded.problems) }
}

/// Whether a text has nothing in it, not even an empty list: what a save that was cut short leaves.
pub(crate) fn is_blank(text: &str) -> bool {
    let documents = yaml::read("", text).unwrap_or_default();
    documents.iter().all(|document| document.value.is_null())
}

struct Loaded<'t> {
    text: &'t str,
    /// Where each name was used first.
    named: BTreeMap<(Role, String), Option<Place>>,
    definitions: Vec<Definition>,
    problems: Vec<Problem>,
}

impl Loaded<'_> {
    /// A manifest, or a list of them as `kubectl get -o yaml` prints it.
    fn add_document(&mut self, document: &yaml::Document) {
        let (root, items) = (Path::default(), Path::default().key("items"));
        if !matches!(
            document.value["kind"].as_str(),
            Some("List" | "CompositeControllerList" | "DecoratorControllerList")
        ) {
            return self.add(document, &root);
        }
        match &document.value["items"] {
            Value::Array(list) => (0..list.len()).for_each(|index| self.add(document, &items.index(index))),
            other => {
                let problem = Problem::new(format!("`items` is {}", shown(other))).expected("a list");
                self.fault(document, &root, Fault::new(&items, problem));
            }
        }
    }

    /// The manifest at this path of the document.
    fn add(&mut self, document: &yaml::Document, at: &Path) {
        let manifest = at.find(&document.value).cloned().unwrap_or_default();
        let definitions = match read(manifest, Source::File) {
            Ok(definitions) => definitions,
            Err(faults) => return faults.into_iter().for_each(|fault| self.fault(document, at, fault)),
        };
        let name = Path::default().key("metadata").key("name");
        let Some(definition) = definitions.first() else { return };
        let id = (definition.spec.role, definition.name.clone());
        if let Some(first) = self.named.get(&id) {
            let mut problem = Problem::new(format!("two definitions are called `{}`", definition.name));
            problem.found = first.as_ref().map(|place| format!("the first one at {place}"));
            return self.fault(document, at, Fault::new(&name, problem));
        }
        self.named.insert(id, place(document, &at.join(&name)));
        self.definitions.extend(definitions);
    }

    fn fault(&mut self, document: &yaml::Document, at: &Path, fault: Fault) {
        let path = at.join(&fault.path);
        // A field's place is its key's, and an item's is where the item begins.
        let width = path.last_key().map_or(1, |key| key.chars().count());
        self.problems.push(match place(document, &path) {
            Some(place) => fault.problem.at(place).with_source(self.text, width),
            None => fault.problem,
        });
    }
}

fn place(document: &yaml::Document, path: &Path) -> Option<Place> {
    let steps = path.steps();
    document.places.place(&steps.iter().map(String::as_str).collect::<Vec<_>>())
}

fn read(mut object: Value, source: Source) -> Result<Vec<Definition>, Vec<Fault>> {
    let (role, name) = identity(&mut object).map_err(|fault| vec![fault])?;
    let schema = schema::schema_of(role.kind()).expect("the program carries its own CRDs");
    let unknown = if source == Source::File { Unknown::Refused } else { Unknown::Ignored };
    let faults = schema::check(schema, &object, unknown);
    if !faults.is_empty() {
        return Err(faults);
    }
    schema::fill(schema, &mut object);
    let specs = match role {
        Role::Composite => vec![meaning::composite(&name, written::<CompositeSpec>(&object)?)?],
        Role::Decorator => meaning::decorator(&name, written::<DecoratorSpec>(&object)?)?,
    };
    show_as_the_api_does(&mut object);
    let json = serde_json::value::to_raw_value(&object).expect("a JSON value has a text");
    let definition = |spec| Definition { name: name.clone(), spec, raw: object.clone(), json: json.clone() };
    Ok(specs.into_iter().map(definition).collect())
}

fn written<T: serde::de::DeserializeOwned>(object: &Value) -> Result<T, Vec<Fault>> {
    serde_json::from_value(object["spec"].clone()).map_err(|error| vec![unreadable(&error)])
}

/// Checks that this is a definition at all, and gives its role and its name.
fn identity(object: &mut Value) -> Result<(Role, String), Fault> {
    let root = Path::default();
    let Value::Object(fields) = object else {
        let problem = Problem::new(format!("the document is {}", shown(object)));
        return Err(Fault::new(&root, problem.expected("a CompositeController or a DecoratorController")));
    };
    let kinds = [Role::Composite, Role::Decorator].map(Role::kind);
    let meant = fields.get("kind").and_then(Value::as_str).and_then(|kind| nearest(kind, kinds));
    if let Some(problem) = something_else(fields).filter(|_| meant.is_none()) {
        return Err(Fault::new(&root.key("kind"), problem));
    }
    let role = if meant == Some(Role::Decorator.kind()) { Role::Decorator } else { Role::Composite };
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", role.kind())] {
        match fields.get(key) {
            Some(Value::String(text)) if text == wanted => {}
            Some(other) => {
                let problem =
                    Problem::new(format!("`{key}` is {}", shown(other))).expected(format!("`{wanted}`"));
                return Err(Fault::new(&root.key(key), problem));
            }
            None => {
                let problem = Problem::new(format!("`{key}` is missing")).expected(format!("`{wanted}`"));
                return Err(Fault::new(&root, problem));
            }
        }
    }
    let at = root.key("metadata").key("name");
    match fields.get("metadata").and_then(|metadata| metadata.get("name")) {
        Some(Value::String(name)) => match validity::dns_subdomain(name) {
            Ok(()) => Ok((role, name.clone())),
            Err(why) => {
                Err(Fault::new(&at, Problem::new(format!("`metadata.name` is `{name}`, which {why}"))))
            }
        },
        Some(other) => {
            let problem = Problem::new(format!("`metadata.name` is {}", shown(other)));
            Err(Fault::new(&at, problem.expected("a text")))
        }
        None => Err(Fault::new(&at, Problem::new("`metadata.name` is missing"))),
    }
}

/// A manifest that was taken for a definition: another file was meant.
fn something_else(fields: &Map<String, Value>) -> Option<Problem> {
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let (kind, api_version) = (text("kind")?, text("apiVersion")?);
    let of_controllers = api_version.split('/').next() == API_VERSION.split('/').next();
    (!of_controllers).then(|| {
        Problem::new(format!("this is a {kind}, and no definition of a controller"))
            .expected("a CompositeController or a DecoratorController")
    })
}

/// The checked shape should always be readable; if it is not, the reader and the schema disagree.
fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::new(&Path::default().key("spec"), Problem::new(format!("`spec` can't be read: {error}")))
}

/// Existing hooks are used to a `status`, and to `statusChecks` in every update strategy.
fn show_as_the_api_does(object: &mut Value) {
    object["status"] = json!({});
    let rules = object["spec"].get_mut("childResources").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        if let Some(strategy) = rule.get_mut("updateStrategy").and_then(Value::as_object_mut) {
            strategy.entry("statusChecks").or_insert_with(|| Value::Object(Map::new()));
        }
    }
}
