//! `--namespace`: what is outside is not looked at, and a Role is enough.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rolling::stage;
use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

/// A lab whose controllers may do everything in these namespaces, and nothing elsewhere.
fn lab(subject: &str, hook: &Hook) -> (Lab, String) {
    let mut lab = Lab::new(subject);
    let other = lab.plane.namespace(&format!("{subject}-other"));
    lab.write_definitions(&[&lab.definition().config_maps().sync(hook)]);
    lab.user = lab.plane.account(&lab.namespace, "narrow");
    for namespace in [&lab.namespace, &other] {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "narrow"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "narrow"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "narrow"},
            "subjects": [{"kind": "ServiceAccount", "namespace": lab.namespace, "name": "narrow"}],
        });
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        lab.plane.create(&format!("{path}/roles"), &role);
        lab.plane.create(&format!("{path}/rolebindings"), &binding);
    }
    (lab, other)
}

fn add(lab: &Lab, namespace: &str, name: &str) {
    let path = format!("/apis/{}/namespaces/{namespace}/things", lab.api_version());
    lab.plane.create(&path, &lab.thing_with(name, json!({"children": [config_map(name, "1")]})));
}

fn config_map_in(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}

#[test]
fn role_in_each_namespace_is_enough() {
    let hook = Hook::from_spec();
    let (lab, other) = lab("scope", &hook);
    let outside = lab.plane.namespace("scope-outside");
    add(&lab, &lab.namespace, "a");
    add(&lab, &outside, "o");
    let controller = lab.start(&["--namespace", &lab.namespace, "--namespace", &other]);
    lab.wait(&config_map_in(&lab.namespace, "a"), "what was there is taken up", |_| true);
    add(&lab, &other, "b");
    lab.wait(&config_map_in(&other, "b"), "what comes in the other, too", |_| true);
    lab.plane.delete(&config_map_in(&other, "b"));
    lab.wait(&config_map_in(&other, "b"), "its child is watched", |_| true);
    lab.plane.delete(&config_map_in(&lab.namespace, "a"));
    lab.wait(&config_map_in(&lab.namespace, "a"), "and so is the first one's", |_| true);
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.plane.get(&config_map_in(&outside, "o")), None);
    assert!(hook.calls_for("o").is_empty());
    // Nothing was asked for that the Roles do not give.
    let refused: Vec<Value> = lab.plane.requests_of(&lab.user);
    let refused: Vec<_> = refused.iter().filter(|event| event["responseStatus"]["code"] == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(!controller.log().contains("WARN"), "{}", controller.log());
}

#[test]
fn restart_within_namespaces_only_lists() {
    let hook = Hook::from_spec();
    let (lab, other) = lab("scoped", &hook);
    for number in 0..6 {
        add(&lab, if number % 2 == 0 { &lab.namespace } else { &other }, &format!("t{number}"));
    }
    let flags = ["--namespace", &lab.namespace, "--namespace", &other];
    let controller = lab.start(&flags);
    lab.wait(&config_map_in(&other, "t5"), "the last is made", |_| true);
    lab.wait_quiet(&hook, Duration::from_secs(1));
    controller.kill();
    let (writes, calls) = (lab.writes().len(), hook.count());
    let _controller = lab.start(&flags);
    lab.wait_until("each is visited", || hook.count() >= calls + 6);
    lab.wait_quiet(&hook, Duration::from_secs(1));
    assert_eq!(lab.writes()[writes..], [""; 0]);
}

#[test]
fn rollouts_keep_within_namespaces_too() {
    let hook = Hook::from_spec();
    let (lab, other) = lab("scoperoll", &hook);
    stage::define_revisions(&lab);
    let mut definition = lab.definition().child("v1", "configmaps", "RollingInPlace").sync(&hook);
    definition.0["spec"]["parentResource"]["revisionHistory"] = json!({"fieldPaths": ["spec.children"]});
    lab.write_definitions(&[&definition]);
    add(&lab, &other, "b");
    let controller = lab.start(&["--namespace", &lab.namespace, "--namespace", &other]);
    lab.wait(&config_map_in(&other, "b"), "it is made", |_| true);
    let thing = format!("/apis/{}/namespaces/{other}/things/b", lab.api_version());
    lab.merge(&thing, json!({"spec": {"children": [config_map("b", "2")]}}));
    lab.wait(&config_map_in(&other, "b"), "it is moved", |map| map["data"] == config_map("b", "2")["data"]);
    let thing = stage::wait_updated(&lab, &thing, "OnLatestRevision", "");
    assert_eq!(stage::kept(&lab, &thing).len(), 1);
    let refused = lab.plane.requests_of(&lab.user);
    let refused: Vec<_> = refused.iter().filter(|event| event["responseStatus"]["code"] == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(!controller.log().contains("WARN"), "{}", controller.log());
}

#[test]
fn parents_without_namespaces_are_refused() {
    let hook = Hook::from_spec();
    let (lab, _other) = lab("unscoped", &hook);
    let mut crd = lab.kind("globes", "Globe");
    crd["spec"]["scope"] = json!("Cluster");
    lab.define_kind(&crd);
    let definition = lab.definition().with("/spec/parentResource/resource", json!("globes")).sync(&hook);
    lab.write_definitions(&[&definition]);
    let controller = lab.start(&["--namespace", &lab.namespace]);
    let expected =
        format!("`globes` have no namespace, and only namespaces are looked at: {}", lab.namespace);
    lab.wait_until("it is said", || controller.log().contains(&expected));
}
