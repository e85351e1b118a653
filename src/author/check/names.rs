//! Names and labels that Kubernetes refuses, or that its controllers cannot work with.

use serde_json::{Map, Value, json};

use crate::author::check::examples::Wrong;
use crate::author::check::finding::Rule;
use crate::object::name::Gvk;
use crate::object::selector::Selector;
use crate::object::validity::{dns_subdomain, label_key, label_value, object_name};
use crate::problem::Problem;
use crate::schema::dotted;

/// The longest name of a kind, where it is shorter than a DNS name may be, and why.
const LIMITS: [(&str, &str, usize, &str); 5] = [
    ("", "Service", 63, "a Service's name is a DNS label"),
    ("", "Namespace", 63, "a Namespace's name is a DNS label"),
    ("apps", "StatefulSet", 52, "its pods carry the name and a hash in one label of 63 characters"),
    ("batch", "CronJob", 52, "its Jobs are named after it, with 11 characters more"),
    ("batch", "Job", 63, "its pods carry the name in a label"),
];

/// Kinds whose names may be almost any text.
const FREELY_NAMED: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// The names and labels of an object that are wrong.
pub(in crate::author) fn wrong(gvk: &Gvk, object: &Value) -> Vec<Wrong> {
    let mut found: Vec<Wrong> = name(gvk, object).into_iter().collect();
    labels(object, &mut Vec::new(), &mut found);
    found
}

/// What is wrong with the name of an object itself.
pub(in crate::author) fn name(gvk: &Gvk, object: &Value) -> Option<Wrong> {
    let name = object["metadata"]["name"].as_str()?;
    let path = vec!["metadata".to_string(), "name".to_string()];
    let said = |why: &str| Problem::new(format!("{}: the name `{name}` {why}", gvk.kind));
    if let Some((.., limit, why)) =
        LIMITS.iter().find(|(group, kind, ..)| (*group, *kind) == (&gvk.group, &gvk.kind))
        && name.len() > *limit
    {
        let problem = said(&format!("has {} characters", name.len()));
        let hint = format!("{why}; `dns_name(…, max={limit})` shortens a name and keeps it unique");
        return Some((Rule::BadName, path, problem.expected(format!("at most {limit}")).hint(hint)));
    }
    let free = gvk.group == "rbac.authorization.k8s.io" && FREELY_NAMED.contains(&&*gvk.kind);
    let dotted = gvk.group_kind() == ("", "Service") && name.contains('.');
    let why = match name {
        _ if dotted => "must not contain dots".into(),
        name => if free { object_name(name) } else { dns_subdomain(name) }.err()?,
    };
    let hint = "`dns_name(…)` makes a name of any text";
    Some((Rule::BadName, path, said(&why).hint(hint)))
}

/// The fields of maps that hold labels, at any depth.
const LABELS: [&str; 3] = ["labels", "matchLabels", "nodeSelector"];

