//! What customize hooks ask for, as far as their cases tell, and which kinds have no namespaces, as far as CRDs tell.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::author::rbac::Related;
use crate::config::Definition;
use crate::config::spec::{Decoding, Role, Target};
use crate::hook::wire::Call;
use crate::hook::wire::answer::Answer;
use crate::problem::Problem;
use crate::template::yaml;

/// What stands in the answers of the cases of the definitions' customize hooks.
pub(crate) fn of_cases(
    root: &Path,
    definitions: &[&Definition],
) -> io::Result<Result<Vec<Related>, Problem>> {
    let mut all: Vec<Related> = Vec::new();
    for definition in definitions {
        let Some(spec) = &definition.spec.hooks.customize else { continue };
        let Target::BuiltIn { hook, call } = &spec.webhook.target else { continue };
        for file in answers_of(&root.join(hook).join("cases"), call)? {
            let text = fs::read_to_string(&file)?;
            match asked_for(&file.display().to_string(), &text) {
                Ok(related) => all.extend(related),
                Err(problem) => return Ok(Err(problem)),
            }
        }
    }
    Ok(Ok(all))
}

fn answers_of(cases: &Path, call: &str) -> io::Result<Vec<PathBuf>> {
    if !cases.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(cases)? {
        let file = entry?.path().join(format!("{call}.response.yaml"));
        if file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

fn asked_for(file: &str, text: &str) -> Result<Vec<Related>, Problem> {
    let mut related = Vec::new();
    for document in yaml::read(file, text)? {
        let Value::Object(fields) = document.value else { continue };
        let answer = Answer::from_fields(Role::Composite, Call::Customize, Decoding::Strict, fields)
            .map_err(|problem| Problem::new(format!("{file}: {problem}")))?;
        related.extend(answer.related.into_iter().map(|rule| Related {
            resource: rule.resource,
            by_namespace_labels: rule.namespace_selector.is_some(),
        }));
    }
    Ok(related)
}

/// The resources without namespaces, by group and plural: Kubernetes' own, and those of the CRDs below the hooks folder.
pub(crate) fn cluster_scoped(root: &Path) -> io::Result<BTreeSet<(String, String)>> {
    let own = KUBERNETES.iter().map(|(group, plural)| (group.to_string(), plural.to_string()));
    let mut all: BTreeSet<_> = own.collect();
    if !root.is_dir() {
        return Ok(all);
    }
    for entry in fs::read_dir(root)? {
        let file = entry?.path().join("crd.yaml");
        if !file.is_file() {
            continue;
        }
        // One that does not read is no reason to print no role: `check` tells of it.
        let documents =
            yaml::read(&file.display().to_string(), &fs::read_to_string(&file)?).unwrap_or_default();
        for document in documents.iter().filter(|document| document.value["spec"]["scope"] == "Cluster") {
            let spec = &document.value["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
            all.insert((text(&spec["group"]), text(&spec["names"]["plural"])));
        }
    }
    Ok(all)
}

const KUBERNETES: [(&str, &str); 24] = [
    ("", "componentstatuses"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"),
    ("node.k8s.io", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("resource.k8s.io", "deviceclasses"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
];
