use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::object::name::Gvk;
use crate::plan::Method;

fn parent() -> Parent {
    Parent { gvk: Gvk::new("demo.io/v1", "Shelf"), key: Key::new("lib", "s1"), uid: "u-1".into() }
}

fn cluster_parent() -> Parent {
    Parent { key: Key::new("", "s1"), ..parent() }
}

fn rules() -> Vec<ChildRule> {
    let rule = |api_version, kind, namespaced| ChildRule {
        gvk: Gvk::new(api_version, kind),
        namespaced,
        method: Method::InPlace,
        rolls: None,
    };
    vec![
        rule("v1", "ConfigMap", true),
        rule("v1", "Secret", true),
        rule("apps/v1", "StatefulSet", true),
        rule("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ]
}

fn read_for(parent: &Parent, claim: &Claim, children: Vec<Value>) -> Desired {
    let places = (1..).map(|line| Place { file: "sync.yaml".into(), line, column: 1 });
    let children = children
        .into_iter()
        .map(|child| child.as_object().expect("an object").clone())
        .zip(places.map(Some))
        .collect();
    desired(parent, &rules(), claim, children)
}

fn read(children: Vec<Value>) -> Desired {
    read_for(&parent(), &Claim::Selector(Selector::everything()), children)
}

fn only(desired: Desired) -> Map<String, Value> {
    assert_eq!(desired.refusals, []);
    assert_eq!(desired.wanted.len(), 1);
    desired.wanted.into_iter().next().unwrap().body
}

fn body(child: Value) -> Value {
    only(read(vec![child])).into()
}

/// The one refusal of an answer, and what it stops.
fn refusal(desired: Desired) -> (String, Reach) {
    assert_eq!(desired.refusals.len(), 1, "{:?}", desired.refusals);
    assert!(!desired.complete());
    (desired.refusals[0].problem.to_string(), desired.refusals[0].reach)
}

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

fn config_map_with(metadata: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
}

#[test]
fn child_gets_its_parents_namespace_and_controller_reference() {
    assert_eq!(
        body(config_map("a")),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "a",
                "namespace": "lib",
                "ownerReferences": [{
                    "apiVersion": "demo.io/v1", "kind": "Shelf", "name": "s1", "uid": "u-1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
        })
    );
}

#[test]
fn children_keep_the_order_in_which_they_were_rendered() {
    let desired = read(vec![config_map("b"), config_map("a"), config_map("c")]);
    let names: Vec<&str> = desired.wanted.iter().map(|wanted| wanted.key.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert!(desired.complete() && !desired.void());
    assert_eq!(desired.wanted[2].place.as_ref().unwrap().line, 3);
}

#[test]
fn what_only_the_server_writes_is_left_out() {
    let echoed = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "lib", "uid": "x", "resourceVersion": "7", "generation": 2, "selfLink": "/x",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0, "managedFields": [], "generateName": "a-",
            "annotations": {
                "metacontroller.k8s.io/last-applied-configuration": "{}",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "data": { "k": "v" },
        "status": { "phase": "Ready" },
    });
    let mut plain = config_map("a");
    plain["data"] = json!({ "k": "v" });
    assert_eq!(body(echoed), body(plain));
}

#[test]
fn other_annotations_of_an_echoed_child_stay() {
    let child = config_map_with(json!({
        "name": "a",
        "annotations": { "metacontroller.k8s.io/last-applied-configuration": "{}", "note": "x" },
    }));
    assert_eq!(body(child)["metadata"]["annotations"], json!({ "note": "x" }));
}

// B43
#[test]
fn null_entries_are_dropped_at_every_depth_and_empty_maps_stay() {
    let child = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "a", "annotations": null, "namespace": null },
        "spec": {
            "nodeSelector": null,
            "template": { "spec": { "volumes": [{ "name": "v", "emptyDir": {}, "secret": null }] } },
            "args": [null, 1],
        },
    });
    let body = body(child);
    assert_eq!(
        body["spec"],
        json!({ "template": { "spec": { "volumes": [{ "name": "v", "emptyDir": {} }] } }, "args": [null, 1] })
    );
    assert!(body["metadata"].get("annotations").is_none());
}

// B40, B41
#[test]
fn whole_numbers_become_integers_and_no_digit_is_lost() {
    let text = r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},
        "spec":{"replicas":3.0,"minus":-0.0,"big":9007199254740993,"large":1e19,"huge":1e300,"part":2.5,"list":[1.0]}}"#;
    let body = body(serde_json::from_str(text).unwrap());
    assert_eq!(
        body["spec"].to_string(),
        r#"{"replicas":3,"minus":0,"big":9007199254740993,"large":10000000000000000000,"huge":1e+300,"part":2.5,"list":[1]}"#
    );
}

