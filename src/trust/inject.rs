//! Telling the API server which authorities to trust: `caBundle` in whatever asks for it by a label.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::info;

use crate::cluster::Cluster;
use crate::cluster::kind::{State, Use};
use crate::cluster::object::Object;
use crate::cluster::write::Writer;
use crate::object::name::Key;
use crate::object::selector::Selector;

/// The label that asks for it, with the namespace and the name of the Secret.
const LABEL: &str = "syncwright.io/inject-ca-from";

const KINDS: [(&str, &str); 3] = [
    ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"),
];

/// The objects that ask for it, under watch: the API server tells of no others.
pub(super) struct Targets(Vec<Use>);

/// Picks what asks for the authorities that this Secret keeps: `syncwright.io/inject-ca-from: NAMESPACE.NAME`. A value that
/// is no label's is an error.
pub(crate) fn asking_for(secret: &Key) -> Result<Selector, String> {
    Selector::from_text(&format!("{LABEL}={}.{}", secret.namespace, secret.name))
}

impl Targets {
    pub(super) fn watch(cluster: &Cluster, labelled: &Selector, changed: &Arc<Notify>) -> Targets {
        let hold = |(api_version, plural)| {
            let changed = changed.clone();
            cluster.watch_marked(api_version, plural, labelled, move |_, _| changed.notify_one())
        };
        Targets(KINDS.map(hold).into())
    }

    /// Writes the bundle where it is not yet. One object that cannot be written holds up no other.
    pub(super) async fn inject(&self, writer: &Writer<'_>, bundle: &str) -> Result<(), String> {
        let bundle = STANDARD.encode(bundle);
        let mut troubles = Vec::new();
        for Use { kind, .. } in &self.0 {
            let resource = match kind.state() {
                State::Live(resource) => resource,
                State::Starting => continue,
                State::Absent(why) | State::Failing(why) => {
                    troubles.push(format!("no caBundle in {}: {why}", kind.plural));
                    continue;
                }
            };
            for object in kind.all() {
                let Some(patch) = patch(&object, &bundle) else { continue };
                let name = format!("{} {}", resource.gvk.kind, object.key.name);
                match writer.json_patch(kind, &resource, &object.key, &patch).await {
                    Ok(()) => info!(object = name, "caBundle injected"),
                    // It has changed meanwhile, of which the watch tells.
                    Err(error) if error.is(409) || error.is(404) || error.is(422) => {
                        troubles.push(format!("no caBundle in {name} yet: {error}"));
                    }
                    Err(error) => troubles.push(format!("no caBundle in {name}: {error}")),
                }
            }
        }
        if troubles.is_empty() { Ok(()) } else { Err(troubles.join("; ")) }
    }
}

/// What is to change of an object, guarded by its version. `None` where nothing is.
fn patch(object: &Object, bundle: &str) -> Option<Value> {
    let operations = operations(&object.parsed(), bundle);
    if operations.is_empty() {
        return None;
    }
    let version = object.version.to_string();
    let guard = json!({"op": "test", "path": "/metadata/resourceVersion", "value": version});
    Some([vec![guard], operations].concat().into())
}

fn operations(object: &Value, bundle: &str) -> Vec<Value> {
    let conversion = ["/spec/conversion/webhook/clientConfig".to_string()];
    let webhooks = object["webhooks"].as_array().map_or(0, Vec::len);
    let configs = (0..webhooks).map(|index| format!("/webhooks/{index}/clientConfig"));
    let wanting = conversion.into_iter().chain(configs).filter(|path| {
        object.pointer(path).is_some_and(|config| config.is_object() && config["caBundle"] != bundle)
    });
    let add = |path: String| json!({"op": "add", "path": path + "/caBundle", "value": bundle});
    wanting.map(add).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(object: Value, paths: &[&str]) {
        let operations = operations(&object, "bundle");
        let found: Vec<_> =
            operations.iter().map(|operation| operation["path"].as_str().unwrap_or_default()).collect();
        assert_eq!(found, paths);
        assert!(
            operations.iter().all(|operation| operation["op"] == "add" && operation["value"] == "bundle")
        );
    }

    #[test]
    fn every_client_that_has_another_bundle_gets_it() {
        check(
            json!({"webhooks": [
                {"clientConfig": {"caBundle": "bundle", "service": {}}},
                {"clientConfig": {"caBundle": "other", "url": "https://x"}},
                {"clientConfig": {"service": {}}},
                {},
            ]}),
            &["/webhooks/1/clientConfig/caBundle", "/webhooks/2/clientConfig/caBundle"],
        );
        let converted =
            json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {}}}}});
        check(converted, &["/spec/conversion/webhook/clientConfig/caBundle"]);
    }

    #[test]
    fn what_has_no_webhook_gets_none() {
        check(json!({"spec": {"conversion": {"strategy": "None"}}}), &[]);
        check(json!({"webhooks": null}), &[]);
        check(json!({}), &[]);
    }
}
