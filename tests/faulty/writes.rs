//! Writes that are refused, lost, late, or answered with something else.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::hook;
use crate::stage::{MAPS, Stage, THINGS, side_by_side};

fn of_map(name: &'static str) -> impl Fn(&Request) -> bool + Send + 'static {
    move |request| request.is_apply_of("configmaps") && request.name == name
}

#[test]
fn overloaded_server_is_asked_again_but_not_stormed() {
    side_by_side([429, 500, 503], |code| {
        let stage = Stage::usual();
        let _controller = stage.run(&[]);
        let refusing = stage.server.fault(Request::is_write, Effect::overloaded(code, 1));
        stage.thing("a", 2, "x");
        stage.until_true("several tries are made", || refusing.met() >= 3);
        std::thread::sleep(Duration::from_secs(1));
        let tries = refusing.met();
        assert!(tries < 40, "{tries} tries against {code}");
        drop(refusing);
        stage.settles("a");
        assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    });
}

#[test]
fn retry_comes_no_sooner_than_the_server_asks() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.server.fault_times(1, of_map("a-0"), Effect::overloaded(429, 2));
    stage.thing("a", 1, "x");
    stage.settles("a");
    let tries = stage.server.traffic().times(of_map("a-0"));
    assert_eq!(tries.len(), 2);
    assert!(tries[1] - tries[0] >= Duration::from_secs(2), "{tries:?}");
}

// B81
#[test]
fn conflict_on_the_status_does_not_lose_it() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let conflict = Effect::answer(
        409,
        "Conflict",
        "Operation cannot be fulfilled on things \"a\": the object has been modified; please apply your changes to the latest version and try again",
    );
    stage.server.fault_times(2, Request::is_status_write, conflict);
    stage.thing("a", 1, "x");
    stage.settles("a");
    assert_eq!(stage.server.traffic().count(|request| request.is_apply_of("configmaps")), 1);
    assert_eq!(stage.server.traffic().count(Request::is_event), 0, "a conflict is nobody's business");
}

#[test]
fn lasting_conflicts_make_no_storm() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let conflict =
        Effect::answer(409, "Conflict", "Operation cannot be fulfilled: the object has been modified");
    let conflicts = stage.server.fault(Request::is_write, conflict);
    stage.thing("a", 1, "x");
    stage.until_true("several tries are made", || conflicts.met() >= 4);
    std::thread::sleep(Duration::from_secs(1));
    assert!(conflicts.met() < 40, "{} tries", conflicts.met());
    drop(conflicts);
    stage.settles("a");
}

// B118
#[test]
fn failed_status_write_is_made_good_without_another_child() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.server.fault_times(
        1,
        Request::is_status_write,
        Effect::answer(500, "InternalError", "etcd is away"),
    );
    stage.thing("a", 1, "x");
    stage.settles("a");
    assert_eq!(stage.server.traffic().count(|request| request.is_apply_of("configmaps")), 1);
}

#[test]
fn writes_whose_answers_are_lost_are_done_once() {
    side_by_side(
        [Effect::DoThenDrop, Effect::DoThenSay("<html>".into()), Effect::DoThenSay("{}".into())],
        |lost| {
            let stage = Stage::usual();
            let _controller = stage.run(&[]);
            let name = format!("{lost:?}");
            stage.server.fault_times(3, Request::is_write, lost);
            stage.thing("a", 2, "x");
            stage.settles("a");
            stage.becomes_quiet();
            let traffic = stage.server.traffic();
            assert_eq!(stage.server.names("configmaps"), ["a-0", "a-1"]);
            assert_eq!(traffic.deletes(), [""; 0]);
            assert!(traffic.writes().len() <= 6, "{name}: {:?}", traffic.writes());
        },
    );
}

#[test]
fn answer_of_another_object_is_not_believed() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": "shop", "name": "b-0", "uid": "another", "resourceVersion": "9000",
    }});
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    for (value, answer) in [("y", nameless), ("z", other)] {
        stage.server.fault_times(1, of_map("a-0"), Effect::DoThenSay(answer.to_string()));
        stage.set_value("a", value);
        stage.settles("a");
    }
    stage.server.delete("configmaps", "a-0");
    stage.settles("a");
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
}

