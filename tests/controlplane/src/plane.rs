//! The control plane as its users see it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{self, Request, Response};
use crate::components::{self, Component, PATIENCE, Server, wait_for, wait_for_readyz};
use crate::error::{Doing, Error};
use crate::folder::{Folder, random_hex};
use crate::programs::{self, Programs};
use crate::wait::wait_until;

const STAGES: &str = include_str!("../cluster/stages.yaml");
const SETUP: &str = include_str!("../cluster/setup.yaml");

/// What differs from the control plane that most tests want.
#[derive(Debug, Default, Clone)]
pub struct Options {
    /// More flags for kube-apiserver, in the form `--flag=value`.
    pub api_server_flags: Vec<String>,
    /// etcd and kube-apiserver alone: nothing brings built-in objects to what they say.
    pub bare: bool,
}

/// A running control plane. Dropping it ends every process and removes its folder.
pub struct ControlPlane {
    folder: Folder,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    url: String,
    existing: bool,
    components: Mutex<Vec<Component>>,
    /// What a cluster that is not ours must not keep, by API path.
    leftovers: Mutex<Vec<String>>,
}

/// A service account for one controller, so that RBAC and the audit log tell it from all others.
#[derive(Debug, Clone)]
pub struct User {
    /// The name in the audit log: `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    pub kubeconfig: PathBuf,
}

static SHARED: OnceLock<Result<ControlPlane, Error>> = OnceLock::new();

