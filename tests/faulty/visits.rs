//! Visits under changing circumstances: parents that go, come back or change while the hook thinks, triggers without end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::hook;
use crate::stage::{Stage, side_by_side};

#[test]
fn answer_that_comes_after_the_parents_end_writes_nothing() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.thing("witness", 1, "x");
    stage.settles("witness");
    let held = stage.hook.hold("a");
    stage.thing("a", 2, "x");
    stage.until_true("the hook is asked", || !stage.hook.calls("a").is_empty());
    stage.server.forget_traffic();
    stage.server.delete("things", "a");
    // Events come in order: once this one is followed, the deletion is known.
    stage.set_value("witness", "y");
    stage.settles("witness");
    drop(held);
    stage.becomes_quiet();
    let writes = stage.server.traffic().writes();
    assert!(writes.iter().all(|write| write.contains("witness")), "{writes:?}");
}

#[test]
fn parent_made_anew_during_a_visit_gets_children_of_its_own() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let hanging = stage
        .server
        .fault(|request| request.is_apply_of("configmaps") && request.name == "a-0", Effect::Wait);
    stage.thing("a", 2, "old");
    stage.until_true("the apply is under way", || hanging.met() > 0);
    stage.server.delete("things", "a");
    stage.thing("a", 2, "new");
    drop(hanging);
    // What the old parent has got is in the way until the garbage collector comes.
    stage.until_true("the old child is there", || stage.server.get("configmaps", "a-0").is_some());
    stage.becomes_quiet();
    let thing = stage.server.get("things", "a").expect("it was made anew");
    assert_eq!(thing["status"]["conditions"][0]["reason"], "WaitingForChild", "{thing}");
    stage.server.collect_garbage();
    stage.settles("a");
    stage.becomes_quiet();
    assert_eq!(stage.server.names("configmaps"), ["a-0", "a-1"]);
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
}

#[test]
fn name_in_the_way_is_taken_as_soon_as_it_is_free() {
    let stage = Stage::usual();
    stage.server.create("configmaps", json!({"metadata": {"namespace": "shop", "name": "a-0"}}));
    let _controller = stage.run(&[]);
    stage.thing("a", 2, "x");
    stage.until_true("the status tells of the conflict", || {
        stage.server.get("things", "a").is_some_and(|thing| thing["status"]["conditions"].is_array())
    });
    stage.becomes_quiet();
    stage.server.delete("configmaps", "a-0");
    stage.settles("a");
}

#[test]
fn status_tells_the_generation_that_the_hook_has_seen() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.thing("a", 1, "x");
    stage.settles("a");
    stage.server.forget_traffic();
    let held = stage.hook.hold("a");
    let calls = stage.hook.calls("a").len();
    stage.set_value("a", "y");
    stage.until_true("the hook is asked", || stage.hook.calls("a").len() > calls);
    stage.thing("witness", 0, "x");
    stage.set_value("a", "z");
    stage.settles("witness");
    drop(held);
    stage.settles("a");
    for write in
        stage.server.traffic().0.iter().filter(|request| request.is_status_write() && request.name == "a")
    {
        let status = write.json()["status"].clone();
        let generation = if status["value"] == "y" { 2 } else { 3 };
        assert_eq!(status["observedGeneration"], generation, "{status}");
    }
}

// B15
#[test]
fn every_parent_is_visited_after_its_last_trigger() {
    let stage = Stage::usual();
    stage.hook.answers(|call| {
        std::thread::sleep(Duration::from_millis(30));
        hook::maps(call)
    });
    let names: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    let _controller = stage.run(&["--workers", "2"]);
    for name in &names {
        stage.thing(name, 1, "v0");
    }
    for round in 1..=5 {
        for name in &names {
            stage.set_value(name, &format!("v{round}"));
        }
    }
    for name in &names {
        stage.settles(name);
    }
}

// B02
#[test]
fn settled_fleet_makes_no_calls_and_no_writes() {
    let stage = Stage::usual();
    let names: Vec<String> = (0..100).map(|number| format!("p{number}")).collect();
    for name in &names {
        stage.thing(name, 2, "x");
    }
    let _controller = stage.run(&[]);
    for name in &names {
        stage.settles(name);
    }
    stage.becomes_quiet();
    let traffic = stage.server.traffic();
    assert_eq!(traffic.writes().len(), 300, "two children and a status each");
    assert_eq!(traffic.reads(), [""; 0]);
    assert!(stage.hook.count() <= 200, "{} calls", stage.hook.count());
    let calls = stage.hook.count();
    stage.set_value("p7", "y");
    stage.settles("p7");
    stage.becomes_quiet();
    assert!(stage.hook.count() <= calls + 2, "only the one that changed is looked at");
}

