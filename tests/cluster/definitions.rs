//! Where definitions and templates come from, and what becomes of the parents when these change.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

#[test]
fn edited_file_of_definitions_is_taken_up_and_a_broken_one_is_not() {
    let lab = Lab::new("edited");
    let (first, second) = (Hook::from_spec(), Hook::from_spec());
    let controller = lab.run(&lab.definition().config_maps().sync(&first));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let file = lab.folder.path().join("controllers.yaml");
    let broken = fs::read_to_string(&file).unwrap().replace("childResources", "childResource");
    fs::write(&file, broken).unwrap();
    lab.wait_until("the log tells of it", || controller.log().contains("definition refused"));
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "2")]}}));
    lab.wait(&lab.config_map("a"), "the last good one still works", |child| child["data"]["key"] == "2");
    lab.wait_quiet(&first, SILENCE);
    let calls = first.count();
    lab.write_definitions(&[&lab.definition().config_maps().sync(&second)]);
    lab.wait_until("the new hook is called", || second.count() > 0);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "3")]}}));
    lab.wait(&lab.config_map("a"), "the new one works", |child| child["data"]["key"] == "3");
    assert_eq!(first.count(), calls);
}

/// What finalizes would delete every child of a parent that lives.
#[test]
fn path_of_another_call_is_refused_and_deletes_nothing() {
    let lab = Lab::new("wrongpath");
    let folder = lab.folder.path().join("hooks/shelf");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("sync.yaml"), TEMPLATE).unwrap();
    fs::write(folder.join("finalize.yaml"), "finalized: true\n").unwrap();
    let definition = |path: &str| {
        lab.definition().config_maps().with("/spec/hooks/sync", json!({"webhook": {"path": path}}))
    };
    let controller = lab.run(&definition("/shelf/sync"));
    lab.add_thing("t", json!({"from": "a"}));
    lab.wait(&lab.config_map("t"), "the child is there", |_| true);
    let told = "`spec.hooks.sync.webhook.path` is the path of `finalize`, and the hook is `sync`";
    lab.write_definitions(&[&definition("/shelf/finalize")]);
    lab.wait_until("the log tells of it", || controller.log().contains(told));
    lab.merge(&lab.thing("t"), json!({"spec": {"from": "b"}}));
    lab.wait(&lab.config_map("t"), "the last good one still works", |child| child["data"]["from"] == "b");

    // The same in the cluster.
    let name = format!("{}-posted", lab.namespace);
    lab.add_definition(&definition("/shelf/finalize").named(&name));
    lab.wait_event(&name, "CreateError", told);
    lab.get(&lab.config_map("t"));
}

/// The template itself says what belongs to another call.
#[test]
fn sync_that_answers_finalized_is_refused_and_deletes_nothing() {
    let lab = Lab::new("finalsync");
    let file = lab.folder.path().join("hooks/shelf/sync.yaml");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, TEMPLATE).unwrap();
    let hook = json!({"webhook": {"path": "/shelf/sync"}});
    let _controller = lab.run(&lab.definition().config_maps().with("/spec/hooks/sync", hook));
    lab.add_thing("t", json!({"from": "a"}));
    lab.wait(&lab.config_map("t"), "the child is there", |_| true);
    fs::write(&file, "finalized: true\n").unwrap();
    let message = lab.wait_refused(&lab.thing("t"), "HookRefused");
    assert!(
        message.contains("sync.yaml:1:1: `finalized: true` is the answer to a parent that is being deleted"),
        "{message}"
    );
    lab.get(&lab.config_map("t"));
}

#[test]
fn definitions_of_the_same_parents_name_each_other() {
    let lab = Lab::new("shared");
    let hook = Hook::from_spec();
    let one = lab.definition().config_maps().sync(&hook);
    let other = one.clone().named(&format!("{}-other", lab.namespace));
    lab.write_definitions(&[&one, &other]);
    let controller = lab.start(&[]);
    let told =
        |name: &str| format!("has the parents of `{name}` too: each writes their status over the other's");
    for name in [lab.namespace.clone(), format!("{}-other", lab.namespace)] {
        lab.wait_until("the log names it", || controller.log().contains(&told(&name)));
    }
    let apart = |value: &str| json!({"matchLabels": {"half": value}});
    let half = |definition: &crate::support::lab::Definition, value: &str| {
        definition.clone().with("/spec/parentResource/labelSelector", apart(value))
    };
    let times = || controller.log().matches("has the parents of").count();
    assert_eq!(times(), 2);
    lab.write_definitions(&[&half(&one, "a"), &half(&other, "b")]);
    lab.wait_until("both are taken up", || controller.log().contains("definitions reloaded"));
    let mut thing = lab.thing_with("t", json!({"children": [config_map("a", "1")]}));
    thing["metadata"]["labels"] = json!({"half": "b"});
    lab.plane.create(&lab.thing(""), &thing);
    lab.wait_synced(&lab.thing("t"));
    assert_eq!(times(), 2, "parents that are shared out are nobody else's");
}

