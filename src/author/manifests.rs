//! Reads manifests from a folder, a file or stdin, as `kubectl get -o yaml` and `helm template` print them.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::author::check::names;
use crate::author::check::requests::gvk;
use crate::problem::{Place, Problem};
use crate::template::yaml;

/// Every object, in the order of the files' names; a list gives its items. `-` is stdin.
pub(crate) fn read(source: &Path) -> Result<Vec<Value>, Problem> {
    let (mut manifests, mut seen) = (Vec::new(), HashMap::new());
    for (file, text) in texts(source)? {
        for document in yaml::read(&file, &text).map_err(|problem| unrendered(problem, &text))? {
            let place = document.places.start();
            for manifest in flattened(document.value) {
                check(&manifest).map_err(|problem| problem.at(place.clone()))?;
                if let Some(first) = seen.insert(identity(&manifest), place.clone()) {
                    return Err(twice(&manifest, &first).at(place));
                }
                manifests.push(manifest);
            }
        }
    }
    Ok(manifests)
}

/// A chart's own template is no YAML.
fn unrendered(problem: Problem, text: &str) -> Problem {
    match text.contains("{{") {
        true => problem.hint("this is a template: render it first, `helm template NAME CHART | … -`"),
        false => problem,
    }
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

/// What tells an object from all others: group, kind, namespace, name.
fn identity(manifest: &Value) -> [String; 4] {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (api_version, metadata) = (text(&manifest["apiVersion"]), &manifest["metadata"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_string();
    [group, text(&manifest["kind"]), text(&metadata["namespace"]), text(&metadata["name"])]
}

fn twice(manifest: &Value, first: &Place) -> Problem {
    let [_, kind, namespace, name] = identity(manifest);
    let name = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    Problem::new(format!("{kind} `{name}` is there twice")).found(format!("it is also at {first}"))
}

fn check(manifest: &Value) -> Result<(), Problem> {
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let name = &manifest["metadata"]["name"];
    for (field, value) in
        [("apiVersion", &manifest["apiVersion"]), ("kind", &manifest["kind"]), ("metadata.name", name)]
    {
        if !text(value) {
            let problem = Problem::new(format!("this is no manifest: it has no `{field}`"));
            let built =
                manifest.get("resources").is_some_and(Value::is_array) && manifest.get("spec").is_none();
            return Err(match built {
                true => problem.hint("of a kustomization, give what it makes: `kubectl kustomize DIR | … -`"),
                false => problem,
            });
        }
    }
    let (gvk, given) = (gvk(manifest), names::name(&gvk(manifest), manifest));
    let Some((.., problem)) = given else { return Ok(()) };
    let message = format!("{}; no cluster takes it", problem.message);
    let problem = Problem { message, hint: None, ..problem };
    let placeholder = name.as_str().is_some_and(|name| name.starts_with("RELEASE-NAME"));
    Err(match placeholder {
        true => problem.hint("give the release a name: `helm template NAME CHART`"),
        false => problem.hint(format!("a {} is called by lower-case letters, digits and `-`", gvk.kind)),
    })
}
