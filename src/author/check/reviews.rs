//! What `default` fills in and what `convert` makes of an object, against the object's kind.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::change::leaves;
use crate::author::check::crds;
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::hook::local::answer::Response;
use crate::hook::origin::Origin;
use crate::object::name::Gvk;
use crate::problem::Problem;
use crate::schema::{Whole, dotted};

impl Check {
    pub(super) fn review(&mut self, request: &Request, response: &Response) {
        let object = &request.fields.get("object").or(request.fields.get("parent")).unwrap_or(&Value::Null);
        let own = gvk(object);
        for (name, value, origin) in response.fields() {
            match request.call.as_str() {
                "default" if name == "defaults" => {
                    for (field, value) in value.as_object().into_iter().flatten() {
                        self.part(&own, field, value, &origin.below(field), request);
                    }
                    self.without_effect(request, object, value, origin);
                }
                "convert" if !["apiVersion", "kind", "metadata"].contains(&name) => {
                    let to = request.fields.get("to").and_then(Value::as_str).unwrap_or_default();
                    let to = Gvk { version: to.into(), ..own.clone() };
                    self.part(&to, name, value, origin, request);
                }
                _ => {}
            }
        }
    }

    /// Fields that the API server has filled in from the CRD before it asks.
    fn without_effect(&mut self, request: &Request, object: &Value, defaults: &Value, origin: &Origin) {
        let Some(kind) = self.catalog.kind(&gvk(object)) else { return };
        let mut filled = object.clone();
        kind.fill(&mut filled);
        for path in leaves(defaults) {
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            let holds =
                |object: &Value| steps.iter().try_fold(object, |value, step| value.get(step)).is_some();
            if holds(&filled) && !holds(object) {
                let field = dotted(&path);
                let message = format!(
                    "`{field}` has a default in the CRD, which the API server fills in first: this one is never used"
                );
                let problem =
                    Problem::new(message).at(origin.place_of(&steps)).hint("state it in one of the two");
                self.findings.add_seen(Rule::NoEffect, problem, &request.file);
            }
        }
    }

    /// One field at the top of an object, of which more may be there.
    fn part(&mut self, gvk: &Gvk, field: &str, value: &Value, origin: &Origin, request: &Request) {
        let Some(kind) = self.catalog.kind(gvk) else {
            self.unchecked.insert(gvk.to_string());
            return;
        };
        let Some(misfits) = kind.misfits_of(field, value, Whole::No) else {
            if field != "metadata" {
                let problem = Problem::new(format!("{}: unknown field `{field}`", gvk.kind));
                self.findings.add_seen(Rule::UnknownField, problem.at(origin.place_of(&[])), &request.file);
            }
            return;
        };
        for misfit in misfits {
            let path: Vec<&str> = misfit.path.iter().skip(1).map(String::as_str).collect();
            let problem = crds::problem(&misfit, &gvk.kind).at(origin.place_of(&path));
            self.findings.add_seen(Rule::of(misfit.nature), problem, &request.file);
        }
    }
}
