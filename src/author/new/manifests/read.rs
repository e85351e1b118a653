//! Reads manifests from a folder, a file or stdin, and takes off what only a cluster writes.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::author::kinds::is_cluster_scoped;
use crate::problem::Problem;
use crate::template::yaml;

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

/// What `kubectl apply` leaves on an object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manifests that a namespaced parent can own, and notes about the others.
pub(super) fn read(source: &Path) -> Result<(Vec<Value>, Vec<String>), Problem> {
    let (mut manifests, mut notes) = (Vec::new(), Vec::new());
    for (file, text) in texts(source)? {
        for document in yaml::read(&file, &text)? {
            let place = document.places.start();
            for manifest in flattened(document.value) {
                check(&manifest).map_err(|problem| problem.at(place.clone()))?;
                match left_out(&manifest) {
                    Some(why) => notes.push(format!("{} is left out: {why}", said(&manifest))),
                    None => manifests.push(cleaned(manifest)),
                }
            }
        }
    }
    if manifests.is_empty() {
        let problem = Problem::new(format!("`{}` holds no manifest", source.display()));
        return Err(if notes.is_empty() { problem } else { problem.found(notes.join("; ")) });
    }
    Ok((manifests, notes))
}

/// Name and text of each file, in name order.
fn texts(source: &Path) -> Result<Vec<(String, String)>, Problem> {
    let name = source.display().to_string();
    let unreadable = |name: &str, error: io::Error| Problem::new(format!("`{name}` cannot be read: {error}"));
    if name == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| unreadable("stdin", error))?;
        return Ok(vec![("stdin".into(), text)]);
    }
    let mut files = Vec::new();
    find(source, &mut files).map_err(|error| unreadable(&name, error))?;
    files.sort();
    let text = |path: PathBuf| {
        let name = path.display().to_string();
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&name, error))?;
        Ok((name, text))
    };
    files.into_iter().map(text).collect()
}

fn find(source: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(source)?.is_dir() {
        files.push(source.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            find(&path, files)?;
        } else if matches!(extension.as_str(), "yaml" | "yml" | "json") {
            files.push(path);
        }
    }
    Ok(())
}

/// `kubectl get -o yaml` prints a list.
fn flattened(value: Value) -> Vec<Value> {
    match value {
        Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        value => vec![value],
    }
}

fn check(manifest: &Value) -> Result<(), Problem> {
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let name = &manifest["metadata"]["name"];
    for (field, value) in
        [("apiVersion", &manifest["apiVersion"]), ("kind", &manifest["kind"]), ("metadata.name", name)]
    {
        if !text(value) {
            return Err(Problem::new(format!("this is no manifest: it has no `{field}`")));
        }
    }
    Ok(())
}

fn left_out(manifest: &Value) -> Option<&'static str> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    if is_cluster_scoped(&text(&manifest["apiVersion"]), &text(&manifest["kind"])) {
        return Some("it belongs to no namespace, so a parent in one cannot own it");
    }
    let hook = &manifest["metadata"]["annotations"]["helm.sh/hook"];
    hook.is_string().then_some("it is a hook of Helm's, which is not there all the time")
}

fn said(manifest: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    format!("{} `{}`", text(&manifest["kind"]), text(&manifest["metadata"]["name"]))
}

fn cleaned(mut manifest: Value) -> Value {
    if let Some(fields) = manifest.as_object_mut() {
        fields.shift_remove("status");
    }
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
