//! What becomes of a rollout under way when the parent changes once more.

use serde_json::json;

use crate::rolling::stage::{
    Nurse, answer, call_ready, lab, part_path, parts, revision, revisions, rolling, wait_updated,
};
use crate::support::hook::{Hook, Reply};
use crate::support::lab::{Definition, Lab, SILENCE};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A Thing with three Parts at `x: 2`, the first of which is not well: the others are at 1.
fn stopped(lab: &Lab, definition: Definition) -> crate::support::controller::Controller {
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({"x": "1", "parts": NAMES}));
    wait_updated(lab, &lab.thing("t"), "OnLatestRevision", "");
    NAMES.iter().for_each(|name| call_ready(lab, name, true));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    wait_updated(lab, &lab.thing("t"), "RolloutWaiting", "Part a: its newest state is not acted upon yet");
    assert_eq!(parts(lab, &NAMES), ["2", "1", "1"]);
    assert_eq!(
        revisions(lab, &lab.get(&lab.thing("t"))),
        [revision("1", &["b", "c"]), revision("2", &["a"])]
    );
    controller
}

/// Only `x` starts a rollout.
fn by_x(definition: Definition) -> Definition {
    definition.with("/spec/parentResource/revisionHistory", json!({"fieldPaths": ["spec.x"]}))
}

#[test]
fn old_state_wanted_again_takes_back_what_was_moved() {
    let lab = lab("back");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, rolling(&lab).sync(&hook));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "1"}}));
    lab.wait_until("it is taken back", || parts(&lab, &NAMES) == ["1", "1", "1"]);
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert_eq!(revisions(&lab, &thing), [revision("1", &NAMES)]);
    let generation = |name: &str| lab.get(&part_path(&lab, name))["metadata"]["generation"].clone();
    assert_eq!(NAMES.map(generation), [json!(3), json!(1), json!(1)]);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn third_state_begins_again_with_the_first_child() {
    let lab = lab("third");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, rolling(&lab).sync(&hook));
    call_ready(&lab, "a", true);
    lab.wait_until("the second one follows", || parts(&lab, &NAMES) == ["2", "2", "1"]);
    wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part b: its newest state");
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "3"}}));
    let thing = wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: its newest state");
    assert_eq!(parts(&lab, &NAMES), ["3", "2", "1"]);
    assert_eq!(
        revisions(&lab, &thing),
        [revision("1", &["c"]), revision("2", &["b"]), revision("3", &["a"])]
    );
    let nurse = Nurse::new(&lab);
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    drop(nurse);
    assert_eq!(parts(&lab, &NAMES), ["3", "3", "3"]);
    assert_eq!(revisions(&lab, &thing), [revision("3", &NAMES)]);
    let generation = |name: &str| lab.get(&part_path(&lab, name))["metadata"]["generation"].clone();
    assert_eq!(NAMES.map(generation), [json!(3), json!(3), json!(2)]);
}

#[test]
fn child_that_is_not_wanted_any_more_holds_up_nobody() {
    let lab = lab("scaled");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, by_x(rolling(&lab)).sync(&hook));
    lab.merge(&lab.thing("t"), json!({"spec": {"parts": ["b", "d"]}}));
    lab.wait_gone(&part_path(&lab, "a"));
    lab.wait_gone(&part_path(&lab, "c"));
    // The new one is made as it is wanted now, and waited for as the others are.
    lab.wait_until("the new one is made", || lab.plane.get(&part_path(&lab, "d")).is_some());
    assert_eq!(parts(&lab, &["d"]), ["2"]);
    call_ready(&lab, "d", true);
    lab.wait_until("it goes on", || parts(&lab, &["b"]) == ["2"]);
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert_eq!(revisions(&lab, &thing), [revision("2", &["b", "d"])]);
    lab.expect_silence(&hook, SILENCE);
}

