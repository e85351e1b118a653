//! What the API server asks of pods and of their templates beyond their schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::author::check::finding::Rule;
use crate::author::check::look::{Look, below, items};
use crate::object::name::Gvk;
use crate::object::quantity::Quantity;
use crate::problem::{nearest, shown};

/// Where a kind has the spec of its pods.
fn pod_spec(gvk: &Gvk) -> Option<&'static [&'static str]> {
    match gvk.group_kind() {
        ("", "Pod") => Some(&["spec"]),
        ("", "ReplicationController")
        | ("batch", "Job")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") => {
            Some(&["spec", "template", "spec"])
        }
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        _ => None,
    }
}

/// The volumes that a StatefulSet gives each of its pods.
fn claims(object: &Value) -> BTreeSet<&str> {
    let templates = object["spec"]["volumeClaimTemplates"].as_array();
    templates.into_iter().flatten().filter_map(|template| template["metadata"]["name"].as_str()).collect()
}

impl Look<'_> {
    pub(super) fn pods(&mut self, gvk: &Gvk, object: &Value) {
        let Some(path) = pod_spec(gvk) else { return };
        let path: Vec<String> = path.iter().map(|step| step.to_string()).collect();
        let spec = path.iter().fold(object, |value, step| &value[step.as_str()]);
        match spec {
            Value::Object(spec) => {
                self.restarts(gvk, spec, &path);
                self.containers(spec, &path, &claims(object));
            }
            Value::Null => {
                self.say(Rule::MissingField, &path, "is missing");
            }
            _ => {}
        }
    }

    /// The default, `Always`, is nothing for a Job, and the only choice for what keeps its pods running.
    fn restarts(&mut self, gvk: &Gvk, spec: &Map<String, Value>, path: &[String]) {
        let policy = spec.get("restartPolicy").and_then(Value::as_str).unwrap_or("Always");
        let expected = match gvk.group_kind() {
            ("", "Pod") => return,
            ("batch", _) if policy == "Always" => "`OnFailure` or `Never`",
            ("batch", _) => return,
            _ if policy == "Always" => return,
            _ => "`Always`, which is the default",
        };
        let said = match spec.contains_key("restartPolicy") {
            true => self.say(Rule::BadValue, &below(path, &["restartPolicy"]), &format!("is `{policy}`")),
            false => self.say(Rule::MissingField, path, "has no `restartPolicy`"),
        };
        said.expected = Some(expected.into());
    }

    fn containers(&mut self, spec: &Map<String, Value>, path: &[String], claims: &BTreeSet<&str>) {
        let list =
            |field: &str| spec.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if spec.contains_key("containers") && list("containers").is_empty() {
            self.say(Rule::MissingField, &below(path, &["containers"]), "has no container");
        }
        let mut volumes = claims.clone();
        for (index, volume) in list("volumes").iter().enumerate() {
            let at = below(path, &["volumes", &index.to_string(), "name"]);
            self.label(&volume["name"], &at);
            volumes.extend(volume["name"].as_str());
        }
        let mut names = BTreeSet::new();
        for field in ["initContainers", "containers"] {
            for (index, container) in list(field).iter().enumerate() {
                let at = below(path, &[field, &index.to_string()]);
                self.container(container, &at, &volumes);
                let name = container["name"].as_str().unwrap_or_default();
                if field == "containers" && names.contains(name) {
                    let at = below(&at, &["name"]);
                    self.say(Rule::RepeatedKey, &at, &format!("is `{name}`, as that of an init container"));
                }
                if field == "initContainers" {
                    names.insert(name);
                }
            }
        }
    }

    fn container(&mut self, container: &Value, path: &[String], volumes: &BTreeSet<&str>) {
        self.label(&container["name"], &below(path, &["name"]));
        if container.is_object() && matches!(container["image"].as_str(), None | Some("")) {
            self.say(Rule::MissingField, path, "has no `image`");
        }
        for (index, port) in items(&container["ports"]) {
            let at = below(path, &["ports", &index]);
            self.port_name(&port["name"], &below(&at, &["name"]));
            self.port(&port["containerPort"], &below(&at, &["containerPort"]));
        }
        for (index, mount) in items(&container["volumeMounts"]) {
            let Some(name) = mount["name"].as_str().filter(|name| !volumes.contains(name)) else { continue };
            let at = below(path, &["volumeMounts", &index, "name"]);
            let known: Vec<String> = volumes.iter().map(|name| format!("`{name}`")).collect();
            let none = known.is_empty();
            let said =
                self.say(Rule::BadReference, &at, &format!("is `{name}`, and there is no such volume"));
            said.expected = (!none).then(|| known.join(", "));
        }
        self.resources(&container["resources"], &below(path, &["resources"]));
    }

    fn resources(&mut self, resources: &Value, path: &[String]) {
        for field in ["limits", "requests"] {
            let amounts = resources[field].as_object().into_iter().flatten();
            amounts.for_each(|(name, _)| self.resource_name(name, &below(path, &[field, name])));
        }
        for (name, request) in resources["requests"].as_object().into_iter().flatten() {
            let limit = &resources["limits"][name.as_str()];
            let (Some(asked), Some(most)) = (Quantity::from_json(request), Quantity::from_json(limit)) else {
                continue;
            };
            if asked > most {
                let at = below(path, &["requests", name]);
                let said =
                    self.say(Rule::BadValue, &at, &format!("is {}, more than the limit", shown(request)));
                said.expected = Some(format!("at most {}", shown(limit).trim_start_matches("the text ")));
            }
        }
    }

    /// A resource of Kubernetes' own, or one with a domain before it.
    fn resource_name(&mut self, name: &str, path: &[String]) {
        const OWN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
        if OWN.contains(&name) || name.contains('/') || name.starts_with("hugepages-") {
            return;
        }
        let said = self.say(Rule::BadName, path, "is no resource of a container");
        said.expected =
            Some("`cpu`, `memory`, `ephemeral-storage`, or a name with a domain before it".into());
        said.hint = nearest(name, OWN).map(|near| format!("did you mean `{near}`?"));
    }
}
