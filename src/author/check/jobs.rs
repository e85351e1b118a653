//! Jobs that would run once more when their TTL has removed them. It is found out by rendering: first with the Job at its end,
//! then without it, the parent having kept what it was answered in between.

use serde_json::{Map, Value, json};

use crate::author::check::Check;
use crate::author::check::change::after;
use crate::author::check::children::{is_others, place, same};
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;

const TTL: &str = "ttlSecondsAfterFinished";
/// So many visits see the Job at its end. A template may take two to note it.
const VISITS: usize = 3;

impl Check {
    /// Children of an answer that are made again each time they have done their work.
    pub(super) fn rerun_jobs(&mut self, request: &Request, answer: &Answer) {
        for child in answer.children.iter().filter(|child| is_short_lived(child)) {
            if self.is_made_again(request, answer, child) == Some(true) {
                let name = child.object["metadata"]["name"].as_str().unwrap_or_default();
                let message = format!("Job `{name}` runs again each time its TTL has removed it");
                let problem = Problem::new(message).at(place(child, &["spec", TTL])).hint(format!(
                    "note in the status that it has run, or leave `{TTL}` out: a Job that stays runs once"
                ));
                self.findings.add_seen(Rule::RerunJob, problem, &request.file);
            }
        }
    }

    /// `None` where the template refuses one of the requests that are made up.
    fn is_made_again(&self, request: &Request, answer: &Answer, job: &DesiredChild) -> Option<bool> {
        let object = Value::Object(job.object.clone());
        let mut observed = after(request, answer);
        let mut parent = kept(request.parent(), answer);
        for _ in 0..VISITS {
            observed
                .iter_mut()
                .filter(|known| same(known, &object))
                .for_each(|known| known["status"] = ended());
            parent = kept(&parent, &self.asked_again(&request.with(&parent, &observed))?);
        }
        observed.retain(|known| !same(known, &object));
        let later = self.asked_again(&request.with(&parent, &observed))?;
        let is_whole =
            |later: &DesiredChild| is_short_lived(later) && same(&later.object.clone().into(), &object);
        Some(later.children.iter().any(is_whole))
    }
}

/// A Job with a TTL, stated as it is to be made: by its name alone it is kept, and never made.
fn is_short_lived(child: &DesiredChild) -> bool {
    let object = Value::Object(child.object.clone());
    let spec = &object["spec"];
    gvk(&object).group_kind() == ("batch", "Job")
        && spec[TTL].is_number()
        && spec["template"].is_object()
        && !is_others(&object)
}

fn ended() -> Value {
    json!({
        "succeeded": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    })
}

/// The parent with what an answer writes on it.
pub(super) fn kept(parent: &Value, answer: &Answer) -> Value {
    let mut parent = parent.clone();
    if let Some(status) = &answer.status {
        parent["status"] = Value::Object(status.clone());
    }
    for (field, marks) in [("labels", &answer.labels), ("annotations", &answer.annotations)] {
        for (key, value) in marks {
            let marked = &mut parent["metadata"][field];
            if !marked.is_object() {
                *marked = Value::Object(Map::new());
            }
            marked[key] = value.clone().map_or(Value::Null, Value::String);
        }
    }
    parent
}
