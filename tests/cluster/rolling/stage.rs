//! A Thing with Parts, which the tests call well or ill, and with Books, which are ConfigMaps and always well.
//!
//! The Thing's spec has `x`, which all of them hold, `label`, which they hold too, and the names of `parts` and `books`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use controlplane::ControlPlane;
use serde_json::{Value, json};

use crate::support::hook::Call;
use crate::support::lab::{Definition, Lab, SOON};

const REVISION_CRD: &str = include_str!("../../../src/config/crds/controllerrevisions.yaml");
const REVISIONS: &str = "/apis/metacontroller.k8s.io/v1alpha1/controllerrevisions";

/// A lab with the kinds that a rollout needs.
#[track_caller]
pub fn lab(subject: &str) -> Lab {
    let lab = Lab::new(subject);
    lab.define_kind(&lab.kind("parts", "Part"));
    define_revisions(&lab);
    lab
}

#[track_caller]
pub fn define_revisions(lab: &Lab) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        lab.plane.apply("default", REVISION_CRD);
        lab.plane.wait_for(REVISIONS, SOON, "ControllerRevisions can be listed", |_| true);
    });
}

/// Parts and Books that are updated one by one; a Part counts when it is `Ready`.
pub fn rolling(lab: &Lab) -> Definition {
    let definition = lab.definition().child(&lab.api_version(), "parts", "RollingInPlace");
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let definition = definition.with("/spec/childResources/0/updateStrategy/statusChecks", ready);
    definition.child("v1", "configmaps", "RollingInPlace")
}

/// What the hook answers: the children that the spec names, in its order, parts first.
pub fn answer(call: &Call) -> Value {
    let (spec, parent) = (call.spec(), call.parent());
    let names = |list: &str| {
        let names = spec[list].as_array().into_iter().flatten();
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let part = |name: String| {
        json!({
            "apiVersion": parent["apiVersion"], "kind": "Part", "metadata": {"name": name},
            "spec": {"x": spec["x"], "label": spec["label"]},
        })
    };
    let book = |name: String| {
        let mut data = json!({"x": spec["x"]});
        if spec["label"].is_string() {
            data["label"] = spec["label"].clone();
        }
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    };
    let parts = names("parts").into_iter().map(part);
    json!({
        "children": parts.chain(names("books").into_iter().map(book)).collect::<Vec<_>>(),
        "status": {"x": spec["x"]},
    })
}

pub fn part_path(lab: &Lab, name: &str) -> String {
    lab.path(&lab.api_version(), "parts", name)
}

/// `x` of each named Part, as it is now.
pub fn parts(lab: &Lab, names: &[&str]) -> Vec<String> {
    let x = |name: &&str| lab.get(&part_path(lab, name))["spec"]["x"].as_str().unwrap_or("-").to_owned();
    names.iter().map(x).collect()
}

pub fn books(lab: &Lab, names: &[&str]) -> Vec<String> {
    let x = |name: &&str| lab.get(&lab.config_map(name))["data"]["x"].as_str().unwrap_or("-").to_owned();
    names.iter().map(x).collect()
}

/// Says of a Part, in its present generation, whether it is well.
#[track_caller]
pub fn call_ready(lab: &Lab, name: &str, ready: bool) {
    let path = part_path(lab, name);
    assert!(tell(lab.plane, &path, &lab.get(&path), ready), "{path} takes a status");
}

fn tell(plane: &ControlPlane, path: &str, part: &Value, ready: bool) -> bool {
    let status = if ready { "True" } else { "False" };
    let generation = &part["metadata"]["generation"];
    let condition = json!({"type": "Ready", "status": status, "observedGeneration": generation});
    let status = json!({"status": {"observedGeneration": generation, "conditions": [condition]}});
    let path = format!("{path}/status");
    let answer = plane.send("PATCH", &path, "application/merge-patch+json", &status.to_string());
    answer.is_ok_and(|answer| answer.is_success())
}

/// Whether a Part is well in its present generation.
pub fn is_ready(part: &Value) -> bool {
    let condition = &part["status"]["conditions"][0];
    condition["status"] == "True" && condition["observedGeneration"] == part["metadata"]["generation"]
}

/// Waits until the parent, in its present generation, has the condition `Updated` for this reason.
#[track_caller]
pub fn wait_updated(lab: &Lab, path: &str, reason: &str, message: &str) -> Value {
    lab.wait(path, &format!("`Updated` is {reason}: {message}"), |parent| {
        let found = updated(parent);
        found.len() == 1
            && found[0]["observedGeneration"] == parent["metadata"]["generation"]
            && found[0]["reason"] == reason
            && found[0]["message"].as_str().is_some_and(|found| found.contains(message))
    })
}

/// All conditions `Updated`.
pub fn updated(parent: &Value) -> Vec<&Value> {
    let conditions = parent["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["type"] == "Updated").collect()
}

/// The ControllerRevisions of a parent, wherever they are: `x` of each, and the names that it claims.
pub fn revisions(lab: &Lab, parent: &Value) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<_> = kept(lab, parent)
        .iter()
        .map(|revision| {
            let claims = revision["children"].as_array().into_iter().flatten();
            let names = claims.flat_map(|claim| claim["names"].as_array().unwrap());
            let mut names: Vec<_> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
            names.sort();
            (revision["parentPatch"]["spec"]["x"].as_str().unwrap_or("-").to_owned(), names)
        })
        .collect();
    found.sort();
    found
}

pub fn kept(lab: &Lab, parent: &Value) -> Vec<Value> {
    let all = lab.get(REVISIONS);
    let ours =
        |revision: &&Value| revision["metadata"]["ownerReferences"][0]["uid"] == parent["metadata"]["uid"];
    all["items"].as_array().unwrap().iter().filter(ours).cloned().collect()
}

pub fn revision(x: &str, names: &[&str]) -> (String, Vec<String>) {
    (x.to_owned(), names.iter().map(|name| name.to_string()).collect())
}

/// Stands in for the controller of Parts: whatever has changed is well a moment later. It counts how many are not at
/// once.
pub struct Nurse {
    stop: Arc<AtomicBool>,
    most: Arc<AtomicUsize>,
    work: Option<JoinHandle<()>>,
}

impl Nurse {
    pub fn new(lab: &Lab) -> Nurse {
        let (stop, most) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (plane, list) = (lab.plane, part_path(lab, ""));
        let (ending, count) = (stop.clone(), most.clone());
        let work = thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                let parts = plane.get(&list).unwrap_or_default();
                let ill = parts["items"].as_array().into_iter().flatten().filter(|part| !is_ready(part));
                let ill: Vec<&Value> = ill.collect();
                count.fetch_max(ill.len(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(30));
                for part in ill {
                    let path = format!("{list}/{}", part["metadata"]["name"].as_str().unwrap());
                    tell(plane, &path, part, true);
                }
            }
        });
        Nurse { stop, most, work: Some(work) }
    }

    /// From now on.
    pub fn count_anew(&self) {
        self.most.store(0, Ordering::Relaxed);
    }

    pub fn most_ill(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Nurse {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let work = self.work.take().expect("it ends once");
        if let Err(panic) = work.join()
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
