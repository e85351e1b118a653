//! Revisions that are there already, and revisions of parents without a namespace.

use serde_json::{Value, json};

use crate::rolling::stage::{
    Nurse, answer, books, call_ready, define_revisions, kept, lab, part_path, parts, revision, revisions,
    rolling, wait_updated,
};
use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};

/// A child as Metacontroller has left it.
fn child(lab: &Lab, thing: &Value, mut child: Value) -> Value {
    let uid = &thing["metadata"]["uid"];
    child["metadata"]["labels"] = json!({"controller-uid": uid});
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": lab.api_version(), "kind": "Thing", "name": "t", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    child
}

fn book(name: &str, x: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": x}})
}

/// A ControllerRevision as Metacontroller writes it.
fn old_revision(lab: &Lab, thing: &Value, name: &str, spec: &Value, names: &[&str]) -> Value {
    let mut revision = child(
        lab,
        thing,
        json!({
            "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "ControllerRevision",
            "metadata": {"name": name}, "parentPatch": {"spec": spec},
            "children": [{"apiGroup": "", "kind": "ConfigMap", "names": names}],
        }),
    );
    revision["metadata"]["labels"]["metacontroller.k8s.io/apiGroup"] = json!(lab.group);
    revision["metadata"]["labels"]["metacontroller.k8s.io/resource"] = json!("things");
    revision
}

#[test]
fn rollout_that_metacontroller_left_stalled_is_brought_to_its_end() {
    let lab = lab("pickedup");
    let hook = Hook::new(answer);
    let names = ["a", "b", "c"];
    let spec = |x: &str| json!({"x": x, "books": names});
    let thing = lab.add_thing("t", spec("2"));
    for (name, x) in [("a", "2"), ("b", "1"), ("c", "1")] {
        lab.create("v1", "configmaps", &child(&lab, &thing, book(name, x)));
    }
    let keep = |name: &str, x: &str, names: &[&str]| {
        let revision = old_revision(&lab, &thing, name, &spec(x), names);
        lab.create("metacontroller.k8s.io/v1alpha1", "controllerrevisions", &revision);
    };
    // A vanished name is in there, too.
    keep("things.old", "1", &["b", "c", "vanished"]);
    keep("things.new", "2", &["a"]);
    let first = lab.get(&lab.config_map("a"))["metadata"]["uid"].clone();
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "latest ControllerRevision: things.new");
    assert_eq!(books(&lab, &names), ["2", "2", "2"]);
    assert_eq!(lab.get(&lab.config_map("a"))["metadata"]["uid"], first);
    assert_eq!(revisions(&lab, &thing), [revision("2", &names)]);
    assert_eq!(kept(&lab, &thing)[0]["metadata"]["name"], "things.new");
    let began = lab.writes();
    let row: Vec<_> = began.iter().filter(|write| write.contains("configmaps")).collect();
    let at = |name: &str| row.iter().rposition(|write| write.ends_with(name)).expect("it was written");
    assert!(at(" b") < at(" c"), "{row:?}");
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn quiet_revision_of_metacontrollers_is_not_written() {
    let lab = lab("quiet");
    let hook = Hook::new(answer);
    let spec = json!({"x": "1", "books": ["b", "a"]});
    let thing = lab.add_thing("t", spec.clone());
    for name in ["a", "b"] {
        lab.create("v1", "configmaps", &child(&lab, &thing, book(name, "1")));
    }
    let revision = old_revision(&lab, &thing, "things.only", &spec, &["b", "a"]);
    lab.create("metacontroller.k8s.io/v1alpha1", "controllerrevisions", &revision);
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "things.only");
    lab.wait_quiet(&hook, SILENCE);
    let writes = lab.writes();
    assert!(!writes.iter().any(|write| write.contains("controllerrevisions")), "{writes:?}");
}

#[test]
fn children_of_no_revision_follow_one_by_one_too() {
    let lab = lab("unknown");
    let hook = Hook::new(answer);
    let names = ["a", "b", "c"];
    let at_once = lab.definition().child(&lab.api_version(), "parts", "OnDelete");
    let controller = lab.run(&at_once.sync(&hook));
    let thing = lab.add_thing("t", json!({"x": "1", "parts": names}));
    lab.wait_synced(&lab.thing("t"));
    controller.kill();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: it has no condition `Ready`");
    assert_eq!(parts(&lab, &names), ["2", "1", "1"]);
    assert_eq!(revisions(&lab, &thing), [revision("2", &["a"])]);
    lab.merge(&part_path(&lab, "b"), json!({"spec": {"label": "left"}}));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.get(&part_path(&lab, "b"))["spec"], json!({"x": "1", "label": "left"}));
    let nurse = Nurse::new(&lab);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    drop(nurse);
    assert_eq!(parts(&lab, &names), ["2", "2", "2"]);
}

