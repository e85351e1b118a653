//! Whether a child is well: its newest state acted upon, its conditions as asked for, its status as its kind has it.
//!
//! Answers why not, in words that fit after the child's name.

use serde_json::Value;

use crate::config::spec::{ConditionCheck, ReadyWhen, StatusChecks};
use crate::object::quantity::Quantity;

/// What a child lacks that a rollout waits for.
pub(super) fn why_not(checks: &StatusChecks, (group, kind): (&str, &str), live: &Value) -> Option<String> {
    let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
    // Zero is a kind that does not count, or one that nobody has looked at yet: its conditions tell.
    let observed = live["status"]["observedGeneration"].as_i64().unwrap_or(0);
    if observed > 0 && observed < generation {
        return Some(unseen());
    }
    let mut conditions = checks.conditions.iter();
    conditions.find_map(|check| condition(check, live, generation)).or_else(|| match checks.ready_when? {
        ReadyWhen::KindStatus => by_kind(group, kind, live),
    })
}

fn unseen() -> String {
    "its newest state is not acted upon yet".into()
}

/// A condition that tells of an older generation counts for nothing.
fn condition(check: &ConditionCheck, live: &Value, generation: i64) -> Option<String> {
    let conditions = live["status"]["conditions"].as_array();
    let name = &check.kind;
    let Some(found) = conditions.into_iter().flatten().find(|found| found["type"] == name.as_str()) else {
        return Some(format!("it has no condition `{name}`"));
    };
    if found["observedGeneration"].as_i64().is_some_and(|observed| observed > 0 && observed < generation) {
        return Some(format!("its condition `{name}` tells of an older state"));
    }
    let differs = |field: &str, wanted: &Option<String>| {
        let wanted = wanted.as_ref()?;
        let found = found[field].as_str().unwrap_or_default();
        let what = if field == "reason" { " for the reason" } else { "" };
        (found != wanted).then(|| format!("its condition `{name}` is{what} `{found}`, not `{wanted}`"))
    };
    differs("status", &check.status).or_else(|| differs("reason", &check.reason))
}

/// The rules of each kind, as `kubectl rollout status` and `kubectl wait` have them. `config` lets no other kinds through.
fn by_kind(group: &str, kind: &str, live: &Value) -> Option<String> {
    let (spec, status) = (&live["spec"], &live["status"]);
    match (group, kind) {
        ("apps", "Deployment") => unobserved(live).or_else(|| deployment(spec, status)),
        ("apps", "StatefulSet") => unobserved(live).or_else(|| stateful_set(spec, status)),
        ("apps", "DaemonSet") => unobserved(live).or_else(|| daemon_set(spec, status)),
        ("apps", "ReplicaSet") => {
            unobserved(live).or_else(|| short(status, "availableReplicas", replicas(spec), "available"))
        }
        ("batch", "Job") => job(spec, status),
        ("", "PersistentVolumeClaim") => claim(spec, status),
        ("", "Pod") => pod(status),
        _ => Some("the status of its kind has no rule that is known here".into()),
    }
}

/// The kinds of `apps` always say which generation they have seen.
fn unobserved(live: &Value) -> Option<String> {
    let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
    (number(&live["status"], "observedGeneration") < generation).then(unseen)
}

fn deployment(spec: &Value, status: &Value) -> Option<String> {
    let replicas = replicas(spec);
    if holds(status, "Progressing", "reason", "ProgressDeadlineExceeded") {
        return Some("it has exceeded its progress deadline".into());
    }
    short(status, "updatedReplicas", replicas, "updated")
        .or_else(|| {
            let old = number(status, "replicas") - number(status, "updatedReplicas");
            (old > 0).then(|| format!("{old} old replicas are still to end"))
        })
        .or_else(|| short(status, "availableReplicas", replicas, "available"))
}

fn stateful_set(spec: &Value, status: &Value) -> Option<String> {
    let replicas = replicas(spec);
    let partition = number(&spec["updateStrategy"]["rollingUpdate"], "partition");
    // Under OnDelete somebody else says when a pod is updated.
    let updated = match spec["updateStrategy"]["type"].as_str() {
        Some("OnDelete") => None,
        _ => short(status, "updatedReplicas", (replicas - partition).max(0), "updated"),
    };
    updated.or_else(|| short(status, "readyReplicas", replicas, "ready")).or_else(|| {
        // Absent on older servers, where nothing else is meant by it.
        status
            .get("availableReplicas")
            .and_then(|_| short(status, "availableReplicas", replicas, "available"))
    })
}

fn daemon_set(spec: &Value, status: &Value) -> Option<String> {
    let wanted = number(status, "desiredNumberScheduled");
    let updated = match spec["updateStrategy"]["type"].as_str() {
        Some("OnDelete") => None,
        _ => short(status, "updatedNumberScheduled", wanted, "updated"),
    };
    updated.or_else(|| short(status, "numberAvailable", wanted, "available"))
}

