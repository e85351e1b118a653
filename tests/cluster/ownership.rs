//! Whose an object is: adopting, letting go, and leaving alone what is not ours.

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Definition, Lab, SILENCE};
use crate::support::objects::config_map;

/// A definition whose parents select their children by `spec.selector`.
fn selecting(lab: &Lab) -> Definition {
    lab.definition().with("/spec/generateSelector", json!(false)).config_maps()
}

fn labelled(name: &str, app: &str) -> Value {
    let mut map = config_map(name, "1");
    map["metadata"]["labels"] = json!({"app": app});
    map
}

fn selector(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

fn controller_of(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"][0]["uid"]
}

// B93
#[test]
fn orphan_matching_the_selector_is_adopted_and_anothers_child_is_not() {
    let lab = Lab::new("adopt");
    let hook = Hook::from_spec();
    let _controller = lab.run(&selecting(&lab).sync(&hook));
    let other = lab.plane.create(&lab.config_map(""), &config_map("other", "x"));
    let mut theirs = labelled("theirs", "a");
    theirs["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"],
        "controller": true,
    }]);
    lab.plane.create(&lab.config_map(""), &theirs);
    lab.plane.create(&lab.config_map(""), &labelled("orphan", "a"));
    lab.plane.create(&lab.config_map(""), &labelled("unwanted", "a"));
    lab.plane.create(&lab.config_map(""), &labelled("bystander", "b"));
    let thing = lab.add_thing("t", json!({"selector": selector("a"), "children": [labelled("orphan", "a")]}));
    let what = "the orphan is adopted";
    let uid = &thing["metadata"]["uid"];
    let adopted = lab.wait(&lab.config_map("orphan"), what, |orphan| controller_of(orphan) == uid);
    let reference = &adopted["metadata"]["ownerReferences"][0];
    assert_eq!((&reference["controller"], &reference["blockOwnerDeletion"]), (&json!(true), &json!(true)));
    // What is adopted and not in the answer is a child that is not wanted.
    lab.wait_gone(&lab.config_map("unwanted"));
    lab.wait_synced(&lab.thing("t"));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(*controller_of(&lab.get(&lab.config_map("theirs"))), other["metadata"]["uid"]);
    assert_eq!(*controller_of(&lab.get(&lab.config_map("bystander"))), Value::Null);
}

#[test]
fn parent_that_is_being_deleted_adopts_nothing() {
    let lab = Lab::new("adopt-late");
    let hook = Hook::from_spec();
    let _controller = lab.run(&selecting(&lab).sync(&hook));
    let fields = json!({"selector": selector("a"), "children": [labelled("orphan", "a")]});
    let mut going = lab.thing_with("going", fields);
    going["metadata"]["finalizers"] = json!(["example.com/hold"]);
    lab.plane.create(&lab.thing(""), &going);
    lab.wait(&lab.config_map("orphan"), "the child is made", |_| true);
    lab.wait_synced(&lab.thing("going"));
    lab.plane.delete(&lab.thing("going"));
    lab.wait(&lab.thing("going"), "it is being deleted", |it| !it["metadata"]["deletionTimestamp"].is_null());
    lab.merge(&lab.config_map("orphan"), json!({"metadata": {"ownerReferences": null}}));
    lab.merge(&lab.thing("going"), json!({"metadata": {"annotations": {"visit": "again"}}}));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(*controller_of(&lab.get(&lab.config_map("orphan"))), Value::Null);
    // One that lives does, which shows that the orphan could have been adopted.
    let living =
        lab.add_thing("living", json!({"selector": selector("a"), "children": [labelled("orphan", "a")]}));
    let uid = &living["metadata"]["uid"];
    lab.wait(&lab.config_map("orphan"), "another parent adopts it", |orphan| controller_of(orphan) == uid);
    lab.merge(&lab.thing("going"), json!({"metadata": {"finalizers": null}}));
    lab.wait_gone(&lab.thing("going"));
}

