//! Objects that the API server has validated, filled in and converted by templates, over HTTPS.

use std::cell::Cell;
use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use controlplane::wait_until;
use serde_json::{Value, json};

use crate::operators::operator::Operator;
use crate::support::controller::Controller;
use crate::support::lab::{CRDS, Lab, SOON};
use crate::support::pages::webhook_port;
use crate::support::tls::Identity;

const VALIDATE: &str = "\
errors:
{% if old and object.spec.size < old.spec.size %}
  - {field: spec.size, message: cannot shrink from {{ old.spec.size }} to {{ object.spec.size }}}
{% endif %}
{% if cron_error(object.spec.schedule | default('@daily')) %}
  - {field: spec.schedule, message: {{ cron_error(object.spec.schedule) }}}
{% endif %}
warnings: [watch your step]
{% if object.spec.refused is defined %}{{ fail('not today') }}{% endif %}
{% if object.spec.broken is defined %}{{ object.spec.nowhere }}{% endif %}
";
const DEFAULT: &str =
    "defaults: {metadata: {labels: {a/b: given, own: given}}, spec: {size: 1, schedule: '@hourly'}}\n";
const CONVERT: &str = "\
{% if object.spec.stuck is defined %}{{ fail('it is stuck') }}{% endif %}
{% if to == 'v1' %}
spec: {size: {{ object.spec.flat }}}
{% else %}
spec: {flat: {{ object.spec.size }}}
{% endif %}
";
const SYNC: &str = "\
status: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}}
data: {size: '{{ parent.spec.size }}'}
";

/// A controller that answers for the kind `Thing`, and the address where it does.
struct Webhook {
    lab: Lab,
    identity: Identity,
    controller: Controller,
    address: String,
}

impl Webhook {
    fn new(subject: &str) -> Webhook {
        let (lab, identity) = (Lab::new(subject), Identity::of_a_hook());
        let files = [("validate", VALIDATE), ("default", DEFAULT), ("convert", CONVERT), ("sync", SYNC)];
        fs::create_dir(lab.folder.path().join("hooks/thing")).unwrap();
        for (call, text) in files {
            fs::write(lab.folder.path().join(format!("hooks/thing/{call}.yaml")), text).unwrap();
        }
        show(&lab, &identity);
        let hook = json!({"webhook": {"path": "/thing/sync"}});
        lab.write_definitions(&[&lab.definition().config_maps().with("/spec/hooks/sync", hook)]);
        let flags = ["--webhook-listen", "127.0.0.1:0", "--tls-cert", "tls.crt", "--tls-key", "tls.key"];
        let controller = lab.start(&flags);
        let address = listening(&controller);
        Webhook { lab, identity, controller, address }
    }

    fn client(&self, call: &str) -> Value {
        let bundle = STANDARD.encode(&self.identity.certificate);
        json!({"url": format!("{}/thing/{call}", self.address), "caBundle": bundle})
    }

