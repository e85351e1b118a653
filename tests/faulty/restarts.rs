//! Starts and restarts: what is read then, and what is left when the controller is killed at any moment.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::controller::Controller;
use crate::dice::Dice;
use crate::hook::{self, Held};
use crate::stage::{SOON, Stage};

// B110
#[test]
fn restart_with_a_thousand_parents_only_lists() {
    let stage = Stage::usual();
    let names: Vec<String> = (0..1000).map(|number| format!("p{number}")).collect();
    for name in &names {
        stage.thing(name, 2, "x");
    }
    let first = stage.run(&["--workers", "16"]);
    controlplane::wait_until(Duration::from_secs(60), "all are as they should be", || {
        names.iter().try_for_each(|name| stage.check(name))
    });
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().writes().len(), 3000);
    assert_eq!(stage.server.traffic().reads(), [""; 0]);
    first.kill();
    stage.server.forget_traffic();
    let calls = stage.hook.count();
    let _second = stage.run(&["--workers", "16"]);
    let began = Instant::now();
    stage.until("every parent is looked at", || {
        let seen = stage.hook.count() - calls;
        if seen >= 1000 { Ok(()) } else { Err(format!("{seen} of 1000")) }
    });
    let took = began.elapsed();
    stage.becomes_quiet();
    let traffic = stage.server.traffic();
    assert_eq!(traffic.writes(), [""; 0]);
    assert_eq!(traffic.reads(), [""; 0]);
    assert_eq!(traffic.count(|request| request.is_list_of("things")), 1);
    assert_eq!(traffic.count(|request| request.is_list_of("configmaps")), 1);
    assert_eq!(stage.hook.count() - calls, 1000, "each is asked about once");
    assert!(took < SOON, "{took:?}");
}

#[test]
fn controller_killed_at_any_moment_leaves_nothing_wrong() {
    let stage = Stage::usual();
    let mut dice = Dice::new(20261130);
    let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    for name in &names {
        stage.thing(name, dice.roll(4), "v");
    }
    for round in 0..12 {
        let controller = stage.run(&[]);
        for name in &names {
            if dice.roll(2) == 0 {
                let size = dice.roll(4);
                stage.server.edit("things", name, |thing| {
                    thing["spec"] = json!({"size": size, "value": format!("v{round}")});
                });
            }
        }
        // Somewhere between the start and the last write.
        let writes = dice.roll(12) as usize;
        let enough = |stage: &Stage| stage.server.traffic().count(Request::is_write) >= writes;
        let patience = Instant::now() + Duration::from_millis(1000);
        while !enough(&stage) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        controller.kill();
        stage.server.forget_traffic();
    }
    let _controller = stage.run(&[]);
    for name in &names {
        stage.settles(name);
    }
    stage.becomes_quiet();
    // Nothing that is wanted has ever been deleted: what was wanted all the time is as it was made.
    let wanted: usize = names
        .iter()
        .map(|name| stage.server.get("things", name).expect("it is there"))
        .map(|thing| thing["spec"]["size"].as_u64().expect("a size") as usize)
        .sum();
    assert_eq!(stage.server.names("configmaps").len(), wanted);
}

#[test]
fn child_that_is_wanted_all_the_time_outlives_every_kill() {
    let stage = Stage::usual();
    stage.thing("a", 3, "x");
    let first = stage.run(&[]);
    stage.settles("a");
    first.kill();
    let uids = |stage: &Stage| -> Vec<serde_json::Value> {
        stage.server.all("configmaps").iter().map(|map| map["metadata"]["uid"].clone()).collect()
    };
    let before = uids(&stage);
    let mut dice = Dice::new(7);
    for round in 0..10 {
        stage.set_value("a", &format!("v{round}"));
        let calls = stage.hook.count();
        let controller = stage.run(&[]);
        stage.until_true("the hook is asked", || stage.hook.count() > calls);
        std::thread::sleep(Duration::from_micros(dice.roll(8000)));
        controller.kill();
    }
    let _controller = stage.run(&[]);
    stage.settles("a");
    stage.becomes_quiet();
    assert_eq!(uids(&stage), before);
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
}

