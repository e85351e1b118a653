//! What `helm template` prints, kept in `tests/chart/snapshots/`. `UPDATE=1 cargo test --test chart snapshots` writes it anew.
//! Long lines are cut, and of a CRD only the head is kept: another test has what they hold.

use std::path::Path;

use crate::helm::{Helm, ROOT, read};

#[track_caller]
fn check(name: &str, values: &[&str]) {
    let found = shortened(&Helm::new().template(values));
    let path = Path::new("tests/chart/snapshots").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(Path::new(ROOT).join(&path), &found).expect("the folder is there");
    }
    let expected = read(&path);
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "{} is old: run with UPDATE=1 and read what changes; the first difference, new and old: {differs:#?}",
        path.display()
    );
}

fn shortened(manifests: &str) -> String {
    let documents = manifests.split("---\n").map(|document| match document.split_once("\nspec:") {
        Some((head, _)) if document.contains("kind: CustomResourceDefinition") => format!("{head}\n"),
        _ => document.to_owned(),
    });
    let line = |line: &str| match line.char_indices().nth(140) {
        Some((end, _)) => format!("{}…\n", &line[..end]),
        None => format!("{line}\n"),
    };
    documents.collect::<Vec<_>>().join("---\n").lines().map(line).collect()
}

#[test]
fn as_it_comes() {
    check("as-it-comes.yaml", &[]);
}

#[test]
fn with_everything() {
    check("with-everything.yaml", &["--values=tests/chart/everything.yaml"]);
}

#[test]
fn with_one_operator_of_ones_own() {
    check("own.yaml", &["--values=tests/chart/own.yaml"]);
}
