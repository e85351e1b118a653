//! Hooks that answer wrongly, late or not at all: the parent says so, nothing is deleted, others go on.

use std::time::Duration;

use serde_json::json;

use crate::support::hook::{Call, Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE, synced};
use crate::support::objects::{config_map, service};

// B26, B27, B29, B49
#[test]
fn wrong_answer_deletes_nothing_and_is_shown_on_the_parent() {
    let lab = Lab::new("wrong");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")], "round": 0}));
    lab.wait_synced(&lab.thing("t"));
    let uid = lab.get(&lab.config_map("a"))["metadata"]["uid"].clone();
    let twice = json!({"children": [config_map("b", "1"), config_map("b", "2")]}).to_string();
    let none = "sync: the answer has no `children`; expected: an object with `children`, `status`, `resyncAfterSeconds`, `finalized`; hint: answer `\"children\": []` when none is wanted";
    let held = format!(
        "`children[1]` is `ConfigMap {}/b`, which the answer already holds; found: the first one is `children[0]`; hint: one child has one description: remove one or give it another name",
        lab.namespace
    );
    for (round, (answer, message)) in [
        ("", "sync: the answer is empty; expected: a JSON object"),
        ("null", none),
        ("5", "sync: the answer is `5`; expected: a JSON object"),
        (r#""s""#, "sync: the answer is the text `s`; expected: a JSON object"),
        ("[]", "sync: the answer is a list; expected: a JSON object"),
        ("{}", none),
        ("not json", "sync: the answer is not JSON: expected ident at line 1 column 2"),
        (r#"{"children": ["#, "sync: the answer is not JSON: EOF while parsing a list at line 1 column 14"),
        (r#"{"error": "x"}"#, none),
        (r#"{"chidlren": []}"#, "sync: unknown field `chidlren`; hint: did you mean `children`?"),
        (
            r#"{"children": null}"#,
            "sync: `children` is null; expected: a list; hint: answer `[]` when no child is wanted",
        ),
        (
            r#"{"children": {}}"#,
            "sync: `children` is an object; expected: a list; hint: answer `[]` when no child is wanted",
        ),
        (r#"{"children": [null]}"#, "sync: `children[0]` is null; expected: an object"),
        (r#"{"children": [{}]}"#, "sync: `children[0]` has no `apiVersion`"),
        (
            r#"{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}]}"#,
            "sync: `children[0].metadata` has no `name`",
        ),
        (&twice, &held),
        (r#"{"children": [], "status": 5}"#, "sync: `status` is `5`; expected: an object"),
        (
            r#"{"children": [], "resyncAfterSeconds": "soon"}"#,
            "sync: `resyncAfterSeconds` is the text `soon`; expected: a number",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let text = answer.to_owned();
        hook.set(move |_| Reply::Text(200, text.clone()));
        let touched = lab.merge(&lab.thing("t"), json!({"spec": {"round": round + 1}}));
        let generation = &touched["metadata"]["generation"];
        let parent = lab.wait(&lab.thing("t"), &format!("`{answer}` is refused"), |parent| {
            synced(parent).is_some_and(|condition| condition["observedGeneration"] == *generation)
        });
        let condition = synced(&parent).unwrap();
        assert_eq!((&condition["status"], &condition["message"]), (&json!("False"), &json!(message)));
        assert_eq!(lab.get(&lab.config_map("a"))["metadata"]["uid"], uid, "after `{answer}`");
    }
    hook.set(from_spec);
    lab.merge(&lab.thing("t"), json!({"spec": {"round": 99, "children": [config_map("a", "2")]}}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait(&lab.config_map("a"), "it is changed", |child| child["data"]["key"] == "2");
    assert_eq!(lab.get(&lab.config_map("a"))["metadata"]["uid"], uid);
}

#[test]
fn failing_hook_is_retried_while_other_parents_are_served() {
    let lab = Lab::new("fails");
    let hook = Hook::new(|call| match call.parent_name() {
        "bad" => Reply::Text(500, "out of order".into()),
        _ => from_spec(call).into(),
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("bad", json!({"children": [config_map("bad", "1")]}));
    let message = lab.wait_refused(&lab.thing("bad"), "HookUnavailable");
    assert_eq!(message, "sync: 500: out of order");
    for name in ["good1", "good2"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        lab.wait_synced(&lab.thing(name));
    }
    assert!(lab.plane.get(&lab.config_map("bad")).is_none());
    let tries = hook.calls_for("bad").len();
    lab.wait_until("it is tried again", || hook.calls_for("bad").len() > tries);
    hook.set(from_spec);
    lab.wait_synced(&lab.thing("bad"));
    lab.get(&lab.config_map("bad"));
}

// B31: as many as there are workers
#[test]
fn hooks_that_never_answer_hold_up_nobody_for_long() {
    let lab = Lab::new("hang");
    let hook = Hook::new(|call| match call.parent_name().starts_with("stuck") {
        true => Reply::Never,
        false => from_spec(call).into(),
    });
    let definition = lab.definition().config_maps().sync(&hook);
    let _controller = lab.run(&definition.with("/spec/hooks/sync/webhook/timeout", json!("1s")));
    for number in 0..8 {
        lab.add_thing(&format!("stuck{number}"), json!({"children": []}));
    }
    lab.wait_until("every worker waits", || hook.count() >= 8);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    for number in 0..8 {
        let message = lab.wait_refused(&lab.thing(&format!("stuck{number}")), "HookUnavailable");
        assert_eq!(message, "sync: no answer within 1s");
    }
}

// B30
#[test]
fn slow_hook_may_take_as_long_as_its_timeout_says() {
    let lab = Lab::new("slow");
    let hook = Hook::new(|call| Reply::Late(Duration::from_millis(10_500), from_spec(call)));
    let definition = lab.definition().sync(&hook);
    let _controller = lab.run(&definition.with("/spec/hooks/sync/webhook/timeout", json!("15s")));
    lab.add_thing("t", json!({"status": {"done": true}}));
    lab.wait(&lab.thing("t"), "the status is written", |thing| thing["status"]["done"] == true);
    assert_eq!(hook.count(), 1);
}

// B30, with one worker
#[test]
fn hook_slower_than_its_timeout_is_given_up_while_others_are_served() {
    let lab = Lab::new("slower");
    let late = |milliseconds| {
        move |call: &Call| match call.parent_name() {
            "slow" => Reply::Late(Duration::from_millis(milliseconds), from_spec(call)),
            _ => from_spec(call).into(),
        }
    };
    let hook = Hook::new(late(3_000));
    let definition = lab.definition().sync(&hook).with("/spec/hooks/sync/webhook/timeout", json!("1s"));
    lab.write_definitions(&[&definition]);
    let _controller = lab.start(&["--workers", "1"]);
    lab.add_thing("slow", json!({"status": {"done": true}}));
    let message = lab.wait_refused(&lab.thing("slow"), "HookUnavailable");
    assert_eq!(message, "sync: no answer within 1s");
    lab.add_thing("quick", json!({"status": {"done": true}}));
    lab.wait_synced(&lab.thing("quick"));
    assert!(synced(&lab.get(&lab.thing("slow"))).is_some());
    hook.set(late(500));
    lab.wait_synced(&lab.thing("slow"));
}

#[test]
fn busy_hook_says_when_to_come_back() {
    let lab = Lab::new("busy");
    let hook = Hook::new(|_| Reply::Busy(2));
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({"status": {"done": true}}));
    lab.wait_until("the hook is called", || hook.count() == 1);
    hook.set(from_spec);
    lab.wait(&lab.thing("t"), "the status is written", |thing| thing["status"]["done"] == true);
    let calls = hook.calls();
    let waited = calls[1].at - calls[0].at;
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    assert!(waited < Duration::from_secs(4), "{waited:?}");
}

// B85
#[test]
fn one_invalid_child_does_not_hold_back_the_others() {
    let lab = Lab::new("invalid");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().child("v1", "services", "InPlace").sync(&hook);
    let _controller = lab.run(&definition.with("/spec/resyncPeriodSeconds", json!(1)));
    let children = json!([config_map("a", "1"), service("b", 0), config_map("c", "1")]);
    lab.add_thing("t", json!({"children": children, "status": {"mine": 1}}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "applying Service {}/b: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive; spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            lab.namespace
        )
    );
    lab.get(&lab.config_map("a"));
    lab.get(&lab.config_map("c"));
    let events = format!("{}?fieldSelector=reason=SyncError", lab.path("v1", "events", ""));
    lab.wait(&events, "`kubectl describe` shows it", |events| {
        let shown = format!("Sync error: ChildRefused: {message}");
        events["items"].as_array().unwrap().iter().any(|event| {
            event["message"] == shown && event["type"] == "Warning" && event["involvedObject"]["name"] == "t"
        })
    });
    assert_eq!(lab.get(&lab.thing("t"))["status"]["mine"], 1, "the hook's status is written too");
    let calls = hook.count();
    lab.wait_until("three visits more", || hook.count() >= calls + 3);
    let refused: Vec<_> = lab.writes().into_iter().filter(|write| write.contains("services")).collect();
    assert_eq!(refused, ["patch services b -> 422"], "no retry storm");
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [service("b", 80)]}}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_gone(&lab.config_map("a"));
}

// B72
#[test]
fn list_with_the_same_port_twice_is_refused_by_its_path() {
    let lab = Lab::new("ports");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().child("apps/v1", "deployments", "InPlace").sync(&hook);
    let _controller = lab.run(&definition);
    let port = json!({"containerPort": 8080, "protocol": "TCP"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "main", "image": "i:1", "ports": [port, port]}]},
            },
        },
    });
    lab.add_thing("t", json!({"children": [deployment, config_map("a", "1")]}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "applying Deployment {}/d: spec.template.spec.containers[name=\"main\"].ports: duplicate entries for key [containerPort=8080,protocol=\"TCP\"]",
            lab.namespace
        )
    );
    lab.get(&lab.config_map("a"));
    lab.expect_silence(&hook, SILENCE);
}

// B76, the part of it that concerns refused changes
#[test]
fn change_of_an_immutable_field_is_refused_once_and_named() {
    let lab = Lab::new("immutable");
    let hook = Hook::from_spec();
    let map = |value: &str| {
        let mut map = config_map("a", value);
        map["immutable"] = json!(true);
        map
    };
    let definition = lab.definition().config_maps().sync(&hook);
    let _controller = lab.run(&definition.with("/spec/resyncPeriodSeconds", json!(1)));
    lab.add_thing("t", json!({"children": [map("1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [map("2"), config_map("b", "1")]}}));
    let message = lab.wait_refused(&lab.thing("t"), "ImmutableField");
    assert_eq!(
        message,
        format!(
            "applying ConfigMap {}/a: data: Forbidden: field is immutable when `immutable` is set (to be changed: `data.key` is `\"1\"`, wanted `\"2\"`)",
            lab.namespace
        )
    );
    lab.get(&lab.config_map("b"));
    let calls = hook.count();
    lab.wait_until("three visits more", || hook.count() >= calls + 3);
    let refused = lab.writes().into_iter().filter(|write| write.ends_with("422"));
    assert_eq!(refused.collect::<Vec<_>>(), ["patch configmaps a -> 422"], "no retry storm");
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [map("1")]}}));
    lab.wait_synced(&lab.thing("t"));
}

// B116
#[test]
fn kind_that_is_not_declared_is_never_written() {
    let lab = Lab::new("undeclared");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let name = format!("{}-admin", lab.namespace);
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": lab.namespace, "name": "default"}],
    });
    lab.add_thing("t", json!({"children": [binding, config_map("a", "1")]}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "child `ClusterRoleBinding {name}` is of a kind that `childResources` does not declare; found: `rbac.authorization.k8s.io/v1 ClusterRoleBinding`; hint: add it to `childResources` of the controller"
        )
    );
    lab.get(&lab.config_map("a"));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), ["patch configmaps a", "patch things/status t"]);
}

// B92
#[test]
fn child_of_another_namespace_or_of_the_cluster_is_never_written() {
    let lab = Lab::new("forbidden");
    let hook = Hook::from_spec();
    let definition = lab
        .definition()
        .config_maps()
        .child("rbac.authorization.k8s.io/v1", "clusterroles", "InPlace")
        .sync(&hook);
    let _controller = lab.run(&definition);
    let mut elsewhere = config_map("a", "1");
    elsewhere["metadata"]["namespace"] = json!("default");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": lab.namespace}, "rules": [],
    });
    lab.add_thing("t", json!({"children": [elsewhere, role, config_map("ours", "1")]}));
    let message = lab.wait_refused(&lab.thing("t"), "ChildRefused");
    assert_eq!(
        message,
        format!(
            "child `ConfigMap default/a` is in another namespace than its parent; found: `default`; expected: `{0}`, or none; hint: Kubernetes forbids this owner reference and would delete the child at some later time; child `ClusterRole {0}` is cluster-scoped, and its parent has a namespace; hint: Kubernetes forbids this owner reference and would delete the child at some later time",
            lab.namespace
        )
    );
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes(), ["patch configmaps ours", "patch things/status t"]);
}

