use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::object::name::Gvk;
use crate::object::selector::Selector;
use crate::plan::desired::{Reach, desired};
use crate::plan::memory::Probed;
use crate::plan::{Claim, Parent};

fn rules(method: Method) -> Vec<ChildRule> {
    ["ConfigMap", "Secret"]
        .map(|kind| ChildRule { gvk: Gvk::new("v1", kind), namespaced: true, method, rolls: None })
        .into()
}

fn wants(children: &[Value]) -> Desired {
    let parent =
        Parent { gvk: Gvk::new("demo.io/v1", "Shelf"), key: Key::new("lib", "s1"), uid: "u-1".into() };
    let children = children.iter().map(|child| (child.as_object().unwrap().clone(), None)).collect();
    desired(&parent, &rules(Method::InPlace), &Claim::Selector(Selector::everything()), children)
}

fn config_map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

/// A live ConfigMap, as an apply of ours would have left it.
struct Live {
    key: Key,
    uid: String,
    version: u64,
    deleting: bool,
    control: Control<'static>,
    owned: Option<String>,
    body: Value,
}

impl Live {
    fn of(desired: &Desired, index: usize) -> Live {
        let wanted = &desired.wanted[index];
        let fields = wanted.body["data"].as_object().unwrap();
        let record: Map<String, Value> = fields.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        Live {
            key: wanted.key.clone(),
            uid: format!("uid-{}", wanted.key.name),
            version: 10,
            deleting: false,
            control: Control::Ours,
            owned: Some(json!({ "f:data": record }).to_string()),
            body: wanted.body.clone().into(),
        }
    }

    fn named(name: &str) -> Live {
        Live::of(&wants(&[config_map(name, json!({ "k": "v" }))]), 0)
    }

    fn plan(&self, method: Method, desired: &Desired, memory: &mut Memory) -> Step {
        let body = self.body.to_string();
        let mut steps = steps(&rules(method), desired, &[self.observed(&body)], memory);
        assert_eq!(steps.len(), 1);
        steps.remove(0)
    }

    fn observed<'a>(&'a self, body: &'a str) -> Observed<'a> {
        Observed {
            rule: 0,
            key: &self.key,
            uid: &self.uid,
            version: self.version,
            deleting: self.deleting,
            control: self.control,
            owned: self.owned.as_deref(),
            updated: false,
            body,
        }
    }
}

fn keep(why: Rest) -> Step {
    Step::Keep { wanted: 0, observed: 0, why }
}

fn changes(step: &Step) -> String {
    match step {
        Step::Apply { why: Reason::Differs(found), .. } => format!("apply: {found}"),
        Step::Delete { why: Farewell::Replaced(found), .. } => format!("replace: {found}"),
        Step::Probe { differences, .. } => format!("probe: {differences}"),
        Step::Keep { why: Rest::AsStored(found), .. } => format!("as stored: {found}"),
        Step::Stuck { message, .. } => format!("stuck: {message}"),
        Step::Refuse { problem, .. } => format!("refuse: {problem}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn missing_children_are_applied_in_the_order_of_the_answer() {
    let desired = wants(&["b", "a", "c"].map(|name| config_map(name, json!({}))));
    let plan = steps(&rules(Method::OnDelete), &desired, &[], &mut Memory::default());
    let apply = |wanted| Step::Apply { wanted, observed: None, why: Reason::Missing };
    assert_eq!(plan, [apply(0), apply(1), apply(2)]);
}

#[test]
fn unwanted_children_go_first_and_only_those_that_are_ours() {
    let desired = wants(&[config_map("a", json!({}))]);
    let [ours, mut going, mut orphan, mut other] = ["b", "c", "d", "e"].map(Live::named);
    going.deleting = true;
    orphan.control = Control::Nobody;
    other.control = Control::Other { kind: "Shelf", name: "s2" };
    let lives = [going, orphan, ours, other];
    let observed: Vec<Observed> = lives.iter().map(|live| live.observed("{}")).collect();
    let plan = steps(&rules(Method::InPlace), &desired, &observed, &mut Memory::default());
    assert_eq!(
        plan,
        [
            Step::Delete { observed: 2, why: Farewell::Unwanted },
            Step::Apply { wanted: 0, observed: None, why: Reason::Missing },
        ]
    );
}

#[test]
fn empty_answer_deletes_every_child() {
    let lives = [Live::named("a"), Live::named("b")];
    let observed: Vec<Observed> = lives.iter().map(|live| live.observed("{}")).collect();
    let plan = steps(&rules(Method::OnDelete), &wants(&[]), &observed, &mut Memory::default());
    assert_eq!(plan, [0, 1].map(|observed| Step::Delete { observed, why: Farewell::Unwanted }));
}

#[test]
fn nothing_is_deleted_while_a_child_is_refused() {
    let elsewhere =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "namespace": "y" } });
    let desired = wants(&[config_map("a", json!({})), elsewhere]);
    assert_eq!(desired.refusals[0].reach, Reach::Child);
    let live = Live::named("b");
    let plan = steps(&rules(Method::InPlace), &desired, &[live.observed("{}")], &mut Memory::default());
    assert_eq!(plan, [Step::Apply { wanted: 0, observed: None, why: Reason::Missing }]);
}

