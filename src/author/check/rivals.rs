//! Definitions that cannot work as they stand although each of their fields is right: two that have the same parents, one
//! that finds its children by a field that its parents lack, a path beside a `url`.

use serde_json::Value;

use crate::author::check::Check;
use crate::author::check::definitions::{Definitions, at};
use crate::author::check::finding::Rule;
use crate::config::Definition;
use crate::config::spec::Role;
use crate::problem::Problem;

impl Check {
    /// Two composite definitions of one kind each write the status of a parent that both select, and fight.
    pub(super) fn rivals(&mut self, definitions: &Definitions) {
        for (index, definition) in definitions.all.iter().enumerate() {
            let Some(first) =
                definitions.all[..index].iter().find(|first| first.shares_parents_with(definition))
            else {
                continue;
            };
            let resource = &definition.spec.parent.resource;
            let problem = Problem::new(format!(
                "`{}` has the parents of `{}` too: {resource}",
                definition.name, first.name
            ))
            .expected("one definition for each parent: both would write its status, each over the other's")
            .hint("join them, or give both a `labelSelector` that leaves the other's parents out");
            let place = definitions.place(definition, &["spec", "parentResource", "resource"]);
            self.findings.add(Rule::SharedParent, at(problem, place));
        }
    }

    /// Without `generateSelector` the children are found by the parent's own selector.
    pub(super) fn selector_field(&mut self, all: &Definitions, definition: &Definition) {
        let name = &definition.spec.parent.resource;
        if definition.spec.generate_selector || definition.spec.role != Role::Composite {
            return;
        }
        let Some(kind) = self.catalog.resource(&name.api_version, &name.resource) else { return };
        if kind.has(&["spec", "selector"]) {
            return;
        }
        let problem = Problem::new(format!(
            "`{}` finds its children by `spec.selector` of their parent, which `{}` does not have",
            definition.name, kind.gvk.kind
        ))
        .hint("write `generateSelector: true` in the definition's `spec`: each child gets a label with its parent's uid");
        self.findings.add(Rule::Definition, at(problem, all.place(definition, &["spec", "parentResource"])));
    }

    /// A complete URL leaves no room for a path.
    pub(super) fn paths_beside_urls(&mut self, all: &Definitions, definition: &Definition) {
        for field in ["sync", "finalize", "customize"] {
            let webhook = &definition.raw["spec"]["hooks"][field]["webhook"];
            let (Value::String(url), Value::String(path)) = (&webhook["url"], &webhook["path"]) else {
                continue;
            };
            let problem =
                Problem::new(format!("`path` has no effect beside `url`: `{url}` is called as it stands"))
                    .found(format!("`{path}`"))
                    .expected("`path` alone for a template, `url` alone for a server");
            let place = all.place(definition, &["spec", "hooks", field, "webhook", "path"]);
            self.findings.add(Rule::NoEffect, at(problem, place));
        }
    }
}
