//! A parent that is deleted in the middle of a rollout.

use serde_json::json;

use crate::rolling::stage::{answer, call_ready, kept, lab, parts, rolling, wait_updated};
use crate::support::hook::{Call, Hook};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Keeps the children until somebody says that they may go.
fn patient(call: &Call) -> serde_json::Value {
    let lets_go = call.parent()["metadata"]["labels"]["go"] == "on";
    if call.hook == "finalize" && lets_go {
        let left =
            !call.children(&format!("Part.{}", call.parent()["apiVersion"].as_str().unwrap())).is_empty();
        return json!({"children": [], "finalized": !left});
    }
    answer(call)
}

#[test]
fn nothing_moves_while_the_parent_is_finalized_and_it_ends() {
    let lab = lab("finalizing");
    let hook = Hook::new(patient);
    let _controller = lab.run(&rolling(&lab).sync(&hook).finalize(&hook));
    let thing = lab.add_thing("t", json!({"x": "1", "parts": NAMES}));
    wait_updated(&lab, &lab.thing("t"), "OnLatestRevision", "");
    NAMES.iter().for_each(|name| call_ready(&lab, name, true));
    lab.merge(&lab.thing("t"), json!({"spec": {"x": "2"}}));
    lab.wait_until("it has begun", || parts(&lab, &NAMES) == ["2", "1", "1"]);
    lab.plane.delete(&lab.thing("t"));
    lab.wait_until("it is finalized", || hook.count_of("finalize") > 0);
    let asked = hook.count_of("finalize");
    call_ready(&lab, "a", true);
    lab.wait_until("and asked again", || hook.count_of("finalize") > asked);
    lab.wait(&lab.thing("t"), "it says why it stays", |thing| {
        let conditions = thing["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|found| found["message"] == "the parent is being finalized")
    });
    assert_eq!(parts(&lab, &NAMES), ["2", "1", "1"]);

    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"go": "on"}}}));
    lab.wait_gone(&lab.thing("t"));
    lab.wait_until("its revisions go with it", || kept(&lab, &thing).is_empty());
}