#[test]
fn file_that_has_become_empty_stops_nobody_and_an_empty_list_does() {
    let lab = Lab::new("emptied");
    let hook = Hook::from_spec();
    let controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let file = lab.folder.path().join("controllers.yaml");
    for (blank, told) in [("", 1), ("# nothing yet\n---\n", 2)] {
        fs::write(&file, blank).unwrap();
        lab.wait_until("the log tells of it", || {
            controller.log().matches("`controllers.yaml` is empty").count() == told
        });
    }
    lab.merge(&lab.thing("t"), json!({"spec": {"children": [config_map("a", "2")]}}));
    lab.wait(&lab.config_map("a"), "the last good one still works", |child| child["data"]["key"] == "2");
    assert!(!controller.log().contains("controller stopping"));
    fs::write(&file, "{apiVersion: v1, kind: List, items: []}\n").unwrap();
    lab.wait_until("it is stopped on purpose", || controller.log().contains("controller stopping"));
}

const TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}}
data: {version: one, from: {{ parent.spec.from }}}
---
status: {version: one}
";

// B34, B44
#[test]
fn edited_template_reaches_every_parent_and_a_broken_one_reaches_none() {
    let lab = Lab::new("templates");
    // As a ConfigMap volume has it: files are links into a folder that a link names.
    let volume = lab.folder.path().join("hooks");
    let write = |revision: &str, text: &str| {
        fs::create_dir_all(volume.join(revision).join("shelf")).unwrap();
        fs::write(volume.join(revision).join("shelf/sync.yaml"), text).unwrap();
        symlink(revision, volume.join("..new")).unwrap();
        fs::rename(volume.join("..new"), volume.join("..data")).unwrap();
    };
    write("..one", TEMPLATE);
    symlink("..data/shelf", volume.join("shelf")).unwrap();
    let definition = lab.definition().config_maps();
    let hook = json!({"webhook": {"path": "/shelf/sync"}});
    let controller = lab.run(&definition.with("/spec/hooks/sync", hook));
    for name in ["a", "b", "c"] {
        lab.add_thing(name, json!({"from": name}));
        lab.wait(&lab.thing(name), "the status is there", |thing| thing["status"]["version"] == "one");
    }
    assert_eq!(lab.get(&lab.config_map("a"))["data"], json!({"version": "one", "from": "a"}));

    write("..two", "status: {{ parent.spec.from");
    lab.wait_until("the log tells of it", || controller.log().contains("sync.yaml:1"));
    lab.merge(&lab.thing("a"), json!({"spec": {"from": "z"}}));
    lab.wait(&lab.config_map("a"), "the old one still answers", |map| map["data"]["from"] == "z");

    write("..three", &TEMPLATE.replace("one", "three"));
    for name in ["a", "b", "c"] {
        lab.wait(&lab.thing(name), "the new one answers", |thing| thing["status"]["version"] == "three");
        assert_eq!(lab.get(&lab.config_map(name))["data"]["version"], "three");
    }

    // What is wrong only for some parents is told on those.
    write("..four", &TEMPLATE.replace("parent.spec.from", "parent.spec.form"));
    let message = lab.wait_refused(&lab.thing("b"), "HookRefused");
    assert_eq!(
        message,
        "sync: hooks/shelf/sync.yaml:4:31: `parent.spec.form` is absent; hint: did you mean `from`?"
    );
    assert_eq!(lab.get(&lab.config_map("b"))["data"], json!({"version": "three", "from": "b"}));
}

