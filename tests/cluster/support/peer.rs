//! Metacontroller as the specification of its behaviour describes it: what it writes for an answer, in both of its apply
//! strategies. It makes the cluster that is taken over, and takes it back.

use serde_json::{Map, Value, json};

use crate::support::lab::Lab;

const MANAGER: &str = "fieldManager=metacontroller";
pub const LAST_APPLIED: &str = "metacontroller.k8s.io/last-applied-configuration";
/// By these, the first that all items have, lists are merged item by item.
const KEYS: [&str; 7] = ["containerPort", "port", "mountPath", "name", "uid", "ip", "path"];
/// What is the server's in an object's metadata.
const SYSTEM: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
];

/// `--apply-strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    DynamicApply,
    ServerSideApply,
}

/// One parent, as the peer sees it.
pub struct Peer<'a> {
    pub lab: &'a Lab,
    pub strategy: Strategy,
    /// `--apply-strategy-ssa-field-manager`; what it writes by updates bears the name of its binary.
    pub applier: &'static str,
    /// What its children refer to.
    pub owner: Value,
}

impl<'a> Peer<'a> {
    pub fn of(lab: &'a Lab, strategy: Strategy, parent: &Value) -> Peer<'a> {
        let owner = json!({
            "apiVersion": parent["apiVersion"], "kind": parent["kind"], "name": parent["metadata"]["name"],
            "uid": parent["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        });
        Peer { lab, strategy, applier: "metacontroller", owner }
    }

    /// Brings one child to what is wanted by a rule's method. Tells what it did: the verb, or nothing.
    #[track_caller]
    pub fn child(&self, plural: &str, method: &str, wanted: &Value) -> &'static str {
        let mut wanted = wanted.clone();
        wanted["metadata"]["namespace"] = json!(self.lab.namespace);
        let api_version = wanted["apiVersion"].as_str().expect("a child has a version");
        let name = wanted["metadata"]["name"].as_str().expect("a child has a name");
        let path = self.lab.path(api_version, plural, name);
        match (self.strategy, self.lab.plane.get(&path)) {
            (Strategy::DynamicApply, live) => self.merge(&path, method, &wanted, live),
            (Strategy::ServerSideApply, live) => self.apply(&path, method, &wanted, live),
        }
    }

    fn merge(&self, path: &str, method: &str, wanted: &Value, live: Option<Value>) -> &'static str {
        let record = sorted(wanted).to_string();
        let mut new = match &live {
            None => {
                let mut new = wanted.clone();
                new["metadata"]["ownerReferences"] = json!([self.owner]);
                new
            }
            Some(live) => {
                let before = live["metadata"]["annotations"][LAST_APPLIED].as_str();
                let before = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
                let mut new = merged(live, &before, wanted);
                keep_what_is_the_servers(&mut new, live);
                new
            }
        };
        new["metadata"]["annotations"][LAST_APPLIED] = json!(record);
        match (live, method) {
            (None, _) => self.send("POST", path.rsplit_once('/').expect("a path").0, &new),
            (Some(live), _) if live == new => "",
            (Some(_), "OnDelete") => "",
            (Some(live), "Recreate") => self.delete(path, &live),
            (Some(_), _) => self.send("PUT", path, &new),
        }
    }

    fn apply(&self, path: &str, method: &str, wanted: &Value, live: Option<Value>) -> &'static str {
        let mut new = wanted.clone();
        new["metadata"]["ownerReferences"] = json!([self.owner]);
        let applied = format!("{path}?fieldManager={}&force=true", self.applier);
        match (live, method) {
            (Some(_), "OnDelete") => "",
            (Some(live), "Recreate") => {
                let dry = self.lab.plane.request("PATCH", &format!("{applied}&dryRun=All"), Some(&new));
                let dry = dry.expect("an answer").json();
                if content(&dry) == content(&live) { "" } else { self.delete(path, &live) }
            }
            (live, _) => {
                if live.is_some_and(|live| live["metadata"]["annotations"].get(LAST_APPLIED).is_some()) {
                    let pointer = format!("/metadata/annotations/{}", LAST_APPLIED.replace('/', "~1"));
                    let patch = json!([{"op": "remove", "path": pointer}]).to_string();
                    let path = format!("{path}?{MANAGER}");
                    let answer = self.lab.plane.send("PATCH", &path, "application/json-patch+json", &patch);
                    assert!(answer.expect("an answer").is_success());
                }
                let answer = self.lab.plane.request("PATCH", &applied, Some(&new)).expect("an answer");
                assert!(answer.is_success(), "{}", answer.message());
                "PATCH"
            }
        }
    }

    fn send(&self, verb: &'static str, path: &str, object: &Value) -> &'static str {
        let answer = self.lab.plane.request(verb, &format!("{path}?{MANAGER}"), Some(object));
        let answer = answer.expect("an answer");
        assert!(answer.is_success(), "{verb} {path}: {}", answer.message());
        verb
    }

    fn delete(&self, path: &str, live: &Value) -> &'static str {
        let options = json!({
            "preconditions": {"uid": live["metadata"]["uid"]}, "propagationPolicy": "Background",
        });
        assert!(self.lab.plane.request("DELETE", path, Some(&options)).expect("an answer").is_success());
        "DELETE"
    }

    /// Puts a finalizer on an object.
    #[track_caller]
    pub fn finalizer(&self, path: &str, name: &str) {
        let mut live = self.lab.get(path);
        live["metadata"]["finalizers"] = json!([name]);
        self.send("PUT", path, &live);
    }

    /// Replaces a parent's status.
    #[track_caller]
    pub fn status(&self, path: &str, mut status: Value) {
        let mut live = self.lab.get(path);
        status["observedGeneration"] = live["metadata"]["generation"].clone();
        live["status"] = status;
        self.send("PUT", &format!("{path}/status"), &live);
    }
}

/// With the keys of every object in order, as Go prints them.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut entries: Vec<(&String, &Value)> = fields.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            entries
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn merged(live: &Value, before: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            let mut new = live.clone();
            let was = |name: &str| before.get(name).cloned().unwrap_or_default();
            for name in before.as_object().into_iter().flat_map(Map::keys) {
                if !wanted.contains_key(name) {
                    new.remove(name);
                }
            }
            for (name, wanted) in wanted {
                let value = match live.get(name) {
                    Some(live) => merged(live, &was(name), wanted),
                    None => wanted.clone(),
                };
                new.insert(name.clone(), value);
            }
            new.into()
        }
        (Value::Array(items), Value::Array(wanted_items)) => {
            let none = Vec::new();
            let was = before.as_array().unwrap_or(&none);
            let common = KEYS.iter().find(|key| {
                [items, was, wanted_items].into_iter().flatten().all(|item| item.get(**key).is_some())
            });
            match common {
                Some(key) => merged_items(key, items, was, wanted_items),
                None => wanted.clone(),
            }
        }
        _ => wanted.clone(),
    }
}

fn merged_items(key: &str, live: &[Value], before: &[Value], wanted: &[Value]) -> Value {
    let named = |items: &[Value], name: &Value| items.iter().find(|item| item[key] == *name).cloned();
    let mut new = Vec::new();
    for item in live {
        match (named(wanted, &item[key]), named(before, &item[key])) {
            (Some(wanted), before) => new.push(merged(item, &before.unwrap_or_default(), &wanted)),
            (None, Some(_)) => {}
            (None, None) => new.push(item.clone()),
        }
    }
    new.extend(wanted.iter().filter(|item| named(live, &item[key]).is_none()).cloned());
    new.into()
}

fn keep_what_is_the_servers(new: &mut Value, live: &Value) {
    for field in SYSTEM {
        if let Some(value) = live["metadata"].get(field) {
            new["metadata"][field] = value.clone();
        }
    }
    if let Some(status) = live.get("status") {
        new["status"] = status.clone();
    }
}

/// An object without what only the server writes.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("an object has metadata");
    SYSTEM.iter().for_each(|field| drop(metadata.remove(*field)));
    object.as_object_mut().expect("an object").remove("status");
    object
}
