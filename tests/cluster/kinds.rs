//! Kinds that come late, go, or never come.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

fn part(lab: &Lab, name: &str) -> Value {
    json!({"apiVersion": lab.api_version(), "kind": "Part", "metadata": {"name": name}, "spec": {"n": 1}})
}

// B16, in small
#[test]
fn child_kind_that_comes_later_is_waited_for_while_the_other_children_are_made() {
    let lab = Lab::new("latechild");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().child(&lab.api_version(), "parts", "InPlace");
    let controller = lab.run(&definition.sync(&hook));
    lab.add_thing("t", json!({"children": [part(&lab, "p"), config_map("a", "1")], "status": {"mine": 1}}));
    let message = lab.wait_refused(&lab.thing("t"), "WaitingForChild");
    let absent = format!("the API server has no `parts` in `{}`", lab.api_version());
    assert_eq!(message, format!("Part cannot be written: {absent}"));
    lab.get(&lab.config_map("a"));
    assert_eq!(lab.get(&lab.thing("t"))["status"]["mine"], 1);
    lab.define_kind(&lab.kind("parts", "Part"));
    let began = Instant::now();
    lab.wait(&lab.path(&lab.api_version(), "parts", "p"), "the child is made", |_| true);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    lab.wait_synced(&lab.thing("t"));
    let log = controller.log();
    assert!(!log.contains("will retry"), "waiting is no error");
}

// B103
#[test]
fn parent_kind_that_comes_later_is_taken_up() {
    let lab = Lab::bare("lateparent");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.wait_quiet(&hook, SILENCE);
    lab.define_kind(&lab.kind("things", "Thing"));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    let began = Instant::now();
    lab.wait(&lab.config_map("a"), "the child is made", |_| true);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    lab.wait_synced(&lab.thing("t"));
}

// B103
#[test]
fn kinds_deleted_and_defined_anew_are_taken_up_again() {
    let lab = Lab::new("again");
    lab.define_kind(&lab.kind("parts", "Part"));
    let hook = Hook::from_spec();
    let definition = lab.definition().child(&lab.api_version(), "parts", "InPlace").config_maps();
    let _controller = lab.run(&definition.sync(&hook));
    let children = [part(&lab, "p"), config_map("a", "1")];
    let path = lab.path(&lab.api_version(), "parts", "p");
    lab.add_thing("t", json!({"children": children}));
    lab.wait(&path, "the child is made", |_| true);
    lab.wait_synced(&lab.thing("t"));

    lab.remove_kind("parts");
    lab.wait_refused(&lab.thing("t"), "WaitingForChild");
    lab.define_kind(&lab.kind("parts", "Part"));
    lab.wait(&path, "the child is made again", |_| true);
    lab.wait_synced(&lab.thing("t"));

    lab.remove_kind("things");
    lab.define_kind(&lab.kind("things", "Thing"));
    lab.add_thing("t2", json!({"children": [config_map("b", "1")]}));
    lab.wait(&lab.config_map("b"), "the new parent's child is made", |_| true);
    lab.wait_synced(&lab.thing("t2"));
}

// B25
#[test]
fn definition_that_cannot_work_leaves_the_others_alone() {
    let lab = Lab::new("two");
    lab.define_kind(&lab.kind("others", "Other"));
    let hook = Hook::from_spec();
    let good = lab.definition().config_maps().sync(&hook);
    let name = |suffix: &str| format!("{}-{suffix}", lab.namespace);
    let no_parent = lab.definition().named(&name("no-parent")).config_maps().sync(&hook);
    let no_parent = no_parent.with("/spec/parentResource/resource", json!("missing"));
    let no_child = lab.definition().named(&name("no-child")).sync(&hook);
    let no_child = no_child
        .with("/spec/parentResource/resource", json!("others"))
        .child(&lab.api_version(), "missing", "InPlace")
        .child("missing.example.com/v1", "things", "InPlace");
    lab.write_definitions(&[&no_parent, &no_child, &good]);
    let controller = lab.start(&[]);
    let other = json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}, "spec": {"children": []}});
    let others = lab.path(&lab.api_version(), "others", "");
    lab.plane.create(&others, &other);
    let message = lab.wait_refused(&format!("{others}/o"), "WaitingForKind");
    let missing = format!("the API server has no `missing` in `{}`", lab.api_version());
    assert!(message.starts_with(&missing), "{message}");
    for round in 0..3 {
        let name = format!("t{round}");
        lab.add_thing(&name, json!({"children": [config_map(&name, "1")]}));
        let began = Instant::now();
        lab.wait_synced(&lab.thing(&name));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    let log = controller.log();
    let told = log.lines().filter(|line| line.contains("child kind is not there, waiting for it"));
    assert_eq!(told.count(), 2, "{log}");
}

// B104. On a control plane of its own: others' namespaces could not be deleted meanwhile.
#[test]
fn broken_aggregated_api_holds_up_only_those_that_need_it() {
    let lab = Lab::apart("aggregated");
    lab.define_kind(&lab.kind("others", "Other"));
    let far = format!("far.{}", lab.group);
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = format!("v1.{far}");
    let nobody = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": service},
        "spec": {
            "group": far, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"namespace": lab.namespace, "name": "nobody"}, "insecureSkipTLSVerify": true,
        },
    });
    lab.plane.create(services, &nobody);
    let api = format!("/apis/{far}/v1");
    lab.wait_until("the group is broken", || lab.plane.request("GET", &api, None).unwrap().status == 503);

    let hook = Hook::from_spec();
    let good = lab.definition().config_maps().sync(&hook);
    let bad = lab.definition().named(&format!("{}-bad", lab.namespace)).config_maps().sync(&hook);
    let bad = bad.with("/spec/parentResource/resource", json!("others"));
    let bad = bad.child(&format!("{far}/v1"), "parts", "InPlace");
    lab.write_definitions(&[&bad, &good]);
    let controller = lab.start(&[]);
    let part = json!({"apiVersion": format!("{far}/v1"), "kind": "Part", "metadata": {"name": "p"}});
    let other = json!({
        "apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}, "spec": {"children": [part]},
    });
    let others = lab.path(&lab.api_version(), "others", "");
    lab.plane.create(&others, &other);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.config_map("a"), "the good one works", |_| true);
    lab.wait_synced(&lab.thing("t"));
    let message = lab.wait_refused(&format!("{others}/o"), "WaitingForKind");
    assert!(message.contains(&format!("looking `{far}/v1` up: ")), "{message}");
    assert!(hook.calls_for("o").is_empty(), "a hook is not asked with half of the children");
    let began = Instant::now();
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("b", "1")]}}));
    lab.wait(&lab.config_map("b"), "the good one works on", |_| true);
    lab.wait_gone(&lab.config_map("a"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());

    // The group comes to be served: by the API server itself this time.
    lab.plane.delete(&format!("{services}/{service}"));
    let crd = lab.kind("parts", "Part").to_string().replace(&lab.group, &far);
    lab.define_kind(&serde_json::from_str(&crd).unwrap());
    lab.wait(&lab.path(&format!("{far}/v1"), "parts", "p"), "its child is made", |_| true);
    lab.wait_synced(&format!("{others}/o"));
    drop(controller);
    lab.plane.stop();
}
