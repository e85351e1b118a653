//! Templates that answer in the controller's own process: many at once, and such as wait for one child before the next.

use std::time::{Duration, Instant};

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::metrics::{metrics, sum};
use crate::stage::Stage;

/// A stage whose things are answered by this template.
fn answered_by(text: &str) -> Stage {
    let stage = Stage::usual();
    stage.template("thing/sync.yaml", text);
    let mut definition = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    definition["spec"]["hooks"] = json!({"sync": {"webhook": {"path": "/thing/sync"}}});
    stage.define(&[definition]);
    stage
}

/// Some ten milliseconds and more of work.
const DEAR: &str = r#"
{% set sum = namespace(of=0) %}
{% for number in range(10000) %}
{% set sum.of = sum.of + number %}
{% endfor %}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ parent.metadata.name }}-0
data:
  value: {{ parent.spec.value }}
---
status: {maps: {{ children.list("ConfigMap") | length }}, sum: {{ sum.of }}, value: {{ parent.spec.value }}}
"#;

// B127
#[test]
fn fifty_parents_made_at_once_are_all_rendered_in_time() {
    let stage = answered_by(DEAR);
    let controller = stage.run(&["--workers", "50", "--metrics-address", "127.0.0.1:0"]);
    let names: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
    let began = Instant::now();
    for name in &names {
        stage.thing(name, 1, "x");
    }
    wait_until(Duration::from_secs(60), "all are as they should be", || {
        names.iter().try_for_each(|name| stage.check(name))
    });
    println!("50 parents after {:.2} s", began.elapsed().as_secs_f64());
    let page = metrics(&controller);
    let renders = |line: &&str| line.starts_with("syncwright_renders_total{");
    let refused = page.lines().filter(renders).find(|line| !line.contains("outcome=\"answered\""));
    assert_eq!(refused, None);
    assert!(sum(&page, "syncwright_renders_total") >= 100.0, "{page}");
    let log = controller.log();
    assert!(!log.contains("visit failed") && !log.contains("cannot be brought"), "{log}");
}

/// The second map comes once somebody has called the first one ready, and stays.
const IN_TURN: &str = r#"
{% set first = children.find("ConfigMap", "a-first") %}
{% set ready = first is defined and first.metadata.labels.ready == "yes" %}
apiVersion: v1
kind: ConfigMap
metadata:
  name: a-first
data: {value: {{ parent.spec.value }}}
{% if ready or children.find("ConfigMap", "a-second") is defined %}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a-second
{% endif %}
---
status: {ready: {{ ready }}}
"#;

// B46
#[test]
fn child_that_waited_for_another_stays_when_that_one_falters_or_cannot_be_read() {
    let stage = answered_by(&IN_TURN.replace("labels.ready", "labels.ready | default(\"no\")"));
    stage.thing("a", 0, "x");
    let controller = stage.run(&[]);
    let says = |ready: bool| {
        stage.until_true(&format!("it says ready: {ready}"), || {
            stage.server.get("things", "a").is_some_and(|thing| thing["status"]["ready"] == ready)
        });
    };
    let label = |ready: Value| {
        stage.server.edit("configmaps", "a-first", |map| map["metadata"]["labels"]["ready"] = ready);
    };
    says(false);
    stage.becomes_quiet();
    assert_eq!(stage.server.names("configmaps"), ["a-first"]);
    label(json!("yes"));
    says(true);
    stage.until_true("the second is made", || stage.server.get("configmaps", "a-second").is_some());
    let second = stage.server.get("configmaps", "a-second").expect("it is made")["metadata"]["uid"].clone();
    label(json!("no"));
    says(false);
    stage.becomes_quiet();
    // A template that fails over what it sees wants nothing to be deleted.
    stage.template("thing/sync.yaml", IN_TURN);
    stage.until_true("the template is in force", || {
        controller.log().matches("hook revision active").count() >= 2
    });
    stage.server.edit("configmaps", "a-first", |map| {
        map["metadata"]["labels"].as_object_mut().expect("labels").shift_remove("ready");
    });
    stage.until_true("it says what is absent", || {
        let thing = stage.server.get("things", "a").expect("it is there");
        let condition = &thing["status"]["conditions"][0];
        condition["reason"] == "HookRefused"
            && condition["message"].as_str().is_some_and(|text| text.contains("labels.ready"))
    });
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    assert_eq!(stage.server.get("configmaps", "a-second").expect("it is there")["metadata"]["uid"], second);
    label(json!("yes"));
    says(true);
}