#[test]
fn nothing_is_done_with_a_void_answer() {
    let desired = wants(&[config_map("a", json!({})), config_map("a", json!({ "k": "v" }))]);
    let live = Live::named("b");
    let plan = steps(&rules(Method::InPlace), &desired, &[live.observed("{}")], &mut Memory::default());
    assert_eq!(plan, []);
}

#[test]
fn child_as_wanted_is_left_alone_also_after_a_restart() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let live = Live::of(&desired, 0);
    for method in [Method::InPlace, Method::Recreate] {
        assert_eq!(live.plan(method, &desired, &mut Memory::default()), keep(Rest::Settled));
    }
}

#[test]
fn child_nobody_touched_is_not_even_compared() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut memory = Memory::default();
    let live = Live::of(&desired, 0);
    memory.applied(&desired.wanted[0], &live.observed("not JSON"));
    let plan = steps(&rules(Method::InPlace), &desired, &[live.observed("not JSON")], &mut memory);
    assert_eq!(plan, [keep(Rest::Settled)]);
    let touched = Observed { version: 11, ..live.observed("not JSON") };
    let plan = steps(&rules(Method::InPlace), &desired, &[touched], &mut memory);
    assert_eq!(
        changes(&plan[0]),
        "refuse: child `ConfigMap lib/a` cannot be compared: its JSON does not read"
    );
}

#[test]
fn child_that_was_changed_is_applied_again() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut live = Live::of(&desired, 0);
    live.body["data"]["k"] = json!("edited");
    live.owned = Some("{}".into());
    let step = live.plan(Method::InPlace, &desired, &mut Memory::default());
    assert_eq!(changes(&step), "apply: `data.k` is `\"edited\"`, wanted `\"v\"`");
}

#[test]
fn child_is_never_touched_on_delete() {
    let desired = wants(&[config_map("a", json!({ "k": "new" }))]);
    let live = Live::named("a");
    assert_eq!(live.plan(Method::OnDelete, &desired, &mut Memory::default()), keep(Rest::OnDelete));
}

#[test]
fn child_being_deleted_is_waited_for() {
    let desired = wants(&[config_map("a", json!({ "k": "new" }))]);
    let mut live = Live::named("a");
    live.deleting = true;
    for method in [Method::OnDelete, Method::Recreate, Method::InPlace] {
        assert_eq!(live.plan(method, &desired, &mut Memory::default()), keep(Rest::Deleting));
    }
}

#[test]
fn child_of_a_former_parent_of_the_name_is_waited_for() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut live = Live::of(&desired, 0);
    live.control = Control::Former;
    for method in [Method::OnDelete, Method::Recreate, Method::InPlace] {
        assert_eq!(live.plan(method, &desired, &mut Memory::default()), keep(Rest::Former));
    }
}

