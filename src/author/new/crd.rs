//! An operator for a kind that is defined already: its CRD as it is, and templates to begin with.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::author::kinds::child_kind;
use crate::author::new::names::check_hook;
use crate::author::new::{Names, NewFile, Scope, Sketch, Wish};
use crate::author::parents::crd::{self, Crd, Meant};
use crate::author::parents::example;
use crate::hook::local::to_yaml;
use crate::problem::Problem;
use crate::template::yaml;

pub(in crate::author::new) fn sketch(wish: Wish, file: &Path) -> Result<Sketch, Problem> {
    check_hook(&wish.hook)?;
    let meant = Meant { kind: wish.kind.as_deref(), version: wish.version.as_deref() };
    let crd = crd::read(file, meant)?;
    agree("group", wish.group.as_deref(), &crd.group)?;
    agree("plural", wish.plural.as_deref(), &crd.plural)?;
    let scope = if crd.is_namespaced { Scope::Namespaced } else { Scope::Cluster };
    let names = Names {
        hook: wish.hook,
        group: crd.group.clone(),
        version: crd.version.clone(),
        kind: crd.kind.clone(),
        plural: crd.plural.clone(),
        scope,
    };
    names.check()?;
    let parent = to_yaml(&parent(&crd));
    let mut notes = Vec::new();
    if !crd.has_status {
        notes.push(format!("`{}` has no status subresource: the hook answers no status", crd.kind));
    }
    Ok(Sketch {
        files: vec![
            NewFile::new("crd.yaml", manifest(file, &crd)?),
            NewFile::new("sync.yaml", template(&names, &crd)),
            NewFile::new("example.yaml", &parent),
            NewFile::new("cases/first-sync/sync.request.yaml", &parent),
        ],
        children: vec![child_kind("v1", "ConfigMap")],
        promised: None,
        notes,
        namespace: None,
        names,
    })
}

fn agree(what: &str, wished: Option<&str>, found: &str) -> Result<(), Problem> {
    match wished.filter(|wished| *wished != found) {
        None => Ok(()),
        Some(wished) => Err(Problem::new(format!("the CustomResourceDefinition is of another {what}"))
            .found(format!("`{found}`"))
            .expected(format!("`{wished}`, as `--{what}` says"))),
    }
}

/// The author's own text where the file holds nothing else.
fn manifest(file: &Path, crd: &Crd) -> Result<String, Problem> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file)
        .map_err(|error| Problem::new(format!("`{name}` cannot be read: {error}")))?;
    let is_alone = yaml::read(&name, &text)?.len() == 1;
    Ok(if is_alone { text } else { to_yaml(&crd.manifest) })
}

fn parent(crd: &Crd) -> Value {
    let mut parent = json!({
        "apiVersion": format!("{}/{}", crd.group, crd.version),
        "kind": crd.kind,
        "metadata": {"name": "example"},
    });
    if crd.schema["properties"].get("spec").is_some() {
        parent["spec"] = example::required(&crd.schema["properties"]["spec"]);
    }
    parent
}

fn template(names: &Names, crd: &Crd) -> String {
    let namespace = match names.scope {
        Scope::Namespaced => "",
        Scope::Cluster => "  namespace: default\n",
    };
    let mut text = names.fill(HEAD);
    for (name, schema) in crd.schema["properties"]["spec"]["properties"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "    {name}: {}", described(schema));
    }
    text.push_str(&names.fill(&BODY.replace("<namespace>", namespace)));
    text.push_str(status(crd));
    text
}

const HEAD: &str = "\
{#
  What a <kind> is made into. To begin with, a ConfigMap that holds its spec; put your manifests in its place, and declare
  their kinds under `childResources` in the file of definitions.
  See what an edit changes: syncwright render <hook> sync hooks/<hook>/example.yaml

  The fields of `parent.spec`:
";

const BODY: &str = "\
#}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ dns_name(parent.metadata.name, \"spec\") }}
<namespace>data:
  spec.json: {{ parent.spec | default({}) | to_json }}
";

/// A field's type and bounds in a few words, safe inside a comment.
fn described(schema: &Value) -> String {
    let kind = schema["type"].as_str().unwrap_or("anything");
    let bounds =
        [("minimum", "at least"), ("maximum", "at most"), ("default", "default"), ("enum", "one of")];
    let mut words = kind.to_string();
    for (key, said) in bounds {
        if let Some(value) = schema.get(key) {
            let _ = write!(words, ", {said} {value}");
        }
    }
    words.replace("#}", "# }")
}

/// A status of the fields that the schema has, so that none of it is pruned.
fn status(crd: &Crd) -> &'static str {
    let none = Map::new();
    let fields = crd.schema["properties"]["status"]["properties"].as_object().unwrap_or(&none);
    match (crd.has_status, fields.contains_key("conditions")) {
        (false, _) => "",
        (true, false) => "---\nstatus: {}\n",
        (true, true) => {
            "---\nstatus:\n  conditions:\n    - {{ condition(\"Ready\", \"True\", \"Rendered\", \"the children are as the spec asks\") }}\n"
        }
    }
}
