//! Whatever manifests hold, the templates that are made of them render to them again.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::template::{Budget, Context, Library};

fn names() -> Names {
    let wish = crate::author::new::Wish {
        hook: "shop".into(),
        group: Some("example.com".into()),
        kind: None,
        version: None,
        plural: None,
    };
    wish.names().unwrap()
}

fn made(manifests: &[Value]) -> (String, Value) {
    let naming = Naming::of(manifests);
    let lifts = Lifts::of(manifests, &naming);
    let text = template(&names(), manifests, &naming, &lifts, &workloads(manifests));
    (text, parent(&names(), &naming, &lifts))
}

/// The children that a template renders for a parent.
fn rendered(template: &str, parent: Value) -> Vec<Value> {
    let sources = BTreeMap::from([("shop/sync.yaml".to_string(), template.to_string())]);
    let pages = |problems: Vec<Problem>| problems.iter().map(Problem::page).collect::<Vec<_>>().join("\n");
    let library = Library::compile("hooks", sources)
        .unwrap_or_else(|problems| panic!("{}\n{template}", pages(problems)));
    let mut context = Context::new("2026-01-01T00:00:00Z".parse().unwrap(), [0; 32]);
    context.set("parent", parent);
    context.set_partial_family("children", BTreeMap::new());
    let documents = library
        .render(&["shop/sync.yaml".to_string()], context, &Budget::default())
        .unwrap_or_else(|problem| panic!("{}\n{template}", problem.page()));
    let mut children: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    children.pop();
    children
}

#[track_caller]
fn check(manifests: &[Value]) {
    let (template, parent) = made(manifests);
    assert_eq!(rendered(&template, parent), manifests, "{template}");
}

/// A text of pieces that YAML, Jinja or this program could take for something else.
fn odd_text() -> impl Strategy<Value = String> {
    let pieces = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{",
        "}",
        "[",
        "- ",
        ": ",
        " #",
        "#",
        "\n",
        "\n\n",
        "\n  ",
        " ",
        "\t",
        "\r\n",
        "'",
        "\"",
        "\\",
        "|",
        ">",
        "&a",
        "*a",
        "!t",
        "%",
        "@",
        "`",
        "---",
        "...",
        "?",
        ",",
        "yes",
        "no",
        "null",
        "~",
        "1e3",
        "0x1f",
        "012",
        "1.0",
        ".inf",
        "2026-01-01",
        "shop",
        "shop-db",
        "web",
        "prod",
        ".svc",
        ":80",
        "//",
        "é",
        "\u{2028}",
        "\u{feff}",
        "\u{7f}",
        "\u{1}",
        "name",
        "<<",
        "=",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..6).prop_map(|pieces| pieces.concat())
}

fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(1.5)),
        odd_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((odd_text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_manifest_is_rendered_again(data in odd_value(), other in odd_value(), text in odd_text()) {
        check(&[
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "namespace": "prod"}, "data": data}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop-db", "namespace": "prod"}, "spec": other}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "labels": {"app": text}}}),
        ]);
    }
}

fn deployment(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
}

#[track_caller]
fn check_fields(manifests: &[Value], fields: Value) {
    let (_, parent) = made(manifests);
    assert_eq!(parent["spec"], fields);
    check(manifests);
}

#[test]
fn values_of_an_instance_become_fields_of_the_spec() {
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let pods = |containers: Value| json!({"replicas": 2, "template": {"spec": {"containers": containers}}});
    check_fields(
        &[deployment("web", pods(json!([container("main", "a:1")])))],
        json!({"replicas": 2, "image": "a:1"}),
    );
    check_fields(
        &[
            deployment("web", pods(json!([container("main", "a:1"), container("side-car", "b:1")]))),
            deployment("web-worker", pods(json!([container("main", "a:1")]))),
        ],
        json!({"replicas": 2, "image": "a:1", "sideCarImage": "b:1", "workerReplicas": 2}),
    );
    check_fields(
        &[
            deployment("web-api", pods(json!([container("main", "a:1")]))),
            deployment("web-worker", pods(json!([container("main", "a:2")]))),
        ],
        json!({"apiReplicas": 2, "apiImage": "a:1", "workerReplicas": 2, "workerImage": "a:2"}),
    );
}

#[test]
fn ports_and_variables_are_fields_where_they_are_repeated() {
    let env = |text: &str| json!([{"name": "LOG_LEVEL", "value": text}]);
    let container = |text: &str| {
        json!({
            "name": "main", "env": env(text), "ports": [{"containerPort": 8080}],
            "livenessProbe": {"tcpSocket": {"port": 8080}},
        })
    };
    let pods = |text: &str| json!({"template": {"spec": {"containers": [container(text)]}}});
    check_fields(
        &[deployment("web", pods("info")), deployment("web-worker", pods("info"))],
        json!({"logLevel": "info", "port": 8080}),
    );
    let alone = json!({"template": {"spec": {"containers": [{"name": "main", "env": env("info")}]}}});
    check_fields(&[deployment("web", alone)], json!({}));
}

#[track_caller]
fn check_text(way: &str, text: &str, expected: &str) {
    let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "prod"}});
    let manifests =
        [object("Service", "shop"), object("Service", "shop-db"), object("ConfigMap", "shop-config")];
    let way: Vec<String> = way.split('.').map(String::from).collect();
    let text = Naming::of(&manifests).text(&way, text);
    let shown = text.0.iter().map(|piece| match piece {
        node::Piece::Literal(text) => text.clone(),
        node::Piece::Expression(expression) => format!("<{expression}>"),
    });
    assert_eq!(shown.collect::<String>(), expected);
}

#[test]
fn names_follow_where_they_are_names() {
    check_text("metadata.name", "shop-db", "<name>-db");
    check_text("metadata.labels.app", "shop", "<name>");
    check_text("spec.selector.app", "shop-db", "<name>-db");
    check_text("spec.serviceName", "shop-db", "<name>-db");
    check_text("spec.tls.0.secretName", "shop-tls", "<name>-tls");
    check_text("subjects.0.namespace", "prod", "<parent.metadata.namespace>");
    check_text("env.0.value", "shop-db", "<name>-db");
    check_text("env.0.value", "shop", "<name>");
    check_text("data.url", "http://shop:80/shop", "http://<name>:80/shop");
    check_text("data.url", "u@shop-db.prod.svc:5432", "u@<name>-db.<parent.metadata.namespace>.svc:5432");
}

#[test]
fn words_that_happen_to_be_the_same_stay() {
    check_text("spec.containers.0.name", "shop", "shop");
    check_text("spec.ports.0.name", "shop", "shop");
    check_text("backend.service.port.name", "shop", "shop");
    check_text("spec.containers.0.image", "shop-db:1", "shop-db:1");
    check_text("data.text", "welcome to the shop in prod", "welcome to the shop in prod");
    check_text("data.path", "/etc/shop-db.conf/x", "/etc/shop-db.conf/x");
    check_text("data.other", "my-shop-db", "my-shop-db");
}

#[test]
fn a_release_of_helm_is_what_the_names_begin_with() {
    let object = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": name, "labels": {"app.kubernetes.io/instance": "rel"},
        }})
    };
    let manifests = [object("rel-nginx"), object("rel-nginx-auth")];
    assert_eq!(made(&manifests).1["metadata"]["name"], "rel");
    check(&manifests);
}