#[test]
fn hooks_own_controller_reference_is_replaced_by_ours() {
    let child = config_map_with(json!({
        "name": "a",
        "ownerReferences": [
            { "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-9", "controller": true },
            { "apiVersion": "v1", "kind": "Node", "name": "m", "uid": "u-8" },
            { "apiVersion": "demo.io/v1", "kind": "Shelf", "name": "s1", "uid": "u-1" },
        ],
    }));
    let body = body(child);
    let owners = body["metadata"]["ownerReferences"].as_array().unwrap();
    let uids: Vec<&str> = owners.iter().map(|owner| owner["uid"].as_str().unwrap()).collect();
    assert_eq!(uids, ["u-8", "u-1"]);
    assert_eq!(owners[1]["controller"], true);
}

#[test]
fn string_data_of_a_secret_becomes_data() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" },
        "data": { "user": "cm9vdA==", "password": "b2xk" },
        "stringData": { "password": "new" },
    });
    let body = body(secret);
    assert_eq!(body["data"], json!({ "user": "cm9vdA==", "password": "bmV3" }));
    assert!(body.get("stringData").is_none());
}

#[test]
fn value_of_a_wrong_secret_is_not_shown() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "stringData": { "pin": 12345 },
    });
    let (text, reach) = refusal(read(vec![secret]));
    assert_eq!(
        text,
        "sync.yaml:1:1: child `Secret lib/a` has `stringData[pin]` of the wrong type; found: a number; expected: a string"
    );
    assert_eq!(reach, Reach::Child);
}

#[test]
fn generated_selector_labels_every_child() {
    let read = |child| read_for(&parent(), &Claim::ControllerUid, vec![child]);
    let body = only(read(config_map("a")));
    assert_eq!(body["metadata"]["labels"], json!({ "controller-uid": "u-1" }));
    let body = only(read(config_map_with(json!({ "name": "a", "labels": { "app": "db" } }))));
    assert_eq!(body["metadata"]["labels"], json!({ "app": "db", "controller-uid": "u-1" }));
    let wrong = config_map_with(json!({ "name": "a", "labels": { "controller-uid": "u-2" } }));
    assert_eq!(
        refusal(read(wrong)).0,
        "sync.yaml:1:1: child `ConfigMap lib/a` has labels that its parent's selector does not match; expected: `controller-uid=u-1`; hint: leave this label out, the controller sets it"
    );
}

#[test]
fn decorators_name_is_an_annotation_of_every_attachment() {
    let claim = Claim::Decorator("marks".into());
    let body = only(read_for(&parent(), &claim, vec![config_map("a")]));
    let annotations = json!({ "metacontroller.k8s.io/decorator-controller": "marks" });
    assert_eq!(body["metadata"]["annotations"], annotations);
    assert_eq!(body["metadata"].get("labels"), None);
    let undeclared = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
    let (text, _) = refusal(read_for(&parent(), &claim, vec![undeclared]));
    assert!(text.contains("of a kind that `attachments` does not declare"), "{text}");
}

// B94
#[test]
fn child_outside_its_parents_selector_is_refused() {
    let claim = Claim::Selector(Selector::label("app", "a"));
    let children = vec![
        config_map_with(json!({ "name": "in", "labels": { "app": "a" } })),
        config_map_with(json!({ "name": "out", "labels": { "app": "b" } })),
    ];
    let desired = read_for(&parent(), &claim, children);
    assert_eq!(desired.wanted.len(), 1);
    assert!(!desired.void());
    let (text, reach) = refusal(desired);
    assert_eq!(
        text,
        "sync.yaml:2:1: child `ConfigMap lib/out` has labels that its parent's selector does not match; expected: `app=a`; hint: give it the labels of the parent's `spec.selector`"
    );
    assert_eq!(reach, Reach::Child);
}

// B49
#[test]
fn two_descriptions_of_one_child_void_the_answer_and_are_both_named() {
    let other = config_map_with(json!({ "name": "a", "namespace": "lib" }));
    let desired = read(vec![config_map("a"), config_map("b"), other]);
    assert!(desired.void());
    let (text, _) = refusal(desired);
    assert_eq!(
        text,
        "sync.yaml:3:1: `children[2]` is `ConfigMap lib/a`, which the answer already holds; found: the first one is `children[0]` at sync.yaml:1:1; hint: one child has one description: remove one or give it another name"
    );
}

