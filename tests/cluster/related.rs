//! The customize hook, and the objects that it asks for.

use std::fs;

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::hook::{Call, Hook, Reply};
use crate::support::lab::{Definition, Lab, SILENCE, SOON};
use crate::support::objects::config_map;

/// A hook whose customize call answers `spec.rules`, and whose status is the text of what it was shown:
/// `{group: {name: key}}`.
fn showing() -> Hook {
    Hook::new(show)
}

fn show(call: &Call) -> Value {
    if call.hook == "customize" {
        return json!({"relatedResources": call.spec()["rules"]});
    }
    let data = |object: &Value| object["data"]["key"].clone();
    let shown = |group: &Value| -> Value {
        group.as_object().unwrap().iter().map(|(name, object)| (name.clone(), data(object))).collect()
    };
    let related = call.request["related"].as_object().expect("`related` is always there");
    let seen: Value = related.iter().map(|(group, objects)| (group.clone(), shown(objects))).collect();
    json!({"children": [], "status": {"seen": seen.to_string()}})
}

fn definition(lab: &Lab, hook: &Hook) -> Definition {
    lab.definition().sync(hook).customize(hook)
}

fn config_maps(more: Value) -> Value {
    let mut rule = json!({"apiVersion": "v1", "resource": "configmaps"});
    rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([rule])
}

#[track_caller]
fn wait_seen(lab: &Lab, thing: &str, expected: Value) {
    let expected = Value::String(expected.to_string());
    lab.wait(thing, &format!("it sees {expected}"), |thing| thing["status"]["seen"] == expected);
}

fn labelled(name: &str, value: &str, labels: Value) -> Value {
    let mut map = config_map(name, value);
    map["metadata"]["labels"] = labels;
    map
}

// B22
#[test]
fn change_of_a_related_object_is_seen_however_often_and_the_rules_are_asked_for_once() {
    let lab = Lab::new("related-change");
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook));
    lab.add_thing("t", json!({"rules": config_maps(json!({"names": ["m"]}))}));
    let thing = lab.thing("t");
    wait_seen(&lab, &thing, json!({"ConfigMap.v1": {}}));
    lab.plane.create(&lab.config_map(""), &config_map("m", "0"));
    for value in ["1", "2", "3"] {
        lab.merge(&lab.config_map("m"), json!({"data": {"key": value}}));
        wait_seen(&lab, &thing, json!({"ConfigMap.v1": {"m": value}}));
    }
    lab.plane.delete(&lab.config_map("m"));
    wait_seen(&lab, &thing, json!({"ConfigMap.v1": {}}));
    assert_eq!(hook.count_of("customize"), 1);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn change_wakes_exactly_the_parents_whose_rules_match_it_before_or_after() {
    let lab = Lab::new("related-exact");
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook));
    let by_label = |app: &str| config_maps(json!({"labelSelector": {"matchLabels": {"app": app}}}));
    for (name, rules) in [
        ("named", config_maps(json!({"names": ["m"]}))),
        ("named-otherwise", config_maps(json!({"names": ["n"]}))),
        ("web", by_label("web")),
        ("db", by_label("db")),
        ("none", json!([])),
    ] {
        lab.add_thing(name, json!({ "rules": rules }));
        lab.wait_synced(&lab.thing(name));
    }
    lab.plane.create(&lab.config_map(""), &labelled("m", "1", json!({"app": "web"})));
    wait_seen(&lab, &lab.thing("named"), json!({"ConfigMap.v1": {"m": "1"}}));
    wait_seen(&lab, &lab.thing("web"), json!({"ConfigMap.v1": {"m": "1"}}));
    lab.expect_silence(&hook, SILENCE);

    let before = hook.count();
    lab.merge(&lab.config_map("m"), json!({"metadata": {"labels": {"app": "db"}}}));
    wait_seen(&lab, &lab.thing("db"), json!({"ConfigMap.v1": {"m": "1"}}));
    wait_seen(&lab, &lab.thing("web"), json!({"ConfigMap.v1": {}}));
    lab.expect_silence(&hook, SILENCE);
    let calls = hook.calls().split_off(before);
    let mut woken: Vec<&str> = calls.iter().map(|call| call.parent_name()).collect();
    woken.sort();
    assert_eq!(woken, ["db", "named", "web"]);
}

// B21
#[test]
fn parents_of_one_name_in_two_namespaces_see_their_own() {
    let lab = Lab::new("related-names");
    let other = lab.plane.namespace("related-names-other");
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook));
    let near = format!("/namespaces/{}/", lab.namespace);
    let path = |path: String| path.replace(&near, &format!("/namespaces/{other}/"));
    let rules = |name: &str| json!({"rules": config_maps(json!({"names": [name]}))});
    lab.plane.create(&lab.config_map(""), &config_map("mine", "1"));
    lab.plane.create(&path(lab.config_map("")), &config_map("mine", "other's"));
    lab.plane.create(&path(lab.config_map("")), &config_map("theirs", "2"));
    lab.add_thing("a", rules("mine"));
    lab.plane.create(&path(lab.thing("")), &lab.thing_with("a", rules("theirs")));
    wait_seen(&lab, &lab.thing("a"), json!({"ConfigMap.v1": {"mine": "1"}}));
    wait_seen(&lab, &path(lab.thing("a")), json!({"ConfigMap.v1": {"theirs": "2"}}));
}