#[test]
fn orphan_that_comes_later_wakes_the_parent_that_adopts_it() {
    let lab = Lab::new("later");
    let hook = Hook::new(|call| {
        let found = call.children("ConfigMap.v1").len();
        json!({"children": [labelled("orphan", "a")], "status": {"found": found}})
    });
    let definition = selecting(&lab).sync(&hook);
    let _controller =
        lab.run(&definition.with("/spec/childResources/0/updateStrategy/method", json!("OnDelete")));
    lab.add_thing("t", json!({"selector": selector("a")}));
    lab.wait(&lab.config_map("orphan"), "the child is made", |_| true);
    lab.wait_quiet(&hook, SILENCE);
    let map = lab.merge(&lab.config_map("orphan"), json!({"metadata": {"ownerReferences": null}}));
    let what = "it is adopted again";
    let adopted = lab.wait(&lab.config_map("orphan"), what, |orphan| !controller_of(orphan).is_null());
    assert_eq!(adopted["metadata"]["uid"], map["metadata"]["uid"]);
}

#[test]
fn child_that_no_longer_matches_is_let_go_and_comes_back_with_its_label() {
    let lab = Lab::new("release");
    let hook = Hook::from_spec();
    let _controller = lab.run(&selecting(&lab).sync(&hook));
    let thing = lab.add_thing("t", json!({"selector": selector("a"), "children": [labelled("c", "a")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.config_map("c"), json!({"metadata": {"labels": {"app": "other"}}}));
    lab.wait(&lab.config_map("c"), "it has no owner", |child| controller_of(child).is_null());
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "child `ConfigMap {}/c` exists and is not this parent's; found: it has no controller; hint: delete it, or give it the labels that the parent's selector matches: then it is adopted",
            lab.namespace
        )
    );
    lab.expect_silence(&hook, SILENCE);
    lab.merge(&lab.config_map("c"), json!({"metadata": {"labels": {"app": "a"}}}));
    let uid = &thing["metadata"]["uid"];
    lab.wait(&lab.config_map("c"), "it is ours again", |child| controller_of(child) == uid);
    lab.wait_synced(&lab.thing("t"));
}

// B93
#[test]
fn object_of_the_same_name_that_is_not_ours_is_left_alone() {
    let lab = Lab::new("foreign");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let foreign = lab.plane.create(&lab.config_map(""), &config_map("a", "theirs"));
    lab.add_thing("t", json!({"children": [config_map("a", "ours"), config_map("b", "ours")]}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "child `ConfigMap {}/a` exists and is not this parent's; found: it has no controller; hint: delete it, or give it the labels that the parent's selector matches: then it is adopted",
            lab.namespace
        )
    );
    lab.get(&lab.config_map("b"));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("a")), foreign);
    lab.plane.delete(&lab.config_map("a"));
    lab.wait(&lab.config_map("a"), "there is place for ours", |child| child["data"]["key"] == "ours");
    lab.wait_synced(&lab.thing("t"));
}

// B94
#[test]
fn child_whose_labels_its_parent_would_not_select_is_never_made() {
    let lab = Lab::new("unselected");
    let hook = Hook::from_spec();
    let _controller = lab.run(&selecting(&lab).sync(&hook));
    let children = [labelled("wrong", "b"), labelled("right", "a")];
    lab.add_thing("t", json!({"selector": selector("a"), "children": children}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "child `ConfigMap {}/wrong` has labels that its parent's selector does not match; expected: `app=a`; hint: give it the labels of the parent's `spec.selector`",
            lab.namespace
        )
    );
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), ["patch configmaps right", "patch things/status t"]);
}

#[test]
fn parent_without_a_selector_is_told_what_it_lacks() {
    let lab = Lab::new("noselector");
    let hook = Hook::from_spec();
    let _controller = lab.run(&selecting(&lab).sync(&hook));
    lab.add_thing("t", json!({"children": [labelled("a", "a")]}));
    let message = lab.wait_refused(&lab.thing("t"), "InvalidSelector");
    assert_eq!(
        message,
        ".spec.selector must have matchLabels or matchExpressions; hint: or set `generateSelector: true` in the CompositeController"
    );
    assert_eq!(hook.count(), 0);
    lab.merge(&lab.thing("t"), json!({"spec": {"selector": selector("a")}}));
    lab.wait_synced(&lab.thing("t"));
}

