//! The parts of a visit that compute without a cluster.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::controller::memory::Memory;
use crate::controller::meter::Outcome;
use crate::controller::undeclared::remove;
use crate::controller::visit::status::{Note, Ours, compose};
use crate::controller::visit::write::path_steps;
use crate::controller::visit::{Conclusion, Ended, survived};
use crate::object::name::Key;
use crate::plan::rollout::Updated;

fn parent(status: Value) -> Value {
    json!({
        "apiVersion": "demo.io/v1", "kind": "Shelf",
        "metadata": {"name": "s", "namespace": "n", "uid": "u", "generation": 4},
        "status": status,
    })
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn ours(note: Option<&Note>) -> Ours<'_> {
    Ours { generation: 4, note, updated: None }
}

fn refused() -> Note {
    Note { reason: "HookRefused", message: "why".into() }
}

#[test]
fn status_of_an_answer_is_the_hooks_with_the_generation_it_saw() {
    let status = compose(
        Some(map(json!({"books": 1, "observedGeneration": 99}))),
        &parent(json!({"old": true})),
        &ours(None),
        at("2026-01-01T00:00:00Z"),
    );
    assert_eq!(Value::Object(status), json!({"books": 1, "observedGeneration": 4}));
}

#[test]
fn without_an_answer_the_status_stays_and_says_why() {
    let live = json!({"books": 1, "observedGeneration": 3});
    let status = compose(None, &parent(live), &ours(Some(&refused())), at("2026-01-01T00:00:00Z"));
    assert_eq!(
        Value::Object(status),
        json!({
            "books": 1, "observedGeneration": 3,
            "conditions": [{
                "type": "Synced", "status": "False", "reason": "HookRefused", "message": "why",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 4,
            }],
        })
    );
}

#[test]
fn time_of_a_standing_condition_stays() {
    let live = json!({"conditions": [
        {"type": "Synced", "status": "False", "lastTransitionTime": "2025-01-01T00:00:00Z"},
    ]});
    let status = compose(None, &parent(live), &ours(Some(&refused())), at("2026-01-01T00:00:00Z"));
    assert_eq!(status["conditions"][0]["lastTransitionTime"], "2025-01-01T00:00:00Z");
}

#[test]
fn condition_goes_once_all_is_well_even_if_the_hook_hands_it_on() {
    let conditions = json!([{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]);
    let answer = map(json!({"conditions": conditions.clone()}));
    let live = parent(json!({ "conditions": conditions }));
    let status = compose(Some(answer), &live, &ours(None), at("2026-01-01T00:00:00Z"));
    assert_eq!(status["conditions"], json!([{"type": "Ready", "status": "True"}]));
}

#[test]
fn condition_of_a_rollout_takes_the_place_of_any_other_and_keeps_its_time() {
    let updated = |holds| Updated { holds, reason: "Why", message: "what".into() };
    let conditions = json!([{"type": "Updated", "status": "Unknown"}, {"type": "Up", "status": "True"}]);
    let live = json!({"conditions": [
        {"type": "Updated", "status": "False", "lastTransitionTime": "2025-01-01T00:00:00Z"},
    ]});
    for (holds, status, since) in
        [(false, "False", "2025-01-01T00:00:00Z"), (true, "True", "2026-01-01T00:00:00Z")]
    {
        let ours = Ours { updated: Some(&updated(holds)), ..ours(None) };
        let answer = map(json!({"conditions": conditions.clone()}));
        let composed = compose(Some(answer), &parent(live.clone()), &ours, at("2026-01-01T00:00:00Z"));
        let expected = json!({
            "type": "Updated", "status": status, "reason": "Why", "message": "what",
            "lastTransitionTime": since, "observedGeneration": 4,
        });
        assert_eq!(composed["conditions"], json!([{"type": "Up", "status": "True"}, expected]));
    }
}

#[test]
fn conditions_that_are_no_list_are_left_to_the_hook() {
    let answer = map(json!({"conditions": {"ready": true}}));
    let status =
        compose(Some(answer), &parent(json!({})), &ours(Some(&refused())), at("2026-01-01T00:00:00Z"));
    assert_eq!(status["conditions"], json!({"ready": true}));
}

#[test]
fn refused_status_field_is_cut_and_nothing_else() {
    let mut status = map(json!({"a": {"b": 1, "c": 2}, "list": [{"x": 1}], "d": 3}));
    assert!(remove(&mut status, "status.a.b"));
    assert!(remove(&mut status, "status.list[0].x"));
    assert!(!remove(&mut status, "status.nosuch"));
    assert!(!remove(&mut status, "spec.d"));
    assert_eq!(Value::Object(status), json!({"a": {"c": 2}, "d": 3}));
}

// B117
#[tokio::test]
async fn visit_that_panics_is_counted_and_its_parent_says_so() {
    let ended = survived(async { panic!("meant to") }).await.ended;
    assert_eq!(Outcome::of(&ended), Outcome::Panicked);
    let Ended::Retry(note) = ended else { panic!("it is tried again: {ended:?}") };
    assert_eq!(note.reason, "InternalError");
    assert_eq!(
        note.message,
        "a visit of this parent panicked, which is a bug of syncwright; the log says more"
    );
    let ended = survived(async { Conclusion::new(Ended::Done) }).await.ended;
    assert_eq!(Outcome::of(&ended), Outcome::Done);
}

#[test]
fn servers_field_becomes_steps_as_far_as_it_has_indices() {
    let steps = |field| path_steps(field).join(" ");
    assert_eq!(steps(".spec.template.spec.containers[0].image"), "spec template spec containers 0 image");
    assert_eq!(steps("spec.ports[name=\"x\"].port"), "spec ports");
    assert_eq!(steps(""), "");
}

#[test]
fn sixth_repair_of_the_same_wish_is_a_fight_and_a_new_wish_is_none() {
    let mut memory = Memory::new("u");
    let child = Key::new("n", "c");
    assert!((0..5).all(|_| !memory.is_fought_over(0, &child, 1)));
    assert!(memory.is_fought_over(0, &child, 1));
    assert!(!memory.is_fought_over(0, &child, 2));
}

#[test]
fn restless_visits_slow_down_and_a_quiet_one_forgets_it() {
    let mut memory = Memory::new("u");
    let pauses: Vec<_> = (0..20).map(|_| memory.slow_down().map(|pause| pause.as_secs())).collect();
    assert_eq!(pauses[..9], [None, None, None, None, None, None, None, Some(1), Some(2)]);
    assert_eq!(pauses[19], Some(64));
    memory.settled();
    assert_eq!(memory.slow_down(), None);
}
