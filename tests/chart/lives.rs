//! A release from its installation to its removal, with Helm itself in a cluster whose namespace takes restricted pods only.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use controlplane::{ControlPlane, Options, wait_until};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::helm::{Helm, ROOT, done, text};
use crate::mounted::Mounted;

const SOON: Duration = Duration::from_secs(90);
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/ops/deployments/sw";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/ops/leases/metacontroller";
const MYSQL: &str = "/apis/database.example.com/v1/namespaces/shop/mysqls/orders-db";
const POSTGRESQL: &str = "/apis/db.example.com/v1/namespaces/shop/postgresqlclusters/accounts";
const SCHEDULE: &str = "/apis/ops.io/v1alpha1/namespaces/shop/backupschedules/orders";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mysqls.database.example.com";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/ops-sw";
const CONVERTED: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/postgresqlclusters.db.example.com";
const CERTIFICATE: &str = "/api/v1/namespaces/ops/secrets/sw-webhook";
const SERVICE: &str = "/api/v1/namespaces/shop/services/orders-db";

struct Release {
    plane: ControlPlane,
    helm: Helm,
    ports: [u16; 3],
}

impl Release {
    fn new() -> Release {
        let plane = ControlPlane::start(Options::default()).unwrap_or_else(|error| panic!("{error}"));
        let namespaces = "/api/v1/namespaces";
        let restricted = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        plane.create(namespaces, &json!({"metadata": {"name": "ops", "labels": restricted}}));
        plane.create(namespaces, &json!({"metadata": {"name": "shop"}}));
        // All are held at once, so that they differ.
        let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let ports = held.each_ref().map(|port| port.local_addr().expect("it is bound").port());
        Release { plane, helm: Helm::new(), ports }
    }

    fn helm(&self, arguments: &[&str]) -> Command {
        let mut command = self.helm.command();
        command.args(arguments).args(["--namespace", "ops"]).env("KUBECONFIG", self.plane.kubeconfig());
        command
    }

    #[track_caller]
    fn put(&self, verb: &str, chart: &str) {
        let [metrics, probes, webhooks] = self.ports;
        // No container runs behind the Service, so that the API server asks it in vain.
        let webhooks = format!("webhooks.port={webhooks},webhooks.timeoutSeconds=1");
        let ports = format!("metrics.port={metrics},probes.port={probes},{webhooks}");
        done(&self.helm(&[verb, "sw", chart, "--wait", "--timeout=2m", "--set", &ports]).output().unwrap());
    }

    #[track_caller]
    fn wait(&self, path: &str, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        self.plane.wait_for(path, SOON, what, test)
    }

    /// The examples, once each has come to its state.
    #[track_caller]
    fn apply_examples(&self) {
        let mut kubectl = self.plane.kubectl();
        kubectl
            .args(["apply", "--server-side", "--namespace=shop", "--filename"])
            .arg(Path::new(ROOT).join("examples"));
        let output = kubectl.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        for path in [MYSQL, POSTGRESQL, SCHEDULE] {
            self.wait(path, "it is Ready", |parent| {
                let conditions = parent["status"]["conditions"].as_array().into_iter().flatten();
                conditions
                    .into_iter()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            });
        }
    }

    fn requests_refused(&self, mounted: &Mounted) -> Vec<Value> {
        let requests = self.plane.requests_of(&mounted.user);
        requests.into_iter().filter(|event| event["responseStatus"]["code"] == 403).collect()
    }

