//! Requests that nobody should send, hundreds of them, the same in every run.

use serde_json::{Value, json};

use crate::server::{Reply, Server, reply};

const FILES: [(&str, &str); 4] = [
    (
        "a/sync.yaml",
        "status: {name: {{ parent.metadata.name }}, replicas: {{ parent.spec.replicas | default(1) }}}\n",
    ),
    (
        "a/validate.yaml",
        "errors: {% if object.spec.replicas > 3 %}[{field: spec.replicas, message: too many}]{% else %}[]{% endif %}\n",
    ),
    ("a/default.yaml", "defaults: {spec: {replicas: 1}}\n"),
    ("a/convert.yaml", "spec: {size: {{ object.spec.replicas }}}\n"),
];

/// Numbers that look like chance (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn odd_value(&mut self) -> Value {
        let odd = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(1e308),
            json!(""),
            json!("\u{0}\u{feff}\u{2028}"),
            json!("x".repeat(5_000)),
            json!([]),
            json!({}),
            json!([null, [], {}]),
            json!({"": {"": null}}),
            json!({"metadata": 5}),
            json!("{{ fail('x') }}"),
            json!("v1"),
            deep(200),
        ];
        odd[self.below(odd.len())].clone()
    }

    /// Changes one thing somewhere in a value.
    fn spoil(&mut self, value: &mut Value) {
        let go_on = self.below(4) > 0;
        match value {
            Value::Object(fields) if go_on && !fields.is_empty() => {
                let at = self.below(fields.len());
                let key = fields.keys().nth(at).expect("it was counted").clone();
                match self.below(8) {
                    0 => drop(fields.remove(&key)),
                    1 => drop(fields.insert(key.to_uppercase(), json!(1))),
                    _ => self.spoil(&mut fields[&key]),
                }
            }
            Value::Array(items) if go_on && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(8) {
                    0 => items.push(items[at].clone()),
                    _ => self.spoil(&mut items[at]),
                }
            }
            other => *other = self.odd_value(),
        }
    }

    /// A value's text, sometimes with something in it that is no JSON any more.
    fn text(&mut self, value: &Value) -> Vec<u8> {
        let mut text = value.to_string().into_bytes();
        let at = self.below(text.len());
        match self.below(10) {
            0 => text.truncate(at),
            1 => text[at] = 0xff,
            2 => text[at] ^= 1 << self.below(8),
            3 => text.splice(at..at, *b"\"a\":1,\"a\":2,").for_each(drop),
            4 => text.extend_from_slice(b"{}"),
            _ => {}
        }
        text
    }
}

fn deep(levels: usize) -> Value {
    (0..levels)
        .fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}

fn post(server: &Server, path: &str, body: &[u8]) -> Reply {
    reply(server.post(path).header("Content-Type", "application/json").body(body.to_vec()).send())
}

/// No answer at all, or one that blames the service, is a fault of the service.
#[track_caller]
fn is_answered(reply: &Reply, body: &[u8]) {
    let sent = String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned();
    assert!(matches!(reply.status, 200 | 400 | 413 | 422), "{reply:?}\n{sent}");
    let answer: Value =
        serde_json::from_str(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}\n{sent}"));
    if reply.status != 200 {
        assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()), "{reply:?}\n{sent}");
    }
}

fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "x", "namespace": "n", "uid": "u", "labels": {"a": "b"}},
        "spec": {"replicas": 2},
    })
}

#[test]
fn any_request_of_a_controller_is_answered() {
    let server = Server::start(&FILES);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    let request = json!({
        "controller": {"kind": "CompositeController"}, "parent": object(), "children": {"Pod.v1": {"p": pod}},
        "related": {}, "finalizing": false,
    });
    let mut chance = Chance(0x5eed);
    for _ in 0..400 {
        let mut spoilt = request.clone();
        (0..=chance.below(3)).for_each(|_| chance.spoil(&mut spoilt));
        let body = chance.text(&spoilt);
        is_answered(&post(&server, "/a/sync", &body), &body);
    }
    assert_eq!(post(&server, "/a/sync", request.to_string().as_bytes()).status, 200, "it goes on");
}

#[test]
fn any_review_of_the_api_server_is_answered_with_its_uid() {
    let server = Server::start(&FILES);
    let admission = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "9", "operation": "UPDATE", "dryRun": false, "userInfo": {"username": "me", "groups": ["g"]},
            "kind": {"group": "example.com", "version": "v1", "kind": "A"}, "object": object(), "oldObject": object(),
        },
    });
    let conversion = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "9", "desiredAPIVersion": "example.com/v2", "objects": [object(), object()]},
    });
    let mut chance = Chance(0xfeed);
    for round in 0..450 {
        let (call, review) =
            [("validate", &admission), ("default", &admission), ("convert", &conversion)][round % 3];
        let mut spoilt = review.clone();
        (0..=chance.below(3)).for_each(|_| chance.spoil(&mut spoilt["request"]));
        let body = chance.text(&spoilt);
        let reply = post(&server, &format!("/a/{call}"), &body);
        is_answered(&reply, &body);
        let (Ok(sent), 200) = (serde_json::from_slice::<Value>(&body), reply.status) else { continue };
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        if sent["kind"] != review["kind"] || sent["apiVersion"] != review["apiVersion"] {
            continue;
        }
        assert_eq!(answer["kind"], review["kind"], "{answer}\n{sent}");
        assert_eq!(answer["response"]["uid"], sent["request"]["uid"], "{answer}\n{sent}");
        let decided = if call == "convert" {
            matches!(answer["response"]["result"]["status"].as_str(), Some("Success" | "Failed" | "Failure"))
        } else {
            answer["response"]["allowed"].is_boolean()
        };
        assert!(decided, "{answer}\n{sent}");
    }
}
