//! The entry of `controllers.yaml` that calls a new hook.

use std::fmt::Write;

use crate::author::kinds::ChildKind;
use crate::author::new::Names;
use crate::problem::Problem;
use crate::template::yaml;

/// The definition as YAML.
pub(in crate::author::new) fn text(names: &Names, children: &[ChildKind]) -> String {
    let mut text = names.fill(HEAD);
    if children.is_empty() {
        text.push_str("  childResources: []\n");
    } else {
        text.push_str("  childResources:\n");
    }
    for ChildKind { api_version, plural, method, .. } in children {
        let _ = writeln!(text, "    - apiVersion: {api_version}\n      resource: {plural}");
        let _ = writeln!(text, "      updateStrategy:\n        method: {method}");
    }
    text.push_str(&names.fill(TAIL));
    text
}

const HEAD: &str = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata:
  name: <hook>
spec:
  # Children carry a label with their parent's uid, by which they are found.
  generateSelector: true
  parentResource:
    apiVersion: <group>/<version>
    resource: <plural>
";

const TAIL: &str = "  hooks:
    sync:
      webhook:
        path: /<hook>/sync
";

/// The file with the definition at its end; nothing of what is there changes. `None` where one of that name is there.
pub(in crate::author::new) fn appended(
    file: &str,
    before: &str,
    name: &str,
    definition: &str,
) -> Result<Option<String>, Problem> {
    let documents = yaml::read(file, before)?;
    let is_it = |value: &serde_json::Value| {
        value["kind"] == "CompositeController" && value["metadata"]["name"] == name
    };
    let there = documents.iter().any(|document| {
        let items = document.value["items"].as_array().into_iter().flatten();
        is_it(&document.value) || items.into_iter().any(is_it)
    });
    if there {
        return Ok(None);
    }
    let mut after = before.to_string();
    if !after.is_empty() && !after.ends_with('\n') {
        after.push('\n');
    }
    let last = before.lines().rev().find(|line| !line.trim().is_empty());
    if !documents.is_empty() && last.is_none_or(|line| line.trim_end() != "---") {
        after.push_str("---\n");
    }
    after.push_str(definition);
    Ok(Some(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::kinds::child_kind;
    use crate::author::new::Wish;

    #[track_caller]
    fn check(before: &str, after: Option<&str>) {
        let appended =
            appended("controllers.yaml", before, "b", "kind: CompositeController\nmetadata: {name: b}\n");
        assert_eq!(appended.unwrap().as_deref(), after);
    }

    #[test]
    fn an_entry_is_appended_and_nothing_else_changes() {
        let entry = "kind: CompositeController\nmetadata: {name: b}\n";
        check("", Some(entry));
        check("# mine\n", Some(&format!("# mine\n{entry}")));
        check("a: 1 # one\n", Some(&format!("a: 1 # one\n---\n{entry}")));
        check("a: 1", Some(&format!("a: 1\n---\n{entry}")));
        check("a: 1\n---\n", Some(&format!("a: 1\n---\n{entry}")));
    }

    #[test]
    fn an_entry_is_a_definition_that_can_be_run() {
        let wish = Wish {
            hook: "shop".into(),
            group: Some("example.com".into()),
            kind: None,
            version: None,
            plural: None,
        };
        let names = wish.names().unwrap();
        for children in [vec![], vec![child_kind("apps/v1", "Deployment"), child_kind("batch/v1", "Job")]] {
            let entry = text(&names, &children);
            let loaded = crate::config::load("controllers.yaml", &entry)
                .map_err(|problems| problems.iter().map(Problem::page).collect::<Vec<_>>().join("\n"));
            assert_eq!(loaded.map(|definitions| definitions.len()), Ok(1), "{entry}");
        }
    }

    #[test]
    fn an_entry_that_is_there_is_not_appended_again() {
        check("kind: CompositeController\nmetadata: {name: b}\nspec: {}\n", None);
        check("kind: List\nitems:\n- kind: CompositeController\n  metadata: {name: b}\n", None);
    }

    #[test]
    fn a_file_that_is_no_yaml_is_told() {
        let problem = appended("controllers.yaml", "a: [\n", "b", "").unwrap_err();
        assert!(problem.page().starts_with("controllers.yaml:"), "{}", problem.page());
    }
}
