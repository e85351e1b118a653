//! Which values of manifests become fields of the parent's spec: what differs from one instance to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::author::new::manifests::name_of;
use crate::author::new::manifests::naming::Naming;
use crate::author::new::manifests::node::Way;

/// A field of the spec that manifests gave.
#[derive(Debug)]
pub(super) struct Field {
    pub name: String,
    pub description: String,
    pub schema: Value,
    /// As the manifests have it.
    pub value: Value,
}

/// All of them, and where each is used.
#[derive(Debug, Default)]
pub(super) struct Lifts {
    pub fields: Vec<Field>,
    places: HashMap<(usize, Way), usize>,
}

/// What a value is for, which decides its field's name and type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Image,
    Replicas,
    Resources,
    StorageSize,
    Host,
    Schedule,
    Port,
    Variable(String),
}

/// A value that could become a field.
struct Candidate {
    role: Role,
    /// What tells it from others of its role; nothing for that of the main manifest.
    of: String,
    value: Value,
    place: (usize, Way),
}

/// What a person is told who changes a field that children cannot follow.
const KEPT: &str = "the volumes of a StatefulSet keep the size that they were made with";

impl Candidate {
    /// Whether Kubernetes lets no object change the value.
    fn is_kept(&self) -> bool {
        self.role == Role::StorageSize && self.place.1.iter().any(|step| step == "volumeClaimTemplates")
    }
}

impl Lifts {
    pub(super) fn of(manifests: &[Value], naming: &Naming) -> Lifts {
        let mut search = Search { naming, index: 0, owner: String::new(), found: Vec::new() };
        for (index, manifest) in manifests.iter().enumerate() {
            search.index = index;
            search.owner = naming.component(name_of(manifest)).into();
            search.walk(manifest, &mut Vec::new());
        }
        Lifts::from_groups(grouped(search.found))
    }

    /// The field that is used at this place.
    pub(super) fn field_at(&self, manifest: usize, way: &Way) -> Option<&str> {
        let field = self.places.get(&(manifest, way.clone()))?;
        Some(&self.fields[*field].name)
    }

    fn from_groups(groups: Vec<Vec<Candidate>>) -> Lifts {
        let mut lifts = Lifts::default();
        let mut of_role: BTreeMap<Role, usize> = BTreeMap::new();
        groups.iter().for_each(|group| *of_role.entry(group[0].role.clone()).or_default() += 1);
        let mut taken = BTreeSet::new();
        for group in groups {
            let first = &group[0];
            let of = if of_role[&first.role] > 1 { first.of.as_str() } else { "" };
            let name = free(first.role.field_name(of), &mut taken);
            let (description, mut schema) = (first.role.description(of), first.role.schema(&first.value));
            if first.is_kept() {
                schema["x-kubernetes-validations"] = json!([{"rule": "self == oldSelf", "message": KEPT}]);
            }
            lifts.fields.push(Field { name, description, schema, value: first.value.clone() });
            for candidate in group {
                lifts.places.insert(candidate.place, lifts.fields.len() - 1);
            }
        }
        lifts
    }
}

/// A name that no other field has.
fn free(name: String, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.expect("numbers do not end");
    taken.insert(free.clone());
    free
}

/// Candidates that become one field each, in the order in which the manifests have them.
fn grouped(candidates: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    for candidate in candidates {
        let same = |group: &&mut Vec<Candidate>| {
            let first = &group[0];
            first.role == candidate.role
                && first.value == candidate.value
                && (candidate.role.is_shared()
                    || (&first.of, first.place.0) == (&candidate.of, candidate.place.0))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(candidate),
            None => groups.push(vec![candidate]),
        }
    }
    groups.retain(|group| group[0].role.is_worth(group.len()));
    groups
}

impl Role {
    /// Whether equal values are one field wherever they are.
    fn is_shared(&self) -> bool {
        matches!(self, Role::Image | Role::Host | Role::Port | Role::Variable(_))
    }

    /// Some values are worth a field only where they are repeated.
    fn is_worth(&self, uses: usize) -> bool {
        uses > 1 || !matches!(self, Role::Port | Role::Variable(_))
    }

    fn field_name(&self, of: &str) -> String {
        let base = match self {
            Role::Image => "image",
            Role::Replicas => "replicas",
            Role::Resources => "resources",
            Role::StorageSize => "storageSize",
            Role::Host => "host",
            Role::Schedule => "schedule",
            Role::Port => "port",
            Role::Variable(name) => return camel_case(&name.to_lowercase()),
        };
        camel_case(&format!("{of}-{base}"))
    }