#[test]
fn object_of_somebody_else_is_not_taken() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut live = Live::of(&desired, 0);
    live.control = Control::Other { kind: "Shelf", name: "s2" };
    assert_eq!(
        changes(&live.plan(Method::InPlace, &desired, &mut Memory::default())),
        "refuse: child `ConfigMap lib/a` exists and is not this parent's; found: it is controlled by `Shelf s2`"
    );
    live.control = Control::Nobody;
    assert_eq!(
        changes(&live.plan(Method::OnDelete, &desired, &mut Memory::default())),
        "refuse: child `ConfigMap lib/a` exists and is not this parent's; found: it has no controller; hint: delete it, or give it the labels that the parent's selector matches: then it is adopted"
    );
}

#[test]
fn what_the_server_stores_in_another_form_is_written_no_more_than_once_again() {
    let desired = wants(&[config_map("a", json!({ "k": "V" }))]);
    let wanted = &desired.wanted[0];
    let mut memory = Memory::default();
    let mut live = Live::of(&desired, 0);
    live.body["data"]["k"] = json!("v");
    memory.applied(wanted, &live.observed(&live.body.to_string()));
    assert_eq!(live.plan(Method::InPlace, &desired, &mut memory), keep(Rest::Settled));
    live.version = 11;
    let again = live.plan(Method::InPlace, &desired, &mut memory);
    assert_eq!(changes(&again), "apply: `data.k` is `\"v\"`, wanted `\"V\"`");
    memory.applied(wanted, &live.observed(&live.body.to_string()));
    live.version = 12;
    let kept = live.plan(Method::InPlace, &desired, &mut memory);
    assert_eq!(changes(&kept), "as stored: `data.k` is `\"v\"`, wanted `\"V\"`");
    live.version = 13;
    live.body["data"]["k"] = json!("edited");
    let drifted = live.plan(Method::InPlace, &desired, &mut memory);
    assert_eq!(changes(&drifted), "apply: `data.k` is `\"edited\"`, wanted `\"V\"`");
}

#[test]
fn another_form_of_the_same_is_applied_in_place_and_is_no_reason_to_recreate() {
    let before = wants(&[config_map("a", json!({ "k": "v" }))]);
    let live = Live::of(&before, 0);
    let mut after = wants(&[config_map("a", json!({ "k": "v" }))]);
    after.wanted[0].hash += 1;
    for (method, expected) in [
        (
            Method::InPlace,
            Step::Apply { wanted: 0, observed: Some(0), why: Reason::Differs(Differences::default()) },
        ),
        (Method::Recreate, keep(Rest::Settled)),
    ] {
        let mut memory = Memory::default();
        assert_eq!(live.plan(method, &before, &mut memory), keep(Rest::Settled));
        assert_eq!(live.plan(method, &after, &mut memory), expected);
    }
}