fn job(spec: &Value, status: &Value) -> Option<String> {
    if holds(status, "Complete", "status", "True") {
        return None;
    }
    Some(match () {
        () if holds(status, "Failed", "status", "True") => "it has failed".into(),
        () if spec["suspend"] == true => "it is suspended".into(),
        () => "it is not complete yet".into(),
    })
}

/// A claim whose size was changed is ready when it has the new size.
fn claim(spec: &Value, status: &Value) -> Option<String> {
    match status["phase"].as_str() {
        Some("Bound") => {}
        phase => return Some(format!("it is {}, not bound", phase.unwrap_or("new").to_lowercase())),
    }
    let asked = &spec["resources"]["requests"]["storage"];
    let has = &status["capacity"]["storage"];
    let (wanted, found) = (Quantity::from_json(asked)?, Quantity::from_json(has));
    let enough = found.is_some_and(|found| found >= wanted);
    (!enough).then(|| format!("it has {}, not {}", plain(has), plain(asked)))
}

fn pod(status: &Value) -> Option<String> {
    if status["phase"] == "Succeeded" || holds(status, "Ready", "status", "True") {
        return None;
    }
    Some(if status["phase"] == "Failed" { "it has failed".into() } else { "it is not ready".into() })
}

fn replicas(spec: &Value) -> i64 {
    spec["replicas"].as_i64().unwrap_or(1)
}

/// Zero where it is left out, as counts in a status are.
fn number(fields: &Value, name: &str) -> i64 {
    fields[name].as_i64().unwrap_or(0)
}

fn short(status: &Value, field: &str, wanted: i64, what: &str) -> Option<String> {
    let found = number(status, field);
    (found < wanted).then(|| format!("{found} of {wanted} replicas are {what}"))
}

