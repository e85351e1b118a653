//! Parents of every sort, and what of a definition concerns them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::hook::{Call, Hook, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

/// A child of a ConfigMap: what its data says.
fn of_data(call: &Call) -> Value {
    let parent = call.parent();
    let name = format!("{}-child", call.parent_name());
    let mut child =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"});
    child["stringData"] = json!({"copy": parent["data"]["key"]});
    json!({"children": [child], "status": {}})
}

// Metacontroller takes no composite parent that isn't a custom resource.
#[test]
fn built_in_kind_may_be_a_parent() {
    let lab = Lab::bare("builtin");
    let hook = Hook::new(of_data);
    let parent = json!({
        "apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"lab": lab.namespace}},
    });
    let definition = lab.definition().with("/spec/parentResource", parent).child("v1", "secrets", "InPlace");
    let _controller = lab.run(&definition.sync(&hook));
    let mut map = config_map("m", "1");
    map["metadata"]["labels"] = json!({"lab": lab.namespace});
    let parent = lab.plane.create(&lab.config_map(""), &map);
    let path = lab.path("v1", "secrets", "m-child");
    let child = lab.wait(&path, "its child is made", |_| true);
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], parent["metadata"]["uid"]);
    lab.merge(&lab.config_map("m"), json!({"data": {"key": "2"}}));
    lab.wait(&path, "its data is followed", |child| child["data"]["copy"] == "Mg==");
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("m"))["status"], Value::Null, "there is no place for a status");
}

// Kinds that count no generation: the filter must not swallow their content.
#[test]
fn data_of_a_parent_without_a_generation_is_no_status() {
    let lab = Lab::bare("nogeneration");
    let hook = Hook::new(of_data);
    let parent = json!({
        "apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"lab": lab.namespace}},
        "ignoreStatusChanges": true,
    });
    let definition = lab.definition().with("/spec/parentResource", parent).child("v1", "secrets", "InPlace");
    let _controller = lab.run(&definition.sync(&hook));
    let mut map = config_map("m", "1");
    map["metadata"]["labels"] = json!({"lab": lab.namespace});
    lab.plane.create(&lab.config_map(""), &map);
    let path = lab.path("v1", "secrets", "m-child");
    lab.wait(&path, "its child is made", |_| true);
    lab.wait_quiet(&hook, SILENCE);
    lab.merge(&lab.config_map("m"), json!({"data": {"key": "2"}}));
    lab.wait(&path, "its data is followed", |child| child["data"]["copy"] == "Mg==");
}

#[test]
fn parents_that_the_selector_leaves_out_are_never_asked_about() {
    let lab = Lab::new("leftout");
    let hook = Hook::from_spec();
    let selector = json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]});
    let definition = lab.definition().config_maps().sync(&hook);
    let _controller = lab.run(&definition.with("/spec/parentResource/labelSelector", selector));
    lab.add_thing("plain", json!({"children": [config_map("plain", "1")]}));
    let mut gold = lab.thing_with("gold", json!({"children": [config_map("gold", "1")]}));
    gold["metadata"]["labels"] = json!({"tier": "gold"});
    lab.plane.create(&lab.thing(""), &gold);
    lab.wait_synced(&lab.thing("gold"));
    lab.wait_quiet(&hook, SILENCE);
    assert!(hook.calls_for("plain").is_empty());
    assert!(lab.plane.get(&lab.config_map("plain")).is_none());
    lab.merge(&lab.thing("plain"), json!({"metadata": {"labels": {"tier": "gold"}}}));
    lab.wait_synced(&lab.thing("plain"));
    lab.get(&lab.config_map("plain"));
    // Without a finalizer, who leaves is left alone, children and all.
    lab.merge(&lab.thing("plain"), json!({"metadata": {"labels": {"tier": null}}}));
    lab.merge(&lab.thing("plain"), json!({"spec": {"children": []}}));
    lab.wait_quiet(&hook, SILENCE);
    lab.get(&lab.config_map("plain"));
}

#[test]
fn parent_kept_by_anothers_finalizer_is_synced_and_its_children_are_left_alone() {
    let lab = Lab::new("kept");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let mut thing = lab.thing_with("t", json!({"children": [config_map("a", "1")], "status": {"round": 1}}));
    thing["metadata"]["finalizers"] = json!(["example.com/mine"]);
    lab.plane.create(&lab.thing(""), &thing);
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    lab.plane.delete(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("b", "1")], "status": {"round": 2}}}));
    lab.wait(&lab.thing("t"), "the status is written still", |thing| thing["status"]["round"] == 2);
    lab.wait_quiet(&hook, SILENCE);
    lab.get(&lab.config_map("a"));
    assert!(lab.plane.get(&lab.config_map("b")).is_none(), "no child is made for who goes");
    assert!(hook.calls().iter().all(|call| call.request["finalizing"] == false));
    lab.merge(&lab.thing("t"), json!({"metadata": {"finalizers": null}}));
    lab.wait_gone(&lab.thing("t"));
}

