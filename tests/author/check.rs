//! `syncwright check`: a folder of `tests/check/` for each behaviour, with a small project and what is said of it.
//!
//! `expected.txt` is the command, what it prints and how it ends; `args.txt` has more arguments.
//! `UPDATE=1 cargo test --test author check::` writes what came out; read it before you commit it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{folder, syncwright};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check")
}

/// What a terminal would show.
fn transcript(project: &Path) -> String {
    let arguments = fs::read_to_string(project.join("args.txt")).unwrap_or_default();
    let arguments: Vec<&str> = std::iter::once("check").chain(arguments.split_whitespace()).collect();
    let said = syncwright(project, &arguments);
    format!("$ syncwright {}\n{}{}exit code {}\n", arguments.join(" "), said.err, said.out, said.code)
}

// B36 (`webhook-calls-nobody`), B39 (`yaml-traps`), B41 (`whole-float-is-an-integer`, `value-is-of-the-wrong-type`), B43 (`field-is-null`),
// B46 (`child-is-dropped-*`), B65 (`job-that-its-ttl-removes`), B54 (`port-in-quotes-is-a-name`), B64 (`cronjob-that-may-start-only-seconds-late`), B72 (`merge-keys-are-repeated`)
#[test]
fn every_project_is_told_what_is_wrong_with_it() {
    let mut wrong = Vec::new();
    let mut projects: Vec<PathBuf> =
        fs::read_dir(root()).expect("the projects").map(|entry| entry.expect("one").path()).collect();
    projects.sort();
    for project in projects {
        let (got, file) = (transcript(&project), project.join("expected.txt"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, &got).expect("the folder can be written");
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if got != expected {
            let name = project.file_name().unwrap().to_string_lossy();
            let diff = similar::TextDiff::from_lines(&expected, &got).unified_diff().to_string();
            wrong.push(format!("{name}\n{diff}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_shipped_hooks_have_nothing_to_find() {
    let said = syncwright(Path::new(env!("CARGO_MANIFEST_DIR")), &["check"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert!(said.out.starts_with("nothing found in 3 hooks, "), "{}", said.out);
}

/// The members that SARIF 2.1.0 requires, and those that a code host needs to show a result beside its line.
#[test]
fn sarif_has_what_its_readers_require() {
    let said = syncwright(&root().join("form-sarif"), &["check", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&said.out).expect("it is JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert!(run["tool"]["driver"]["name"].is_string());
    let results = run["results"].as_array().expect("results");
    assert!(!results.is_empty());
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().expect("an index") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()), "{result}");
        assert!(result["message"]["text"].is_string(), "{result}");
        let location = &result["locations"][0]["physicalLocation"];
        assert!(
            root().join("form-sarif").join(location["artifactLocation"]["uri"].as_str().unwrap()).is_file()
        );
        let region = &location["region"];
        for member in ["startLine", "startColumn", "endColumn"] {
            assert!(region[member].as_u64().is_some_and(|number| number > 0), "{region}");
        }
        assert!(region["endColumn"].as_u64() > region["startColumn"].as_u64(), "{region}");
    }
}

#[test]
fn places_are_named_by_the_way_to_the_folder_that_was_given() {
    let project = folder(&[("a/b/hooks/x/sync.yaml", "status: {{ parnet }}\n")]);
    let said = syncwright(project.path(), &["check", "--hooks", "a/b/hooks"]);
    assert!(said.out.starts_with("a/b/hooks/x/sync.yaml:1:12: unknown name `parnet`"), "{}", said.out);
}
