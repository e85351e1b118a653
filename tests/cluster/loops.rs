//! What would go round for ever: fights over a field, answers that are never the same.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE, synced};
use crate::support::objects::config_map;

/// A value that was never there before.
fn fresh() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed).to_string()
}

// B71
#[test]
fn field_that_another_manager_keeps_changing_is_left_to_it_and_said_so() {
    let lab = Lab::new("fight");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "ours"), config_map("b", "ours")]}));
    lab.wait_synced(&lab.thing("t"));
    let path = format!("{}?fieldManager=autoscaler", lab.config_map("a"));
    let fought =
        |thing: &Value| synced(thing).is_some_and(|condition| condition["reason"] == "ChildConflict");
    let began = Instant::now();
    while !fought(&lab.get(&lab.thing("t"))) {
        assert!(began.elapsed() < Duration::from_secs(40), "the fight is never seen");
        let theirs = json!({"data": {"key": format!("theirs{}", fresh())}});
        lab.merge(&path, theirs);
        let what = "it is ours again, or the fight is seen";
        lab.wait_until(what, || {
            lab.get(&lab.config_map("a"))["data"]["key"] == "ours" || fought(&lab.get(&lab.thing("t")))
        });
    }
    let message = lab.wait_refused(&lab.thing("t"), "ChildConflict");
    assert_eq!(
        message,
        format!(
            "ConfigMap {}/a: data.key is also written by autoscaler, which keeps changing it back; leave it out of the template",
            lab.namespace
        )
    );
    lab.expect_silence(&hook, SILENCE);
    assert!(lab.get(&lab.config_map("a"))["data"]["key"].as_str().unwrap().starts_with("theirs"));

    // The rest goes on; and leaving the field out ends it.
    lab.merge(&lab.config_map("b"), json!({"data": {"key": "edited"}}));
    lab.wait(&lab.config_map("b"), "the other child is restored", |child| child["data"]["key"] == "ours");
    let without = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [without, config_map("b", "ours")]}}));
    lab.wait_synced(&lab.thing("t"));
    assert!(lab.get(&lab.config_map("a"))["data"]["key"].as_str().unwrap().starts_with("theirs"));
}

// B02, B03
#[test]
fn status_that_is_never_the_same_wakes_nobody() {
    let lab = Lab::new("clock");
    let hook = Hook::new(|_| json!({"children": [], "status": {"now": fresh()}}));
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(hook.count(), 1);
    assert_eq!(lab.writes(), ["patch things/status t"]);
}

// B03
#[test]
fn child_that_is_never_the_same_slows_its_parent_down_and_no_other() {
    let lab = Lab::new("restless");
    let hook = Hook::new(|call| {
        let value = if call.parent_name() == "restless" { fresh() } else { "1".into() };
        json!({"children": [config_map(call.parent_name(), &value)], "status": {"done": true}})
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("restless", json!({}));
    let message = lab.wait_refused(&lab.thing("restless"), "NeverSettles");
    let told = format!(
        "each answer wants something else than the one before: ConfigMap {}/restless: `data.key`",
        lab.namespace
    );
    assert_eq!(message, told, "it names what changes, and not the values: each would be an event of its own");
    lab.add_thing("calm", json!({}));
    lab.wait_synced(&lab.thing("calm"));
    // The pauses have grown to seconds: two of them, at most three calls in each visit.
    lab.wait_until("the visits have become rare", || {
        let calls = hook.calls_for("restless");
        calls.windows(2).any(|pair| pair[1].at - pair[0].at > Duration::from_millis(1900))
    });
    let before = hook.calls_for("restless").len();
    std::thread::sleep(SILENCE);
    assert!(hook.calls_for("restless").len() - before <= 6);
    assert_eq!(hook.calls_for("calm").len(), 2);
}

// B03
#[test]
fn child_whose_name_is_never_the_same_slows_its_parent_down_and_is_named() {
    let lab = Lab::new("fleeting");
    let hook = Hook::new(|call| {
        let name = if call.parent_name() == "calm" { "calm".into() } else { format!("x-{}", fresh()) };
        json!({"children": [config_map(&name, "1")], "status": {"done": true}})
    });
    let controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("restless", json!({}));
    let message = lab.wait_refused(&lab.thing("restless"), "NeverSettles");
    let first =
        format!("each answer wants other children than the one before: ConfigMap {}/x-", lab.namespace);
    assert!(message.starts_with(&first), "{message}");
    assert!(
        message.ends_with("a name has to be the same at each visit, so keep `now` and random text out of it")
    );
    let made = || lab.writes().iter().filter(|write| write.starts_with("patch configmaps x-")).count();
    assert!(made() < 12, "it is seen after a few children: {}", made());
    lab.add_thing("calm", json!({}));
    lab.wait_synced(&lab.thing("calm"));
    lab.wait_until("the visits have become rare", || {
        let calls = hook.calls_for("restless");
        calls.windows(2).any(|pair| pair[1].at - pair[0].at > Duration::from_millis(3900))
    });
    let now = lab.get(&lab.thing("restless"));
    assert_eq!(synced(&now).unwrap()["message"], message, "the words stay, and so there is one event");
    assert!(controller.log().contains("NeverSettles"));
    assert_eq!(hook.calls_for("calm").len(), 2);

    // A name that stays ends it.
    hook.set(|call| json!({"children": [config_map(call.parent_name(), "1")], "status": {"done": true}}));
    lab.merge(&lab.thing("restless"), json!({"spec": {"any": "edit"}}));
    lab.wait_synced(&lab.thing("restless"));
}

#[test]
fn children_that_come_one_after_the_other_are_no_unrest() {
    let lab = Lab::new("growing");
    let hook = Hook::new(|call| {
        let there = call.children("ConfigMap.v1").len();
        let children: Vec<Value> =
            (0..(there + 1).min(20)).map(|n| config_map(&format!("c{n:02}"), "1")).collect();
        json!({"children": children, "status": {"there": there}})
    });
    let controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({}));
    lab.wait(&lab.config_map("c19"), "all of them are there", |_| true);
    assert!(!controller.log().contains("NeverSettles"));
}

// B98
#[test]
fn large_parent_is_no_trouble() {
    let lab = Lab::new("large");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    let ballast = "x".repeat(300 << 10);
    lab.add_thing("t", json!({"ballast": ballast, "children": [config_map("a", &ballast)]}));
    lab.wait_synced(&lab.thing("t"));
    assert_eq!(lab.get(&lab.thing("t"))["metadata"]["annotations"], Value::Null);
    assert_eq!(lab.get(&lab.config_map("a"))["metadata"]["annotations"], Value::Null);
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
}