#[test]
fn other_fields_than_those_of_the_revision_reach_all_children_at_once() {
    let lab = lab("paths");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, by_x(rolling(&lab)).sync(&hook));
    lab.merge(&lab.thing("t"), json!({"spec": {"label": "new"}}));
    let labels = || NAMES.map(|name| lab.get(&part_path(&lab, name))["spec"]["label"].clone());
    lab.wait_until("all have the label", || labels().iter().all(|label| *label == "new"));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(parts(&lab, &NAMES), ["2", "1", "1"]);
    let thing = lab.get(&lab.thing("t"));
    assert_eq!(revisions(&lab, &thing), [revision("1", &["b", "c"]), revision("2", &["a"])]);
    let kept = crate::rolling::stage::kept(&lab, &thing);
    assert!(kept.iter().all(|kept| kept["parentPatch"]["spec"].as_object().unwrap().len() == 1));
}

#[test]
fn optional_field_that_the_old_state_lacks_waits_for_its_childs_turn() {
    let lab = lab("optional");
    let hook = Hook::new(answer);
    let paths = json!({"fieldPaths": ["spec.x", "spec.label"]});
    let definition = rolling(&lab).with("/spec/parentResource/revisionHistory", paths);
    let _controller = lab.run(&definition.sync(&hook));
    lab.add_thing("t", json!({"x": "1", "parts": NAMES}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    lab.merge(&lab.thing("t"), json!({"spec": {"label": "new"}}));
    wait_updated(&lab, &lab.thing("t"), "RolloutWaiting", "Part a: it has no condition `Ready`");
    let labels = NAMES.map(|name| lab.get(&part_path(&lab, name))["spec"]["label"].clone());
    assert_eq!(labels, [json!("new"), json!(null), json!(null)]);
}

#[test]
fn deleted_child_comes_back_in_its_own_revision() {
    let lab = lab("lost");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, rolling(&lab).sync(&hook));
    let uid = lab.get(&part_path(&lab, "c"))["metadata"]["uid"].clone();
    lab.plane.delete(&part_path(&lab, "c"));
    lab.wait(&part_path(&lab, "c"), "it is made anew", |part| part["metadata"]["uid"] != uid);
    lab.merge(&part_path(&lab, "b"), json!({"spec": {"x": "somebody's"}}));
    lab.wait_until("what somebody changed is put right", || parts(&lab, &["b"]) == ["1"]);
    assert_eq!(parts(&lab, &NAMES), ["2", "1", "1"]);
}

#[test]
fn older_revision_that_the_hook_refuses_holds_up_nobody() {
    let lab = lab("refused");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, rolling(&lab).sync(&hook));
    hook.set(|call| match call.spec()["x"].as_str() {
        Some("1") => Reply::Text(422, "x: 1 was never meant".into()),
        _ => answer(call).into(),
    });
    lab.merge(&part_path(&lab, "c"), json!({"spec": {"label": "left as it is"}}));
    let nurse = Nurse::new(&lab);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    drop(nurse);
    assert_eq!(parts(&lab, &NAMES), ["2", "2", "2"]);
}

#[test]
fn hook_that_gives_no_answer_for_an_older_revision_stops_everything() {
    let lab = lab("unavailable");
    let hook = Hook::new(answer);
    let _controller = stopped(&lab, rolling(&lab).sync(&hook));
    hook.set(|call| match call.spec()["x"].as_str() {
        Some("1") => Reply::Text(503, "not now".into()),
        _ => answer(call).into(),
    });
    call_ready(&lab, "a", true);
    let message = lab.wait_refused(&lab.thing("t"), "HookUnavailable");
    assert!(message.starts_with("sync: "), "{message}");
    assert_eq!(parts(&lab, &NAMES), ["2", "1", "1"]);
    assert_eq!(
        revisions(&lab, &lab.get(&lab.thing("t"))),
        [revision("1", &["b", "c"]), revision("2", &["a"])]
    );
    hook.set(answer);
    lab.wait_until("the second one follows", || parts(&lab, &NAMES) == ["2", "2", "1"]);
    lab.wait_synced(&lab.thing("t"));
}

