//! Picks the manifests that a parent can own, and takes off what only a cluster writes.

use std::path::Path;

use serde_json::Value;

use crate::author::kinds::is_cluster_scoped;
use crate::author::manifests;
use crate::author::new::manifests::naming;
use crate::problem::Problem;

/// Fields of `metadata` that the API server writes.
const OF_THE_SERVER: [&str; 7] = [
    "creationTimestamp",
    "uid",
    "resourceVersion",
    "generation",
    "managedFields",
    "selfLink",
    "ownerReferences",
];

/// The group of the definitions themselves.
const DEFINITIONS: &str = "metacontroller.k8s.io/";

/// What `kubectl apply` leaves on an object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manifests that a namespaced parent can own, and notes about the others.
pub(super) fn read(source: &Path) -> Result<(Vec<Value>, Vec<String>), Problem> {
    let (mut manifests, mut notes) = (Vec::new(), Vec::new());
    let all = manifests::read(source)?;
    if let Some(definition) = all.iter().find(|manifest| {
        manifest["apiVersion"].as_str().is_some_and(|version| version.starts_with(DEFINITIONS))
    }) {
        return Err(Problem::new(format!(
            "{} is a definition, and no child of an operator",
            said(definition)
        ))
        .hint(
            "give the manifests that are to become children; `--controllers` names the file of definitions",
        ));
    }
    let namespace = main_namespace(&all);
    for manifest in all {
        let elsewhere = || elsewhere(&manifest, namespace.as_deref()?);
        match left_out(&manifest).map(String::from).or_else(elsewhere) {
            Some(why) => notes.push(format!("{} is left out: {why}", said(&manifest))),
            None => manifests.push(cleaned(manifest)),
        }
    }
    if manifests.is_empty() {
        let problem = Problem::new(format!("`{}` holds no manifest", source.display()));
        return Err(if notes.is_empty() { problem } else { problem.found(notes.join("; ")) });
    }
    Ok((manifests, notes))
}

fn left_out(manifest: &Value) -> Option<&'static str> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    if is_cluster_scoped(&text(&manifest["apiVersion"]), &text(&manifest["kind"])) {
        return Some("it belongs to no namespace, so a parent in one cannot own it");
    }
    let hook = &manifest["metadata"]["annotations"]["helm.sh/hook"];
    hook.is_string().then_some("it is a hook of Helm's, which is not there all the time")
}

/// The namespace of the main one of those manifests that say theirs. The others go where it goes.
fn main_namespace(manifests: &[Value]) -> Option<String> {
    let says = |manifest: &&Value| manifest["metadata"]["namespace"].is_string();
    let main = naming::main(manifests.iter().filter(|manifest| left_out(manifest).is_none()).filter(says))?;
    Some(main["metadata"]["namespace"].as_str()?.to_string())
}

/// Owner references do not reach into another namespace.
fn elsewhere(manifest: &Value, namespace: &str) -> Option<String> {
    let own = manifest["metadata"]["namespace"].as_str()?;
    (own != namespace)
        .then(|| format!("it is in the namespace `{own}`, and a parent in `{namespace}` cannot own it"))
}

fn said(manifest: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    format!("{} `{}`", text(&manifest["kind"]), text(&manifest["metadata"]["name"]))
}

fn cleaned(mut manifest: Value) -> Value {
    if let Some(fields) = manifest.as_object_mut() {
        fields.shift_remove("status");
    }
    quote_fractions(&mut manifest);
    let Some(metadata) = manifest["metadata"].as_object_mut() else { return manifest };
    for field in OF_THE_SERVER {
        metadata.shift_remove(field);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        && annotations.shift_remove(LAST_APPLIED).is_some()
        && annotations.is_empty()
    {
        metadata.shift_remove("annotations");
    }
    manifest
}

/// `cpu: 0.5` as `"0.5"`: Kubernetes reads both alike, but no type of a CRD takes the one beside `1Gi`.
fn quote_fractions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                match inner {
                    Value::Object(amounts) if key == "requests" || key == "limits" => {
                        amounts.values_mut().for_each(quote_fraction);
                    }
                    inner => quote_fractions(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quote_fractions),
        _ => {}
    }
}

fn quote_fraction(amount: &mut Value) {
    if let Value::Number(number) = amount
        && number.is_f64()
    {
        *amount = Value::String(number.to_string());
    }
}
