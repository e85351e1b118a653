use std::collections::BTreeMap;

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::value::{RawValue, to_raw_value};

use super::*;
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{CustomizeRequest, Groups, Request, inner_key};
use crate::object::name::Key;

/// All messages, compiled.
struct Printed {
    schemas: Schemas,
    messages: BTreeMap<String, SchemaIndex>,
}

thread_local!(static PRINTED: Printed = Printed::new());

impl Printed {
    fn new() -> Printed {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("https://schemas/hook", messages()).expect("JSON");
        let mut message = |name: String| {
            let index = compiler.compile(&format!("https://schemas/hook#/$defs/{name}"), &mut schemas);
            (name, index.expect("a JSON Schema"))
        };
        let messages = Message::all().map(|sort| message(sort.name())).collect();
        Printed { schemas, messages }
    }
}

fn accepts(message: Message, value: &Value) -> bool {
    PRINTED.with(|printed| printed.schemas.validate(value, printed.messages[&message.name()]).is_ok())
}

fn roles() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Composite), Just(Role::Decorator)]
}

fn calls() -> impl Strategy<Value = Call> {
    prop_oneof![Just(Call::Sync), Just(Call::Finalize), Just(Call::Customize)]
}

fn versions() -> impl Strategy<Value = HookVersion> {
    prop_oneof![Just(HookVersion::V1), Just(HookVersion::V2)]
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("JSON has a text")
}

fn live(key: &Key) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": key.name, "uid": "u"}});
    if !key.namespace.is_empty() {
        object["metadata"]["namespace"] = json!(key.namespace);
    }
    object
}

/// A request as a visit makes it, from a parent in a namespace or in none.
fn request_body(role: Role, call: Call, version: HookVersion, parent: &Key, members: &[Key]) -> Value {
    let controller = raw(&json!({
        "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": role.kind(), "metadata": {"name": "c"},
        "spec": {}, "status": {},
    }));
    let parent_body = raw(&live(parent));
    if call == Call::Customize {
        let body = CustomizeRequest { controller: &controller, parent: &parent_body }.body();
        return serde_json::from_slice(&body).expect("JSON");
    }
    let bodies: Vec<Box<RawValue>> = members.iter().map(|key| raw(&live(key))).collect();
    let named = members.iter().zip(&bodies);
    let named =
        named.filter_map(|(key, body)| Some((inner_key(version, parent, key)?.into_owned(), &**body)));
    let children: Groups =
        BTreeMap::from([("Pod.v1".into(), named.collect()), ("Job.batch/v1".into(), BTreeMap::new())]);
    let body = Request {
        role,
        controller: &controller,
        parent: &parent_body,
        children: &children,
        related: &children,
        finalizing: call == Call::Finalize,
    };
    serde_json::from_slice(&body.body()).expect("JSON")
}

proptest! {
    #[test]
    fn every_request_is_as_its_schema_says_and_no_other(
        role in roles(),
        call in calls(),
        version in versions(),
        namespace in prop_oneof![Just(""), Just("lib")],
        members in prop::collection::vec((prop_oneof![Just(""), Just("lib"), Just("far")], "[a-c]{1,2}"), 0..4),
    ) {
        let parent = Key::new(namespace, "parent");
        let members: Vec<Key> = members.into_iter().map(|(namespace, name)| Key::new(namespace, name)).collect();
        let body = request_body(role, call, version, &parent, &members);
        let message = Message { role, version, call, side: Side::Request };
        prop_assert!(accepts(message, &body), "{:#}", body);
        for field in body.as_object().unwrap().keys() {
            let mut less = body.clone();
            less.as_object_mut().unwrap().remove(field);
            prop_assert!(!accepts(message, &less), "without {}", field);
        }
        let mut more = body.clone();
        more["more"] = json!(1);
        prop_assert!(!accepts(message, &more));
        for other in Message::all().filter(|other| other.side == Side::Request) {
            let same = other.role == role && other.call == call;
            if !same && (other.call != Call::Customize || call != Call::Customize) {
                prop_assert!(!accepts(other, &body), "{} is no {}", message.name(), other.name());
            }
        }
    }
}