    fn description(&self, of: &str) -> String {
        let of = if of.is_empty() { String::new() } else { format!(" of {of}") };
        match self {
            Role::Image => format!("Image{of}."),
            Role::Replicas => format!("Number of pods{of}."),
            Role::Resources => format!("Compute resources{of}."),
            Role::StorageSize => format!("Size of the volume{of}."),
            Role::Host => "Host name that it is reached at.".into(),
            Role::Schedule => format!("Schedule{of}, as a crontab has it."),
            Role::Port => format!("Port{of} that is listened on."),
            Role::Variable(name) => format!("Value of the environment variable {name}."),
        }
    }

    fn schema(&self, value: &Value) -> Value {
        let quantities = json!({"type": "object", "additionalProperties": quantity()});
        match self {
            Role::Image | Role::Host | Role::Schedule => json!({"type": "string", "minLength": 1}),
            Role::Replicas => json!({"type": "integer", "format": "int32", "minimum": 0}),
            Role::Port => json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}),
            Role::StorageSize if value.is_string() => json!({"type": "string", "pattern": QUANTITY}),
            Role::StorageSize => quantity(),
            Role::Resources => json!({
                "type": "object", "properties": {"limits": quantities, "requests": quantities},
                "x-kubernetes-preserve-unknown-fields": true,
            }),
            Role::Variable(_) => json!({"type": "string"}),
        }
    }
}

const QUANTITY: &str = r"^[0-9]+(\.[0-9]+)?(m|k|[MGTPE]|[KMGTPE]i)?$";

fn quantity() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
        "pattern": QUANTITY,
    })
}

/// `main-web_image` as `mainWebImage`.
fn camel_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut camel = String::new();
    for word in words {
        match camel.is_empty() {
            true => camel.push_str(&(word[..1].to_lowercase() + &word[1..])),
            false => camel.push_str(&(word[..1].to_uppercase() + &word[1..])),
        }
    }
    match camel.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("n{camel}"),
        false => camel,
    }
}

struct Search<'a> {
    naming: &'a Naming,
    index: usize,
    /// The manifest's name without what all begin with; empty for the main one.
    owner: String,
    found: Vec<Candidate>,
}

impl Search<'_> {
    fn walk(&mut self, value: &Value, way: &mut Way) {
        self.consider(value, way);
        let children: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
            }
            _ => Vec::new(),
        };
        for (step, child) in children {
            way.push(step);
            self.walk(child, way);
            way.pop();
        }
    }

    fn consider(&mut self, value: &Value, way: &Way) {
        let steps: Vec<&str> = way.iter().map(String::as_str).collect();
        if let Some("containers" | "initContainers") = steps.len().checked_sub(2).map(|index| steps[index]) {
            self.consider_container(value, way);
        }
        let of = self.owner.clone();
        match (steps.as_slice(), value) {
            (["spec", "replicas"], Value::Number(_)) => self.found(Role::Replicas, of, value, way),
            (["spec", "schedule"], Value::String(_)) => self.found(Role::Schedule, of, value, way),
            (["spec", "rules", _, "host"] | ["spec", "tls", _, "hosts", _], Value::String(_)) => {
                self.found(Role::Host, of, value, way);
            }
            ([.., "spec", "resources", "requests", "storage"], Value::String(_) | Value::Number(_)) => {
                self.found(Role::StorageSize, of, value, way);
            }
            (
                [.., "containerPort" | "targetPort"] | [.., "httpGet" | "tcpSocket" | "grpc", "port"],
                Value::Number(_),
            ) => {
                self.found(Role::Port, of, value, way);
            }
            _ => {}
        }
    }

    fn consider_container(&mut self, container: &Value, way: &Way) {
        let is_main =
            way.last().is_some_and(|index| index == "0") && way.iter().any(|step| step == "containers");
        let name = match (is_main, self.owner.as_str()) {
            (true, owner) => owner.to_string(),
            (false, owner) => format!("{owner}-{}", container["name"].as_str().unwrap_or_default()),
        };
        let below = |step: &str| way.iter().cloned().chain([step.to_string()]).collect::<Way>();
        let image = &container["image"];
        if image.as_str().is_some_and(|image| !image.is_empty()) {
            self.found(Role::Image, name.clone(), image, &below("image"));
        }
        let resources = &container["resources"];
        if resources.as_object().is_some_and(|fields| !fields.is_empty()) {
            self.found(Role::Resources, name, resources, &below("resources"));
        }
        for (index, variable) in container["env"].as_array().into_iter().flatten().enumerate() {
            let (Some(name), Value::String(text)) = (variable["name"].as_str(), &variable["value"]) else {
                continue;
            };
            let place: Way =
                way.iter().cloned().chain(["env".into(), index.to_string(), "value".into()]).collect();
            if !text.is_empty() && !self.naming.is_named(&place, text) {
                self.found(Role::Variable(name.into()), name.into(), &variable["value"], &place);
            }
        }
    }

    fn found(&mut self, role: Role, of: String, value: &Value, way: &Way) {
        let place = (self.index, way.clone());
        self.found.push(Candidate { role, of, value: value.clone(), place });
    }
}
