//! What a controller is: definitions out of `controllers.yaml` or out of the cluster's custom resources.
//!
//! Pure: reads no file and no cluster, looks no resource up. Whether a kind exists is found out by `cluster`.

mod duration;
mod manifest;
pub(crate) mod schema;
pub(crate) mod spec;

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::config::schema::{Fault, Path, Unknown};
use crate::config::spec::CompositeSpec;
use crate::object::validity;
use crate::problem::{Place, Problem, shown};
use crate::template::yaml;

const API_VERSION: &str = "metacontroller.k8s.io/v1alpha1";
const COMPOSITE: &str = "CompositeController";

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File,
    Cluster,
}

/// One controller: a CompositeController as written, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub name: String,
    pub source: Source,
    /// `metadata.generation`; 0 in a file.
    pub generation: i64,
    pub spec: CompositeSpec,
    /// The complete object as hooks are sent it under `controller`.
    pub raw: Value,
    /// The text of `raw`.
    pub json: Box<RawValue>,
}

impl Definition {
    /// The definition in a custom resource. Unknown fields are let pass: the API server has dealt with them.
    pub(crate) fn from_object(object: Value) -> Result<Definition, Vec<Problem>> {
        read(object, Source::Cluster)
            .map_err(|faults| faults.into_iter().map(|fault| fault.problem).collect())
    }

    /// Whether a controller that runs by `other` already does what this definition says.
    pub(crate) fn means_the_same(&self, other: &Definition) -> bool {
        self.spec == other.spec
    }
}

/// The definitions in the text of a file that is called `file` in problems. All problems are reported at once.
pub(crate) fn load(file: &str, text: &str) -> Result<Vec<Definition>, Vec<Problem>> {
    let documents = yaml::read(file, text).map_err(|problem| vec![problem])?;
    let mut loaded = Loaded { text, named: BTreeMap::new(), definitions: Vec::new(), problems: Vec::new() };
    for document in documents {
        loaded.add_document(document);
    }
    if loaded.problems.is_empty() { Ok(loaded.definitions) } else { Err(loaded.problems) }
}

struct Loaded<'t> {
    text: &'t str,
    /// Where each name was used first.
    named: BTreeMap<String, Option<Place>>,
    definitions: Vec<Definition>,
    problems: Vec<Problem>,
}

impl Loaded<'_> {
    /// A manifest, or a list of them as `kubectl get -o yaml` prints it.
    fn add_document(&mut self, document: yaml::Document) {
        let yaml::Document { value, places } = document;
        let kind = value["kind"].as_str().unwrap_or_default();
        match value {
            Value::Object(mut list) if kind == "List" || kind == "CompositeControllerList" => {
                let items = list.shift_remove("items").unwrap_or_default();
                let at = Path::default().key("items");
                let Value::Array(items) = items else {
                    let problem = Problem::new(format!("`items` is {}", shown(&items))).expected("a list");
                    return self.fault(&places, &Path::default(), Fault { path: at, problem });
                };
                for (index, item) in items.into_iter().enumerate() {
                    self.add(item, &places, &at.index(index));
                }
            }
            manifest => self.add(manifest, &places, &Path::default()),
        }
    }

    fn add(&mut self, manifest: Value, places: &yaml::Places, at: &Path) {
        let definition = match read(manifest, Source::File) {
            Ok(definition) => definition,
            Err(faults) => return faults.into_iter().for_each(|fault| self.fault(places, at, fault)),
        };
        let path = Path::default().key("metadata").key("name");
        let place = place(places, at, &path);
        if let Some(first) = self.named.get(&definition.name) {
            let first =
                first.as_ref().map(|place| format!(", first in line {}", place.line)).unwrap_or_default();
            let problem = Problem::new(format!("two definitions are called `{}`{first}", definition.name));
            return self.fault(places, at, Fault { path, problem });
        }
        self.named.insert(definition.name.clone(), place);
        self.definitions.push(definition);
    }

    fn fault(&mut self, places: &yaml::Places, at: &Path, fault: Fault) {
        let mut problem = fault.problem;
        if let Some(place) = place(places, at, &fault.path) {
            problem = problem.at(place).with_source(self.text, 1);
        }
        self.problems.push(problem);
    }
}

fn place(places: &yaml::Places, at: &Path, path: &Path) -> Option<Place> {
    let steps: Vec<String> = at.steps().into_iter().chain(path.steps()).collect();
    places.place(&steps.iter().map(String::as_str).collect::<Vec<_>>())
}

fn read(mut object: Value, source: Source) -> Result<Definition, Vec<Fault>> {
    let name = identity(&mut object).map_err(|fault| vec![fault])?;
    let schema = schema::schema_of(COMPOSITE).expect("the program carries its own CRDs");
    let unknown = if source == Source::File { Unknown::Refused } else { Unknown::Ignored };
    let faults = schema::check(schema, &object, unknown);
    if !faults.is_empty() {
        return Err(faults);
    }
    schema::fill(schema, &mut object);
    let written = serde_json::from_value(object["spec"].clone()).map_err(|error| vec![unreadable(&error)])?;
    let spec = manifest::meaning(&name, written)?;
    show_as_the_api_does(&mut object);
    let json = serde_json::value::to_raw_value(&object).expect("a JSON value has a text");
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    Ok(Definition { name, source, generation, spec, raw: object, json })
}

/// Checks that this is a definition at all, and gives its name.
fn identity(object: &mut Value) -> Result<String, Fault> {
    let fault = |path: Path, problem: Problem| Fault { path, problem };
    let Value::Object(fields) = object else {
        let problem = Problem::new(format!("the document is {}", shown(object)));
        return Err(fault(Path::default(), problem.expected(format!("a {COMPOSITE}"))));
    };
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", COMPOSITE)] {
        match fields.get(key) {
            Some(Value::String(text)) if text == wanted => {}
            Some(other) => {
                let problem =
                    Problem::new(format!("`{key}` is {}", shown(other))).expected(format!("`{wanted}`"));
                return Err(fault(Path::default().key(key), problem));
            }
            None => {
                let problem = Problem::new(format!("`{key}` is missing")).expected(format!("`{wanted}`"));
                return Err(fault(Path::default(), problem));
            }
        }
    }
    let name_path = Path::default().key("metadata").key("name");
    match fields.get("metadata").and_then(|metadata| metadata.get("name")) {
        Some(Value::String(name)) => match validity::dns_subdomain(name) {
            Ok(()) => Ok(name.clone()),
            Err(why) => {
                Err(fault(name_path, Problem::new(format!("`metadata.name` is `{name}`, which {why}"))))
            }
        },
        Some(other) => {
            let problem = Problem::new(format!("`metadata.name` is {}", shown(other)));
            Err(fault(name_path, problem.expected("a text")))
        }
        None => Err(fault(name_path, Problem::new("`metadata.name` is missing"))),
    }
}

/// The checked shape should always be readable; if it is not, the reader and the schema disagree.
fn unreadable(error: &serde_json::Error) -> Fault {
    Fault {
        path: Path::default().key("spec"),
        problem: Problem::new(format!("`spec` can't be read: {error}")),
    }
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
