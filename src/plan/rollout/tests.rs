//! Rollouts played through: a decision, what becomes of it, the next decision.

use serde_json::{Map, Value, json};

use super::*;
use crate::config::spec::{ConditionCheck, StatusChecks};
use crate::object::name::Gvk;
use crate::object::selector::Selector;
use crate::plan::desired::desired;
use crate::plan::memory::Memory;
use crate::plan::{Claim, Method, Parent};

/// Parts are rolled out by their condition `Ready`, Books by nothing, Notes all at once.
fn rules() -> Vec<ChildRule> {
    let ready = ConditionCheck { kind: "Ready".into(), status: Some("True".into()), reason: None };
    let checks = StatusChecks { conditions: vec![ready], ready_when: None };
    let rule = |kind, rolls| ChildRule {
        gvk: Gvk::new("demo.io/v1", kind),
        namespaced: true,
        method: Method::InPlace,
        rolls,
    };
    vec![rule("Part", Some(checks)), rule("Book", Some(StatusChecks::default())), rule("Note", None)]
}

fn wants(children: &[(&str, &str, i64)]) -> Desired {
    let parent = Parent { gvk: Gvk::new("demo.io/v1", "Shelf"), key: Key::new("lib", "s"), uid: "u".into() };
    let child = |(kind, name, x): &(&str, &str, i64)| {
        let child =
            json!({"apiVersion": "demo.io/v1", "kind": kind, "metadata": {"name": name}, "spec": {"x": x}});
        (child.as_object().unwrap().clone(), None)
    };
    let claim = Claim::Selector(Selector::everything());
    desired(&parent, &rules(), &claim, children.iter().map(child).collect())
}

/// A live child as an apply of ours left it.
struct Live {
    rule: usize,
    key: Key,
    body: Value,
    ready: bool,
    deleting: bool,
    control: Control<'static>,
    owned: Option<&'static str>,
}

struct Stage {
    live: Vec<Live>,
}

const OWNED: &str = r#"{"f:spec":{"f:x":{}}}"#;

impl Stage {
    /// All children of an answer as it wants them, and well.
    fn of(desired: &Desired) -> Stage {
        let mut stage = Stage { live: Vec::new() };
        desired.wanted.iter().for_each(|wanted| stage.apply(wanted));
        stage
    }

    fn apply(&mut self, wanted: &Wanted) {
        self.live.retain(|live| (live.rule, &live.key) != (wanted.rule, &wanted.key));
        let body = Value::Object(wanted.body.clone());
        let (rule, key) = (wanted.rule, wanted.key.clone());
        let (control, owned) = (Control::Ours, Some(OWNED));
        self.live.push(Live { rule, key, body, ready: true, deleting: false, control, owned });
    }

    fn child(&mut self, name: &str) -> &mut Live {
        self.live.iter_mut().find(|live| live.key.name == name).expect("such a child")
    }

    /// Without any answer for the older revisions.
    fn decide(&self, latest: &Desired, claims: &[BTreeSet<Child>], pace: Pace) -> Rollout {
        self.with(latest, |scene| decide(scene, settle(scene, claims), &[], pace))
    }

    fn with<T>(&self, latest: &Desired, act: impl FnOnce(&Scene) -> T) -> T {
        let body = |live: &Live| {
            let mut body = live.body.clone();
            let status = if live.ready { "True" } else { "False" };
            body["status"] = json!({"conditions": [{"type": "Ready", "status": status}]});
            body.to_string()
        };
        let bodies: Vec<String> = self.live.iter().map(body).collect();
        let observed: Vec<Observed> = self
            .live
            .iter()
            .zip(&bodies)
            .map(|(live, body)| Observed {
                rule: live.rule,
                key: &live.key,
                uid: &live.key.name,
                version: 1,
                deleting: live.deleting,
                control: live.control,
                owned: live.owned,
                updated: false,
                body,
            })
            .collect();
        let (parent, memory, rules) = (Key::new("lib", "s"), Memory::default(), rules());
        act(&Scene { rules: &rules, parent: &parent, latest, observed: &observed, memory: &memory })
    }
}

fn set(children: &[(usize, &str)]) -> BTreeSet<Child> {
    children.iter().map(|(rule, name)| (*rule, Key::new("lib", *name))).collect()
}

