//! Label selectors narrow the watches: what they do not pick is not read.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::hook::{Call, Hook, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;
use crate::support::pages::{ANY_PORTS, Pages};

/// The label selectors by which a plural was watched; empty where there was none.
fn selectors(lab: &Lab, plural: &str) -> BTreeSet<String> {
    let requests = lab.plane.requests_of(&lab.user);
    let about = |event: &&Value| event["objectRef"]["resource"] == plural && event["verb"] == "watch";
    let uris = requests.iter().filter(about).filter_map(|event| event["requestURI"].as_str());
    let selector = |uri: &str| {
        let given = uri.split(['?', '&']).find_map(|part| part.strip_prefix("labelSelector="));
        given.unwrap_or_default().replace("%3D", "=").replace("%2C", ",").replace("%21", "!")
    };
    uris.map(selector).collect()
}

fn set<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.map(String::from).into()
}

fn managed(lab: &Lab, name: &str, labels: Value) -> Value {
    let mut thing = lab.thing_with(name, json!({"children": [config_map(name, "1")]}));
    thing["metadata"]["labels"] = labels;
    lab.plane.create(&lab.thing(""), &thing)
}

#[test]
fn parents_that_are_not_selected_are_not_read() {
    let lab = Lab::new("narrow");
    let hook = Hook::from_spec();
    let selector = json!({
        "matchLabels": {"managed": "yes"},
        "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}],
    });
    let definition = lab.definition().config_maps().sync(&hook);
    managed(&lab, "other", json!({"managed": "no"}));
    managed(&lab, "old", json!({"managed": "yes", "old": ""}));
    managed(&lab, "t", json!({"managed": "yes"}));
    let controller = lab.run(&definition.with("/spec/parentResource/labelSelector", selector));
    lab.wait_synced(&lab.thing("t"));
    lab.wait(&lab.config_map("t"), "its child is there", |_| true);

    // One that is selected no more is left as it is, and its children with it.
    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"managed": null}}}));
    lab.wait_quiet(&hook, SILENCE);
    let calls = hook.count();
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("t", "2")]}}));
    lab.plane.delete(&lab.config_map("t"));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(hook.count(), calls, "it is nobody's");

    // One that is selected again is brought to what is wanted now.
    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"managed": "yes"}}}));
    lab.wait(&lab.config_map("t"), "it is made anew", |map| map["data"] == config_map("t", "2")["data"]);
    lab.expect_silence(&hook, SILENCE);
    assert!(hook.calls().iter().all(|call| call.parent_name() == "t"));
    assert_eq!(selectors(&lab, "things"), set(["managed=yes,!old"]));
    assert!(!controller.log().contains("WARN"), "{}", controller.log());
}

// With a finalize hook all parents are watched: one that is selected no more is to be finalized.
#[test]
fn of_parents_that_are_not_selected_nothing_is_kept_but_what_they_are_known_by() {
    let lab = Lab::new("narrow-finalize");
    let hook = Hook::from_spec();
    let selector = json!({"matchLabels": {"managed": "yes"}});
    let definition = lab.definition().config_maps().sync(&hook).finalize(&hook);
    lab.write_definitions(&[&definition.with("/spec/parentResource/labelSelector", selector)]);
    let controller = lab.start(&ANY_PORTS);
    managed(&lab, "t", json!({"managed": "yes"}));
    lab.wait_synced(&lab.thing("t"));
    let mut other = lab.thing_with("other", json!({"children": [config_map("other", "1")]}));
    other["spec"]["text"] = json!("x".repeat(100_000));
    lab.plane.create(&lab.thing(""), &other);
    let pages = Pages::of(&controller);
    let of_things = |name: &str| pages.scrape().sum(name, &["resource=\"things\""]);
    lab.wait_until("both are known", || of_things("syncwright_stored_objects") == 2.0);
    assert!(of_things("syncwright_stored_bytes") < 10_000.0);
    lab.merge(&lab.thing("other"), json!({"metadata": {"labels": {"managed": "yes"}}}));
    lab.wait(&lab.config_map("other"), "it is selected now", |_| true);
    assert!(of_things("syncwright_stored_bytes") > 100_000.0);
    assert_eq!(selectors(&lab, "things"), set([""]));
}

