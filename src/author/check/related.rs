//! What a customize hook asks to see: kinds that are there, in namespaces that its controller may look into.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::finding::Rule;
use crate::author::check::requests::Request;
use crate::config::spec::HookVersion;
use crate::hook::wire::answer::{Answer, RelatedRule};
use crate::problem::Problem;

impl Check {
    pub(super) fn related(&mut self, request: &Request, answer: &Answer) {
        if request.call != "customize" {
            return;
        }
        for (index, rule) in answer.related.iter().enumerate() {
            let unknown = self.unknown_resource(&rule.resource);
            let found = unknown.map(|(field, problem)| (Rule::UnknownKind, field, problem));
            let beyond = self.beyond(request, rule);
            let beyond = beyond.map(|(field, problem)| (Rule::BadNamespace, field, problem));
            for (kind, field, problem) in found.into_iter().chain(beyond) {
                let path = [&index.to_string(), field];
                let place = answer.related_origin.as_ref().map(|origin| origin.place_of(&path));
                self.findings.add_seen(kind, Problem { place, ..problem }, &request.file);
            }
        }
    }

    /// A hook of the first version sees its parent's namespace alone.
    fn beyond(&self, request: &Request, rule: &RelatedRule) -> Option<(&'static str, Problem)> {
        let own = request.parent()["metadata"].get("namespace").and_then(Value::as_str)?;
        let confined = self.callers(&request.hook).into_iter().any(|caller| {
            caller.spec.hooks.customize.as_ref().is_some_and(|hook| hook.version == HookVersion::V1)
        });
        let hint = "a customize hook of version v2 may look into other namespaces: `customize: {version: v2, webhook: …}`";
        match (&rule.namespace, &rule.namespace_selector) {
            _ if !confined => None,
            (Some(other), _) if other != own => {
                let problem = Problem::new("the hook may look into its parent's namespace alone");
                Some(("namespace", problem.found(format!("`{other}`")).hint(hint)))
            }
            (None, Some(_)) => {
                let problem = Problem::new("the hook may look into its parent's namespace alone");
                Some(("namespaceSelector", problem.found("a selector of namespaces").hint(hint)))
            }
            _ => None,
        }
    }
}
