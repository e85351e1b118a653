//! Rules and their index, without a cluster.

use serde_json::{Value, json};

use crate::cluster::object::{Managers, Object};
use crate::config::spec::{Decoding, HookVersion, Role};
use crate::controller::related::index::Index;
use crate::controller::related::rule::Rule;
use crate::hook::wire::Call;
use crate::hook::wire::answer::Answer;
use crate::object::name::Key;
use crate::object::selector::Selector;

fn rules(parent: &Key, version: HookVersion, rules: Value) -> Result<Vec<Rule>, String> {
    let body = json!({ "relatedResources": rules }).to_string();
    let answer = Answer::decode(Role::Composite, Call::Customize, Decoding::Strict, body.as_bytes())
        .expect("valid rules");
    let rules = answer.related.into_iter().enumerate();
    let rules = rules.map(|(index, rule)| Rule::of(rule, index, parent, version));
    rules.collect::<Result<_, _>>().map_err(|problem| problem.to_string())
}

fn rule(parent: &Key, version: HookVersion, fields: Value) -> Result<Rule, String> {
    let mut rule = json!({"apiVersion": "v1", "resource": "configmaps"});
    rule.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    rules(parent, version, json!([rule])).map(|mut rules| rules.remove(0))
}

fn object(namespace: &str, name: &str) -> Object {
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
    });
    let managers = Managers { objects: "m".into(), status: "m-status".into() };
    Object::read(&body.to_string(), ("v1", "ConfigMap"), &managers).expect("an object")
}

fn picks(rule: &Rule, namespace: &str, name: &str) -> bool {
    let team_a = |selector: &Selector, at: &str| *selector == Selector::label("team", "a") && at == "far";
    rule.picks(&object(namespace, name), team_a)
}

#[test]
fn objects_are_picked_by_what_is_given() {
    let cluster = Key::new("", "parent");
    let web = json!({"matchLabels": {"app": "web"}});
    let db = json!({"matchLabels": {"app": "db"}});
    let rows = [
        (json!({}), [true, true, true]),
        (json!({"labelSelector": {}}), [true, true, true]),
        (json!({ "labelSelector": web }), [true, true, true]),
        (json!({"labelSelector": db.clone()}), [false, false, false]),
        (json!({"namespace": "lib", "labelSelector": web.clone()}), [true, false, true]),
        (json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), [false, true, false]),
        (
            json!({"namespaceSelector": {"matchLabels": {"team": "a"}}, "labelSelector": db}),
            [false, false, false],
        ),
        (json!({"namespace": "far"}), [false, true, true]),
        (json!({"namespace": "lib", "names": ["a", "b"]}), [true, false, true]),
        (json!({"names": ["a"]}), [true, true, true]),
        (json!({"names": ["b"]}), [false, false, false]),
    ];
    for (fields, expected) in rows {
        let rule = rule(&cluster, HookVersion::V1, fields.clone()).expect("a rule");
        let found = [("lib", "a"), ("far", "a"), ("", "a")].map(|(at, name)| picks(&rule, at, name));
        assert_eq!(found, expected, "in lib, in far, and of a kind without namespaces: {fields}");
    }
}

#[test]
fn v1_hook_of_a_namespaced_parent_sees_its_namespace_alone() {
    let parent = Key::new("lib", "parent");
    for fields in
        [json!({}), json!({"names": ["a"]}), json!({"namespace": "lib"}), json!({"labelSelector": {}})]
    {
        let v1 = rule(&parent, HookVersion::V1, fields.clone()).expect("a rule");
        let found = [("lib", "a"), ("far", "a"), ("", "a")].map(|(at, name)| picks(&v1, at, name));
        assert_eq!(found, [true, false, false], "{fields}");
    }
    assert_eq!(
        rule(&parent, HookVersion::V1, json!({"namespace": "far"})),
        Err("`relatedResources[0].namespace` is `far`; expected: `lib`, the parent's namespace; \
             hint: a customize hook of version v2 may look into other namespaces"
            .into())
    );
    assert_eq!(
        rule(&parent, HookVersion::V1, json!({"namespaceSelector": {}})),
        Err("`relatedResources[0]` has a `namespaceSelector`; expected: objects of the parent's namespace; \
             hint: a customize hook of version v2 may look into other namespaces"
            .into())
    );
    let v2 = rule(&parent, HookVersion::V2, json!({"namespace": "far"})).expect("a rule");
    assert!(picks(&v2, "far", "a") && !picks(&v2, "lib", "a"));
}

#[test]
fn index_finds_every_parent_whose_rule_picks_the_object() {
    let fields = [
        json!({}),
        json!({"names": ["a"]}),
        json!({"names": ["b"]}),
        json!({"namespace": "lib"}),
        json!({"namespace": "far", "labelSelector": {}}),
        json!({"namespace": "far", "names": ["a", "b"]}),
        json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}),
    ];
    let cluster = Key::new("", "parent");
    let rules: Vec<Rule> =
        fields.into_iter().map(|fields| rule(&cluster, HookVersion::V2, fields).unwrap()).collect();
    let parents: Vec<Key> = (0..rules.len()).map(|number| Key::new("", format!("p{number}"))).collect();
    let mut index = Index::default();
    rules.iter().zip(&parents).for_each(|(rule, parent)| index.add(rule, parent));
    for (namespace, name) in [("lib", "a"), ("far", "b"), ("", "a"), ("other", "c")] {
        let key = Key::new(namespace, name);
        for (rule, parent) in rules.iter().zip(&parents) {
            let found = index.candidates(&key).any(|candidate| candidate == parent);
            assert!(found || !picks(rule, namespace, name), "{key}: {rule:?}");
        }
    }
    assert_eq!(index.candidates(&Key::new("other", "c")).count(), 2, "not all of them");
    rules.iter().zip(&parents).for_each(|(rule, parent)| index.remove(rule, parent));
    assert!(index.is_empty());
}
