//! The parent's status: what the hook says of it, what the controller adds, what others may write.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::hook::{Hook, Reply};
use crate::support::lab::{Lab, SILENCE, synced};
use crate::support::objects::config_map;

// B83
#[test]
fn status_computed_before_a_change_does_not_claim_to_have_seen_it() {
    let lab = Lab::new("overtaken");
    let (plane, thing) = (lab.plane, lab.thing("t"));
    let hook = Hook::new(move |call| {
        let generation = call.parent()["metadata"]["generation"].clone();
        if generation == 1 {
            plane.merge(&thing, &json!({"spec": {"more": true}}));
        }
        // Long enough for the change to be seen, and for the first status before the second one.
        Reply::Late(Duration::from_secs(1), json!({"children": [], "status": {"computedFor": generation}}))
    });
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({}));
    for generation in [1, 2] {
        let thing = lab.wait(&lab.thing("t"), &format!("a status for {generation}"), |thing| {
            thing["status"]["computedFor"] == generation
        });
        assert_eq!(thing["status"]["observedGeneration"], generation);
    }
}

// B01
#[test]
fn kind_without_a_status_subresource_gets_children_and_no_status() {
    let lab = Lab::bare("nostatus");
    let mut crd = lab.kind("things", "Thing");
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    lab.define_kind(&crd);
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    lab.add_thing("t", json!({"children": [config_map("a", "1")], "status": {"mine": 1}}));
    lab.wait(&lab.config_map("a"), "the child is there", |_| true);
    // The definition's own status follows its parents some seconds later.
    lab.wait(&definition.path(), "the parent is counted", |live| live["status"]["parents"] == 1);
    let told = format!(
        "[{}] Sync error - ignoring, CRD [things.{}] does not have subresource 'Status' enabled",
        lab.namespace, lab.group
    );
    lab.wait_event(&lab.namespace, "SyncError", &told);
    lab.expect_silence(&hook, SILENCE);
    let mut writes = lab.writes();
    writes.retain(|write| !write.contains("compositecontrollers/status"));
    assert_eq!(writes, ["patch configmaps a"]);
    assert_eq!(hook.count(), 2);
    assert_eq!(lab.get(&lab.thing("t"))["status"], Value::Null);
    assert!(controller.log().contains("parent kind has no status subresource"));
}

// B82
#[test]
fn status_field_that_the_schema_lacks_is_named_and_the_others_are_written() {
    let lab = Lab::bare("schema");
    let mut crd = lab.kind("things", "Thing");
    let conditions = json!({"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }});
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({
        "type": "object", "properties": {"count": {"type": "integer"}, "conditions": conditions},
    });
    lab.define_kind(&crd);
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({"status": {"phase": "Ready", "count": 1}}));
    let message = lab.wait_refused(&lab.thing("t"), "StatusRefused");
    assert_eq!(message, "status fields refused: status.phase: field not declared in schema");
    assert_eq!(lab.get(&lab.thing("t"))["status"]["count"], 1);
    lab.expect_silence(&hook, SILENCE);
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"phase": null, "count": "two"}}}));
    let what = "the other refusal is shown";
    let thing = lab.wait(&lab.thing("t"), what, |thing| {
        synced(thing).is_some_and(|condition| condition["observedGeneration"] == 2)
    });
    assert_eq!(
        synced(&thing).unwrap()["message"],
        "status fields refused: status.count: expected numeric (int or float), got string"
    );
    lab.expect_silence(&hook, SILENCE);
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"count": 2}}}));
    let thing = lab.wait_synced(&lab.thing("t"));
    assert_eq!(thing["status"], json!({"count": 2}));
}

// B81
#[test]
fn busy_writer_on_the_parent_does_not_hide_its_status() {
    let lab = Lab::new("writer");
    let hook = Hook::from_spec();
    let controller = lab.run(&lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "0")], "status": {"count": 0}}));
    for round in 1..=40 {
        let value = round.to_string();
        let spec = json!({"children": [config_map("a", &value)], "status": {"count": round}});
        lab.merge(&lab.thing("t"), json!({"spec": spec, "metadata": {"annotations": {"round": value}}}));
        std::thread::sleep(Duration::from_millis(50));
    }
    lab.wait(&lab.thing("t"), "the last status is there", |thing| thing["status"]["count"] == 40);
    assert_eq!(lab.get(&lab.config_map("a"))["data"]["key"], "40");
    let log = controller.log();
    assert!(!log.contains(" WARN ") && !log.contains(" ERROR "), "conflicts are no errors");
}

// B75
#[test]
fn status_and_finalizers_of_others_stay() {
    let lab = Lab::new("theirs");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook).finalize(&hook));
    lab.add_thing("t", json!({"status": {"ours": 1}}));
    lab.wait(&lab.thing("t"), "the status is there", |thing| thing["status"]["ours"] == 1);
    let theirs = json!({
        "apiVersion": lab.api_version(), "kind": "Thing", "metadata": {"name": "t"},
        "status": {"theirs": 1},
    });
    let path = format!("{}/status?fieldManager=somebody", lab.thing("t"));
    assert!(lab.plane.request("PATCH", &path, Some(&theirs)).unwrap().is_success());
    let finalizers =
        ["example.com/theirs", &format!("metacontroller.io/compositecontroller-{}", lab.namespace)];
    lab.merge(&lab.thing("t"), json!({"metadata": {"finalizers": finalizers}}));
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"ours": null, "other": 2}}}));
    let what = "the hook's new status is there";
    let thing = lab.wait(&lab.thing("t"), what, |thing| thing["status"]["other"] == 2);
    assert_eq!(thing["status"], json!({"theirs": 1, "other": 2, "observedGeneration": 2}));
    assert_eq!(thing["metadata"]["finalizers"], json!(finalizers));
    lab.expect_silence(&hook, SILENCE);

    // Ours goes as soon as it has done its work; theirs holds the parent.
    lab.plane.delete(&lab.thing("t"));
    let what = "only their finalizer is left";
    lab.wait(&lab.thing("t"), what, |thing| thing["metadata"]["finalizers"] == json!(["example.com/theirs"]));
    lab.merge(&lab.thing("t"), json!({"metadata": {"finalizers": null}}));
    lab.wait_gone(&lab.thing("t"));
}

#[test]
fn answer_without_status_clears_what_the_hook_had_written() {
    let lab = Lab::new("cleared");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({"status": {"a": 1, "b": 2}}));
    lab.wait(&lab.thing("t"), "the status is there", |thing| thing["status"]["b"] == 2);
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"a": null}}}));
    let what = "only one is left";
    let thing = lab.wait(&lab.thing("t"), what, |thing| thing["status"]["observedGeneration"] == 2);
    assert_eq!(thing["status"], json!({"b": 2, "observedGeneration": 2}));
    hook.set(|_| json!({"children": []}));
    lab.merge(&lab.thing("t"), json!({"spec": {"status": null}}));
    lab.wait(&lab.thing("t"), "nothing but the generation is left", |thing| {
        thing["status"] == json!({"observedGeneration": 3})
    });
}