#[test]
fn recreate_asks_the_server_before_it_deletes_what_it_has_not_seen_settled() {
    let desired = wants(&[config_map("a", json!({ "k": "V" }))]);
    let wanted = &desired.wanted[0];
    let mut memory = Memory::default();
    let mut live = Live::of(&desired, 0);
    live.body["data"]["k"] = json!("v");
    let body = live.body.to_string();
    let step = live.plan(Method::Recreate, &desired, &mut memory);
    assert_eq!(changes(&step), "probe: `data.k` is `\"v\"`, wanted `\"V\"`");

    let mut other = live.body.clone();
    other["data"]["k"] = json!("V");
    assert_eq!(memory.probed(wanted, &live.observed(&body), &other.to_string()), Probed::Differs);
    assert_eq!(memory.probed(wanted, &live.observed(&body), "not JSON"), Probed::Differs);
    assert_eq!(live.plan(Method::Recreate, &desired, &mut memory), step);

    let mut same = live.body.clone();
    same["metadata"]["resourceVersion"] = json!("99");
    same["metadata"]["generation"] = json!(3);
    same["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(memory.probed(wanted, &live.observed(&body), &same.to_string()), Probed::Settled);
    live.version = 11;
    let kept = live.plan(Method::Recreate, &desired, &mut memory);
    assert_eq!(changes(&kept), "as stored: `data.k` is `\"v\"`, wanted `\"V\"`");
}

#[test]
fn recreate_deletes_what_it_has_seen_settled_and_creates_it_once_it_is_gone() {
    let before = wants(&[config_map("a", json!({ "k": "v" }))]);
    let after = wants(&[config_map("a", json!({ "k": "new" }))]);
    let mut memory = Memory::default();
    let mut live = Live::of(&before, 0);
    assert_eq!(live.plan(Method::Recreate, &before, &mut memory), keep(Rest::Settled));
    let step = live.plan(Method::Recreate, &after, &mut memory);
    assert_eq!(changes(&step), "replace: `data.k` is `\"v\"`, wanted `\"new\"`");
    live.deleting = true;
    assert_eq!(live.plan(Method::Recreate, &after, &mut memory), keep(Rest::Deleting));
    let plan = steps(&rules(Method::Recreate), &after, &[], &mut memory);
    assert_eq!(plan, [Step::Apply { wanted: 0, observed: None, why: Reason::Missing }]);
}

#[test]
fn recreate_takes_ownership_of_an_adopted_child_in_place() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut live = Live::of(&desired, 0);
    live.owned = None;
    let step = live.plan(Method::Recreate, &desired, &mut Memory::default());
    assert_eq!(changes(&step), "apply: `the object` is as wanted and not ours");
}

#[test]
fn refused_change_is_not_tried_again_until_something_else_is_to_be_done() {
    let desired = wants(&[config_map("a", json!({ "k": "new" }))]);
    let wanted = &desired.wanted[0];
    let mut memory = Memory::default();
    let mut live = Live::named("a");
    let body = live.body.to_string();
    let first = live.plan(Method::InPlace, &desired, &mut memory);
    assert_eq!(changes(&first), "apply: `data.k` is `\"v\"`, wanted `\"new\"`");
    memory.refused(wanted, Some(&live.observed(&body)), "data: field is immutable");

    let stuck = Step::Stuck { wanted: 0, message: "data: field is immutable".into() };
    assert_eq!(live.plan(Method::InPlace, &desired, &mut memory), stuck);
    live.version = 11;
    live.body["status"] = json!({ "ready": true });
    assert_eq!(live.plan(Method::InPlace, &desired, &mut memory), stuck);

    let other = wants(&[config_map("a", json!({ "k": "newer" }))]);
    assert!(changes(&live.plan(Method::InPlace, &other, &mut memory)).starts_with("apply"));
    assert!(changes(&live.plan(Method::InPlace, &desired, &mut memory)).starts_with("stuck"));
    live.uid = "another".into();
    assert!(changes(&live.plan(Method::InPlace, &desired, &mut memory)).starts_with("apply"));
}

#[test]
fn refused_change_is_tried_again_when_it_is_forgotten() {
    let desired = wants(&[config_map("a", json!({ "k": "new" }))]);
    let mut memory = Memory::default();
    let live = Live::named("a");
    live.plan(Method::InPlace, &desired, &mut memory);
    memory.refused(&desired.wanted[0], Some(&live.observed("{}")), "no");
    memory.forget_refusals();
    assert!(changes(&live.plan(Method::InPlace, &desired, &mut memory)).starts_with("apply"));
}

#[test]
fn refused_child_is_not_created_again_until_it_is_wanted_otherwise() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut memory = Memory::default();
    memory.refused(&desired.wanted[0], None, "metadata.labels: no");
    let plan = |desired: &Desired, memory: &mut Memory| steps(&rules(Method::InPlace), desired, &[], memory);
    assert_eq!(
        plan(&desired, &mut memory),
        [Step::Stuck { wanted: 0, message: "metadata.labels: no".into() }]
    );
    let other = wants(&[config_map("a", json!({ "k": "w" }))]);
    assert_eq!(plan(&other, &mut memory), [Step::Apply { wanted: 0, observed: None, why: Reason::Missing }]);
}