fn moves(child: &str) -> Progress {
    Progress::Moves(Named(child.into()))
}

fn waits(why: &str) -> Progress {
    Progress::Waits(why.into())
}

fn books(x: i64) -> Desired {
    wants(&[("Book", "b", x), ("Book", "a", x), ("Book", "c", x)])
}

const ALL: [(usize, &str); 3] = [(1, "a"), (1, "b"), (1, "c")];

#[test]
fn children_that_are_new_are_made_at_once() {
    let rollout = Stage { live: Vec::new() }.decide(&books(1), &[set(&[])], Pace::OneByOne);
    assert_eq!(rollout.claims, [set(&ALL)]);
    assert_eq!(rollout.progress, waits("Book b: it is missing"));
    let rollout = Stage::of(&books(1)).decide(&books(1), &rollout.claims, Pace::OneByOne);
    assert_eq!(rollout, Rollout { claims: vec![set(&ALL)], progress: Progress::Done });
}

// B78
#[test]
fn children_follow_one_by_one_in_the_order_of_the_answer() {
    let latest = books(2);
    let mut stage = Stage::of(&books(1));
    let mut claims = vec![set(&[]), set(&ALL)];
    for name in ["b", "a", "c"] {
        let rollout = stage.decide(&latest, &claims, Pace::OneByOne);
        assert_eq!(rollout.progress, moves(&format!("Book {name}")));
        // Noted and not yet done: nobody else is moved before it is.
        let again = stage.decide(&latest, &rollout.claims, Pace::OneByOne);
        assert_eq!(again.progress, waits(&format!("Book {name}: it is not as wanted yet")));
        assert_eq!(again.claims, rollout.claims);
        let moved = latest.wanted.iter().find(|wanted| wanted.key.name == name).expect("it is wanted");
        stage.apply(moved);
        claims = again.claims;
    }
    let rollout = stage.decide(&latest, &claims, Pace::OneByOne);
    assert_eq!(rollout, Rollout { claims: vec![set(&ALL), set(&[])], progress: Progress::Done });
}

#[test]
fn several_kinds_are_one_row() {
    let answer = |x| wants(&[("Part", "p", x), ("Book", "b", x), ("Note", "n", x), ("Part", "q", x)]);
    let mut stage = Stage::of(&answer(1));
    let mut claims = vec![set(&[]), set(&[(0, "p"), (1, "b"), (0, "q")])];
    for name in ["Part p", "Book b", "Part q"] {
        let rollout = stage.decide(&answer(2), &claims, Pace::OneByOne);
        assert_eq!(rollout.progress, moves(name));
        let blended = stage.with(&answer(2), |scene| blend(scene, &rollout, vec![Some(answer(1))]));
        let at_once = blended.wanted.iter().find(|wanted| wanted.key.name == "n").expect("the note");
        assert_eq!(at_once.body["spec"]["x"], 2, "its kind is not rolled out");
        let kind = name.split(' ').nth(1).expect("a name");
        stage.apply(blended.wanted.iter().find(|wanted| wanted.key.name == kind).expect("it is wanted"));
        claims = rollout.claims;
    }
}

#[test]
fn rollout_stops_at_a_child_that_is_not_well_and_goes_on_when_it_is() {
    let answer = |x| wants(&[("Part", "a", x), ("Part", "b", x)]);
    let mut stage = Stage::of(&answer(1));
    stage.apply(&answer(2).wanted[0]);
    stage.child("a").ready = false;
    let claims = [set(&[(0, "a")]), set(&[(0, "b")])];
    let rollout = stage.decide(&answer(2), &claims, Pace::OneByOne);
    assert_eq!(rollout.progress, waits("Part a: its condition `Ready` is `False`, not `True`"));
    assert_eq!(rollout.claims, claims);
    stage.child("a").ready = true;
    assert_eq!(stage.decide(&answer(2), &claims, Pace::OneByOne).progress, moves("Part b"));
}

