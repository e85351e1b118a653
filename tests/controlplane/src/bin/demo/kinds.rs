//! The operators' kinds: the CRDs that lie in the hooks' folders.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::ending::output;

const PATIENCE: Duration = Duration::from_secs(30);
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub struct Kinds(Vec<Kind>);

struct Kind {
    group: String,
    kind: String,
    plural: String,
    /// Where a Service is asked to convert its objects.
    conversion: Option<String>,
}

impl Kinds {
    /// Applies every `hooks/*/crd.yaml` and waits until the API server serves them all.
    pub fn install(plane: &ControlPlane, root: &Path) -> Result<Kinds, String> {
        let files = files(&root.join("hooks"))?;
        if files.is_empty() {
            return Err(format!("no crd.yaml in any folder of {}", root.join("hooks").display()));
        }
        let mut kinds = Vec::new();
        for file in files {
            let mut apply = plane.kubectl();
            apply.args(["apply", "--server-side", "--output=json", "--filename"]).arg(&file);
            let applied = output(&mut apply).map_err(|problem| format!("{}: {problem}", file.display()))?;
            kinds.extend(objects(&applied).iter().map(kind));
        }
        kinds.iter().try_for_each(|kind| wait_until_served(plane, kind))?;
        Ok(Kinds(kinds))
    }

    /// The API path of the objects of `object`'s kind in `namespace`; none if it is no kind of ours.
    pub fn collection(&self, object: &Value, namespace: &str) -> Option<String> {
        let (group, _) = object["apiVersion"].as_str()?.split_once('/')?;
        let kind = self.0.iter().find(|kind| kind.group == group && object["kind"] == kind.kind.as_str())?;
        Some(format!("/apis/{}/namespaces/{namespace}/{}", object["apiVersion"].as_str()?, kind.plural))
    }

    /// Has the API server ask the process at this address to convert objects. Whoever keeps the Secret has it trusted.
    ///
    /// What is shipped names a Service, which a cluster on loopback has not.
    pub fn convert_at(&self, plane: &ControlPlane, address: &str, secret: &str) -> Result<(), String> {
        let label = json!({"syncwright.io/inject-ca-from": secret.replace('/', ".")});
        for kind in &self.0 {
            let Some(path) = &kind.conversion else { continue };
            let client = json!({"service": null, "url": format!("https://{address}{path}")});
            let conversion = json!({"webhook": {"clientConfig": client}});
            let patch =
                json!({"metadata": {"labels": label}, "spec": {"conversion": conversion}}).to_string();
            let answer = plane.send("PATCH", &kind.crd(), "application/merge-patch+json", &patch);
            let answer = answer.map_err(|error| format!("{}: {error}", kind.kind))?;
            if !answer.is_success() {
                return Err(format!("{}: {}", kind.kind, answer.message()));
            }
        }
        Ok(())
    }

    /// All of them as `kubectl get` takes them.
    pub fn resources(&self) -> String {
        let names = self.0.iter().map(Kind::name);
        names.collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|kind| kind.kind.as_str()).collect::<Vec<_>>().join(", "))
    }
}

fn kind(crd: &Value) -> Kind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = &crd["spec"]["names"];
    let conversion = crd.pointer("/spec/conversion/webhook/clientConfig/service/path");
    Kind {
        group: text(&crd["spec"]["group"]),
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
        conversion: conversion.map(text),
    }
}

impl Kind {
    fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    fn crd(&self) -> String {
        format!("{CRDS}/{}", self.name())
    }
}

fn wait_until_served(plane: &ControlPlane, kind: &Kind) -> Result<(), String> {
    let (name, path) = (kind.name(), kind.crd());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = plane.request("GET", &path, None).map_err(|error| format!("{name}: {error}"))?;
        let conditions = answer.json()["status"]["conditions"].take();
        let established =
            |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        if conditions.as_array().is_some_and(|conditions| conditions.iter().any(established)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{name} is not served after {} s; its conditions: {conditions}",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The `crd.yaml` of every folder below `hooks`, in name order.
fn files(hooks: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        std::fs::read_dir(hooks).map_err(|error| format!("reading {}: {error}", hooks.display()))?;
    let candidates = entries.flatten().map(|entry| entry.path().join("crd.yaml"));
    let mut files: Vec<PathBuf> = candidates.filter(|file| file.is_file()).collect();
    files.sort();
    Ok(files)
}

/// The objects in what `kubectl --output=json` prints: one object, or a list.
pub fn objects(json: &str) -> Vec<Value> {
    match serde_json::from_str::<Value>(json) {
        Ok(mut list) if list["kind"] == "List" => {
            list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
        }
        Ok(object) => vec![object],
        Err(_) => Vec::new(),
    }
}
