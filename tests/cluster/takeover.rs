//! A cluster that Metacontroller has run is taken over while it lives, and given back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Definition, Lab, SILENCE};
use crate::support::objects::{config_map, service, stateful_set};
use crate::support::peer::{LAST_APPLIED, Peer, Strategy};

/// Plural, method, and what is wanted in the first place and later, with a field less.
fn kinds() -> [(&'static str, &'static str, Value, Value); 3] {
    let mut set = stateful_set("s", "image:1");
    set["metadata"]["annotations"] = json!({"kept": "1", "dropped": "1"});
    set["spec"]["minReadySeconds"] = json!(0);
    let mut less_of_set = set.clone();
    less_of_set["metadata"]["annotations"] = json!({"kept": "1"});
    less_of_set["spec"].as_object_mut().unwrap().remove("minReadySeconds");
    let mut entry = service("e", 80);
    entry["metadata"]["labels"] = json!({"kept": "1", "dropped": "1"});
    let second = json!({"name": "second", "port": 81});
    entry["spec"]["ports"].as_array_mut().unwrap().push(second);
    let mut less_of_entry = service("e", 80);
    less_of_entry["metadata"]["labels"] = json!({"kept": "1"});
    let mut map = config_map("m", "1");
    map["data"]["dropped"] = json!("1");
    [
        ("statefulsets", "InPlace", set, less_of_set),
        ("services", "InPlace", entry, less_of_entry),
        ("configmaps", "Recreate", map, config_map("m", "1")),
    ]
}

fn definition(lab: &Lab, hook: &Hook) -> Definition {
    let definition = kinds().into_iter().fold(lab.definition(), |definition, (plural, method, first, _)| {
        definition.child(first["apiVersion"].as_str().unwrap(), plural, method)
    });
    definition.sync(hook).finalize(hook)
}

fn labelled(mut child: Value, parent: &Value) -> Value {
    child["metadata"]["labels"]["controller-uid"] = parent["metadata"]["uid"].clone();
    child
}

/// What must stay the same of every child and pod, whoever runs.
fn identities(lab: &Lab) -> BTreeMap<String, (Value, Value)> {
    let mut found = BTreeMap::new();
    for (api_version, plural) in
        [("apps/v1", "statefulsets"), ("v1", "services"), ("v1", "configmaps"), ("v1", "pods")]
    {
        for item in lab.get(&lab.path(api_version, plural, ""))["items"].as_array().unwrap() {
            let metadata = &item["metadata"];
            // A pod's own generation counts what kubelet does too.
            let generation = if plural == "pods" { &Value::Null } else { &metadata["generation"] };
            let name = format!("{plural} {}", metadata["name"].as_str().unwrap());
            found.insert(name, (metadata["uid"].clone(), generation.clone()));
        }
    }
    found.remove("configmaps kube-root-ca.crt");
    found
}

struct Given {
    lab: Lab,
    hook: Hook,
    parent: Value,
    before: BTreeMap<String, (Value, Value)>,
}

const USUAL: &str = "metacontroller";

/// A parent with everything that the peer makes for it, by these strategies in turn, applying under this name.
fn given(subject: &str, strategies: &[Strategy], applier: &'static str) -> Given {
    let lab = Lab::new(subject);
    let hook = Hook::from_spec();
    let children: Vec<Value> = kinds().into_iter().map(|(_, _, first, _)| first).collect();
    let status = json!({"kept": 1, "dropped": {"deep": 1}});
    let parent = lab.add_thing("t", json!({"children": children, "status": status}));
    for strategy in strategies {
        peer_syncs(&Peer { applier, ..Peer::of(&lab, *strategy, &parent) }, &parent);
    }
    let peer = Peer::of(&lab, strategies[0], &parent);
    peer.finalizer(&lab.thing("t"), &format!("metacontroller.io/compositecontroller-{}", lab.namespace));
    peer.status(&lab.thing("t"), status);
    let set = lab.path("apps/v1", "statefulsets", "s");
    lab.wait(&set, "it is ready", |set| set["status"]["readyReplicas"] == 1);
    let before = identities(&lab);
    Given { lab, hook, parent, before }
}