#[test]
fn answer_with_an_older_object_is_overtaken_by_the_watch() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.server.fault_times(2, |request| request.is_apply_of("configmaps"), Effect::DoThenAnswerOlder);
    stage.set_value("a", "y");
    stage.settles("a");
    stage.becomes_quiet();
    let writes = stage.server.traffic().count(|request| request.is_apply_of("configmaps"));
    assert!(writes <= 6, "{writes} applies");
}

#[test]
fn deletion_whose_answer_is_lost_is_done_once() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.server.fault_times(1, Request::is_delete, Effect::DoThenDrop);
    stage.server.edit("things", "a", |thing| thing["spec"]["size"] = json!(1));
    stage.settles("a");
    stage.becomes_quiet();
    let deletes = stage.server.traffic().deletes();
    assert!(deletes.len() <= 2, "{deletes:?}");
    assert_eq!(stage.server.names("configmaps"), ["a-0"]);
}

#[test]
fn apply_without_an_answer_holds_up_no_other_parent() {
    let stage = Stage::usual();
    let _controller = stage.run(&["--workers", "2"]);
    let hanging = stage.server.fault(of_map("stuck-0"), Effect::Wait);
    stage.thing("stuck", 1, "x");
    stage.until_true("the apply hangs", || hanging.met() > 0);
    for name in ["a", "b", "c"] {
        stage.thing(name, 1, "x");
    }
    for name in ["a", "b", "c"] {
        stage.settles(name);
    }
    drop(hanging);
    stage.settles("stuck");
}

#[test]
fn neighbours_of_one_kind_are_written_at_once_and_kinds_in_turn() {
    let stage = Stage::new(&[THINGS, MAPS, ("v1", "Secret", "secrets", false)]);
    stage.define(&[stage.definition("things", "demo.io/v1/things", &["v1/configmaps", "v1/secrets"])]);
    stage.hook.answers(|call| {
        let child = |kind: &str, name: &str| {
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name},
                   "data": {"value": call["parent"]["spec"]["value"]}})
        };
        let children = [
            child("ConfigMap", "one"),
            child("ConfigMap", "two"),
            child("Secret", "three"),
            child("ConfigMap", "four"),
        ];
        (200, json!({"children": children}))
    });
    let _controller = stage.run(&[]);
    let one = stage.server.fault(of_map("one"), Effect::Wait);
    let three = stage.server.fault(|request| request.is_apply_of("secrets"), Effect::Wait);
    stage.thing("a", 1, "x");
    stage.until_true("the first waits and the second is there", || {
        one.met() == 1 && stage.server.names("configmaps") == ["two"]
    });
    let freed = Instant::now();
    drop(one);
    stage.until_true("the third waits", || three.met() == 1);
    let third = stage.server.traffic().times(|request| request.is_apply_of("secrets"));
    assert!(third[0] > freed, "another kind waits for its turn");
    assert_eq!(stage.server.names("configmaps"), ["one", "two"]);
    let freed = Instant::now();
    drop(three);
    stage.until_true("all are there", || stage.server.names("configmaps") == ["four", "one", "two"]);
    assert!(stage.server.traffic().times(of_map("four"))[0] > freed, "and the first kind for its next one");
}

#[test]
fn definition_whose_applies_hang_holds_up_no_other_definition() {
    let gadgets = ("toys.io/v1", "Gadget", "gadgets", true);
    let stage = Stage::new(&[THINGS, MAPS, gadgets, ("v1", "Secret", "secrets", false)]);
    let definitions: Vec<_> = (0..6)
        .map(|number| stage.definition(&format!("gadgets-{number}"), "toys.io/v1/gadgets", &["v1/secrets"]))
        .chain([stage.definition("things", "demo.io/v1/things", &["v1/configmaps"])])
        .collect();
    stage.define(&definitions);
    stage.hook.answers(|call| {
        if call["parent"]["kind"] == "Thing" {
            return hook::maps(call);
        }
        let name = format!(
            "{}-{}",
            call["controller"]["metadata"]["name"].as_str().unwrap_or_default(),
            call["parent"]["metadata"]["name"].as_str().unwrap_or_default()
        );
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        (200, json!({"children": [secret]}))
    });
    let _controller = stage.run(&[]);
    let hanging = stage.server.fault(|request| request.is_apply_of("secrets"), Effect::Wait);
    for number in 0..8 {
        let gadget = json!({"metadata": {"namespace": "shop", "name": format!("g{number}")}});
        stage.server.create("gadgets", gadget);
    }
    stage.until_true("many applies hang", || hanging.met() >= 32);
    stage.thing("a", 2, "x");
    stage.settles("a");
}

