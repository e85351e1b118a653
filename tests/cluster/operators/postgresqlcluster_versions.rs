//! PostgreSQLClusters in each of their versions, as the API server serves, validates and stores them.

use std::net::TcpListener;
use std::process::Command;

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::operators::operator::{Operator, items};
use crate::support::controller::Controller;
use crate::support::lab::{CRDS, SOON};

const NAME: &str = "postgresqlclusters.db.example.com";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/// Each version with the field that holds the size of a volume.
const VERSIONS: [(&str, &str); 3] =
    [("v1alpha1", "storage"), ("v1beta1", "storageSize"), ("v1", "storage.size")];

/// The operator on a control plane of its own, whose API server asks its controller about objects.
struct Versions {
    pg: Operator,
    /// Where it is asked, by whichever process runs.
    address: String,
}

impl Versions {
    fn new() -> Versions {
        let pg = Operator::apart_with_webhooks("postgresqlcluster", "pg-versions");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        Versions { pg, address: format!("127.0.0.1:{}", port.port()) }
    }

    fn start(&self) -> Controller {
        let secret = format!("{}/hooks", self.pg.lab.namespace);
        let host = ["--webhook-host", "127.0.0.1", "--webhook-secret", &secret];
        self.pg.start_with(&[&["--webhook-listen", &self.address][..], &host].concat())
    }

    fn label(&self) -> Value {
        json!({"syncwright.io/inject-ca-from": format!("{}.hooks", self.pg.lab.namespace)})
    }

    fn crd(&self) -> String {
        format!("{CRDS}/{NAME}")
    }

    /// What the shipped CRD says of a Service, said of an address.
    fn convert(&self) {
        let client =
            json!({"service": null, "url": format!("https://{}/postgresqlcluster/convert", self.address)});
        let conversion = json!({"webhook": {"clientConfig": client}});
        let patch = json!({"metadata": {"labels": self.label()}, "spec": {"conversion": conversion}});
        self.pg.lab.merge(&self.crd(), patch);
        self.pg.lab.wait(&self.crd(), "the controller's authorities are trusted", |crd| {
            crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].is_string()
        });
    }

    /// Has every version validated as it is written.
    fn validate(&self) {
        let url = format!("https://{}/postgresqlcluster/validate", self.address);
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "pg-versions", "labels": self.label()},
            "webhooks": [{
                "name": "validate.db.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": url},
                "rules": [{
                    "apiGroups": ["db.example.com"], "apiVersions": ["*"], "resources": ["postgresqlclusters"],
                    "operations": ["CREATE", "UPDATE"],
                }],
            }],
        });
        self.pg.lab.plane.create(CONFIGURATIONS, &object);
    }

    fn store(&self, version: &str) {
        let mut versions = self.pg.lab.get(&self.crd())["spec"]["versions"].clone();
        for each in versions.as_array_mut().unwrap() {
            each["storage"] = json!(each["name"] == version);
        }
        self.pg.lab.merge(&self.crd(), json!({"spec": {"versions": versions}}));
    }

    fn path(&self, version: &str, name: &str) -> String {
        self.pg.lab.path(&format!("db.example.com/{version}"), "postgresqlclusters", name)
    }

    /// Creates a cluster in this version, and answers its path there.
    #[track_caller]
    fn add(&self, version: &str, name: &str, spec: Value) -> String {
        let mut object = self.pg.manifest(name, spec);
        object["apiVersion"] = json!(format!("db.example.com/{version}"));
        self.pg.lab.plane.create(&self.path(version, ""), &object);
        self.path(version, name)
    }

    /// The status and the message with which the API server answers to a change of the spec.
    fn patch(&self, path: &str, spec: &Value) -> (u16, String) {
        let body = json!({"spec": spec}).to_string();
        let reply = self.pg.lab.plane.send("PATCH", path, "application/merge-patch+json", &body);
        let reply = reply.expect("the API server answers");
        (reply.status, reply.message())
    }

    #[track_caller]
    fn refuses(&self, path: &str, spec: Value, words: &str) {
        let (status, message) = self.patch(path, &spec);
        assert!(status == 422 && message.contains(words), "{path}: {spec}: {status} {message}");
    }

    #[track_caller]
    fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
        command.current_dir(self.pg.lab.folder.path()).env("KUBECONFIG", self.pg.lab.plane.kubeconfig());
        let output = command.args(arguments).output().expect("the binary was built for this test");
        let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}{}", said(&output.stdout), said(&output.stderr));
        said(&output.stdout)
    }
}

/// A spec with the size where its version has it.
fn sized(field: &str, size: &str) -> Value {
    match field.split_once('.') {
        Some((parent, name)) => json!({parent: {name: size}}),
        None => json!({field: size}),
    }
}

fn spec(field: &str, size: &str) -> Value {
    let mut spec = sized(field, size);
    spec["version"] = json!("16");
    spec["replicas"] = json!(1);
    spec
}

