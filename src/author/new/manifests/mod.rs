//! An operator from plain manifests, such as what `helm template` prints.
//!
//! The manifests become templates that render to them again: names and the namespace follow the parent's, and what one
//! instance most likely has differently from another becomes a field of the parent's spec.

mod lift;
mod naming;
mod node;
mod read;
mod write;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::author::kinds::{child_kind, is_built_in};
use crate::author::new::manifests::lift::Lifts;
use crate::author::new::manifests::naming::Naming;
use crate::author::new::manifests::node::Node;
use crate::author::new::starter::STATUS_FIELDS;
use crate::author::new::{Names, NewFile, Sketch};
use crate::hook::local::to_yaml;
use crate::problem::Problem;

pub(in crate::author::new) fn sketch(names: Names, source: &Path) -> Result<Sketch, Problem> {
    let (manifests, mut notes) = read::read(source)?;
    let naming = Naming::of(&manifests);
    let lifts = Lifts::of(&manifests, &naming);
    notes.extend(naming.notes(&manifests));
    let parent = parent(&names, &naming, &lifts);
    let workloads = workloads(&manifests);
    let mut files = vec![
        NewFile::new("crd.yaml", crd(&names, &lifts)),
        NewFile::new("sync.yaml", template(&names, &manifests, &naming, &lifts, &workloads)),
        NewFile::new("example.yaml", to_yaml(&parent)),
        NewFile::new("cases/as-given/sync.request.yaml", to_yaml(&parent)),
    ];
    if !workloads.is_empty() {
        let request = json!({"parent": parent, "children": observed(&workloads)});
        files.push(NewFile::new("cases/is-ready/sync.request.yaml", to_yaml(&request)));
    }
    let kinds: BTreeSet<(&str, &str)> = manifests.iter().map(kind_of).collect();
    for (_, kind) in kinds.iter().filter(|(api_version, kind)| !is_built_in(api_version, kind)) {
        notes.push(format!("the plural of `{kind}` is a guess: see `childResources`"));
    }
    let children = kinds.into_iter().map(|(api_version, kind)| child_kind(api_version, kind)).collect();
    notes.extend(manifests.iter().filter(|manifest| holds_values(manifest)).map(|secret| {
        format!(
            "Secret `{}` stands in sync.yaml and in the cases with its values: keep them out of git, or let the template draw them (`random_string`)",
            name_of(secret)
        )
    }));
    let namespace = parent["metadata"]["namespace"].as_str().map(String::from);
    Ok(Sketch { names, files, children, promised: Some(manifests), notes, namespace })
}

fn kind_of(manifest: &Value) -> (&str, &str) {
    (manifest["apiVersion"].as_str().unwrap_or_default(), manifest["kind"].as_str().unwrap_or_default())
}

/// Whether it is a Secret with anything in it.
fn holds_values(manifest: &Value) -> bool {
    let filled = |field: &str| manifest[field].as_object().is_some_and(|values| !values.is_empty());
    kind_of(manifest) == ("v1", "Secret") && (filled("data") || filled("stringData"))
}

fn name_of(manifest: &Value) -> &str {
    manifest["metadata"]["name"].as_str().unwrap_or_default()
}

/// Those whose status tells how many of their pods are ready.
fn workloads(manifests: &[Value]) -> Vec<&Value> {
    manifests.iter().filter(|manifest| matches!(kind_of(manifest), (version, "Deployment" | "StatefulSet") if version.starts_with("apps/"))).collect()
}

fn observed(workloads: &[&Value]) -> Vec<Value> {
    let observed = |manifest: &&Value| {
        let replicas = manifest["spec"].get("replicas").cloned().unwrap_or(json!(1));
        json!({
            "apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": manifest["metadata"],
            "spec": {"replicas": replicas}, "status": {"readyReplicas": replicas},
        })
    };
    workloads.iter().map(observed).collect()
}