#[test]
fn definitions_with_different_selectors_have_each_their_own_parents() {
    let lab = Lab::new("narrow-two");
    let hooks = [Hook::from_spec(), Hook::from_spec()];
    let of = |index: usize, color: &str| {
        let definition = lab.definition().named(&format!("{}-{color}", lab.namespace)).config_maps();
        let selector = json!({"matchLabels": {"color": color}});
        definition.sync(&hooks[index]).with("/spec/parentResource/labelSelector", selector)
    };
    let (red, blue) = (of(0, "red"), of(1, "blue"));
    lab.write_definitions(&[&red, &blue]);
    let _controller = lab.start(&[]);
    managed(&lab, "r", json!({"color": "red"}));
    managed(&lab, "b", json!({"color": "blue"}));
    lab.wait(&lab.config_map("r"), "the red one's child", |_| true);
    lab.wait(&lab.config_map("b"), "the blue one's child", |_| true);
    // From one to the other: its child stays, since it is the same parent's.
    lab.merge(&lab.thing("r"), json!({"metadata": {"labels": {"color": "blue"}}}));
    lab.wait_until("the other is asked", || !hooks[1].calls_for("r").is_empty());
    let uid = lab.get(&lab.config_map("r"))["metadata"]["uid"].clone();
    lab.expect_silence(&hooks[1], SILENCE);
    assert_eq!(lab.get(&lab.config_map("r"))["metadata"]["uid"], uid);
    assert!(hooks[0].calls_for("b").is_empty());
    assert_eq!(selectors(&lab, "things"), set(["color=blue", "color=red"]));
    assert_eq!(selectors(&lab, "configmaps"), set([""]), "children have one watch for both");
}

// A definition that had a finalize hook has left its finalizer on an object that is not selected any more.
#[test]
fn finalizer_on_what_is_not_selected_is_taken_off_once_there_is_no_finalize_hook() {
    let lab = Lab::new("narrow-stray");
    let hook = Hook::from_spec();
    let selector = json!({"matchLabels": {"managed": "yes"}});
    let definition = lab.definition().config_maps().sync(&hook);
    let definition = definition.with("/spec/parentResource/labelSelector", selector);
    let controller = lab.run(&definition.clone().finalize(&hook));
    managed(&lab, "t", json!({"managed": "yes"}));
    lab.wait(&lab.thing("t"), "it has the finalizer", |thing| thing["metadata"]["finalizers"].is_array());
    lab.wait_synced(&lab.thing("t"));
    controller.kill();
    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": null, "finalizers": ["example.com/own"]}}));
    let ours = format!("metacontroller.io/compositecontroller-{}", lab.namespace);
    lab.merge(&lab.thing("t"), json!({"metadata": {"finalizers": ["example.com/own", ours]}}));
    let calls = hook.count();
    let _controller = lab.run(&definition);
    lab.wait(&lab.thing("t"), "ours alone is gone", |thing| {
        thing["metadata"]["finalizers"] == json!(["example.com/own"])
    });
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(hook.count(), calls);
    lab.merge(&lab.thing("t"), json!({"metadata": {"finalizers": null}}));
}

// Its own write takes the object out of what is watched: nothing tells of it any more.
#[test]
fn decorator_may_label_its_target_out_of_its_selection() {
    let lab = Lab::new("narrow-once");
    let mut resources = lab.things();
    resources[0]["labelSelector"] =
        json!({"matchExpressions": [{"key": "seen", "operator": "DoesNotExist"}]});
    let hook = Hook::new(|_: &Call| json!({"labels": {"seen": "yes"}, "attachments": []}));
    let _controller = lab.run(&lab.decorator(resources).sync(&hook));
    let seen = |thing: &Value| thing["metadata"]["labels"]["seen"] == "yes";
    for round in 1..=2 {
        match round {
            1 => drop(lab.add_thing("t", json!({}))),
            _ => drop(lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"seen": null}}}))),
        }
        lab.wait_until("the hook is asked", || hook.count() >= round);
        lab.wait(&lab.thing("t"), "it is labelled", seen);
        lab.expect_silence(&hook, SILENCE);
        assert_eq!(hook.count(), round, "once for each time that it is selected");
    }
    assert_eq!(selectors(&lab, "things"), set(["!seen"]));
}