/// The size of a cluster, and that nothing else holds one.
#[track_caller]
fn size(cluster: &Value, field: &str) -> String {
    let pointer = format!("/spec/{}", field.replace('.', "/"));
    let others = ["storage", "storageSize"].iter().filter(|name| !cluster["spec"][**name].is_null());
    assert_eq!(others.count(), 1, "{cluster}");
    cluster.pointer(&pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{field}: {cluster}")).into()
}

#[test]
fn every_version_is_served_validated_and_outlives_the_one_who_converts() {
    let versions = Versions::new();
    let lab = &versions.pg.lab;
    versions.store("v1alpha1");
    let controller = versions.start();
    versions.convert();
    versions.validate();
    versions.add("v1alpha1", "old", spec("storage", "1Gi"));
    versions.pg.wait_phase(&versions.path("v1", "old"), "Running");

    // Stored in a version that the controller does not read, with nobody there to convert it.
    versions.store("v1");
    controller.kill();
    lab.wait_until("an older object cannot be had", || {
        lab.plane.request("GET", &versions.path("v1", "old"), None).is_ok_and(|reply| reply.status == 500)
    });
    let controller = versions.start();
    lab.wait(&versions.path("v1", "old"), "it is served again", |old| size(old, "storage.size") == "1Gi");
    versions.pg.set_spec(&versions.path("v1", "old"), json!({"replicas": 2}));
    let old = versions.pg.wait_phase(&versions.path("v1", "old"), "Running");
    assert_eq!(old["status"]["readyReplicas"], 2);

    is_served_in_every_version(&versions);
    keeps_its_class(&versions);
    is_validated_in_every_version(&versions);

    versions.command(&["migrate", NAME]);
    assert_eq!(lab.get(&versions.crd())["status"]["storedVersions"], json!(["v1"]));
    // With a release its webhooks are gone, of which a CRD that is kept does not know: finalizers go all the same, and so do
    // the objects.
    controller.kill();
    lab.plane.delete(&format!("{CONFIGURATIONS}/pg-versions"));
    let told = versions.command(&["uninstall", "--controllers", "controllers.yaml"]);
    assert_eq!(told.matches("took db.example.com/cleanup off PostgreSQLCluster").count(), 5, "{told}");
    lab.plane.delete(&versions.crd());
    lab.wait_gone(&versions.crd());
}

fn is_served_in_every_version(versions: &Versions) {
    let lab = &versions.pg.lab;
    for (version, field) in VERSIONS {
        versions.add(version, &format!("as-{version}"), spec(field, "1Gi"));
    }
    for (version, field) in VERSIONS {
        let list = lab.get(&versions.path(version, ""));
        assert_eq!(items(&list).len(), 4);
        for cluster in items(&list) {
            assert_eq!(cluster["apiVersion"], format!("db.example.com/{version}"));
            assert_eq!(size(cluster, field), "1Gi");
        }
        let shown = versions.pg.kubectl(&["get", &NAME.replacen('.', &format!(".{version}."), 1)]);
        assert_eq!(shown.lines().count(), 5, "{shown}");
    }
}

fn keeps_its_class(versions: &Versions) {
    let lab = &versions.pg.lab;
    let mut fast = spec("storage.size", "1Gi");
    fast["storage"]["storageClassName"] = json!("fixed-size");
    versions.add("v1", "fast", fast);
    let set = lab.path("apps/v1", "statefulsets", "fast-postgresql");
    let class = "/spec/volumeClaimTemplates/0/spec/storageClassName";
    lab.wait(&set, "its claims are of the class", |set| set.pointer(class) == Some(&json!("fixed-size")));
    versions.pg.set_spec(&versions.path("v1alpha1", "fast"), json!({"replicas": 2}));
    versions.pg.set_spec(&versions.path("v1beta1", "fast"), json!({"version": "15"}));
    let fast = lab.get(&versions.path("v1", "fast"));
    assert_eq!((&fast["spec"]["replicas"], &fast["spec"]["version"]), (&json!(2), &json!("15")));
    assert_eq!(fast["spec"]["storage"], json!({"size": "1Gi", "storageClassName": "fixed-size"}));
    let words = "spec.storage.storageClassName: Invalid value: \"other\": a volume's class cannot change";
    versions.refuses(&versions.path("v1", "fast"), json!({"storage": {"storageClassName": "other"}}), words);
}

fn is_validated_in_every_version(versions: &Versions) {
    let bad = json!({"backup": {"schedule": "61 2 * * *"}});
    wait_until(SOON, "the API server asks the webhook", || {
        let said = versions.patch(&versions.path("v1", "as-v1"), &bad);
        if said.0 == 422 { Ok(()) } else { Err(said.1) }
    });
    for (version, field) in VERSIONS {
        let path = versions.path(version, &format!("as-{version}"));
        versions.refuses(&path, bad.clone(), "spec.backup.schedule: minute: found `61`, expected 0 to 59");
        let six = json!({"backup": {"schedule": "0 30 2 * * *"}});
        versions.refuses(&path, six, "spec.backup.schedule: schedule: found 6 fields, expected 5 fields");
        assert_eq!(versions.patch(&path, &sized(field, "3Gi")).0, 200);
        for (other, field) in VERSIONS {
            let path = versions.path(other, &format!("as-{version}"));
            versions.refuses(&path, sized(field, "2Gi"), &format!("spec.{field}: "));
        }
    }
}