#[test]
fn events_that_are_not_taken_hold_up_no_write() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let hanging = stage.server.fault(Request::is_event, Effect::Wait);
    let refusing = stage.server.fault(
        |request| request.name.starts_with("bad-"),
        Effect::answer(422, "Invalid", "ConfigMap is invalid: data: Invalid value: \"x\": not today"),
    );
    for number in 0..40 {
        stage.thing(&format!("bad-{number}"), 1, "x");
    }
    stage.until_true("all are refused", || refusing.met() >= 40 && hanging.met() > 0);
    stage.thing("a", 2, "x");
    stage.settles("a");
}

// B85
#[test]
fn refused_child_is_not_tried_for_ever_and_holds_up_no_other() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let refusing = stage.server.fault(
        of_map("a-1"),
        Effect::answer(422, "Invalid", "ConfigMap \"a-1\" is invalid: data: Invalid value: \"x\": not today"),
    );
    stage.thing("a", 3, "x");
    let condition = stage.until("the status says so", || {
        let status = stage.server.get("things", "a").expect("it is there")["status"].clone();
        if status["conditions"].is_array() { Ok(status["conditions"][0].clone()) } else { Err(status) }
    });
    assert_eq!(condition["type"], "Synced");
    assert_eq!(condition["reason"], "ChildRefused");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.contains("ConfigMap shop/a-1") && message.contains("not today"), "{message}");
    stage.becomes_quiet();
    assert_eq!(refusing.met(), 1);
    assert_eq!(stage.server.names("configmaps"), ["a-0", "a-2"]);
    drop(refusing);
    stage.set_value("a", "y");
    stage.settles("a");
}

// B115
#[test]
fn secret_values_are_in_no_log() {
    let secret = "c3dvcmRmaXNo";
    let stage = Stage::new(&[THINGS, ("v1", "Secret", "secrets", false)]);
    stage.define(&[stage.definition("things", "demo.io/v1/things", &["v1/secrets"])]);
    stage.hook.answers(move |call| {
        let name = call["parent"]["metadata"]["name"].clone();
        let child = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": secret},
        });
        (200, json!({"children": [child], "status": {"seen": call["children"]}}))
    });
    let controller = stage.run(&["--log-level", "trace"]);
    let refusal = "failed to create typed patch object (shop/a; v1, Kind=Secret): .data.password: expected map, got &value.valueUnstructured{Value:\"c3dvcmRmaXNo\"}";
    let refused = |request: &Request| request.is_apply_of("secrets") && request.name == "a";
    stage.server.fault_times(1, refused, Effect::answer(500, "", refusal));
    stage.server.fault_times(1, Request::is_write, Effect::DoThenSay(format!("{{\"data\": \"{secret}\"")));
    for name in ["a", "b"] {
        stage.thing(name, 0, "x");
    }
    stage.until_true("the other Secret is there", || stage.server.names("secrets").contains(&"b".into()));
    stage.until_true("the refusal is told", || {
        stage.server.traffic().0.iter().any(|request| {
            request.is_event() && String::from_utf8_lossy(&request.http.body).contains("data.password")
        })
    });
    stage.server.edit("secrets", "b", |secret| secret["data"] = json!({"password": "b3RoZXI="}));
    stage.until_true("it is put right", || {
        stage.server.get("secrets", "b").is_some_and(|object| object["data"]["password"] == secret)
    });
    let log = controller.log();
    assert!(log.contains("DEBUG") && log.contains("password"), "the log tells what differs:\n{log}");
    assert!(!log.contains(secret), "{log}");
    let told = stage.server.traffic();
    let events = told.0.iter().filter(|request| request.is_event());
    assert!(events.clone().count() > 0);
    for event in events {
        assert!(!String::from_utf8_lossy(&event.http.body).contains(secret), "{event:?}");
    }
}

