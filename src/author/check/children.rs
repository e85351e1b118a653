//! The children that a hook answers, each against its kind.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::crds;
use crate::author::check::examples::{Wrong, by_rule};
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::config::spec::UpdateMethod;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::object::name::Gvk;
use crate::plan::desired::{OWNERSHIP, strange_ownership};
use crate::problem::{Place, Problem};
use crate::schema::{Misfit, Whole};

impl Check {
    pub(super) fn children(&mut self, request: &Request, answer: &Answer) {
        for child in &answer.children {
            self.child(request, child);
        }
        self.services_without_pods(request, answer);
    }

    fn child(&mut self, request: &Request, child: &DesiredChild) {
        let object = Value::Object(child.object.clone());
        let gvk = gvk(&object);
        self.rendered.insert((request.hook.clone(), gvk.to_string()));
        let methods = self.declared(&request.hook, &gvk);
        let never_written = methods.as_ref().is_ok_and(|methods| {
            !methods.is_empty() && methods.iter().all(|method| *method == UpdateMethod::OnDelete)
        });
        if let Err(problem) = methods {
            let problem = Problem { place: Some(place(child, &["kind"])), ..problem };
            self.findings.add_seen(Rule::UndeclaredKind, problem, &request.file);
        }
        let observed = request.observed().into_iter().any(|known| same(known, &object));
        let whole = if is_others(&object) || (observed && never_written) { Whole::No } else { Whole::Yes };
        let mut wrong = by_rule(&gvk, &object, whole);
        wrong.extend(self.misfits(&gvk, &object, whole, child));
        wrong.extend(self.ownership(request, &gvk, &object));
        if let Some(stated) =
            object["metadata"]["annotations"].get(OWNERSHIP).filter(|stated| *stated != "none")
        {
            let said = strange_ownership(stated);
            let said = Problem { message: format!("{}: {}", gvk.kind, said.message), ..said };
            wrong.push((
                Rule::BadLabel,
                ["metadata", "annotations", OWNERSHIP].map(String::from).into(),
                said,
            ));
        }
        for (rule, path, problem) in wrong {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let problem = Problem { place: Some(place(child, &path)), ..problem };
            self.findings.add_seen(rule, problem, &request.file);
        }
    }

    pub(super) fn misfits(
        &mut self,
        gvk: &Gvk,
        object: &Value,
        whole: Whole,
        child: &DesiredChild,
    ) -> Vec<Wrong> {
        let Some(kind) = self.catalog.kind(gvk) else {
            return self.unknown_kind(gvk).into_iter().collect();
        };
        let wrong = |misfit: Misfit| {
            let problem = secretly(gvk, &misfit, crds::problem(&misfit, &gvk.kind));
            let problem = match &misfit.other {
                Some(other) => {
                    let path: Vec<&str> = other.iter().map(String::as_str).collect();
                    problem.found(format!("the first one at {}", place(child, &path)))
                }
                None => problem,
            };
            (Rule::of(misfit.nature), misfit.path, problem)
        };
        kind.misfits(object, whole).into_iter().map(wrong).collect()
    }

    /// A kind that is in no schema: a slip where all kinds of its group are known.
    fn unknown_kind(&mut self, gvk: &Gvk) -> Option<Wrong> {
        if !self.catalog.knows_all_of(&gvk.group) {
            self.unchecked.insert(gvk.to_string());
            return None;
        }
        let problem = Problem::new(format!("there is no `{}` in `{}`", gvk.kind, gvk.api_version()));
        let same_name = self.catalog.elsewhere(&gvk.kind).map(|version| format!("it is in `{version}`"));
        let near = || self.catalog.meant(&gvk.group, &gvk.kind).map(|near| format!("did you mean `{near}`?"));
        let hint = same_name.or_else(near);
        Some((Rule::UnknownKind, vec!["kind".into()], Problem { hint, ..problem }))
    }
}

/// What is in a Secret is shown to nobody.
fn secretly(gvk: &Gvk, misfit: &Misfit, problem: Problem) -> Problem {
    let inside = misfit.path.len() > 1 && matches!(&*misfit.path[0], "data" | "stringData");
    match problem.message.split_once("` is ") {
        Some((field, value))
            if gvk.group_kind() == ("", "Secret") && inside && !value.starts_with("not ") =>
        {
            Problem { message: format!("{field}` is of the wrong type"), ..problem }
        }
        _ => problem,
    }
}

/// Where the field of a child was written, or the nearest that is known.
pub(super) fn place(child: &DesiredChild, path: &[&str]) -> Place {
    let place = child.origin.as_ref().map(|origin| origin.place_of(path)).or_else(|| child.place.clone());
    place.expect("a child that a template made has a place")
}

/// Whether two are the same object: kind and name, and the namespace where both say one.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    let namespace = |object: &Value| object["metadata"]["namespace"].as_str().map(String::from);
    let namespaces = (namespace(one), namespace(other));
    gvk(one).group_kind() == gvk(other).group_kind()
        && one["metadata"]["name"] == other["metadata"]["name"]
        && (namespaces.0.is_none() || namespaces.1.is_none() || namespaces.0 == namespaces.1)
}

pub(super) fn is_others(object: &Value) -> bool {
    object["metadata"]["annotations"][OWNERSHIP] == "none"
}
