use serde_json::json;

use super::*;
use crate::object::name::{Gvk, Key};
use crate::plan::preview::Trouble;

fn change(sort: Sort, kind: &str, before: Value, after: Value) -> Change {
    Change { gvk: Gvk::new("v1", kind), key: Key::new("blog", "x"), sort, of_status: false, before, after }
}

fn outcome(changes: Vec<Change>, trouble: Option<Trouble>) -> Outcome {
    Outcome { gvk: Gvk::new("a.b/v1", "Site"), parent: Key::new("blog", "main"), changes, trouble }
}

#[track_caller]
fn check(changes: Vec<Change>, trouble: Option<Trouble>, expected: &str) {
    let lines = lines(&outcome(changes, trouble));
    let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
    assert_eq!(text, expected);
}

#[test]
fn defaults_are_not_told_of_where_a_field_cannot_change() {
    let live = json!({"spec": {
        "selector": {"a": "1"},
        "containers": [{"name": "web", "image": "i:1", "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
    }});
    let stated = json!({"spec": {
        "selector": {"a": "2"},
        "containers": [{"name": "web", "image": "i:1", "ports": [{"containerPort": 80}]}],
    }});
    let told = "\
Site blog/main
  ! Deployment x, stays as it is: a field that cannot change is to change
      ~ spec.selector.a: \"1\" -> \"2\"
";
    check(vec![change(Sort::Immutable, "Deployment", live, stated)], None, told);
}

#[test]
fn parent_that_stays_as_it_is_is_not_told_of() {
    check(Vec::new(), None, "");
}

#[test]
fn each_object_is_told_path_by_path() {
    let before = json!({
        "metadata": {"labels": {"a": "1"}},
        "spec": {"n": 1, "containers": [{"name": "web", "image": "i:1"}, {"name": "old"}], "args": ["a"]},
        "data": {"my.cnf": "[mysqld]\na=1\nb=2\nc=3\nd=4\n"},
    });
    let after = json!({
        "metadata": {"labels": {"b.c/d": "2"}},
        "spec": {"n": 1, "containers": [{"name": "new"}, {"name": "web", "image": "i:2"}], "args": ["a", "b"]},
        "data": {"my.cnf": "[mysqld]\na=1\nb=2\nc=30\nd=4\n"},
    });
    check(
        vec![change(Sort::Change, "ConfigMap", before, after)],
        None,
        "\
Site blog/main
  ~ ConfigMap x
      ~ data[\"my.cnf\"]:
            b=2
          - c=3
          + c=30
            d=4
      - metadata.labels.a: \"1\"
      + metadata.labels[\"b.c/d\"]: \"2\"
      + spec.args[1]: \"b\"
      ~ spec.containers[web].image: \"i:1\" -> \"i:2\"
      - spec.containers[old]: {\"name\":\"old\"}
      + spec.containers[new]: {\"name\":\"new\"}
",
    );
}

#[test]
fn objects_come_go_and_are_made_anew() {
    let live = json!({"spec": {"a": 1, "filled": "in"}, "status": {"b": 2}});
    check(
        vec![
            change(Sort::Create, "ConfigMap", Value::Null, json!({"data": {"a": "b"}, "kind": "ConfigMap"})),
            change(Sort::Delete, "Service", live.clone(), Value::Null),
            change(Sort::Recreate, "Job", live.clone(), json!({"spec": {"a": 2}})),
            change(Sort::Immutable, "StatefulSet", live, json!({"spec": {"a": 3}})),
        ],
        Some(Trouble { reason: "ImmutableField".into(), message: "applying StatefulSet blog/x: no".into() }),
        "\
Site blog/main
  + ConfigMap x
      + kind: ConfigMap
      + data:
      +   a: b
  - Service x
  -/+ Job x, to be made anew
      ~ spec.a: 1 -> 2
  ! StatefulSet x, stays as it is: a field that cannot change is to change
      ~ spec.a: 1 -> 3
  ! ImmutableField: applying StatefulSet blog/x: no
",
    );
}

#[test]
fn values_of_secrets_are_not_shown() {
    let secret =
        |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"p": value, "q": "c2FtZQ=="}});
    check(
        vec![
            change(Sort::Change, "Secret", secret("b25l"), secret("dHdv")),
            change(Sort::Create, "Secret", Value::Null, secret("b25l")),
        ],
        None,
        "\
Site blog/main
  ~ Secret x
      ~ data.p: \"(masked, before)\" -> \"(masked, after)\"
  + Secret x
      + apiVersion: v1
      + kind: Secret
      + data:
      +   p: (masked, after)
      +   q: (masked, after)
",
    );
}

#[test]
fn summary_counts_parents_and_objects() {
    let mut summary = Summary::default();
    summary.add(&outcome(Vec::new(), None));
    assert_eq!((summary.text().as_str(), summary.changes()), ("0 of 1 parent changes", false));
    let gone = change(Sort::Delete, "Service", json!({}), Value::Null);
    summary.add(&outcome(vec![gone.clone(), gone], None));
    assert_eq!(summary.text(), "1 of 2 parents changes; objects: 2 to delete");
    let refused = Trouble { reason: "HookRefused".into(), message: "sync: no".into() };
    summary.add(&outcome(Vec::new(), Some(refused)));
    assert_eq!(summary.text(), "1 of 3 parents changes; objects: 2 to delete; 1 cannot be told");
    assert_eq!(summary.unknown(), 1);
}