    /// Has the API server ask before it stores a Thing.
    fn admit(&self) {
        let admission = |kind: &str, plural: &str, call: &str| {
            let collection = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
            let name = format!("{}-{call}", self.lab.namespace);
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
                "webhooks": [{
                    "name": format!("{call}.{}", self.lab.group), "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "clientConfig": self.client(call),
                    "rules": [{
                        "apiGroups": [self.lab.group], "apiVersions": ["*"], "resources": ["things"],
                        "operations": ["CREATE", "UPDATE"],
                    }],
                }],
            });
            self.lab.plane.create(&collection, &object);
            self.lab.plane.delete_at_end(format!("{collection}/{name}"));
        };
        admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validate");
        admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "default");
    }

    /// Gives Things an older version, `v1beta1`.
    fn convert(&self) {
        let path = format!("{CRDS}/things.{}", self.lab.group);
        let mut versions = self.lab.get(&path)["spec"]["versions"].clone();
        let mut older = versions[0].clone();
        older["name"] = json!("v1beta1");
        older["storage"] = json!(false);
        versions.as_array_mut().unwrap().push(older);
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": self.client("convert")});
        let conversion = json!({"strategy": "Webhook", "webhook": webhook});
        self.lab.merge(&path, json!({"spec": {"versions": versions, "conversion": conversion}}));
        self.lab.wait(&self.older(""), "the older version can be listed", |_| true);
    }

    fn older(&self, name: &str) -> String {
        self.lab.path(&format!("{}/v1beta1", self.lab.group), "things", name)
    }

    fn create(&self, name: &str, spec: Value) -> (u16, String) {
        self.request("POST", &self.lab.thing(""), &self.lab.thing_with(name, spec))
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let reply = self.lab.plane.request(method, path, Some(body)).expect("the API server answers");
        let body = serde_json::from_str::<Value>(&reply.body).unwrap_or_default();
        (reply.status, body["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Creates until the API server has heard of the webhooks: the first that it fills in.
    fn wait_admitted(&self) {
        let tries = Cell::new(0);
        wait_until(SOON, "the API server asks the webhooks", || {
            tries.set(tries.get() + 1);
            let name = format!("probe-{}", tries.get());
            self.create(&name, json!({}));
            let made = self.lab.get(&self.lab.thing(&name));
            let refused = self.create(&format!("{name}-no"), json!({"refused": true})).0 == 422;
            if refused && made["spec"]["size"] == 1 { Ok(()) } else { Err(made.to_string()) }
        });
    }
}

/// Where the API server is answered.
#[track_caller]
pub fn listening(controller: &Controller) -> String {
    format!("https://localhost:{}", webhook_port(controller))
}

fn show(lab: &Lab, identity: &Identity) {
    fs::write(lab.folder.path().join("tls.key"), identity.key()).unwrap();
    fs::write(lab.folder.path().join("tls.crt"), &identity.certificate).unwrap();
}

#[test]
fn objects_are_filled_in_and_refused_with_the_name_of_the_field() {
    let webhook = Webhook::new("admitted");
    webhook.admit();
    webhook.wait_admitted();
    let lab = &webhook.lab;
    let mut own = lab.thing_with("own", json!({"size": 5}));
    own["metadata"]["labels"] = json!({"own": "kept"});
    assert_eq!(webhook.request("POST", &lab.thing(""), &own).0, 201);
    let made = lab.get(&lab.thing("own"));
    assert_eq!(made["metadata"]["labels"], json!({"a/b": "given", "own": "kept"}));
    assert_eq!(made["spec"], json!({"size": 5, "schedule": "@hourly"}));

    let mut smaller = made.clone();
    smaller["spec"] = json!({"size": 4, "schedule": "0 0 0 * * *"});
    let (status, message) = wait_until(SOON, "the object is not changed in between", || {
        smaller["metadata"]["resourceVersion"] =
            lab.get(&lab.thing("own"))["metadata"]["resourceVersion"].clone();
        let said = webhook.request("PUT", &lab.thing("own"), &smaller);
        if said.0 == 409 { Err(said.1) } else { Ok(said) }
    });
    assert_eq!(status, 422, "{message}");
    assert!(message.contains("spec.size: cannot shrink from 5 to 4; spec.schedule: "), "{message}");
    let (status, message) = webhook.create("no", json!({"refused": true}));
    assert_eq!(status, 422);
    assert!(message.ends_with("denied the request: not today"), "{message}");
    let (status, message) = webhook.create("no", json!({"broken": true}));
    assert_eq!(status, 422);
    assert!(message.contains("hooks/thing/validate.yaml:10:"), "{message}");
    assert!(message.contains("`object.spec.nowhere` is absent"), "{message}");
    drop(webhook.controller);
}

#[test]
fn objects_are_served_in_every_version_and_one_that_fails_hits_nothing_else() {
    let webhook = Webhook::new("converted");
    webhook.convert();
    let lab = &webhook.lab;
    lab.add_thing("new", json!({"size": 3}));
    let older = lab.get(&webhook.older("new"));
    assert_eq!((&older["spec"], &older["metadata"]["name"]), (&json!({"flat": 3}), &json!("new")));
    let old = json!({
        "apiVersion": format!("{}/v1beta1", lab.group), "kind": "Thing", "metadata": {"name": "old"}, "spec": {"flat": 7},
    });
    assert_eq!(webhook.request("POST", &webhook.older(""), &old).0, 201);
    assert_eq!(lab.get(&lab.thing("old"))["spec"], json!({"size": 7}));
    lab.wait(&lab.config_map("old"), "the controller sees the storage version", |map| {
        map["data"]["size"] == "7"
    });

    lab.add_thing("stuck", json!({"size": 1, "stuck": true}));
    let reply = lab.plane.request("GET", &webhook.older("stuck"), None).unwrap();
    let message = format!("Thing {}/stuck: it is stuck", lab.namespace);
    assert!(reply.status >= 400 && reply.body.contains(&message), "{}", reply.body);
    // The version in which it is stored needs no conversion, and the others are converted as before.
    lab.wait(&lab.config_map("stuck"), "the stuck one has its child", |map| map["data"]["size"] == "1");
    assert_eq!(lab.get(&webhook.older("new"))["spec"], json!({"flat": 3}));
    drop(webhook.controller);
}

#[test]
fn another_certificate_is_shown_once_its_files_change() {
    let webhook = Webhook::new("renewed");
    let renewed = Identity::of_a_hook();
    show(&webhook.lab, &renewed);
    let webhook = Webhook { identity: renewed, ..webhook };
    webhook.convert();
    webhook.lab.add_thing("new", json!({"size": 3}));
    assert_eq!(webhook.lab.get(&webhook.older("new"))["spec"], json!({"flat": 3}));
    assert!(webhook.controller.log().contains("certificate loaded"), "{}", webhook.controller.log());
}

#[test]
fn postgresqlcluster_refuses_bad_schedules_and_shrinking_at_apply() {
    let operator = Operator::new("postgresqlcluster", "pg-admitted").with_own_finalizer();
    let (lab, identity) = (&operator.lab, Identity::of_a_hook());
    show(lab, &identity);
    let flags = ["--webhook-listen", "127.0.0.1:0", "--tls-cert", "tls.crt", "--tls-key", "tls.key"];
    let controller = operator.start_with(&flags);
    let url = format!("{}/postgresqlcluster/validate", listening(&controller));
    let collection = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": lab.namespace},
        "webhooks": [{
            "name": "validate.db.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": STANDARD.encode(&identity.certificate)},
            // Other tests have clusters of this kind too.
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": lab.namespace}},
            "rules": [{
                "apiGroups": ["db.example.com"], "apiVersions": ["*"], "resources": ["postgresqlclusters"],
                "operations": ["CREATE", "UPDATE"],
            }],
        }],
    });
    lab.plane.create(collection, &object);
    lab.plane.delete_at_end(format!("{collection}/{}", lab.namespace));
    let db = operator.add("db", json!({"version": "16", "storage": {"size": "2Gi"}}));
    let patched = |spec: Value| {
        let body = json!({"spec": spec}).to_string();
        let reply = lab.plane.send("PATCH", &db, "application/merge-patch+json", &body).expect("an answer");
        (reply.status, serde_json::from_str::<Value>(&reply.body).unwrap()["message"].to_string())
    };
    let six = || patched(json!({"backup": {"schedule": "0 30 2 * * *"}}));
    wait_until(SOON, "the API server asks the webhook", || match six() {
        (422, message) if message.contains("spec.backup.schedule: ") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let (status, message) = patched(json!({"backup": {"schedule": "61 2 * * *"}}));
    assert!(status == 422 && message.contains("spec.backup.schedule: minute: "), "{message}");
    let (status, message) = patched(json!({"storage": {"size": "1Gi"}}));
    assert!(status == 422 && message.contains("spec.storage.size"), "{message}");
    assert_eq!(patched(json!({"backup": {"schedule": "*/5 1-5 * * 1-5"}})).0, 200);
}