#[test]
fn what_is_known_of_a_child_ends_with_it() {
    let desired = wants(&[config_map("a", json!({ "k": "v" }))]);
    let mut memory = Memory::default();
    memory.refused(&desired.wanted[0], None, "no");
    steps(&rules(Method::InPlace), &wants(&[]), &[], &mut memory);
    let plan = steps(&rules(Method::InPlace), &desired, &[], &mut memory);
    assert_eq!(plan, [Step::Apply { wanted: 0, observed: None, why: Reason::Missing }]);
}

#[test]
fn values_of_a_secret_are_in_no_step() {
    let secret = |value: &str| {
        wants(&[
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "p": value } }),
        ])
    };
    let (before, after) = (secret("b2xk"), secret("bmV3"));
    let live = Live::of(&before, 0);
    let body = live.body.to_string();
    let observed = Observed { rule: 1, ..live.observed(&body) };
    for method in [Method::InPlace, Method::Recreate] {
        let plan = steps(&rules(method), &after, &[observed], &mut Memory::default());
        let text = format!("{plan:?}");
        assert!(text.contains("`data.p` has another value"), "{text}");
        assert!(!text.contains("bmV3") && !text.contains("b2xk"), "{text}");
    }
}

/// A server that stores text in lower case and adds a default, and the controller that carries steps out against it.
struct Cluster {
    live: Option<Live>,
    writes: usize,
    deletes: usize,
    version: u64,
}

impl Cluster {
    /// What the server would make of an apply.
    fn applied(&self, desired: &Desired) -> Live {
        let mut next = Live::of(desired, 0);
        for value in next.body["data"].as_object_mut().unwrap().values_mut() {
            *value = json!(value.as_str().unwrap().to_lowercase());
        }
        next.body["data"]["filled"] = json!("in");
        let same = self.live.as_ref().is_some_and(|live| live.body == next.body);
        next.version = self.version + u64::from(!same);
        next.uid = match &self.live {
            Some(live) => live.uid.clone(),
            None => format!("uid-{}", next.version),
        };
        next
    }

