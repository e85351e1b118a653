//! Which texts of manifests are names that follow the parent's.
//!
//! A name is followed where it certainly is one: where objects are named, referred to and labelled, and in longer texts
//! where it stands as a host does. A word that happens to be the same stays.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::author::new::manifests::node::{Piece, Text, Way};
use crate::author::new::manifests::{kind_of, name_of};

/// The longest name that every kind takes.
const LONGEST: usize = 63;
/// A StatefulSet's pods and a CronJob's Jobs are named after it, with a suffix.
const LONGEST_OF_A_WORKLOAD: usize = 52;

/// Lists whose items have names of their own, which mean nothing outside the object.
const LOCAL: [&str; 9] = [
    "containers",
    "initContainers",
    "ephemeralContainers",
    "ports",
    "volumes",
    "volumeMounts",
    "volumeDevices",
    "env",
    "volumeClaimTemplates",
];

/// The names in a set of manifests.
#[derive(Debug)]
pub(super) struct Naming {
    /// What the names begin with: the name of the parent that the manifests are of.
    pub base: String,
    /// The namespace that they are in, where they say so.
    pub namespace: Option<String>,
    names: BTreeSet<String>,
    hosts: BTreeSet<String>,
    longest: usize,
}

impl Naming {
    pub(super) fn of(manifests: &[Value]) -> Naming {
        let names: BTreeSet<String> =
            manifests.iter().map(|manifest| name_of(manifest).to_string()).collect();
        let base = release(manifests, &names)
            .or_else(|| common_start(&names))
            .unwrap_or_else(|| name_of(main(manifests.iter()).expect("there is a manifest")).to_string());
        let namespaces: BTreeSet<&str> =
            manifests.iter().filter_map(|manifest| manifest["metadata"]["namespace"].as_str()).collect();
        let hosts = manifests.iter().filter(|manifest| kind_of(manifest).1 == "Service").map(name_of);
        let mut naming = Naming {
            namespace: namespaces.first().filter(|_| namespaces.len() == 1).map(|name| name.to_string()),
            hosts: hosts.map(str::to_string).collect(),
            longest: 0,
            base,
            names,
        };
        naming.longest = naming.longest_base(manifests);
        naming
    }

    /// The statement that computes `name`.
    pub(super) fn setting(&self) -> String {
        if self.base.contains('.') {
            return "{% set name = parent.metadata.name %}\n".into();
        }
        format!("{{% set name = dns_name(parent.metadata.name, max={}) %}}\n", self.longest)
    }

    /// A name as an expression inside another one.
    pub(super) fn expression(&self, name: &str) -> String {
        match self.rest_of(name) {
            Some("") => "name".into(),
            Some(rest) => format!("name ~ \"{rest}\""),
            None => format!("\"{name}\""),
        }
    }

    /// What a person should know of names that do not follow, and of those that are not among the manifests.
    pub(super) fn notes(&self, manifests: &[Value]) -> Vec<String> {
        let mut missing = BTreeSet::new();
        manifests.iter().for_each(|manifest| self.find_missing(manifest, &mut Vec::new(), &mut missing));
        let mut notes = Vec::new();
        let fixed = listed(self.names.iter().filter(|name| self.rest_of(name).is_none()));
        let base = &self.base;
        if !fixed.is_empty() {
            notes.push(format!(
                "{fixed} stay as they are, since they do not begin with `{base}`: two parents would share them"
            ));
        }
        if !missing.is_empty() {
            let missing = listed(missing.iter());
            notes.push(format!(
                "{missing}: not among the manifests, but expected under a name that follows the parent's"
            ));
        }
        notes
    }

