//! One child after the other, and no further than all is well.

use serde_json::{Value, json};

use crate::rolling::stage::{
    Nurse, answer, books, call_ready, is_ready, kept, lab, part_path, parts, revision, revisions, rolling,
    updated, wait_updated,
};
use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::rights::{narrow, refused};

/// The children that were changed, in order.
fn changed(writes: &[String]) -> Vec<&str> {
    let changed = writes.iter().filter_map(|write| write.strip_prefix("patch "));
    changed.filter(|what| what.starts_with("parts ") || what.starts_with("configmaps ")).collect()
}

#[test]
fn several_kinds_and_many_children_follow_one_by_one_in_the_order_of_the_answer() {
    let lab = lab("inturn");
    let hook = Hook::new(answer);
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    let nurse = Nurse::new(&lab);
    let spec = json!({"x": "1", "parts": ["c", "a", "b"], "books": ["z", "y", "x", "w", "v"]});
    let thing = lab.add_thing("t", spec);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "latest ControllerRevision: things.");
    assert_eq!(revisions(&lab, &thing), [revision("1", &["a", "b", "c", "v", "w", "x", "y", "z"])]);
    lab.wait_until("all are well", || ["a", "b", "c"].iter().all(|name| is_well(&lab, name)));
    lab.wait_quiet(&hook, SILENCE);

    nurse.count_anew();
    let before = lab.writes().len();
    let calls = hook.count();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    lab.wait_until("it has begun", || parts(&lab, &["c"]) == ["2"]);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "latest ControllerRevision: things.");
    assert_eq!(nurse.most_ill(), 1, "one at a time");
    let writes = lab.writes().split_off(before);
    let row = ["parts c", "parts a", "parts b"];
    let row = row.into_iter().chain([
        "configmaps z",
        "configmaps y",
        "configmaps x",
        "configmaps w",
        "configmaps v",
    ]);
    assert_eq!(changed(&writes), row.collect::<Vec<_>>(), "each once");
    let thing = lab.get(&lab.thing("t"));
    assert_eq!(revisions(&lab, &thing), [revision("2", &["a", "b", "c", "v", "w", "x", "y", "z"])]);
    assert_eq!(thing["status"]["x"], "2");
    let asked: Vec<Value> =
        hook.calls().split_off(calls).iter().map(|call| call.spec()["x"].clone()).collect();
    assert!(asked.contains(&json!("1")), "the hook is asked for the older revision as well");
    lab.expect_silence(&hook, SILENCE);
}

fn is_well(lab: &Lab, name: &str) -> bool {
    is_ready(&lab.get(&part_path(lab, name)))
}

