//! Parents that come and go without end: what is kept of them goes with them.
//!
//! `CYCLES=1000000 cargo test --release --test faulty churn -- --nocapture` is the long form of it: see `tests/bench/churn`.

use std::env;
use std::time::{Duration, Instant};

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::metrics::{metrics, sum};
use crate::stage::{MAPS, Stage, THINGS};

const EVENTS: (&str, &str, &str, bool) = ("v1", "Event", "events", false);
/// So many parents are there at once.
const BATCH: usize = 250;
/// No batch takes longer, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
/// A tenth of all parents are refused, and events tell of them.
const REFUSED: usize = 10;
/// What a run may take more at its end than after its first fifth, in KiB. A leak of one and a half kilobytes with each parent is more.
const GROWTH: u64 = 6 * 1024;

const SYNC: &str = r#"
{% set wrong = parent.spec.wrong | default(false) %}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ parent.metadata.name }}-map
  labels: {of: "{{ parent.metadata.name }}"}
data:
  value: {{ parent.spec.value }}
  shown: "{{ related.list("ConfigMap") | length }}"
  missing: {{ parent.spec.missing if wrong else "no" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ parent.metadata.name }}-of-others
  annotations: {syncwright.io/ownership: none}
data: {value: x}
---
status: {maps: {{ children.list("ConfigMap") | length }}}
resyncAfterSeconds: 86400
"#;
const CUSTOMIZE: &str = r#"
relatedResources:
  - apiVersion: v1
    resource: configmaps
    labelSelector: {matchLabels: {of: "everybody"}}
  - apiVersion: v1
    resource: configmaps
    names: ["{{ parent.metadata.name }}-extra"]
"#;

fn stage() -> Stage {
    let stage = Stage::new(&[THINGS, MAPS, EVENTS]);
    stage.template("thing/sync.yaml", SYNC);
    stage.template("thing/customize.yaml", CUSTOMIZE);
    let mut definition = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    definition["spec"]["hooks"] = json!({
        "sync": {"webhook": {"path": "/thing/sync"}}, "customize": {"webhook": {"path": "/thing/customize"}},
    });
    stage.define(&[definition]);
    stage
}

/// One batch from its creation until nothing is left of it.
fn cycle(stage: &Stage, batch: usize) {
    let names: Vec<String> = (0..BATCH).map(|number| format!("t{}", batch * BATCH + number)).collect();
    for (number, name) in names.iter().enumerate() {
        let wrong = number % REFUSED == 0;
        stage.server.create(
            "things",
            json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"value": "x", "wrong": wrong}}),
        );
    }
    let finished = |thing: &Value| {
        let status = &thing["status"];
        status["maps"] == 1 || status["conditions"][0]["reason"] == "HookRefused"
    };
    wait_until(PATIENCE, "every parent has its status", || {
        stage.server.look(|objects| {
            let waiting = objects.of_kind("things").into_iter().find(|thing| !finished(thing));
            waiting.map_or(Ok(()), |thing| Err(thing.to_string()))
        })
    });
    for name in &names {
        stage.server.delete("things", name);
    }
    stage.server.collect_garbage();
    for event in stage.server.names("events") {
        stage.server.delete("events", &event);
    }
    stage.server.forget_but(20 * BATCH);
}

// B128
#[test]
fn nothing_is_kept_of_parents_that_have_gone() {
    let cycles: usize =
        env::var("CYCLES").ok().map_or(6_000, |cycles| cycles.parse().expect("CYCLES is a number"));
    let stage = stage();
    let controller = stage.run(&["--metrics-address", "127.0.0.1:0"]);
    let began = Instant::now();
    let batches = cycles.div_ceil(BATCH);
    let mut early = (0, 0);
    for batch in 0..batches {
        cycle(&stage, batch);
        if batch == batches / 5 {
            early = (controller.memory("VmRSS"), metrics(&controller).lines().count());
        }
        if (batch + 1) % (batches / 10).max(1) == 0 {
            let done = (batch + 1) * BATCH;
            let rate = done as f64 / began.elapsed().as_secs_f64();
            println!("{done} parents, {rate:.0} a second: {} KiB", controller.memory("VmRSS"));
        }
    }
    wait_until(PATIENCE, "nothing is stored", || {
        // A child may have been made anew before its parent was known to be gone.
        stage.server.collect_garbage();
        let page = metrics(&controller);
        let stored = ["syncwright_stored_objects", "syncwright_stored_bytes"].map(|name| sum(&page, name));
        if stored == [0.0, 0.0] { Ok(()) } else { Err(format!("{stored:?}")) }
    });
    let (resident, page) = (controller.memory("VmRSS"), metrics(&controller));
    println!(
        "resident: {} KiB after a fifth, {resident} KiB at the end, {} KiB at most",
        early.0,
        controller.memory("VmHWM")
    );
    assert!(sum(&page, "operator_reconcile_total") >= 2.0 * cycles as f64, "it was at work");
    assert!(resident < early.0 + GROWTH, "{} KiB after a fifth, {resident} KiB at the end", early.0);
    // As many series: none is about a single parent.
    let series = page.lines().count();
    assert!(series <= early.1 + 5, "{} lines of metrics, then {series}:\n{page}", early.1);
}