// B26, B27
#[test]
fn answers_that_are_none_delete_nothing() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    stage.server.forget_traffic();
    let child = hook::map("a-0", &json!("x"));
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let answers = [
        (500, json!({"children": []})),
        (200, json!("no")),
        (200, json!([])),
        (200, json!({"children": [child, null]})),
        (200, json!({"children": [child, nameless]})),
        (200, json!({"children": {}})),
        (200, json!({"children": [], "status": 5})),
    ];
    for (number, (code, answer)) in answers.into_iter().enumerate() {
        stage.hook.answers_wrongly(move |_| (code, answer.clone()));
        let calls = stage.hook.calls("a").len();
        stage.set_value("a", &format!("n{number}"));
        stage.until_true("the hook is asked", || stage.hook.calls("a").len() > calls);
        stage.becomes_quiet();
    }
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    stage.hook.answers(hook::maps);
    stage.set_value("a", "end");
    stage.settles("a");
}

// B81
#[test]
fn parent_written_all_the_time_still_gets_its_status() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.thing("a", 1, "x");
    let mut touches = 0;
    stage.until("the status is written meanwhile", || {
        touches += 1;
        stage.server.edit("things", "a", |thing| {
            thing["metadata"]["annotations"] = json!({"touched": touches.to_string()});
        });
        if touches > 20 { stage.check("a") } else { Err(format!("{touches} touches")) }
    });
    stage.becomes_quiet();
    let statuses = stage.server.traffic().count(Request::is_status_write);
    assert!(statuses <= 2, "{statuses} status writes");
}

#[test]
fn change_that_falls_into_the_status_write_is_not_lost() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.thing("a", 1, "x");
    stage.settles("a");
    let late = stage.server.fault(Request::is_status_write, Effect::Wait);
    stage.set_value("a", "y");
    stage.until_true("the status is being written", || late.met() > 0);
    // The answer to the status write tells of this change before the watch does.
    let held = stage.server.hold("things");
    stage.set_value("a", "z");
    drop(late);
    stage.until_true("the status is written", || {
        stage.server.get("things", "a").is_some_and(|thing| thing["status"]["value"] != "x")
    });
    stage.becomes_quiet();
    drop(held);
    stage.settles("a");
}

#[test]
fn deletion_that_falls_into_the_status_write_is_not_lost() {
    let stage = Stage::usual();
    stage.define(&[finalized(&stage)]);
    stage.hook.answers(finalizing);
    let _controller = stage.run(&[]);
    let late = stage.server.fault(Request::is_status_write, Effect::Wait);
    stage.thing("a", 1, "x");
    stage.until_true("the status is being written", || late.met() > 0);
    let held = stage.server.hold("things");
    stage.server.delete("things", "a");
    drop(late);
    stage.becomes_quiet();
    drop(held);
    stage.until_true("the parent is gone", || stage.server.get("things", "a").is_none());
}

fn finalized(stage: &Stage) -> Value {
    let mut definition = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    definition["spec"]["hooks"]["finalize"] = definition["spec"]["hooks"]["sync"].clone();
    definition
}

/// Lets the maps go one after the other, and then the parent.
fn finalizing(call: &Value) -> (u16, Value) {
    if call["finalizing"] != true {
        return hook::maps(call);
    }
    let maps = call["children"]["ConfigMap.v1"].as_object().expect("a group");
    let rest = maps.keys().skip(1).map(|name| hook::map(name, &call["parent"]["spec"]["value"]));
    (200, json!({"children": rest.collect::<Vec<_>>(), "finalized": maps.is_empty()}))
}

// B17
#[test]
fn parent_that_is_not_finalized_yet_is_not_asked_about_in_a_loop() {
    let stage = Stage::usual();
    stage.define(&[finalized(&stage)]);
    stage.hook.answers(|call| {
        let (code, mut answer) = hook::maps(call);
        answer["finalized"] = json!(false);
        answer["resyncAfterSeconds"] = json!(0);
        (code, answer)
    });
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    stage.server.delete("things", "a");
    stage.until_true("it is asked", || stage.hook.calls("a").iter().any(|call| call["finalizing"] == true));
    std::thread::sleep(Duration::from_secs(2));
    let asked = stage.hook.calls("a").iter().filter(|call| call["finalizing"] == true).count();
    assert!(asked <= 3, "{asked} calls");
    stage.hook.answers(finalizing);
    stage.server.edit("things", "a", |thing| thing["metadata"]["annotations"] = json!({"touched": "1"}));
    stage.until_true("the parent is gone", || stage.server.get("things", "a").is_none());
}

#[test]
fn parent_is_finalized_through_every_fault() {
    let conflict = Effect::answer(409, "Conflict", "the object has been modified");
    side_by_side(
        [conflict, Effect::DoThenDrop, Effect::overloaded(503, 0), Effect::DoThenSay("{".into())],
        |fault| {
            let stage = Stage::usual();
            stage.define(&[finalized(&stage)]);
            stage.hook.answers(finalizing);
            let _controller = stage.run(&[]);
            let parent = |request: &Request| request.is_write_of("things");
            stage.server.fault_times(1, parent, fault.clone());
            stage.thing("a", 2, "x");
            stage.settles("a");
            stage.server.fault_times(1, Request::is_delete, fault.clone());
            stage.server.fault_times(1, parent, fault.clone());
            stage.server.delete("things", "a");
            stage.until_true("the parent is gone", || stage.server.get("things", "a").is_none());
            assert_eq!(stage.server.names("configmaps"), [""; 0], "{fault:?}");
        },
    );
}

