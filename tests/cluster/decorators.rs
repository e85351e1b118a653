//! DecoratorControllers: labels, annotations, a status and further objects for objects that somebody else makes.

use std::fs;

use serde_json::{Value, json};

use crate::support::hook::{Call, Hook};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

/// A hook that answers `spec.answer` of its target, and finalizes when no attachment is left.
fn echoing() -> Hook {
    Hook::new(echo)
}

fn echo(call: &Call) -> Value {
    if call.hook == "finalize" {
        let attached = call.request["attachments"]["ConfigMap.v1"].as_object().map_or(0, |maps| maps.len());
        return json!({"attachments": [], "finalized": attached == 0});
    }
    let mut answer = call.spec()["answer"].clone();
    if answer.is_null() {
        answer = json!({});
    }
    if answer["attachments"].is_null() {
        answer["attachments"] = json!([]);
    }
    answer
}

fn answer(fields: Value) -> Value {
    json!({ "answer": fields })
}

#[test]
fn target_gets_labels_annotations_status_and_attachments_and_then_nothing() {
    let lab = Lab::new("decorate");
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook));
    let fields = json!({
        "labels": {"tier": "gold", "old": null, "absent": null}, "annotations": {"seen": "yes"},
        "status": {"phase": "Decorated"}, "attachments": [config_map("a", "1")],
    });
    let mut thing = lab.thing_with("t", answer(fields));
    thing["metadata"]["labels"] = json!({"old": "x", "mine": "y"});
    let thing = lab.plane.create(&lab.thing(""), &thing);

    let child = lab.wait(&lab.config_map("a"), "it is attached", |_| true);
    let target = lab.get(&lab.thing("t"));
    assert_eq!(target["metadata"]["labels"], json!({"mine": "y", "tier": "gold"}));
    assert_eq!(target["metadata"]["annotations"], json!({"seen": "yes"}));
    assert_eq!(target["status"], json!({"phase": "Decorated"}), "nothing of the controller's own");
    let name = json!({"metacontroller.k8s.io/decorator-controller": lab.namespace});
    assert_eq!(child["metadata"]["annotations"], name);
    assert_eq!(child["metadata"]["labels"], Value::Null);
    let owner = json!({
        "apiVersion": lab.api_version(), "kind": "Thing", "name": "t", "uid": thing["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(child["metadata"]["ownerReferences"], json!([owner]));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), ["patch things/status t", "patch things t", "patch configmaps a"]);
    assert_eq!(hook.count(), 2, "its own writes of the target wake nobody");
    let request = &hook.calls()[0].request;
    let keys: Vec<&String> = request.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["controller", "object", "attachments", "related", "finalizing"]);
    assert_eq!(request["controller"]["kind"], "DecoratorController");
}

#[test]
fn status_is_left_alone_when_null_and_replaced_otherwise() {
    let lab = Lab::new("decorate-status");
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook));
    lab.add_thing("t", answer(json!({"status": {"a": 1, "b": {"c": 2}}})));
    let thing = lab.thing("t");
    lab.wait(&thing, "it has a status", |thing| thing["status"] == json!({"a": 1, "b": {"c": 2}}));
    lab.merge(&thing, json!({"spec": {"answer": {"status": null, "labels": {"x": "1"}}}}));
    let target = lab.wait(&thing, "it has a label", |thing| thing["metadata"]["labels"]["x"] == "1");
    assert_eq!(target["status"], json!({"a": 1, "b": {"c": 2}}));
    lab.merge(&thing, json!({"spec": {"answer": {"status": {"d": 3}}}}));
    lab.wait(&thing, "the status is another", |thing| thing["status"] == json!({"d": 3}));
}

#[test]
fn kind_without_a_status_subresource_gets_its_status_all_the_same() {
    let lab = Lab::bare("decorate-main");
    let mut crd = lab.kind("things", "Thing");
    crd["spec"]["versions"][0]["subresources"] = json!({});
    lab.define_kind(&crd);
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook));
    lab.add_thing("t", answer(json!({"status": {"a": 1}, "labels": {"x": "1"}})));
    let target = lab.wait(&lab.thing("t"), "it has a status", |thing| thing["status"] == json!({"a": 1}));
    assert_eq!(target["metadata"]["labels"], json!({"x": "1"}));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), ["patch things t"]);
}