#[test]
fn definition_in_the_cluster_is_run_changed_and_stopped() {
    let lab = Lab::new("incluster");
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let definition = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&definition);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.config_map("a"), "the child is made", |_| true);
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let calls = hook.calls();
    let live = lab.get(&definition.path());
    assert_eq!(calls[0].request["controller"]["metadata"]["uid"], live["metadata"]["uid"]);

    // Metadata alone restarts nothing.
    lab.merge(&definition.path(), json!({"metadata": {"annotations": {"a": "b"}}}));
    lab.expect_silence(&hook, SILENCE);
    lab.merge(&definition.path(), json!({"spec": {"resyncPeriodSeconds": 1}}));
    lab.wait_until("it is visited each second", || hook.count() >= calls.len() + 4);
    let name = definition.path().rsplit('/').next().unwrap().to_owned();
    for what in ["Starting", "Started", "Stopping", "Stopped"] {
        lab.wait_event(&name, what, &format!("{what} controller: {name}"));
    }

    lab.plane.delete(&definition.path());
    lab.wait_until("it has stopped", || controller.log().contains("controller stopping"));
    lab.expect_silence(&hook, SILENCE);
    lab.get(&lab.config_map("a"));
}

#[test]
fn definition_with_other_labels_is_not_ours() {
    let lab = Lab::new("labels");
    let hook = Hook::from_spec();
    let _controller = lab.start(&[]);
    let other = lab.definition().config_maps().sync(&hook);
    lab.add_definition(&other.clone().with("/metadata/labels", json!({"lab": "none"})));
    lab.add_thing("t", json!({}));
    lab.expect_silence(&hook, SILENCE);
    lab.merge(&other.path(), json!({"metadata": {"labels": {"lab": lab.namespace}}}));
    lab.wait_synced(&lab.thing("t"));
    assert_ne!(hook.count(), 0);
}

// B25, B36
#[test]
fn wrong_definition_in_the_cluster_is_refused_alone_and_taken_up_when_mended() {
    let lab = Lab::new("wrongdef");
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let wrong = lab.definition().config_maps().with("/spec/hooks/sync", json!({"webhook": {}}));
    lab.add_definition(&wrong);
    lab.wait_until("the log tells of it", || controller.log().contains("definition refused"));
    let other = Hook::new(|_| json!({"children": [], "status": {"other": true}}));
    let good = lab.definition().named(&format!("{}-good", lab.namespace)).sync(&other);
    lab.define_kind(&lab.kind("others", "Other"));
    lab.add_definition(&good.with("/spec/parentResource/resource", json!("others")));
    let path = lab.path(&lab.api_version(), "others", "");
    let object = json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}});
    lab.plane.create(&path, &object);
    lab.wait(&format!("{path}/o"), "the good one works", |other| other["status"]["other"] == true);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    let refusals = controller.log().matches("definition refused").count();
    assert_eq!(refusals, 1, "it is told once, however often others change");
    lab.merge(&wrong.path(), json!({"spec": {"hooks": {"sync": {"webhook": {"url": hook.url("sync")}}}}}));
    lab.wait(&lab.config_map("a"), "the mended one works", |_| true);
}

#[test]
fn edited_template_wakes_only_the_parents_that_it_answers() {
    let lab = Lab::new("ownhooks");
    lab.define_kind(&lab.kind("others", "Other"));
    let hooks = lab.folder.path().join("hooks");
    let write = |hook: &str, version: u32| {
        fs::create_dir_all(hooks.join(hook)).unwrap();
        fs::write(hooks.join(hook).join("sync.yaml"), format!("status: {{version: {version}}}")).unwrap();
    };
    write("shelf", 1);
    write("other", 1);
    let path = |hook: &str| json!({"webhook": {"path": format!("/{hook}/sync")}});
    let things = lab.definition().with("/spec/hooks/sync", path("shelf"));
    let others = lab.definition().named(&format!("{}-others", lab.namespace));
    let others = others.with("/spec/parentResource/resource", json!("others"));
    lab.write_definitions(&[&things, &others.with("/spec/hooks/sync", path("other"))]);
    let controller = lab.start(&[]);
    lab.add_thing("t", json!({}));
    let others = lab.path(&lab.api_version(), "others", "");
    let object = json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}});
    lab.plane.create(&others, &object);
    lab.wait(&lab.thing("t"), "it is answered", |thing| thing["status"]["version"] == 1);
    lab.wait(&format!("{others}/o"), "it is answered", |other| other["status"]["version"] == 1);

    let calls = |parent: &str| {
        let log = controller.log();
        let parent = format!("namespace={} name={parent} ", lab.namespace);
        log.lines().filter(|line| line.contains("hook called") && line.contains(&parent)).count()
    };
    let before = (calls("t"), calls("o"));
    assert!(before.0 > 0 && before.1 > 0, "the log tells of calls: {before:?}");
    for version in 2..=4 {
        write("shelf", version);
        lab.wait(&lab.thing("t"), "the new one answers", |thing| thing["status"]["version"] == version);
    }
    assert!(calls("t") > before.0);
    assert_eq!(calls("o"), before.1);
}

