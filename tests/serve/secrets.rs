//! Values of Secrets in requests are in nothing that the service says of them.

use serde_json::{Value, json};

use crate::canary::{Canary, expect_hidden};
use crate::server::{Server, reply};

const SYNC: &str = r#"
{% set word = (related.find("Secret", "a") if related.list("Secret") else children.find("Secret", "a")).data.word | b64decode %}
{% if parent.spec.mode == "fail" %}
{{ fail([word, word | b64encode, ("x" ~ word) | b64encode | b64encode, word | sha256, word | lower] | join(" ")) }}
{% elif parent.spec.mode == "number" %}
status: {size: {{ word | quantity_value }}}
{% elif parent.spec.mode == "twice" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ word }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ word }}}
{% endif %}
"#;
const VALIDATE: &str = "{{ fail('no good: ' ~ (object.data.word | b64decode)) }}\n";

fn everything(server: &Server) -> Vec<(&'static str, String)> {
    let request =
        server.client.get(format!("http://{}/", server.address)).header("Accept", "application/json");
    vec![
        ("the log", server.lines_with("").join("\n")),
        ("the index", server.get("/").body + &reply(request.send()).body),
        ("metrics", server.get("/metrics").body),
    ]
}

// B115
#[test]
fn values_of_secrets_are_in_no_page_and_no_line_of_the_log() {
    let server = Server::start_with(
        &[("a/sync.yaml", SYNC), ("a/validate.yaml", VALIDATE)],
        &["--log-level", "trace"],
    );
    let word = Canary::new("SING 7f3a9cd041 <all>\n", "7f3a9cd041");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"word": word.encoded()},
    });
    let mut said = Vec::new();
    for mode in ["fail", "number", "twice"] {
        for group in ["children", "related"] {
            let parent = json!({"metadata": {"name": "x", "namespace": "n"}, "spec": {"mode": mode}});
            let mut request = json!({"parent": parent, "children": {}, "related": {}});
            request[group]["Secret.v1"]["a"] = secret.clone();
            let reply = server.call("/a/sync", &request);
            assert_eq!(reply.status, 422, "{reply:?}");
            assert!(reply.body.contains("(masked)"), "{mode}: {reply:?}");
            said.push(("an answer", reply.body));
        }
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "object": secret},
    });
    let denied: Value = serde_json::from_str(&server.curl("/a/validate", review.to_string()).body).unwrap();
    assert_eq!(denied["response"]["status"]["message"], "no good: (masked)");
    let cut = server.curl("/a/sync", format!("{{\"related\": [{secret}, "));
    assert_eq!(cut.status, 400);
    server.logged_where("call not answered", |line| line["status"] == 400);
    said.extend(everything(&server));
    expect_hidden(&[&word], &said);
}