impl ControlPlane {
    /// The one control plane of this process. Tests keep apart from each other by namespaces of their own.
    ///
    /// Panics with the same sentence in each test when it cannot be had.
    #[track_caller]
    pub fn shared() -> &'static ControlPlane {
        match ControlPlane::try_shared() {
            Ok(plane) => plane,
            Err(error) => panic!("no control plane: {error}"),
        }
    }

    /// The same without the panic.
    pub fn try_shared() -> Result<&'static ControlPlane, Error> {
        SHARED.get_or_init(start_shared).as_ref().map_err(Error::clone)
    }

    /// Whether it is a cluster that was there before, named by `SYNCWRIGHT_KUBECONFIG`.
    pub fn is_existing(&self) -> bool {
        self.existing
    }

    /// Kubernetes' version as the API server tells it.
    pub fn version(&self) -> String {
        let version = self.get("/version").unwrap_or_default();
        version["gitVersion"].as_str().unwrap_or("unknown").to_owned()
    }

    /// Starts a control plane, or takes the cluster that `SYNCWRIGHT_KUBECONFIG` names.
    pub fn start(options: Options) -> Result<ControlPlane, Error> {
        match std::env::var_os("SYNCWRIGHT_KUBECONFIG").filter(|path| !path.is_empty()) {
            Some(kubeconfig) => existing(PathBuf::from(kubeconfig)),
            None => start_own(&options),
        }
    }

    /// The kubeconfig of a user who may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The API server's address.
    pub fn server_url(&self) -> &str {
        &self.url
    }

    /// The folder with logs and configuration; it goes with the control plane.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// kubectl for this control plane. It keeps its cache in the control plane's folder.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", &self.kubeconfig).env("KUBECACHEDIR", self.dir().join("kubectl-cache"));
        command
    }

    /// The requests of service accounts, one JSON event in a line; none where the cluster is not ours.
    pub fn audit_log(&self) -> Option<PathBuf> {
        (!self.existing).then(|| self.dir().join("audit.log"))
    }

    /// The audit events of one user so far, in the order in which its requests were answered.
    ///
    /// Panics where the cluster is not ours: no event there would say nothing about the user.
    #[track_caller]
    pub fn requests_of(&self, user: &User) -> Vec<Value> {
        let path =
            self.audit_log().expect("the audit log of the cluster in SYNCWRIGHT_KUBECONFIG is out of reach");
        let log = fs::read_to_string(path).unwrap_or_default();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["user"]["username"] == user.name.as_str()).collect()
    }

    /// Sends one request as the user who may do everything. A patch's body is `application/apply-patch+yaml` unless it
    /// is named otherwise by `send`.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Response> {
        let content_type =
            if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
        self.send(method, path, content_type, &body.map(Value::to_string).unwrap_or_default())
    }

    /// Sends one request with the content type given, for example `application/merge-patch+json`.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> std::io::Result<Response> {
        client::send(self.dir(), &Request { method, path, content_type, body })
    }

    /// The object or list at an API path, `None` where there is nothing. Panics on any other answer.
    #[track_caller]
    pub fn get(&self, path: &str) -> Option<Value> {
        let answer = self.request("GET", path, None).unwrap_or_else(|error| panic!("GET {path}: {error}"));
        match answer.status {
            200 => Some(answer.json()),
            404 => None,
            _ => panic!("GET {path}: {}", answer.message()),
        }
    }

    /// Creates an object in the collection at an API path, and answers it as the API server keeps it.
    #[track_caller]
    pub fn create(&self, collection: &str, object: &Value) -> Value {
        expect_success("POST", collection, self.request("POST", collection, Some(object)))
    }

    /// Changes what the merge patch names; panics where the API server refuses it.
    #[track_caller]
    pub fn merge(&self, path: &str, patch: &Value) -> Value {
        let answer = self.send("PATCH", path, "application/merge-patch+json", &patch.to_string());
        expect_success("PATCH", path, answer)
    }

    /// Deletes the object at an API path, its children in the background; one that is not there is fine.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        let answer = self.request("DELETE", path, Some(&json!({"propagationPolicy": "Background"})));
        let answer = answer.unwrap_or_else(|error| panic!("DELETE {path}: {error}"));
        assert!(answer.is_success() || answer.status == 404, "DELETE {path}: {}", answer.message());
    }

    /// Applies manifests server-side into `namespace`, as `kubectl apply` does; panics with what kubectl says.
    #[track_caller]
    pub fn apply(&self, namespace: &str, manifests: &str) {
        let applied = self.try_apply(namespace, manifests);
        applied.unwrap_or_else(|error| panic!("{error}"));
    }

    fn try_apply(&self, namespace: &str, manifests: &str) -> Result<(), Error> {
        let mut command = self.kubectl();
        command.args([
            "apply",
            "--server-side",
            "--force-conflicts",
            "--namespace",
            namespace,
            "--filename",
            "-",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut kubectl = command.spawn().doing(|| "starting kubectl".into())?;
        let mut input = kubectl.stdin.take().expect("standard input is piped");
        // Where kubectl ends early, its own message says more than the broken pipe.
        let _ = input.write_all(manifests.as_bytes());
        drop(input);
        let output = kubectl.wait_with_output().doing(|| "waiting for kubectl".into())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                Err(Error::with_output("kubectl apply was refused", &String::from_utf8_lossy(&output.stderr)))
            }
        }
    }

    /// Waits until the object at an API path is there and passes `test`, and answers it.
    #[track_caller]
    pub fn wait_for(&self, path: &str, within: Duration, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        wait_until(within, what, || match self.request("GET", path, None) {
            Ok(answer) if answer.is_success() => Some(answer.json()).filter(&test).ok_or(show(answer.json())),
            Ok(answer) if answer.status == 404 => Err(format!("nothing at {path}")),
            // A kind that was just defined answers 429 for a moment.
            Ok(answer) => Err(answer.message()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Waits until there is nothing at an API path.
    #[track_caller]
    pub fn wait_gone(&self, path: &str, within: Duration) {
        wait_until(within, &format!("{path} is gone"), || match self.get(path) {
            None => Ok(()),
            Some(object) => Err(show(object)),
        })
    }

    /// Creates a namespace of its own for one test.
    #[track_caller]
    pub fn namespace(&self, prefix: &str) -> String {
        let name = format!("{prefix}-{}", random_hex(4));
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create("/api/v1/namespaces", &body);
        self.delete_at_end(format!("/api/v1/namespaces/{name}"));
        name
    }

    /// Makes a service account `name` in `namespace`, gives it the ClusterRole `role` in the whole cluster, and writes a
    /// kubeconfig with its token.
    #[track_caller]
    pub fn user(&self, namespace: &str, name: &str, role: &str) -> User {
        let user = self.account(namespace, name);
        self.bind(namespace, name, role);
        user
    }

    /// A service account that may do nothing until a role is bound to it.
    #[track_caller]
    pub fn account(&self, namespace: &str, name: &str) -> User {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        self.create(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &account);
        self.sign_in(namespace, name)
    }

    /// A service account that is there, with a token of its own.
    #[track_caller]
    pub fn sign_in(&self, namespace: &str, name: &str) -> User {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}});
        let answer = self.create(&path, &request);
        let token = answer["status"]["token"].as_str().expect("a token request is answered with a token");
        let kubeconfig = self.kubeconfig_with(&format!("{namespace}-{name}.kubeconfig"), token);
        User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            kubeconfig: kubeconfig.unwrap_or_else(|error| panic!("{error}")),
        }
    }

    fn bind(&self, namespace: &str, name: &str, role: &str) {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{namespace}-{name}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        self.create(path, &binding);
        self.delete_at_end(format!("{path}/{namespace}-{name}"));
    }

    /// Has a cluster that was there before not keep the object at an API path.
    pub fn delete_at_end(&self, path: String) {
        self.leftovers.lock().expect("no panic while it is held").push(path);
    }

    fn kubeconfig_with(&self, file: &str, token: &str) -> Result<PathBuf, Error> {
        if !self.existing {
            return self.folder.write(file, &components::kubeconfig(&self.url, self.dir(), token)?);
        }
        let path = self.folder.write(file, "")?;
        let configuration =
            run(self.kubectl().args(["config", "view", "--raw", "--minify", "--flatten", "--output=json"]))?;
        let mut configuration: Value = serde_json::from_str(&configuration)
            .map_err(|error| Error::new(format!("kubectl config view: {error}")))?;
        configuration["users"][0]["user"] = json!({"token": token});
        fs::write(&path, configuration.to_string()).doing(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Kills the API server, which comes back with `start_api_server`. etcd and all other parts go on.
    pub fn kill_api_server(&self) {
        self.api_server(Component::kill);
    }

    /// Starts the API server again, at the same address and with the same objects, and waits until it is ready.
    #[track_caller]
    pub fn start_api_server(&self) {
        self.api_server(|component| component.start_again(self.dir()))
            .unwrap_or_else(|error| panic!("{error}"));
        wait_until(PATIENCE, "the API server is ready", || client::look(self.dir(), "/readyz", |_| true));
    }

    #[track_caller]
    fn api_server<T>(&self, act: impl FnOnce(&mut Component) -> T) -> T {
        let mut components = self.components.lock().expect("no panic while it is held");
        let api_server = components.iter_mut().find(|component| component.name == "kube-apiserver");
        act(api_server.expect("the cluster in SYNCWRIGHT_KUBECONFIG is not ours to stop"))
    }

    /// Ends every process and removes the folder. In a cluster that is not ours it deletes what it has created.
    pub fn stop(&self) {
        if self.existing {
            for path in std::mem::take(&mut *self.leftovers.lock().expect("no panic while it is held")) {
                let _ = self.request("DELETE", &path, None);
            }
        }
        // The last ones first, so that nothing complains about its server.
        let mut components = self.components.lock().expect("no panic while it is held");
        while let Some(component) = components.pop() {
            drop(component);
        }
        self.folder.remove();
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop();
    }
}

fn start_shared() -> Result<ControlPlane, Error> {
    // What a static holds is never dropped; an exit without this leaves the folder to the next start.
    // SAFETY: the function lives as long as the process.
    unsafe { libc::atexit(stop_shared) };
    ControlPlane::start(Options::default())
}

extern "C" fn stop_shared() {
    if let Some(Ok(plane)) = SHARED.get() {
        plane.stop();
    }
}

fn existing(kubeconfig: PathBuf) -> Result<ControlPlane, Error> {
    let kubeconfig = kubeconfig.canonicalize();
    let kubeconfig = kubeconfig.map_err(|error| {
        Error::new(format!("SYNCWRIGHT_KUBECONFIG names a file that cannot be read: {error}"))
    })?;
    let kubectl = programs::kubectl()?;
    let folder = Folder::new()?;
    let show = ["config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"];
    let url = run(Command::new(&kubectl).arg("--kubeconfig").arg(&kubeconfig).args(show))?;
    let mut components =
        vec![Component::start("kubectl-proxy", components::proxy(&kubectl, &kubeconfig), folder.path())?];
    let ready = wait_for_readyz(Duration::from_secs(10), &mut components, folder.path());
    ready.map_err(|error| Error::new(format!("the cluster in SYNCWRIGHT_KUBECONFIG, {url}: {error}")))?;
    Ok(plane(folder, kubeconfig, kubectl, url, components, true))
}

fn start_own(options: &Options) -> Result<ControlPlane, Error> {
    let programs = Programs::obtain()?;
    let folder = Folder::new()?;
    let Server { url, mut components } = Server::start(&programs, &folder, &options.api_server_flags)?;
    let kubeconfig = folder.path().join("kubeconfig");
    if options.bare {
        return Ok(plane(folder, kubeconfig, programs.kubectl, url, components, false));
    }
    folder.write("stages.yaml", STAGES)?;
    for (name, command) in [
        ("kube-controller-manager", components::controller_manager(&programs)),
        ("kube-scheduler", components::scheduler(&programs)),
        ("kwok", components::kwok(&programs)),
    ] {
        components.push(Component::start(name, command, folder.path())?);
    }
    let plane = plane(folder, kubeconfig, programs.kubectl, url, components, false);
    plane.try_apply("default", SETUP)?;
    plane.wait_settled()?;
    Ok(plane)
}

fn plane(
    folder: Folder,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    url: String,
    components: Vec<Component>,
    existing: bool,
) -> ControlPlane {
    let (components, leftovers) = (Mutex::new(components), Mutex::default());
    ControlPlane { folder, kubeconfig, kubectl, url, existing, components, leftovers }
}

impl ControlPlane {
    /// kwok has made the node ready, and kube-controller-manager has made its first object.
    fn wait_settled(&self) -> Result<(), Error> {
        let components = &mut self.components.lock().expect("no panic while it is held")[..];
        let ready = |node: &Value| {
            let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions
                .into_iter()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
                && node["spec"]["taints"].is_null()
        };
        wait_for("a ready node", PATIENCE, components, self.dir(), || {
            client::look(self.dir(), "/api/v1/nodes/node", ready)
        })?;
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        wait_for("kube-controller-manager", PATIENCE, components, self.dir(), || {
            client::look(self.dir(), account, |_| true)
        })
    }
}

/// An object as a failed test shows it: without the fields' managers, which are long and rarely the reason.
fn show(mut object: Value) -> String {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    format!("{object:#}")
}

#[track_caller]
fn expect_success(method: &str, path: &str, answer: std::io::Result<Response>) -> Value {
    let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
    assert!(answer.is_success(), "{method} {path}: {}", answer.message());
    answer.json()
}

fn run(command: &mut Command) -> Result<String, Error> {
    let output = command.output().doing(|| format!("running {}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Error::with_output(
            format!("running {}", command.get_program().display()),
            &String::from_utf8_lossy(&output.stderr),
        )),
    }
}