#[test]
fn failed_child_is_tried_again_long_before_a_far_resync() {
    let stage = Stage::usual();
    stage.hook.answers(|call| {
        let (code, mut answer) = hook::maps(call);
        answer["resyncAfterSeconds"] = json!(3600);
        (code, answer)
    });
    let _controller = stage.run(&[]);
    stage.server.fault_times(1, of_map("a-0"), Effect::answer(500, "InternalError", "etcd is away"));
    stage.thing("a", 1, "x");
    stage.settles("a");
}

#[test]
fn resync_comes_in_time_while_a_child_keeps_failing() {
    let stage = Stage::usual();
    stage.hook.answers(|call| {
        let (code, mut answer) = hook::maps(call);
        answer["resyncAfterSeconds"] = json!(0.2);
        (code, answer)
    });
    let _controller = stage.run(&[]);
    let _denied = stage.server.fault(of_map("a-0"), Effect::overloaded(429, 60));
    stage.thing("a", 1, "x");
    stage.until_true("the hook is asked again and again", || stage.hook.calls("a").len() >= 5);
}

#[test]
fn child_to_be_created_anew_is_not_deleted_on_doubt() {
    let stage = Stage::usual();
    let mut definition = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    definition["spec"]["childResources"][0]["updateStrategy"]["method"] = json!("Recreate");
    stage.define(&[definition]);
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    let doubts = [
        Effect::overloaded(429, 0),
        Effect::answer(500, "InternalError", "etcd is away"),
        Effect::overloaded(503, 0),
        Effect::answer(404, "NotFound", "the server could not find the requested resource"),
        Effect::answer(403, "Forbidden", "configmaps \"a-0\" is forbidden: exceeded quota: small"),
        Effect::answer(422, "Invalid", "ConfigMap \"a-0\" is invalid: data: Invalid value: \"x\": too long"),
        Effect::Drop,
        Effect::DoThenSay("{".into()),
    ];
    for (number, doubt) in doubts.into_iter().enumerate() {
        let dry_run = |request: &Request| request.parameter("dryRun").is_some();
        let faulty = stage.server.fault(dry_run, doubt);
        stage.set_value("a", &format!("v{number}"));
        stage.until_true("the server is asked", || faulty.met() > 0);
        stage.becomes_quiet();
        assert_eq!(stage.server.traffic().deletes(), [""; 0], "doubt {number}");
    }
    stage.settles("a");
    stage.server.forget_traffic();
    let immutable = Effect::answer(
        422,
        "Invalid",
        "ConfigMap \"a-0\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
    );
    stage.server.fault_times(1, |request| request.parameter("dryRun").is_some(), immutable);
    stage.set_value("a", "end");
    stage.settles("a");
    assert_eq!(stage.server.traffic().deletes().len(), 1);
}

#[test]
fn deletes_name_the_uid_and_run_in_the_background_and_a_successor_of_the_name_survives() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    let uid = stage.server.get("configmaps", "a-1").expect("it is there")["metadata"]["uid"].clone();
    // Somebody has made it anew, and the watch does not tell.
    let held = stage.server.hold("configmaps");
    stage.server.delete("configmaps", "a-1");
    let theirs = json!({"metadata": {"namespace": "shop", "name": "a-1"}, "data": {"value": "theirs"}});
    let theirs = stage.server.create("configmaps", theirs);
    stage.server.edit("things", "a", |thing| thing["spec"]["size"] = json!(1));
    stage.until_true("it is deleted", || stage.server.traffic().count(Request::is_delete) > 0);
    let traffic = stage.server.traffic();
    let delete = traffic.0.iter().find(|request| request.is_delete()).expect("it came");
    let options = delete.json();
    assert_eq!(options["preconditions"], json!({"uid": uid}));
    assert_eq!(options["propagationPolicy"], "Background");
    drop(held);
    stage.settles("a");
    stage.becomes_quiet();
    let live = stage.server.get("configmaps", "a-1").expect("it is not ours to delete");
    assert_eq!(live["metadata"]["uid"], theirs["metadata"]["uid"]);
}