#[test]
fn finalizer_of_another_definition_is_not_shared() {
    let lab = Lab::new("rivals");
    let hook = Hook::from_spec();
    let controller = lab.start(&[]);
    let of = |name: &str, color: &str| {
        let definition = lab.definition().config_maps().sync(&hook).finalize(&hook);
        let selector = json!({"matchLabels": {"color": color}});
        let definition = definition.named(&format!("{}-{name}", lab.namespace));
        let definition = definition.with("/spec/parentResource/labelSelector", selector);
        definition.with("/spec/finalizer", json!("example.com/own"))
    };
    let (red, blue) = (of("red", "red"), of("blue", "blue"));
    lab.add_definition(&red);
    let mut thing = lab.thing_with("r", json!({"children": [config_map("r", "1")]}));
    thing["metadata"]["labels"] = json!({"color": "red"});
    lab.plane.create(&lab.thing(""), &thing);
    lab.wait_synced(&lab.thing("r"));
    lab.add_definition(&blue);
    lab.wait_until("the log tells of it", || controller.log().contains("controller cannot be started"));
    let log = controller.log();
    let told = log.lines().find(|line| line.contains("controller cannot be started")).unwrap();
    let expected = format!(
        "finalizer `example.com/own` is the one of CompositeController `{}-red` already",
        lab.namespace
    );
    assert!(told.contains(&expected), "{told}");
    let name = blue.path().rsplit('/').next().unwrap().to_owned();
    lab.wait_event(&name, "CreateError", &expected);
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(hook.count_of("finalize"), 0, "nobody finalizes the other's parent");
    assert_eq!(lab.get(&lab.thing("r"))["metadata"]["finalizers"], json!(["example.com/own"]));

    lab.plane.delete(&red.path());
    thing["metadata"] = json!({"name": "b", "labels": {"color": "blue"}});
    thing["spec"] = json!({"children": [config_map("b", "1")]});
    lab.plane.create(&lab.thing(""), &thing);
    lab.wait(&lab.config_map("b"), "the other one is started in its place", |_| true);
}

#[test]
fn webhook_with_a_path_alone_goes_to_the_hook_service_named() {
    let lab = Lab::new("hookurl");
    let hook = Hook::from_spec();
    let built_in = json!({"webhook": {"path": "/shelf/sync"}});
    lab.write_definitions(&[&lab.definition().config_maps().with("/spec/hooks/sync", built_in)]);
    let _controller = lab.start(&["--hook-url", hook.url("").trim_end_matches('/')]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.config_map("a"), "the child is made", |_| true);
    assert_eq!(hook.calls()[0].hook, "shelf/sync");
}

// B95
#[test]
fn parents_that_are_children_are_made_and_finalized_in_order() {
    let lab = Lab::new("nested");
    lab.define_kind(&lab.kind("parts", "Part"));
    let (outer, inner) = (Hook::from_spec(), Hook::from_spec());
    outer.set(|call| {
        let mut answer = crate::support::hook::from_spec(call);
        let parts = call.request["children"].as_object().unwrap().values();
        let parts = parts.filter_map(Value::as_object).flatten();
        let ready = parts.filter(|(_, part)| part["status"]["ready"] == true).count();
        answer["status"] = json!({"ready": ready});
        answer
    });
    let first = lab.definition().child(&lab.api_version(), "parts", "InPlace").sync(&outer).finalize(&outer);
    let second = lab.definition().named(&format!("{}-parts", lab.namespace)).config_maps();
    let second = second.with("/spec/parentResource/resource", json!("parts")).sync(&inner).finalize(&inner);
    lab.write_definitions(&[&first, &second]);
    let _controller = lab.start(&[]);
    let part = json!({
        "apiVersion": lab.api_version(), "kind": "Part", "metadata": {"name": "p"},
        "spec": {"children": [config_map("a", "1")], "status": {"ready": true}},
    });
    lab.add_thing("t", json!({"children": [part]}));
    lab.wait(&lab.thing("t"), "it sees its part's status", |thing| thing["status"]["ready"] == 1);
    lab.get(&lab.config_map("a"));

    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    assert!(lab.plane.get(&lab.path(&lab.api_version(), "parts", "p")).is_none(), "the part went first");
    assert!(lab.plane.get(&lab.config_map("a")).is_none(), "and what it needed went before it");
    let ended = |hook: &Hook| {
        let calls = hook.calls();
        calls.iter().rfind(|call| call.hook == "finalize").expect("it was finalized").at
    };
    assert!(ended(&inner) <= ended(&outer));
}
