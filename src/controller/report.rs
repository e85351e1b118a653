//! The status of a definition in the cluster: what it says, what it should say, whether that differs.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::controller::footing::Account;
use crate::controller::pause;
use crate::controller::posted::Refusal;
use crate::object::condition;
use crate::problem::floor;

/// A condition's message is read by people: longer ones say no more.
const MESSAGE_BYTES: usize = 1000;

/// What a definition's status says, but for the times in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Report {
    about: Subject,
    /// Whether the definition is at work.
    ready: Condition,
    /// Whether it or any parent needs somebody.
    degraded: Condition,
    counts: Option<Counts>,
}

/// What it is said of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub generation: i64,
    /// What a DecoratorController decorates, in one line: a column of `kubectl get` shows no list.
    pub targets: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Condition {
    holds: bool,
    reason: String,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Counts {
    parents: u64,
    failing: u64,
}

impl Condition {
    fn new(holds: bool, reason: &str, message: &str) -> Self {
        let end = floor(message, MESSAGE_BYTES);
        Condition { holds, reason: reason.into(), message: message[..end].into() }
    }

    fn about<'a>(&'a self, kind: &'a str, generation: i64) -> condition::Condition<'a> {
        condition::Condition {
            kind,
            holds: self.holds,
            reason: &self.reason,
            message: &self.message,
            generation,
        }
    }

    fn read(status: &Value, kind: &str) -> Option<Self> {
        let conditions = status.get("conditions")?.as_array()?;
        let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
        let holds = match condition["status"].as_str()? {
            "True" => true,
            "False" => false,
            _ => return None,
        };
        let text = |field: &str| Some(condition.get(field)?.as_str()?.to_string());
        Some(Condition { holds, reason: text("reason")?, message: text("message")? })
    }
}

impl Report {
    /// A definition that is not run.
    pub(crate) fn refused(about: Subject, refusal: &Refusal) -> Self {
        Report::idle(about, refusal.reason, &refusal.message)
    }

    fn idle(about: Subject, reason: &str, message: &str) -> Self {
        Report {
            about,
            ready: Condition::new(false, reason, message),
            degraded: Condition::new(true, reason, message),
            counts: None,
        }
    }

    /// A definition that was started: the accounts of all that came of it. `before` is what its status says, which stays
    /// in force until every parent has been visited: a restart is nothing new.
    pub(crate) fn of(about: Subject, accounts: &[Account], before: Option<&Report>) -> Self {
        if let Some(waiting) = accounts.iter().find_map(|account| account.waiting.as_ref()) {
            let idle = Report::idle(about, waiting.reason, &waiting.message);
            // Whoever paused it knows.
            let degraded = Condition { holds: waiting.reason != pause::REASON, ..idle.degraded };
            return Report { degraded, ..idle };
        }
        let sum = |count: fn(&Account) -> u64| accounts.iter().map(count).sum();
        let counts =
            Counts { parents: sum(|account| account.parents), failing: sum(|account| account.failing) };
        let mut report = Report {
            about,
            ready: Condition::new(true, "Started", "its parents are visited"),
            degraded: degraded(accounts, counts),
            counts: Some(counts),
        };
        let complete = accounts.iter().all(|account| account.complete);
        let lasting = before.filter(|before| before.ready.holds && before.about == report.about && !complete);
        if let Some(before) = lasting {
            report.counts = before.counts;
            if accounts.iter().all(|account| account.trouble.is_none()) {
                report.degraded = before.degraded.clone();
            }
        }
        report
    }

    /// What a live status says; `None` where it says anything else than a report does.
    pub(crate) fn read(status: &Value) -> Option<Self> {
        let count = |field: &str| status.get(field).and_then(Value::as_u64);
        let counts = match (count("parents"), count("failing")) {
            (Some(parents), Some(failing)) => Some(Counts { parents, failing }),
            (None, None) => None,
            _ => return None,
        };
        Some(Report {
            about: Subject {
                generation: status.get("observedGeneration")?.as_i64()?,
                targets: status.get("targets").and_then(Value::as_str).map(String::from),
            },
            ready: Condition::read(status, READY)?,
            degraded: Condition::read(status, DEGRADED)?,
            counts,
        })
    }

    /// The status to write. A condition that stays as it was keeps its time.
    pub(crate) fn to_status(&self, live: &Value, now: Timestamp) -> Map<String, Value> {
        let before = live.get("conditions");
        let conditions = [(READY, &self.ready), (DEGRADED, &self.degraded)]
            .map(|(kind, condition)| condition.about(kind, self.about.generation).written(before, now));
        let mut status = Map::new();
        status.insert("observedGeneration".into(), json!(self.about.generation));
        if let Some(targets) = &self.about.targets {
            status.insert("targets".into(), json!(targets));
        }
        if let Some(counts) = self.counts {
            status.insert("parents".into(), json!(counts.parents));
            status.insert("failing".into(), json!(counts.failing));
        }
        status.insert("conditions".into(), json!(conditions));
        status
    }
}

const READY: &str = "Ready";
const DEGRADED: &str = "Degraded";

fn degraded(accounts: &[Account], counts: Counts) -> Condition {
    if let Some(trouble) = accounts.iter().find_map(|account| account.trouble.as_ref()) {
        return Condition::new(true, trouble.reason, &trouble.message);
    }
    match accounts.iter().find_map(|account| account.example.as_ref()) {
        None => Condition::new(false, "NoneFailing", "no parent is failing"),
        Some((parent, note)) => {
            let Counts { parents, failing } = counts;
            let message =
                format!("{failing} of {parents} parents: {parent}: {}: {}", note.reason, note.message);
            Condition::new(true, "ParentsFailing", &message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::visit::note;
    use crate::object::name::Key;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn generation(generation: i64) -> Subject {
        Subject { generation, targets: None }
    }

    fn well(parents: u64) -> Account {
        Account { parents, complete: true, ..Account::default() }
    }

    fn failing(parents: u64, failing: u64) -> Account {
        let example = Some((Key::new("shop", "a"), note("HookRefused", "sync: image is required")));
        Account { failing, example, ..well(parents) }
    }

    #[test]
    fn status_says_what_fails_and_for_whom() {
        let report = Report::of(generation(3), &[well(2), failing(2, 1)], None);
        let status = report.to_status(&Value::Null, at("2026-01-01T00:00:00Z"));
        let expected = json!({
            "observedGeneration": 3, "parents": 4, "failing": 1,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Started", "message": "its parents are visited",
                 "observedGeneration": 3, "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "Degraded", "status": "True", "reason": "ParentsFailing",
                 "message": "1 of 4 parents: shop/a: HookRefused: sync: image is required",
                 "observedGeneration": 3, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
        });
        assert_eq!(Value::Object(status), expected);
        assert_eq!(Report::read(&expected), Some(report), "what was written reads the same");
    }

    #[test]
    fn condition_that_stays_keeps_its_time() {
        let live = Value::Object(
            Report::of(generation(1), &[well(1)], None).to_status(&Value::Null, at("2026-01-01T00:00:00Z")),
        );
        let status =
            Report::of(generation(2), &[failing(1, 1)], None).to_status(&live, at("2026-01-02T00:00:00Z"));
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(status["conditions"][1]["lastTransitionTime"], "2026-01-02T00:00:00Z");
    }

    #[test]
    fn restart_says_nothing_new_until_every_parent_is_visited() {
        let before = Report::of(generation(1), &[failing(9, 2)], None);
        let begun = Account { complete: false, ..well(3) };
        assert_eq!(Report::of(generation(1), std::slice::from_ref(&begun), Some(&before)), before);
        let edited = Report::of(generation(2), std::slice::from_ref(&begun), Some(&before));
        assert_eq!(edited.counts, Some(Counts { parents: 3, failing: 0 }), "another definition begins anew");
        assert!(!edited.degraded.holds);
        assert_eq!(
            Report::of(generation(1), &[well(9)], Some(&before)).counts,
            Some(Counts { parents: 9, failing: 0 })
        );
    }

    #[test]
    fn definition_that_waits_or_is_refused_has_no_counts() {
        let waiting = Account { waiting: Some(note("WaitingForKind", "no `things`")), ..Account::default() };
        let report = Report::of(generation(1), &[well(2), waiting], None);
        let status = Value::Object(report.to_status(&Value::Null, at("2026-01-01T00:00:00Z")));
        assert_eq!(
            (status.get("parents"), &status["conditions"][0]["reason"]),
            (None, &json!("WaitingForKind"))
        );
        let refusal = Refusal::unusable("x".repeat(5000));
        let report = Report::refused(generation(1), &refusal);
        assert_eq!((report.ready.holds, report.degraded.holds), (false, true));
        assert_eq!(report.degraded.message.len(), MESSAGE_BYTES);
    }

    #[test]
    fn status_of_another_shape_is_written_anew() {
        let status = Value::Object(
            Report::of(generation(1), &[well(1)], None).to_status(&Value::Null, at("2026-01-01T00:00:00Z")),
        );
        for field in ["observedGeneration", "parents", "conditions"] {
            let mut other = status.clone();
            other.as_object_mut().expect("a map").shift_remove(field);
            assert_eq!(Report::read(&other), None, "without {field}");
        }
        assert_eq!(Report::read(&json!({})), None);
    }
}
