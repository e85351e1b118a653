//! Parents that make parents of their own kind, which make others in turn. It is found out by rendering the children as parents.

use serde_json::{Value, json};

use crate::author::check::Check;
use crate::author::check::children::{is_others, place};
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;

/// A tree of parents that is meant ends before this.
const GENERATIONS: usize = 6;

impl Check {
    pub(super) fn endless(&mut self, request: &Request, answer: &Answer) {
        if request.call != "sync" {
            return;
        }
        let Some(child) = of_own_kind(request, answer) else { return };
        let mut parent = self.made(request, child);
        for _ in 0..GENERATIONS {
            // A template that refuses one of them ends there, too.
            let Some(later) = self.asked_again(&request.with(&parent, &[])) else { return };
            let Some(next) = of_own_kind(request, &later) else { return };
            parent = self.made(request, next);
        }
        let problem = Problem::new(format!("each `{}` makes another one, without an end", gvk(&parent).kind))
            .at(place(child, &["kind"]))
            .hint("make it only under a condition that does not hold for the child, or of another kind");
        self.findings.add_seen(Rule::EndlessChildren, problem, &request.file);
    }

    /// A child as it would come back as a parent.
    fn made(&self, request: &Request, child: &DesiredChild) -> Value {
        let mut parent = Value::Object(child.object.clone());
        if parent["metadata"]["namespace"].is_null()
            && let Some(namespace) = request.parent()["metadata"].get("namespace")
        {
            parent["metadata"]["namespace"] = namespace.clone();
        }
        let mut parent = self.as_created(parent);
        parent["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000001");
        parent
    }
}

fn of_own_kind<'a>(request: &Request, answer: &'a Answer) -> Option<&'a DesiredChild> {
    let own = gvk(request.parent());
    answer.children.iter().find(|child| {
        let object = Value::Object(child.object.clone());
        let same = gvk(&object).group_kind() == own.group_kind();
        let other = object["metadata"]["name"] != request.parent()["metadata"]["name"];
        same && other && !is_others(&object)
    })
}