#[test]
fn children_of_different_kinds_may_share_a_name() {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
    assert_eq!(read(vec![config_map("a"), secret]).wanted.len(), 2);
}

#[test]
fn child_that_cannot_be_told_voids_the_answer() {
    for (child, message) in [
        (json!({}), "`children[0]` has no `apiVersion`; expected: a string such as `apps/v1`"),
        (
            json!({ "apiVersion": "v1" }),
            "`children[0]` has no `kind`; expected: a string such as `StatefulSet`",
        ),
        (
            json!({ "apiVersion": 1, "kind": "ConfigMap", "metadata": { "name": "a" } }),
            "`children[0]` has `apiVersion` of the wrong type; found: a number `1`; expected: a string such as `apps/v1`; hint: put it in quotes",
        ),
        (
            json!({ "apiVersion": "v1", "kind": "ConfigMap" }),
            "`children[0]` is a `ConfigMap` without `metadata.name`",
        ),
        (config_map(""), "`children[0]` is a `ConfigMap` without `metadata.name`"),
        (
            config_map_with(json!([])),
            "`children[0]` has `metadata` of the wrong type; found: a list; expected: an object",
        ),
        (
            config_map_with(json!({ "name": 72 })),
            "`children[0]` has `metadata.name` of the wrong type; found: a number `72`; expected: a string; hint: put it in quotes",
        ),
        (
            config_map_with(json!({ "generateName": "a-" })),
            "`children[0]` is a `ConfigMap` with `metadata.generateName` and no `metadata.name`; hint: a generated name would make another child at each visit: give it a fixed one",
        ),
    ] {
        let desired = read(vec![child, config_map("b")]);
        assert!(desired.void());
        assert_eq!(refusal(desired), (format!("sync.yaml:1:1: {message}"), Reach::Answer));
    }
}

// B92, B116
#[test]
fn child_that_must_not_be_written_stops_only_itself() {
    let of_kind = |api_version, kind, namespace| json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "x", "namespace": namespace } });
    let forbidden =
        "hint: Kubernetes forbids this owner reference and would delete the child at some later time";
    for (child, message) in [
        (
            of_kind("v1", "ConfigMap", json!("other")),
            format!("child `ConfigMap other/x` is in another namespace than its parent; found: `other`; expected: `lib`, or none; {forbidden}"),
        ),
        (
            of_kind("rbac.authorization.k8s.io/v1", "ClusterRole", json!(null)),
            format!("child `ClusterRole x` is cluster-scoped, and its parent has a namespace; {forbidden}"),
        ),
        (
            of_kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", json!(null)),
            "child `ClusterRoleBinding x` is of a kind that `childResources` does not declare; found: `rbac.authorization.k8s.io/v1 ClusterRoleBinding`; hint: add it to `childResources` of the controller".into(),
        ),
        (
            of_kind("apps/v1", "StatefulSets", json!(null)),
            "child `StatefulSets x` is of a kind that `childResources` does not declare; found: `apps/v1 StatefulSets`; hint: did you mean `apps/v1 StatefulSet`?".into(),
        ),
        (
            of_kind("app/v1", "StatefulSet", json!(null)),
            "child `StatefulSet x` is of a kind that `childResources` does not declare; found: `app/v1 StatefulSet`; hint: did you mean `apps/v1 StatefulSet`?".into(),
        ),
        (
            of_kind("apps/v1beta1", "StatefulSet", json!(null)),
            "child `StatefulSet x` is written in a version that `childResources` does not declare; found: `apps/v1beta1`; expected: `apps/v1`".into(),
        ),
        (
            config_map("a/b"),
            "child `ConfigMap a/b` has a name that must not contain `/`".into(),
        ),
        (
            config_map_with(json!({ "name": "x", "labels": { "version": 8 } })),
            "child `ConfigMap lib/x` has `metadata.labels[version]` of the wrong type; found: a number `8`; expected: a string; hint: put it in quotes".into(),
        ),
        (
            config_map_with(json!({ "name": "x", "annotations": [] })),
            "child `ConfigMap lib/x` has `metadata.annotations` of the wrong type; found: a list; expected: an object".into(),
        ),
        (
            config_map_with(json!({ "name": "x", "ownerReferences": {} })),
            "child `ConfigMap lib/x` has `metadata.ownerReferences` of the wrong type; found: an object; expected: a list".into(),
        ),
    ] {
        let desired = read(vec![child, config_map("b")]);
        assert!(!desired.void());
        assert_eq!(desired.wanted.len(), 1);
        assert_eq!(refusal(desired), (format!("sync.yaml:1:1: {message}"), Reach::Child));
    }
}

