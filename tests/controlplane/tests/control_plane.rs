//! What the control plane does for its users: the controllers work, volumes bind, nothing is left behind.

use std::time::Duration;

use controlplane::ControlPlane;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

fn stateful_set(name: &str, replicas: u32, storage: &str) -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "serviceName": name, "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "database", "image": "database:1"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
            }],
        },
    })
    .to_string()
}

fn job(name: &str, command: &str) -> String {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "ttlSecondsAfterFinished": 1,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "containers": [{"name": "work", "image": "work:1", "command": ["/bin/sh", "-c", command]}],
            }},
        },
    })
    .to_string()
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

#[test]
fn stateful_set_becomes_ready_with_its_claims_bound() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("stateful-set");
    plane.apply(&namespace, &stateful_set("db", 3, "20Gi"));
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/db");
    plane.wait_for(&path, SOON, "3 replicas are ready", |set| set["status"]["readyReplicas"] == 3);
    let claim =
        plane.get(&format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/data-db-2")).unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "20Gi");
}

#[test]
fn claim_grows_in_place() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("claim");
    plane.apply(&namespace, &stateful_set("db", 1, "1Gi"));
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/data-db-0");
    plane.wait_for(&path, SOON, "the claim is bound", |claim| claim["status"]["phase"] == "Bound");
    plane.merge(&path, &json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    plane.wait_for(&path, SOON, "the claim has grown", |claim| {
        claim["status"]["capacity"]["storage"] == "2Gi"
    });
}

#[test]
fn held_pod_becomes_ready_when_it_is_released() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("hold");
    plane.hold_pods(&namespace, "database:1");
    plane.apply(&namespace, &stateful_set("db", 2, "1Gi"));
    let pod = format!("/api/v1/namespaces/{namespace}/pods/db-0");
    let held = plane.wait_for(&pod, SOON, "the pod is scheduled", |pod| has_condition(pod, "PodScheduled"));
    assert_eq!(held["metadata"]["annotations"]["controlplane/held"], "stays-unready");
    assert!(!has_condition(&held, "Ready"), "{held:#}");
    plane.release_pods(&namespace, "database:1");
    let path = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets/db");
    plane.wait_for(&path, SOON, "2 replicas are ready", |set| set["status"]["readyReplicas"] == 2);
}

#[test]
fn job_completes_and_its_time_to_live_ends_it() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("job");
    plane.apply(&namespace, &job("backup", "true"));
    let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/backup");
    plane.wait_gone(&path, SOON);
}

#[test]
fn job_fails_or_runs_for_ever_where_its_command_says_so() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("job");
    plane.apply(
        &namespace,
        &job("broken", "must-fail")
            .replace("ttlSecondsAfterFinished", "activeDeadlineSeconds")
            .replace(":1,", ":600,"),
    );
    plane.apply(&namespace, &job("long", "never-ends"));
    let path = |name| format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}");
    plane.wait_for(&path("broken"), SOON, "the Job has failed", |job| has_condition(job, "Failed"));
    plane.wait_for(&path("long"), SOON, "the Job runs", |job| job["status"]["ready"] == 1);
}

#[test]
fn children_are_collected_when_their_owner_is_deleted() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("owner");
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let owner = plane.create(&maps, &json!({"metadata": {"name": "owner"}}));
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    plane.create(&maps, &json!({"metadata": {"name": "child", "ownerReferences": [reference]}}));
    plane.delete(&format!("{maps}/owner"));
    plane.wait_gone(&format!("{maps}/child"), SOON);
}

#[test]
fn requests_of_a_user_are_in_the_audit_log() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace("audit");
    let user = plane.user(&namespace, "controller", "cluster-admin");
    let listed =
        plane.kubectl().env("KUBECONFIG", &user.kubeconfig).args(["get", "pods", "-n", &namespace]).output();
    assert!(listed.as_ref().unwrap().status.success(), "{listed:?}");
    controlplane::wait_until(SOON, "the list is in the audit log", || {
        let requests = plane.requests_of(&user);
        let listed = |event: &Value| event["verb"] == "list" && event["objectRef"]["resource"] == "pods";
        if requests.iter().any(listed) { Ok(()) } else { Err(format!("{requests:?}")) }
    });
}
