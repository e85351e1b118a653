//! Deleting parents: finalizers only where they serve, and never for longer than they must.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::hook::{Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

/// The garbage collector and the namespace controller learn of a new kind within half a minute.
const COLLECTED: Duration = Duration::from_secs(120);

fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn our_finalizer(lab: &Lab) -> String {
    format!("metacontroller.io/compositecontroller-{}", lab.namespace)
}

// B97
#[test]
fn without_a_finalize_hook_there_is_no_finalizer() {
    let lab = Lab::new("nofinalizer");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    let thing = lab.wait_synced(&lab.thing("t"));
    assert_eq!(thing["metadata"]["finalizers"], Value::Null);
    assert_eq!(lab.writes(), ["patch configmaps a", "patch things/status t"]);
    lab.plane.delete(&lab.thing("t"));
    assert!(lab.plane.get(&lab.thing("t")).is_none(), "nothing holds it");
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn finalize_hook_is_asked_until_it_has_finalized() {
    let lab = Lab::new("finalize");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1"), config_map("b", "1")]}));
    let thing = lab.wait_synced(&lab.thing("t"));
    assert_eq!(finalizers(&thing), [our_finalizer(&lab)]);
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(hook.count_of("finalize"), 0);
    let written = lab.writes().len();

    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    let finalized: Vec<_> = hook.calls().into_iter().filter(|call| call.hook == "finalize").collect();
    assert!(finalized.iter().all(|call| call.request["finalizing"] == true));
    assert_eq!(finalized[0].children("ConfigMap.v1"), ["a", "b"], "it is told what there is");
    assert!(finalized.last().unwrap().children("ConfigMap.v1").is_empty());
    assert!(lab.plane.get(&lab.config_map("a")).is_none(), "the hook had them deleted");
    lab.expect_silence(&hook, SILENCE);
    let expected = ["delete configmaps a", "delete configmaps b", "patch things t"];
    let mut writes = lab.writes().split_off(written);
    writes.retain(|write| !write.starts_with("patch things/status"));
    // Neighbours of one kind are deleted at once.
    writes[..2].sort_unstable();
    assert_eq!(writes, expected);
}

#[test]
fn parent_that_no_longer_matches_is_finalized_and_stays() {
    let lab = Lab::new("optout");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook).finalize(&hook);
    let selector = json!({"matchLabels": {"managed": "yes"}});
    let _controller = lab.run(&definition.with("/spec/parentResource/labelSelector", selector));
    let mut thing = lab.thing_with("t", json!({"children": [config_map("a", "1")]}));
    lab.plane.create(&lab.thing(""), &thing);
    thing["metadata"] = json!({"name": "managed", "labels": {"managed": "yes"}});
    thing["spec"] = json!({"children": [config_map("b", "1")]});
    lab.plane.create(&lab.thing(""), &thing);
    lab.wait_synced(&lab.thing("managed"));
    lab.merge(&lab.thing("managed"), json!({"metadata": {"labels": null}}));
    lab.wait(&lab.thing("managed"), "it has no finalizer", |thing| finalizers(thing).is_empty());
    lab.wait_gone(&lab.config_map("b"));
    lab.expect_silence(&hook, SILENCE);
    assert!(hook.calls_for("t").is_empty(), "it was never one of ours");
    assert!(lab.plane.get(&lab.config_map("a")).is_none());
}

