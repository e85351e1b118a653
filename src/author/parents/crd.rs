//! Reads a CustomResourceDefinition from a file.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::problem::Problem;
use crate::template::yaml;

/// One version of a kind that a file defines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Crd {
    pub group: String,
    pub kind: String,
    pub plural: String,
    pub version: String,
    pub is_namespaced: bool,
    /// Whether the status is written apart from the spec.
    pub has_status: bool,
    /// The schema of a whole object.
    pub schema: Value,
    /// The manifest.
    pub manifest: Value,
}

/// Which of the kinds and versions in a file is meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meant<'a> {
    pub kind: Option<&'a str>,
    /// The one that is stored, where none is named.
    pub version: Option<&'a str>,
}

/// Reads the definition of the kind that is meant.
pub(crate) fn read(path: &Path, meant: Meant) -> Result<Crd, Problem> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Problem::new(format!("`{file}` cannot be read: {error}")))?;
    let documents = yaml::read(&file, &text)?;
    let mut crds = documents
        .into_iter()
        .map(|document| document.value)
        .filter(|value| value["kind"] == "CustomResourceDefinition")
        .filter(|value| meant.kind.is_none_or(|kind| value["spec"]["names"]["kind"] == kind));
    let Some(manifest) = crds.next() else {
        let what = meant.kind.map_or(String::new(), |kind| format!(" of `{kind}`"));
        return Err(Problem::new(format!("`{file}` holds no CustomResourceDefinition{what}")));
    };
    if let Some(other) = crds.next() {
        let kinds = [&manifest, &other].map(|crd| format!("`{}`", text_of(&crd["spec"]["names"]["kind"])));
        return Err(Problem::new(format!("`{file}` holds several CustomResourceDefinitions"))
            .found(kinds.join(", "))
            .hint("say which one with `--kind`"));
    }
    of(manifest, meant.version)
        .map_err(|problem| Problem { message: format!("`{file}`: {}", problem.message), ..problem })
}

/// The kind that a manifest defines.
pub(crate) fn of(manifest: Value, version: Option<&str>) -> Result<Crd, Problem> {
    let spec = &manifest["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten();
    let is_meant = |candidate: &&Value| match version {
        Some(version) => candidate["name"] == version,
        None => candidate["storage"] == true,
    };
    let Some(chosen) = versions.clone().find(is_meant) else {
        let known: Vec<String> = versions.map(|version| format!("`{}`", text_of(&version["name"]))).collect();
        let which = version.map_or("is stored".into(), |version| format!("is called `{version}`"));
        let known = if known.is_empty() {
            "there are none".into()
        } else {
            format!("there are: {}", known.join(", "))
        };
        return Err(Problem::new(format!("no version {which}; {known}")));
    };
    let crd = Crd {
        group: text_of(&spec["group"]),
        kind: text_of(&spec["names"]["kind"]),
        plural: text_of(&spec["names"]["plural"]),
        version: text_of(&chosen["name"]),
        is_namespaced: spec["scope"] != "Cluster",
        has_status: chosen["subresources"]["status"].is_object(),
        schema: chosen["schema"]["openAPIV3Schema"].clone(),
        manifest: Value::Null,
    };
    if crd.schema.is_null() {
        return Err(Problem::new(format!("version `{}` has no schema", crd.version))
            .expected("`schema: {openAPIV3Schema: {type: object, …}}`"));
    }
    for (field, value) in [("group", &crd.group), ("names.kind", &crd.kind), ("names.plural", &crd.plural)] {
        if value.is_empty() {
            return Err(Problem::new(format!("the CustomResourceDefinition has no `spec.{field}`")));
        }
    }
    Ok(Crd { manifest, ..crd })
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}
