//! Kinds that are not there yet, not there for a moment, or cannot be asked about.

use std::time::Duration;

use serde_json::{Value, json};

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::hook;
use crate::stage::{MAPS, Stage, THINGS, side_by_side};

const GADGETS: (&str, &str, &str, bool) = ("toys.io/v1", "Gadget", "gadgets", true);

/// The usual answer, and a gadget beside the maps.
fn with_gadget(call: &Value) -> (u16, Value) {
    let (code, mut answer) = hook::maps(call);
    let gadget = json!({"apiVersion": "toys.io/v1", "kind": "Gadget", "metadata": {"name": call["parent"]["metadata"]["name"]}});
    answer["children"].as_array_mut().expect("a list").push(gadget);
    (code, answer)
}

fn discovery_of(api_version: &'static str) -> impl Fn(&Request) -> bool + Send + 'static {
    move |request| request.is_discovery() && request.api_version == api_version
}

// B103
#[test]
fn parent_kind_that_comes_later_is_controlled_without_a_restart() {
    let stage = Stage::new(&[MAPS]);
    let _controller = stage.run(&[]);
    stage.until_true("the kind is looked up", || {
        stage.server.traffic().count(discovery_of("demo.io/v1")) >= 3
    });
    stage.server.install("demo.io/v1", "Thing", "things", true);
    stage.thing("a", 2, "x");
    stage.settles("a");
}

// B16, B103
#[test]
fn child_kind_that_comes_later_is_written_soon_after() {
    let stage = Stage::usual();
    stage.define(&[stage.definition(
        "things",
        "demo.io/v1/things",
        &["v1/configmaps", "toys.io/v1/gadgets"],
    )]);
    stage.hook.answers(with_gadget);
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.until_true("the other children are written and the status says what is missing", || {
        let status = stage.server.get("things", "a").expect("it is there")["status"].clone();
        stage.server.get("configmaps", "a-0").is_some()
            && status["conditions"][0]["message"].as_str().is_some_and(|text| text.contains("toys.io/v1"))
    });
    let calls = stage.hook.count();
    stage.becomes_quiet();
    assert!(stage.hook.count() <= calls + 2, "waiting costs nothing");
    stage.server.install(GADGETS.0, GADGETS.1, GADGETS.2, GADGETS.3);
    stage.until_true("the gadget is written", || stage.server.get("gadgets", "a").is_some());
    stage.settles("a");
}

// B25, B104
#[test]
fn broken_group_holds_up_only_those_that_need_it() {
    let stage = Stage::new(&[THINGS, MAPS, GADGETS, ("plain.io/v1", "Part", "parts", true)]);
    stage.define(&[
        stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]),
        stage.definition("parts", "plain.io/v1/parts", &["toys.io/v1/gadgets"]),
    ]);
    stage.hook.answers(|call| {
        if call["parent"]["kind"] == "Thing" { hook::maps(call) } else { (200, json!({"children": []})) }
    });
    let broken = stage.server.fault(discovery_of("toys.io/v1"), Effect::overloaded(503, 1));
    stage.server.create("parts", json!({"metadata": {"namespace": "shop", "name": "p"}}));
    let _controller = stage.run(&[]);
    stage.thing("a", 2, "x");
    stage.settles("a");
    stage.until_true("the other's status says what is wrong", || {
        let part = stage.server.get("parts", "p").expect("it is there");
        part["status"]["conditions"][0]["reason"] == "WaitingForKind"
    });
    assert!(stage.hook.calls("p").is_empty(), "a hook is not asked with half of the children");
    drop(broken);
    stage.until_true("the hook is asked", || !stage.hook.calls("p").is_empty());
}

#[test]
fn kinds_gone_for_a_moment_cost_no_child() {
    let stage = Stage::new(&[THINGS, MAPS, GADGETS]);
    stage.define(&[stage.definition(
        "things",
        "demo.io/v1/things",
        &["v1/configmaps", "toys.io/v1/gadgets"],
    )]);
    // Makes maps only beside a gadget, as a template does that waits for one child before it makes the next.
    stage.hook.answers(|call| {
        let (code, mut answer) = with_gadget(call);
        if call["children"]["Gadget.toys.io/v1"].as_object().is_none_or(|gadgets| gadgets.is_empty()) {
            answer["children"].as_array_mut().expect("a list").retain(|child| child["kind"] == "Gadget");
        }
        (code, answer)
    });
    stage.thing("a", 2, "x");
    let first = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    let gone = |request: &Request| request.api_version == "toys.io/v1" || request.api_version == "demo.io/v1";
    let not_found = Effect::answer(404, "NotFound", "the server could not find the requested resource");
    // An API server that starts knows its custom kinds a moment later, the watches being gone.
    let starting = stage.server.fault(gone, not_found.clone());
    stage.server.cut_watches();
    stage.until_true("the kinds are looked up", || starting.met() >= 6);
    stage.server.edit("things", "a", |thing| thing["metadata"]["annotations"] = json!({"touched": "1"}));
    stage.becomes_quiet();
    drop(starting);
    stage.settles("a");
    stage.becomes_quiet();
    first.kill();
    // The same at a start, where only the children's kind is not there yet.
    let starting = stage.server.fault(|request| request.api_version == "toys.io/v1", not_found);
    let _second = stage.run(&[]);
    stage.until_true("the kinds are looked up", || starting.met() >= 4);
    stage.becomes_quiet();
    drop(starting);
    stage.settles("a");
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    assert_eq!(stage.server.names("configmaps"), ["a-0", "a-1"]);
}