#[test]
fn a_v1_hook_below_a_namespace_is_shown_no_slash() {
    let parent = Key::new("lib", "parent");
    let body = request_body(Role::Composite, Call::Sync, HookVersion::V2, &parent, &[Key::new("lib", "a")]);
    let message = |version| Message { role: Role::Composite, version, call: Call::Sync, side: Side::Request };
    assert!(accepts(message(HookVersion::V2), &body));
    assert!(!accepts(message(HookVersion::V1), &body));
}

/// Values that a field may hold, wrong ones among them.
fn one_of(values: Value) -> impl Strategy<Value = Value> {
    let Value::Array(values) = values else { unreachable!("a list of choices") };
    prop::sample::select(values)
}

fn selectors() -> impl Strategy<Value = Value> {
    one_of(json!([
        null, {}, 5, [], {"matchLabels": null}, {"matchLabels": {"a": "b", "example.com/c": ""}}, {"matchLabels": {"a": 1}},
        {"matchLabels": {"a": null}}, {"matchLabels": {"a b": "c"}}, {"matchLabels": {"a": "-"}}, {"matchLabels": {"": "c"}},
        {"matchLabels": {"A.b/c": "c"}}, {"matchLabels": {"a.b/c": "c_d.E-f"}}, {"labels": {}}, {"labels": null},
        {"matchLabels": {"a123456789012345678901234567890123456789012345678901234567890123": "c"}},
        {"matchLabels": {"a": "a123456789012345678901234567890123456789012345678901234567890123"}},
        {"matchLabels": []}, {"matchExpressions": null}, {"matchExpressions": {}}, {"matchExpressions": [null]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn"}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": null}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b c"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]},
        {"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": null}]},
        {"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "exists"}]}, {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": [{"key": "a"}]}, {"matchExpressions": [{"key": 5, "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "more": null}]},
    ]))
}

/// A map in which each of these fields is there or not.
fn map_of(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let entries: Vec<_> =
        fields.into_iter().map(|(name, value)| (Just(name), prop::option::weighted(0.7, value))).collect();
    let map = |entries: Vec<(&str, Option<Value>)>| {
        entries
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_string(), value?)))
            .collect::<Map<_, _>>()
            .into()
    };
    entries.prop_map(map).boxed()
}

fn children() -> BoxedStrategy<Value> {
    let texts = || one_of(json!(["v1", "v1", "v1", "", null, 5])).boxed();
    let metadata = map_of(vec![
        ("name", one_of(json!(["a", "a", "a", "", null, 5, []])).boxed()),
        ("namespace", one_of(json!(["a", "", null, 5])).boxed()),
        ("generateName", one_of(json!(["a-"])).boxed()),
        ("labels", one_of(json!([null, 5, {}])).boxed()),
    ]);
    let metadata = prop_oneof![8 => metadata, 1 => one_of(json!([null, "x", []]))].boxed();
    let child =
        map_of(vec![("apiVersion", texts()), ("kind", texts()), ("metadata", metadata), ("status", texts())]);
    let whole = one_of(json!([
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": null}, "spec": {"x": [1]}},
    ]));
    let child = prop_oneof![6 => whole, 2 => child, 1 => one_of(json!([null, 5, "x"]))];
    let list = prop::collection::vec(child, 0..3).prop_map(Value::Array);
    prop_oneof![6 => list, 1 => one_of(json!([null, {}, "x"]))].boxed()
}

