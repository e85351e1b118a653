//! Children that stay as they were made although they follow the spec: their rule says nothing of how they are updated.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::children::{is_others, same};
use crate::author::check::definitions::{at, list_field};
use crate::author::check::finding::Rule;
use crate::author::check::requests::gvk;
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::problem::Problem;

/// What is made once and is right to stay as it is.
const MADE_ONCE: [(&str, &str); 4] =
    [("batch", "Job"), ("", "Secret"), ("", "Pod"), ("", "PersistentVolumeClaim")];

impl Check {
    /// A child of the answer against the one `after` a field of the parent has changed.
    pub(super) fn never_updated(&mut self, hook: &str, child: &DesiredChild, after: &Answer, changed: &str) {
        let object = Value::Object(child.object.clone());
        let kind = gvk(&object);
        let same_child = after.children.iter().map(|later| Value::Object(later.object.clone()));
        let follows = same_child.into_iter().any(|later| same(&later, &object) && later != object);
        if !follows || is_others(&object) || MADE_ONCE.contains(&kind.group_kind()) {
            return;
        }
        let Some(definitions) = self.definitions.take() else { return };
        for definition in self.callers_of(&definitions, hook) {
            let list = list_field(definition.spec.role);
            let rules = definition.spec.children.iter().enumerate();
            let of_kind = |name: &crate::config::spec::ResourceName| {
                self.catalog
                    .resource(&name.api_version, &name.resource)
                    .is_some_and(|known| known.gvk == kind)
            };
            let Some((index, rule)) = rules.into_iter().find(|(_, rule)| of_kind(&rule.resource)) else {
                continue;
            };
            if !definition.raw["spec"][list][index]["updateStrategy"]["method"].is_null() {
                continue;
            }
            let problem = Problem::new(format!(
                "`{}` are never updated, and what is wanted of a {} follows `parent.{changed}`",
                rule.resource.resource, kind.kind
            ))
            .expected("`updateStrategy: {method: InPlace}`")
            .hint("where a child is to stay as it was made, write `method: OnDelete`, which is meant without a method");
            let place = definitions.place(definition, &["spec", list, &index.to_string(), "resource"]);
            self.findings.add(Rule::NeverUpdated, at(problem, place));
        }
        self.definitions = Some(definitions);
    }
}