// B115
#[test]
fn secret_values_are_neither_logged_nor_shown() {
    let lab = Lab::new("secret");
    let hook = Hook::from_spec();
    let controller = lab.run(&lab.definition().child("v1", "secrets", "InPlace").sync(&hook));
    let secret = |kind: &str, value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": kind,
            "stringData": {"key": value},
        })
    };
    lab.add_thing("t", json!({"children": [secret("Opaque", "hush-hush-1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [secret("Opaque", "hush-hush-2")]}}));
    lab.wait(&lab.path("v1", "secrets", "s"), "it is changed", |secret| {
        secret["data"]["key"] == "aHVzaC1odXNoLTI="
    });
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [secret("other", "hush-hush-3")]}}));
    let message = lab.wait_refused(&lab.thing("t"), "ImmutableField");
    for text in [&message, &controller.log()] {
        assert!(!text.contains("hush-hush") && !text.contains("aHVzaC1odXNo"), "{text}");
    }
}

// An apply is read as YAML, which has its own mind about some characters.
#[test]
fn text_of_any_characters_arrives_as_it_is() {
    let lab = Lab::new("characters");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let texts = [
        "\u{7f}",
        "\u{80}",
        " \u{85} ",
        "a \u{2028} b",
        "a \u{2029} b",
        "\u{feff}a",
        "\u{fffe}\u{ffff}",
        "\u{1}\t\r\n ",
        "😀",
        "<&>",
        "\\\"\\u0041",
        "- a: b",
        "no",
        "1e3",
        "\u{9f}\u{a0}",
    ];
    let data: serde_json::Map<String, serde_json::Value> =
        texts.iter().enumerate().map(|(at, text)| (format!("k{at}"), json!(text))).collect();
    let mut child = config_map("a", "1");
    child["data"] = data.clone().into();
    lab.add_thing("t", json!({"children": [child], "status": {"texts": texts}}));
    let thing = lab.wait_synced(&lab.thing("t"));
    assert_eq!(thing["status"]["texts"], json!(texts));
    assert_eq!(lab.get(&lab.config_map("a"))["data"], serde_json::Value::Object(data));
    lab.expect_silence(&hook, SILENCE);
}
