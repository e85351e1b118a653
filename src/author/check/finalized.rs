//! Finalize hooks that cannot finalize: nothing in their templates says so, and a deleted parent would stay for ever.

use std::fs;
use std::path::Path;

use crate::author::check::Check;
use crate::author::check::definitions::{Definitions, at, built_in};
use crate::author::check::finding::Rule;
use crate::config::Definition;
use crate::problem::Problem;

impl Check {
    pub(super) fn never_finalized(&mut self, definitions: &Definitions, definition: &Definition) {
        let Some((hook, call)) = definition.spec.hooks.finalize.as_ref().and_then(built_in) else { return };
        let folder = self.shelf.root().join(hook);
        if !folder.is_dir()
            || self.shelf.problem(hook, call).is_some()
            || can_finalize(&folder, self.shelf.root())
        {
            return;
        }
        let problem = Problem::new(format!("no answer of `/{hook}/{call}` can say `finalized: true`"))
            .expected("`finalized: true` once nothing is left to be done, or no `finalize` in the definition")
            .hint("until the hook says so, a deleted parent stays");
        let place = definitions.place(definition, &["spec", "hooks", "finalize", "webhook", "path"]);
        self.findings.add(Rule::NeverFinalized, at(problem, place));
    }
}

/// Whether any template of the hook, or one that all hooks may include, has the field with something else than `false`.
fn can_finalize(folder: &Path, root: &Path) -> bool {
    says_finalized(folder, true) || says_finalized(root, false)
}

fn says_finalized(folder: &Path, below: bool) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            return below && name != "cases" && says_finalized(&path, true);
        }
        let is_template = path.extension().is_some_and(|end| end == "yaml") && name != "crd.yaml";
        // What cannot be read, or comes from elsewhere, may say anything.
        let may = |text: String| text.lines().any(|line| finalizes(line) || line.contains("../"));
        is_template && path.is_file() && fs::read_to_string(&path).map_or(true, may)
    })
}

fn finalizes(line: &str) -> bool {
    line.split_once("finalized")
        .is_some_and(|(_, rest)| rest.trim_start_matches(['"', ':', ' ']).trim_end() != "false")
}
