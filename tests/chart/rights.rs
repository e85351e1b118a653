//! The chart's roles are those that `syncwright rbac` prints for the shipped operators.
//! `UPDATE=1 cargo test --test chart rights` writes chart/files/rules anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::helm::{Helm, ROOT, find, objects, read, text};

const OPERATORS: [&str; 3] = ["backupschedule", "mysql", "postgresqlcluster"];

/// The printed roles for these definitions.
#[track_caller]
fn printed(controllers: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("controllers.yaml"), controllers).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command
        .current_dir(folder.path())
        .args(["rbac", "--hooks"])
        .arg(Path::new(ROOT).join("hooks"))
        .args(more);
    let output = command.output().expect("the binary was built for this test");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The rules among what was printed, a line each.
fn lines(roles: &str) -> Vec<String> {
    roles.lines().filter(|line| line.starts_with("- {apiGroups")).map(str::to_owned).collect()
}

/// Verb, group and resource with its name: each alone, so that it does not matter how they are put together.
fn rights(role: &Value) -> BTreeSet<String> {
    let list = |value: &Value| -> Vec<String> {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![json!("")]);
        values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                for verb in list(&rule["verbs"]) {
                    for name in list(&rule["resourceNames"]) {
                        rights.insert(format!("{verb} {group}:{resource} {name}"));
                    }
                }
            }
        }
    }
    rights
}

#[track_caller]
fn check(file: &str, expected: &[String]) {
    let path = format!("chart/files/rules/{file}.yaml");
    let text = format!("# Printed by `syncwright rbac`; a test compares.\n{}\n", expected.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(Path::new(ROOT).join(&path), &text).expect("the folder is there");
    }
    assert_eq!(read(&path), text, "{path} is old: run with UPDATE=1");
}

#[test]
fn rules_of_each_operator_are_the_printed_ones() {
    let definitions = read("controllers.yaml");
    // What is needed for no operator at all.
    let common = lines(&printed("", &[]));
    check("definitions", &common);
    for operator in OPERATORS {
        let of = |text: &&str| text.contains(&format!("\n  name: {operator}\n"));
        let definition = definitions.split("\n---\n").find(of).expect("it is shipped");
        let more: Vec<String> =
            lines(&printed(definition, &[])).into_iter().filter(|line| !common.contains(line)).collect();
        check(operator, &more);
    }
}

#[test]
fn all_roles_are_the_printed_ones() {
    let chart = objects(&Helm::new().template(&[]));
    let printed = objects(&printed(
        &read("controllers.yaml"),
        &["--name=sw", "--service-account=ops/sw", "--lease=ops/metacontroller"],
    ));
    for (kind, in_chart) in [("ClusterRole", "ops-sw"), ("Role", "sw")] {
        assert_eq!(rights(find(&chart, kind, in_chart)), rights(find(&printed, kind, "sw")), "{kind}");
    }
    for (kind, in_chart) in [("ClusterRoleBinding", "ops-sw"), ("RoleBinding", "sw")] {
        let (found, expected) = (find(&chart, kind, in_chart), find(&printed, kind, "sw"));
        assert_eq!(found["subjects"], expected["subjects"], "{kind}");
        assert_eq!(found["roleRef"]["name"], in_chart, "{kind}");
    }
}