#[test]
fn child_that_falls_ill_when_all_are_there_takes_nothing_back() {
    let answer = wants(&[("Part", "a", 1)]);
    let mut stage = Stage::of(&answer);
    stage.child("a").ready = false;
    let rollout = stage.decide(&answer, &[set(&[(0, "a")])], Pace::OneByOne);
    assert_eq!(rollout.progress, Progress::Done);
}

#[test]
fn child_that_is_ill_in_its_old_revision_stops_nobody() {
    let answer = |x| wants(&[("Part", "a", x), ("Part", "b", x)]);
    let mut stage = Stage::of(&answer(1));
    stage.child("b").ready = false;
    let claims = [set(&[]), set(&[(0, "a"), (0, "b")])];
    assert_eq!(stage.decide(&answer(2), &claims, Pace::OneByOne).progress, moves("Part a"));
}

#[test]
fn missing_deleted_or_foreign_child_of_the_latest_revision_is_waited_for() {
    let claims = [set(&[(1, "b")]), set(&[(1, "a"), (1, "c")])];
    let mut stage = Stage::of(&books(1));
    stage.apply(&books(2).wanted[0]);
    assert_eq!(stage.decide(&books(2), &claims, Pace::OneByOne).progress, moves("Book a"));
    stage.child("b").deleting = true;
    let told = |stage: &Stage| stage.decide(&books(2), &claims, Pace::OneByOne).progress;
    assert_eq!(told(&stage), waits("Book b: it is being deleted"));
    stage.child("b").deleting = false;
    stage.child("b").control = Control::Nobody;
    assert_eq!(told(&stage), waits("Book b: it exists and is not this parent's"));
    stage.live.retain(|live| live.key.name != "b");
    assert_eq!(told(&stage), waits("Book b: it is missing"));
}

#[test]
fn child_that_is_the_same_in_both_revisions_needs_no_step() {
    let old = wants(&[("Book", "a", 1), ("Book", "b", 1)]);
    let new = wants(&[("Book", "a", 1), ("Book", "b", 2)]);
    let rollout = Stage::of(&old).decide(&new, &[set(&[]), set(&[(1, "a"), (1, "b")])], Pace::OneByOne);
    assert_eq!(rollout.progress, moves("Book b"));
    assert_eq!(rollout.claims, [set(&[(1, "a"), (1, "b")]), set(&[])]);
}

#[test]
fn child_that_another_writer_left_as_it_is_wanted_needs_no_step() {
    let mut stage = Stage::of(&books(1));
    stage.live.iter_mut().for_each(|live| live.owned = None);
    let rollout = stage.decide(&books(1), &[set(&[])], Pace::OneByOne);
    assert_eq!(rollout.claims, [set(&ALL)], "all at once: making them ours changes nothing");
    assert_eq!(rollout.progress, waits("Book b: it is not as wanted yet"));
    stage.child("a").body["spec"]["x"] = json!(0);
    assert_eq!(stage.decide(&books(1), &[set(&[])], Pace::OneByOne).claims, [set(&[(1, "b"), (1, "c")])]);
}

#[test]
fn old_state_wanted_again_takes_back_what_was_moved() {
    // Revision 1 is the latest again while `b` is in 2 already.
    let mut stage = Stage::of(&books(1));
    stage.apply(&books(2).wanted[0]);
    let claims = [set(&[(1, "a"), (1, "c")]), set(&[(1, "b")])];
    let rollout = stage.decide(&books(1), &claims, Pace::OneByOne);
    assert_eq!(rollout.progress, moves("Book b"));
    assert_eq!(rollout.claims, [set(&ALL), set(&[])]);
}

#[test]
fn third_state_begins_again_with_the_first_child() {
    let mut stage = Stage::of(&books(1));
    stage.apply(&books(2).wanted[0]);
    let claims = [set(&[]), set(&[(1, "b")]), set(&[(1, "a"), (1, "c")])];
    let rollout = stage.decide(&books(3), &claims, Pace::OneByOne);
    assert_eq!(rollout.progress, moves("Book b"));
    assert_eq!(rollout.claims, [set(&[(1, "b")]), set(&[]), set(&[(1, "a"), (1, "c")])]);
    let others = vec![Some(books(2)), Some(books(1))];
    let blended = stage.with(&books(3), |scene| blend(scene, &rollout, others));
    let states: Vec<_> = blended
        .wanted
        .iter()
        .map(|wanted| (wanted.key.name.as_str(), wanted.body["spec"]["x"].clone()))
        .collect();
    assert_eq!(states, [("b", json!(3)), ("a", json!(1)), ("c", json!(1))]);
    assert!(blended.wanted.iter().all(|wanted| !wanted.hold));
}

