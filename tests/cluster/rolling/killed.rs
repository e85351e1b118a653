//! SIGKILL at any point of a rollout.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rolling::stage::{
    Nurse, answer, is_ready, lab, part_path, revision, revisions, rolling, updated, wait_updated,
};
use crate::support::hook::Hook;
use crate::support::lab::{Definition, Lab};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Waits until the controllers have written so often, or all is done.
fn wait_writes(lab: &Lab, count: usize) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if lab.writes().len() >= count {
            return true;
        }
        if is_done(lab) {
            return false;
        }
    }
    panic!("no {count} writes in time: {:?}", lab.writes());
}

/// Kills the controller after each write of a rollout in turn: the note of a step, the step, the status. Gives the Parts
/// as they were before and are then.
fn killed_all_along(lab: &Lab, definition: &Definition) -> [[Value; 5]; 2] {
    let mut controller = Some(lab.run(definition));
    let nurse = Nurse::new(lab);
    lab.add_thing("t", json!({"x": "1", "parts": NAMES}));
    wait_updated(lab, &lab.thing("t"), "OnLatestRevision", "");
    let all = || NAMES.map(|name| lab.get(&part_path(lab, name)));
    lab.wait_until("all are well", || all().iter().all(is_ready));
    let before = all();
    nurse.count_anew();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    let mut killed = 0;
    loop {
        let written = lab.writes().len();
        let goes_on = wait_writes(lab, written + 1);
        controller.take().expect("it runs").kill();
        assert!(is_done(lab) || !says_done(lab), "it never says that it is done before it is");
        if !goes_on {
            break;
        }
        killed += 1;
        controller = Some(lab.start(&[]));
    }
    let _controller = lab.start(&[]);
    let thing = wait_updated(lab, &lab.thing("t"), "OnLatestRevision", "");
    assert!(killed >= 5, "{killed}");
    assert!(is_done(lab));
    assert_eq!(revisions(lab, &thing), [revision("2", &NAMES)]);
    assert_eq!(nurse.most_ill(), 1, "one at a time");
    [before, all()]
}

fn is_done(lab: &Lab) -> bool {
    let x = |name: &&str| lab.plane.get(&part_path(lab, name)).map(|part| part["spec"]["x"].clone());
    NAMES.iter().all(|name| x(name) == Some(json!("2")))
}

fn says_done(lab: &Lab) -> bool {
    let thing = lab.get(&lab.thing("t"));
    updated(&thing).iter().any(|found| {
        found["status"] == "True" && found["observedGeneration"] == thing["metadata"]["generation"]
    })
}

// B80
#[test]
fn rollout_goes_on_where_it_was_killed_and_changes_each_child_once() {
    let lab = lab("killed");
    let hook = Hook::new(answer);
    let [_, after] = killed_all_along(&lab, &rolling(&lab).sync(&hook));
    assert_eq!(after.map(|part| part["metadata"]["generation"].clone()), [2; 5]);
}

// B80
#[test]
fn killed_rollout_makes_each_child_anew_once() {
    let lab = lab("killedanew");
    let hook = Hook::new(answer);
    let definition =
        rolling(&lab).with("/spec/childResources/0/updateStrategy/method", json!("RollingRecreate"));
    let [before, after] = killed_all_along(&lab, &definition.sync(&hook));
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
        assert_eq!(after["metadata"]["generation"], 1);
    }
    // One that was under way at the kill has no answer, done or not; none that was answered is made again.
    let writes = lab.writes();
    for name in NAMES {
        let count =
            |write: &str| writes.iter().filter(|done| **done == format!("{write} parts {name}")).count();
        assert!(count("delete") <= 1 && count("patch") <= 2, "{name}: {writes:#?}");
    }
}
