//! What a hook's answer asks for: each child checked, completed and brought into the form that is applied.
//!
//! A child is refused for one of two kinds of reasons. If it cannot be told which child is meant (no name, the same
//! child twice), the answer does not describe one state of the world and nothing of it is done. If the child is known
//! and must not be written (wrong namespace, a kind the controller may not make), the others are still applied. In both
//! cases nothing is deleted, since the refused child may be the very one that would look unwanted.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value};

use crate::object::name::Key;
use crate::object::owner::OwnerRef;
use crate::object::selector::{Selector, kind_of};
use crate::object::validity;
use crate::plan::{ChildRule, Claim, Parent};
use crate::problem::{Place, Problem, nearest};

/// Metadata that the API server alone writes.
const SYSTEM_METADATA: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Records of what was applied before, by Metacontroller and by kubectl. A hook that echoes an observed child
/// sends them back.
pub(crate) const LAST_APPLIED: [&str; 2] =
    ["metacontroller.k8s.io/last-applied-configuration", "kubectl.kubernetes.io/last-applied-configuration"];

/// Everything an answer asks for.
#[derive(Debug, Default)]
pub(crate) struct Desired {
    /// In the order in which they were rendered.
    pub wanted: Vec<Wanted>,
    pub refusals: Vec<Refusal>,
}

impl Desired {
    /// Whether a child missing from `wanted` is known to be unwanted.
    pub(crate) fn complete(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Whether nothing of the answer may be done.
    pub(crate) fn void(&self) -> bool {
        self.refusals.iter().any(|refusal| refusal.reach == Reach::Answer)
    }
}

/// A child as it is to be applied: complete, with its controller reference.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Index of its rule.
    pub rule: usize,
    pub key: Key,
    pub body: Map<String, Value>,
    pub place: Option<Place>,
    pub ownership: Ownership,
    /// Its turn in a rollout is to come, and it cannot be said what it is to be like until then: where it exists it is
    /// left as it is.
    pub hold: bool,
    /// Equal for equal bodies, whatever the order of their keys. Means nothing in another process.
    pub hash: u64,
}

/// Whose a wanted object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The parent's: created, changed and deleted with it.
    Parent,
    /// Somebody else's, such as a claim that a StatefulSet made: what the hook states of it is applied where it exists, and
    /// it is never created, owned or deleted.
    Other,
}

/// `none` in this annotation of a child says that it is somebody else's object.
pub(crate) const OWNERSHIP: &str = "syncwright.io/ownership";

impl Wanted {
    pub(crate) fn name(&self) -> Named {
        let text = |field: &str| self.body.get(field).and_then(Value::as_str).unwrap_or_default().to_string();
        Named { api_version: text("apiVersion"), kind: text("kind"), key: self.key.clone() }
    }
}

/// A child of an answer that will not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Its place in the answer's list of children.
    pub index: usize,
    /// Its name, where it could be read.
    pub child: Option<Named>,
    pub problem: Box<Problem>,
    pub reach: Reach,
}

/// How much of an answer a refusal stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// This child; others are applied, nothing is deleted.
    Child,
    /// All of it.
    Answer,
}

/// A child as an author knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub api_version: String,
    pub kind: String,
    pub key: Key,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// Reads the children of an answer, each with the place it was rendered from.
pub(crate) fn desired(
    parent: &Parent,
    rules: &[ChildRule],
    claim: &Claim,
    children: Vec<(Map<String, Value>, Option<Place>)>,
) -> Desired {
    let reader = Reader { parent, rules, claim, selector: claim.selector(&parent.uid) };
    let mut desired = Desired::default();
    let mut seen: HashMap<(usize, Key), (usize, Option<Place>)> = HashMap::new();
    for (index, (mut body, place)) in children.into_iter().enumerate() {
        keep_null_ownership(&mut body);
        normalise(&mut body);
        let outcome = reader.read(index, body, place.clone()).and_then(|wanted| {
            match seen.insert((wanted.rule, wanted.key.clone()), (index, place.clone())) {
                None => Ok(wanted),
                Some(first) => Err(repeated(index, wanted.name(), first)),
            }
        });
        match outcome {
            Ok(wanted) => desired.wanted.push(wanted),
            Err(mut refusal) => {
                refusal.problem.place = place;
                desired.refusals.push(refusal);
            }
        }
    }
    desired
}