/// What the peer does at a visit of the parent, child by child.
fn peer_syncs(peer: &Peer, parent: &Value) -> Vec<&'static str> {
    let children = kinds().into_iter();
    children.map(|(plural, method, first, _)| peer.child(plural, method, &labelled(first, parent))).collect()
}

impl Given {
    /// Waits until the controller has seen its parent and has done what there is to do.
    fn settles(&self) {
        self.lab.wait_until("the hook is asked", || self.hook.count() > 0);
        self.lab.wait_quiet(&self.hook, SILENCE);
    }

    /// No child was made or made anew, and no pod was started again.
    fn nothing_was_disturbed(&self) {
        assert_eq!(identities(&self.lab), self.before);
        let writes = self.lab.writes();
        let harsh = |write: &&String| write.starts_with("create") || write.starts_with("delete");
        assert_eq!(writes.iter().find(harsh), None, "{writes:?}");
    }

    fn want_less(&self) {
        let less: Vec<Value> = kinds().into_iter().map(|(_, _, _, less)| less).collect();
        let spec = json!({"spec": {"children": less, "status": {"dropped": null}}});
        self.lab.merge(&self.lab.thing("t"), spec);
    }

    /// What is no longer wanted is gone everywhere.
    fn less_is_there(&self) {
        let lab = &self.lab;
        let status = lab.wait(&lab.thing("t"), "the status has lost a field", |thing| {
            thing["status"]["kept"] == 1 && thing["status"].get("dropped").is_none()
        });
        assert_eq!(status["status"]["observedGeneration"], status["metadata"]["generation"]);
        lab.wait(&lab.path("apps/v1", "statefulsets", "s"), "the set has lost its fields", |set| {
            set["metadata"]["annotations"] == json!({"kept": "1"})
        });
        lab.wait(&lab.path("v1", "services", "e"), "the service has lost its port and label", |entry| {
            entry["spec"]["ports"].as_array().unwrap().len() == 1
                && entry["metadata"]["labels"].get("dropped").is_none()
        });
        lab.wait(&lab.config_map("m"), "the map has lost its key", |map| map["data"] == json!({"key": "1"}));
    }
}

fn is_taken_over(subject: &str, strategies: &[Strategy], applier: &'static str) {
    let given = given(subject, strategies, applier);
    let lab = &given.lab;
    lab.write_definitions(&[&definition(lab, &given.hook)]);
    let controller = lab.start(&["--field-manager", applier]);
    given.settles();
    given.nothing_was_disturbed();
    controller.kill();
    let (writes, calls) = (lab.writes(), given.hook.count());
    let _controller = lab.start(&["--field-manager", applier]);
    lab.wait_until("the hook is asked", || given.hook.count() > calls);
    lab.wait_quiet(&given.hook, SILENCE);
    assert_eq!(lab.writes(), writes, "a second start has nothing to take over");

    given.want_less();
    given.less_is_there();
    let set = &given.before["statefulsets s"];
    assert_eq!(identities(lab)["statefulsets s"].0, set.0);
    assert_eq!(identities(lab)["pods s-0"], given.before["pods s-0"], "the pod runs on");

    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    assert!(given.hook.count_of("finalize") > 0, "the finalizer was the one that was there");
}

#[test]
fn cluster_of_dynamic_apply_is_taken_over() {
    is_taken_over("fromdynamic", &[Strategy::DynamicApply], USUAL);
}

#[test]
fn cluster_of_server_side_apply_is_taken_over() {
    is_taken_over("fromapply", &[Strategy::ServerSideApply], USUAL);
}

#[test]
fn cluster_of_one_strategy_after_the_other_is_taken_over() {
    is_taken_over("fromboth", &[Strategy::DynamicApply, Strategy::ServerSideApply], USUAL);
}

