//! What a hook must do with any parent that its kind's schema allows.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::author::check::{crds, names, requests::gvk};
use crate::author::difference::differences;
use crate::author::properties::Found;
use crate::config::Definition;
use crate::config::spec::Target;
use crate::hook::local::{Given, Reason, Shelf};
use crate::problem::Problem;
use crate::schema::{Catalog, Kind, Whole};

/// Judges one hook.
pub(super) struct Judge<'a> {
    pub hook: &'a str,
    shelf: &'a Shelf,
    catalog: Catalog,
    /// The kinds of children that its definitions declare, as `apps/v1` and `deployments`; `None` where there is none.
    declared: Option<Vec<(String, String)>>,
}

/// Whether a definition's sync hook is this one.
pub(super) fn calls(definition: &Definition, hook: &str) -> bool {
    let sync = definition.spec.hooks.sync.as_ref().map(|sync| &sync.webhook.target);
    matches!(sync, Some(Target::BuiltIn { hook: called, .. }) if called == hook)
}

/// What came of one call.
enum Answered {
    Well(Value),
    /// With the template's own `fail(…)`.
    OnPurpose,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        shelf: &'a Shelf,
        hook: &'a str,
        definitions: &Option<Vec<Definition>>,
        catalog: Catalog,
    ) -> Judge<'a> {
        let callers: Vec<&Definition> =
            definitions.iter().flatten().filter(|definition| calls(definition, hook)).collect();
        let rules = callers.iter().flat_map(|definition| &definition.spec.children);
        let declared = rules
            .map(|rule| (rule.resource.api_version.to_string(), rule.resource.resource.to_string()))
            .collect();
        Judge { hook, shelf, catalog, declared: (!callers.is_empty()).then_some(declared) }
    }

    pub(super) fn kind_of(&self, object: &Value) -> Option<&Arc<Kind>> {
        self.catalog.kind(&gvk(object))
    }

    /// `Ok` tells whether the hook refused the parent on purpose.
    pub(super) fn fault(&self, parent: &Value) -> Result<bool, Box<Found>> {
        let Answered::Well(answer) = self.call("sync", "sync", parent, &json!([]))? else { return Ok(true) };
        let (parent, children) = observed(parent, &answer);
        let title = "sync with its children observed";
        let Answered::Well(answer) = self.call("sync", title, &parent, &children)? else { return Ok(true) };
        let (parent, children) = observed(&parent, &answer);
        self.lasting_names(&parent, &children)?;
        if self.finalizes() {
            self.call("finalize", "finalize with its children observed", &parent, &children)?;
        }
        Ok(false)
    }

    /// Children that are there have the same names a second later, whatever chance says.
    fn lasting_names(&self, parent: &Value, children: &Value) -> Result<(), Box<Found>> {
        let names = |seconds: i64| {
            let now = now() + jiff::SignedDuration::from_secs(seconds);
            let given = Given { now, entropy: [seconds as u8; 32] };
            let body = json!({"parent": parent, "children": children, "related": children}).to_string();
            let response = self.shelf.answer(self.hook, "sync", body.as_bytes(), given).ok()?.into_value();
            let children = response["children"].as_array().cloned().unwrap_or_default();
            Some(children.iter().map(called).collect::<Vec<String>>())
        };
        let (Some(one), Some(other)) = (names(1), names(2)) else { return Ok(()) };
        match one.iter().find(|name| !other.contains(name)) {
            None => Ok(()),
            Some(name) => Err(Box::new(Found {
                parent: parent.clone(),
                call: "sync with its children observed, a second later".into(),
                problem: Problem::new("a child has another name at each visit")
                    .found(format!("{name}, and then {}", other.join(", ")))
                    .hint("keep `now` and `random_string` out of names: each new one is made, and the one before deleted"),
            })),
        }
    }

    fn finalizes(&self) -> bool {
        let state = self.shelf.state();
        let hook = state.hooks.iter().find(|hook| hook.hook == self.hook);
        hook.is_some_and(|hook| hook.calls.iter().any(|call| call.call.name() == "finalize"))
    }

    fn call(
        &self,
        call: &str,
        title: &str,
        parent: &Value,
        children: &Value,
    ) -> Result<Answered, Box<Found>> {
        let found = |problem| Box::new(Found { parent: parent.clone(), call: title.to_string(), problem });
        let body = json!({"parent": parent, "children": children}).to_string();
        let given = Given { now: now(), entropy: [7; 32] };
        let ask = || self.shelf.answer(self.hook, call, body.as_bytes(), given);
        let answer = match ask() {
            Ok(response) => response.into_value(),
            Err(refusal) if refusal.reason == Reason::Fault && refusal.problem.on_purpose => {
                return Ok(Answered::OnPurpose);
            }
            Err(refusal) => return Err(found(self.with_schema(parent, refusal.problem))),
        };
        let again = ask().map(|response| response.into_value()).unwrap_or_default();
        if let Some(first) = differences(&answer, &again).first() {
            return Err(found(Problem::new("the same request has two answers").found(first.clone())));
        }
        for child in answer["children"].as_array().into_iter().flatten() {
            if let Some(problem) = self.wrong(child) {
                return Err(found(problem));
            }
        }
        Ok(Answered::Well(answer))
    }

    /// Says of a field that is absent that no parent can have it, where that is so.
    fn with_schema(&self, parent: &Value, problem: Problem) -> Problem {
        let path = problem.message.strip_prefix("`parent.").and_then(|rest| rest.strip_suffix("` is absent"));
        let path = path.unwrap_or_default().to_string();
        let steps: Vec<&str> = path.split('.').collect();
        let is_plain = steps.iter().all(|step| step.chars().all(char::is_alphanumeric) && !step.is_empty());
        let is_known = self.kind_of(parent).is_none_or(|kind| kind.has(&steps));
        if !is_plain || is_known || steps[0] == "metadata" {
            return problem;
        }
        problem.found(format!("`{path}` is not in the schema of `crd.yaml`: no parent can have it"))
    }

    /// Why a cluster would not take a child.
    fn wrong(&self, child: &Value) -> Option<Problem> {
        let gvk = gvk(child);
        let who = format!("child {} `{}`", gvk.kind, child["metadata"]["name"].as_str().unwrap_or_default());
        let said = |problem: Problem| Problem { message: format!("{who}: {}", problem.message), ..problem };
        if let Some(declared) = &self.declared
            && let Some(kind) = self.catalog.kind(&gvk)
            && !declared.contains(&(gvk.api_version(), kind.plural.clone()))
        {
            return Some(said(Problem::new("its kind is not declared in `childResources`")));
        }
        let names = names::wrong(&gvk, child).into_iter().chain(names::selector(&gvk, child));
        let names = names.map(|(_, _, problem)| problem).next();
        let is_whole = child["metadata"]["annotations"]["syncwright.io/ownership"] != "none";
        let whole = if is_whole { Whole::Yes } else { Whole::No };
        let misfit = || {
            let misfit = self.catalog.kind(&gvk)?.misfits(child, whole).into_iter().next()?;
            Some(crds::problem(&misfit, &gvk.kind))
        };
        names.or_else(misfit).map(said)
    }
}

/// When hooks are asked.
fn now() -> jiff::Timestamp {
    "2026-01-01T00:00:30Z".parse().expect("a literal time")
}

fn called(child: &Value) -> String {
    format!("{} `{}`", gvk(child).kind, child["metadata"]["name"].as_str().unwrap_or_default())
}

/// The parent with the status that was answered, and the children as a cluster has them right after they were made.
fn observed(parent: &Value, answer: &Value) -> (Value, Value) {
    let mut parent = parent.clone();
    if !answer["status"].is_null() {
        parent["status"] = answer["status"].clone();
    }
    let namespace = &parent["metadata"]["namespace"];
    let made = |child: &Value| {
        let mut child = child.clone();
        if child["metadata"]["namespace"].is_null() && !namespace.is_null() {
            child["metadata"]["namespace"] = namespace.clone();
        }
        child["metadata"]["uid"] = json!("5b1f3d2e-0000-4000-8000-000000000001");
        child["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:10Z");
        child
    };
    let is_own = |child: &&Value| child["metadata"]["annotations"]["syncwright.io/ownership"] != "none";
    let children = answer["children"].as_array().into_iter().flatten().filter(is_own).map(made).collect();
    (parent, children)
}