// B23
#[test]
fn kind_of_the_same_plural_in_another_group_wakes_nobody() {
    let lab = Lab::new("related-groups");
    lab.define_kind(&lab.kind("widgets", "Widget"));
    let far = format!("far.{}", lab.group);
    let text = lab.kind("widgets", "Widget").to_string().replace(&lab.group, &far);
    lab.define_kind(&serde_json::from_str(&text).unwrap());
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook));
    let rule = |group: &str| json!([{"apiVersion": format!("{group}/v1"), "resource": "widgets"}]);
    lab.add_thing("near", json!({"rules": rule(&lab.group)}));
    lab.add_thing("far", json!({"rules": rule(&far)}));
    lab.wait_synced(&lab.thing("near"));
    lab.wait_synced(&lab.thing("far"));
    lab.expect_silence(&hook, SILENCE);

    let before = hook.count();
    let widget = json!({"apiVersion": format!("{far}/v1"), "kind": "Widget", "metadata": {"name": "w"}});
    lab.plane.create(&lab.path(&format!("{far}/v1"), "widgets", ""), &widget);
    wait_seen(&lab, &lab.thing("far"), json!({format!("Widget.{far}/v1"): {"w": null}}));
    lab.expect_silence(&hook, SILENCE);
    let calls = hook.calls().split_off(before);
    assert!(calls.iter().all(|call| call.parent_name() == "far"), "{calls:?}");
}

#[test]
fn v1_hook_never_sees_another_namespace() {
    let lab = Lab::new("related-v1");
    let other = lab.plane.namespace("related-v1-other");
    let far = format!("/api/v1/namespaces/{other}/configmaps");
    lab.plane.create(&far, &config_map("m", "far"));
    lab.plane.create(&lab.config_map(""), &config_map("m", "near"));
    let hook = showing();
    // Sync of version v2 would show whatever customize of version v1 lets through.
    let definition = lab.definition().sync(&hook).version("v2").customize(&hook);
    let _controller = lab.run(&definition);
    lab.add_thing("named", json!({"rules": config_maps(json!({"names": ["m"]}))}));
    let near = format!("{}/m", lab.namespace);
    wait_seen(&lab, &lab.thing("named"), json!({"ConfigMap.v1": {near: "near"}}));

    lab.add_thing("asking", json!({"rules": config_maps(json!({"namespace": other}))}));
    let message = lab.wait_refused(&lab.thing("asking"), "HookRefused");
    let told =
        format!("customize: `relatedResources[0].namespace` is `{other}`; expected: `{}`", lab.namespace);
    assert!(message.starts_with(&told), "{message}");
    lab.merge(&lab.thing("asking"), json!({"spec": {"rules": []}}));
    lab.wait_synced(&lab.thing("asking"));
}

#[test]
fn v2_hook_sees_the_namespaces_that_a_selector_picks_as_their_labels_change() {
    let lab = Lab::new("related-v2");
    let other = lab.plane.namespace("related-v2-other");
    let far = format!("/api/v1/namespaces/{other}/configmaps");
    lab.plane.create(&far, &labelled("m", "1", json!({"lab": lab.namespace})));
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook).version("v2"));
    let rules = config_maps(json!({
        "namespaceSelector": {"matchLabels": {"team": lab.namespace}},
        "labelSelector": {"matchLabels": {"lab": lab.namespace}},
    }));
    lab.add_thing("t", json!({ "rules": rules }));
    let thing = lab.thing("t");
    wait_seen(&lab, &thing, json!({"ConfigMap.v1": {}}));

    let namespace = format!("/api/v1/namespaces/{other}");
    lab.merge(&namespace, json!({"metadata": {"labels": {"team": lab.namespace}}}));
    wait_seen(&lab, &thing, json!({"ConfigMap.v1": {format!("{other}/m"): "1"}}));
    lab.merge(&format!("{far}/m"), json!({"data": {"key": "2"}}));
    wait_seen(&lab, &thing, json!({"ConfigMap.v1": {format!("{other}/m"): "2"}}));
    lab.merge(&namespace, json!({"metadata": {"labels": {"team": null}}}));
    wait_seen(&lab, &thing, json!({"ConfigMap.v1": {}}));
}

