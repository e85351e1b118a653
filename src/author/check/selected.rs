//! Whether the Services of an answer find pods: those of the workloads beside them.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::children::{is_others, place};
use crate::author::check::finding::Rule;
use crate::author::check::requests::Request;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;

impl Check {
    /// A Service that selects no pods of an answer that makes some has a slip in its selector, most likely.
    pub(super) fn services_without_pods(&mut self, request: &Request, answer: &Answer) {
        let labels: Vec<&Value> = answer.children.iter().filter_map(pod_labels).collect();
        if labels.is_empty() {
            return;
        }
        for child in answer
            .children
            .iter()
            .filter(|child| child.object.get("kind").is_some_and(|kind| kind == "Service"))
        {
            let Some(selector) = child.object.get("spec").and_then(|spec| spec["selector"].as_object())
            else {
                continue;
            };
            let finds = |labels: &&Value| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
            if selector.is_empty()
                || labels.iter().any(finds)
                || is_others(&Value::Object(child.object.clone()))
            {
                continue;
            }
            let shown: Vec<String> = labels.iter().map(|labels| in_words(labels)).collect();
            let problem = Problem::new("Service: no pods of this answer match the selector")
                .found(format!("pods with {}", shown.join(" or ")))
                .expected(format!("pods with {}", in_words(&Value::Object(selector.clone()))));
            let problem = Problem { place: Some(place(child, &["spec", "selector"])), ..problem };
            self.findings.add_seen(Rule::SelectorMismatch, problem, &request.file);
        }
    }
}

/// The spec of the pods that a child makes, if it makes any.
pub(super) fn pod_spec(child: &DesiredChild) -> Option<&Value> {
    let spec = child.object.get("spec")?;
    match child.object.get("kind")?.as_str()? {
        "CronJob" => Some(&spec["jobTemplate"]["spec"]["template"]["spec"]),
        "Pod" => Some(spec),
        _ => Some(&spec["template"]["spec"]),
    }
}

/// The labels of the pods that a child makes, if it makes any.
pub(super) fn pod_labels(child: &DesiredChild) -> Option<&Value> {
    let object = &child.object;
    let (kind, spec) = (object.get("kind")?.as_str()?, object.get("spec")?);
    match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => {
            Some(&spec["template"]["metadata"]["labels"])
        }
        "CronJob" => Some(&spec["jobTemplate"]["spec"]["template"]["metadata"]["labels"]),
        "Pod" => Some(&object.get("metadata")?["labels"]),
        _ => None,
    }
}

fn in_words(labels: &Value) -> String {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("`{key}: {}`", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "no label".into() } else { pairs.join(", ") }
}
