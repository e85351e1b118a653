//! The examples: one parent of each kind, and when it has reached its state.

use std::fmt;
use std::path::Path;

use controlplane::ControlPlane;
use serde_json::Value;

use crate::ending::output;
use crate::kinds::{Kinds, objects};

pub struct Example {
    kind: String,
    name: String,
    path: String,
}

/// What an example looks like at one moment.
pub struct State {
    pub reached: bool,
    pub text: String,
}

/// Applies every `examples/*.yaml` and answers the parents in them.
pub fn apply(
    plane: &ControlPlane,
    kinds: &Kinds,
    root: &Path,
    namespace: &str,
) -> Result<Vec<Example>, String> {
    let folder = root.join("examples");
    let mut apply = plane.kubectl();
    apply
        .args(["apply", "--server-side", "--output=json", "--namespace", namespace, "--filename"])
        .arg(&folder);
    let applied = objects(&output(&mut apply)?);
    let examples: Vec<Example> = applied.iter().filter_map(|object| Example::of(object, kinds)).collect();
    match examples.is_empty() {
        true => Err(format!("no object of the operators' kinds in {}", folder.display())),
        false => Ok(examples),
    }
}

pub fn names(examples: &[Example]) -> String {
    examples.iter().map(Example::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

impl Example {
    fn of(object: &Value, kinds: &Kinds) -> Option<Example> {
        let (kind, metadata) = (object["kind"].as_str()?.to_owned(), &object["metadata"]);
        let name = metadata["name"].as_str()?.to_owned();
        let path = format!("{}/{name}", kinds.collection(object, metadata["namespace"].as_str()?)?);
        Some(Example { kind, name, path })
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn look(&self, plane: &ControlPlane) -> Result<State, String> {
        let answer = plane.request("GET", &self.path, None).map_err(|error| format!("{self}: {error}"))?;
        match answer.is_success() {
            true => Ok(state(&self.kind, &answer.json())),
            false => Err(format!("{self}: {}", answer.message())),
        }
    }
}

/// A parent has reached its state when it is `Ready`; a BackupSchedule must also know its next backup.
fn state(kind: &str, object: &Value) -> State {
    let status = &object["status"];
    let ready = condition(status, "Ready");
    let settled = kind != "BackupSchedule" || status["nextBackupTime"].is_string();
    let current = status["observedGeneration"].is_null()
        || status["observedGeneration"] == object["metadata"]["generation"];
    let reached = ready.is_some_and(|ready| ready["status"] == "True") && settled && current;
    State { reached, text: describe(status) }
}

fn describe(status: &Value) -> String {
    let phase = status["phase"].as_str().map(str::to_owned);
    let ready = condition(status, "Ready").map(sentence);
    let unsynced = condition(status, "Synced").filter(|synced| synced["status"] != "True").map(sentence);
    let next = status["nextBackupTime"].as_str().map(|time| format!("next backup {time}"));
    let parts: Vec<String> = [phase, ready, unsynced, next].into_iter().flatten().collect();
    if parts.is_empty() { "no status yet".to_owned() } else { parts.join(", ") }
}

fn sentence(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    format!("{}={} {}: {}", text("type"), text("status"), text("reason"), text("message"))
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

#[cfg(test)]
mod tests {
    use super::state;
    use serde_json::json;

    #[test]
    fn parent_without_status_has_not_reached_its_state() {
        let state = state("MySQL", &json!({"metadata": {"generation": 1}}));
        assert!(!state.reached);
        assert_eq!(state.text, "no status yet");
    }

    #[test]
    fn parent_is_there_when_it_is_ready_at_its_generation() {
        let condition = json!({"type": "Ready", "status": "True", "reason": "AllReplicasReady", "message": "All 2 replicas are ready"});
        let mysql = |observed| json!({"metadata": {"generation": 2}, "status": {"phase": "Running", "observedGeneration": observed, "conditions": [condition]}});
        assert!(!state("MySQL", &mysql(1)).reached);
        assert!(state("MySQL", &mysql(2)).reached);
        assert_eq!(
            state("MySQL", &mysql(2)).text,
            "Running, Ready=True AllReplicasReady: All 2 replicas are ready"
        );
    }

    #[test]
    fn refusal_of_the_controller_is_shown() {
        let condition =
            json!({"type": "Synced", "status": "False", "reason": "HookRefused", "message": "sync: no"});
        let state = state("MySQL", &json!({"metadata": {}, "status": {"conditions": [condition]}}));
        assert_eq!(state.text, "Synced=False HookRefused: sync: no");
    }

    #[test]
    fn schedule_needs_its_next_backup_too() {
        let mut schedule =
            json!({"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(!state("BackupSchedule", &schedule).reached);
        schedule["status"]["nextBackupTime"] = json!("2026-12-01T00:00:00Z");
        assert!(state("BackupSchedule", &schedule).reached);
    }
}
