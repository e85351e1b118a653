//! Ports that the children of one answer name to each other: of a Service's pods, of an Ingress' Service.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::children::place;
use crate::author::check::finding::Rule;
use crate::author::check::look::items;
use crate::author::check::requests::Request;
use crate::author::check::selected::{pod_labels, pod_spec};
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::{Problem, nearest};

/// A path in a child and what is wrong there.
type Wrong = (Vec<String>, Problem);

impl Check {
    pub(super) fn ports(&mut self, request: &Request, answer: &Answer) {
        for child in &answer.children {
            let wrong = match child.object.get("kind").and_then(Value::as_str) {
                Some("Service") => of_service(child, answer),
                Some("Ingress") => of_ingress(child, answer),
                _ => continue,
            };
            for (path, problem) in wrong {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                self.findings.add_seen(Rule::BadReference, problem.at(place(child, &path)), &request.file);
            }
        }
    }
}

/// Names of ports that no container of the Service's pods has.
fn of_service(service: &DesiredChild, answer: &Answer) -> Vec<Wrong> {
    let spec = &service.object.get("spec").cloned().unwrap_or_default();
    let Some(selector) = spec["selector"].as_object().filter(|selector| !selector.is_empty()) else {
        return Vec::new();
    };
    let is_selected = |child: &&DesiredChild| {
        pod_labels(child)
            .is_some_and(|labels| selector.iter().all(|(key, value)| labels.get(key) == Some(value)))
    };
    let mut names: BTreeSet<String> = BTreeSet::new();
    let pods: Vec<&DesiredChild> = answer.children.iter().filter(is_selected).collect();
    for child in &pods {
        let spec = pod_spec(child).cloned().unwrap_or_default();
        let containers = items(&spec["containers"]).chain(items(&spec["initContainers"]));
        for (_, container) in containers {
            let ports = items(&container["ports"]);
            names.extend(ports.filter_map(|(_, port)| port["name"].as_str().map(String::from)));
        }
    }
    if pods.is_empty() {
        return Vec::new();
    }
    let wrong = items(&spec["ports"]).filter_map(|(index, port)| {
        let name = port["targetPort"].as_str().filter(|name| !names.contains(*name))?;
        let problem = Problem::new(format!("Service: no port of its pods is called `{name}`"));
        Some((path(&["spec", "ports", &index, "targetPort"]), among(problem, name, &names)))
    });
    wrong.collect()
}

/// Ports that a Service of the same answer does not have.
fn of_ingress(ingress: &DesiredChild, answer: &Answer) -> Vec<Wrong> {
    let spec = &ingress.object.get("spec").cloned().unwrap_or_default();
    let mut backends = vec![(path(&["spec", "defaultBackend"]), spec["defaultBackend"].clone())];
    for (rule, value) in items(&spec["rules"]) {
        for (index, item) in items(&value["http"]["paths"]) {
            let path = path(&["spec", "rules", &rule, "http", "paths", &index, "backend"]);
            backends.push((path, item["backend"].clone()));
        }
    }
    let wrong = backends.into_iter().filter_map(|(at, backend)| {
        let service = service_called(&backend["service"]["name"], answer)?;
        let ports: Vec<Value> =
            items(&service.object.get("spec")?["ports"]).map(|(_, port)| port.clone()).collect();
        let (field, wanted) = ["name", "number"]
            .into_iter()
            .map(|field| (field, &backend["service"]["port"][field]))
            .find(|(_, wanted)| !wanted.is_null())?;
        let key = if field == "name" { "name" } else { "port" };
        if ports.iter().any(|port| port[key] == *wanted) {
            return None;
        }
        let name = backend["service"]["name"].as_str().unwrap_or_default();
        let problem = Problem::new(format!("Ingress: the Service `{name}` has no port `{}`", plain(wanted)));
        let known: BTreeSet<String> = ports.iter().map(|port| plain(&port[key])).collect();
        let at = [&at[..], &path(&["service", "port", field])].concat();
        Some((at, among(problem, &plain(wanted), &known)))
    });
    wrong.collect()
}

fn service_called<'a>(name: &Value, answer: &'a Answer) -> Option<&'a DesiredChild> {
    answer.children.iter().find(|child| {
        let object = &child.object;
        object.get("kind").is_some_and(|kind| kind == "Service")
            && object.get("metadata").is_some_and(|metadata| !name.is_null() && metadata["name"] == *name)
    })
}

fn among(problem: Problem, name: &str, known: &BTreeSet<String>) -> Problem {
    let known: Vec<&str> = known.iter().map(String::as_str).filter(|known| *known != "null").collect();
    if let Some(near) = nearest(name, known.iter().copied()) {
        return problem.hint(format!("did you mean `{near}`?"));
    }
    if known.is_empty() {
        return problem.hint("none of them has a name: give the number");
    }
    problem.expected(format!("`{}`", known.join("` or `")))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

fn path(steps: &[&str]) -> Vec<String> {
    steps.iter().map(|step| step.to_string()).collect()
}
