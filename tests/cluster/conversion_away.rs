//! A kind whose objects cannot be converted, since the API server does not trust its webhook, beside one that is well.

use std::fs;

use serde_json::{Value, json};

use crate::admission::listening;
use crate::support::controller::Controller;
use crate::support::lab::{CRDS, Definition, Lab};
use crate::support::pages::{ANY_PORTS, Pages};

const SYNC: &str = "\
status: {seen: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}}
data: {size: '{{ parent.spec.size }}'}
";
const CONVERT: &str = "\
{% if to == 'v1' %}
spec: {size: {{ object.spec.large }}}
{% else %}
spec: {large: {{ object.spec.size }}}
{% endif %}
";

/// Two kinds with a controller each, on a control plane of their own: the API server's own controllers suffer, too.
struct Two {
    lab: Lab,
}

impl Two {
    fn new() -> Two {
        let lab = Lab::apart("conversion-away");
        lab.define_kind(&lab.kind("others", "Other"));
        for (hook, call, text) in
            [("thing", "sync", SYNC), ("thing", "convert", CONVERT), ("other", "sync", SYNC)]
        {
            let folder = lab.folder.path().join("hooks").join(hook);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{call}.yaml")), text).unwrap();
        }
        let definition = |name: &str| -> Definition {
            let hook = json!({"webhook": {"path": format!("/{name}/sync")}});
            lab.definition().named(name).config_maps().with("/spec/hooks/sync", hook)
        };
        let others = definition("other").with("/spec/parentResource/resource", json!("others"));
        lab.write_definitions(&[&definition("thing"), &others]);
        Two { lab }
    }

    fn start(&self) -> Controller {
        let secret = format!("{}/hooks", self.lab.namespace);
        let flags =
            ["--webhook-listen", "127.0.0.1:0", "--webhook-host", "localhost", "--webhook-secret", &secret];
        self.lab.start(&[&flags[..], &ANY_PORTS].concat())
    }

    fn crd(&self) -> String {
        format!("{CRDS}/things.{}", self.lab.group)
    }

    /// Stores Things as `v2` from now on, whose conversion nobody trusts yet.
    fn store_another_version(&self, controller: &Controller) {
        let mut versions = self.lab.get(&self.crd())["spec"]["versions"].clone();
        let mut newer = versions[0].clone();
        newer["name"] = json!("v2");
        versions[0]["storage"] = json!(false);
        versions.as_array_mut().unwrap().push(newer);
        let spec = json!({"versions": versions, "conversion": conversion(controller)});
        self.lab.merge(&self.crd(), json!({ "spec": spec }));
        self.lab.wait(&self.newer(), "the newer version can be asked for", |_| true);
    }

    fn newer(&self) -> String {
        format!("/apis/{}/v2", self.lab.group)
    }

    fn add_newer(&self, name: &str) {
        let api_version = format!("{}/v2", self.lab.group);
        let object = json!({
            "apiVersion": api_version, "kind": "Thing", "metadata": {"name": name}, "spec": {"large": 2},
        });
        self.lab.wait_until("the newer version is stored", || {
            let path = self.lab.path(&api_version, "things", "");
            let reply = self.lab.plane.request("POST", &path, Some(&object));
            reply.is_ok_and(|reply| reply.status == 201 || reply.status == 409)
        });
        self.lab.wait_until("an object cannot be had in the older version", || {
            let reply = self.lab.plane.request("GET", &self.lab.thing(name), None);
            reply.is_ok_and(|reply| reply.status >= 500)
        });
    }

    /// An Other comes into its own.
    fn add_other(&self, name: &str) {
        let object = json!({
            "apiVersion": self.lab.api_version(), "kind": "Other", "metadata": {"name": name}, "spec": {"size": 5},
        });
        self.lab.create(&self.lab.api_version(), "others", &object);
        self.has_child(name, "5");
        let path = self.lab.path(&self.lab.api_version(), "others", name);
        self.lab.wait(&path, "it has its status", |other| other["status"]["seen"] == true);
    }

    fn has_child(&self, name: &str, size: &str) {
        self.lab.wait(&self.lab.config_map(name), "it has its child", |map| map["data"]["size"] == size);
    }
}

fn conversion(controller: &Controller) -> Value {
    let url = format!("{}/thing/convert", listening(controller));
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"url": url}});
    json!({"strategy": "Webhook", "webhook": webhook})
}

#[test]
fn a_conversion_that_fails_hits_only_its_kind_until_its_authority_is_injected() {
    let two = Two::new();
    let controller = two.start();
    two.lab.add_thing("early", json!({"size": 1}));
    two.has_child("early", "1");
    two.store_another_version(&controller);
    two.add_newer("late");
    two.add_other("beside");

    // One that starts meanwhile is ready, and does what can be done.
    controller.kill();
    let controller = two.start();
    two.add_other("after");
    let pages = Pages::of(&controller);
    pages.becomes_ready();
    let said = pages.probe("/readyz?verbose").text;
    let kind = format!("[!]kind {} things: ", two.lab.api_version());
    let told = said.lines().find(|line| line.starts_with(&kind)).unwrap_or_else(|| panic!("{said}"));
    let expected = format!("conversion webhook for {}/v2, Kind=Thing failed: ", two.lab.group);
    assert!(told.contains(&expected) && told.ends_with("connection refused"), "{told}");
    assert_eq!(two.lab.plane.get(&two.lab.config_map("late")), None);

    let label = format!("{}.hooks", two.lab.namespace);
    let metadata = json!({"labels": {"syncwright.io/inject-ca-from": label}});
    two.lab.merge(&two.crd(), json!({"metadata": metadata, "spec": {"conversion": conversion(&controller)}}));
    two.lab.wait(&two.crd(), "the Secret's authorities are trusted", |crd| {
        crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].is_string()
    });
    two.has_child("late", "2");
    assert_eq!(two.lab.get(&two.lab.thing("late"))["spec"], json!({"size": 2}));
}