// B88
#[test]
fn deletion_that_its_hook_does_not_finalize_says_so_on_the_parent() {
    let lab = Lab::new("unfinal");
    let hook = Hook::new(|call| match call.hook.as_str() {
        "finalize" => json!({"children": [], "status": {"phase": "Ready"}}),
        _ => from_spec(call),
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"status": {"phase": "Ready"}}));
    let thing = lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    let message = lab.wait_refused(&lab.thing("t"), "NotFinalized");
    let told = format!(
        "the finalize hook has not answered `finalized: true`: the finalizer `{}` stays until it does",
        our_finalizer(&lab)
    );
    assert_eq!(message, told);
    assert_eq!(lab.get(&lab.thing("t"))["status"]["phase"], "Ready", "the hook's own status is there");
    let events = lab.path("v1", "events", "");
    let of_it =
        format!("{events}?fieldSelector=involvedObject.uid={}", thing["metadata"]["uid"].as_str().unwrap());
    lab.wait(&of_it, "an event tells of it", |list| {
        let told = format!("NotFinalized: {told}");
        list["items"].as_array().unwrap().iter().any(|event| event["message"] == told.as_str())
    });
    lab.expect_silence(&hook, SILENCE);

    // Whatever wakes the parent asks again.
    hook.set(from_spec);
    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"any": "edit"}}}));
    lab.wait_gone(&lab.thing("t"));
}

// B88
#[test]
fn broken_finalize_hook_lets_go_when_patience_is_over() {
    let lab = Lab::new("patience");
    let hook = Hook::new(|call| match call.hook.as_str() {
        "finalize" => Reply::Text(200, "{\"chidlren\": []}".into()),
        _ => from_spec(call).into(),
    });
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook).finalize(&hook)]);
    let _controller = lab.start(&["--finalize-patience", "2"]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    let thing = lab.wait_synced(&lab.thing("t"));
    let uid = &thing["metadata"]["uid"];
    lab.plane.delete(&lab.thing("t"));
    lab.wait_refused(&lab.thing("t"), "HookRefused");
    lab.wait_gone(&lab.thing("t"));
    let events = lab.path("v1", "events", "");
    let what = "an event tells of it";
    lab.wait(&format!("{events}?fieldSelector=involvedObject.uid={}", uid.as_str().unwrap()), what, |list| {
        list["items"].as_array().unwrap().iter().any(|event| event["reason"] == "FinalizeSkipped")
    });
    // Its children are still the garbage collector's.
    lab.plane.wait_gone(&lab.config_map("a"), COLLECTED);
}

// B88
#[test]
fn broken_finalize_template_lets_go_when_patience_is_over() {
    let lab = Lab::new("template");
    let hook = Hook::from_spec();
    let folder = lab.folder.path().join("hooks/broken");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("finalize.yaml"), "status: {{ parent.spec.nothing }}\n").unwrap();
    let built_in = json!({"webhook": {"path": "/broken/finalize"}});
    let definition = lab.definition().config_maps().sync(&hook).with("/spec/hooks/finalize", built_in);
    lab.write_definitions(&[&definition]);
    let _controller = lab.start(&["--finalize-patience", "1"]);
    lab.add_thing("t", json!({"children": []}));
    lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
}

// B89
#[test]
fn parent_that_is_being_deleted_gets_no_finalizer() {
    let lab = Lab::new("going");
    let hook = Hook::from_spec();
    let mut thing = lab.thing_with("t", json!({"children": [config_map("a", "1")]}));
    thing["metadata"]["finalizers"] = json!(["example.com/theirs"]);
    lab.plane.create(&lab.thing(""), &thing);
    lab.plane.delete(&lab.thing("t"));
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("other", json!({}));
    lab.wait_synced(&lab.thing("other"));
    lab.expect_silence(&hook, SILENCE);
    assert!(hook.calls_for("t").is_empty());
    assert!(lab.plane.get(&lab.config_map("a")).is_none());
    assert_eq!(finalizers(&lab.get(&lab.thing("t"))), ["example.com/theirs"]);
    lab.merge(&lab.thing("t"), json!({"metadata": {"finalizers": null}}));
    lab.wait_gone(&lab.thing("t"));
}

// B28
#[test]
fn definition_with_a_finalize_hook_alone_has_nothing_to_do_until_deletion() {
    let lab = Lab::new("finalizeonly");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.thing("t"), "it has our finalizer", |thing| finalizers(thing) == [our_finalizer(&lab)]);
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(hook.count(), 0);
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    assert_eq!(hook.count_of("finalize"), 1);
}

