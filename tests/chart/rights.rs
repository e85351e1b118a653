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
    let webhooks = "--webhook-secret=ops/sw-webhook";
    let printed = objects(&printed(
        &read("controllers.yaml"),
        &["--name=sw", "--service-account=ops/sw", "--lease=ops/metacontroller", webhooks],
    ));
    let wide = rights(find(&chart, "ClusterRole", "ops-sw"));
    let unnamed = |right: &String| right.rsplit_once(' ').map(|(right, _)| format!("{right} "));
    // The chart knows the names of what its webhooks are told to; what is printed is for any.
    let named: BTreeSet<&String> = wide.iter().filter(|right| !right.ends_with(' ')).collect();
    assert!(named.iter().all(|right| right.starts_with("patch ")), "{named:?}");
    let widened: BTreeSet<String> = wide.iter().filter_map(unnamed).collect();
    assert_eq!(widened, rights(find(&printed, "ClusterRole", "sw")));
    // The release's own Secret is among those that PostgreSQLCluster and MySQL may make anyhow.
    let narrow = rights(find(&chart, "Role", "sw"));
    let needed = narrow.into_iter().filter(|right| unnamed(right).is_none_or(|right| !wide.contains(&right)));
    assert_eq!(needed.collect::<BTreeSet<_>>(), rights(find(&printed, "Role", "sw")));
    for (kind, in_chart) in [("ClusterRoleBinding", "ops-sw"), ("RoleBinding", "sw")] {
        let (found, expected) = (find(&chart, kind, in_chart), find(&printed, kind, "sw"));
        assert_eq!(found["subjects"], expected["subjects"], "{kind}");
        assert_eq!(found["roleRef"]["name"], in_chart, "{kind}");
    }
}