#[test]
fn only_objects_with_the_labels_and_the_annotations_are_decorated_even_of_built_in_kinds() {
    let lab = Lab::bare("decorate-select");
    let note = "any text: even http://a/b, of more than sixty-three characters in all, with spaces";
    let resources = json!([{
        "apiVersion": "v1", "resource": "secrets",
        "labelSelector": {"matchLabels": {"lab": lab.namespace}},
        "annotationSelector": {"matchAnnotations": {"note": note}},
    }]);
    let hook = Hook::new(
        |call: &Call| json!({"labels": {"seen": "yes"}, "attachments": [config_map(&format!("of-{}", call.parent_name()), "1")]}),
    );
    let _controller = lab.run(&lab.decorator(resources).sync(&hook));
    let secret = |name: &str, labels: Value, annotations: Value| {
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    };
    let secrets = lab.path("v1", "secrets", "");
    let ours = json!({"lab": lab.namespace});
    lab.plane.create(&secrets, &secret("label", ours.clone(), json!({"note": "another"})));
    lab.plane.create(&secrets, &secret("note", json!({}), json!({"note": note})));
    lab.plane.create(&secrets, &secret("both", ours, json!({"note": note})));
    lab.wait(&lab.config_map("of-both"), "it is attached", |_| true);
    lab.wait_quiet(&hook, SILENCE);
    assert!(hook.calls().iter().all(|call| call.parent_name() == "both"));
    assert_eq!(lab.writes(), ["patch secrets both", "patch configmaps of-both"]);

    lab.merge(&lab.path("v1", "secrets", "label"), json!({"metadata": {"annotations": {"note": note}}}));
    lab.wait(&lab.config_map("of-label"), "it is attached", |_| true);
}

#[test]
fn cluster_scoped_target_has_attachments_in_namespaces() {
    let lab = Lab::bare("decorate-cluster");
    let resources = json!([{
        "apiVersion": "v1", "resource": "namespaces",
        "labelSelector": {"matchLabels": {"decorate": lab.namespace}},
    }]);
    let hook = Hook::new(|call: &Call| {
        let mut map = config_map("settings", "1");
        map["metadata"]["namespace"] = json!(call.parent_name());
        json!({"attachments": [map], "annotations": {"settings": "there"}})
    });
    let _controller = lab.run(&lab.decorator(resources).sync(&hook));
    let namespace = format!("/api/v1/namespaces/{}", lab.namespace);
    lab.merge(&namespace, json!({"metadata": {"labels": {"decorate": lab.namespace}}}));
    lab.wait(&lab.config_map("settings"), "it is attached", |_| true);
    lab.wait(&namespace, "it is annotated", |now| now["metadata"]["annotations"]["settings"] == "there");
    lab.wait_quiet(&hook, SILENCE);
    let shown = hook.calls().pop().unwrap().request["attachments"]["ConfigMap.v1"].clone();
    assert!(shown[format!("{}/settings", lab.namespace)].is_object(), "{shown}");
}

#[test]
fn attachments_are_changed_and_deleted_and_nobody_elses_object_is_touched() {
    let lab = Lab::new("attach");
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook));
    let foreign = lab.plane.create(&lab.config_map(""), &config_map("foreign", "theirs"));
    let mut controlled = config_map("controlled", "theirs");
    controlled["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "foreign", "uid": foreign["metadata"]["uid"],
        "controller": true,
    }]);
    lab.plane.create(&lab.config_map(""), &controlled);
    lab.add_thing("t", answer(json!({"attachments": [config_map("a", "1"), config_map("b", "1")]})));
    lab.wait(&lab.config_map("b"), "it is attached", |_| true);
    let more = json!([config_map("a", "2"), config_map("foreign", "ours"), config_map("controlled", "ours")]);
    lab.merge(&lab.thing("t"), json!({"spec": {"answer": {"attachments": more}}}));
    lab.wait(&lab.config_map("a"), "it is changed", |map| map["data"]["key"] == "2");
    // What is refused may be what looks unwanted: nothing is deleted until the answer can be carried out.
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.get(&lab.config_map("foreign"))["data"]["key"], "theirs");
    let controlled = lab.get(&lab.config_map("controlled"));
    assert_eq!(controlled["data"]["key"], "theirs");
    assert_eq!(controlled["metadata"]["ownerReferences"][0]["uid"], foreign["metadata"]["uid"]);
    lab.merge(&lab.thing("t"), json!({"spec": {"answer": {"attachments": [config_map("a", "2")]}}}));
    lab.wait_gone(&lab.config_map("b"));
    assert_eq!(lab.get(&lab.config_map("foreign"))["metadata"]["ownerReferences"], Value::Null);
}

