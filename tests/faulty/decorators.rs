//! Decorators, whose targets are somebody else's.

use serde_json::{Value, json};

use crate::apiserver::fault::Effect;
use crate::apiserver::request::Request;
use crate::hook;
use crate::stage::{Stage, side_by_side};

/// Marks things, and gives each a ConfigMap.
fn decorating() -> Stage {
    let stage = Stage::usual();
    stage.define(&[json!({
        "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "DecoratorController",
        "metadata": {"name": "marks"},
        "spec": {
            "resources": [{"apiVersion": "demo.io/v1", "resource": "things"}],
            "attachments": [
                {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}},
            ],
            "hooks": {"sync": {"webhook": {"url": stage.hook.url()}}},
        },
    })]);
    stage.hook.answers(|call| {
        let target = &call["object"];
        let name = target["metadata"]["name"].as_str().expect("a name");
        let value = &target["spec"]["value"];
        let seen = call["attachments"]["ConfigMap.v1"].as_object().map_or(0, |maps| maps.len());
        let map = hook::map(&format!("{name}-map"), value);
        (200, json!({"labels": {"value": value}, "status": {"seen": seen}, "attachments": [map]}))
    });
    stage
}

fn is_right(stage: &Stage, name: &str) -> Result<(), String> {
    let target = stage.server.get("things", name).expect("it is there");
    let map = stage.server.get("configmaps", &format!("{name}-map"));
    let value = &target["spec"]["value"];
    let right = target["metadata"]["labels"]["value"] == *value
        && target["status"]["seen"] == 1
        && map.is_some_and(|map| map["data"]["value"] == *value);
    if right { Ok(()) } else { Err(target.to_string()) }
}

#[test]
fn target_is_marked_through_every_fault() {
    let faults = [
        Effect::answer(409, "Conflict", "the object has been modified"),
        Effect::overloaded(503, 0),
        Effect::Drop,
        Effect::DoThenDrop,
        Effect::DoThenSay("{".into()),
        Effect::DoThenAnswerOlder,
    ];
    side_by_side(faults, |fault| {
        let stage = decorating();
        let _controller = stage.run(&[]);
        stage.thing("a", 0, "x");
        stage.until("all is right at first", || is_right(&stage, "a"));
        stage.server.forget_traffic();
        stage.server.fault_times(4, Request::is_write, fault.clone());
        stage.set_value("a", "y");
        stage.until("all is right again", || is_right(&stage, "a"));
        stage.becomes_quiet();
        let traffic = stage.server.traffic();
        assert_eq!(traffic.deletes(), [""; 0]);
        assert!(traffic.writes().len() <= 12, "{fault:?}: {:?}", traffic.writes());
    });
}

#[test]
fn target_written_all_the_time_is_marked_meanwhile() {
    let stage = decorating();
    let _controller = stage.run(&[]);
    stage.thing("a", 0, "x");
    let mut touches = 0;
    stage.until("it is marked", || {
        touches += 1;
        stage.server.edit("things", "a", |thing: &mut Value| {
            thing["metadata"]["annotations"] = json!({"touched": touches.to_string()});
        });
        if touches > 20 { is_right(&stage, "a") } else { Err(format!("{touches} touches")) }
    });
    stage.becomes_quiet();
    let writes = stage.server.traffic().writes();
    assert!(writes.len() < 20, "{writes:?}");
}