struct Reader<'a> {
    parent: &'a Parent,
    rules: &'a [ChildRule],
    claim: &'a Claim,
    selector: Selector,
}

impl Reader<'_> {
    fn read(
        &self,
        index: usize,
        mut body: Map<String, Value>,
        place: Option<Place>,
    ) -> Result<Wanted, Refusal> {
        let mut child = identify(&body).map_err(|problem| Refusal {
            index,
            child: None,
            problem: about(&format!("`children[{index}]`"), problem),
            reach: Reach::Answer,
        })?;
        let (rule, key, ownership) = self.complete(&mut child, &mut body).map_err(|problem| Refusal {
            index,
            problem: about(&format!("child `{child}`"), problem),
            child: Some(child),
            reach: Reach::Child,
        })?;
        let hash = body_hash(&body);
        Ok(Wanted { rule, key, body, place, ownership, hold: false, hash })
    }

    /// Makes the body of a known child what is applied.
    fn complete(
        &self,
        child: &mut Named,
        body: &mut Map<String, Value>,
    ) -> Result<(usize, Key, Ownership), Problem> {
        let rule = self.rule_of(child)?;
        validity::object_name(&child.key.name)
            .map_err(|why| Problem::new(format!("has a name that {why}")))?;
        child.key.namespace = self.namespace_of(child, &self.rules[rule])?;
        if self.rules[rule].gvk.group_kind() == self.parent.gvk.group_kind() && child.key == self.parent.key {
            return Err(Problem::new("is its own parent").hint("give it another name"));
        }
        body.remove("status");
        let metadata = metadata_of(body);
        SYSTEM_METADATA.iter().for_each(|field| drop(metadata.remove(*field)));
        match child.key.namespace.as_str() {
            "" => drop(metadata.remove("namespace")),
            namespace => drop(metadata.insert("namespace".into(), namespace.into())),
        }
        string_map("annotations", metadata)?;
        remove_last_applied(metadata);
        let ownership = ownership(metadata)?;
        if ownership == Ownership::Parent {
            self.stamp(metadata);
            self.label(metadata)?;
            self.own(metadata)?;
        } else {
            metadata.remove("ownerReferences");
        }
        if self.rules[rule].gvk.group_kind() == ("", "Secret") {
            encode_string_data(body)?;
        }
        Ok((rule, child.key.clone(), ownership))
    }

    fn rule_of(&self, child: &Named) -> Result<usize, Problem> {
        let exact =
            |rule: &ChildRule| rule.gvk.kind == child.kind && rule.gvk.api_version() == child.api_version;
        self.rules.iter().position(exact).ok_or_else(|| self.undeclared(child))
    }

    fn undeclared(&self, child: &Named) -> Problem {
        let group = child.api_version.split_once('/').map_or("", |(group, _)| group);
        let declared_in = self.claim.declared_in();
        let other_version = self.rules.iter().find(|rule| rule.gvk.group_kind() == (group, &child.kind));
        if let Some(rule) = other_version {
            // Applying it under the rule's version would give its fields another meaning, and under its own it could
            // not be compared with what is observed.
            return Problem::new(format!("is written in a version that `{declared_in}` does not declare"))
                .found(format!("`{}`", child.api_version))
                .expected(format!("`{}`", rule.gvk.api_version()));
        }
        let problem = Problem::new(format!("is of a kind that `{declared_in}` does not declare"))
            .found(format!("`{} {}`", child.api_version, child.kind));
        let same_kind = self.rules.iter().find(|rule| rule.gvk.kind == child.kind);
        let near = || nearest(&child.kind, self.rules.iter().map(|rule| rule.gvk.kind.as_str()));
        match same_kind
            .or_else(|| near().and_then(|kind| self.rules.iter().find(|rule| rule.gvk.kind == kind)))
        {
            Some(rule) => problem.hint(format!("did you mean `{}`?", rule.gvk)),
            None => problem.hint(format!("add it to `{declared_in}` of the controller")),
        }
    }

    /// The namespace the child is written to. An owner lives in the namespace of what it owns or in none:
    /// Kubernetes deletes a child whose owner it looks for in vain.
    fn namespace_of(&self, child: &Named, rule: &ChildRule) -> Result<String, Problem> {
        let (ours, asked) = (&self.parent.key.namespace, &child.key.namespace);
        match (ours.is_empty(), rule.namespaced) {
            (true, false) => Ok(String::new()),
            (true, true) if asked.is_empty() => Err(Problem::new("has no namespace")
                .hint("the parent is cluster-scoped, so each child states its `metadata.namespace`")),
            (true, true) => Ok(asked.clone()),
            (false, false) => Err(Problem::new("is cluster-scoped, and its parent has a namespace").hint(
                "Kubernetes forbids this owner reference and would delete the child at some later time",
            )),
            (false, true) if asked.is_empty() || asked == ours => Ok(ours.clone()),
            (false, true) => Err(Problem::new("is in another namespace than its parent")
                .found(format!("`{asked}`"))
                .expected(format!("`{ours}`, or none"))
                .hint(
                    "Kubernetes forbids this owner reference and would delete the child at some later time",
                )),
        }
    }

    fn stamp(&self, metadata: &mut Map<String, Value>) {
        let Claim::Decorator(name) = self.claim else { return };
        let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(Claim::DECORATOR.into(), name.clone().into());
        }
    }

    fn label(&self, metadata: &mut Map<String, Value>) -> Result<(), Problem> {
        if let Claim::ControllerUid = self.claim {
            let labels = metadata.entry("labels").or_insert_with(|| Map::new().into());
            if let Some(labels) = labels.as_object_mut() {
                labels.entry(Claim::UID_LABEL).or_insert_with(|| self.parent.uid.clone().into());
            }
        }
        string_map("labels", metadata)?;
        let unmet = match metadata.get("labels").and_then(Value::as_object) {
            Some(labels) => self.selector.unmet(labels),
            None => self.selector.unmet(&()),
        };
        let Some(requirement) = unmet else { return Ok(()) };
        let hint = match self.claim {
            Claim::ControllerUid => "leave this label out, the controller sets it",
            Claim::Selector(_) | Claim::Decorator(_) => "give it the labels of the parent's `spec.selector`",
        };
        Err(Problem::new("has labels that its parent's selector does not match")
            .expected(format!("`{requirement}`"))
            .hint(hint))
    }

    /// Puts our controller reference in place of any other; references to owners that control nothing stay.
    fn own(&self, metadata: &mut Map<String, Value>) -> Result<(), Problem> {
        let ours = OwnerRef::to_controller(&self.parent.gvk, &self.parent.key.name, &self.parent.uid);
        let mut references = match metadata.remove("ownerReferences") {
            None => Vec::new(),
            Some(Value::Array(references)) => references,
            Some(other) => return Err(wrong_type("metadata.ownerReferences", &other, "a list")),
        };
        references.retain(|reference| {
            reference.get("controller") != Some(&Value::Bool(true))
                && reference.get("uid").and_then(Value::as_str) != Some(&self.parent.uid)
        });
        references.push(ours.to_json());
        metadata.insert("ownerReferences".into(), references.into());
        Ok(())
    }
}

