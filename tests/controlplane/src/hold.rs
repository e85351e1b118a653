//! Keeping pods from becoming ready, where a test wants to see what a controller does meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use crate::plane::ControlPlane;
use crate::wait::wait_until;

/// The API server takes a new policy up within about a second.
const PATIENCE: Duration = Duration::from_secs(30);

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

impl ControlPlane {
    /// Keeps new pods of `namespace` with exactly this image from becoming ready.
    #[track_caller]
    pub fn hold_pods(&self, namespace: &str, image: &str) {
        self.create(POLICIES, &policy(namespace, image));
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": namespace},
            "spec": {"policyName": namespace},
        });
        self.create(BINDINGS, &binding);
        self.wait_for_policy(namespace, image, true);
    }

    /// Lets the pods of `namespace` that `hold_pods` holds become ready, and new ones too.
    #[track_caller]
    pub fn release_pods(&self, namespace: &str, image: &str) {
        self.delete(&format!("{BINDINGS}/{namespace}"));
        self.delete(&format!("{POLICIES}/{namespace}"));
        self.wait_for_policy(namespace, image, false);
        let pods = self.get(&format!("/api/v1/namespaces/{namespace}/pods")).unwrap_or_default();
        for pod in pods["items"].as_array().into_iter().flatten().filter(|pod| is_held(pod)) {
            let name = pod["metadata"]["name"].as_str().expect("a pod has a name");
            let release = json!({"metadata": {"annotations": {"controlplane/held": null}}});
            self.merge(&format!("/api/v1/namespaces/{namespace}/pods/{name}"), &release);
        }
    }

    /// Asks what would become of a pod with this image.
    #[track_caller]
    fn wait_for_policy(&self, namespace: &str, image: &str, held: bool) {
        let pods = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
        let pod = probe(image);
        wait_until(PATIENCE, &format!("pods with the image {image} are held: {held}"), || {
            let pod = self.create(&pods, &pod);
            if is_held(&pod) == held { Ok(()) } else { Err(pod["metadata"]["annotations"].to_string()) }
        });
    }
}

/// A pod that no namespace refuses.
fn probe(image: &str) -> Value {
    let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    json!({
        "metadata": {"name": "probe"},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "probe", "image": image, "securityContext": security}],
        },
    })
}

/// kwok's stages leave alone what carries the word `stays-unready`.
fn policy(namespace: &str, image: &str) -> Value {
    let annotate =
        r#"Object{metadata: Object.metadata{annotations: {"controlplane/held": "stays-unready"}}}"#;
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            },
            "matchConditions": [{
                "name": "image",
                "expression": format!("object.spec.containers.exists(container, container.image == {image:?})"),
            }],
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": annotate}}],
        },
    })
}

fn is_held(pod: &Value) -> bool {
    !pod["metadata"]["annotations"]["controlplane/held"].is_null()
}