#[test]
fn child_that_was_on_its_way_to_an_older_revision_comes_first() {
    // `a` was noted in 2 and is still as 1 had it when 3 comes.
    let mut stage = Stage::of(&books(1));
    stage.apply(&books(2).wanted[0]);
    let claims = [set(&[]), set(&[(1, "a"), (1, "b")]), set(&[(1, "c")])];
    let older = || vec![Some(books(2)), Some(books(1))];
    let latest = books(3);
    let rollout =
        stage.with(&latest, |scene| decide(scene, settle(scene, &claims), &older(), Pace::OneByOne));
    assert_eq!(rollout.progress, moves("Book a"));
    assert_eq!(rollout.claims, [set(&[(1, "a")]), set(&[(1, "b")]), set(&[(1, "c")])]);
    let blended = stage.with(&latest, |scene| blend(scene, &rollout, older()));
    let changed = blended.wanted.iter().filter(|wanted| {
        let live = stage.live.iter().find(|live| live.key == wanted.key).expect("it is there");
        live.body["spec"] != wanted.body["spec"]
    });
    assert_eq!(changed.map(|wanted| wanted.key.name.as_str()).collect::<Vec<_>>(), ["a"], "nobody beside it");
    // One that was deleted on its way, too.
    stage.live.retain(|live| live.key.name != "a");
    let rollout =
        stage.with(&latest, |scene| decide(scene, settle(scene, &claims), &older(), Pace::OneByOne));
    assert_eq!(rollout.progress, moves("Book a"));
}

#[test]
fn of_two_revisions_that_claim_a_child_the_latest_has_it() {
    // Killed between the two writes that a move is.
    let claims = [set(&[(1, "b")]), set(&ALL)];
    let rollout = Stage::of(&books(1)).decide(&books(2), &claims, Pace::OneByOne);
    assert_eq!(rollout.claims, [set(&[(1, "b")]), set(&[(1, "a"), (1, "c")])]);
    assert_eq!(rollout.progress, waits("Book b: it is not as wanted yet"));
}

#[test]
fn children_that_are_not_wanted_any_more_are_forgotten_one_by_one() {
    let latest = wants(&[("Book", "a", 1)]);
    let rollout = Stage::of(&books(1)).decide(&latest, &[set(&ALL)], Pace::OneByOne);
    assert_eq!(rollout, Rollout { claims: vec![set(&[(1, "a")])], progress: Progress::Done });
    // Scaled down in mid-rollout.
    let latest = wants(&[("Book", "a", 2)]);
    let claims = [set(&[(1, "b")]), set(&[(1, "a"), (1, "c")])];
    let rollout = Stage::of(&books(1)).decide(&latest, &claims, Pace::OneByOne);
    assert_eq!(rollout.progress, moves("Book a"));
    assert_eq!(rollout.claims, [set(&[(1, "a")]), set(&[])]);
}

#[test]
fn child_of_no_revision_is_left_as_it_is_until_its_turn() {
    let stage = Stage::of(&books(1));
    let rollout = stage.decide(&books(2), &[set(&[])], Pace::OneByOne);
    assert_eq!(rollout.progress, moves("Book b"));
    assert_eq!(rollout.claims, [set(&[(1, "b")])]);
    let blended = stage.with(&books(2), |scene| blend(scene, &rollout, Vec::new()));
    let held: Vec<_> = blended.wanted.iter().map(|wanted| (wanted.key.name.as_str(), wanted.hold)).collect();
    assert_eq!(held, [("b", false), ("a", true), ("c", true)]);
}

