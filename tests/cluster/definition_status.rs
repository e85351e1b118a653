//! What a definition in the cluster says of itself: conditions, counts, columns, events.

use std::fs;

use serde_json::{Value, json};

use crate::support::hook::{Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

fn condition<'d>(definition: &'d Value, kind: &str) -> &'d Value {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// `True Started`: a condition in short.
fn said(definition: &Value, kind: &str) -> String {
    let condition = condition(definition, kind);
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("status"), text("reason"))
}

fn counts(definition: &Value) -> (Option<u64>, Option<u64>) {
    (definition["status"]["parents"].as_u64(), definition["status"]["failing"].as_u64())
}

fn status_writes(lab: &Lab) -> usize {
    lab.writes().iter().filter(|write| write.contains("controllers/status")).count()
}

#[test]
fn definition_says_how_its_parents_fare_and_repeats_nothing_after_a_restart() {
    let lab = Lab::new("fares");
    let hook = Hook::new(|call| match call.spec()["image"].as_str() {
        Some("none") => Reply::Text(422, "image is required".into()),
        _ => from_spec(call).into(),
    });
    let controller = lab.start(&[]);
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    let live = lab.wait(&definition.path(), "it is at work", |live| counts(live) == (Some(0), Some(0)));
    assert_eq!(
        (said(&live, "Ready"), said(&live, "Degraded")),
        ("True Started".into(), "False NoneFailing".into())
    );
    assert_eq!(live["status"]["observedGeneration"], live["metadata"]["generation"]);
    for name in ["a", "b"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
    }
    lab.add_thing("c", json!({"image": "none"}));
    let live = lab.wait(&definition.path(), "one is failing", |live| counts(live) == (Some(3), Some(1)));
    assert_eq!(said(&live, "Ready"), "True Started");
    assert_eq!(said(&live, "Degraded"), "True ParentsFailing");
    let expected = format!("1 of 3 parents: {}/c: HookRefused: sync: 422: image is required", lab.namespace);
    assert_eq!(condition(&live, "Degraded")["message"], expected.as_str());
    let name = definition.path().rsplit('/').next().unwrap().to_owned();
    lab.wait_event(&name, "Started", &format!("Started controller: {name}"));

    // A restart is nothing new.
    drop(controller);
    let before = (status_writes(&lab), lab.get(&definition.path())["metadata"]["resourceVersion"].clone());
    let seen = hook.count();
    let _controller = lab.start(&[]);
    lab.wait_until("all are visited", || hook.count() >= seen + 3);
    lab.wait_quiet(&hook, SILENCE);
    let after = (status_writes(&lab), lab.get(&definition.path())["metadata"]["resourceVersion"].clone());
    assert_eq!(after, before);

    // The edit and the mended parent are seen.
    lab.merge(&definition.path(), json!({"spec": {"resyncPeriodSeconds": 3600}}));
    lab.merge(&lab.thing("c"), json!({"spec": {"image": "some"}}));
    let live = lab.wait(&definition.path(), "all is well", |live| {
        counts(live) == (Some(3), Some(0)) && live["status"]["observedGeneration"] == 2
    });
    assert_eq!(said(&live, "Degraded"), "False NoneFailing");
    lab.plane.delete(&lab.thing("b"));
    lab.wait(&definition.path(), "one is gone", |live| counts(live) == (Some(2), Some(0)));
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn many_changes_are_told_at_once() {
    let lab = Lab::new("coalesced");
    let hook = Hook::from_spec();
    let _controller = lab.start(&[]);
    let definition = lab.definition().sync(&hook);
    lab.add_definition(&definition);
    for number in 0..30 {
        lab.add_thing(&format!("t{number}"), json!({}));
    }
    lab.wait(&definition.path(), "all are counted", |live| counts(live) == (Some(30), Some(0)));
    assert!(status_writes(&lab) <= 5, "{:?}", lab.writes());
    lab.expect_silence(&hook, SILENCE);
}

// B36
#[test]
fn definition_says_why_it_is_not_at_work() {
    let lab = Lab::bare("refusals");
    let hook = Hook::from_spec();
    let _controller = lab.start(&[]);
    let wrong = lab.definition().with("/spec/hooks/sync", json!({"webhook": {}}));
    lab.add_definition(&wrong);
    let live = lab.wait(&wrong.path(), "it is refused", |live| said(live, "Ready") == "False CreateError");
    assert_eq!(said(&live, "Degraded"), "True CreateError");
    let message = condition(&live, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("`spec.hooks.sync.webhook` says nobody to call"), "{message}");
    assert_eq!(counts(&live), (None, None));
    let name = wrong.path().rsplit('/').next().unwrap().to_owned();
    lab.wait_event(&name, "CreateError", "Cannot create new controller: ");

    lab.merge(&wrong.path(), json!({"spec": {"hooks": {"sync": {"webhook": {"url": hook.url("sync")}}}}}));
    let waits = |live: &Value| said(live, "Ready") == "False WaitingForKind";
    let live = lab.wait(&wrong.path(), "it waits for its kind", waits);
    let expected = format!("the API server has no `{}`", lab.api_version());
    assert_eq!(condition(&live, "Ready")["message"], expected.as_str());
    lab.define_kind(&lab.kind("things", "Thing"));
    lab.wait(&wrong.path(), "it is at work", |live| said(live, "Ready") == "True Started");

    lab.remove_kind("things");
    lab.wait(&wrong.path(), "it waits for its kind again", waits);
}

#[test]
fn definition_says_which_kind_or_hook_is_missing() {
    let lab = Lab::new("missing");
    let hooks = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("sync.yaml"), "status: {{ parent.spec.x").unwrap();
    let definition = lab.definition().child(&lab.api_version(), "parts", "InPlace");
    let definition = definition.with("/spec/hooks/sync", json!({"webhook": {"path": "/shelf/sync"}}));
    let _controller = lab.start(&[]);
    lab.add_definition(&definition);
    let degraded = |reason: &str| {
        let wanted = format!("True {reason}");
        let live = lab.wait(&definition.path(), reason, |live| said(live, "Degraded") == wanted);
        assert_eq!(said(&live, "Ready"), "True Started");
        condition(&live, "Degraded")["message"].as_str().unwrap().to_owned()
    };
    let message = degraded("WaitingForKind");
    assert_eq!(message, format!("the API server has no `parts` in `{}`", lab.api_version()));
    lab.define_kind(&lab.kind("parts", "Part"));
    let message = degraded("HookRefused");
    assert!(message.starts_with("sync: hooks/shelf/sync.yaml:1:"), "{message}");
    fs::write(hooks.join("sync.yaml"), "status: {}").unwrap();
    lab.wait(&definition.path(), "all is well", |live| said(live, "Degraded") == "False NoneFailing");
}

