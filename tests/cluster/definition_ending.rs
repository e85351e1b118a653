//! Deleting a definition: what becomes of the finalizers on its parents.

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Definition, Lab, SILENCE};
use crate::support::objects::config_map;

fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn removing(definition: Definition) -> Definition {
    definition.with("/metadata/annotations", json!({"syncwright.io/finalizers": "remove"}))
}

fn wait_held(lab: &Lab, definition: &Definition) {
    lab.wait(&definition.path(), "its deletion will wait", |live| {
        finalizers(live) == ["syncwright.io/parents"]
    });
}

// B86
#[test]
fn finalizers_stay_on_parents_unless_they_are_to_go() {
    let lab = Lab::new("staying");
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let definition = lab.definition().config_maps().sync(&hook).finalize(&hook);
    lab.add_definition(&definition);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    assert!(finalizers(&lab.get(&definition.path())).is_empty());
    lab.plane.delete(&definition.path());
    lab.wait_gone(&definition.path());
    lab.wait_until("it has stopped", || controller.log().contains("controller stopping"));
    let ours = format!("metacontroller.io/compositecontroller-{}", lab.namespace);
    lab.plane.delete(&lab.thing("t"));
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(
        finalizers(&lab.get(&lab.thing("t"))),
        [&*ours],
        "kept, for the sake of what is to be cleaned up"
    );
    // The definition again, and all ends well.
    lab.add_definition(&definition);
    lab.wait_gone(&lab.thing("t"));
    assert_eq!(hook.calls().last().unwrap().hook, "finalize");
}

// B86
#[test]
fn finalizers_go_with_a_definition_that_says_so() {
    let lab = Lab::new("going");
    let hook = Hook::from_spec();
    let _controller = lab.start(&[]);
    let definition = removing(lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_definition(&definition);
    for name in ["a", "b", "c"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        lab.wait_synced(&lab.thing(name));
    }
    let theirs = json!({"metadata": {"finalizers": [
        "example.com/theirs", format!("metacontroller.io/compositecontroller-{}", lab.namespace),
    ]}});
    lab.merge(&lab.thing("a"), theirs);
    wait_held(&lab, &definition);
    lab.plane.delete(&definition.path());
    lab.wait_gone(&definition.path());
    assert_eq!(finalizers(&lab.get(&lab.thing("a"))), ["example.com/theirs"], "nobody else's is lost");
    assert!(finalizers(&lab.get(&lab.thing("b"))).is_empty());
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(hook.count_of("finalize"), 0);
    lab.plane.delete(&lab.thing("c"));
    assert!(lab.plane.get(&lab.thing("c")).is_none(), "nothing holds it");
    lab.get(&lab.config_map("b"));
    let name = definition.path().rsplit('/').next().unwrap().to_owned();
    lab.wait_event(&name, "FinalizersRemoved", "Removed finalizers from 3 parents");
}

#[test]
fn parent_that_cannot_be_cleaned_keeps_the_finalizer_of_no_other() {
    let mut lab = Lab::new("oneleft");
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let definition = removing(lab.definition().config_maps().sync(&hook).finalize(&hook));
    lab.add_definition(&definition);
    // More than are written at once.
    let names: Vec<String> = (0..20).map(|number| format!("t{number:02}")).collect();
    names.iter().for_each(|name| drop(lab.add_thing(name, json!({}))));
    names.iter().for_each(|name| drop(lab.wait_synced(&lab.thing(name))));
    wait_held(&lab, &definition);
    controller.kill();
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let mut writes = rule(&lab.group, &["things"], &["patch", "update"]);
    writes["resourceNames"] = json!(names[1..]);
    let rules = json!([
        rule(&lab.group, &["things"], &["get", "list", "watch"]),
        writes,
        rule("metacontroller.k8s.io", &["*"], &["*"]),
        rule("", &["events"], &["create", "patch"]),
    ]);
    lab.limit_rights(&rules);
    lab.plane.delete(&definition.path());
    let _controller = lab.start(&[]);
    for name in &names[1..] {
        lab.wait(&lab.thing(name), "its finalizer is off", |thing| finalizers(thing).is_empty());
    }
    assert_eq!(finalizers(&lab.get(&lab.thing("t00"))).len(), 1);
    let name = definition.path().rsplit('/').next().unwrap().to_owned();
    lab.wait_event(&name, "FinalizersKept", "Cannot remove finalizers from parents: ");
    // Whoever takes the last one off lets it go.
    lab.merge(&lab.thing("t00"), json!({"metadata": {"finalizers": null}}));
    lab.wait_gone(&definition.path());
}

// B86
#[test]
fn definition_deleted_while_no_controller_runs_waits_for_one() {
    let lab = Lab::new("waiting");
    lab.define_kind(&lab.kind("others", "Other"));
    let hook = Hook::new(|_| json!({"labels": {"seen": "yes"}, "attachments": []}));
    let controller = lab.start(&[]);
    let others = json!({"apiVersion": lab.api_version(), "resource": "others"});
    let both = json!([lab.things()[0], others]);
    let definition = removing(lab.decorator(both).sync(&hook).finalize(&hook));
    lab.add_definition(&definition);
    lab.add_thing("t", json!({}));
    let other = lab.path(&lab.api_version(), "others", "");
    lab.plane.create(
        &other,
        &json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}}),
    );
    let other = format!("{other}/o");
    for path in [&lab.thing("t"), &other] {
        lab.wait(path, "it is decorated", |target| target["metadata"]["labels"]["seen"] == "yes");
        assert_eq!(finalizers(&lab.get(path)).len(), 1);
    }
    wait_held(&lab, &definition);
    controller.kill();
    lab.plane.delete(&definition.path());
    assert!(!lab.get(&definition.path())["metadata"]["deletionTimestamp"].is_null());

    let calls = hook.count();
    let _controller = lab.start(&[]);
    lab.wait_gone(&definition.path());
    for path in [&lab.thing("t"), &other] {
        assert!(finalizers(&lab.get(path)).is_empty());
    }
    assert_eq!(hook.count(), calls, "it is not run any more");
}