/// A null is dropped like any other, and with it what was to be said; as text it is refused.
fn keep_null_ownership(body: &mut Map<String, Value>) {
    let annotations = body.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(stated) = annotations.and_then(|annotations| annotations.get_mut(OWNERSHIP))
        && stated.is_null()
    {
        *stated = "null".into();
    }
}

/// Takes the annotation that says whose the object is off it.
fn ownership(metadata: &mut Map<String, Value>) -> Result<Ownership, Problem> {
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return Ok(Ownership::Parent);
    };
    let stated = annotations.shift_remove(OWNERSHIP);
    if annotations.is_empty() {
        metadata.shift_remove("annotations");
    }
    match stated {
        None => Ok(Ownership::Parent),
        Some(stated) if stated == "none" => Ok(Ownership::Other),
        Some(other) => Err(strange_ownership(&other)),
    }
}

/// Taken as nothing said, it would have somebody else's object owned, and deleted one day.
pub(crate) fn strange_ownership(stated: &Value) -> Problem {
    let found = match stated {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`, which is no text"),
    };
    Problem::new(format!("has the annotation `{OWNERSHIP}`"))
        .found(found)
        .expected("`none`, for an object that is somebody else's")
}

/// Which child a body means. Its namespace is the one it states.
fn identify(body: &Map<String, Value>) -> Result<Named, Problem> {
    let api_version = required_text(body, "apiVersion", "such as `apps/v1`")?;
    let kind = required_text(body, "kind", "such as `StatefulSet`")?;
    let empty = Map::new();
    let metadata = match body.get("metadata") {
        None => &empty,
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(wrong_type("metadata", other, "an object")),
    };
    if !metadata.contains_key("name") && metadata.contains_key("generateName") {
        return Err(Problem::new(format!(
            "is a `{kind}` with `metadata.generateName` and no `metadata.name`"
        ))
        .hint("a generated name would make another child at each visit: give it a fixed one"));
    }
    let name = match metadata.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(Value::String(_)) | None => {
            return Err(Problem::new(format!("is a `{kind}` without `metadata.name`")));
        }
        Some(other) => return Err(wrong_type("metadata.name", other, "a string")),
    };
    let namespace = match metadata.get("namespace") {
        None => "",
        Some(Value::String(namespace)) => namespace,
        Some(other) => return Err(wrong_type("metadata.namespace", other, "a string")),
    };
    Ok(Named { api_version: api_version.into(), kind: kind.into(), key: Key::new(namespace, name.as_str()) })
}

fn required_text<'a>(body: &'a Map<String, Value>, field: &str, such_as: &str) -> Result<&'a str, Problem> {
    match body.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) | None => {
            Err(Problem::new(format!("has no `{field}`")).expected(format!("a string {such_as}")))
        }
        Some(other) => Err(wrong_type(field, other, &format!("a string {such_as}"))),
    }
}

fn wrong_type(path: &str, found: &Value, expected: &str) -> Problem {
    let problem = Problem::new(format!("has `{path}` of the wrong type"))
        .found(match found {
            Value::Number(_) | Value::Bool(_) => format!("{} `{found}`", kind_of(found)),
            _ => kind_of(found).to_string(),
        })
        .expected(expected);
    match found {
        Value::Number(_) | Value::Bool(_) if expected.starts_with("a string") => {
            problem.hint("put it in quotes")
        }
        _ => problem,
    }
}

fn repeated(index: usize, child: Named, (first, place): (usize, Option<Place>)) -> Refusal {
    let at = place.map_or_else(String::new, |place| format!(" at {place}"));
    let problem = Problem::new(format!("`children[{index}]` is `{child}`, which the answer already holds"))
        .found(format!("the first one is `children[{first}]`{at}"))
        .hint("one child has one description: remove one or give it another name");
    Refusal { index, child: Some(child), problem: problem.into(), reach: Reach::Answer }
}

/// Completes a problem's message, which begins with what is said about the child.
fn about(child: &str, problem: Problem) -> Box<Problem> {
    Box::new(Problem { message: format!("{child} {}", problem.message), ..problem })
}

/// The metadata of an identified child.
fn metadata_of(body: &mut Map<String, Value>) -> &mut Map<String, Value> {
    body.get_mut("metadata").and_then(Value::as_object_mut).expect("an identified child has metadata")
}

fn string_map(field: &str, metadata: &Map<String, Value>) -> Result<(), Problem> {
    let entries = match metadata.get(field) {
        None => return Ok(()),
        Some(Value::Object(entries)) => entries,
        Some(other) => return Err(wrong_type(&format!("metadata.{field}"), other, "an object")),
    };
    match entries.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((key, value)) => Err(wrong_type(&format!("metadata.{field}[{key}]"), value, "a string")),
    }
}

fn remove_last_applied(metadata: &mut Map<String, Value>) {
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let before = annotations.len();
    LAST_APPLIED.iter().for_each(|key| drop(annotations.remove(*key)));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

/// Moves a Secret's `stringData` into `data`, as the API server would: it never answers the former.
fn encode_string_data(body: &mut Map<String, Value>) -> Result<(), Problem> {
    let texts = match body.remove("stringData") {
        None => return Ok(()),
        Some(Value::Object(texts)) => texts,
        Some(other) => return Err(wrong_type("stringData", &other, "an object")),
    };
    let data = body.entry("data").or_insert_with(|| Map::new().into());
    let Some(data) = data.as_object_mut() else {
        return Err(Problem::new("has `data` of the wrong type").expected("an object"));
    };
    for (key, text) in texts {
        // The value may be a secret even where its type is wrong: it is not shown.
        let Value::String(text) = text else {
            return Err(Problem::new(format!("has `stringData[{key}]` of the wrong type"))
                .found(kind_of(&text))
                .expected("a string"));
        };
        data.insert(key, BASE64.encode(text).into());
    }
    Ok(())
}

/// Drops map entries that are null, which an empty template value leaves, and makes whole numbers integers.
pub(crate) fn normalise(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    fields.values_mut().for_each(normalise_value);
}

fn normalise_value(value: &mut Value) {
    match value {
        Value::Object(fields) => normalise(fields),
        Value::Array(elements) => elements.iter_mut().for_each(normalise_value),
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
        }
        _ => {}
    }
}

/// The integer equal to a floating point number.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    // Both bounds are exact as floating point numbers; a cast beyond them would saturate.
    if (-(2f64.powi(63))..2f64.powi(63)).contains(&float) {
        Some(Number::from(float as i64))
    } else {
        (float > 0.0 && float < 2f64.powi(64)).then(|| Number::from(float as u64))
    }
}

fn body_hash(body: &Map<String, Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_fields(body, &mut hasher);
    hasher.finish()
}

/// Hashes a value so that the order of keys does not matter. Numbers count by amount: 1.0 is 1.
pub(crate) fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0u8.hash(hasher),
        Value::Bool(truth) => (1u8, truth).hash(hasher),
        Value::Number(number) => match whole(number).as_ref().unwrap_or(number) {
            number if number.is_f64() => (2u8, number.as_f64().map(f64::to_bits)).hash(hasher),
            number => (3u8, number.as_i64(), number.as_u64()).hash(hasher),
        },
        Value::String(text) => (4u8, text).hash(hasher),
        Value::Array(elements) => {
            (5u8, elements.len()).hash(hasher);
            elements.iter().for_each(|element| hash_value(element, hasher));
        }
        Value::Object(fields) => hash_fields(fields, hasher),
    }
}

fn hash_fields(fields: &Map<String, Value>, hasher: &mut DefaultHasher) {
    let sum = fields.iter().fold(0u64, |sum, (key, value)| {
        let mut entry = DefaultHasher::new();
        key.hash(&mut entry);
        hash_value(value, &mut entry);
        sum.wrapping_add(entry.finish())
    });
    (6u8, fields.len(), sum).hash(hasher);
}

#[cfg(test)]
mod tests;
