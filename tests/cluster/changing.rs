//! What is changed is brought back or brought along: children edited or deleted by hand, parents changed.

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::{config_map, secret, service};

fn account(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "labels": {"a": "b"}},
        "automountServiceAccountToken": false,
    })
}

fn autoscaler(name: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "minReplicas": 1, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }}],
        },
    })
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
    })
}

// B70; B08 and B10 too: `stringData`, `1024Mi` and defaulted fields are no difference
#[test]
fn child_edited_by_hand_is_restored_whatever_its_kind() {
    let lab = Lab::new("drift");
    let hook = Hook::from_spec();
    let core = |plural: &str, name: &str| lab.path("v1", plural, name);
    let autoscalers = lab.path("autoscaling/v2", "horizontalpodautoscalers", "h");
    let edits: [(Value, String, &str, Value); 7] = [
        (config_map("c", "1"), core("configmaps", "c"), "/data/key", json!("edited")),
        (secret("x", "text"), core("secrets", "x"), "/data/key", json!("ZWRpdGVk")),
        (service("s", 80), core("services", "s"), "/spec/ports/0/port", json!(81)),
        (account("a"), core("serviceaccounts", "a"), "/automountServiceAccountToken", json!(true)),
        (account("l"), core("serviceaccounts", "l"), "/metadata/labels/a", json!("edited")),
        (autoscaler("h"), autoscalers, "/spec/maxReplicas", json!(9)),
        (claim("p"), core("persistentvolumeclaims", "p"), "/metadata/labels/a", json!("edited")),
    ];
    let definition = lab
        .definition()
        .config_maps()
        .child("v1", "secrets", "InPlace")
        .child("v1", "services", "InPlace")
        .child("v1", "serviceaccounts", "InPlace")
        .child("autoscaling/v2", "horizontalpodautoscalers", "InPlace")
        .child("v1", "persistentvolumeclaims", "InPlace")
        .sync(&hook);
    let controller = lab.run(&definition);
    let children: Vec<&Value> = edits.iter().map(|(child, ..)| child).collect();
    lab.add_thing("t", json!({"children": children}));
    lab.wait_synced(&lab.thing("t"));
    let claim = core("persistentvolumeclaims", "p");
    lab.wait(&claim, "the claim is bound", |claim| claim["status"]["phase"] == "Bound");
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.writes().len(), children.len() + 1, "{:?}", lab.writes());

    for (_, path, pointer, edit) in &edits {
        let live = lab.get(path);
        let wanted = live.pointer(pointer).expect("the field is there").clone();
        let mut edited = live;
        *edited.pointer_mut(pointer).unwrap() = edit.clone();
        let answer = lab.plane.request("PUT", path, Some(&edited)).unwrap();
        assert!(answer.is_success(), "{path}: {}", answer.message());
        lab.wait(path, &format!("{pointer} is as before"), |child| child.pointer(pointer) == Some(&wanted));
    }
    lab.wait_quiet(&hook, SILENCE);
    // The Service's other port leaves no room for ours, which is refused, until it is taken out of the editor's hands.
    let written = 2 * children.len() + 3;
    assert_eq!(lab.writes().len(), written, "one write for each other edit: {:?}", lab.writes());

    controller.kill();
    let calls = hook.count();
    let _controller = lab.start(&[]);
    lab.wait_until("the parent is visited", || hook.count() > calls);
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.writes().len(), written, "nothing to write: {:?}", &lab.writes()[written..]);
}

#[test]
fn fields_and_children_added_by_others_stay() {
    let lab = Lab::new("others");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    lab.merge(
        &lab.config_map("a"),
        json!({"data": {"theirs": "x"}, "metadata": {"annotations": {"n": "x"}}}),
    );
    lab.plane.create(&lab.config_map(""), &config_map("bystander", "x"));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("a"))["data"], json!({"key": "1", "theirs": "x"}));
    assert_eq!(lab.writes(), ["patch configmaps a", "patch things/status t"]);
}

#[test]
fn deleted_child_comes_back() {
    let lab = Lab::new("deleted");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let first = lab.get(&lab.config_map("a"));
    lab.plane.delete(&lab.config_map("a"));
    let uid = &first["metadata"]["uid"];
    lab.wait(&lab.config_map("a"), "it is another one", |child| child["metadata"]["uid"] != *uid);
}

#[test]
fn changed_parent_changes_its_children_and_prunes_what_it_no_longer_wants() {
    let lab = Lab::new("change");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let gone = config_map("gone", "1");
    lab.add_thing("t", json!({"children": [config_map("a", "1"), gone, config_map("same", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let before = lab.writes().len();
    let children = [config_map("a", "2"), config_map("same", "1"), config_map("new", "1")];
    lab.merge(&lab.thing("t"), json!({"spec": {"children": children}}));
    lab.wait_gone(&lab.config_map("gone"));
    let what = "the status is of the second generation";
    lab.wait(&lab.thing("t"), what, |thing| thing["status"]["observedGeneration"] == 2);
    assert_eq!(lab.get(&lab.config_map("a"))["data"]["key"], "2");
    lab.wait_quiet(&hook, SILENCE);
    let expected =
        ["delete configmaps gone", "patch configmaps a", "patch configmaps new", "patch things/status t"];
    let mut writes = lab.writes().split_off(before);
    // Neighbours of one kind are written at once.
    writes[1..3].sort_unstable();
    assert_eq!(writes, expected, "deletes come first");
}

#[test]
fn field_dropped_from_the_answer_goes() {
    let lab = Lab::new("dropped");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let map = |data: Value, labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}, "data": data});
    lab.add_thing("t", json!({"children": [map(json!({"x": "1", "y": "2"}), json!({"l": "1"}))]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [map(json!({"x": "1"}), json!({}))]}}));
    let child = lab.wait(&lab.config_map("a"), "the field is gone", |child| child["data"]["y"].is_null());
    assert_eq!(child["data"], json!({"x": "1"}));
    assert_eq!(child["metadata"]["labels"]["l"], Value::Null);
}