    fn find_missing(&self, value: &Value, way: &mut Way, missing: &mut BTreeSet<String>) {
        let mut below = |step: String, value: &Value| {
            way.push(step);
            self.find_missing(value, way, missing);
            way.pop();
        };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key.clone(), value)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| below(index.to_string(), item));
            }
            Value::String(text)
                if self.is_missing(text) && self.is_reference(way, text) && !is_label(way) =>
            {
                missing.insert(text.clone());
            }
            _ => {}
        }
    }

    /// Whether a text could be the name of an instance's object that the manifests do not have.
    fn is_missing(&self, text: &str) -> bool {
        !self.names.contains(text) && self.rest_of(text).is_some_and(|rest| rest.len() > 1)
    }

    /// What of a component's name comes after the base, without its dash.
    pub(super) fn component<'n>(&self, name: &'n str) -> &'n str {
        self.rest_of(name).unwrap_or(name).trim_start_matches('-')
    }

    /// Whether a text holds anything that follows the parent.
    pub(super) fn is_named(&self, way: &[String], text: &str) -> bool {
        self.text(way, text).0.iter().any(|piece| matches!(piece, Piece::Expression(_)))
    }

    /// The text at this way of a manifest, with its names as expressions.
    pub(super) fn text(&self, way: &[String], text: &str) -> Text {
        let last = way.last().map_or("", String::as_str);
        let parent = way.len().checked_sub(2).map_or("", |index| way[index].as_str());
        if last == "namespace" && Some(text) == self.namespace.as_deref() {
            return Text(vec![Piece::Expression("parent.metadata.namespace".into())]);
        }
        let is_known = self.names.contains(text) || self.is_missing(text);
        if is_label(way) && text == self.base || is_known && self.is_reference(way, text) {
            return self.named(text);
        }
        if matches!(last, "image" | "name" | "kind" | "apiVersion")
            || is_label(way)
            || parent == "annotations"
        {
            return Text::literal(text);
        }
        self.inside(text)
    }

    fn is_reference(&self, way: &[String], text: &str) -> bool {
        let step = |back: usize| way.len().checked_sub(back).map_or("", |index| way[index].as_str());
        let is_local = LOCAL.contains(&step(3))
            || LOCAL.contains(&step(4))
            || matches!(step(2), "port" | "resourceFieldRef");
        match step(1) {
            "name" => !is_local,
            "containerName" | "portName" | "className" | "storageClassName" | "ingressClassName"
            | "hostname" => false,
            "value" | "host" => self.hosts.contains(text),
            field => is_label(way) || field.ends_with("Name"),
        }
    }

    /// A name as text: the parent's, and what comes after it.
    fn named(&self, name: &str) -> Text {
        let Some(rest) = self.rest_of(name) else { return Text::literal(name) };
        let mut text = Text(vec![Piece::Expression("name".into())]);
        text.push(Piece::Literal(rest.into()));
        text
    }

    /// A longer text: names in it follow where they stand as hosts do, or cannot be ordinary words.
    fn inside(&self, text: &str) -> Text {
        let mut made = Text::default();
        let mut rest = text;
        let mut before = None;
        let mut after_host = false;
        while !rest.is_empty() {
            let length = rest.find(|c: char| !is_of_a_name(c)).unwrap_or(rest.len());
            if length == 0 {
                let c = rest.chars().next().expect("the rest is not empty");
                made.push(Piece::Literal(c.into()));
                after_host &= c == '.';
                before = Some(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let (word, behind) = rest.split_at(length);
            let is_host = self.is_host(word, before, behind);
            match () {
                () if is_host => self.named(word).0.into_iter().for_each(|piece| made.push(piece)),
                () if after_host && Some(word) == self.namespace.as_deref() => {
                    made.push(Piece::Expression("parent.metadata.namespace".into()));
                }
                () => made.push(Piece::Literal(word.into())),
            }
            after_host = is_host;
            before = word.chars().last();
            rest = behind;
        }
        made
    }

    fn is_host(&self, word: &str, before: Option<char>, behind: &str) -> bool {
        let follows = |start: &str| behind.starts_with(start);
        let port =
            behind.strip_prefix(':').is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit()));
        let domain = self.namespace.as_ref().is_some_and(|namespace| follows(&format!(".{namespace}")))
            || follows(".svc");
        let compound = word.len() > self.base.len() && self.rest_of(word).is_some();
        let inside_a_path = before == Some('/') && !behind.is_empty() && !port && !domain && !follows("/");
        if self.names.contains(word) && compound && before != Some('.') && !inside_a_path {
            return true;
        }
        (self.hosts.contains(word) || self.is_missing(word)) && (port || domain || before == Some('@'))
    }

    /// What of the name comes after the base: nothing, or a dash and more.
    fn rest_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(self.base.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// How long a parent's name may be so that no child's is too long; never shorter than the one that is there.
    fn longest_base(&self, manifests: &[Value]) -> usize {
        let room = |manifest: &Value| {
            let rest = self.rest_of(name_of(manifest))?.len();
            let workload = matches!(kind_of(manifest).1, "StatefulSet" | "CronJob");
            Some(if workload { LONGEST_OF_A_WORKLOAD } else { LONGEST }.saturating_sub(rest))
        };
        let shortest = manifests.iter().filter_map(room).min().unwrap_or(LONGEST);
        shortest.max(self.base.len()).max(10)
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Whether a text is a label's value, or what a selector wants of one.
fn is_label(way: &[String]) -> bool {
    let parent = way.len().checked_sub(2).map_or("", |index| way[index].as_str());
    matches!(parent, "labels" | "matchLabels" | "selector")
}

/// Helm's name of the release, where the names begin with it.
fn release(manifests: &[Value], names: &BTreeSet<String>) -> Option<String> {
    let instances: BTreeSet<&str> = manifests
        .iter()
        .filter_map(|manifest| manifest["metadata"]["labels"]["app.kubernetes.io/instance"].as_str())
        .collect();
    let release = instances.first().filter(|_| instances.len() == 1)?;
    let begins = |name: &String| {
        name.strip_prefix(release).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    names.iter().any(begins).then(|| release.to_string())
}

/// The words that all names begin with.
fn common_start(names: &BTreeSet<String>) -> Option<String> {
    let words: Vec<Vec<&str>> = names.iter().map(|name| name.split('-').collect()).collect();
    let first = words.first()?;
    let common = (0..first.len())
        .take_while(|index| words.iter().all(|words| words.get(*index) == first.get(*index)))
        .count();
    (common > 0).then(|| first[..common].join("-"))
}

/// What the others most likely are there for.
/// The one that the others are there for; the first where several could be.
pub(super) fn main<'m>(manifests: impl Iterator<Item = &'m Value>) -> Option<&'m Value> {
    let order = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Service"];
    let rank =
        |manifest: &&Value| order.iter().position(|kind| *kind == kind_of(manifest).1).unwrap_or(order.len());
    manifests.min_by_key(rank)
}
