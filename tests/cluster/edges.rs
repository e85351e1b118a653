//! Where merges of children have gone wrong: lists, types, nulls, and what a hook hands on that it was shown.

use serde_json::{Value, json};

use crate::support::hook::{Call, Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::{config_map, service};

#[test]
fn one_port_for_two_protocols_is_two_items() {
    let lab = Lab::new("dns");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().child("v1", "services", "InPlace").sync(&hook));
    let mut dns = service("dns", 53);
    let port = |name: &str, protocol: &str| json!({"name": name, "port": 53, "protocol": protocol});
    dns["spec"]["ports"] = json!([port("udp", "UDP"), port("tcp", "TCP")]);
    lab.add_thing("t", json!({"children": [dns]}));
    let path = lab.path("v1", "services", "dns");
    let protocols = |dns: &Value| {
        let ports = dns["spec"]["ports"].as_array().unwrap().iter();
        ports.map(|port| port["protocol"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let live = lab.wait(&path, "it is made", |_| true);
    assert_eq!(protocols(&live), ["UDP", "TCP"]);
    lab.expect_silence(&hook, SILENCE);
    dns["spec"]["ports"] = json!([port("udp", "UDP")]);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [dns]}}));
    lab.wait(&path, "one is gone", |dns| protocols(dns) == ["UDP"]);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn port_of_an_adopted_service_is_renumbered_and_not_doubled() {
    let lab = Lab::new("renumbered");
    let hook = Hook::from_spec();
    let mut entry = service("e", 80);
    entry["metadata"]["labels"] = json!({"app": "e"});
    let path = lab.path("v1", "services", "e");
    let before = lab.plane.create(&lab.path("v1", "services", ""), &entry);
    let definition = lab.definition().with("/spec/generateSelector", json!(false));
    let _controller = lab.run(&definition.child("v1", "services", "InPlace").sync(&hook));
    let selector = json!({"matchLabels": {"app": "e"}});
    entry["spec"]["ports"][0]["port"] = json!(81);
    lab.add_thing("t", json!({"selector": selector, "children": [entry]}));
    let ports = |entry: &Value| {
        let ports = entry["spec"]["ports"].as_array().unwrap().iter();
        ports.map(|port| port["port"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let live = lab.wait(&path, "it has the other port", |entry| ports(entry).contains(&81));
    assert_eq!(ports(&live), [81]);
    assert_eq!(live["metadata"]["uid"], before["metadata"]["uid"]);
    lab.wait_synced(&lab.thing("t"));
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn value_of_another_type_is_taken_whatever_was_there() {
    let lab = Lab::new("types");
    lab.define_kind(&lab.kind("boxes", "Box"));
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().child(&lab.api_version(), "boxes", "InPlace").sync(&hook));
    let a_box = |holds: &Value| {
        json!({
            "apiVersion": lab.api_version(), "kind": "Box", "metadata": {"name": "b"}, "spec": {"holds": holds},
        })
    };
    let path = lab.path(&lab.api_version(), "boxes", "b");
    lab.add_thing("t", json!({"children": [a_box(&json!({"deep": {"er": 1}}))]}));
    lab.wait(&path, "it is made", |_| true);
    for value in [
        json!("text"),
        json!([{"name": "a"}]),
        json!(5),
        json!({"deep": "text"}),
        json!(true),
        json!(["a", 1]),
    ] {
        lab.merge(&lab.thing("t"), json!({"spec": {"children": [a_box(&value)]}}));
        lab.wait(&path, &format!("it holds {value}"), |live| live["spec"]["holds"] == value);
    }
    lab.expect_silence(&hook, SILENCE);
}

// B40, B41, B43: null and absent are one, 1.0 and 1 are, and what the server keeps in another form is no difference.
#[test]
fn same_things_in_other_words_are_written_once_and_recreate_nothing() {
    let lab = Lab::new("words");
    lab.define_kind(&lab.kind("boxes", "Box"));
    let hook = Hook::from_spec();
    let definition = ["configmaps", "secrets", "services"]
        .into_iter()
        .fold(lab.definition(), |definition, plural| definition.child("v1", plural, "Recreate"));
    let definition = definition.child(&lab.api_version(), "boxes", "Recreate").sync(&hook);
    let controller = lab.run(&definition.with("/spec/resyncPeriodSeconds", json!(1)));
    let mut map = config_map("m", "1");
    map["metadata"]["annotations"] = json!({"kept": "1", "none": null});
    map["binaryData"] = Value::Null;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "text"},
    });
    let mut entry = service("e", 80);
    entry["spec"]["ports"][0]["targetPort"] = json!(80.0);
    entry["spec"]["ports"][0]["port"] = json!(80.0);
    entry["spec"]["clusterIP"] = Value::Null;
    let a_box = json!({
        "apiVersion": lab.api_version(), "kind": "Box", "metadata": {"name": "b"},
        "spec": {"whole": 1.0, "half": 0.5, "large": 9007199254740993_u64, "none": null, "list": [1.0, {"n": null}]},
    });
    lab.add_thing("t", json!({"children": [map, secret, entry, a_box]}));
    lab.wait_synced(&lab.thing("t"));
    let calls = hook.count();
    lab.wait_until("it was looked at three times more", || hook.count() >= calls + 3);
    controller.kill();
    let calls = hook.count();
    let _controller = lab.start(&[]);
    lab.wait_until("and three times more", || hook.count() >= calls + 3);
    let mut writes = lab.writes();
    writes.sort();
    assert_eq!(
        writes,
        [
            "patch boxes b",
            "patch configmaps m",
            "patch secrets s",
            "patch services e",
            "patch things/status t"
        ]
    );
    let live = lab.get(&lab.path(&lab.api_version(), "boxes", "b"));
    assert_eq!(live["spec"]["large"], 9007199254740993_u64);
}