fn holds(status: &Value, condition: &str, field: &str, value: &str) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|found| found["type"] == condition && found[field] == value)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(group: &str, kind: &str, live: Value) -> String {
        let checks = StatusChecks { conditions: Vec::new(), ready_when: Some(ReadyWhen::KindStatus) };
        why_not(&checks, (group, kind), &live).unwrap_or_else(|| "ready".into())
    }

    fn checked(check: (&str, Option<&str>, Option<&str>), live: Value) -> String {
        let (kind, status, reason) = check;
        let check = ConditionCheck {
            kind: kind.into(),
            status: status.map(String::from),
            reason: reason.map(String::from),
        };
        let checks = StatusChecks { conditions: vec![check], ready_when: None };
        why_not(&checks, ("demo.io", "Part"), &live).unwrap_or_else(|| "ready".into())
    }

    #[test]
    fn newest_generation_is_waited_for_where_the_kind_counts() {
        let none = StatusChecks::default();
        let live = |generation: i64, observed: Value| json!({"metadata": {"generation": generation}, "status": {"observedGeneration": observed}});
        let why = |live: Value| why_not(&none, ("demo.io", "Part"), &live);
        assert_eq!(why(live(3, json!(2))).as_deref(), Some("its newest state is not acted upon yet"));
        assert_eq!(why(live(3, json!(3))), None);
        assert_eq!(why(live(3, json!(0))), None);
        assert_eq!(why(live(3, json!(null))), None);
        assert_eq!(why(json!({"metadata": {"name": "a"}, "data": {}})), None);
    }

    #[test]
    fn condition_is_compared_in_what_is_asked_of_it() {
        let live = |condition: Value| json!({"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Other"}, condition]}});
        let ready = json!({"type": "Ready", "status": "False", "reason": "Booting"});
        assert_eq!(checked(("Ready", None, None), json!({})), "it has no condition `Ready`");
        assert_eq!(checked(("Ready", None, None), live(ready.clone())), "ready");
        assert_eq!(
            checked(("Ready", Some("True"), None), live(ready.clone())),
            "its condition `Ready` is `False`, not `True`"
        );
        assert_eq!(
            checked(("Ready", Some("False"), Some("Up")), live(ready.clone())),
            "its condition `Ready` is for the reason `Booting`, not `Up`"
        );
        assert_eq!(checked(("Ready", Some("False"), Some("Booting")), live(ready)), "ready");
        let old = json!({"type": "Ready", "status": "True", "observedGeneration": 1});
        assert_eq!(
            checked(("Ready", Some("True"), None), live(old)),
            "its condition `Ready` tells of an older state"
        );
    }

    #[test]
    fn deployment_is_rolled_out_and_available() {
        let live =
            |status: Value| json!({"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status});
        let told = |status: Value| told("apps", "Deployment", live(status));
        assert_eq!(told(json!({})), "its newest state is not acted upon yet");
        let of = |updated: i64, all: i64, available: i64| {
            json!({
                "observedGeneration": 2, "updatedReplicas": updated, "replicas": all, "availableReplicas": available,
            })
        };
        assert_eq!(told(of(1, 4, 3)), "1 of 3 replicas are updated");
        assert_eq!(told(of(3, 4, 3)), "1 old replicas are still to end");
        assert_eq!(told(of(3, 3, 2)), "2 of 3 replicas are available");
        assert_eq!(told(of(3, 3, 3)), "ready");
        let mut stuck = of(1, 4, 3);
        stuck["conditions"] = json!([{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]);
        assert_eq!(told(stuck), "it has exceeded its progress deadline");
    }

    #[test]
    fn stateful_set_is_updated_down_to_its_partition() {
        let live = |spec: Value, status: Value| {
            told(
                "apps",
                "StatefulSet",
                json!({"metadata": {"generation": 1}, "spec": spec, "status": status}),
            )
        };
        let status = |updated: i64, ready: i64| json!({"observedGeneration": 1, "updatedReplicas": updated, "readyReplicas": ready});
        assert_eq!(live(json!({"replicas": 3}), status(2, 3)), "2 of 3 replicas are updated");
        assert_eq!(live(json!({"replicas": 3}), status(3, 2)), "2 of 3 replicas are ready");
        assert_eq!(live(json!({"replicas": 3}), status(3, 3)), "ready");
        assert_eq!(live(json!({}), status(1, 1)), "ready");
        assert_eq!(live(json!({"replicas": 0}), status(0, 0)), "ready");
        let canary = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
        assert_eq!(live(canary.clone(), status(0, 3)), "0 of 1 replicas are updated");
        assert_eq!(live(canary, status(1, 3)), "ready");
        let by_hand = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
        assert_eq!(live(by_hand, status(0, 3)), "ready");
        let mut fresh = status(3, 3);
        fresh["availableReplicas"] = json!(1);
        assert_eq!(live(json!({"replicas": 3}), fresh), "1 of 3 replicas are available");
    }

    #[test]
    fn daemon_set_is_updated_and_available_on_every_node() {
        let live = |updated: i64, available: i64| {
            let status = json!({
                "observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": updated,
                "numberAvailable": available,
            });
            told("apps", "DaemonSet", json!({"metadata": {"generation": 1}, "spec": {}, "status": status}))
        };
        assert_eq!(live(1, 2), "1 of 2 replicas are updated");
        assert_eq!(live(2, 0), "0 of 2 replicas are available");
        assert_eq!(live(2, 2), "ready");
    }

    #[test]
    fn job_is_complete_and_a_failed_one_never() {
        let with =
            |condition: &str| json!({"status": {"conditions": [{"type": condition, "status": "True"}]}});
        assert_eq!(told("batch", "Job", json!({})), "it is not complete yet");
        assert_eq!(told("batch", "Job", json!({"spec": {"suspend": true}})), "it is suspended");
        assert_eq!(told("batch", "Job", with("Failed")), "it has failed");
        assert_eq!(told("batch", "Job", with("Complete")), "ready");
    }

    #[test]
    fn claim_is_bound_and_has_the_size_it_asks_for() {
        let claim = |phase: &str, has: &str| {
            let spec = json!({"resources": {"requests": {"storage": "2Gi"}}});
            let status = json!({"phase": phase, "capacity": {"storage": has}});
            told("", "PersistentVolumeClaim", json!({"spec": spec, "status": status}))
        };
        assert_eq!(claim("Pending", "2Gi"), "it is pending, not bound");
        assert_eq!(claim("Bound", "1Gi"), "it has 1Gi, not 2Gi");
        assert_eq!(claim("Bound", "2048Mi"), "ready");
        assert_eq!(claim("Bound", "3Gi"), "ready");
        assert_eq!(told("", "PersistentVolumeClaim", json!({})), "it is new, not bound");
    }

    #[test]
    fn pod_is_ready_or_has_done_its_work() {
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(told("", "Pod", json!({"status": ready})), "ready");
        assert_eq!(told("", "Pod", json!({"status": {"phase": "Running"}})), "it is not ready");
        assert_eq!(told("", "Pod", json!({"status": {"phase": "Succeeded"}})), "ready");
        assert_eq!(told("", "Pod", json!({"status": {"phase": "Failed"}})), "it has failed");
    }

    #[test]
    fn set_of_replicas_is_available() {
        let live = |available: i64| {
            let status = json!({"observedGeneration": 1, "availableReplicas": available});
            json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": status})
        };
        assert_eq!(told("apps", "ReplicaSet", live(1)), "1 of 2 replicas are available");
        assert_eq!(told("apps", "ReplicaSet", live(2)), "ready");
    }
}