    /// What bears the release's label, of all kinds that there are, but the CRDs that are kept.
    #[track_caller]
    fn left(&self) -> Vec<String> {
        let kinds = self.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
        let is_kept = |kind: &&str| kind.starts_with("customresourcedefinitions.");
        let kinds: Vec<&str> = kinds.lines().filter(|kind| !is_kept(kind)).collect();
        let labelled = ["get", &kinds.join(","), "--all-namespaces", "--output=name"];
        let found = self.kubectl(&[&labelled[..], &["--selector=app.kubernetes.io/instance=sw"]].concat());
        found.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.plane.kubectl().args(arguments).output().unwrap();
        assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

/// The chart with a column more in a CRD, and a label more on what a template makes.
fn changed_chart(folder: &Path) -> String {
    let chart = folder.join("chart");
    let mut copy = Command::new("cp");
    let copied = copy.args(["-rL"]).arg(Path::new(ROOT).join("chart")).arg(&chart).status().unwrap();
    assert!(copied.success());
    edit(
        &chart.join("files/hooks/mysql/crd.yaml"),
        "additionalPrinterColumns:\n",
        "additionalPrinterColumns:\n        - {name: More, type: string, jsonPath: .spec.version}\n",
    );
    edit(
        &chart.join("files/hooks/mysql/sync.yaml"),
        "kind: Service\nmetadata:\n",
        "kind: Service\nmetadata:\n  annotations: {more: \"1\"}\n",
    );
    chart.to_str().unwrap().into()
}

#[track_caller]
fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} holds {from:?}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn has_more_column(crd: &Value) -> bool {
    crd["spec"]["versions"].to_string().contains(r#""name":"More""#)
}

#[test]
fn release_is_installed_upgraded_rolled_back_and_leaves_nothing() {
    let release = Release::new();
    let plane = &release.plane;

    // The pods are there, so that the namespace takes them.
    release.put("install", "chart");
    let deployment =
        release.wait(DEPLOYMENT, "2 pods are ready", |found| found["status"]["readyReplicas"] == 2);
    let mounted = Mounted::of(plane, "ops", DEPLOYMENT);
    let controller = mounted.start();
    let bundle = || plane.get(CERTIFICATE).unwrap_or_default()["data"]["ca.crt"].clone();
    let is_trusted = |client: &Value| client["caBundle"].is_string() && client["caBundle"] == bundle();
    let trusted = |object: &Value| is_trusted(&object["webhooks"][0]["clientConfig"]);
    let converts = |crd: &Value| is_trusted(&crd["spec"]["conversion"]["webhook"]["clientConfig"]);
    release.wait(WEBHOOKS, "the certificate is trusted", trusted);
    release.wait(CONVERTED, "the certificate is trusted", converts);
    release.apply_examples();
    let more = |service: &Value| service["metadata"]["annotations"]["more"] == "1";
    assert!(!more(&release.wait(SERVICE, "it is there", |_| true)));

    let folder = tempfile::tempdir().unwrap();
    release.put("upgrade", &changed_chart(folder.path()));
    release.wait(CRD, "the CRD is upgraded", has_more_column);
    release.wait(WEBHOOKS, "the certificate is still trusted", trusted);
    release.wait(CONVERTED, "the certificate is still trusted", converts);
    mounted.update();
    release.wait(SERVICE, "the changed template is used", more);

    done(&release.helm(&["rollback", "sw", "1", "--wait"]).output().unwrap());
    release.wait(CRD, "the CRD is the older one", |crd| !has_more_column(crd));
    mounted.update();
    release.wait(SERVICE, "the older template is used", |service| !more(service));
    let after = plane.get(DEPLOYMENT).unwrap();
    assert_eq!(after["metadata"]["generation"], deployment["metadata"]["generation"], "no pod was restarted");
    assert_eq!(release.requests_refused(&mounted), [json!(null); 0]);

    uninstall(&release, controller);
    assert_eq!(release.left(), [""; 0]);
    assert_eq!(plane.get(LEASE), None);
    assert_eq!(plane.get(CERTIFICATE), None);
    assert!(plane.get(CRD).is_some(), "a CRD that goes takes its objects along");
    for path in [MYSQL, POSTGRESQL, SCHEDULE] {
        plane.delete(path);
        plane.wait_gone(path, SOON);
    }
    // The garbage collector takes the children.
    plane.wait_gone(SERVICE, Duration::from_secs(120));
}

/// `helm uninstall`, while the test does the work of the pods: of the Deployment's, and of the Job's.
#[track_caller]
fn uninstall(release: &Release, controller: Controller) {
    let plane = &release.plane;
    let container = &plane.get(DEPLOYMENT).unwrap()["spec"]["template"]["spec"]["containers"][0];
    let image = container["image"].as_str().unwrap().to_owned();
    plane.hold_pods("ops", &image);
    let mut helm = release.helm(&["uninstall", "sw", "--wait", "--timeout=3m"]);
    let helm = helm.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    plane.wait_gone(DEPLOYMENT, SOON);
    let job = "/apis/batch/v1/namespaces/ops/jobs/sw-cleanup";
    release.wait(job, "its pod is there", |job| job["status"]["active"] == 1);
    let mounted = Mounted::of(plane, "ops", job);
    let early = mounted.command().output().unwrap();
    let told = text(&early.stderr);
    assert!(
        told.starts_with("error: a controller still runs: Lease ops/metacontroller is held by"),
        "{told}"
    );
    assert_eq!(early.status.code(), Some(1), "the Job tries once more");
    controller.terminate();
    // Its roles were gone before it ended, so that it could not give its lease back: the Job's tries outlast the lease.
    let told = wait_until(SOON, "a try finds nobody who runs", || {
        let output = mounted.command().output().unwrap();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    });
    assert!(told.contains("took db.example.com/cleanup off PostgreSQLCluster shop/accounts"), "{told}");

    plane.release_pods("ops", &image);
    done(&helm.wait_with_output().unwrap());
}
