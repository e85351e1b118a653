//! What a call answers, and what is said where it can't.

use serde_json::{Value, json};

use crate::server::{Reply, Server, reply};

const ECHO: &str = "\
status:
  name: {{ parent.metadata.name }}
  seen: {{ children['Pod.v1'] | default({}) | list }}
  finalizing: {{ finalizing }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}-config}
";

fn parent() -> Value {
    json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "namespace": "ns"}})
}

#[track_caller]
fn answers(reply: &Reply, expected: Value) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.kind, "application/json");
    assert_eq!(serde_json::from_str::<Value>(&reply.body).unwrap(), expected);
}

#[test]
fn a_request_of_the_protocol_is_answered_in_both_versions() {
    let server = Server::start(&[("a/sync.yaml", ECHO)]);
    for key in ["p", "ns/p"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}});
        let request = json!({
            "controller": {"kind": "CompositeController"}, "parent": parent(),
            "children": {"Pod.v1": {key: pod}}, "related": {}, "finalizing": false
        });
        let expected = json!({
            "status": {"name": "x", "seen": [key], "finalizing": false},
            "children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x-config"}}]
        });
        answers(&server.call("/a/sync", &request), expected);
    }
}

#[test]
fn a_decorators_request_is_answered_with_attachments() {
    let template = "\
labels: {tier: gold, old: null}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}-config, namespace: {{ children['ConfigMap.v1'] | list | first }}}
";
    let server = Server::start(&[("a/sync.yaml", template)]);
    let request = json!({
        "controller": {}, "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        "attachments": {"ConfigMap.v1": {"lib": {"apiVersion": "v1", "kind": "ConfigMap"}}}, "related": {}, "finalizing": false
    });
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n1-config", "namespace": "lib"}});
    let expected = json!({"attachments": [child], "labels": {"tier": "gold", "old": null}});
    answers(&server.call("/a/sync", &request), expected);
}

#[test]
fn curl_may_post_a_bare_parent_as_yaml_or_json() {
    let server =
        Server::start(&[("a/sync.yaml", ECHO), ("a/finalize.yaml", "finalized: {{ finalizing }}\n")]);
    let yaml = "# a comment\napiVersion: v1\nkind: A\nmetadata:\n  name: x\n";
    let reply = server.curl("/a/sync", yaml);
    assert_eq!((reply.status, reply.kind.as_str()), (200, "application/yaml"), "{reply:?}");
    let expected = "\
status:
  name: x
  seen: []
  finalizing: false
children:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: x-config
";
    assert_eq!(reply.body, expected);
    let reply = server.curl("/a/finalize", "\u{20}\n{\"apiVersion\": \"v1\", \"kind\": \"A\"}");
    answers(&reply, json!({"children": [], "finalized": true}));
}

#[test]
fn accept_decides_the_form_before_the_body_does() {
    let server = Server::start(&[("a/sync.yaml", "children: []\n")]);
    let kind = |accept: &str, body: &str| {
        reply(server.post("/a/sync").header("Accept", accept).body(body.to_string()).send()).kind
    };
    let (yaml, json) = ("apiVersion: v1\nkind: A\n", "{\"apiVersion\": \"v1\", \"kind\": \"A\"}");
    assert_eq!(kind("application/yaml", json), "application/yaml");
    assert_eq!(kind("application/json", yaml), "application/json");
    assert_eq!(kind("*/*", yaml), "application/yaml");
    assert_eq!(kind("*/*", json), "application/json");
}

#[test]
fn a_request_may_set_its_time_and_its_randomness() {
    let server =
        Server::start(&[("a/sync.yaml", "status: {now: {{ now }}, password: {{ random_string(12) }}}\n")]);
    let ask = |entropy: Value| {
        let request = json!({"parent": parent(), "now": "2026-11-30T17:00:00Z", "entropy": entropy});
        let answer: Value = serde_json::from_str(&server.call("/a/sync", &request).body).unwrap();
        assert_eq!(answer["status"]["now"], "2026-11-30T17:00:00Z");
        answer["status"]["password"].clone()
    };
    assert_eq!(ask(json!("one")), ask(json!("one")));
    assert_ne!(ask(json!("one")), ask(json!("two")));
    assert_ne!(ask(json!(null)), ask(json!(null)));
}

