//! What came of acting on an answer, and what that makes of the visit.

use std::time::Duration;

use crate::cluster::request::Error;
use crate::controller::visit::claim::{Claimed, Missing};
use crate::controller::visit::refused::verdict;
use crate::controller::visit::{Ended, note};
use crate::plan::refusal::Verdict;

/// What came of acting on an answer.
#[derive(Default)]
pub(crate) struct Acted {
    /// Something in the cluster is different now, or will be.
    pub wrote: bool,
    /// A child has turned out to be as wanted although it seemed to differ.
    pub probed: bool,
    /// Children that could not be brought to what is wanted, in the order of the answer.
    pub failures: Vec<Failed>,
    /// What was changed in live children, for whoever wonders why there is no end to it.
    pub changes: Vec<String>,
    /// A child is not what it was when this was planned.
    pub changed: bool,
    /// The children's namespace takes no new objects.
    pub namespace_ends: bool,
    /// How long the API server asks to be left alone.
    pub retry_after: Option<Duration>,
    /// When what was put off is to be done.
    pub look_again: Option<Duration>,
}

/// One child's failure.
pub(crate) struct Failed {
    pub sort: Sort,
    pub reason: &'static str,
    /// The field that the server names, empty where it names none.
    pub field: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// It will come by itself.
    Waits,
    /// Trying again may help.
    Retry,
    /// Only another wish or another object helps.
    Refused,
}

impl Acted {
    pub(crate) fn must_retry(&self) -> bool {
        self.failures.iter().any(|failed| failed.sort == Sort::Retry)
    }

    pub(super) fn fail(&mut self, child: &str, doing: &str, error: &Error) {
        self.heed(error);
        let (verdict, summary) = verdict(error);
        match verdict {
            Verdict::Replaced | Verdict::Stale => self.changed = true,
            verdict => self.failures.push(failed_as(child, doing, verdict, &summary)),
        }
    }

    /// Leaves a deletion for later.
    pub(super) fn put_off(&mut self, doubt: Duration) {
        if self.look_again.is_none() {
            let message = "nothing is deleted until it is certain that a kind is not there";
            self.failures.push(Failed { reason: "WaitingForKind", ..Failed::waits(message.into()) });
        }
        self.look_again = Some(doubt);
    }

    pub(super) fn heed(&mut self, error: &Error) {
        self.retry_after = self.retry_after.max(error.retry_after());
    }

    /// What the failures make of the visit. A retry is worth more than a standing refusal beside it.
    pub(crate) fn ended(self, claimed: &Claimed) -> Ended {
        let absent = claimed.missing.iter().filter_map(|(_, missing)| match missing {
            Missing::Absent(message) => Some(message.clone()),
            Missing::Unknown(_) => None,
        });
        let absent: Vec<String> = absent.collect();
        if self.changed && self.failures.is_empty() {
            return Ended::Changed;
        }
        let Some(worst) = self.failures.iter().map(|failed| failed.sort).max() else {
            return if absent.is_empty() {
                Ended::Done
            } else {
                Ended::Waiting(note("WaitingForKind", absent.join("; ")))
            };
        };
        // A retry beside a standing refusal is still to be made.
        let sort = if worst == Sort::Refused && self.must_retry() { Sort::Retry } else { worst };
        let reason = self
            .failures
            .iter()
            .find(|failed| failed.sort == sort)
            .map_or("ChildFailed", |first| first.reason);
        let message =
            self.failures.iter().map(|failed| failed.message.as_str()).collect::<Vec<_>>().join("; ");
        match sort {
            Sort::Waits => Ended::Waiting(note(reason, message)),
            Sort::Retry => Ended::Retry(note(reason, message)),
            Sort::Refused => Ended::Stuck(note(reason, message)),
        }
    }
}

impl Failed {
    pub(super) fn waits(message: String) -> Self {
        Failed { sort: Sort::Waits, reason: "WaitingForChild", field: String::new(), message }
    }

    pub(super) fn refused(message: String) -> Self {
        Failed { sort: Sort::Refused, reason: "ChildRefused", field: String::new(), message }
    }
}

pub(super) fn failed_as(child: &str, doing: &str, verdict: Verdict, summary: &str) -> Failed {
    let lasts = verdict.lasts();
    let (sort, reason, field) = match &verdict {
        Verdict::Immutable { field } => (Sort::Refused, "ImmutableField", field.clone()),
        Verdict::Invalid { field } | Verdict::Schema { field } => {
            (Sort::Refused, "ChildRefused", field.clone())
        }
        Verdict::Conflict { .. } => (Sort::Refused, "ChildConflict", String::new()),
        Verdict::Denied { .. } => (Sort::Retry, "ChildDenied", String::new()),
        Verdict::Forbidden { .. } => (Sort::Retry, "Forbidden", String::new()),
        _ if lasts => (Sort::Refused, "ChildRefused", String::new()),
        _ => (Sort::Retry, "ChildFailed", String::new()),
    };
    let message = match verdict {
        Verdict::Forbidden { verb, resource } => {
            format!("{doing} {child}: not allowed to {verb} {resource}: {summary}")
        }
        Verdict::Conflict { managers, fields } => format!(
            "{child}: {} is also written by {}, which keeps changing it back; leave it out of the template",
            fields.join(", "),
            managers.join(", ")
        ),
        _ => format!("{doing} {child}: {summary}"),
    };
    Failed { sort, reason, field, message }
}
