//! Operators made of what `helm template` prints: whatever it holds, they pass `check`, `test` and `test --properties`.

use crate::{folder, says, syncwright};

/// Comments, empty documents, a List, a hook, two namespaces, kinds without one, text that looks like a template.
const DATABASE: &str = include_str!("../data/chart-database.yaml");

/// What runs beside a workload and around it.
const WORKERS: &str = include_str!("../data/chart-workers.yaml");

#[track_caller]
fn passes_all(chart: &str, hook: &str, notes: &[&str]) {
    let folder = folder(&[("all.yaml", chart)]);
    let made = ["new", hook, "--group", "example.com", "--from-manifests", "all.yaml"];
    let said = syncwright(folder.path(), &made);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let told: Vec<&str> = said.out.lines().filter(|line| line.starts_with("note:")).collect();
    assert_eq!(told, notes);
    let said = syncwright(folder.path(), &["check"]);
    assert!(said.out.starts_with("nothing found"), "{}", said.out);
    says(&syncwright(folder.path(), &["test"]), 0, "2 passed\n", "");
    let said = syncwright(folder.path(), &["test", "--properties"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
}

#[test]
fn chart_of_a_database() {
    passes_all(
        DATABASE,
        "db",
        &[
            "note: ClusterRole `shop-db` is left out: it belongs to no namespace, so a parent in one cannot own it",
            "note: Role `shop-db-watch` is left out: it is in the namespace `monitoring`, and a parent in `data` cannot own it",
            "note: Job `shop-db-migrate` is left out: it is a hook of Helm's, which is not there all the time",
            "note: Secret `shop-db-password` stands in sync.yaml and in the cases with its values: keep them out of git, or let the template draw them (`random_string`)",
        ],
    );
}

#[test]
fn chart_of_workers() {
    passes_all(
        WORKERS,
        "mail",
        &["note: `mail-tls`: not among the manifests, but expected under a name that follows the parent's"],
    );
}
