//! Everything at once, by a fixed seed: whatever goes wrong, nothing that is wanted is deleted, and in the end all is right.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::apiserver::fault::{Effect, WatchEnd};
use crate::apiserver::request::Request;
use crate::dice::Dice;
use crate::stage::Stage;

/// How long the storm lasts at least.
const FAULTS: Duration = Duration::from_secs(6);
/// On a machine with much else to do it takes longer until most faults have been met.
const LONGEST: Duration = Duration::from_secs(90);

/// Meets one request of so many.
fn now_and_then(
    dice: &Arc<Mutex<Dice>>,
    sides: u64,
    which: fn(&Request) -> bool,
) -> impl Fn(&Request) -> bool + Send + 'static {
    let dice = dice.clone();
    move |request| which(request) && dice.lock().expect("nobody panics with it").roll(sides) == 0
}

#[test]
fn nothing_wanted_is_lost_in_a_storm_of_faults() {
    let stage = Stage::usual();
    let dice = Arc::new(Mutex::new(Dice::new(20261130)));
    let names: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    for name in &names {
        stage.thing(name, 1, "v");
    }
    let on_write = [
        Effect::Drop,
        Effect::DoThenDrop,
        Effect::DoThenSay("{\"metadata\":".into()),
        Effect::DoThenAnswerOlder,
        Effect::overloaded(429, 0),
        Effect::overloaded(503, 0),
        Effect::answer(500, "InternalError", "etcd is away"),
        Effect::answer(409, "Conflict", "the object has been modified"),
        Effect::answer(404, "NotFound", "the server could not find the requested resource"),
    ];
    let on_watch = [
        Effect::Drop,
        Effect::expired(),
        Effect::overloaded(429, 0),
        Effect::answer(500, "InternalError", "etcd is away"),
        Effect::Lines(Vec::new(), WatchEnd::MidLine),
        Effect::answer(404, "NotFound", "the server could not find the requested resource"),
    ];
    let on_lookup =
        [Effect::Drop, Effect::overloaded(503, 0), Effect::answer(404, "NotFound", "no such page")];
    let mut faults = Vec::new();
    for effect in on_write {
        faults.push(stage.server.fault(now_and_then(&dice, 20, Request::is_write), effect));
    }
    for effect in on_watch {
        faults.push(stage.server.fault(now_and_then(&dice, 10, Request::is_watch), effect));
    }
    for effect in on_lookup {
        faults.push(stage.server.fault(now_and_then(&dice, 10, Request::is_discovery), effect));
    }
    let mut controller = stage.run(&["--workers", "4"]);
    let began = Instant::now();
    let met = || faults.iter().filter(|fault| fault.met() > 0).count() > faults.len() / 2;
    let mut round = 0;
    while began.elapsed() < FAULTS || (!met() && began.elapsed() < LONGEST) {
        round += 1;
        let roll = |sides| dice.lock().expect("nobody panics with it").roll(sides);
        let name = &names[roll(names.len() as u64) as usize];
        match roll(12) {
            0 => stage.server.cut_watches(),
            1 => stage.server.forget_history(),
            2 => {
                controller.kill();
                controller = stage.run(&["--workers", "4"]);
            }
            3 => {
                if stage.server.get("configmaps", &format!("{name}-0")).is_some() {
                    stage.server.delete("configmaps", &format!("{name}-0"));
                }
            }
            // What is wanted only grows: so nothing is ever to be deleted.
            4..8 => {
                let change = |thing: &mut serde_json::Value| {
                    let size = thing["spec"]["size"].as_u64().expect("a size");
                    thing["spec"] = json!({"size": (size + 1).min(5), "value": format!("v{round}")});
                };
                stage.server.edit("things", name, change);
            }
            _ => stage.set_value(name, &format!("v{round}")),
        }
        std::thread::sleep(Duration::from_millis(40));
    }
    assert!(met(), "most faults were met: {:?}", faults.iter().map(|fault| fault.met()).collect::<Vec<_>>());
    drop(faults);
    for name in &names {
        stage.settles(name);
    }
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    let wanted: u64 =
        stage.server.all("things").iter().map(|thing| thing["spec"]["size"].as_u64().expect("a size")).sum();
    assert_eq!(stage.server.names("configmaps").len() as u64, wanted);
}