#[test]
fn two_rules_for_one_kind_are_joined() {
    let lab = Lab::new("related-two");
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook));
    for (name, app) in [("a", "x"), ("b", "web"), ("c", "x")] {
        lab.plane.create(&lab.config_map(""), &labelled(name, name, json!({"app": app})));
    }
    let by_name =
        json!({"apiVersion": "v1", "resource": "configmaps", "names": ["a"], "labelSelector": null});
    let by_label = json!({"apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"app": "web"}}});
    lab.add_thing("t", json!({"rules": [by_name, by_label]}));
    wait_seen(&lab, &lab.thing("t"), json!({"ConfigMap.v1": {"a": "a", "b": "b"}}));
}

#[test]
fn related_kind_that_is_not_there_yet_is_waited_for() {
    let lab = Lab::new("related-absent");
    let hook = showing();
    let _controller = lab.run(&definition(&lab, &hook));
    lab.add_thing("t", json!({"rules": [{"apiVersion": lab.api_version(), "resource": "widgets"}]}));
    let message = lab.wait_refused(&lab.thing("t"), "WaitingForKind");
    assert!(message.starts_with("related widgets"), "{message}");
    assert_eq!(hook.count_of("sync"), 0);
    lab.define_kind(&lab.kind("widgets", "Widget"));
    wait_seen(&lab, &lab.thing("t"), json!({format!("Widget.{}", lab.api_version()): {}}));
    lab.wait_synced(&lab.thing("t"));
}

#[test]
fn rules_that_make_no_sense_are_a_condition_and_nothing_is_asked_with_them() {
    let lab = Lab::new("related-wrong");
    let hook = Hook::new(|call| Reply::Text(200, show(call).to_string()));
    let _controller = lab.run(&definition(&lab, &hook).version("v2"));
    let both = config_maps(json!({"names": ["a"], "labelSelector": {}}));
    let of_nodes = json!([{"apiVersion": "v1", "resource": "nodes", "namespaceSelector": {}}]);
    for (name, rules, told) in [
        (
            "both",
            both,
            "customize: `relatedResources[0]` has `names` and a selector; expected: objects by name or by selector",
        ),
        (
            "nodes",
            of_nodes,
            "customize: `relatedResources[0]` has a `namespaceSelector`; expected: none: nodes has no namespaces",
        ),
    ] {
        lab.add_thing(name, json!({ "rules": rules }));
        assert_eq!(lab.wait_refused(&lab.thing(name), "HookRefused"), told);
    }
    assert_eq!(hook.count_of("sync"), 0);
}

#[test]
fn finalize_hook_is_shown_related_objects_too() {
    let lab = Lab::new("related-finalize");
    let hook = Hook::new(|call: &Call| match call.hook.as_str() {
        "finalize" => json!({"children": [], "finalized": call.related("ConfigMap.v1") == ["m"]}),
        _ => show(call),
    });
    let _controller = lab.run(&definition(&lab, &hook).finalize(&hook));
    lab.add_thing("t", json!({"rules": config_maps(json!({"names": ["m"]}))}));
    lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    wait_until(SOON, "the finalize hook is called", || match hook.count_of("finalize") {
        0 => Err("no call"),
        _ => Ok(()),
    });
    lab.plane.create(&lab.config_map(""), &config_map("m", "1"));
    lab.wait_gone(&lab.thing("t"));
}

#[test]
fn templates_ask_for_related_objects_and_find_them() {
    let lab = Lab::new("related-template");
    let folder = lab.folder.path().join("hooks/copy");
    fs::create_dir(&folder).unwrap();
    fs::write(
        folder.join("customize.yaml"),
        "relatedResources:\n- apiVersion: v1\n  resource: configmaps\n  names: [\"{{ parent.spec.from }}\"]\n",
    )
    .unwrap();
    fs::write(
        folder.join("sync.yaml"),
        "{% set source = related.find(\"ConfigMap\", parent.spec.from) %}\nstatus:\n  key: \"{{ source.data.key | default('none') }}\"\n",
    )
    .unwrap();
    let webhook = |call: &str| json!({"webhook": {"path": format!("/copy/{call}")}});
    let definition = lab
        .definition()
        .with("/spec/hooks/sync", webhook("sync"))
        .with("/spec/hooks/customize", webhook("customize"));
    let _controller = lab.run(&definition);
    lab.add_thing("t", json!({"from": "m"}));
    lab.wait(&lab.thing("t"), "nothing is found", |thing| thing["status"]["key"] == "none");
    lab.plane.create(&lab.config_map(""), &config_map("m", "1"));
    lab.wait(&lab.thing("t"), "the map is found", |thing| thing["status"]["key"] == "1");
    lab.plane.create(&lab.config_map(""), &config_map("n", "2"));
    lab.merge(&lab.thing("t"), json!({"spec": {"from": "n"}}));
    lab.wait(&lab.thing("t"), "the other map is found", |thing| thing["status"]["key"] == "2");
}
