//! The cluster around the measured controller: parents by the thousand, and whoever reports on built-in objects.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use controlplane::ControlPlane;
use serde_json::{Value, json};

/// So many requests at once.
const AT_ONCE: usize = 8;
pub const NAMESPACE: &str = "bench";

/// Does something for each number below `count`, several at once.
pub fn each(count: usize, run: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    run(number);
                }
            });
        }
    });
}

pub fn collection(api: &str, plural: &str) -> String {
    format!("{api}/namespaces/{NAMESPACE}/{plural}")
}

/// Says of every StatefulSet that its pods are ready and of every Job that it is done, as their controllers would.
pub fn report(plane: &ControlPlane, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        for (path, of) in [
            (collection("/apis/apps/v1", "statefulsets"), ready as fn(&Value) -> Option<Value>),
            (collection("/apis/batch/v1", "jobs"), done),
        ] {
            let list = plane.get(&path).unwrap_or_default();
            let empty = Vec::new();
            let news: Vec<(&str, Value)> = list["items"]
                .as_array()
                .unwrap_or(&empty)
                .iter()
                .filter_map(|object| Some((object["metadata"]["name"].as_str()?, of(object)?)))
                .collect();
            each(news.len(), |number| {
                let (name, status) = &news[number];
                let patch = json!({"status": status}).to_string();
                // One that is gone meanwhile needs no status.
                let _ = plane.send(
                    "PATCH",
                    &format!("{path}/{name}/status"),
                    "application/merge-patch+json",
                    &patch,
                );
            });
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn ready(set: &Value) -> Option<Value> {
    let (generation, replicas) = (&set["metadata"]["generation"], &set["spec"]["replicas"]);
    let status = &set["status"];
    if status["observedGeneration"] == *generation && status["readyReplicas"] == *replicas {
        return None;
    }
    let revision = format!("{}-1", set["metadata"]["name"].as_str().unwrap_or_default());
    Some(json!({
        "observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas,
        "currentReplicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas,
        "currentRevision": revision, "updateRevision": revision, "collisionCount": 0,
    }))
}

fn done(job: &Value) -> Option<Value> {
    let time = &job["metadata"]["creationTimestamp"];
    let condition = |sort: &str| {
        json!({"type": sort, "status": "True", "lastProbeTime": time, "lastTransitionTime": time,
               "reason": "CompletionsReached", "message": "Reached expected number of succeeded pods"})
    };
    job["status"]["conditions"].is_null().then(|| {
        json!({
            "startTime": time, "completionTime": time, "succeeded": 1,
            "uncountedTerminatedPods": {}, "ready": 0, "terminating": 0,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        })
    })
}
