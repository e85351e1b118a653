//! A hook that lies: answers with mistakes in them, by a fixed seed. None of them costs a child, a parent or the process.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::Value;

use crate::hook::maps;
use crate::mutation::Mutations;
use crate::stage::Stage;

const THINGS: usize = 5;
const ROUNDS: usize = 25;

/// An answer is free to want other children, and such a one is no lie: whether this one does.
fn wants_others(answer: &Value, honest: &Value) -> bool {
    let Some(fields) = answer.as_object() else { return false };
    let name = |child: &Value| child["metadata"]["name"].as_str().map(String::from);
    let names = |answer: &Value| -> Option<BTreeSet<String>> {
        match answer.get("children") {
            None => Some(BTreeSet::new()),
            Some(children) => children.as_array()?.iter().map(name).collect(),
        }
    };
    let known = ["children", "status", "resyncAfterSeconds", "finalized"];
    let says_something = fields.keys().any(|key| known.contains(&key.as_str()));
    says_something && names(answer).is_some_and(|wanted| Some(wanted) != names(honest))
}

#[test]
fn a_hook_that_lies_costs_nothing() {
    let stage = Stage::usual();
    let names: Vec<String> = (0..THINGS).map(|number| format!("t{number}")).collect();
    names.iter().for_each(|name| drop(stage.thing(name, 2, "v")));
    let controller = stage.run(&[]);
    names.iter().for_each(|name| stage.settles(name));

    let mutations = Mutex::new(Mutations::new(20_261_207));
    stage.hook.answers_anything(move |call| {
        let (code, honest) = maps(call);
        let mut mutations = mutations.lock().expect("nobody panics with it");
        let lie = mutations.of_value(&honest);
        match mutations.below(12) {
            0 => (*mutations.pick(&[204, 301, 400, 404, 429, 500, 503]), lie),
            _ if wants_others(&lie, &honest) => (code, honest),
            _ => (code, lie),
        }
    });
    for round in 0..ROUNDS {
        for name in &names {
            let before = stage.hook.calls(name).len();
            stage.set_value(name, &format!("v{round}"));
            stage.until("the hook was asked", || {
                let now = stage.hook.calls(name).len();
                if now > before { Ok(()) } else { Err(format!("{name}: {now} calls\n{}", controller.log())) }
            });
        }
    }
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    assert_eq!(stage.server.names("configmaps").len(), 2 * THINGS, "no child comes by a lie");

    stage.hook.answers(maps);
    for name in &names {
        stage.set_value(name, "honest");
        stage.settles(name);
    }
    stage.becomes_quiet();
    assert_eq!(stage.server.traffic().deletes(), [""; 0]);
    assert_eq!(stage.server.names("configmaps").len(), 2 * THINGS);
    assert!(!controller.log().contains("panicked"), "{}", controller.log());
}
