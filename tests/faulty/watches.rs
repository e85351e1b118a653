//! Watches that break in every way, and a store that is right again soon after.

use std::time::Duration;

use serde_json::{Value, json};

use crate::apiserver::fault::{Effect, WatchEnd};
use crate::apiserver::request::Request;
use crate::stage::Stage;

fn expired_event() -> Value {
    json!({"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
        "reason": "Expired", "message": "too old resource version: 3 (900)",
    }})
}

// B99
#[test]
fn expired_watch_is_listed_anew_and_only_what_differs_is_written() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    stage.thing("b", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.settles("b");
    let maps = |request: &Request| {
        request.is_watch_of("configmaps") && request.parameter("resourceVersion").is_some()
    };
    stage.server.fault_times(1, maps, Effect::Lines(vec![expired_event()], WatchEnd::Closes));
    stage.server.fault_times(1, maps, Effect::expired());
    let held = stage.server.hold("configmaps");
    stage.server.delete("configmaps", "a-1");
    stage.server.forget_history();
    stage.server.forget_traffic();
    stage.server.cut_watches();
    drop(held);
    stage.settles("a");
    stage.becomes_quiet();
    let traffic = stage.server.traffic();
    assert_eq!(traffic.writes(), ["PATCH /api/v1/namespaces/shop/configmaps/a-1"]);
    assert_eq!(traffic.reads(), [""; 0]);
}

// B100
#[test]
fn watch_that_keeps_silent_is_given_up() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&["--watch-idle-seconds", "1"]);
    stage.settles("a");
    let silent = stage.server.hold("configmaps");
    stage.server.delete("configmaps", "a-0");
    // Only watches that were open when the server fell silent stay so.
    let watches = |stage: &Stage| stage.server.traffic().count(|request| request.is_watch_of("configmaps"));
    let before = watches(&stage);
    stage.until_true("the watch is begun anew", || watches(&stage) > before);
    drop(silent);
    stage.settles("a");
}

#[test]
fn watches_that_close_at_once_make_no_storm() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    let closing = stage.server.fault(
        |request| request.is_watch() && request.parameter("resourceVersion").is_some(),
        Effect::Lines(Vec::new(), WatchEnd::Closes),
    );
    stage.server.cut_watches();
    stage.until_true("several tries are made", || closing.met() >= 6);
    stage.set_value("a", "y");
    let tries = closing.met();
    drop(closing);
    assert!(tries < 12, "{tries} watches at once");
    stage.settles("a");
}

#[test]
fn line_cut_in_the_middle_loses_nothing() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    let resumed = |request: &Request| {
        request.is_watch_of("configmaps") && request.parameter("resourceVersion").is_some()
    };
    stage.server.fault_times(2, resumed, Effect::Lines(Vec::new(), WatchEnd::MidLine));
    stage.server.cut_watches();
    stage.server.delete("configmaps", "a-0");
    stage.server.edit("configmaps", "a-1", |map| map["data"]["value"] = json!("by hand"));
    stage.settles("a");
    assert_eq!(stage.server.names("configmaps"), ["a-0", "a-1"]);
}

// B12
#[test]
fn own_write_seen_before_its_answer_is_not_written_again() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let late = stage.server.fault(|request| request.is_write(), Effect::DoThenWait);
    stage.thing("a", 2, "x");
    stage.until_true("a child is written", || late.met() > 0);
    drop(late);
    stage.settles("a");
    stage.becomes_quiet();
    let writes = stage.server.traffic().writes();
    assert_eq!(writes.len(), 3, "{writes:?}");
}

// B12
#[test]
fn own_write_seen_long_after_its_answer_is_not_written_again() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    let held = stage.hook.hold("a");
    stage.thing("a", 2, "x");
    stage.until_true("the hook is asked", || !stage.hook.calls("a").is_empty());
    let late = (stage.server.hold("configmaps"), stage.server.hold("things"));
    drop(held);
    stage.settles("a");
    stage.becomes_quiet();
    drop(late);
    stage.becomes_quiet();
    let writes = stage.server.traffic().writes();
    assert_eq!(writes.len(), 3, "{writes:?}");
}

#[test]
fn server_without_streaming_lists_is_read_by_pages() {
    let stage = Stage::usual();
    stage.server.manners(|manners| {
        manners.streaming_lists = false;
        manners.page = 3;
    });
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        stage.thing(name, 1, "x");
    }
    stage.server.fault_times(
        1,
        |request| request.parameter("continue").is_some(),
        Effect::answer(410, "Expired", "The provided continue parameter is too old"),
    );
    let controller = stage.run(&[]);
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        stage.settles(name);
    }
    controller.kill();
    stage.server.forget_traffic();
    let calls = stage.hook.count();
    let _controller = stage.run(&[]);
    stage.until_true("every parent is looked at", || stage.hook.count() >= calls + 7);
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().writes(), [""; 0]);
    let call = stage.hook.calls("g").pop().expect("a call");
    assert_eq!(call["children"]["ConfigMap.v1"]["g-0"]["kind"], "ConfigMap");
    assert_eq!(call["children"]["ConfigMap.v1"]["g-0"]["apiVersion"], "v1");
}