fn labels(value: &Value, path: &mut Vec<String>, found: &mut Vec<Wrong>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                match value {
                    Value::Object(map) if LABELS.contains(&&**key) => labels_of(map, path, found),
                    Value::Object(map) if key == "annotations" => annotations_of(map, path, found),
                    _ => labels(value, path, found),
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                labels(item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn labels_of(map: &Map<String, Value>, path: &[String], found: &mut Vec<Wrong>) {
    annotations_of(map, path, found);
    for (key, value) in map {
        let Some(Err(why)) = value.as_str().map(label_value) else { continue };
        let path = [path, std::slice::from_ref(key)].concat();
        let text = value.as_str().unwrap_or_default();
        let problem = Problem::new(format!("`{}`: the value `{text}` {why}", dotted(&path)));
        found.push((Rule::BadLabel, path, problem.hint("`dns_name(…, max=63)` makes a value of any text")));
    }
}

/// Keys of labels and of annotations keep to the same rules.
fn annotations_of(map: &Map<String, Value>, path: &[String], found: &mut Vec<Wrong>) {
    for key in map.keys() {
        let Err(why) = label_key(key) else { continue };
        let problem = Problem::new(format!("`{}`: the key `{key}` {why}", dotted(path)));
        found.push((Rule::BadLabel, [path, std::slice::from_ref(key)].concat(), problem));
    }
}

/// Requirements of a workload's selector that its own pods do not meet.
pub(in crate::author) fn selector(gvk: &Gvk, object: &Value) -> Vec<Wrong> {
    let workload = matches!(&*gvk.kind, "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet");
    let selector = &object["spec"]["selector"];
    if !workload || !selector.is_object() {
        return Vec::new();
    }
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    let said = || Problem::new(format!("{}: its own pods do not match the selector", gvk.kind));
    let path = |steps: &[&str]| {
        let all = ["spec", "selector"].iter().chain(steps);
        all.map(|step| step.to_string()).collect::<Vec<_>>()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let unmet = selector["matchLabels"].as_object().into_iter().flatten();
    let mut found: Vec<Wrong> = unmet
        .filter(|(key, value)| labels.get(*key) != Some(*value))
        .map(|(key, value)| {
            let problem = match labels.get(key) {
                Some(other) => said().found(format!("`{key}: {}` in the pod template", text(other))),
                None => said().found(format!("no `{key}` in the pod template's labels")),
            };
            let problem = problem.expected(format!("`{key}: {}`", text(value)));
            (Rule::SelectorMismatch, path(&["matchLabels", key]), problem)
        })
        .collect();
    let expressions = json!({"matchExpressions": selector["matchExpressions"]});
    let unmet = match Selector::from_json(&expressions) {
        Ok(selector) => selector
            .unmet(labels.as_object().unwrap_or(&Map::new()))
            .map(|requirement| (path(&["matchExpressions"]), said().expected(format!("`{requirement}`")))),
        Err(error) => {
            let problem =
                Problem::new(format!("{}: `spec.selector.{}`: {}", gvk.kind, error.path, error.message));
            Some((path(&["matchExpressions"]), problem))
        }
    };
    found.extend(unmet.map(|(path, problem)| (Rule::SelectorMismatch, path, problem)));
    let none = |field: &str| match &selector[field] {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        other => other.is_null(),
    };
    if none("matchLabels") && none("matchExpressions") {
        let problem = Problem::new(format!("{}: the selector is empty", gvk.kind));
        found.push((Rule::SelectorMismatch, path(&[]), problem.expected("the labels of the pod template")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(object: Value, expected: &[&str]) {
        let gvk = crate::author::check::requests::gvk(&object);
        let messages: Vec<String> =
            wrong(&gvk, &object).into_iter().map(|(_, _, problem)| problem.message).collect();
        assert_eq!(messages, expected);
    }

    #[test]
    fn names_have_the_limits_of_their_kinds() {
        let object = |api_version: &str, kind: &str, length: usize| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x".repeat(length)}});
        check(object("apps/v1", "StatefulSet", 52), &[]);
        check(object("v1", "ConfigMap", 253), &[]);
        for (api_version, kind, length) in
            [("apps/v1", "StatefulSet", 53), ("batch/v1", "CronJob", 53), ("v1", "Service", 64)]
        {
            let name = "x".repeat(length);
            check(
                object(api_version, kind, length),
                &[&format!("{kind}: the name `{name}` has {length} characters")],
            );
        }
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "system:x"}});
        check(role, &[]);
    }

    #[test]
    fn labels_are_looked_at_wherever_they_are() {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {"a b": "x"}},
            "spec": {"template": {"metadata": {"labels": {"app": "a b"}, "annotations": {"any": "text at all"}}}}});
        check(
            object,
            &[
                "`metadata.labels`: the key `a b` must consist of letters, digits, `-`, `_` and `.`",
                "`spec.template.metadata.labels.app`: the value `a b` must consist of letters, digits, `-`, `_` and `.`",
            ],
        );
    }
}
