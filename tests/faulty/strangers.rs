//! Many objects of a child kind that are nobody's here: memory follows our own.

use std::time::Duration;

use controlplane::wait_until;
use serde_json::json;

use crate::controller::Controller;
use crate::metrics::{metrics, sum};
use crate::stage::Stage;

const OWN: usize = 10;
const STRANGERS: usize = 20_000;
/// What each of them has, in bytes.
const SIZE: usize = 4096;
/// What each of them may take, in bytes: its name, its uid, and where it is found.
const EACH: u64 = 1024;
const PATIENCE: Duration = Duration::from_secs(60);

fn wait_until_known(controller: &Controller, objects: usize) {
    wait_until(PATIENCE, "all objects are known", || {
        let known = sum(&metrics(controller), "syncwright_stored_objects") as usize;
        if known == objects { Ok(()) } else { Err(format!("{known} of {objects}")) }
    });
}

// B108
#[test]
fn memory_follows_our_own_objects() {
    let stage = Stage::usual();
    let names: Vec<String> = (0..OWN).map(|number| format!("own{number}")).collect();
    for name in &names {
        stage.thing(name, 1, "x");
    }
    let flags = ["--metrics-address", "127.0.0.1:0"];
    let first = stage.run(&flags);
    names.iter().for_each(|name| stage.settles(name));
    let alone = (first.memory("VmRSS"), sum(&metrics(&first), "syncwright_stored_bytes"));
    let text = "x".repeat(SIZE);
    for number in 0..STRANGERS {
        let name = format!("stranger{number}");
        let metadata = json!({"namespace": "shop", "name": name, "labels": {"app": "other"}});
        stage.server.create("configmaps", json!({"metadata": metadata, "data": {"text": text}}));
        if number % 1000 == 0 {
            stage.server.forget_but(2000);
        }
    }
    let all = 2 * OWN + STRANGERS;
    wait_until_known(&first, all);
    let bound = alone.0 + STRANGERS as u64 * EACH / 1024;
    let resident = first.memory("VmRSS");
    println!("alone {} KiB, with {STRANGERS} strangers {resident} KiB", alone.0);
    assert!(resident < bound, "{} KiB alone, {resident} KiB with the strangers", alone.0);
    assert_eq!(sum(&metrics(&first), "syncwright_stored_bytes"), alone.1, "of theirs no JSON is kept");
    first.kill();

    // What lists them all at once takes no more, not even for a moment.
    let second = stage.run(&flags);
    wait_until_known(&second, all);
    let most = second.memory("VmHWM");
    println!("after a restart {most} KiB at most");
    assert!(most < bound + 8 * 1024, "{} KiB alone, {most} KiB at most with the strangers", alone.0);
    stage.set_value("own0", "y");
    stage.settles("own0");
}