#[test]
fn a_templates_fault_is_a_422_with_its_place() {
    let server = Server::start(&[("a/sync.yaml", "status:\n  phase: {{ parent.spec.typo }}\n")]);
    let reply =
        server.call("/a/sync", &json!({"parent": {"apiVersion": "v1", "kind": "A", "spec": {"type": 1}}}));
    assert_eq!((reply.status, reply.kind.as_str()), (422, "application/json"), "{reply:?}");
    let problem: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(problem["file"], "hooks/a/sync.yaml");
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(13)));
    assert_eq!(problem["hint"], "did you mean `type`?");
    let page = server.curl("/a/sync", "{parent: {apiVersion: v1, kind: A, spec: {type: 1}}}");
    assert_eq!((page.status, page.kind.as_str()), (422, "text/plain; charset=utf-8"));
    assert_eq!(page.body, format!("{}\n", problem["page"].as_str().unwrap()));
    assert!(
        page.body.contains("\n 2 |   phase: {{ parent.spec.typo }}\n   |             ^"),
        "{}",
        page.body
    );
}

/// What one template answers to a parent, as a person reads it.
#[track_caller]
fn fault(template: &str, page: &str) {
    let server = Server::start(&[("a/sync.yaml", template), ("a/customize.yaml", template)]);
    let reply = server.curl("/a/sync", "apiVersion: v1\nkind: A\nmetadata: {name: x, namespace: ns}\n");
    assert_eq!((reply.status, reply.body.as_str()), (422, page));
}

#[test]
fn an_answer_without_a_document_is_refused() {
    fault(
        "{% if false %}a: b{% endif %}\n",
        "\
hooks/a/sync.yaml:1:1: rendered nothing: not a single document
   |
 1 | {% if false %}a: b{% endif %}
   | ^^
expected: a child, or a field of the answer
hint: write `children: []` to say that none is wanted
",
    );
}

#[test]
fn an_unknown_field_is_refused() {
    fault(
        "status: {}\n---\nchidlren: []\n",
        "\
hooks/a/sync.yaml:3:1: unknown response field `chidlren`
   |
 3 | chidlren: []
   | ^^^^^^^^
hint: did you mean `children`?
",
    );
}

#[test]
fn a_repeated_field_is_refused_with_both_places() {
    fault(
        "status: {a: 1}\n---\nstatus: {b: 1}\n",
        "\
hooks/a/sync.yaml:3:1: `status` is there twice
   |
 3 | status: {b: 1}
   | ^^^^^^
found: it is also at hooks/a/sync.yaml:1:1
",
    );
}

#[test]
fn two_children_of_one_name_are_refused_with_both_places() {
    fault(
        "\
apiVersion: v1
kind: Service
metadata:
  name: db
---
apiVersion: v1
kind: Service
metadata:
  namespace: ns
  name: {{ 'd' ~ 'b' }}
",
        "\
hooks/a/sync.yaml:10:3: child Service `ns/db` is there twice
    |
 10 |   name: {{ 'd' ~ 'b' }}
    |   ^^^^
found: it is also at hooks/a/sync.yaml:4:3
",
    );
}

#[test]
fn a_child_that_swallowed_the_status_is_refused() {
    fault(
        "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nstatus: {phase: Running}\n",
        "\
hooks/a/sync.yaml:4:1: child `Service` holds `status`, which is a field of the answer
   |
 4 | status: {phase: Running}
   | ^^^^^^
hint: put `---` on a line of its own between a child and the answer's fields
",
    );
}

#[test]
fn a_status_that_swallowed_a_child_is_refused() {
    fault(
        "status:\n  apiVersion: v1\n  kind: Service\n  metadata: {name: db}\n",
        "\
hooks/a/sync.yaml:2:3: `status` holds a child
   |
 2 |   apiVersion: v1
   |   ^^^^^^^^^^
hint: put `---` on a line of its own before the child, and begin its lines at the margin
",
    );
}

#[test]
fn a_label_that_is_no_text_is_refused() {
    fault(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: db\n  labels:\n    version: {{ 8 }}\n",
        "\
hooks/a/sync.yaml:6:5: `metadata.labels.version` is of the wrong type
   |
 6 |     version: {{ 8 }}
   |     ^^^^^^^
found: a number
expected: a text
hint: put it in quotes
",
    );
}

#[test]
fn a_list_of_children_may_not_be_null() {
    fault(
        "children:\n{% for x in [] %}\n- {{ x }}\n{% endfor %}\n",
        "\
hooks/a/sync.yaml:1:1: `children` is of the wrong type
   |
 1 | children:
   | ^^^^^^^^
found: null
expected: a list
hint: write `children: []` when no child is wanted
",
    );
}

#[test]
fn a_delay_must_be_one() {
    fault(
        "resyncAfterSeconds: {{ 5 - 10 }}\n",
        "\
hooks/a/sync.yaml:1:1: `resyncAfterSeconds` is no delay
   |
 1 | resyncAfterSeconds: {{ 5 - 10 }}
   | ^^^^^^^^^^^^^^^^^^
found: `-5`
expected: a number of seconds, 0 or more
",
    );
}

