//! The visits after the one that was asked for: the next one, once its children and its status are there, and the one
//! that the hook itself asks for by `resyncAfterSeconds`, which may be the first that makes anything.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::change::{after, dropped};
use crate::author::check::children::place;
use crate::author::check::finding::Rule;
use crate::author::check::jobs::kept;
use crate::author::check::requests::{Request, gvk};
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;

impl Check {
    /// What is answered later to a request for `sync`, and what would be deleted then.
    pub(super) fn later(&mut self, request: &Request, answer: &Answer) {
        self.next_visit(request, answer);
        let Some(resync) = answer.resync_after else { return };
        let Some(due) = request.now().checked_add(resync).ok() else { return };
        let carried_out = carried_out(request, answer).at(due);
        let Some(later) = self.asked_again(&carried_out) else { return };
        self.children(&carried_out, &later);
        self.status(&carried_out, &later);
        self.next_visit(&carried_out, &later);
    }

    /// The same moment again: what was made is observed, and nothing else has changed.
    fn next_visit(&mut self, request: &Request, answer: &Answer) {
        let next = carried_out(request, answer);
        let Some(later) = self.asked_again(&next) else { return };
        let observed: Vec<Value> = next.observed().into_iter().cloned().collect();
        for child in dropped(answer, &later, &observed) {
            self.findings.add_seen(Rule::DroppedChild, dropped_problem(child), &request.file);
        }
    }
}

/// The request of a visit after this one has done what was answered.
fn carried_out(request: &Request, answer: &Answer) -> Request {
    request.with(&kept(request.parent(), answer), &after(request, answer))
}

fn dropped_problem(child: &DesiredChild) -> Problem {
    let kind = gvk(&Value::Object(child.object.clone())).kind;
    let name = child.object["metadata"]["name"].as_str().unwrap_or_default();
    Problem::new(format!(
        "{kind} `{name}` is made by one visit and left out by the next: it would be deleted"
    ))
    .at(place(child, &["kind"]))
    .hint(format!(
        "answer what exists, by its name alone if need be: `{{% for … in children.list(\"{kind}\") %}}`"
    ))
}
