//! What a change would do: fields of a spec are changed one by one, and observed children lose their status, or go, one by one.
//!
//! It is found out by rendering, so nothing is guessed about how a template comes to its values.

mod fixed;

use serde_json::{Value, json};

use crate::author::case;
use crate::author::check::Check;
use crate::author::check::children::{is_others, place, same};
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::config::spec::UpdateMethod;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;
use crate::schema::dotted;

/// Fields of one parent that are changed. A larger spec is looked at in part.
const MOST_FIELDS: usize = 100;

impl Check {
    pub(super) fn changes(&mut self, request: &Request, answer: &Answer) {
        if request.call != "sync" || request.is_finalizing() {
            return;
        }
        self.changed_fields(request, answer);
        self.absent_fields(request);
        self.lost(request, answer);
        self.rerun_jobs(request, answer);
        self.unsteady(request, answer);
        self.later(request, answer);
    }

    /// Immutable fields of children that follow a field of the spec.
    fn changed_fields(&mut self, request: &Request, answer: &Answer) {
        let parent = request.parent();
        let Some(kind) = self.catalog.kind(&gvk(parent)).cloned() else { return };
        let observed = after(request, answer);
        // The answer once the children are there: what a template keeps as it is, it keeps here too.
        let Some(before) = self.asked_again(&request.with(parent, &observed)) else { return };
        for path in leaves(&parent["spec"]).into_iter().take(MOST_FIELDS) {
            let path = [&["spec".to_string()][..], &path].concat();
            if kind.is_fixed(&path) {
                continue;
            }
            let Some(changed) = kind.with_another(parent, &path) else { continue };
            let Some(after) = self.asked_again(&request.with(&changed, &observed)) else { continue };
            for child in &before.children {
                self.held_against(request, child, &after, &dotted(&path));
                self.never_updated(&request.hook, child, &after, &dotted(&path));
            }
        }
    }

    /// The answer to a request that was made up, where there is one.
    pub(super) fn asked_again(&self, request: &Request) -> Option<Answer> {
        let answered = self.shelf.answer(&request.hook, &request.call, &request.body, case::usually_given());
        answered.ok()?.into_answer().ok()
    }

    fn held_against(&mut self, request: &Request, child: &DesiredChild, after: &Answer, changed: &str) {
        let object = Value::Object(child.object.clone());
        let gvk = gvk(&object);
        let in_place =
            |method: &UpdateMethod| matches!(method, UpdateMethod::InPlace | UpdateMethod::RollingInPlace);
        let methods = self.declared(&request.hook, &gvk).unwrap_or_default();
        // Without a definition it is not known what would be done, and in place is what most say.
        if is_others(&object) || !(methods.is_empty() || methods.iter().any(in_place)) {
            return;
        }
        let later = after.children.iter().map(|child| Value::Object(child.object.clone()));
        let Some(later) = later.into_iter().find(|later| same(later, &object)) else { return };
        let kind = self.catalog.kind(&gvk).cloned();
        for path in fixed::differing(&gvk, kind.as_deref(), &object, &later) {
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            let message =
                format!("{}: `{}` cannot change, and follows `parent.{changed}`", gvk.kind, dotted(&path));
            let problem = Problem::new(message)
                .at(place(child, &steps))
                .hint("keep the value that the child was made with, let the field of the parent be immutable (`self == oldSelf`), or choose the method `Recreate`");
            self.findings.add_seen(Rule::ImmutableField, problem, &request.file);
        }
    }

    /// Observed children that are no longer wanted when another one has lost its status, or is gone.
    fn lost(&mut self, request: &Request, answer: &Answer) {
        let observed: Vec<Value> = request.observed().into_iter().cloned().collect();
        for index in 0..observed.len() {
            for (loss, left) in losses(&observed, index) {
                let Some(later) = self.asked_again(&request.with(request.parent(), &left)) else { continue };
                for child in dropped(answer, &later, &left) {
                    let problem = dropped_problem(child, &observed[index], loss);
                    self.findings.add_seen(Rule::DroppedChild, problem, &request.file);
                }
            }
        }
    }
}

/// What can happen to one of the observed objects, and what is left of all of them.
fn losses(observed: &[Value], index: usize) -> Vec<(&'static str, Vec<Value>)> {
    let mut bare = observed.to_vec();
    let status = bare[index].as_object_mut().and_then(|object| object.shift_remove("status"));
    let mut others = observed.to_vec();
    others.remove(index);
    let had_status = status.is_some_and(|status| status != json!({}));
    let unready = had_status.then_some(("has no status", bare));
    unready.into_iter().chain([("is gone", others)]).collect()
}

/// Children that exist and were wanted, and are wanted no longer.
pub(super) fn dropped<'a>(answer: &'a Answer, later: &Answer, left: &[Value]) -> Vec<&'a DesiredChild> {
    let wanted: Vec<Value> = later.children.iter().map(|child| Value::Object(child.object.clone())).collect();
    let is_dropped = |child: &&DesiredChild| {
        let object = Value::Object(child.object.clone());
        let among = |objects: &[Value]| objects.iter().any(|other| same(other, &object));
        among(left) && !among(&wanted) && !is_others(&object)
    };
    answer.children.iter().filter(is_dropped).collect()
}

fn dropped_problem(child: &DesiredChild, other: &Value, loss: &str) -> Problem {
    let object = Value::Object(child.object.clone());
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_string();
    let (kind, other_kind) = (gvk(&object).kind, gvk(other).kind);
    let message = format!(
        "{kind} `{}` exists, and is left out while {other_kind} `{}` {loss}: it would be deleted",
        name(&object),
        name(other)
    );
    let hint = format!("keep what exists: `or children.find(\"{kind}\", …) is defined`");
    Problem::new(message).at(place(child, &["kind"])).hint(hint)
}

/// The observed children once the answer has been carried out: those of the answer, with what was observed of them.
pub(super) fn after(request: &Request, answer: &Answer) -> Vec<Value> {
    let mut observed: Vec<Value> = request.observed().into_iter().cloned().collect();
    for child in &answer.children {
        let wanted = Value::Object(child.object.clone());
        match observed.iter_mut().find(|known| same(known, &wanted)) {
            Some(known) => merge(known, &wanted),
            None if is_others(&wanted) => {}
            None => observed.push(wanted),
        }
    }
    observed
}

fn merge(known: &mut Value, wanted: &Value) {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => {
            for (key, value) in wanted {
                merge(known.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (known, wanted) => *known = wanted.clone(),
    }
}

/// The paths of all numbers, texts and truths in a value.
pub(super) fn leaves(value: &Value) -> Vec<Vec<String>> {
    let below = |key: String, value: &Value| {
        let deeper = leaves(value).into_iter();
        deeper.map(move |path| [&[key.clone()][..], &path].concat()).collect::<Vec<_>>()
    };
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| below(key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, value)| below(index.to_string(), value)).collect()
        }
        Value::Null => Vec::new(),
        _ => vec![Vec::new()],
    }
}