#[test]
fn controller_started_before_its_server_waits_for_it() {
    let stage = Stage::usual();
    stage.thing("a", 1, "x");
    let away = stage.server.fault(|_| true, Effect::Drop);
    let _controller = stage.run(&[]);
    stage.until_true("several tries are made", || away.met() >= 4);
    drop(away);
    stage.settles("a");
}

#[test]
fn definition_that_comes_later_sees_children_that_are_already_there() {
    let gadgets = ("toys.io/v1", "Gadget", "gadgets", true);
    let stage = Stage::new(&[crate::stage::THINGS, crate::stage::MAPS, gadgets]);
    let things = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    let toys = stage.definition("gadgets", "toys.io/v1/gadgets", &["v1/configmaps"]);
    stage.define(&[things.clone(), toys.clone()]);
    stage.hook.answers(hook::maps);
    stage.thing("a", 1, "x");
    let gadget = json!({"metadata": {"namespace": "shop", "name": "g"}, "spec": {"size": 2, "value": "x"}});
    stage.server.create("gadgets", gadget);
    let both = stage.run(&[]);
    let told =
        |stage: &Stage| stage.server.get("gadgets", "g").is_some_and(|gadget| gadget["status"]["maps"] == 2);
    stage.until_true("the gadget has its maps", || told(&stage));
    both.kill();
    stage.define(std::slice::from_ref(&things));
    let calls = stage.hook.calls("g").len();
    let _one = stage.run(&[]);
    stage.settles("a");
    stage.set_value("a", "y");
    stage.settles("a");
    stage.server.forget_traffic();
    stage.define(&[things, toys]);
    stage.until_true("the gadget is looked at", || stage.hook.calls("g").len() > calls);
    let call = stage.hook.calls("g").pop().expect("a call");
    assert_eq!(call["children"]["ConfigMap.v1"].as_object().map(|maps| maps.len()), Some(2));
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().writes(), [""; 0]);
}

#[test]
fn everything_is_right_seconds_after_a_long_outage() {
    let stage = Stage::usual();
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let _controller = stage.run(&[]);
    for name in &names {
        stage.thing(name, 1, "x");
    }
    for name in &names {
        stage.settles(name);
    }
    let away = stage.server.fault(|_| true, Effect::Drop);
    for name in &names {
        stage.set_value(name, "y");
    }
    stage.until_true("every parent has failed", || {
        let tried =
            |name: &String| stage.hook.calls(name).iter().any(|call| call["parent"]["spec"]["value"] == "y");
        names.iter().all(tried)
    });
    stage.server.cut_watches();
    // Retries have become rare by then.
    std::thread::sleep(Duration::from_secs(12));
    let tries = away.met();
    assert!(tries < 20 * 60, "{tries} requests");
    drop(away);
    controlplane::wait_until(Duration::from_secs(7), "all are as they should be", || {
        names.iter().try_for_each(|name| stage.check(name))
    });
}

/// A controller that has been asked to end while it waits for the hook, until the answer is let go.
fn ask_to_end_in_a_visit(stage: &Stage, controller: &Controller) -> Held {
    let held = stage.hook.hold("a");
    stage.thing("a", 2, "x");
    stage.until_true("the hook is asked", || !stage.hook.calls("a").is_empty());
    controller.ask_to_end();
    stage.until_true("it has heard", || controller.log().contains("stopping"));
    held
}

#[test]
fn visit_under_way_ends_before_the_process_does() {
    let stage = Stage::usual();
    let controller = stage.run(&[]);
    let held = ask_to_end_in_a_visit(&stage, &controller);
    stage.thing("b", 1, "x");
    drop(held);
    assert_eq!(controller.wait().code(), Some(0));
    let made = stage.server.names("configmaps");
    assert!(made.is_empty() || made == ["a-0", "a-1"], "{made:?}");
    assert!(stage.hook.calls("b").is_empty(), "no visit begins after the signal");
}

#[test]
fn second_signal_ends_it_at_once() {
    let stage = Stage::usual();
    let controller = stage.run(&[]);
    let held = ask_to_end_in_a_visit(&stage, &controller);
    let began = Instant::now();
    controller.ask_to_end();
    assert_eq!(controller.wait().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(held);
    stage.becomes_quiet();
    assert_eq!(stage.server.names("configmaps"), [""; 0]);
}