// Metacontroller takes the finalizer off and puts it on again without end.
#[test]
fn finalized_means_nothing_while_the_parent_lives() {
    let lab = Lab::new("toosoon");
    let hook = Hook::new(|call: &Call| {
        let mut answer = from_spec(call);
        answer["finalized"] = json!(true);
        answer
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.expect_silence(&hook, SILENCE);
    let finalizer = format!("metacontroller.io/compositecontroller-{}", lab.namespace);
    assert_eq!(lab.get(&lab.thing("t"))["metadata"]["finalizers"], json!([finalizer]));
    let writes = lab.writes().into_iter().filter(|write| write == "patch things t");
    assert_eq!(writes.count(), 1, "the finalizer is written once");
}

#[test]
fn orphaning_deletion_leaves_the_children_to_live() {
    let lab = Lab::new("orphaning");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let before = lab.get(&lab.config_map("a"));
    // The hook wants it gone, and is not heeded in that.
    hook.set(|call: &Call| match call.hook.as_str() {
        "finalize" => json!({"children": [], "finalized": call.children("ConfigMap.v1").is_empty()}),
        _ => from_spec(call),
    });
    let options = json!({"propagationPolicy": "Orphan"});
    let answer = lab.plane.request("DELETE", &lab.thing("t"), Some(&options)).expect("an answer");
    assert!(answer.is_success(), "{}", answer.message());
    lab.plane.wait_gone(&lab.thing("t"), Duration::from_secs(120));
    let after = lab.get(&lab.config_map("a"));
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
    assert!(!lab.writes().iter().any(|write| write.starts_with("delete")), "{:?}", lab.writes());
    assert!(hook.count_of("finalize") > 0);
}

#[test]
fn resync_of_less_than_a_second_is_one_each_second() {
    let lab = Lab::new("toooften");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook).with("/spec/resyncPeriodSeconds", json!(-5)));
    lab.add_thing("t", json!({"status": {"done": true}}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_until("five visits came of themselves", || hook.count() >= 7);
    let calls = hook.calls();
    let gaps = calls.windows(2).skip(1).map(|pair| pair[1].at - pair[0].at);
    let shortest = gaps.skip(1).min().expect("several calls");
    assert!(shortest > Duration::from_millis(700), "{shortest:?}");
}

// They stand in the definition's schema, and nobody has ever called them.
#[test]
fn hooks_around_updates_are_accepted_and_never_called() {
    let lab = Lab::new("around");
    let hook = Hook::from_spec();
    let mut definition = lab.definition().config_maps().sync(&hook);
    for name in ["preUpdateChild", "postUpdateChild"] {
        definition.0["spec"]["hooks"][name] = json!({"webhook": {"url": hook.url(name)}});
    }
    lab.add_definition(&definition);
    let _controller = lab.start(&[]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "2")]}}));
    lab.wait(&lab.config_map("a"), "it is changed", |child| child["data"]["key"] == "2");
    lab.wait_quiet(&hook, SILENCE);
    assert!(hook.calls().iter().all(|call| call.hook == "sync"));
}

// One that stops must not take the watches of kinds that others hold as well.
#[test]
fn definition_that_goes_leaves_the_watches_of_another_alone() {
    let lab = Lab::new("shared");
    let hook = Hook::from_spec();
    let other = lab.kind("others", "Other");
    lab.define_kind(&other);
    let stays = lab.definition().config_maps().sync(&hook);
    let goes = lab.definition().config_maps().sync(&hook).named(&format!("{}-goes", lab.namespace));
    let goes = goes.with("/spec/parentResource/resource", json!("others"));
    lab.add_definition(&stays);
    lab.add_definition(&goes);
    let controller = lab.start(&[]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    for round in 0..3 {
        lab.plane.delete(&goes.path());
        let stopped = |log: &str| log.matches("controller stopping").count() > round;
        lab.wait_until("it has stopped", || stopped(&controller.log()));
        lab.merge(&lab.config_map("a"), json!({"data": {"key": "edited"}}));
        lab.wait(&lab.config_map("a"), "it is restored", |child| child["data"]["key"] == "1");
        lab.plane.create(goes.path().rsplit_once('/').unwrap().0, &goes.0);
    }
}

// The selector of the definitions counts when it stops matching, too.
#[test]
fn definition_that_loses_its_label_stops() {
    let lab = Lab::new("unlabelled");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    let controller = lab.start(&[]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&definition.path(), json!({"metadata": {"labels": {"lab": "another"}}}));
    lab.wait_until("it has stopped", || controller.log().contains("controller stopping"));
    lab.add_thing("u", json!({"children": [config_map("b", "1")]}));
    lab.expect_silence(&hook, SILENCE);
    assert!(lab.plane.get(&lab.config_map("b")).is_none());
}
