//! What `syncwright new` writes runs at once: the kind is applied, the controller is started, the example is reconciled.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::lab::Lab;

/// A lab with an operator that was made in its folder; the kind is installed, and all labels are as they were written.
fn made(lab: &Lab, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
        .args(["new", "site", "--group", &lab.group])
        .args(arguments)
        .current_dir(lab.folder.path())
        .output()
        .expect("the binary was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    apply(lab, "crd.yaml");
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.{}", lab.group);
    lab.plane.delete_at_end(crd);
    lab.wait(&lab.path(&lab.api_version(), "sites", ""), "the kind can be listed", |_| true);
}

fn apply(lab: &Lab, file: &str) {
    let path = lab.folder.path().join("hooks/site").join(file);
    lab.plane.apply(&lab.namespace, &fs::read_to_string(path).expect("the file was written"));
}

fn is_ready(parent: &Value) -> bool {
    let conditions = parent["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[test]
fn a_new_operator_reconciles_its_example() {
    let lab = Lab::bare("author-new");
    made(&lab, &[]);
    let _controller = lab.start(&[]);
    apply(&lab, "example.yaml");
    let site = lab.path(&lab.api_version(), "sites", "example");
    let parent = lab.wait(&site, "it is ready", is_ready);
    assert_eq!(parent["status"]["readyReplicas"], 2);
    lab.get(&lab.path("v1", "services", "example"));
}

const KIND: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.<group>}
spec:
  group: <group>
  scope: Namespaced
  names: {kind: Site, plural: sites}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [size]
              properties: {size: {type: string, pattern: '^[0-9]+Gi$'}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

#[test]
fn an_operator_from_a_crd_reconciles_its_example() {
    let lab = Lab::bare("author-crd");
    fs::write(lab.folder.path().join("kind.yaml"), KIND.replace("<group>", &lab.group)).unwrap();
    made(&lab, &["--from", "kind.yaml"]);
    let _controller = lab.start(&[]);
    apply(&lab, "example.yaml");
    let child = lab.wait(&lab.config_map("example-spec"), "the child is there", |_| true);
    assert_eq!(child["data"]["spec.json"], "{\"size\":\"1Gi\"}");
    lab.wait_synced(&lab.path(&lab.api_version(), "sites", "example"));
}

const MANIFESTS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-config, labels: {app: shop}}
data: {page: '{{ not ours }}'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
        - name: main
          image: nginx:1.29
          ports: [{containerPort: 8080}]
          readinessProbe: {tcpSocket: {port: 8080}}
          resources: {requests: {cpu: 100m, memory: 16Mi}}
          envFrom: [{configMapRef: {name: shop-config}}]
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}
";

#[test]
fn an_operator_from_manifests_reconciles_its_example_and_another_parent() {
    let lab = Lab::bare("author-manifests");
    fs::write(lab.folder.path().join("all.yaml"), MANIFESTS).unwrap();
    made(&lab, &["--from-manifests", "all.yaml"]);
    let _controller = lab.start(&[]);
    apply(&lab, "example.yaml");
    let other = serde_json::json!({
        "apiVersion": lab.api_version(), "kind": "Site", "metadata": {"name": "other"}, "spec": {"replicas": 1},
    });
    lab.create(&lab.api_version(), "sites", &other);
    for name in ["shop", "other"] {
        lab.wait(&lab.path(&lab.api_version(), "sites", name), "it is ready", is_ready);
    }
    assert_eq!(lab.get(&lab.config_map("other-config"))["data"]["page"], "{{ not ours }}");
    let deployment = lab.get(&lab.path("apps/v1", "deployments", "other"));
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1.29");
    assert_eq!(deployment["spec"]["selector"]["matchLabels"]["app"], "other");
}