fn rules() -> BoxedStrategy<Value> {
    let names = one_of(json!([null, [], ["a"], ["a", "b"], [""], [5], "a", {}])).boxed();
    let rule = map_of(vec![
        ("labelSelector", selectors().boxed()),
        ("namespaceSelector", selectors().boxed()),
        ("namespace", one_of(json!(["a", "", null, 5])).boxed()),
        ("names", names),
    ]);
    let base = one_of(json!([
        {"apiVersion": "v1", "resource": "pods"}, {"apiVersion": "v1", "resource": "pods"}, {"apiVersion": "v1"},
        {"apiVersion": "", "resource": "pods"}, {"apiVersion": "v1", "resource": 5},
        {"apiVersion": "v1", "resource": "pods", "unheard": "of"},
    ]));
    let rule = (rule, base).prop_map(|(mut rule, base)| {
        rule.as_object_mut().unwrap().extend(base.as_object().unwrap().clone());
        rule
    });
    let list = prop::collection::vec(prop_oneof![9 => rule, 1 => one_of(json!([null, "x"]))], 0..2)
        .prop_map(Value::Array);
    prop_oneof![8 => list, 1 => one_of(json!([null, {}, "x"]))].boxed()
}

fn answers() -> BoxedStrategy<Value> {
    let marks = || one_of(json!([null, {}, {"a": "b"}, {"a": null}, {"a": 5}, {"a": {}}, [], "x"])).boxed();
    let fields = map_of(vec![
        ("children", children()),
        ("attachments", children()),
        ("relatedResources", rules()),
        ("status", one_of(json!([{}, {"a": 1}, null, 5, []])).boxed()),
        ("labels", marks()),
        ("annotations", marks()),
        ("resyncAfterSeconds", one_of(json!([0, 2.5, -1, null, "5", true])).boxed()),
        ("finalized", one_of(json!([true, false, null, "true", 1])).boxed()),
        ("unheard", one_of(json!(["of"])).boxed()),
    ]);
    (fields, prop::collection::vec(prop::bool::weighted(0.4), 9))
        .prop_map(|(fields, keep)| {
            let fields = fields.as_object().unwrap().clone();
            fields
                .into_iter()
                .zip(keep)
                .filter(|(_, keep)| *keep)
                .map(|(field, _)| field)
                .collect::<Map<_, _>>()
                .into()
        })
        .boxed()
}

/// An answer of which only fields that this call knows are there, so that more than one in ten is right.
fn fitting(role: Role, call: Call, answer: &Value) -> Value {
    let known = known_fields(role, call);
    let fields = answer.as_object().unwrap().clone();
    fields.into_iter().filter(|(name, _)| known.contains(&name.as_str())).collect::<Map<_, _>>().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    /// Both ways: the schema of an answer accepts exactly what is taken for an answer.
    #[test]
    fn schema_of_an_answer_and_decoder_agree(role in roles(), call in calls(), version in versions(), answer in answers()) {
        let message = Message { role, version, call, side: Side::Answer };
        for answer in [fitting(role, call, &answer), answer] {
            let body = answer.to_string();
            let decoded = Answer::decode(role, call, usual_decoding(version), body.as_bytes());
            prop_assert_eq!(accepts(message, &answer), decoded.is_ok(), "{}: {} {:?}", message.name(), body, decoded);
        }
    }
}

/// Otherwise the two could agree on refusing everything.
#[test]
fn answers_that_are_compared_fall_on_both_sides() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut taken = 0;
    for _ in 0..400 {
        let answer = answers().new_tree(&mut runner).unwrap().current();
        for call in [Call::Sync, Call::Customize] {
            let body = fitting(Role::Composite, call, &answer).to_string();
            taken +=
                usize::from(Answer::decode(Role::Composite, call, Decoding::Strict, body.as_bytes()).is_ok());
        }
    }
    assert!((80..720).contains(&taken), "{taken} of 800 are answers");
}

#[test]
fn misspelt_list_is_all_that_a_loose_schema_lets_pass() {
    let answer = json!({"chidlren": [], "status": {}});
    let message = |version| Message { role: Role::Composite, version, call: Call::Sync, side: Side::Answer };
    assert!(accepts(message(HookVersion::V1), &answer));
    assert!(!accepts(message(HookVersion::V2), &answer));
    let decoded = Answer::decode(Role::Composite, Call::Sync, Decoding::Loose, answer.to_string().as_bytes());
    decoded.unwrap_err();
}