#[test]
fn definition_that_somebody_else_keeps_is_not_run_again() {
    let lab = Lab::new("keptdef");
    let hook = Hook::from_spec();
    let _controller = lab.start(&[]);
    let definition = removing(lab.definition().sync(&hook).finalize(&hook));
    let definition = definition.with("/metadata/finalizers", json!(["example.com/theirs"]));
    lab.add_definition(&definition);
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait(&definition.path(), "its deletion will wait", |live| finalizers(live).len() == 2);
    lab.plane.delete(&definition.path());
    lab.wait(&definition.path(), "ours is off", |live| finalizers(live) == ["example.com/theirs"]);
    lab.merge(&definition.path(), json!({"metadata": {"labels": {"touched": "yes"}}}));
    lab.merge(&lab.thing("t"), json!({"spec": {"touched": true}}));
    lab.wait_quiet(&hook, SILENCE);
    assert!(finalizers(&lab.get(&lab.thing("t"))).is_empty());
    assert_eq!(hook.calls().iter().filter(|call| call.spec()["touched"] == true).count(), 0);
    lab.merge(&definition.path(), json!({"metadata": {"finalizers": null}}));
    lab.wait_gone(&definition.path());
}

#[test]
fn definition_that_changes_its_mind_is_let_go_as_it_is() {
    let lab = Lab::new("mind");
    let hook = Hook::from_spec();
    let _controller = lab.start(&[]);
    let definition = removing(lab.definition().sync(&hook).finalize(&hook));
    lab.add_definition(&definition);
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));
    wait_held(&lab, &definition);
    lab.merge(&definition.path(), json!({"metadata": {"annotations": {"syncwright.io/finalizers": "keep"}}}));
    lab.wait(&definition.path(), "its deletion will not wait", |live| finalizers(live).is_empty());
    lab.plane.delete(&definition.path());
    lab.wait_gone(&definition.path());
    assert_eq!(finalizers(&lab.get(&lab.thing("t"))).len(), 1);
}