#[test]
fn decorator_counts_what_it_decorates_in_all_kinds() {
    let lab = Lab::new("decorated");
    lab.define_kind(&lab.kind("others", "Other"));
    let hook = Hook::new(|_| json!({"labels": {"seen": "yes"}, "attachments": []}));
    let _controller = lab.start(&[]);
    let things = json!({
        "apiVersion": lab.api_version(), "resource": "things",
        "labelSelector": {"matchLabels": {"decorated": "yes"}},
    });
    let others = json!({"apiVersion": lab.api_version(), "resource": "others"});
    let definition = lab.decorator(json!([things, others])).sync(&hook);
    lab.add_definition(&definition);
    let mut thing = lab.thing_with("a", json!({}));
    lab.plane.create(&lab.thing(""), &thing);
    thing["metadata"] = json!({"name": "b", "labels": {"decorated": "yes"}});
    lab.plane.create(&lab.thing(""), &thing);
    let other = json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}});
    lab.plane.create(&lab.path(&lab.api_version(), "others", ""), &other);
    let live = lab.wait(&definition.path(), "both are counted", |live| counts(live) == (Some(2), Some(0)));
    assert_eq!(said(&live, "Ready"), "True Started");

    let mut kubectl = lab.plane.kubectl();
    let name = definition.path().rsplit('/').next().unwrap().to_owned();
    let output = kubectl.args(["get", "decorators", &name]).output().expect("kubectl runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "TARGETS", "READY", "PARENTS", "FAILING", "AGE"]);
    assert_eq!(rows[1][..6], [&*name, "things,", "others", "True", "2", "0"], "{table}");
    let events = lab.get("/api/v1/namespaces/default/events");
    let told =
        events["items"].as_array().unwrap().iter().filter(|event| event["involvedObject"]["name"] == name);
    let mut reasons: Vec<&str> = told.map(|event| event["reason"].as_str().unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["Started", "Starting"], "one for the definition, not for each of its kinds");
}

#[test]
fn definition_hidden_by_the_file_says_so() {
    let lab = Lab::new("hidden");
    let (in_file, in_cluster) = (Hook::from_spec(), Hook::from_spec());
    let controller = lab.run(&lab.definition().config_maps().sync(&in_file));
    let other = lab.definition().config_maps().sync(&in_cluster);
    lab.add_definition(&other);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.config_map("a"), "the file's works", |_| true);
    lab.wait(&other.path(), "it says so", |live| said(live, "Ready") == "False DefinedInFile");
    let told = controller.log().matches("defined in the file and in the cluster").count();
    assert_eq!((told, in_cluster.count()), (1, 0));
}

#[test]
fn without_the_right_to_the_status_everything_else_works() {
    let mut lab = Lab::new("noright");
    let rule = |groups: &str, resources: &[&str]| json!({"apiGroups": [groups], "resources": resources, "verbs": ["*"]});
    let read = json!({
        "apiGroups": ["metacontroller.k8s.io"], "verbs": ["get", "list", "watch"],
        "resources": ["compositecontrollers", "decoratorcontrollers"],
    });
    let rules = json!([rule(&lab.group, &["*"]), rule("", &["configmaps", "events"]), read]);
    lab.limit_rights(&rules);
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    for name in ["a", "b", "c"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        lab.wait(&lab.config_map(name), "the child is made", |_| true);
        lab.wait_synced(&lab.thing(name));
    }
    lab.wait_until("the log tells of it", || {
        controller.log().contains("status of definitions is not written")
    });
    lab.merge(&definition.path(), json!({"spec": {"resyncPeriodSeconds": 3600}}));
    lab.add_thing("d", json!({"children": [config_map("d", "1")]}));
    lab.wait(&lab.config_map("d"), "the child is made", |_| true);
    lab.wait_quiet(&hook, SILENCE);
    let log = controller.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("status of definitions")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("not allowed to patch compositecontrollers/status"), "{}", lines[0]);
    assert!(lab.get(&definition.path())["status"].is_null());
}
