//! What is known of the kinds that the API server defines itself: which values it fills in, leaves out or rewrites.

use serde_json::{Map, Value};

use super::same::{is_empty, same_scalar};

/// Groups of the kinds that the API server defines itself. Their zero values may be left out when stored.
pub(super) const BUILT_IN_GROUPS: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Texts that defaults of built-in kinds put into values that have one owner.
const FILLED_IN: [(&str, &str); 11] = [
    ("allocationMode", "ExactCount"),
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("apiVersion", "v1"),
    ("divisor", "0"),
    ("kind", "PersistentVolumeClaim"),
    ("matchPolicy", "Equivalent"),
    ("name", ""),
    ("protocol", "TCP"),
    ("scope", "*"),
    ("status", "True"),
    ("volumeMode", "Filesystem"),
];

/// Whether a map's keys are chosen by users, so that each of them counts and values are text.
pub(super) fn chosen_by_users(field: &str, built_in: bool) -> bool {
    match field {
        "labels" | "annotations" | "matchLabels" | "nodeSelector" => true,
        "data" | "stringData" | "binaryData" | "parameters" => built_in,
        field => built_in && field.ends_with("elector"),
    }
}

/// Whether a map of a built-in kind holds quantities by resource.
pub(super) fn holds_amounts(field: &str) -> bool {
    matches!(field, "limits" | "requests" | "capacity" | "allocatable" | "hard" | "used" | "podFixed")
}

/// Whether a single field of a built-in kind holds a quantity. `map` is the map it is in.
pub(super) fn is_amount(field: Option<&str>, map: Option<&str>) -> bool {
    match field {
        Some("sizeLimit" | "divisor" | "averageValue") => true,
        Some("value") => map == Some("target"),
        _ => false,
    }
}

/// Whether a map picks objects. Such maps have one owner, however few entries they have.
pub(super) fn is_selector(field: &str) -> bool {
    field == "matchLabels" || field.ends_with("elector")
}

/// Whether a built-in kind's server-side defaults put this entry into a live map that has one owner. `map` is the
/// map's own name, where it has one.
pub(super) fn filled_in(field: &str, value: &Value, live: &Map<String, Value>, map: Option<&str>) -> bool {
    match (field, value) {
        ("namespaceSelector" | "objectSelector", value) => is_empty(value),
        // Claim templates of a StatefulSet carry what a claim of its own would.
        ("status", Value::Object(_)) => true,
        ("apiVersion", _) if !matches!(map, None | Some("fieldRef")) => false,
        // A LimitRange's defaults follow from its limits.
        ("default", value) => live.get("max") == Some(value),
        ("defaultRequest", value) => ["default", "min"].iter().any(|field| live.get(*field) == Some(value)),
        ("count", Value::Number(number)) => number.as_i64() == Some(1),
        ("expirationSeconds", Value::Number(number)) => number.as_i64() == Some(3600),
        (field, Value::String(text)) => FILLED_IN.contains(&(field, text)),
        _ => false,
    }
}

/// Whether the server may store a value by leaving it out. Built-in kinds leave out what is zero or empty.
pub(super) fn may_be_left_out(value: &Value, typed: bool) -> bool {
    match value {
        Value::Null => true,
        _ if !typed => false,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.values().all(|value| may_be_left_out(value, typed)),
    }
}

/// Whether a pod's tolerations are the wanted ones and those that admission puts on every pod.
pub(super) fn admitted(wanted: &[Value], live: &[Value]) -> bool {
    let covered = |want: &Value, have: &Value| match want {
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            have.get(name).map_or_else(|| may_be_left_out(value, true), |other| same_scalar(value, other))
        }),
        _ => false,
    };
    let by_admission = |have: &Value| {
        have.get("key").and_then(Value::as_str).is_some_and(|key| key.starts_with("node.kubernetes.io/"))
    };
    wanted.iter().all(|want| live.iter().any(|have| covered(want, have)))
        && live.iter().all(|have| by_admission(have) || wanted.iter().any(|want| covered(want, have)))
}
