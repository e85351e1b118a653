//! SIGKILL at any point of a rollout.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::rolling::stage::{
    Nurse, answer, lab, part_path, parts, revision, revisions, rolling, updated, wait_updated,
};
use crate::support::hook::Hook;
use crate::support::lab::Lab;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Waits until the controllers have written so often, or all is done.
fn wait_writes(lab: &Lab, count: usize) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if lab.writes().len() >= count {
            return true;
        }
        if parts(lab, &NAMES).iter().all(|x| x == "2") {
            return false;
        }
    }
    panic!("no {count} writes in time: {:?}", lab.writes());
}

// B80
#[test]
fn rollout_goes_on_where_it_was_killed_and_changes_each_child_once() {
    let lab = lab("killed");
    let hook = Hook::new(answer);
    let definition = rolling(&lab).sync(&hook);
    let mut controller = Some(lab.run(&definition));
    let nurse = Nurse::new(&lab);
    lab.add_thing("t", json!({"x": "1", "parts": NAMES}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    lab.wait_until("all are well", || {
        NAMES.iter().all(|name| super::stage::is_ready(&lab.get(&part_path(&lab, name))))
    });
    nurse.count_anew();
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    // After each of its writes in turn: the note of a step, the step, the status.
    let mut killed = 0;
    loop {
        let written = lab.writes().len();
        let goes_on = wait_writes(&lab, written + 1);
        controller.take().expect("it runs").kill();
        let thing = lab.get(&lab.thing("t"));
        let all = parts(&lab, &NAMES).iter().all(|x| x == "2");
        let done = updated(&thing).iter().any(|found| {
            found["status"] == "True" && found["observedGeneration"] == thing["metadata"]["generation"]
        });
        assert!(all || !done, "it never says that it is done before it is");
        if !goes_on {
            break;
        }
        killed += 1;
        controller = Some(lab.start(&[]));
    }
    let _controller = lab.start(&[]);
    let thing = wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    assert!(killed >= 5, "{killed}");
    assert_eq!(parts(&lab, &NAMES), ["2"; 5]);
    let generation = |name: &str| lab.get(&part_path(&lab, name))["metadata"]["generation"].clone();
    assert_eq!(NAMES.map(generation), [2; 5], "each was changed once");
    assert_eq!(revisions(&lab, &thing), [revision("2", &NAMES)]);
    assert_eq!(nurse.most_ill(), 1, "one at a time");
}
