//! Which fields of a live object cannot change.

use serde_json::Value;

use crate::object::name::Gvk;
use crate::schema::Kind;

/// What of an object stays as it was made.
enum Fixed {
    /// The fields at these paths.
    These(&'static [&'static str]),
    /// All fields of the spec but these.
    SpecBut(&'static [&'static str]),
}

/// What the API server's validation of updates refuses in 1.36.
const FIXED: [(&str, &str, Fixed); 15] = [
    ("apps", "DaemonSet", Fixed::These(&["spec.selector"])),
    ("apps", "Deployment", Fixed::These(&["spec.selector"])),
    ("apps", "ReplicaSet", Fixed::These(&["spec.selector"])),
    (
        "apps",
        "StatefulSet",
        Fixed::SpecBut(&[
            "minReadySeconds",
            "ordinals",
            "persistentVolumeClaimRetentionPolicy",
            "replicas",
            "revisionHistoryLimit",
            "template",
            "updateStrategy",
        ]),
    ),
    (
        "batch",
        "Job",
        Fixed::These(&[
            "spec.completionMode",
            "spec.completions",
            "spec.podFailurePolicy",
            "spec.selector",
            "spec.template",
        ]),
    ),
    ("", "Pod", Fixed::SpecBut(&["activeDeadlineSeconds", "containers", "initContainers", "tolerations"])),
    ("", "PersistentVolumeClaim", Fixed::SpecBut(&["resources", "volumeAttributesClassName"])),
    ("", "Service", Fixed::These(&["spec.clusterIP", "spec.clusterIPs"])),
    ("", "Secret", Fixed::These(&["type"])),
    ("networking.k8s.io", "IngressClass", Fixed::These(&["spec.controller"])),
    ("node.k8s.io", "RuntimeClass", Fixed::These(&["handler"])),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", Fixed::These(&["roleRef"])),
    ("rbac.authorization.k8s.io", "RoleBinding", Fixed::These(&["roleRef"])),
    ("scheduling.k8s.io", "PriorityClass", Fixed::These(&["preemptionPolicy", "value"])),
    (
        "storage.k8s.io",
        "StorageClass",
        Fixed::These(&["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"]),
    ),
];

/// The data of these stays where `immutable` is set.
const SEALED: [&str; 3] = ["binaryData", "data", "stringData"];

/// Paths of fixed fields that differ, each as deep as the two part.
pub(super) fn differing(gvk: &Gvk, kind: Option<&Kind>, before: &Value, after: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for path in fixed_in(gvk, before, after) {
        let (one, other) = (at(before, &path), at(after, &path));
        if one != other {
            found.push(parting(path, one, other));
        }
    }
    if let Some(kind) = kind.filter(|kind| !kind.built_in) {
        part_by_schema(kind, before, after, &mut Vec::new(), &mut found);
    }
    found
}

fn fixed_in(gvk: &Gvk, before: &Value, after: &Value) -> Vec<Vec<String>> {
    let split = |path: &&str| path.split('.').map(String::from).collect::<Vec<_>>();
    let known = FIXED.iter().find(|(group, kind, _)| (*group, *kind) == gvk.group_kind());
    let mut paths: Vec<Vec<String>> = match known.map(|(.., fixed)| fixed) {
        Some(Fixed::These(paths)) => paths.iter().map(split).collect(),
        Some(Fixed::SpecBut(others)) => {
            let fields = [before, after].map(|object| object["spec"].as_object());
            let mut names: Vec<&String> = fields.into_iter().flatten().flat_map(|spec| spec.keys()).collect();
            names.sort();
            names.dedup();
            names.retain(|name| !others.contains(&&***name));
            names.into_iter().map(|name| vec!["spec".to_string(), name.clone()]).collect()
        }
        None => Vec::new(),
    };
    if matches!(gvk.group_kind(), ("", "ConfigMap" | "Secret")) && before["immutable"] == true {
        paths.extend(SEALED.iter().map(split));
    }
    paths
}

fn at<'v>(object: &'v Value, path: &[String]) -> &'v Value {
    path.iter().fold(object, |value, step| &value[step.as_str()])
}

/// The path to where two values part.
fn parting(mut path: Vec<String>, one: &Value, other: &Value) -> Vec<String> {
    let deeper = match (one, other) {
        (Value::Object(one), Value::Object(other)) => one
            .iter()
            .find(|(key, value)| other.get(*key) != Some(*value))
            .map(|(key, value)| (key.clone(), value, other.get(key).unwrap_or(&Value::Null))),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let index = (0..one.len()).find(|index| one[*index] != other[*index]);
            index.map(|index| (index.to_string(), &one[index], &other[index]))
        }
        _ => None,
    };
    match deeper {
        Some((step, one, other)) => {
            path.push(step);
            parting(path, one, other)
        }
        None => path,
    }
}

/// Fields that a CRD holds fast by a rule of its own.
fn part_by_schema(
    kind: &Kind,
    one: &Value,
    other: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) {
    if one == other {
        return;
    }
    if kind.is_fixed(path) {
        found.push(path.clone());
        return;
    }
    let (Value::Object(fields), Value::Object(others)) = (one, other) else { return };
    for (key, value) in fields {
        let Some(later) = others.get(key) else { continue };
        path.push(key.clone());
        part_by_schema(kind, value, later, path, found);
        path.pop();
    }
}
