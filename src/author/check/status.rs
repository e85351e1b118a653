//! The status that a hook computes, against the parent's kind.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::crds;
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::hook::wire::answer::Answer;
use crate::problem::Problem;
use crate::schema::{Misfit, Nature, Whole};

impl Check {
    pub(super) fn status(&mut self, request: &Request, answer: &Answer) {
        let gvk = gvk(request.parent());
        let Some(kind) = self.catalog.kind(&gvk) else {
            self.unchecked.insert(gvk.to_string());
            return;
        };
        let Some(status) = answer.status.clone().filter(|status| !status.is_empty()) else { return };
        let found: Vec<(Rule, Vec<String>, Problem)> =
            match kind.misfits_of("status", &Value::Object(status), Whole::Yes) {
                Some(misfits) => misfits
                    .into_iter()
                    // A null is written by leaving the field out, and for a status that is as good.
                    .filter(|misfit| misfit.nature != Nature::Null)
                    .map(|misfit| (rule(&misfit), misfit.path.clone(), crds::problem(&misfit, &gvk.kind)))
                    .collect(),
                None => {
                    let problem = Problem::new(format!("`{}` has no `status` in its schema", gvk.kind));
                    vec![(Rule::PrunedStatus, vec!["status".into()], problem)]
                }
            };
        for (rule, path, problem) in found {
            let path: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
            let place = answer.status_origin.as_ref().map(|origin| origin.place_of(&path));
            let problem = Problem { place, ..problem };
            self.findings.add_seen(rule, problem, &request.file);
        }
    }
}

fn rule(misfit: &Misfit) -> Rule {
    match misfit.nature {
        Nature::Unknown => Rule::PrunedStatus,
        nature => Rule::of(nature),
    }
}