#[test]
fn idle_watches_cost_nothing() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    stage.server.forget_traffic();
    let calls = stage.hook.count();
    std::thread::sleep(Duration::from_secs(1));
    let traffic = stage.server.traffic();
    assert_eq!(traffic.count(|request| !request.is_discovery()), 0, "{traffic:?}");
    assert_eq!(stage.hook.count(), calls);
}

fn added(name: &str, version: u64) -> Value {
    json!({"type": "ADDED", "object": map(name, version)})
}

fn map(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": name, "uid": format!("scripted-{name}"), "resourceVersion": version.to_string()},
    })
}

#[test]
fn list_that_breaks_off_after_a_change_is_made_anew() {
    let stage = Stage::usual();
    stage.thing("a", 2, "x");
    let first = stage.run(&[]);
    stage.settles("a");
    first.kill();
    let map = stage.server.get("configmaps", "a-0").expect("it is there");
    let lines = vec![json!({"type": "ADDED", "object": map}), json!({"type": "MODIFIED", "object": map})];
    let first_list = |request: &Request| request.is_list_of("configmaps");
    stage.server.fault_times(1, first_list, Effect::Lines(lines, WatchEnd::MidLine));
    let calls = stage.hook.count();
    stage.server.forget_traffic();
    let _second = stage.run(&[]);
    stage.until_true("the hook is asked", || stage.hook.count() > calls);
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().writes(), [""; 0]);
}

#[test]
fn object_deleted_while_the_list_is_on_its_way_is_gone() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let lines = vec![
        added("other", 3),
        json!({"type": "DELETED", "object": map("other", 4)}),
        json!({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "resourceVersion": "4", "annotations": {"k8s.io/initial-events-end": "true"},
        }}}),
    ];
    let list = |request: &Request| request.is_list_of("configmaps");
    stage.server.fault_times(1, list, Effect::Lines(lines, WatchEnd::Closes));
    stage.server.create("configmaps", json!({"metadata": {"namespace": "shop", "name": "filler"}}));
    stage.server.create("configmaps", json!({"metadata": {"namespace": "shop", "name": "filler-2"}}));
    stage.server.create("configmaps", json!({"metadata": {"namespace": "shop", "name": "filler-3"}}));
    stage.hook.answers(|call| {
        let children = vec![crate::hook::map("other", &call["parent"]["spec"]["value"])];
        (200, json!({"children": children}))
    });
    let _controller = stage.run(&[]);
    stage.until_true("the child is made", || stage.server.get("configmaps", "other").is_some());
}

// B99
#[test]
fn server_that_always_says_expired_is_not_stormed() {
    let stage = Stage::usual();
    let _controller = stage.run(&[]);
    stage.thing("a", 1, "x");
    stage.settles("a");
    let expired = stage.server.fault(|request| request.is_watch_of("configmaps"), Effect::expired());
    stage.server.cut_watches();
    stage.until_true("several tries are made", || expired.met() >= 4);
    std::thread::sleep(Duration::from_secs(1));
    assert!(expired.met() < 20, "{} tries", expired.met());
    stage.server.delete("configmaps", "a-0");
    drop(expired);
    stage.settles("a");
}

#[test]
fn busy_server_is_not_made_to_list_anew() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.server.forget_traffic();
    let watch = |request: &Request| request.is_watch_of("configmaps");
    stage.server.fault_times(2, watch, Effect::overloaded(429, 1));
    stage.server.cut_watches();
    stage.server.delete("configmaps", "a-0");
    stage.settles("a");
    let traffic = stage.server.traffic();
    assert_eq!(traffic.count(|request| request.is_list_of("configmaps")), 0);
    let tries = traffic.times(watch);
    assert!(tries[1] - tries[0] >= Duration::from_secs(1), "{tries:?}");
}

#[test]
fn object_that_cannot_be_read_stops_no_watch() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    stage
        .server
        .create("configmaps", json!({"metadata": {"namespace": "shop", "name": "odd", "labels": {"a": 5}}}));
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.server.edit("configmaps", "odd", |map| map["metadata"]["labels"] = json!({"a": null}));
    stage.server.delete("configmaps", "a-0");
    stage.settles("a");
}

#[test]
fn server_put_back_to_a_backup_is_followed() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    let backup = stage.server.backup();
    for value in ["y", "z"] {
        stage.server.edit("things", "a", |thing| thing["spec"] = json!({"size": 3, "value": value}));
        stage.settles("a");
    }
    stage.server.restore(backup);
    stage.server.edit("things", "a", |thing| thing["spec"] = json!({"size": 2, "value": "w"}));
    stage.settles("a");
}