// B74
#[test]
fn fields_dropped_after_an_adoption_go() {
    let lab = Lab::new("migrate");
    let hook = Hook::from_spec();
    let _controller = lab.run(&selecting(&lab).sync(&hook));
    let mut orphan = labelled("a", "a");
    orphan["data"] = json!({"kept": "1", "dropped": "1", "theirs": "1"});
    lab.plane.create(&lab.config_map(""), &orphan);
    let mut wanted = labelled("a", "a");
    wanted["data"] = json!({"kept": "1", "dropped": "1"});
    lab.add_thing("t", json!({"selector": selector("a"), "children": [wanted]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    wanted["data"] = json!({"kept": "2"});
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [wanted]}}));
    lab.wait(&lab.config_map("a"), "one is changed", |child| child["data"]["kept"] == "2");
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("a"))["data"], json!({"kept": "2", "theirs": "1"}));
}

// B74
#[test]
fn child_made_by_metacontroller_is_taken_over_with_what_it_had_applied() {
    let lab = Lab::new("takeover");
    let hook = Hook::from_spec();
    let thing = lab.add_thing("t", json!({"children": []}));
    let uid = &thing["metadata"]["uid"];
    let owner = json!([{
        "apiVersion": lab.api_version(), "kind": "Thing", "name": "t", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    let metadata =
        json!({"name": "a", "namespace": lab.namespace, "labels": {"controller-uid": uid, "old": "1"}});
    let mut child = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"kept": "1", "dropped-before": "1", "dropped-later": "1"},
    });
    let applied = child.to_string();
    child["metadata"]["annotations"] = json!({"metacontroller.k8s.io/last-applied-configuration": applied});
    child["metadata"]["ownerReferences"] = owner;
    child["data"]["theirs"] = json!("1");
    let path = format!("{}?fieldManager=metacontroller", lab.config_map(""));
    lab.plane.create(&path, &child);

    let wanted = |data: Value| json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}]);
    lab.merge(
        &lab.thing("t"),
        json!({"spec": {"children": wanted(json!({"kept": "1", "dropped-later": "1"}))}}),
    );
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let live = lab.get(&lab.config_map("a"));
    assert_eq!(live["data"], json!({"kept": "1", "dropped-later": "1", "theirs": "1"}));
    assert_eq!(live["metadata"]["annotations"], Value::Null);
    assert_eq!(live["metadata"]["labels"], json!({"controller-uid": uid}));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": wanted(json!({"kept": "1"}))}}));
    lab.wait(&lab.config_map("a"), "the field goes", |child| child["data"]["dropped-later"].is_null());
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("a"))["data"], json!({"kept": "1", "theirs": "1"}));
}

#[test]
fn cluster_scoped_parent_has_children_in_several_namespaces() {
    let lab = Lab::bare("cluster");
    let mut crd = lab.kind("things", "Thing");
    crd["spec"]["scope"] = json!("Cluster");
    lab.define_kind(&crd);
    let hook = Hook::new(|call| {
        let children = call.children("ConfigMap.v1");
        json!({"children": call.spec()["children"], "status": {"seen": children}})
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let second = lab.plane.namespace("cluster-more");
    let namespaces = [lab.namespace.as_str(), second.as_str()];
    let children = namespaces.map(|namespace| {
        let mut map = config_map("a", "1");
        map["metadata"]["namespace"] = json!(namespace);
        map
    });
    let things = format!("/apis/{}/things", lab.api_version());
    lab.plane.create(&things, &lab.thing_with("t", json!({"children": children})));
    let thing = format!("{things}/t");
    let mut seen = namespaces.map(|namespace| format!("{namespace}/a"));
    seen.sort();
    lab.wait(&thing, "the hook has seen both", |thing| thing["status"]["seen"] == json!(seen));
    lab.plane.delete(&format!("/api/v1/namespaces/{second}/configmaps/a"));
    lab.wait(&format!("/api/v1/namespaces/{second}/configmaps/a"), "it comes back", |_| true);
    lab.merge(&thing, json!({"spec": {"children": children[..1]}}));
    lab.wait_gone(&format!("/api/v1/namespaces/{second}/configmaps/a"));
    lab.get(&lab.config_map("a"));

    lab.merge(&thing, json!({"spec": {"children": [config_map("b", "1")]}}));
    let message = lab.wait_refused(&thing, "ChildRefused");
    assert_eq!(
        message,
        "child `ConfigMap b` has no namespace; hint: the parent is cluster-scoped, so each child states its `metadata.namespace`"
    );
    lab.get(&lab.config_map("a"));
    lab.plane.delete(&thing);
}
