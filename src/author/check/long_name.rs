//! What becomes of children's names when a parent's own name is long: it may have 253 characters, and 63 are common.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::children::place;
use crate::author::check::examples::{Wrong, by_rule};
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;
use crate::schema::Whole;

/// As long as a label's value may be: a parent is often named after what it belongs to, and labels after the parent.
const LONG: usize = 63;

impl Check {
    /// Renders an example's parent under a long name.
    pub(super) fn long_name(&mut self, request: &Request, answer: &Answer) {
        if request.document.is_some() || request.call != "sync" {
            return;
        }
        let mut parent = request.parent().clone();
        if parent["metadata"].is_object() {
            parent["metadata"]["name"] = "a".repeat(LONG).into();
        }
        let Some(renamed) = self.asked_again(&request.with(&parent, &[])) else { return };
        let known: Vec<Wrong> = answer.children.iter().flat_map(names).collect();
        for child in &renamed.children {
            for (rule, path, problem) in names(child) {
                // What is wrong under any name has been told.
                if known.iter().any(|(other, at, _)| (*other, at) == (rule, &path)) {
                    continue;
                }
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let told = shortened(&problem.message);
                let message = format!("where the parent's name has {LONG} characters: {told}");
                let problem = Problem { place: Some(place(child, &path)), message, ..problem };
                self.findings.add_seen(Rule::LongName, problem, &request.file);
            }
        }
    }
}

/// What is wrong with a child's names and labels.
fn names(child: &DesiredChild) -> Vec<Wrong> {
    let object = Value::Object(child.object.clone());
    let mut wrong = by_rule(&gvk(&object), &object, Whole::No);
    wrong.retain(|(rule, ..)| matches!(rule, Rule::BadName | Rule::BadLabel));
    wrong
}

/// The message with the long name cut.
fn shortened(message: &str) -> String {
    message.replace(&"a".repeat(LONG), "aaa…")
}