#[test]
fn two_decorators_of_one_target_keep_to_their_own_attachments() {
    let lab = Lab::new("decorate-two");
    let attaching =
        |name: &'static str| Hook::new(move |_: &Call| json!({"attachments": [config_map(name, "1")]}));
    let (one, two) = (attaching("one"), attaching("two"));
    let first = lab.decorator(lab.things()).named("one").sync(&one);
    let second = lab.decorator(lab.things()).named("two").sync(&two);
    lab.write_definitions(&[&first, &second]);
    let _controller = lab.start(&[]);
    lab.add_thing("t", json!({}));
    lab.wait(&lab.config_map("one"), "it is attached", |_| true);
    lab.wait(&lab.config_map("two"), "it is attached", |_| true);
    lab.wait_quiet(&one, SILENCE);
    lab.wait_quiet(&two, SILENCE);
    let mut writes = lab.writes();
    writes.sort();
    assert_eq!(writes, ["patch configmaps one", "patch configmaps two"]);
    let shown = &one.calls().pop().unwrap().request["attachments"]["ConfigMap.v1"];
    assert_eq!(shown.as_object().unwrap().keys().collect::<Vec<_>>(), ["one"]);
}

#[test]
fn deleted_target_is_finalized_first() {
    let lab = Lab::new("decorate-finalize");
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook).finalize(&hook));
    lab.add_thing("t", answer(json!({"attachments": [config_map("a", "1")]})));
    lab.wait(&lab.config_map("a"), "it is attached", |_| true);
    let finalizer = format!("metacontroller.io/decoratorcontroller-{}", lab.namespace);
    assert_eq!(lab.get(&lab.thing("t"))["metadata"]["finalizers"], json!([finalizer]));
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    lab.wait_gone(&lab.config_map("a"));
    let last = hook.calls().pop().unwrap();
    assert_eq!((last.hook.as_str(), &last.request["finalizing"]), ("finalize", &json!(true)));
}

#[test]
fn target_that_is_no_longer_selected_is_finalized_and_keeps_its_marks() {
    let lab = Lab::new("decorate-out");
    let mut resources = lab.things();
    resources[0]["labelSelector"] = json!({"matchLabels": {"decorate": "yes"}});
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(resources).sync(&hook).finalize(&hook));
    let fields = json!({"labels": {"tier": "gold"}, "attachments": [config_map("a", "1")]});
    let mut thing = lab.thing_with("t", answer(fields));
    thing["metadata"]["labels"] = json!({"decorate": "yes"});
    lab.plane.create(&lab.thing(""), &thing);
    lab.wait(&lab.config_map("a"), "it is attached", |_| true);
    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"decorate": "no"}}}));
    lab.wait_gone(&lab.config_map("a"));
    let target = lab.wait(&lab.thing("t"), "its finalizer is gone", |thing| {
        thing["metadata"]["finalizers"].as_array().is_none_or(|finalizers| finalizers.is_empty())
    });
    assert_eq!(target["metadata"]["labels"], json!({"decorate": "no", "tier": "gold"}));
    lab.wait_quiet(&hook, SILENCE);
    let before = hook.count();
    lab.merge(&lab.thing("t"), json!({"spec": {"more": 1}}));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(hook.count(), before, "it is nobody's any more");
}

#[test]
fn decorator_in_the_cluster_asks_for_related_objects_by_its_targets() {
    let lab = Lab::new("decorate-related");
    let hook = Hook::new(|call: &Call| match call.hook.as_str() {
        "customize" => {
            json!({"relatedResources": [{"apiVersion": "v1", "resource": "secrets", "names": ["s"]}]})
        }
        _ => json!({"attachments": [], "annotations": {"secrets": call.related("Secret.v1").join(",")}}),
    });
    lab.add_definition(&lab.decorator(lab.things()).sync(&hook).customize(&hook));
    let _controller = lab.start(&[]);
    lab.add_thing("t", json!({}));
    let secrets = |thing: &Value| thing["metadata"]["annotations"]["secrets"].clone();
    lab.wait(&lab.thing("t"), "it sees none", |thing| secrets(thing) == "");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    lab.plane.create(&lab.path("v1", "secrets", ""), &secret);
    lab.wait(&lab.thing("t"), "it sees the secret", |thing| secrets(thing) == "s");
    let customize = hook.calls().into_iter().find(|call| call.hook == "customize").unwrap();
    assert_eq!(customize.request["parent"]["metadata"]["name"], "t");
}

