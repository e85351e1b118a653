//! Many workers, many parents, and a hook that is slow, fails, answers nonsense, hangs or hangs up, in a fixed order for
//! each parent: in the end everything is as it should be, and on the way there nothing was lost and nothing made twice.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Duration;

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::hook::{Call, Hook, Reply};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

const SEED: u64 = 20_261_130;
const PARENTS: usize = 500;
/// From this call on the hook behaves, so that an end can be asked for.
const PATIENCE: u32 = 12;

/// What the hook would answer.
fn right(call: &Call) -> Value {
    let (name, spec) = (call.parent_name(), call.spec());
    let letters = spec["letters"].as_str().expect("a parent has letters");
    let value = spec["value"].as_str().expect("a parent has a value");
    let children: Vec<Value> =
        letters.chars().map(|letter| config_map(&format!("{name}-{letter}"), value)).collect();
    let seen = call.children("ConfigMap.v1").len();
    json!({"children": children, "status": {"value": value, "seen": seen}})
}

/// What it answers to a parent's n-th call.
fn reply(call: &Call, times: u32) -> Reply {
    let mut hasher = DefaultHasher::new();
    (SEED, call.parent_name(), times).hash(&mut hasher);
    let dice = hasher.finish();
    if times > PATIENCE {
        return right(call).into();
    }
    let text = |text: &str| Reply::Text(200, text.into());
    match dice % 20 {
        0 | 1 => Reply::Late(Duration::from_millis(dice >> 8 & 255), right(call)),
        2 => Reply::Text(500, "out of order".into()),
        3 => Reply::Text(404, String::new()),
        4 => Reply::Never,
        5 => Reply::Close,
        6 => Reply::Half(right(call)),
        7 => text("{}"),
        8 => text("null"),
        9 => text(r#"{"children": null}"#),
        10 => text(r#"{"chidlren": [], "status": {}}"#),
        11 => text(r#"{"children": [null], "status": {}}"#),
        12 => text("<html>garbage</html>"),
        _ => right(call).into(),
    }
}

/// A parent that is not as it should be, if there is one.
fn laggard(lab: &Lab) -> Option<String> {
    let things = lab.get(&lab.thing(""))["items"].take();
    let things = things.as_array().expect("a list has items").clone();
    let wrong = things.iter().find(|thing| {
        let (spec, status) = (&thing["spec"], &thing["status"]);
        status["value"] != spec["value"]
            || status["seen"] != spec["letters"].as_str().map_or(0, str::len)
            || status["observedGeneration"] != thing["metadata"]["generation"]
            || status.get("conditions").is_some()
    });
    wrong.map(|thing| format!("{} {}", thing["spec"], thing["status"]))
}

#[test]
fn five_hundred_parents_and_a_hook_that_cannot_be_trusted_all_get_there() {
    let lab = Lab::new("storm");
    let times = Mutex::new(HashMap::<String, u32>::new());
    let hook = Hook::new(move |call: &Call| {
        let mut times = times.lock().unwrap();
        let times = times.entry(call.parent_name().to_owned()).or_default();
        *times += 1;
        let times = *times;
        reply(call, times)
    });
    let definition = lab.definition().config_maps().sync(&hook);
    lab.write_definitions(&[&definition.with("/spec/hooks/sync/webhook/timeout", json!("1s"))]);
    let _controller = lab.start(&["--workers", "16"]);
    let name = |number: usize| format!("t{number:03}");
    for number in 0..PARENTS {
        lab.add_thing(&name(number), json!({"letters": "ab", "value": "1"}));
    }
    // Some have not been answered once, others are done.
    for number in (0..PARENTS).step_by(2) {
        lab.merge(&lab.thing(&name(number)), json!({"spec": {"letters": "ac", "value": "2"}}));
    }
    wait_until(Duration::from_secs(90), "every parent is as it should be", || match laggard(&lab) {
        None => Ok(()),
        Some(laggard) => Err(laggard),
    });
    lab.expect_silence(&hook, SILENCE);

    let (mut expected, mut must_go) = (Vec::new(), Vec::new());
    for number in 0..PARENTS {
        let (letters, value) = if number % 2 == 0 { (["a", "c"], "2") } else { (["a", "b"], "1") };
        expected.extend(letters.map(|letter| (format!("{}-{letter}", name(number)), value)));
        must_go.extend((number % 2 == 0).then(|| format!("delete configmaps {}-b", name(number))));
    }
    let maps = lab.get(&lab.config_map(""));
    let maps = maps["items"].as_array().expect("a list has items").iter();
    let mut found: Vec<(String, &str)> = maps
        .map(|map| {
            (map["metadata"]["name"].as_str().unwrap().to_owned(), map["data"]["key"].as_str().unwrap_or(""))
        })
        .filter(|(name, _)| name != "kube-root-ca.crt")
        .collect();
    found.sort();
    assert_eq!(found, expected);

    let mut created = lab.created();
    let count = created.len();
    created.sort();
    created.dedup();
    assert_eq!(created.len(), count, "no child was made twice");
    let deleted: Vec<String> = lab.writes().into_iter().filter(|write| write.starts_with("delete")).collect();
    assert!(
        deleted.iter().all(|delete| must_go.contains(delete)),
        "nothing was deleted that is wanted: {deleted:?}"
    );
    let bad = hook.count();
    assert!(bad > 4 * PARENTS, "the hook was as bad as it was meant to be: {bad} calls");
}
