//! Pausing by an annotation: a parent, or a definition with all of its parents.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

const PAUSED: &str = "syncwright.io/paused";

fn annotate(lab: &Lab, path: &str, value: Value) {
    lab.merge(path, json!({"metadata": {"annotations": {PAUSED: value}}}));
}

fn want(lab: &Lab, thing: &str, value: &str) {
    lab.merge(&lab.thing(thing), json!({"spec": {"children": [config_map(thing, value)]}}));
}

fn holds(lab: &Lab, name: &str, value: &str) {
    lab.wait(&lab.config_map(name), &format!("it holds {value}"), |child| child["data"]["key"] == value);
}

#[test]
fn paused_parent_is_left_as_it_is_and_says_so() {
    let (lab, hook) = (Lab::new("paused"), Hook::from_spec());
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    for name in ["a", "b"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")], "status": {"seen": "it"}}));
        holds(&lab, name, "1");
    }
    lab.wait_synced(&lab.thing("a"));
    annotate(&lab, &lab.thing("a"), json!("true"));
    let message = lab.wait_refused(&lab.thing("a"), "Paused");
    assert_eq!(message, format!("it has the annotation `{PAUSED}`; remove it to go on"));
    assert_eq!(lab.get(&lab.thing("a"))["status"]["seen"], "it", "the hook's status stays");
    let calls = hook.calls_for("a").len();
    want(&lab, "a", "2");
    want(&lab, "b", "2");
    holds(&lab, "b", "2");
    lab.merge(&lab.config_map("a"), json!({"data": {"key": "by hand"}}));
    lab.expect_silence(&hook, SILENCE);
    holds(&lab, "a", "by hand");
    assert_eq!(hook.calls_for("a").len(), calls);
    annotate(&lab, &lab.thing("a"), Value::Null);
    holds(&lab, "a", "2");
    lab.wait_synced(&lab.thing("a"));
}

#[test]
fn pause_ends_by_itself_also_after_a_restart() {
    let (lab, hook) = (Lab::new("pausing"), Hook::from_spec());
    let controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("a", json!({"children": [config_map("a", "1")]}));
    holds(&lab, "a", "1");
    let began = Timestamp::now();
    annotate(&lab, &lab.thing("a"), json!("6s"));
    let parent = lab.wait(&lab.thing("a"), "the end is written down", |parent| {
        parent["metadata"]["annotations"][PAUSED].as_str().is_some_and(|text| text.contains('T'))
    });
    let end = parent["metadata"]["annotations"][PAUSED].as_str().expect("text").to_owned();
    let end_time: Timestamp = end.parse().expect("a time");
    let length = end_time.duration_since(began);
    assert!(length > SignedDuration::from_secs(4) && length < SignedDuration::from_secs(20), "{length}");
    let message = lab.wait_refused(&lab.thing("a"), "Paused");
    assert!(message.ends_with(&format!("it goes on at {end}")), "{message}");
    controller.kill();
    want(&lab, "a", "2");
    let _controller = lab.start(&[]);
    holds(&lab, "a", "2");
    assert!(Timestamp::now() >= end_time);
    lab.wait_synced(&lab.thing("a"));
}

#[test]
fn pause_does_not_hold_up_a_deletion() {
    let (lab, hook) = (Lab::new("pauseend"), Hook::from_spec());
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("a", json!({"children": [config_map("a", "1")]}));
    holds(&lab, "a", "1");
    annotate(&lab, &lab.thing("a"), json!("until monday"));
    let message = lab.wait_refused(&lab.thing("a"), "Paused");
    assert!(
        message.contains("`syncwright.io/paused: until monday`; expected `true`, a time such as"),
        "{message}"
    );
    lab.plane.delete(&lab.thing("a"));
    lab.wait_gone(&lab.thing("a"));
    lab.wait_gone(&lab.config_map("a"));
}

#[test]
fn paused_definition_pauses_its_parents() {
    let (lab, hook) = (Lab::new("pausedef"), Hook::from_spec());
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    let controller = lab.start(&[]);
    for name in ["a", "b"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        holds(&lab, name, "1");
    }
    annotate(&lab, &definition.path(), json!("true"));
    let words = format!("CompositeController `{}` has the annotation", lab.namespace);
    for name in ["a", "b"] {
        assert!(lab.wait_refused(&lab.thing(name), "Paused").starts_with(&words));
    }
    let condition = |object: &Value, kind: &str| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(|it| it["type"] == kind).cloned().unwrap_or_default()
    };
    lab.wait(&definition.path(), "its status says so", |object| {
        let (ready, degraded) = (condition(object, "Ready"), condition(object, "Degraded"));
        ready["status"] == "False" && ready["reason"] == "Paused" && degraded["status"] == "False"
    });
    want(&lab, "a", "2");
    lab.wait_quiet(&hook, Duration::from_secs(1));
    holds(&lab, "a", "1");
    let end = Timestamp::now() + SignedDuration::from_secs(4);
    annotate(&lab, &definition.path(), json!(end.to_string()));
    holds(&lab, "a", "2");
    assert!(Timestamp::now() >= end);
    lab.wait_synced(&lab.thing("b"));
    lab.wait(&definition.path(), "it is at work again", |object| {
        condition(object, "Ready")["status"] == "True"
    });
    assert_eq!(controller.log().matches("controller started").count(), 1, "it was never restarted");
}