#[test]
fn cluster_applied_under_another_name_is_taken_over_under_it() {
    is_taken_over("fromnamed", &[Strategy::DynamicApply, Strategy::ServerSideApply], "mine");
}

#[test]
fn cluster_goes_back_to_server_side_apply_and_comes_again() {
    goes_back("backapply", Strategy::ServerSideApply, ["PATCH", "PATCH", ""]);
}

// The peer creates a child anew under Recreate that lacks its record, as it does after an adoption of its own.
#[test]
fn cluster_goes_back_to_dynamic_apply_and_comes_again() {
    goes_back("backdynamic", Strategy::DynamicApply, ["PUT", "PUT", "DELETE"]);
}

fn goes_back(subject: &str, strategy: Strategy, expected: [&str; 3]) {
    let given = given(subject, &[strategy], USUAL);
    let lab = &given.lab;
    let controller = lab.run(&definition(lab, &given.hook));
    given.settles();
    assert_eq!(controller.terminate().code(), Some(0));

    let thing = lab.get(&lab.thing("t"));
    let finalizer = format!("metacontroller.io/compositecontroller-{}", lab.namespace);
    assert_eq!(thing["metadata"]["finalizers"], json!([finalizer]));
    assert_eq!(thing["status"], json!({"kept": 1, "dropped": {"deep": 1}, "observedGeneration": 1}));
    for (plural, _, first, _) in kinds() {
        let (api_version, name) = (first["apiVersion"].as_str().unwrap(), &first["metadata"]["name"]);
        let child = lab.get(&lab.path(api_version, plural, name.as_str().unwrap()));
        assert_eq!(child["metadata"]["labels"]["controller-uid"], given.parent["metadata"]["uid"]);
        let owners = json!([Peer::of(lab, strategy, &given.parent).owner]);
        assert_eq!(child["metadata"]["ownerReferences"], owners);
    }
    assert_eq!(peer_syncs(&Peer::of(lab, strategy, &given.parent), &given.parent), expected);
    let mut now = identities(lab);
    let mut before = given.before.clone();
    if expected[2] == "DELETE" {
        // It writes a StatefulSet each time, since the server adds to the claims' templates.
        assert_eq!(peer_syncs(&Peer::of(lab, strategy, &given.parent), &given.parent), ["PUT", "", "POST"]);
        now.remove("configmaps m");
        before.remove("configmaps m");
    }
    assert_eq!(now, before, "nothing else was made anew, and no generation counted up");
    if strategy == Strategy::DynamicApply {
        let set = lab.get(&lab.path("apps/v1", "statefulsets", "s"));
        assert!(set["metadata"]["annotations"][LAST_APPLIED].is_string());
    }

    let given = Given { before: identities(lab), ..given };
    let calls = given.hook.count();
    let _controller = given.lab.start(&[]);
    given.lab.wait_until("the hook is asked", || given.hook.count() > calls);
    given.lab.wait_quiet(&given.hook, SILENCE);
    given.nothing_was_disturbed();
    given.want_less();
    given.less_is_there();
}

fn decorator(lab: &Lab, hook: &Hook) -> Definition {
    lab.decorator(lab.things()).sync(hook).finalize(hook)
}

