//! `syncwright render`, and what every command has in common.

use serde_json::{Value, json};

use crate::{ANSWER, PARENT, SYNC, folder, says, syncwright};

#[test]
fn render_prints_the_answer() {
    let folder = folder(&[("hooks/a/sync.yaml", SYNC), ("parent.yaml", PARENT)]);
    let now = ["--now", "2026-01-01T00:00:00Z"];
    let said = syncwright(
        folder.path(),
        &[&["render", "a", "sync", "parent.yaml", "-o", "yaml"], &now[..]].concat(),
    );
    says(&said, 0, ANSWER, "");
    let said = syncwright(folder.path(), &[&["render", "a", "sync", "parent.yaml"], &now[..]].concat());
    let child =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"text": ""}});
    let expected =
        json!({"status": {"phase": "Running", "now": "2026-01-01T00:00:00Z"}, "children": [child]});
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), expected);
}

#[test]
fn render_shows_a_templates_fault_as_a_page() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", "status: {phase: {{ parent.spec.phase }}}\n"),
        ("p.yaml", "parent: {}\n"),
    ]);
    let said = syncwright(folder.path(), &["render", "a", "sync", "p.yaml"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let line = "\n 1 | status: {phase: {{ parent.spec.phase }}}\n   |                    ^";
    assert!(said.err.starts_with("hooks/a/sync.yaml:1:20: ") && said.err.contains(line), "{}", said.err);
}

#[test]
fn render_shows_where_a_request_is_none() {
    let folder = folder(&[("hooks/a/sync.yaml", SYNC), ("p.yaml", "parent: {}\nparent: {}\n")]);
    let said = syncwright(folder.path(), &["render", "a", "sync", "p.yaml"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("p.yaml:2:1: "), "{}", said.err);
}

#[test]
fn render_shows_why_a_hook_does_not_compile() {
    let folder = folder(&[("hooks/a/sync.yaml", "a: 1\n{% if %}\n"), ("p.yaml", PARENT)]);
    let said = syncwright(folder.path(), &["render", "a", "sync", "p.yaml"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("hooks/a/sync.yaml:2:"), "{}", said.err);
}

#[test]
fn what_cannot_be_asked_ends_with_2() {
    let folder = folder(&[("hooks/mysql/sync.yaml", SYNC), ("p.yaml", PARENT)]);
    let said = |arguments: &[&str]| syncwright(folder.path(), arguments);
    says(
        &said(&["render", "mysq", "sync", "p.yaml"]),
        2,
        "",
        "error: no hook `mysq`; expected: `mysql`; hint: did you mean `mysql`?\n",
    );
    says(
        &said(&["render", "mysql", "sync", "q.yaml"]),
        2,
        "",
        "error: `q.yaml` cannot be read: No such file or directory (os error 2)\n",
    );
    says(
        &said(&["render", "mysql", "sync", "p.yaml", "--hooks", "x"]),
        2,
        "",
        "error: there is no hooks folder `x`; hint: name it with --hooks\n",
    );
    says(
        &said(&["test"]),
        2,
        "",
        "error: there is no case below `hooks`; hint: a case is a folder `<hook>/cases/<case>/`\n",
    );
    assert_eq!(said(&["serve", "--listen", "nowhere"]).code, 2);
    assert_eq!(said(&["rendr"]).code, 2);
    assert_eq!(said(&["test", "--log-level", "a=b=c"]).code, 2);
}

#[test]
fn the_version_says_what_decides_behaviour() {
    let folder = folder(&[]);
    let said = syncwright(folder.path(), &["--version"]);
    assert_eq!(said.code, 0);
    let start = concat!("syncwright ", env!("CARGO_PKG_VERSION"), " (");
    assert!(said.out.starts_with(start), "{}", said.out);
    assert!(said.out.contains("time zones 20") && said.out.contains("kube "), "{}", said.out);
}
