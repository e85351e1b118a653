//! Files in a hook's folder that nothing reads: misspelt, or too deep.

use std::fs;
use std::path::{Path, PathBuf};

use crate::author::case;
use crate::author::check::Check;
use crate::author::check::finding::Rule;
use crate::problem::{Place, Problem};

const CALLS: [&str; 6] = ["sync", "finalize", "customize", "validate", "default", "convert"];

impl Check {
    /// The files beside the templates, by name, that look like templates and are none.
    pub(super) fn files_of_no_call(&self, hook: &str) -> Vec<String> {
        let names = names_in(&self.shelf.root().join(hook)).into_iter();
        let named = names.filter(|name| {
            let known = matches!(name.as_str(), "crd.yaml" | "example.yaml");
            let own = CALLS.iter().any(|call| *name == format!("{call}.yaml"));
            let like = [".yaml", ".yml", ".j2", ".jinja"].iter().any(|ending| name.ends_with(ending));
            like && !known && !own && !name.starts_with('_')
        });
        named.map(|name| format!("`{name}`")).collect()
    }

    /// Templates in folders below a call's own: its parts lie side by side.
    pub(super) fn too_deep(&mut self) {
        for (hook, folder) in case::folders_in(self.shelf.root()).unwrap_or_default() {
            for call in CALLS {
                let parts = folder.join(call);
                let below = case::folders_in(&parts).unwrap_or_default();
                for file in below.iter().flat_map(|(_, folder)| yaml_in(folder)) {
                    let problem = Problem::new(format!(
                        "nothing reads this file: the parts of `{hook}/{call}` lie in its folder itself"
                    ))
                    .at(Place { file: file.display().to_string(), line: 1, column: 1 })
                    .hint("move it one folder up; one that others include begins with `_`");
                    self.findings.add(Rule::UnusedTemplate, problem);
                }
            }
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

fn yaml_in(folder: &Path) -> Vec<PathBuf> {
    let names = names_in(folder).into_iter();
    names
        .filter(|name| name.ends_with(".yaml") && !name.starts_with('_'))
        .map(|name| folder.join(name))
        .collect()
}