#[test]
fn cluster_scoped_parent_has_children_in_any_namespace_and_in_none() {
    let read = |child| read_for(&cluster_parent(), &Claim::Selector(Selector::everything()), vec![child]);
    let desired = read(config_map_with(json!({ "name": "a", "namespace": "other" })));
    assert_eq!(desired.wanted[0].key, Key::new("other", "a"));
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "a", "namespace": "x" } });
    let desired = read(role);
    assert_eq!(desired.wanted[0].key, Key::new("", "a"));
    assert!(desired.wanted[0].body["metadata"].get("namespace").is_none());
    let (text, reach) = refusal(read(config_map("a")));
    assert_eq!(
        text,
        "sync.yaml:1:1: child `ConfigMap a` has no namespace; hint: the parent is cluster-scoped, so each child states its `metadata.namespace`"
    );
    assert_eq!(reach, Reach::Child);
}

#[test]
fn somebody_elses_object_is_neither_owned_nor_labelled() {
    let metadata = json!({"name": "data-db-0", "annotations": {OWNERSHIP: "none"}});
    let desired = read_for(&parent(), &Claim::ControllerUid, vec![config_map_with(metadata)]);
    assert_eq!(desired.wanted[0].ownership, Ownership::Other);
    assert_eq!(only(desired)["metadata"], json!({"name": "data-db-0", "namespace": "lib"}));
}

#[test]
fn ownership_is_none_or_not_stated() {
    for (stated, found) in [(json!("shared"), "`shared`"), (json!("None"), "`None`"), (json!(null), "`null`")]
    {
        let child = config_map_with(json!({"name": "a", "annotations": {OWNERSHIP: stated, "b": "c"}}));
        let (problem, reach) = refusal(read(vec![child]));
        assert_eq!(reach, Reach::Child);
        assert!(problem.contains(&format!("found: {found}")), "{problem}");
    }
}

#[test]
fn parent_is_not_its_own_child() {
    let parent = Parent { gvk: Gvk::new("v1", "ConfigMap"), ..parent() };
    let claim = Claim::Selector(Selector::everything());
    let desired = read_for(&parent, &claim, vec![config_map("s1"), config_map("s2")]);
    assert_eq!(desired.wanted.len(), 1);
    assert_eq!(
        refusal(desired).0,
        "sync.yaml:1:1: child `ConfigMap lib/s1` is its own parent; hint: give it another name"
    );
}

#[test]
fn empty_answer_wants_nothing_and_is_complete() {
    let desired = read(vec![]);
    assert!(desired.wanted.is_empty() && desired.complete());
}

#[test]
fn hash_does_not_depend_on_the_order_of_keys() {
    let hash = |text: &str| {
        let child: Value = serde_json::from_str(text).unwrap();
        read(vec![child]).wanted[0].hash
    };
    let first =
        hash(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"2"}}"#);
    assert_eq!(
        first,
        hash(r#"{"data":{"y":"2","x":"1"},"kind":"ConfigMap","metadata":{"name":"a"},"apiVersion":"v1"}"#)
    );
    for other in [
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"2","y":"1"}}"#,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}"#,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":1,"y":"2"}}"#,
    ] {
        assert_ne!(first, hash(other));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    let field = prop::sample::select(vec![
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "ownerReferences",
        "stringData",
        "data",
        "uid",
        "controller",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((field.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_answer_panics(fields in prop::collection::vec(any_json(), 0..4), secret: bool, uid: bool) {
        let claim = if uid { Claim::ControllerUid } else { Claim::Selector(Selector::everything()) };
        let children = fields.into_iter().filter_map(|child| match child {
            Value::Object(mut fields) => {
                if secret {
                    fields.insert("apiVersion".into(), "v1".into());
                    fields.insert("kind".into(), "Secret".into());
                }
                Some((fields, None))
            }
            _ => None,
        });
        desired(&parent(), &rules(), &claim, children.collect());
    }

    #[test]
    fn what_is_wanted_reads_back_as_itself(child in any_json()) {
        let mut child = child;
        if let Some(fields) = child.as_object_mut() {
            fields.insert("apiVersion".into(), "v1".into());
            fields.insert("kind".into(), "Secret".into());
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name".into(), "a".into());
            }
            let first = read(vec![child]);
            if let Some(wanted) = first.wanted.first() {
                let again = read(vec![wanted.body.clone().into()]);
                prop_assert_eq!(&again.wanted[0].body, &wanted.body);
                prop_assert_eq!(again.wanted[0].hash, wanted.hash);
            }
        }
    }
}
