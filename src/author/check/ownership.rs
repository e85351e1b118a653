//! Whether a child can belong to its parent: their namespaces, and the selector by which the parent finds it.

use serde_json::{Map, Value};

use crate::author::check::Check;
use crate::author::check::children::is_others;
use crate::author::check::examples::Wrong;
use crate::author::check::finding::Rule;
use crate::author::check::requests::{Request, gvk};
use crate::config::spec::Role;
use crate::object::name::Gvk;
use crate::object::selector::Selector;
use crate::problem::Problem;

const NO_OWNER: &str = "Kubernetes forbids such an owner and would delete the child at some later time";

impl Check {
    pub(super) fn ownership(&self, request: &Request, own: &Gvk, child: &Value) -> Vec<Wrong> {
        if is_others(child) {
            return Vec::new();
        }
        let namespaces = self.namespaces(request.parent(), own, child);
        namespaces.into_iter().chain(self.selected(request, own, child)).collect()
    }

    fn namespaces(&self, parent: &Value, own: &Gvk, child: &Value) -> Option<Wrong> {
        let namespace =
            |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or_default().to_string();
        let (of_parent, of_child) = (namespace(parent), namespace(child));
        let parent_kind = self.catalog.kind(&gvk(parent));
        let of_cluster = parent_kind.is_some_and(|kind| !kind.namespaced);
        let in_namespace = parent_kind.is_some_and(|kind| kind.namespaced) || !of_parent.is_empty();
        let kind = self.catalog.kind(own)?;
        let path = |steps: &[&str]| steps.iter().map(|step| step.to_string()).collect::<Vec<_>>();
        let problem = |rest: &str| Problem::new(format!("{} {rest}", own.kind));
        let (path, problem) = match kind.namespaced {
            false if in_namespace => {
                (path(&["kind"]), problem("is cluster-scoped, and its parent has a namespace").hint(NO_OWNER))
            }
            false if !of_child.is_empty() => {
                let problem =
                    problem("is cluster-scoped, and has no namespace").found(format!("`{of_child}`"));
                (path(&["metadata", "namespace"]), problem.hint("leave `metadata.namespace` out"))
            }
            true if of_cluster && of_child.is_empty() => (
                path(&["metadata"]),
                problem("has no namespace").hint("the parent is cluster-scoped: state `metadata.namespace`"),
            ),
            true if in_namespace
                && !of_child.is_empty()
                && !of_parent.is_empty()
                && of_child != of_parent =>
            {
                let problem =
                    problem("is in another namespace than its parent").found(format!("`{of_child}`"));
                (
                    path(&["metadata", "namespace"]),
                    problem.expected(format!("`{of_parent}`, or none")).hint(NO_OWNER),
                )
            }
            _ => return None,
        };
        Some((Rule::BadNamespace, path, problem))
    }

    /// Without `generateSelector` a child is found by the labels that the parent's `spec.selector` asks for.
    fn selected(&self, request: &Request, own: &Gvk, child: &Value) -> Option<Wrong> {
        let by_parent = |role: Role, generated: bool| role == Role::Composite && !generated;
        let callers = self.callers(&request.hook);
        callers.iter().find(|caller| by_parent(caller.spec.role, caller.spec.generate_selector))?;
        let selector = Selector::from_json(&request.parent()["spec"]["selector"]).ok()?;
        let none = Map::new();
        let unmet = selector.unmet(child["metadata"]["labels"].as_object().unwrap_or(&none))?;
        let problem =
            Problem::new(format!("{}: the parent's `spec.selector` does not match its labels", own.kind))
                .expected(format!("`{unmet}`"))
                .hint(
                    "give it the labels of the selector, or set `generateSelector: true` in the definition",
                );
        Some((Rule::SelectorMismatch, vec!["metadata".into(), "labels".into()], problem))
    }
}
