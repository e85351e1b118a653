//! `readyWhen: KindStatus`, with workloads that a real control plane runs.

use serde_json::{Value, json};

use crate::rolling::stage::{define_revisions, revision, wait_updated};
use crate::support::hook::{Call, Hook};
use crate::support::lab::{Definition, Lab, SOON};
use crate::support::objects::{pod, stateful_set};

const NAMES: [&str; 3] = ["a", "b", "c"];

#[track_caller]
fn lab(subject: &str) -> Lab {
    let lab = Lab::new(subject);
    define_revisions(&lab);
    lab
}

fn by_status(lab: &Lab, api_version: &str, plural: &str, method: &str) -> Definition {
    let definition = lab.definition().child(api_version, plural, method);
    let checks = json!({"readyWhen": "KindStatus"});
    definition.with("/spec/childResources/0/updateStrategy/statusChecks", checks)
}

/// A hook that wants three of a kind in the state `x` of the parent.
fn three(make: impl Fn(&str, &str) -> Value + Send + Sync + 'static) -> Hook {
    Hook::new(move |call| {
        let x = call.spec()["x"].as_str().unwrap();
        json!({"children": NAMES.map(|name| make(name, x)), "status": {}})
    })
}

/// How many of the children that a call shows are not well at their newest state.
fn at_work(call: &Call, group: &str, well: impl Fn(&Value) -> bool) -> usize {
    call.request["children"][group].as_object().unwrap().values().filter(|child| !well(child)).count()
}

#[track_caller]
fn roll(lab: &Lab, path: &str) {
    lab.merge(path, json!({"spec": {"x": "2"}}));
    lab.plane.wait_for(path, SOON * 2, "all are updated", |parent| {
        let found = super::stage::updated(parent);
        found.iter().any(|found| {
            found["status"] == "True" && found["observedGeneration"] == parent["metadata"]["generation"]
        })
    });
}

// B78
#[test]
fn stateful_sets_follow_when_the_one_before_is_rolled_out() {
    let lab = lab("sets");
    let hook = three(|name, x| stateful_set(name, &format!("image:{x}")));
    let _controller = lab.run(&by_status(&lab, "apps/v1", "statefulsets", "RollingInPlace").sync(&hook));
    lab.add_thing("t", json!({"x": "1"}));
    let ready = |set: &Value| {
        let (status, generation) = (&set["status"], &set["metadata"]["generation"]);
        status["observedGeneration"] == *generation
            && status["updatedReplicas"] == 1
            && status["readyReplicas"] == 1
    };
    for name in NAMES {
        lab.wait(&lab.path("apps/v1", "statefulsets", name), "it is ready", ready);
    }
    let calls = hook.count();
    roll(&lab, &lab.thing("t"));
    for call in hook.calls().split_off(calls) {
        assert!(at_work(&call, "StatefulSet.apps/v1", ready) <= 1, "{:#}", call.request["children"]);
    }
    for name in NAMES {
        let set = lab.get(&lab.path("apps/v1", "statefulsets", name));
        assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], "image:2");
        assert_eq!(set["metadata"]["generation"], 2);
    }
}

#[test]
fn deployments_follow_when_the_one_before_is_available() {
    let lab = lab("deployments");
    let hook = three(|name, x| {
        let container = json!({"name": "main", "image": format!("image:{x}")});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
            },
        })
    });
    let _controller = lab.run(&by_status(&lab, "apps/v1", "deployments", "RollingInPlace").sync(&hook));
    lab.add_thing("t", json!({"x": "1"}));
    let ready = |deployment: &Value| {
        let (status, generation) = (&deployment["status"], &deployment["metadata"]["generation"]);
        let all = ["replicas", "updatedReplicas", "availableReplicas"];
        status["observedGeneration"] == *generation && all.iter().all(|field| status[*field] == 2)
    };
    for name in NAMES {
        lab.wait(&lab.path("apps/v1", "deployments", name), "it is available", ready);
    }
    let calls = hook.count();
    roll(&lab, &lab.thing("t"));
    for call in hook.calls().split_off(calls) {
        assert!(at_work(&call, "Deployment.apps/v1", ready) <= 1, "{:#}", call.request["children"]);
    }
}