#[test]
fn related_rules_are_checked_one_by_one() {
    let template =
        "relatedResources:\n- {apiVersion: v1, resource: secrets}\n- {apiVersion: v1, resourc: secrets}\n";
    let server = Server::start(&[("a/customize.yaml", template)]);
    let reply = server.curl("/a/customize", "apiVersion: v1\nkind: A\n");
    assert_eq!(reply.status, 422);
    assert!(reply.body.starts_with("hooks/a/customize.yaml:3:"), "{}", reply.body);
    assert!(reply.body.contains("`relatedResources[1].resourc`"), "{}", reply.body);
}

#[test]
fn a_body_that_is_no_request_is_a_400_with_its_place() {
    let server = Server::start(&[("a/sync.yaml", "children: []\n")]);
    let page = |body: &[u8]| {
        let reply = server.curl("/a/sync", body);
        assert_eq!(reply.status, 400, "{reply:?}");
        reply.body
    };
    let wanted = "expected: a request or a parent object, as JSON or YAML\n";
    assert_eq!(page(b""), format!("the body is empty\n{wanted}"));
    assert_eq!(page(b"[]"), format!("the body is no request\nfound: a list\n{wanted}"));
    assert_eq!(page(b"\xff{}"), format!("the body is not UTF-8 text: byte 0 is none\n{wanted}"));
    assert_eq!(
        page(b"spec: {}\n"),
        "the body is neither a parent nor a request\nfound: `spec`\nexpected: a parent (`apiVersion`, `kind`, \u{2026}) or a request (`parent`, `children`, \u{2026})\n"
    );
    assert_eq!(
        page(b"apiVersion: v1\nkind: A\n---\nkind: B\n"),
        "the body holds 2 documents\nexpected: one\n"
    );
    assert_eq!(
        page(b"parent: {apiVersion: v1, kind: A}\nchilden: []\n"),
        "unknown request field `childen`\nhint: did you mean `children`?\n"
    );
    assert_eq!(
        page(b"parent: {apiVersion: v1, kind: A}\nchildren: {Pod.v1: [1]}\n"),
        "`children[\"Pod.v1\"]` is of the wrong type\nfound: a list\nexpected: objects by name\n"
    );
    let json = server.call("/a/sync", &Value::String("x".into()));
    assert_eq!(json.status, 400);
    let broken = reply(server.post("/a/sync").body("{\"parent\": {\n  \"kind\": ]}}").send());
    assert_eq!(broken.status, 400);
    let problem: Value = serde_json::from_str(&broken.body).unwrap();
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(11)), "{problem:#}");
}

#[test]
fn what_does_not_exist_is_a_404_that_says_what_does() {
    let server =
        Server::start(&[("mysql/sync.yaml", "children: []\n"), ("backup/sync.yaml", "children: []\n")]);
    let page = |path: &str| {
        let reply = server.curl(path, "{}");
        assert_eq!(reply.status, 404, "{reply:?}");
        reply.body
    };
    assert_eq!(
        page("/mysq/sync"),
        "no hook `mysq`\nexpected: `backup`, `mysql`\nhint: did you mean `mysql`?\n"
    );
    assert_eq!(page("/mysql/finalize"), "hook `mysql` has no call `finalize`\nexpected: `sync`\n");
    assert_eq!(
        page("/mysql/snyc"),
        "hook `mysql` has no call `snyc`\nexpected: `sync`\nhint: did you mean `sync`?\n"
    );
    assert_eq!(
        page("/mysql"),
        "there is nothing at `/mysql`\nexpected: `POST /<hook>/<call>`\nhint: `GET /` lists the hooks and their calls\n"
    );
}

/// Everybody's first call is made with `-d`, which takes the line ends out of a file.
#[test]
fn bodies_that_curl_has_changed_are_told() {
    let server = Server::start(&[("a/sync.yaml", "status: {}\n")]);
    let page = |body: &str| server.curl("/a/sync", body.as_bytes()).body;
    let hint = "curl sends a file as it is with `--data-binary @FILE`";
    let one_line = page("apiVersion: example.com/v1kind: Websitemetadata:  name: x");
    assert!(one_line.ends_with(&format!("hint: the lines of it run into one: {hint}\n")), "{one_line}");
    let form = "--x\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\napiVersion: v1\r\n--x--\r\n";
    assert_eq!(page(form), format!("the body is a form, and no request\nhint: {hint}\n"));
    let review = "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"request\": {}}";
    assert!(page(review).contains("an AdmissionReview is no parent"), "{}", page(review));
}