#[test]
fn each_revision_is_shown_the_objects_that_it_asks_for() {
    let lab = lab("related");
    let hook = Hook::new(answer);
    // What a Part holds is what the ConfigMap says that its own revision names.
    hook.set(|call| {
        let named = format!("from-{}", call.spec()["x"].as_str().unwrap());
        if call.hook == "customize" {
            return json!({"relatedResources": [{"apiVersion": "v1", "resource": "secrets", "names": [named]}]});
        }
        let shown = call.related("Secret.v1");
        assert_eq!(shown, [&named]);
        let mut answer = answer(call);
        let word = &call.request["related"]["Secret.v1"][&named]["metadata"]["labels"]["word"];
        for child in answer["children"].as_array_mut().unwrap() {
            child["spec"]["label"] = word.clone();
        }
        answer
    });
    let source = |x: &str, word: &str| {
        let mut secret = crate::support::objects::secret(&format!("from-{x}"), "any");
        secret["metadata"]["labels"] = json!({"word": word});
        secret
    };
    lab.create("v1", "secrets", &source("1", "one"));
    lab.create("v1", "secrets", &source("2", "two"));
    let _controller = stopped(&lab, rolling(&lab).sync(&hook).customize(&hook));
    let labels = || NAMES.map(|name| lab.get(&part_path(&lab, name))["spec"]["label"].clone());
    assert_eq!(labels(), ["two", "one", "one"]);
    // What an older revision asks for wakes the parent, too.
    let path = lab.path("v1", "secrets", "from-1");
    lab.merge(&path, json!({"metadata": {"labels": {"word": "first"}}}));
    lab.wait_until("its children follow", || labels() == ["two", "first", "first"]);
    let nurse = Nurse::new(&lab);
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    drop(nurse);
    assert_eq!(labels(), ["two", "two", "two"]);
}

/// The children of one list of the hook's usual answer.
fn only(kind: &'static str) -> Hook {
    Hook::new(move |call| {
        let mut answer = answer(call);
        answer["children"].as_array_mut().unwrap().retain(|child| child["kind"] == kind);
        answer.as_object_mut().unwrap().remove("status");
        answer
    })
}

#[test]
fn definitions_of_the_same_parents_keep_their_children_in_the_same_revisions() {
    let lab = lab("tworoll");
    let (parts_hook, books_hook) = (only("Part"), only("ConfigMap"));
    let mut of_parts = rolling(&lab).sync(&parts_hook);
    of_parts.0["spec"]["childResources"].as_array_mut().unwrap().truncate(1);
    let mut of_books = rolling(&lab).sync(&books_hook);
    of_books.0["spec"]["childResources"].as_array_mut().unwrap().remove(0);
    of_books.0["metadata"]["name"] = json!(format!("{}-books", lab.namespace));
    lab.write_definitions(&[&of_parts, &of_books]);
    let _controller = lab.start(&[]);
    let (part_names, book_names) = (["p", "q"], ["a", "b"]);
    let thing = lab.add_thing("t", json!({"x": "1", "parts": part_names, "books": book_names}));
    let all = ["a", "b", "p", "q"];
    lab.wait_until("both have noted theirs", || revisions(&lab, &thing) == [revision("1", &all)]);
    part_names.iter().for_each(|name| call_ready(&lab, name, true));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    let split = [revision("1", &["q"]), revision("2", &["a", "b", "p"])];
    lab.wait_until("the books wait for no part", || revisions(&lab, &thing) == split);
    assert_eq!(parts(&lab, &part_names), ["2", "1"]);
    let nurse = Nurse::new(&lab);
    lab.wait_until("all are there", || revisions(&lab, &thing) == [revision("2", &all)]);
    drop(nurse);
    let writes = lab.writes();
    let kept: Vec<_> = writes.iter().filter(|write| write.contains("controllerrevisions")).collect();
    // Three for each child that moves, and what both see at the same time.
    assert!(kept.len() < 24, "{kept:?}");
}
