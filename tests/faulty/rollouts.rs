//! Rolling updates on an API server that misbehaves: where a child goes is noted before it is touched, and one is on its
//! way at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::apiserver::fault::Effect;
use crate::apiserver::objects::Objects;
use crate::apiserver::request::Request;
use crate::dice::Dice;
use crate::stage::{MAPS, Stage, THINGS, side_by_side};

const REVISIONS: (&str, &str, &str, bool) =
    ("metacontroller.k8s.io/v1alpha1", "ControllerRevision", "controllerrevisions", false);

fn stage(kinds: &[(&str, &str, &str, bool)]) -> Stage {
    let stage = Stage::new(kinds);
    let mut definition = stage.definition("things", "demo.io/v1/things", &["v1/configmaps"]);
    definition["spec"]["childResources"][0]["updateStrategy"]["method"] = json!("RollingInPlace");
    stage.define(&[definition]);
    stage
}

fn updated(thing: &Value) -> Option<&Value> {
    let conditions = thing["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == "Updated")
}

/// What is still to be rolled out of a thing.
fn rolled_out(stage: &Stage, name: &str) -> Result<(), String> {
    let thing = stage.server.get("things", name).ok_or("it is not there")?;
    let value = &thing["spec"]["value"];
    let maps = stage.server.look(|objects| {
        let maps = objects.beginning_with("configmaps", &format!("{name}-"));
        maps.iter().filter(|map| map["data"]["value"] == *value).count()
    });
    let told = updated(&thing).is_some_and(|updated| {
        updated["status"] == "True" && updated["observedGeneration"] == thing["metadata"]["generation"]
    });
    let done =
        told && thing["spec"]["size"] == maps && thing["status"]["conditions"].as_array().unwrap().len() == 1;
    if done { Ok(()) } else { Err(format!("{maps} of {} maps right for {thing}", thing["spec"]["size"])) }
}

/// How many maps of a thing are not what the revision that claims them says. One that none claims is at rest.
fn on_their_way(objects: &Objects, thing: &Value) -> usize {
    let name = thing["metadata"]["name"].as_str().expect("a name");
    let revisions: Vec<&Value> = objects.of_kind("controllerrevisions");
    let moves = |map: &&Value| {
        let claims = |revision: &&&Value| {
            let names = revision["children"][0]["names"].as_array();
            names.is_some_and(|names| names.contains(&map["metadata"]["name"]))
        };
        let claiming: Vec<_> = revisions.iter().filter(claims).collect();
        let right = |revision: &&&Value| revision["parentPatch"]["spec"]["value"] == map["data"]["value"];
        !claiming.is_empty() && !claiming.into_iter().any(|revision| right(&revision))
    };
    objects.beginning_with("configmaps", &format!("{name}-")).into_iter().filter(moves).count()
}

#[test]
fn rolling_update_waits_for_the_kind_that_revisions_are_kept_in() {
    let stage = stage(&[THINGS, MAPS]);
    stage.thing("a", 2, "x");
    let _controller = stage.run(&[]);
    stage.until("it says what is missing", || {
        let thing = stage.server.get("things", "a").expect("it is there");
        let told = thing["status"]["conditions"][0].clone();
        let expected = "ControllerRevisions cannot be read, which a rolling update needs: \
                        the API server has no `metacontroller.k8s.io/v1alpha1`; \
                        `syncwright schema crds | kubectl apply -f -` installs their kind";
        if told["reason"] == "WaitingForKind" && told["message"] == expected { Ok(()) } else { Err(told) }
    });
    assert_eq!(stage.server.names("configmaps"), [""; 0], "nothing is made before it can be noted");
    stage.server.install(REVISIONS.0, REVISIONS.1, REVISIONS.2, REVISIONS.3);
    stage.until("it goes on", || rolled_out(&stage, "a"));
}

#[test]
fn note_that_fails_leaves_the_children_alone_and_is_made_again() {
    let effects = [
        Effect::Drop,
        Effect::answer(500, "InternalError", "etcd is away"),
        Effect::answer(409, "Conflict", "the object has been modified"),
        Effect::answer(403, "Forbidden", "controllerrevisions is forbidden"),
        Effect::overloaded(429, 0),
    ];
    side_by_side(effects, |effect| {
        let stage = stage(&[THINGS, MAPS, REVISIONS]);
        stage.thing("a", 3, "1");
        let _controller = stage.run(&[]);
        stage.until("all are made", || rolled_out(&stage, "a"));
        stage.becomes_quiet();
        stage.server.forget_traffic();
        let note = |request: &Request| request.is_write_of("controllerrevisions");
        let fault = stage.server.fault(note, effect.clone());
        stage.set_value("a", "2");
        stage.until_true("the note has failed twice", || fault.met() >= 2);
        let touched = stage.server.traffic().count(|request| request.is_write_of("configmaps"));
        assert_eq!(touched, 0, "{effect:?}");
        drop(fault);
        stage.until("it goes on", || rolled_out(&stage, "a"));
        assert_eq!(maps_written(&stage), ["a-0", "a-1", "a-2"], "{effect:?}");
        assert_eq!(stage.server.names("controllerrevisions").len(), 1, "{effect:?}");
    });
}

#[test]
fn note_whose_answer_is_lost_is_found_and_followed() {
    let effects = [Effect::DoThenDrop, Effect::DoThenSay("{\"metadata\":".into()), Effect::DoThenAnswerOlder];
    side_by_side(effects, |effect| {
        let stage = stage(&[THINGS, MAPS, REVISIONS]);
        stage.thing("a", 3, "1");
        let _controller = stage.run(&[]);
        stage.until("all are made", || rolled_out(&stage, "a"));
        stage.becomes_quiet();
        stage.server.forget_traffic();
        let note = |request: &Request| request.is_write_of("controllerrevisions");
        let _fault = stage.server.fault(note, effect.clone());
        stage.set_value("a", "2");
        stage.until("it goes on", || rolled_out(&stage, "a"));
        assert_eq!(maps_written(&stage), ["a-0", "a-1", "a-2"], "{effect:?}");
        stage.until_true("one revision is left", || stage.server.names("controllerrevisions").len() == 1);
    });
}

/// The maps that were written, in order.
fn maps_written(stage: &Stage) -> Vec<String> {
    let writes = stage.server.traffic().writes();
    let maps = writes.iter().filter_map(|write| write.rsplit_once("/configmaps/"));
    maps.map(|(_, name)| name.to_owned()).collect()
}

#[test]
fn one_child_is_on_its_way_at_a_time_in_a_storm_of_faults() {
    let stage = stage(&[THINGS, MAPS, REVISIONS]);
    let dice = Arc::new(Mutex::new(Dice::new(20261201)));
    let names = ["p", "q", "r"];
    names.iter().for_each(|name| drop(stage.thing(name, 4, "0")));
    let effects = [
        Effect::Drop,
        Effect::DoThenDrop,
        Effect::DoThenAnswerOlder,
        Effect::overloaded(429, 0),
        Effect::answer(500, "InternalError", "etcd is away"),
        Effect::answer(409, "Conflict", "the object has been modified"),
    ];
    let now_and_then = |sides: u64| {
        let dice = dice.clone();
        move |request: &Request| request.is_write() && dice.lock().unwrap().roll(sides) == 0
    };
    let faults: Vec<_> = effects.map(|effect| stage.server.fault(now_and_then(30), effect)).into();
    let mut controller = stage.run(&["--workers", "2"]);
    let over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                let most_now = stage.server.look(|objects| {
                    let things = objects.of_kind("things");
                    things.into_iter().map(|thing| on_their_way(objects, thing)).max()
                });
                most = most.max(most_now.unwrap_or(0));
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let began = Instant::now();
        let mut round = 0;
        while began.elapsed() < Duration::from_secs(6) {
            round += 1;
            let roll = |sides| dice.lock().unwrap().roll(sides);
            match roll(10) {
                0 | 1 => {
                    controller.kill();
                    controller = stage.run(&["--workers", "2"]);
                }
                2 => stage.server.cut_watches(),
                _ => stage.set_value(names[roll(3) as usize], &format!("{round}")),
            }
            std::thread::sleep(Duration::from_millis(90));
        }
        drop(faults);
        names
            .iter()
            .for_each(|name| stage.until(&format!("{name} is rolled out"), || rolled_out(&stage, name)));
        over.store(true, Ordering::Relaxed);
        watcher.join().expect("it only looks")
    });
    assert_eq!(most, 1);
    stage.becomes_quiet();
    assert_eq!(stage.server.names("controllerrevisions").len(), names.len(), "one is left of each");
    let deletes = stage.server.traffic().deletes();
    assert!(deletes.iter().all(|path| path.contains("/controllerrevisions/")), "{deletes:?}");
}