#[test]
fn finalizing_goes_on_after_a_kill_at_any_moment() {
    let stage = Stage::usual();
    stage.define(&[finalized(&stage)]);
    stage.hook.answers(finalizing);
    stage.thing("a", 6, "x");
    let first = stage.run(&[]);
    stage.settles("a");
    first.kill();
    stage.server.delete("things", "a");
    for kill in 1..6 {
        let controller = stage.run(&[]);
        let count = |stage: &Stage| stage.server.traffic().count(Request::is_delete);
        stage.until_true("a child is deleted", || count(&stage) >= kill);
        controller.kill();
    }
    let _last = stage.run(&[]);
    stage.until_true("the parent is gone", || stage.server.get("things", "a").is_none());
    assert_eq!(stage.server.names("configmaps"), [""; 0]);
}

#[test]
fn child_that_takes_its_time_to_go_is_made_anew_when_it_is_gone() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.server.edit("configmaps", "a-0", |map| map["metadata"]["finalizers"] = json!(["demo.io/slow"]));
    stage.server.delete("configmaps", "a-0");
    stage.becomes_quiet();
    let old = stage.server.get("configmaps", "a-0").expect("its finalizer holds it");
    stage.server.edit("configmaps", "a-0", |map| map["metadata"]["finalizers"] = json!([]));
    stage.settles("a");
    let new = stage.server.get("configmaps", "a-0").expect("it is there");
    assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"]);
}

#[test]
fn orphan_is_adopted_through_every_fault() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let read = |request: &Request| request.is_read();
    let adoption =
        |request: &Request| request.is_apply_of("configmaps") && request.parameter("force").is_none();
    stage.server.fault_times(1, read, Effect::overloaded(503, 0));
    stage.server.fault_times(1, adoption, Effect::answer(409, "Conflict", "the object has been modified"));
    stage.server.fault_times(1, adoption, Effect::DoThenDrop);
    let held = stage.hook.hold("a");
    let uid = stage.thing("a", 1, "x")["metadata"]["uid"].clone();
    stage.until_true("the hook is asked", || !stage.hook.calls("a").is_empty());
    let orphan = json!({
        "metadata": {"namespace": "shop", "name": "a-0", "labels": {"controller-uid": uid}},
        "data": {"value": "by hand"},
    });
    let orphan = stage.server.create("configmaps", orphan);
    drop(held);
    stage.settles("a");
    let adopted = stage.server.get("configmaps", "a-0").expect("it is there");
    assert_eq!(adopted["metadata"]["uid"], orphan["metadata"]["uid"]);
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
}

#[test]
fn what_others_do_with_their_objects_wakes_nobody() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    let calls = stage.hook.count();
    stage.server.create("configmaps", json!({"metadata": {"namespace": "shop", "name": "other"}}));
    for number in 0..200 {
        stage.server.edit("configmaps", "other", |map| map["data"] = json!({"count": number.to_string()}));
    }
    stage.server.delete("configmaps", "other");
    stage.thing("witness", 1, "x");
    stage.settles("witness");
    assert_eq!(stage.hook.count(), calls + stage.hook.calls("witness").len());
}

/// Undoes for two seconds what the controller does to the thing `a`, and counts how often that is.
fn undo(stage: &Stage, done: impl Fn(&Value) -> bool, undo: impl Fn(&mut Value)) -> usize {
    let end = Instant::now() + Duration::from_secs(2);
    let mut undone = 0;
    while Instant::now() < end {
        if stage.server.get("things", "a").is_some_and(|thing| done(&thing)) {
            stage.server.edit("things", "a", &undo);
            undone += 1;
        }
        std::thread::yield_now();
    }
    undone
}

#[test]
fn status_that_somebody_keeps_changing_back_is_not_fought_for() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.thing("a", 1, "x");
    stage.settles("a");
    let undone = undo(
        &stage,
        |thing| thing["status"]["value"] == "x",
        |thing| thing["status"]["value"] = json!("theirs"),
    );
    assert!((5..=9).contains(&undone), "{undone}");
    stage.settles("a");
}

#[test]
fn finalizer_that_somebody_keeps_taking_off_is_not_fought_for() {
    let stage = Stage::usual();
    stage.define(&[finalized(&stage)]);
    let _controller = stage.run(&[]);
    stage.thing("a", 1, "x");
    stage.settles("a");
    let marked =
        |thing: &Value| thing["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    let undone = undo(&stage, marked, |thing| thing["metadata"]["finalizers"] = json!([]));
    assert!((5..=9).contains(&undone), "{undone}");
    stage.until_true("the finalizer is back", || stage.server.get("things", "a").is_some_and(|a| marked(&a)));
}