    fn visit(&mut self, method: Method, desired: &Desired, memory: &mut Memory) {
        let body = self.live.as_ref().map(|live| live.body.to_string()).unwrap_or_default();
        let observed: Vec<Observed> = self.live.iter().map(|live| live.observed(&body)).collect();
        match steps(&rules(method), desired, &observed, memory).remove(0) {
            Step::Apply { .. } => {
                let live = self.applied(desired);
                self.version = live.version;
                memory.applied(&desired.wanted[0], &live.observed(&live.body.to_string()));
                self.writes += 1;
                self.live = Some(live);
            }
            Step::Probe { .. } => {
                let answer = self.applied(desired).body.to_string();
                if memory.probed(&desired.wanted[0], &observed[0], &answer) == Probed::Differs {
                    self.deletes += 1;
                    self.live = None;
                }
            }
            Step::Delete { .. } => {
                self.deletes += 1;
                self.live = None;
            }
            Step::Keep { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Want(&'static str),
    /// Somebody edits the child, or its status moves.
    Edit(&'static str),
    Touch,
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let text = || prop::sample::select(vec!["a", "B", "c"]);
    prop_oneof![
        text().prop_map(Event::Want),
        text().prop_map(Event::Edit),
        Just(Event::Touch),
        Just(Event::Restart)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn whatever_happens_the_child_becomes_as_wanted_and_then_it_is_quiet(
        events in prop::collection::vec(event(), 1..12), recreate: bool,
    ) {
        let method = if recreate { Method::Recreate } else { Method::InPlace };
        let mut memory = Memory::default();
        let mut cluster = Cluster { live: None, writes: 0, deletes: 0, version: 1 };
        let mut wanted = "a";
        for event in events {
            match (&event, &mut cluster.live) {
                (Event::Want(text), _) => wanted = text,
                (Event::Edit(text), Some(live)) => {
                    live.body["data"]["k"] = json!(text.to_lowercase());
                    cluster.version += 1;
                    live.version = cluster.version;
                }
                (Event::Touch, Some(live)) => {
                    cluster.version += 1;
                    live.version = cluster.version;
                }
                (Event::Restart, _) => memory = Memory::default(),
                _ => {}
            }
            let desired = wants(&[config_map("a", json!({ "k": wanted }))]);
            for _ in 0..4 {
                cluster.visit(method, &desired, &mut memory);
            }
            let live = cluster.live.as_ref().expect("there is a child");
            prop_assert_eq!(&live.body["data"]["k"], &json!(wanted.to_lowercase()), "{:?}", event);
            let (writes, deletes) = (cluster.writes, cluster.deletes);
            for _ in 0..3 {
                cluster.version += 1;
                cluster.live.as_mut().unwrap().version = cluster.version;
                cluster.visit(method, &desired, &mut memory);
                cluster.visit(method, &desired, &mut memory);
            }
            prop_assert!(cluster.writes <= writes + 1, "writes after {:?}", event);
            prop_assert_eq!(cluster.deletes, deletes, "deletes after {:?}", event);
        }
    }
}

fn elsewhere(name: &str, data: Value) -> Desired {
    let mut child = config_map(name, data);
    child["metadata"]["annotations"] = json!({"syncwright.io/ownership": "none"});
    wants(&[child])
}

#[test]
fn somebody_elses_object_is_not_created() {
    let desired = elsewhere("a", json!({"k": "v"}));
    assert_eq!(steps(&rules(Method::InPlace), &desired, &[], &mut Memory::default()), []);
}

#[test]
fn somebody_elses_object_is_applied_where_it_exists_and_then_left_alone() {
    let desired = elsewhere("a", json!({"k": "new"}));
    let mut live = Live::named("a");
    live.control = Control::Other { kind: "StatefulSet", name: "db" };
    let step = live.plan(Method::InPlace, &desired, &mut Memory::default());
    assert!(matches!(step, Step::Apply { observed: Some(0), .. }), "{step:?}");
    let same = elsewhere("a", json!({"k": "v"}));
    let step = live.plan(Method::InPlace, &same, &mut Memory::default());
    assert!(matches!(step, Step::Keep { .. }), "{step:?}");
}

fn lent(name: &str) -> Live {
    Live { control: Control::Other { kind: "StatefulSet", name: "db" }, ..Live::named(name) }
}

#[test]
fn somebody_elses_object_is_not_made_anew() {
    let desired = elsewhere("a", json!({"k": "new"}));
    let step = lent("a").plan(Method::Recreate, &desired, &mut Memory::default());
    assert!(matches!(step, Step::Apply { observed: Some(0), why: Reason::Differs(_), .. }), "{step:?}");
}

#[test]
fn somebody_elses_object_that_was_never_read_is_not_said_to_lack_everything() {
    let desired = elsewhere("a", json!({"k": "new"}));
    let live = Live { body: json!({}), owned: None, ..lent("a") };
    let step = live.plan(Method::InPlace, &desired, &mut Memory::default());
    assert_eq!(step, Step::Apply { wanted: 0, observed: Some(0), why: Reason::Unseen });
}

#[test]
fn change_of_somebody_elses_object_is_tried_again_when_the_object_has_changed() {
    let (desired, mut memory) = (elsewhere("a", json!({"k": "new"})), Memory::default());
    let mut live = lent("a");
    live.plan(Method::InPlace, &desired, &mut memory);
    let body = live.body.to_string();
    memory.refused(&desired.wanted[0], Some(&live.observed(&body)), "not bound yet");
    let step = live.plan(Method::InPlace, &desired, &mut memory);
    assert!(matches!(step, Step::Stuck { .. }), "{step:?}");
    live.version += 1;
    let step = live.plan(Method::InPlace, &desired, &mut memory);
    assert!(matches!(step, Step::Apply { .. }), "{step:?}");
}