fn decorator_is_taken_over(subject: &str, strategy: Strategy) {
    let lab = Lab::new(subject);
    let hook = Hook::new(|call| match call.hook.as_str() {
        "finalize" => json!({"attachments": [], "finalized": true}),
        _ => json!({"labels": {"seen": "yes"}, "attachments": [call.spec()["attachment"]]}),
    });
    let mut map = config_map("m", "1");
    map["data"]["dropped"] = json!("1");
    let mut thing = lab.thing_with("t", json!({ "attachment": map }));
    thing["metadata"]["labels"] = json!({"seen": "yes"});
    let target = lab.plane.create(&lab.thing(""), &thing);
    let peer = Peer::of(&lab, strategy, &target);
    map["metadata"]["annotations"] = json!({"metacontroller.k8s.io/decorator-controller": lab.namespace});
    peer.child("configmaps", "InPlace", &map);
    peer.finalizer(&lab.thing("t"), &format!("metacontroller.io/decoratorcontroller-{}", lab.namespace));
    let before = lab.get(&lab.config_map("m"));

    let _controller = lab.run(&decorator(&lab, &hook));
    lab.wait_until("the hook is asked", || hook.count() > 0);
    lab.wait_quiet(&hook, SILENCE);
    let live = lab.get(&lab.config_map("m"));
    assert_eq!(live["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(live["metadata"]["annotations"], map["metadata"]["annotations"]);
    assert_eq!(live["data"], map["data"]);
    assert!(lab.writes().iter().all(|write| write == "patch configmaps m"), "{:?}", lab.writes());
    let less = json!({"spec": {"attachment": {"data": {"dropped": null}}}});
    lab.merge(&lab.thing("t"), less);
    lab.wait(&lab.config_map("m"), "the key is gone", |map| map["data"] == json!({"key": "1"}));

    assert_eq!(
        peer.child("configmaps", "InPlace", &{
            map["data"].as_object_mut().unwrap().remove("dropped");
            map
        }),
        if strategy == Strategy::DynamicApply { "PUT" } else { "PATCH" },
        "it would find it as its own"
    );
    assert_eq!(lab.get(&lab.config_map("m"))["metadata"]["uid"], before["metadata"]["uid"]);
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
}

#[test]
fn decorator_of_dynamic_apply_is_taken_over() {
    decorator_is_taken_over("decdynamic", Strategy::DynamicApply);
}

#[test]
fn decorator_of_server_side_apply_is_taken_over() {
    decorator_is_taken_over("decapply", Strategy::ServerSideApply);
}

// The record of what was applied last is worth nothing here, and the child all the same.
#[test]
fn record_that_does_not_read_is_no_reason_to_make_a_child_anew() {
    let lab = Lab::new("corrupt");
    let hook = Hook::from_spec();
    let parent = lab.add_thing("t", json!({"children": [config_map("a", "1"), config_map("b", "2")]}));
    let peer = Peer::of(&lab, Strategy::DynamicApply, &parent);
    for name in ["a", "b"] {
        peer.child("configmaps", "Recreate", &labelled(config_map(name, "1"), &parent));
        let record = json!({"metadata": {"annotations": {LAST_APPLIED: "{"}}});
        lab.merge(&lab.config_map(name), record);
    }
    let uid = |name: &str| lab.get(&lab.config_map(name))["metadata"]["uid"].clone();
    let before = [uid("a"), uid("b")];
    let _controller = lab.run(&lab.definition().child("v1", "configmaps", "Recreate").sync(&hook));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(uid("a"), before[0], "it is as wanted");
    assert_ne!(uid("b"), before[1], "it was not");
    for name in ["a", "b"] {
        assert_eq!(lab.get(&lab.config_map(name))["metadata"]["annotations"], Value::Null);
    }
    assert_eq!(lab.get(&lab.config_map("b"))["data"]["key"], "2");
}

// An adopted child has no record at all.
#[test]
fn adopted_child_as_wanted_is_not_made_anew() {
    let lab = Lab::new("adopted");
    let hook = Hook::from_spec();
    let mut orphan = config_map("a", "1");
    orphan["metadata"]["labels"] = json!({"app": "a"});
    orphan["data"]["theirs"] = json!("1");
    let before = lab.plane.create(&lab.config_map(""), &orphan);
    orphan["data"].as_object_mut().unwrap().remove("theirs");
    let definition = lab.definition().with("/spec/generateSelector", json!(false));
    let _controller = lab.run(&definition.child("v1", "configmaps", "Recreate").sync(&hook));
    lab.add_thing("t", json!({"selector": {"matchLabels": {"app": "a"}}, "children": [orphan]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let live = lab.get(&lab.config_map("a"));
    assert_eq!(live["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(live["metadata"]["ownerReferences"][0]["kind"], "Thing");
    assert_eq!(live["data"], json!({"key": "1", "theirs": "1"}));
}