// A hook that changes what it was shown and hands it back: with its status, its record, its owners, its version.
#[test]
fn child_handed_back_as_it_was_shown_is_written_for_its_change_alone() {
    let lab = Lab::new("echo");
    let hook = Hook::new(|call: &Call| {
        let value = call.spec()["value"].clone();
        let shown = &call.request["children"]["StatefulSet.apps/v1"]["s"];
        let mut child = match shown {
            Value::Null => crate::support::objects::stateful_set("s", "image:1"),
            shown => shown.clone(),
        };
        child["metadata"]["annotations"]["value"] = value;
        child["metadata"]["annotations"]["metacontroller.k8s.io/last-applied-configuration"] = json!("{}");
        child["status"] = json!({"replicas": 99});
        json!({"children": [child], "status": {}})
    });
    let definition = lab.definition().child("apps/v1", "statefulsets", "InPlace").sync(&hook);
    let _controller = lab.run(&definition);
    lab.add_thing("t", json!({"value": "1"}));
    let path = lab.path("apps/v1", "statefulsets", "s");
    let live = lab.wait(&path, "it is ready", |set| set["status"]["readyReplicas"] == 1);
    assert_ne!(live["status"]["replicas"], 99, "a child's status is its own controller's");
    assert_eq!(live["metadata"]["annotations"], json!({"value": "1"}));
    lab.wait_quiet(&hook, SILENCE);
    lab.merge(&lab.thing("t"), json!({"spec": {"value": "2"}}));
    let after = lab.wait(&path, "it is changed", |set| set["metadata"]["annotations"]["value"] == "2");
    assert_eq!(after["metadata"]["generation"], live["metadata"]["generation"]);
    assert_eq!(after["metadata"]["annotations"], json!({"value": "2"}));
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn child_in_another_version_of_its_kind_than_declared_is_refused_and_nothing_is_lost() {
    let lab = Lab::new("version");
    let hook = Hook::from_spec();
    let _controller =
        lab.run(&lab.definition().child("autoscaling/v2", "horizontalpodautoscalers", "InPlace").sync(&hook));
    let scaler = |version: &str| {
        json!({
            "apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {
                "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            },
        })
    };
    lab.add_thing("t", json!({"children": [scaler("autoscaling/v2")]}));
    let path = lab.path("autoscaling/v2", "horizontalpodautoscalers", "h");
    let before = lab.wait(&path, "it is made", |_| true);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [scaler("autoscaling/v1")]}}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert!(message.contains("autoscaling/v1") && message.contains("HorizontalPodAutoscaler"), "{message}");
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.get(&path)["metadata"]["uid"], before["metadata"]["uid"]);
}

#[test]
fn child_without_a_name_of_its_own_is_refused_by_name() {
    let lab = Lab::new("nameless");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}});
    let answer = json!({"children": [child], "status": {}}).to_string();
    hook.set(move |_| Reply::Text(200, answer.clone()));
    lab.add_thing("t", json!({}));
    let message = lab.wait_refused(&lab.thing("t"), "HookRefused");
    assert!(message.contains("generateName") || message.contains("has no `name`"), "{message}");
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.created(), [""; 0]);
    hook.set(from_spec);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "1")]}}));
    lab.wait_synced(&lab.thing("t"));
}