#[test]
fn rollout_stops_at_a_child_that_is_not_well_and_goes_on_when_it_is() {
    let lab = lab("stops");
    let hook = Hook::new(answer);
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    let names = ["a", "b", "c"];
    lab.add_thing("t", json!({"x": "1", "parts": names}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    names.iter().for_each(|name| call_ready(&lab, name, true));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: its newest state is not acted upon yet");
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(parts(&lab, &names), ["2", "1", "1"]);

    call_ready(&lab, "a", false);
    let waiting = "Part a: its condition `Ready` is `False`, not `True`";
    let thing = wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", waiting);
    assert_eq!(updated(&thing)[0]["status"], "False");
    assert_eq!(parts(&lab, &names), ["2", "1", "1"]);
    call_ready(&lab, "a", true);
    lab.wait_until("the next one follows", || parts(&lab, &names) == ["2", "2", "1"]);
    call_ready(&lab, "b", true);
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert_eq!(updated(&thing)[0]["status"], "True");
    assert_eq!(parts(&lab, &names), ["2", "2", "2"]);

    // Who falls ill when it is all over takes nothing back.
    call_ready(&lab, "c", false);
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(updated(&lab.get(&lab.thing("t")))[0]["status"], "True");
}

#[test]
fn recreated_children_follow_one_by_one() {
    let lab = lab("anew");
    let hook = Hook::new(answer);
    let definition =
        rolling(&lab).with("/spec/childResources/0/updateStrategy/method", json!("RollingRecreate"));
    let _controller = lab.run(&definition.sync(&hook));
    let names = ["a", "b", "c"];
    lab.add_thing("t", json!({"x": "1", "parts": names}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let uids = || names.map(|name| lab.get(&part_path(&lab, name))["metadata"]["uid"].clone());
    let first = uids();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: it has no condition `Ready`");
    assert_eq!(parts(&lab, &names), ["2", "1", "1"]);
    assert_eq!(uids()[1..], first[1..]);
    let nurse = Nurse::new(&lab);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let second = uids();
    assert!((0..3).all(|child| first[child] != second[child]), "each is another one");
    drop(nurse);
    let deletes = lab.writes().into_iter().filter(|write| write.starts_with("delete parts"));
    assert_eq!(deletes.collect::<Vec<_>>(), ["delete parts a", "delete parts b", "delete parts c"]);
}

#[test]
fn hook_without_a_status_gets_the_condition_alone() {
    let lab = lab("nostatus");
    let hook = Hook::new(|call| json!({"children": answer(call)["children"], "status": null}));
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    lab.add_thing("t", json!({"x": "1", "books": ["a"]}));
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let fields: Vec<&String> = thing["status"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["conditions", "observedGeneration"]);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn condition_of_the_hooks_own_is_replaced_and_not_repeated() {
    let lab = lab("condition");
    let hook = Hook::new(|call| {
        let mut answer = answer(call);
        let shown = call.parent()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let own = [
            json!({"type": "Updated", "status": "Unknown", "reason": "Mine"}),
            json!({"type": "Up", "status": "True"}),
        ];
        answer["status"]["conditions"] = own.into_iter().chain(shown).take(4).collect();
        answer
    });
    let _controller = lab.run(&rolling(&lab).sync(&hook));
    lab.add_thing("t", json!({"x": "1", "books": ["a"]}));
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert_eq!(updated(&thing)[0]["status"], "True");
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    lab.wait_until("it is updated", || books(&lab, &["a"]) == ["2"]);
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(updated(&lab.get(&lab.thing("t"))).len(), 1);
}

#[test]
fn revision_is_kept_as_metacontroller_keeps_it() {
    let lab = lab("shape");
    let hook = Hook::new(answer);
    let definition = rolling(&lab).with("/spec/generateSelector", json!(false));
    // The children need labels of their own then.
    hook.set(|call| {
        let mut answer = answer(call);
        for child in answer["children"].as_array_mut().unwrap() {
            child["metadata"]["labels"] = json!({"app": "t"});
        }
        answer
    });
    let _controller = lab.run(&definition.sync(&hook));
    let thing =
        lab.add_thing("t", json!({"x": "1", "books": ["a"], "selector": {"matchLabels": {"app": "t"}}}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let [revision] = &kept(&lab, &thing)[..] else { panic!("one revision") };
    let metadata = &revision["metadata"];
    assert_eq!(metadata["namespace"], lab.namespace.as_str());
    let prefix = format!("things.{}-", lab.group);
    let hash = metadata["name"].as_str().unwrap().strip_prefix(&prefix).expect("the kind comes first");
    assert!(hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    assert_eq!(
        metadata["labels"],
        json!({
            "app": "t", "metacontroller.k8s.io/apiGroup": lab.group, "metacontroller.k8s.io/resource": "things",
        })
    );
    assert_eq!(
        metadata["ownerReferences"],
        json!([{
            "apiVersion": lab.api_version(), "kind": "Thing", "name": "t", "uid": thing["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(revision["parentPatch"], json!({ "spec": thing["spec"] }));
    assert_eq!(revision["children"], json!([{"apiGroup": "", "kind": "ConfigMap", "names": ["a"]}]));
}

#[test]
fn many_children_follow_without_a_pause() {
    let lab = lab("many");
    let hook = Hook::new(answer);
    let controller = lab.run(&rolling(&lab).sync(&hook));
    let names: Vec<String> = (10..70).map(|number| format!("b{number}")).collect();
    lab.add_thing("t", json!({"x": "1", "books": names}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let before = lab.writes().len();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    let writes = lab.writes().split_off(before);
    let row: Vec<String> = names.iter().map(|name| format!("configmaps {name}")).collect();
    assert_eq!(changed(&writes), row, "each once, in order");
    assert!(!controller.log().contains("NeverSettles"));
}

#[test]
fn printed_rights_are_enough_for_a_rollout_and_a_missing_one_is_told() {
    let mut lab = lab("rollrights");
    let hook = Hook::new(answer);
    let definition = rolling(&lab).sync(&hook);
    lab.write_definitions(&[&definition]);
    narrow(&mut lab, &[]);
    let _controller = lab.start(&[]);
    let names = ["a", "b"];
    lab.add_thing("t", json!({"x": "1", "books": names}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert_eq!(refused(&lab), [""; 0]);

    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{}", lab.namespace);
    let role = lab.get(&path);
    let mut less = role.clone();
    for rule in less["rules"].as_array_mut().unwrap() {
        if rule["resources"].as_array().unwrap().contains(&json!("controllerrevisions")) {
            rule["verbs"] = json!(["list", "watch"]);
        }
    }
    lab.merge(&path, json!({"rules": less["rules"]}));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "3"}}));
    let message = lab.wait_refused(&lab.thing("t"), "Forbidden");
    assert!(message.starts_with("not allowed to patch controllerrevisions"), "{message}");
    assert_eq!(books(&lab, &names), ["2", "2"], "what cannot be noted is not done");
    lab.merge(&path, json!({"rules": role["rules"]}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert_eq!(books(&lab, &names), ["3", "3"]);
}

const TEMPLATE: &str = "\
{% for name in parent.spec.parts %}
---
apiVersion: {{ parent.apiVersion }}
kind: Part
metadata: {name: {{ name }}}
spec: {x: {{ parent.spec.x }}}
{% endfor %}
---
status: {x: {{ parent.spec.x }}}
";

#[test]
fn template_is_rendered_for_each_state_of_the_spec() {
    let lab = lab("template");
    let hooks = lab.folder.path().join("hooks/shelf");
    std::fs::create_dir(&hooks).unwrap();
    std::fs::write(hooks.join("sync.yaml"), TEMPLATE).unwrap();
    let definition = rolling(&lab).with("/spec/hooks/sync", json!({"webhook": {"path": "/shelf/sync"}}));
    let _controller = lab.run(&definition);
    let names = ["a", "b", "c"];
    lab.add_thing("t", json!({"x": "1", "parts": names}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    let thing = wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: it has no condition `Ready`");
    assert_eq!(thing["status"]["x"], "2");
    assert_eq!(parts(&lab, &names), ["2", "1", "1"]);
    lab.merge(&part_path(&lab, "c"), json!({"spec": {"x": "somebody's"}}));
    lab.wait_until("what somebody changed is put right", || parts(&lab, &["c"]) == ["1"]);
    let nurse = Nurse::new(&lab);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    drop(nurse);
    assert_eq!(parts(&lab, &names), ["2", "2", "2"]);
}