/// Shows the parent the ConfigMaps that its spec's selector picks.
fn showing() -> Hook {
    Hook::new(|call: &Call| match call.hook.as_str() {
        "customize" => {
            let app = json!({"matchLabels": {"app": call.spec()["app"]}});
            json!({"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "labelSelector": app}]})
        }
        _ => json!({"children": [], "status": {"shown": call.related("ConfigMap.v1")}}),
    })
}

fn labelled_map(lab: &Lab, name: &str, app: &str) {
    let mut map = config_map(name, "1");
    map["metadata"]["labels"] = json!({"app": app});
    lab.create("v1", "configmaps", &map);
}

#[test]
fn related_objects_are_watched_by_the_selectors_of_their_rules() {
    let lab = Lab::new("narrow-related");
    let hook = showing();
    for (name, app) in [("one", "a"), ("two", "a"), ("three", "b"), ("four", "c")] {
        labelled_map(&lab, name, app);
    }
    let _controller = lab.run(&lab.definition().sync(&hook).customize(&hook));
    let shows = |thing: &str, names: &[&str]| {
        lab.wait(&lab.thing(thing), &format!("{thing} is shown {names:?}"), |thing| {
            thing["status"]["shown"] == json!(names)
        });
    };
    for name in ["a1", "a2", "b1"] {
        lab.add_thing(name, json!({"app": &name[..1]}));
    }
    shows("a1", &["one", "two"]);
    shows("a2", &["one", "two"]);
    shows("b1", &["three"]);
    // From one selector to the other, both are told.
    lab.merge(&lab.config_map("two"), json!({"metadata": {"labels": {"app": "b"}}}));
    shows("a1", &["one"]);
    shows("b1", &["three", "two"]);
    lab.plane.delete(&lab.config_map("three"));
    shows("b1", &["two"]);
    assert_eq!(selectors(&lab, "configmaps"), set(["app=a", "app=b"]));

    // Each parent with one of its own: from the ninth on there is one watch of all.
    for number in 0..9 {
        let app = format!("own-{number}");
        labelled_map(&lab, &app, &app);
        lab.add_thing(&app, json!({"app": app}));
    }
    for number in 0..9 {
        let app = format!("own-{number}");
        shows(&app, &[&app]);
    }
    assert!(selectors(&lab, "configmaps").contains(""));
    lab.merge(&lab.config_map("one"), json!({"metadata": {"labels": {"app": "own-8"}}}));
    shows("own-8", &["one", "own-8"]);
    shows("a1", &[]);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn definitions_of_others_are_not_read() {
    let lab = Lab::new("narrow-definitions");
    let hook = Hook::new(from_spec);
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    let other = definition.named(&format!("{}-other", lab.namespace));
    lab.add_definition(&other.with("/metadata/labels", json!({"lab": "nobody"})));
    let controller = lab.start(&[]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.config_map("a"), "the definition is at work", |_| true);
    let ours = set([&format!("lab={}", lab.namespace)]);
    assert_eq!(selectors(&lab, "compositecontrollers"), ours);
    assert_eq!(selectors(&lab, "decoratorcontrollers"), ours);
    // One that loses its label is at work no more.
    let path = lab.definition().path();
    lab.merge(&path, json!({"metadata": {"labels": {"lab": null}}}));
    lab.wait_until("it is stopped", || controller.log().contains("controller stopping"));
    lab.wait_quiet(&hook, SILENCE);
    let calls = hook.count();
    lab.merge(&lab.thing("t"), json!({"spec": {"children": []}}));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(hook.count(), calls);
    lab.merge(&path, json!({"metadata": {"labels": {"lab": lab.namespace}}}));
    lab.wait_gone(&lab.config_map("a"));
}
