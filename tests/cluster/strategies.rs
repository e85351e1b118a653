//! The update strategies: OnDelete, Recreate, InPlace. What a server adds by itself is no reason to write.

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::{config_map, pod, stateful_set};

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("an object has a uid")
}

// B05
#[test]
fn recreated_pod_keeps_its_uid_until_it_is_to_change() {
    let lab = Lab::new("recreate");
    let hook = Hook::from_spec();
    let definition = lab.definition().child("v1", "pods", "Recreate").sync(&hook);
    let _controller = lab.run(&definition.with("/spec/resyncPeriodSeconds", json!(1)));
    lab.add_thing("t", json!({"children": [pod("p", "image:1")]}));
    let path = lab.path("v1", "pods", "p");
    let first = lab.wait(&path, "the pod runs", |pod| pod["status"]["phase"] == "Running");
    assert!(first["spec"]["tolerations"].as_array().unwrap().len() > 1, "the server adds its own");
    let calls = hook.count();
    lab.wait_until("it was looked at three times more", || hook.count() >= calls + 3);
    assert_eq!(uid(&lab.get(&path)), uid(&first));
    assert_eq!(lab.writes().iter().filter(|write| *write == "patch pods p").count(), 1);

    lab.merge(&lab.thing("t"), json!({"spec": {"children": [pod("p", "image:2")]}}));
    let second = lab.wait(&path, "it is another one", |pod| uid(pod) != uid(&first));
    assert_eq!(second["spec"]["containers"][0]["image"], "image:2");
    lab.wait(&path, "the other one runs", |pod| pod["status"]["phase"] == "Running");
    let calls = hook.count();
    lab.wait_until("it was looked at three times more", || hook.count() >= calls + 3);
    assert_eq!(uid(&lab.get(&path)), uid(&second));
    let deletes = lab.writes().into_iter().filter(|write| write == "delete pods p");
    assert_eq!(deletes.count(), 1);
}

#[test]
fn on_delete_waits_until_somebody_deletes_the_child() {
    let lab = Lab::new("ondelete");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().child("v1", "configmaps", "OnDelete").sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1"), config_map("b", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "2")]}}));
    lab.wait_gone(&lab.config_map("b"));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("a"))["data"]["key"], "1");
    lab.plane.delete(&lab.config_map("a"));
    lab.wait(&lab.config_map("a"), "it is made anew", |child| child["data"]["key"] == "2");
}

#[test]
fn in_place_keeps_the_child_and_its_other_fields() {
    let lab = Lab::new("inplace");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let first = lab.get(&lab.config_map("a"));
    lab.merge(&lab.config_map("a"), json!({"data": {"other": "theirs"}}));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "2")]}}));
    let second = lab.wait(&lab.config_map("a"), "it is changed", |child| child["data"]["key"] == "2");
    assert_eq!(uid(&second), uid(&first));
    assert_eq!(second["data"]["other"], "theirs");
}

// B04, B10
#[test]
fn stateful_set_with_claims_and_quantities_is_written_once() {
    let lab = Lab::new("claims");
    let hook = Hook::from_spec();
    let definition = lab.definition().child("apps/v1", "statefulsets", "InPlace").sync(&hook);
    let definition = definition.with("/spec/resyncPeriodSeconds", json!(1));
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({"children": [stateful_set("s", "image:1")]}));
    let path = lab.path("apps/v1", "statefulsets", "s");
    lab.wait(&path, "it is ready", |set| set["status"]["readyReplicas"] == 1);
    let calls = hook.count();
    lab.wait_until("it was looked at three times more", || hook.count() >= calls + 3);
    controller.kill();
    let calls = hook.count();
    let _controller = lab.start(&[]);
    lab.wait_until("and three times more", || hook.count() >= calls + 3);
    assert_eq!(lab.writes(), ["patch statefulsets s", "patch things/status t"]);
    assert_eq!(lab.get(&path)["metadata"]["generation"], 1);
}

#[test]
fn recreated_child_with_a_refused_change_is_recreated_once() {
    let lab = Lab::new("anew");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().child("v1", "configmaps", "Recreate").sync(&hook));
    let map = |value: &str| {
        let mut map = config_map("a", value);
        map["immutable"] = json!(true);
        map
    };
    lab.add_thing("t", json!({"children": [map("1")]}));
    lab.wait_synced(&lab.thing("t"));
    let first = lab.get(&lab.config_map("a"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [map("2")]}}));
    let second = lab.wait(&lab.config_map("a"), "it is another one", |child| uid(child) != uid(&first));
    assert_eq!(second["data"]["key"], "2");
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(uid(&lab.get(&lab.config_map("a"))), uid(&second));
}