#[test]
fn children_of_a_revision_that_has_no_answer_are_left_as_they_are() {
    let stage = Stage::of(&books(1));
    let rollout = stage.decide(&books(2), &[set(&[]), set(&ALL)], Pace::OneByOne);
    let twice = wants(&[("Book", "a", 1), ("Book", "a", 1)]);
    assert!(twice.void());
    for answer in [None, Some(wants(&[])), Some(twice)] {
        let blended = stage.with(&books(2), |scene| blend(scene, &rollout, vec![answer]));
        let held: Vec<_> = blended.wanted.iter().map(|wanted| wanted.hold).collect();
        assert_eq!(held, [false, true, true]);
    }
}

#[test]
fn frozen_rollout_moves_nobody_and_keeps_each_child_in_its_revision() {
    let claims = [set(&[]), set(&ALL)];
    let rollout =
        Stage::of(&books(1)).decide(&books(2), &claims, Pace::Frozen("the parent is being deleted"));
    assert_eq!(rollout.claims, claims);
    assert_eq!(rollout.progress, waits("the parent is being deleted"));
    let rollout = Stage::of(&books(2)).decide(&books(2), &[set(&ALL)], Pace::Frozen("nothing to do"));
    assert_eq!(rollout.progress, Progress::Done);
}

#[test]
fn object_that_is_somebody_elses_takes_no_part() {
    let child = json!({
        "apiVersion": "demo.io/v1", "kind": "Book", "spec": {"x": 2},
        "metadata": {"name": "theirs", "annotations": {"syncwright.io/ownership": "none"}},
    });
    let parent = Parent { gvk: Gvk::new("demo.io/v1", "Shelf"), key: Key::new("lib", "s"), uid: "u".into() };
    let children: Vec<(Map<String, Value>, _)> = vec![(child.as_object().unwrap().clone(), None)];
    let latest = desired(&parent, &rules(), &Claim::Selector(Selector::everything()), children);
    let rollout = Stage { live: Vec::new() }.decide(&latest, &[set(&[])], Pace::OneByOne);
    assert_eq!(rollout, Rollout { claims: vec![set(&[])], progress: Progress::Done });
}

#[test]
fn condition_says_how_far_it_is() {
    let told = |progress: Progress| {
        let Updated { holds, reason, message } = progress.updated("shelves.demo.io-1");
        (holds, reason, message)
    };
    assert_eq!(
        told(Progress::Done),
        (true, "OnLatestRevision", "latest ControllerRevision: shelves.demo.io-1".into())
    );
    assert_eq!(told(moves("Book b")), (false, "RolloutProgressing", "updating Book b".into()));
    assert_eq!(
        told(waits("Book b: it is missing")),
        (false, "RolloutWaiting", "Book b: it is missing".into())
    );
}

/// A machine that may be killed between any two writes: whatever it does then, no two children are ever on their way at
/// once, and none is changed twice.
#[test]
fn killed_anywhere_a_rollout_repeats_no_step_and_moves_one_child_at_a_time() {
    let answer = |x| wants(&[("Part", "a", x), ("Part", "b", x), ("Part", "c", x)]);
    for kill in 0..40 {
        let mut stage = Stage::of(&answer(1));
        let mut stored = vec![set(&[]), set(&[(0, "a"), (0, "b"), (0, "c")])];
        let (mut applied, mut writes) = (Vec::new(), 0);
        let mut alive = || {
            writes += 1;
            writes != kill
        };
        'visit: for _ in 0..40 {
            stage.live.iter_mut().for_each(|live| live.ready = true);
            let rollout = stage.decide(&answer(2), &stored, Pace::OneByOne);
            for (kept, noted) in stored.iter_mut().zip(&rollout.claims) {
                if kept != noted {
                    if !alive() {
                        continue 'visit;
                    }
                    kept.clone_from(noted);
                }
            }
            let blended = stage.with(&answer(2), |scene| blend(scene, &rollout, vec![Some(answer(1))]));
            for wanted in &blended.wanted {
                let differs = stage.child(&wanted.key.name).body["spec"] != wanted.body["spec"];
                if differs && !wanted.hold {
                    if !alive() {
                        continue 'visit;
                    }
                    assert!(stage.live.iter().all(|live| live.ready), "{kill}: two at once");
                    applied.push(wanted.key.name.clone());
                    stage.apply(wanted);
                    stage.child(&wanted.key.name).ready = false;
                }
            }
        }
        assert_eq!(applied, ["a", "b", "c"], "killed before write {kill}");
    }
}
