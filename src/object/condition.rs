//! Conditions in a status, and the form of the times in them.

use jiff::Timestamp;
use serde_json::{Value, json};

/// What a condition says, but for how long it has.
pub(crate) struct Condition<'a> {
    pub kind: &'a str,
    pub holds: bool,
    pub reason: &'a str,
    pub message: &'a str,
    /// The generation that it tells of.
    pub generation: i64,
}

impl Condition<'_> {
    /// The condition as it is to be written. `before` are the conditions that are there: one of this type that has the same
    /// status keeps its time.
    pub(crate) fn written(&self, before: Option<&Value>, now: Timestamp) -> Value {
        let status = if self.holds { "True" } else { "False" };
        let before = before.and_then(Value::as_array).into_iter().flatten();
        let since = before
            .filter(|before| before["type"] == self.kind)
            .take(1)
            .filter(|before| before["status"] == status)
            .find_map(|before| before["lastTransitionTime"].as_str())
            .map_or_else(|| time(now), String::from);
        json!({
            "type": self.kind, "status": status, "reason": self.reason, "message": self.message,
            "lastTransitionTime": since, "observedGeneration": self.generation,
        })
    }
}

/// A time as the API's `Time` has it: in UTC and whole seconds.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_kept_while_the_status_stays() {
        let now: Timestamp = "2026-11-30T10:00:00.5Z".parse().unwrap();
        let ready = |holds| Condition { kind: "Ready", holds, reason: "Why", message: "so", generation: 3 };
        let before = json!([
            {"type": "Other", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]);
        assert_eq!(ready(true).written(Some(&before), now)["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(ready(false).written(Some(&before), now)["lastTransitionTime"], "2026-11-30T10:00:00Z");
        assert_eq!(ready(true).written(None, now)["lastTransitionTime"], "2026-11-30T10:00:00Z");
    }
}