#[test]
fn templates_decorate() {
    let lab = Lab::new("decorate-template");
    let folder = lab.folder.path().join("hooks/marks");
    fs::create_dir(&folder).unwrap();
    fs::write(
        folder.join("sync.yaml"),
        "labels: {size: \"{{ object.spec.size }}\"}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ object.metadata.name }}-map\"}\n\
         data: {count: \"{{ attachments.list('ConfigMap') | length }}\"}\n",
    )
    .unwrap();
    let definition =
        lab.decorator(lab.things()).with("/spec/hooks/sync", json!({"webhook": {"path": "/marks/sync"}}));
    let _controller = lab.run(&definition);
    lab.add_thing("t", json!({"size": "big"}));
    lab.wait(&lab.thing("t"), "it has a label", |thing| thing["metadata"]["labels"]["size"] == "big");
    lab.wait(&lab.config_map("t-map"), "it sees itself", |map| map["data"]["count"] == "1");
}

#[test]
fn mark_that_the_api_server_refuses_is_an_event_and_is_not_tried_for_ever() {
    let lab = Lab::new("decorate-refused");
    let hook = echoing();
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook));
    let fields = json!({"labels": {"bad": "no label, this!"}, "attachments": [config_map("a", "1")]});
    lab.add_thing("t", answer(fields));
    let events = format!("{}?fieldSelector=reason=SyncError", lab.path("v1", "events", ""));
    lab.wait(&events, "the refusal is told", |list| {
        let told =
            |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("TargetRefused"));
        list["items"].as_array().unwrap().iter().any(told)
    });
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), ["patch things t -> 422"], "and nothing else of the answer is done");
    lab.merge(&lab.thing("t"), json!({"spec": {"answer": {"labels": {"bad": "good"}}}}));
    lab.wait(&lab.config_map("a"), "it is attached", |_| true);
    assert_eq!(lab.get(&lab.thing("t"))["metadata"]["labels"], json!({"bad": "good"}));
}

#[test]
fn restart_of_a_decorator_writes_nothing() {
    let lab = Lab::new("decorate-restart");
    let hook = echoing();
    let controller = lab.run(&lab.decorator(lab.things()).sync(&hook).finalize(&hook));
    let fields =
        json!({"labels": {"x": "1"}, "status": {"a": {"b": 1}}, "attachments": [config_map("a", "1")]});
    lab.add_thing("t", answer(fields));
    lab.wait(&lab.config_map("a"), "it is attached", |_| true);
    lab.wait_quiet(&hook, SILENCE);
    assert!(controller.terminate().success());
    let (writes, calls) = (lab.writes(), hook.count());
    let _controller = lab.start(&[]);
    lab.wait_until("the target is visited again", || hook.count() > calls);
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), writes);
}

#[test]
fn attachment_whose_kind_is_not_there_yet_is_waited_for_with_an_event() {
    let lab = Lab::new("decorate-wait");
    let hook = Hook::new(|call: &Call| {
        let widget = json!({
            "apiVersion": call.parent()["apiVersion"], "kind": "Widget", "metadata": {"name": "w"},
        });
        json!({"attachments": [config_map("a", "1"), widget], "labels": {"seen": "yes"}})
    });
    let _controller = lab.run(&lab.decorator(lab.things()).sync(&hook).attach(&lab.api_version(), "widgets"));
    lab.add_thing("t", json!({}));
    lab.wait(&lab.config_map("a"), "the other one is attached", |_| true);
    let events = format!("{}?fieldSelector=reason=Waiting", lab.path("v1", "events", ""));
    lab.wait(&events, "the wait is told", |list| {
        let told = |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("Widget"));
        list["items"].as_array().unwrap().iter().any(told)
    });
    assert_eq!(lab.get(&lab.thing("t"))["status"], Value::Null);
    lab.define_kind(&lab.kind("widgets", "Widget"));
    lab.wait(&lab.path(&lab.api_version(), "widgets", "w"), "it is attached", |_| true);
}