#[test]
fn jobs_follow_when_the_one_before_is_complete() {
    let lab = lab("jobs");
    let hook = three(|name, x| {
        let container = json!({"name": "main", "image": format!("image:{x}")});
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        })
    });
    let _controller = lab.run(&by_status(&lab, "batch/v1", "jobs", "RollingRecreate").sync(&hook));
    let thing = lab.add_thing("t", json!({"x": "1"}));
    let complete = |job: &Value| {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|found| found["type"] == "Complete" && found["status"] == "True")
    };
    for name in NAMES {
        lab.wait(&lab.path("batch/v1", "jobs", name), "it is complete", complete);
    }
    let calls = hook.count();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    lab.wait_until("all are made anew", || {
        NAMES.iter().all(|name| {
            let job = lab.plane.get(&lab.path("batch/v1", "jobs", name)).unwrap_or_default();
            job["spec"]["template"]["spec"]["containers"][0]["image"] == "image:2"
        })
    });
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    for call in hook.calls().split_off(calls) {
        let children = call.request["children"]["Job.batch/v1"].as_object().unwrap();
        let working = children.values().filter(|job| !complete(job)).count() + (3 - children.len());
        assert!(working <= 1, "{children:#?}");
    }
    assert_eq!(super::stage::revisions(&lab, &thing)[0].1, revision("", &NAMES).1);
}

#[test]
fn claims_follow_when_the_one_before_is_bound() {
    let lab = lab("claims");
    let hook = three(|name, x| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "labels": {"x": x}},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "never",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        })
    });
    let kind = ("v1", "persistentvolumeclaims");
    let _controller = lab.run(&by_status(&lab, kind.0, kind.1, "RollingInPlace").sync(&hook));
    lab.add_thing("t", json!({"x": "1"}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(
        &lab,
        &lab.thing("t"),
        "RolloutWaiting",
        "PersistentVolumeClaim a: it is pending, not bound",
    );
    let labels =
        || NAMES.map(|name| lab.get(&lab.path(kind.0, kind.1, name))["metadata"]["labels"]["x"].clone());
    assert_eq!(labels(), ["2", "1", "1"]);
    // The test binds what nobody provides.
    for (name, expected) in [("a", ["2", "2", "1"]), ("b", ["2", "2", "2"])] {
        let status = json!({"status": {"phase": "Bound", "capacity": {"storage": "512Mi"}}});
        let path = lab.path(kind.0, kind.1, name);
        lab.merge(&format!("{path}/status"), status);
        let short = format!("PersistentVolumeClaim {name}: it has 512Mi, not 1Gi");
        wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", &short);
        lab.merge(&format!("{path}/status"), json!({"status": {"capacity": {"storage": "1Gi"}}}));
        lab.wait_until("the next one follows", || labels() == expected);
    }
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
}

#[test]
fn pods_follow_when_the_one_before_is_ready() {
    let lab = lab("pods");
    let hook = three(|name, x| pod(name, &format!("image:{x}")));
    let _controller = lab.run(&by_status(&lab, "v1", "pods", "RollingRecreate").sync(&hook));
    lab.add_thing("t", json!({"x": "1"}));
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|found| found["type"] == "Ready" && found["status"] == "True")
    };
    for name in NAMES {
        lab.wait(&lab.path("v1", "pods", name), "it is ready", ready);
    }
    let calls = hook.count();
    roll(&lab, &lab.thing("t"));
    for call in hook.calls().split_off(calls) {
        let pods = call.request["children"]["Pod.v1"].as_object().unwrap();
        assert!(pods.values().filter(|pod| ready(pod)).count() >= 2, "{pods:#?}");
    }
    for name in NAMES {
        assert_eq!(lab.get(&lab.path("v1", "pods", name))["spec"]["containers"][0]["image"], "image:2");
    }
}
