//! When a parent is visited: by the clock, by events, and not otherwise.

use std::time::Duration;

use serde_json::json;

use crate::support::hook::{Call, Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

/// The times between calls, in seconds.
fn gaps(calls: &[Call]) -> Vec<f64> {
    calls.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
}

#[test]
fn resync_after_seconds_is_kept_to_the_moment() {
    let lab = Lab::new("after");
    let hook = Hook::new(|_| json!({"children": [], "resyncAfterSeconds": 1.5}));
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({}));
    lab.wait_until("four calls", || hook.count() >= 4);
    for gap in gaps(&hook.calls()[..4]) {
        assert!((1.5..1.9).contains(&gap), "{gap}");
    }
}

#[test]
fn earliest_of_two_resyncs_wins_and_a_visit_between_does_not_cancel_it() {
    let lab = Lab::new("earliest");
    let hook = Hook::new(|call| {
        let after = if call.spec()["round"] == 0 { 4 } else { 60 };
        json!({"children": [], "resyncAfterSeconds": after})
    });
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({"round": 0}));
    lab.wait_until("the first call", || hook.count() == 1);
    lab.merge(&lab.thing("t"), json!({"spec": {"round": 1}}));
    let since_first = |call: &Call| (call.at - hook.calls()[0].at).as_secs_f64();
    lab.wait_until("the call that was asked for", || hook.calls().iter().any(|call| since_first(call) > 3.0));
    let calls = hook.calls();
    assert!(calls.iter().any(|call| call.spec()["round"] == 1 && since_first(call) < 3.0), "one in between");
    let waited = since_first(calls.last().unwrap());
    assert!((4.0..4.6).contains(&waited), "{waited}");
}

// B17, B20
#[test]
fn resync_after_nothing_or_after_ages_is_none() {
    let lab = Lab::new("never");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook));
    for (number, after) in [json!(0), json!(-1), json!(1_262_304_000), json!(1e12), json!(1e300), json!(0.0)]
        .into_iter()
        .enumerate()
    {
        let name = format!("t{number}");
        lab.add_thing(&name, json!({"resyncAfterSeconds": after}));
        lab.wait_synced(&lab.thing(&name));
    }
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(hook.count(), 6);
}

#[test]
fn resync_period_visits_every_parent() {
    let lab = Lab::new("period");
    let hook = Hook::from_spec();
    let definition = lab.definition().sync(&hook);
    let _controller = lab.run(&definition.with("/spec/resyncPeriodSeconds", json!(2)));
    for name in ["t", "u"] {
        lab.add_thing(name, json!({}));
    }
    lab.wait_until("both were visited four times", || {
        ["t", "u"].iter().all(|name| hook.calls_for(name).len() >= 4)
    });
    for name in ["t", "u"] {
        let calls = hook.calls_for(name);
        for gap in gaps(&calls[1..4]) {
            assert!((1.7..2.4).contains(&gap), "{name}: {gap}");
        }
    }
    let mut writes = lab.writes();
    writes.sort();
    assert_eq!(writes, ["patch things/status t", "patch things/status u"]);
}

// B18
#[test]
fn ignored_status_changes_wake_nobody_while_all_else_does() {
    let lab = Lab::new("ignore");
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook).finalize(&hook);
    let _controller = lab.run(&definition.with("/spec/parentResource/ignoreStatusChanges", json!(true)));
    lab.add_thing("t", json!({"status": {"ours": 1}}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let touch = |field: &str, value: &str| {
        let theirs = json!({
            "apiVersion": lab.api_version(), "kind": "Thing", "metadata": {"name": "t"}, "status": {field: value},
        });
        let path = format!("{}/status?fieldManager=somebody", lab.thing("t"));
        assert!(lab.plane.request("PATCH", &path, Some(&theirs)).unwrap().is_success());
    };
    touch("theirs", "1");
    touch("theirs", "2");
    lab.expect_silence(&hook, SILENCE);

    for patch in [
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"annotations": {"a": "b"}}}),
        json!({"spec": {"resyncAfterSeconds": 2}}),
    ] {
        let calls = hook.count();
        lab.merge(&lab.thing("t"), patch.clone());
        lab.wait_until(&format!("{patch} wakes it"), || hook.count() > calls);
    }
    let calls = hook.count();
    touch("theirs", "3");
    lab.wait_until("the timed visits happen", || hook.count() >= calls + 2);
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    assert!(hook.count_of("finalize") > 0);
}

#[test]
fn status_of_others_wakes_the_parent_once() {
    let lab = Lab::new("once");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({"status": {"ours": 1}}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    let calls = hook.count();
    let theirs = json!({
        "apiVersion": lab.api_version(), "kind": "Thing", "metadata": {"name": "t"}, "status": {"theirs": 1},
    });
    let path = format!("{}/status?fieldManager=somebody", lab.thing("t"));
    assert!(lab.plane.request("PATCH", &path, Some(&theirs)).unwrap().is_success());
    lab.wait_until("the parent is visited", || hook.count() > calls);
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(hook.count(), calls + 1);
}

// B15
#[test]
fn every_parent_is_visited_after_its_last_change_however_busy_the_workers() {
    let lab = Lab::new("workers");
    let hook = Hook::new(|call| {
        let answer = json!({"children": [], "status": {"round": call.spec()["round"]}});
        Reply::Late(Duration::from_millis(200), answer)
    });
    lab.write_definitions(&[&lab.definition().sync(&hook)]);
    let _controller = lab.start(&["--workers", "2"]);
    for number in 0..10 {
        lab.add_thing(&format!("t{number}"), json!({"round": 1}));
    }
    lab.wait_until("the workers are busy", || hook.count() >= 2);
    for number in 0..10 {
        lab.merge(&lab.thing(&format!("t{number}")), json!({"spec": {"round": 2}}));
    }
    for number in 0..10 {
        let thing = lab.thing(&format!("t{number}"));
        lab.wait(&thing, "its last change is seen", |thing| thing["status"]["round"] == 2);
    }
    lab.wait_quiet(&hook, SILENCE);
    for number in 0..10 {
        let calls = hook.calls_for(&format!("t{number}"));
        assert!(gaps(&calls).iter().all(|gap| *gap >= 0.2), "never twice at once");
        assert!(calls.len() <= 2, "{}", calls.len());
    }
}

#[test]
fn change_made_while_the_status_is_being_written_is_seen() {
    let lab = Lab::new("overtake");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().sync(&hook));
    lab.add_thing("t", json!({"status": {"round": 0}}));
    for round in 1..=60 {
        let calls = hook.count();
        let spec = json!({"spec": {"status": {"round": round}}});
        lab.merge(&lab.thing("t"), spec);
        // Now the visit writes its status, about when the next change is made.
        lab.wait_until("the hook is called", || hook.count() > calls);
    }
    lab.wait(&lab.thing("t"), "the last change is seen", |thing| thing["status"]["round"] == 60);
}

#[test]
fn sigterm_lets_visits_under_way_finish() {
    let lab = Lab::new("sigterm");
    let hook = Hook::new(|call| Reply::Late(Duration::from_secs(2), from_spec(call)));
    let controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")], "status": {"done": true}}));
    lab.wait_until("the hook is at work", || hook.count() == 1);
    let status = controller.terminate();
    assert!(status.success(), "{status}");
    lab.get(&lab.config_map("a"));
    assert_eq!(lab.get(&lab.thing("t"))["status"]["done"], true);
    assert_eq!(hook.count(), 2);
}
