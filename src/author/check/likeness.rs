//! Whether a case is like what a controller asks: of kinds that are declared, about objects that a cluster could hold.

use serde_json::{Map, Value, json};

use crate::author::case;
use crate::author::check::Check;
use crate::author::check::crds;
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::hook::local::Reason;
use crate::problem::Problem;
use crate::schema::{Misfit, Nature, Whole};

impl Check {
    pub(super) fn likeness(&mut self, request: &Request) {
        self.objects(request);
        self.kinds_asked_for(request);
    }

    /// Fields of the parent and of observed children that no cluster would have kept.
    fn objects(&mut self, request: &Request) {
        let Some(document) = &request.document else { return };
        for (at, object) in request.objects() {
            let gvk = gvk(object);
            let Some(kind) = self.catalog.kind(&gvk) else { continue };
            // What is wrong with a status is told where the hook makes it.
            let told = |misfit: &Misfit| misfit.path.first().is_some_and(|field| field == "status");
            let odd = |misfit: &Misfit| matches!(misfit.nature, Nature::Unknown | Nature::Type);
            let misfits = kind.misfits(object, Whole::No).into_iter();
            for misfit in misfits.filter(|misfit| odd(misfit) && !told(misfit)) {
                let path: Vec<&str> = at.iter().chain(&misfit.path).map(String::as_str).collect();
                let problem = crds::at(crds::problem(&misfit, &gvk.kind), document, &path);
                let message = format!("{}, which no cluster would keep", problem.message);
                let problem = Problem { message, ..problem };
                self.findings.add(Rule::OddCase, problem);
            }
        }
    }

    /// A controller names every declared kind, so that a look-up of another one is an error. A case with a list of
    /// children says nothing of kinds.
    fn kinds_asked_for(&mut self, request: &Request) {
        let Some(grouped) = self.as_a_controller_asks(request) else { return };
        let answered = self.shelf.answer(&grouped.hook, &grouped.call, &grouped.body, case::usually_given());
        if let Err(refusal) = answered
            && refusal.reason == Reason::Fault
        {
            self.findings.add_seen(Rule::Render, unasked(refusal.problem), &request.file);
        }
    }

    fn as_a_controller_asks(&self, request: &Request) -> Option<Request> {
        let caller = *self.callers(&request.hook).first()?;
        let mut groups: Map<String, Value> = Map::new();
        for rule in &caller.spec.children {
            let kind = self.catalog.resource(&rule.resource.api_version, &rule.resource.resource)?;
            groups.insert(kind.gvk.grouping_key(), Value::Object(Map::new()));
        }
        let own = request.parent()["metadata"]["namespace"].as_str().unwrap_or_default();
        for object in request.observed() {
            let group = groups.entry(gvk(object).grouping_key()).or_insert_with(|| Value::Object(Map::new()));
            let text = |key: &str| object["metadata"][key].as_str();
            let name = text("name")?;
            let key = match text("namespace").filter(|namespace| *namespace != own) {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.to_string(),
            };
            group.as_object_mut()?.insert(key, object.clone());
        }
        let mut asked = request.with_groups(groups);
        let related = request
            .fields
            .get("related")
            .is_some_and(|related| *related != json!([]) && *related != json!({}));
        let customizes =
            self.callers(&request.hook).iter().any(|caller| caller.spec.hooks.customize.is_some());
        if !related && !customizes {
            // With one group, of no kind, a look-up of any kind is one too many.
            asked.fields.insert("related".into(), json!({NO_KIND: {}}));
            asked.body = serde_json::to_vec(&asked.fields).expect("JSON is written to memory");
        }
        Some(asked)
    }
}

/// The name of no group.
const NO_KIND: &str = "-";

/// What is said of a look-up among related objects where nobody asks for any.
fn unasked(problem: Problem) -> Problem {
    match problem.message.strip_suffix(", which is not declared") {
        Some(asks) if asks.starts_with("`related.") => {
            let message = format!("{asks}, and no `customize` of the definition asks for related objects");
            let hint =
                "answer a rule for that kind in `customize.yaml`, and name its path under `hooks.customize`";
            Problem { message, expected: None, ..problem }.hint(hint)
        }
        _ => problem,
    }
}