/// The parent whose children are the manifests.
fn parent(names: &Names, naming: &Naming, lifts: &Lifts) -> Value {
    let mut metadata = json!({"name": naming.base});
    if let Some(namespace) = &naming.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let spec: Map<String, Value> =
        lifts.fields.iter().map(|field| (field.name.clone(), field.value.clone())).collect();
    json!({"apiVersion": names.api_version(), "kind": names.kind, "metadata": metadata, "spec": spec})
}

fn crd(names: &Names, lifts: &Lifts) -> String {
    let fields: Map<String, Value> = lifts
        .fields
        .iter()
        .map(|field| {
            let mut schema = json!({"description": field.description});
            let (schema_fields, typed) = (schema.as_object_mut(), field.schema.as_object());
            if let (Some(schema), Some(typed)) = (schema_fields, typed) {
                schema.extend(typed.clone());
                schema.insert("default".into(), field.value.clone());
            }
            (field.name.clone(), schema)
        })
        .collect();
    let spec = json!({"type": "object", "default": {}, "properties": fields});
    let spec: String = to_yaml(&spec).lines().map(|line| format!("              {line}\n")).collect();
    names.fill(CRD).replace("<spec>\n", &spec).replace("<status>\n", STATUS_FIELDS)
}

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: <plural>.<group>
spec:
  group: <group>
  scope: Namespaced
  names:
    kind: <kind>
    listKind: <kind>List
    plural: <plural>
    singular: <singular>
  versions:
    - name: <version>
      served: true
      storage: true
      subresources:
        status: {}
      additionalPrinterColumns:
        - name: Ready
          type: string
          jsonPath: .status.conditions[?(@.type==\"Ready\")].status
        - name: Age
          type: date
          jsonPath: .metadata.creationTimestamp
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
<spec>
            status:
              type: object
              properties:
<status>
";

fn template(
    names: &Names,
    manifests: &[Value],
    naming: &Naming,
    lifts: &Lifts,
    workloads: &[&Value],
) -> String {
    let mut text = names.fill(HEAD);
    text.push_str(&naming.setting());
    for (index, manifest) in manifests.iter().enumerate() {
        let node = Node::of(manifest, index, naming, lifts);
        text.push_str("---\n");
        text.push_str(&write::document(&node));
    }
    text.push_str(&status(naming, workloads));
    text
}

const HEAD: &str = "\
{#
  What a <kind> is made into, from manifests. The names follow the parent's, the values that were lifted come from its spec.
  See what an edit changes: syncwright render <hook> sync hooks/<hook>/example.yaml
#}
";

/// Ready is what the workloads say that were observed.
fn status(naming: &Naming, workloads: &[&Value]) -> String {
    if workloads.is_empty() {
        return STATUS_OF_NOTHING.into();
    }
    let listed: Vec<String> = workloads
        .iter()
        .map(|workload| format!("(\"{}\", {})", kind_of(workload).1, naming.expression(name_of(workload))))
        .collect();
    STATUS_OF_WORKLOADS.replace("<workloads>", &listed.join(", "))
}

const STATUS_OF_NOTHING: &str = "\
---
status:
  conditions:
    - {{ condition(\"Ready\", \"True\", \"Rendered\", \"the children are as the spec asks\") }}
";

const STATUS_OF_WORKLOADS: &str = "\
---
{% set waiting = namespace(names=[]) %}
{% for kind, workload_name in [<workloads>] %}
{% set workload = children.find(kind, workload_name) %}
{% if workload.status.readyReplicas | default(0) < workload.spec.replicas | default(1) %}
{% set waiting.names = waiting.names + [kind ~ \" \" ~ workload_name] %}
{% endif %}
{% endfor %}
status:
  conditions:
    {% if waiting.names %}
    - {{ condition(\"Ready\", \"False\", \"WaitingForReplicas\", \"waiting for \" ~ waiting.names | join(\", \")) }}
    {% else %}
    - {{ condition(\"Ready\", \"True\", \"AllReplicasReady\", \"all replicas are ready\") }}
    {% endif %}
";

#[cfg(test)]
mod tests;