#[test]
fn removing_the_finalize_hook_takes_the_finalizers_off() {
    let lab = Lab::new("nolonger");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook);
    let _controller = lab.run(&definition.clone().finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.thing("t"), "it has our finalizer", |thing| finalizers(thing) == [our_finalizer(&lab)]);
    lab.wait_synced(&lab.thing("t"));
    lab.write_definitions(&[&definition]);
    lab.wait(&lab.thing("t"), "it has no finalizer", |thing| finalizers(thing).is_empty());
    lab.get(&lab.config_map("a"));
}

#[test]
fn terminating_namespace_is_not_held_up() {
    let lab = Lab::new("ending");
    let hook = Hook::new(|call| match call.hook.as_str() {
        // It wants a last backup first, which nobody can make any more.
        "finalize" => json!({"children": [config_map("backup", "1")], "finalized": false}),
        _ => from_spec(call),
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.thing("t"), "it has our finalizer", |thing| finalizers(thing) == [our_finalizer(&lab)]);
    lab.wait_synced(&lab.thing("t"));
    let namespace = format!("/api/v1/namespaces/{}", lab.namespace);
    lab.plane.delete(&namespace);
    lab.plane.wait_gone(&namespace, COLLECTED);
}

#[test]
fn deletion_ends_although_a_child_kind_is_gone() {
    let lab = Lab::new("kindgone");
    lab.define_kind(&lab.kind("parts", "Part"));
    let hook = Hook::from_spec();
    let definition = lab.definition().child(&lab.api_version(), "parts", "InPlace");
    let _controller = lab.run(&definition.sync(&hook).finalize(&hook));
    let part = json!({"apiVersion": lab.api_version(), "kind": "Part", "metadata": {"name": "p"}});
    lab.add_thing("t", json!({"children": [part]}));
    lab.wait(&lab.path(&lab.api_version(), "parts", "p"), "the child is there", |_| true);
    lab.wait_synced(&lab.thing("t"));
    lab.remove_kind("parts");
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
}

// B90
#[test]
fn foreground_deletion_leaves_the_children_to_the_collector() {
    let lab = Lab::new("foreground");
    let hook = Hook::new(|call| match call.hook.as_str() {
        "finalize" => json!({"children": [], "finalized": call.children("ConfigMap.v1").is_empty()}),
        _ => from_spec(call),
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1"), config_map("b", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let written = lab.writes().len();
    let options = json!({"propagationPolicy": "Foreground"});
    assert!(lab.plane.request("DELETE", &lab.thing("t"), Some(&options)).unwrap().is_success());
    lab.wait_until("the finalize hook is asked", || hook.count_of("finalize") > 0);
    let calls = hook.calls();
    let first = calls.iter().find(|call| call.hook == "finalize").unwrap();
    assert_eq!(first.children("ConfigMap.v1"), ["a", "b"], "it is told what there is");
    lab.plane.wait_gone(&lab.thing("t"), COLLECTED);
    // When the collector has done its work, a child that it has deleted may still be known.
    let mut deletes = lab.writes().split_off(written);
    deletes.retain(|write| write.starts_with("delete") && !write.ends_with("404"));
    assert_eq!(deletes, Vec::<String>::new());
}

#[test]
fn deleted_definition_stops_and_leaves_the_children() {
    let lab = Lab::new("undefined");
    let hook = Hook::from_spec();
    let controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let other = lab.definition().named(&format!("{}-other", lab.namespace)).sync(&hook);
    lab.write_definitions(&[&other.with("/spec/parentResource/resource", json!("others"))]);
    lab.wait_until("the log tells of it", || controller.log().contains("controller stopping"));
    lab.wait_quiet(&hook, SILENCE);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": []}}));
    lab.expect_silence(&hook, SILENCE);
    lab.get(&lab.config_map("a"));
}