#[test]
fn lost_revisions_are_made_again() {
    let lab = lab("lostrev");
    let hook = Hook::new(answer);
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    let thing = lab.add_thing("t", json!({"x": "1", "books": ["a", "b"]}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let revision = &kept(&lab, &thing)[0];
    let name = revision["metadata"]["name"].as_str().unwrap();
    let path = lab.path("metacontroller.k8s.io/v1alpha1", "controllerrevisions", name);
    lab.plane.delete(&path);
    let again =
        lab.wait(&path, "it comes back", |again| again["metadata"]["uid"] != revision["metadata"]["uid"]);
    assert_eq!(again["children"], revision["children"]);
}

#[test]
fn latest_revision_that_was_edited_is_made_anew_where_the_rollout_waits() {
    let lab = lab("editedrev");
    let hook = Hook::new(answer);
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    let names = ["a", "b", "c"];
    let thing = lab.add_thing("t", json!({"x": "1", "parts": names}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    names.iter().for_each(|name| call_ready(&lab, name, true));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: its newest state is not acted upon yet");
    let split = [revision("1", &["b", "c"]), revision("2", &["a"])];
    assert_eq!(revisions(&lab, &thing), split);
    let of_two = |kept: &&Value| kept["parentPatch"]["spec"]["x"] == "2";
    let latest = kept(&lab, &thing).iter().find(of_two).expect("there is one").clone();
    let name = latest["metadata"]["name"].as_str().unwrap();
    let path = lab.path("metacontroller.k8s.io/v1alpha1", "controllerrevisions", name);
    let controlled_as = |x: Value| {
        lab.merge(&path, json!({"parentPatch": {"spec": x}}));
        lab.wait(&path, "it is as it was", |again| again["parentPatch"] == latest["parentPatch"]);
        lab.wait_quiet(&hook, SILENCE);
        assert_eq!(revisions(&lab, &thing), split);
        assert_eq!(parts(&lab, &names), ["2", "1", "1"]);
    };
    controlled_as(json!({"extra": "yes"}));
    controlled_as(json!({"x": "3"}));
    controlled_as(json!({"x": "1"}));
    let nurse = Nurse::new(&lab);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    drop(nurse);
    assert_eq!(parts(&lab, &names), ["2", "2", "2"]);
    assert_eq!(revisions(&lab, &thing), [revision("2", &names)]);
}

#[test]
fn revision_that_was_let_go_is_taken_back() {
    // Metacontroller lets go of one that its parent's selector does not match, and then cannot make it again.
    let lab = lab("letgo");
    let hook = Hook::new(answer);
    let controller = lab.run(&rolling(&lab).sync(&hook));
    let thing = lab.add_thing("t", json!({"x": "1", "books": ["a", "b"]}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    controller.kill();
    let name = kept(&lab, &thing)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let path = lab.path("metacontroller.k8s.io/v1alpha1", "controllerrevisions", &name);
    lab.merge(&path, json!({"metadata": {"ownerReferences": null, "labels": null}}));
    let _controller = lab.start(&[]);
    let taken = lab.wait(&path, "it is owned", |revision| {
        revision["metadata"]["ownerReferences"][0]["uid"] == thing["metadata"]["uid"]
    });
    assert_eq!(taken["metadata"]["labels"]["controller-uid"], thing["metadata"]["uid"]);
    assert_eq!(revisions(&lab, &thing), [revision("1", &["a", "b"])]);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn cluster_scoped_parents_children_follow_one_by_one() {
    let lab = Lab::bare("clusterroll");
    let mut crd = lab.kind("things", "Thing");
    crd["spec"]["scope"] = json!("Cluster");
    lab.define_kind(&crd);
    define_revisions(&lab);
    let hook = Hook::new(|call| {
        let spec = call.spec();
        let namespaces = spec["namespaces"].as_array().unwrap().iter();
        let map = |namespace: &Value| {
            let mut map = book("same", spec["x"].as_str().unwrap());
            map["metadata"]["namespace"] = namespace.clone();
            map
        };
        json!({"children": namespaces.map(map).collect::<Vec<_>>(), "status": {}})
    });
    let definition = lab.definition().child("v1", "configmaps", "RollingInPlace");
    // Nothing is well before somebody says so in its data.
    let _controller = lab.run(&definition.sync(&hook));
    let second = lab.plane.namespace("clusterroll-more");
    let things = format!("/apis/{}/things", lab.api_version());
    let namespaces = [lab.namespace.as_str(), second.as_str()];
    let thing = lab.plane.create(&things, &lab.thing_with("t", json!({"x": "1", "namespaces": namespaces})));
    let path = format!("{things}/t");
    wait_updated(&lab, &path, "OnLatestRevision", "latest ControllerRevision: things.");
    let names = |x: &str| {
        let mut names = namespaces.map(|namespace| format!("{namespace}/same"));
        names.sort();
        revision(x, &names.each_ref().map(String::as_str))
    };
    assert_eq!(revisions(&lab, &thing), [names("1")]);
    // The kubeconfig of the tests names no namespace.
    assert_eq!(kept(&lab, &thing)[0]["metadata"]["namespace"], "default");

    let before = lab.writes().len();
    lab.merge(&path, json!({"spec": {"x": "2"}}));
    wait_updated(&lab, &path, "OnLatestRevision", "latest ControllerRevision: things.");
    let maps =
        namespaces.map(|namespace| lab.get(&format!("/api/v1/namespaces/{namespace}/configmaps/same")));
    assert_eq!(maps.map(|map| map["data"]["x"].clone()), ["2", "2"]);
    assert_eq!(revisions(&lab, &thing), [names("2")]);
    let writes = lab.writes().split_off(before);
    let maps = writes.iter().filter(|write| *write == "patch configmaps same").count();
    assert_eq!(maps, 2, "{writes:?}");
    lab.expect_silence(&hook, SILENCE);
    lab.plane.delete(&path);
    lab.wait_until("its revisions go with it", || kept(&lab, &thing).is_empty());
}