#[test]
fn kind_that_is_never_there_does_not_keep_unwanted_children() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let first = stage.run(&[]);
    stage.settles("a");
    first.kill();
    stage.define(&[stage.definition(
        "things",
        "demo.io/v1/things",
        &["v1/configmaps", "toys.io/v1/gadgets"],
    )]);
    stage.server.edit("things", "a", |thing| thing["spec"] = json!({"size": 1, "value": "y"}));
    let _second = stage.run(&[]);
    // Until the API server has had the time to start in full, the kind may still be there.
    controlplane::wait_until(Duration::from_secs(40), "the child is deleted", || {
        let maps = stage.server.names("configmaps");
        if maps == ["a-0"] { Ok(()) } else { Err(format!("{maps:?}")) }
    });
}

#[test]
fn status_is_written_once_its_kind_has_a_place_for_it() {
    let stage = Stage::new(&[("demo.io/v1", "Thing", "things", false), MAPS]);
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.until_true("the child is written", || stage.server.get("configmaps", "a-0").is_some());
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().count(Request::is_status_write), 0);
    // Who changes a definition of a kind ends its watches.
    stage.server.give_status("things");
    stage.server.cut_watches();
    stage.until_true("the status is written", || {
        stage.server.get("things", "a").is_some_and(|thing| thing["status"]["maps"] == 1)
    });
}

#[test]
fn parent_is_not_finalized_by_a_hook_that_cannot_see_its_children() {
    let not_found = Effect::answer(404, "NotFound", "the server could not find the requested resource");
    side_by_side([not_found, Effect::overloaded(503, 1)], |away| {
        let stage = Stage::new(&[THINGS, GADGETS]);
        let mut definition = stage.definition("things", "demo.io/v1/things", &["toys.io/v1/gadgets"]);
        definition["spec"]["hooks"]["finalize"] = definition["spec"]["hooks"]["sync"].clone();
        stage.define(&[definition]);
        // One gadget, which has to be asked to go before the parent may.
        stage.hook.answers(|call| {
            let gadget = json!({
                "apiVersion": "toys.io/v1", "kind": "Gadget", "metadata": {"name": "g"},
                "spec": {"goes": call["finalizing"]},
            });
            let gadgets = call["children"]["Gadget.toys.io/v1"].as_object();
            let gone = gadgets.and_then(|gadgets| gadgets.get("g")).is_none_or(|g| g["spec"]["gone"] == true);
            (200, json!({"children": [gadget], "finalized": gone}))
        });
        stage.thing("a", 0, "x");
        let first = stage.run(&[]);
        stage.until_true("the gadget is made", || stage.server.get("gadgets", "g").is_some());
        first.kill();
        stage.server.delete("things", "a");
        let away = stage.server.fault(discovery_of("toys.io/v1"), away);
        let _second = stage.run(&[]);
        stage.until_true("the parent waits", || {
            let parent = stage.server.get("things", "a").expect("it is not finalized");
            parent["status"]["conditions"][0]["reason"] == "WaitingForKind"
        });
        assert!(away.met() > 0);
        drop(away);
        stage.until_true("the gadget is asked to go", || {
            stage.server.get("gadgets", "g").is_some_and(|gadget| gadget["spec"]["goes"] == true)
        });
        assert!(stage.server.get("things", "a").is_some());
        stage.server.edit("gadgets", "g", |gadget| gadget["spec"]["gone"] = json!(true));
        stage.until_true("the parent is gone", || stage.server.get("things", "a").is_none());
    });
}

#[test]
fn deletion_ends_although_a_kind_cannot_be_read() {
    let stage = Stage::new(&[THINGS, MAPS, GADGETS]);
    let mut definition =
        stage.definition("things", "demo.io/v1/things", &["v1/configmaps", "toys.io/v1/gadgets"]);
    definition["spec"]["hooks"]["finalize"] = definition["spec"]["hooks"]["sync"].clone();
    stage.define(&[definition]);
    stage.hook.answers(|call| {
        let (code, mut answer) = hook::maps(call);
        answer["finalized"] = call["finalizing"].clone();
        (code, answer)
    });
    stage.thing("a", 1, "x");
    let first = stage.run(&[]);
    stage.settles("a");
    first.kill();
    let _away = stage.server.fault(discovery_of("toys.io/v1"), Effect::overloaded(503, 1));
    stage.server.delete("things", "a");
    let _second = stage.run(&["--finalize-patience", "1"]);
    controlplane::wait_until(Duration::from_secs(30), "the parent is gone", || {
        if stage.server.get("things", "a").is_none() { Ok(()) } else { Err("it is there") }
    });
}
