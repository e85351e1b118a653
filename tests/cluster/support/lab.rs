//! One test's own corner of the shared control plane: a namespace, an API group, a user, a folder.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use controlplane::{ControlPlane, Options, User, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::controller::Controller;
use super::hook::Hook;

/// What is waited for comes within this time, on a machine that does much else too.
pub const SOON: Duration = Duration::from_secs(40);
/// A controller with something to do does it within this time: nothing for so long is nothing.
pub const SILENCE: Duration = Duration::from_secs(3);

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const DEFINITIONS: &str = "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers";
pub const DECORATORS: &str = "/apis/metacontroller.k8s.io/v1alpha1/decoratorcontrollers";
pub const DECORATOR_CRD: &str = include_str!("../../../src/config/crds/decoratorcontrollers.yaml");
pub const COMPOSITE_CRD: &str = include_str!("../../../src/config/crds/compositecontrollers.yaml");

pub struct Lab {
    pub plane: &'static ControlPlane,
    pub namespace: String,
    /// The API group of the kinds that are this test's.
    pub group: String,
    pub folder: TempDir,
    /// Who the controllers are.
    pub user: User,
    audit: Mutex<Audit>,
    started: AtomicU32,
}

#[derive(Default)]
struct Audit {
    read: u64,
    events: Vec<Value>,
}

impl Lab {
    /// A lab with the namespaced parent kind `Thing`, which keeps whatever its spec and status hold.
    #[track_caller]
    pub fn new(subject: &str) -> Lab {
        let lab = Lab::bare(subject);
        lab.define_kind(&lab.kind("things", "Thing"));
        lab
    }

    /// A lab without any kind of its own.
    #[track_caller]
    pub fn bare(subject: &str) -> Lab {
        Lab::on(ControlPlane::shared(), subject)
    }

    /// A lab on a control plane of its own, which the test ends.
    #[track_caller]
    pub fn apart(subject: &str) -> Lab {
        let plane = ControlPlane::start(Options::default()).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::on(Box::leak(Box::new(plane)), subject);
        lab.define_kind(&lab.kind("things", "Thing"));
        lab
    }

    fn on(plane: &'static ControlPlane, subject: &str) -> Lab {
        let namespace = plane.namespace(subject);
        let user = plane.user(&namespace, "controller", "cluster-admin");
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        fs::create_dir(folder.path().join("hooks")).expect("the folder is ours");
        let group = format!("{namespace}.example.com");
        Lab { plane, namespace, group, folder, user, audit: Mutex::default(), started: AtomicU32::new(0) }
    }

    /// The CRD of a namespaced kind of this lab's group, with a status subresource and no fixed fields.
    pub fn kind(&self, plural: &str, kind: &str) -> Value {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{}", self.group)},
            "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": anything, "status": anything},
                    }},
                }],
            },
        })
    }

    /// Installs a CRD and waits until its objects can be listed.
    #[track_caller]
    pub fn define_kind(&self, crd: &Value) {
        let name = crd["metadata"]["name"].as_str().expect("a CRD has a name");
        self.plane.create(CRDS, crd);
        self.plane.delete_at_end(format!("{CRDS}/{name}"));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (group, plural) = (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"]));
        let list = format!("/apis/{group}/v1/{plural}");
        self.plane.wait_for(&list, SOON, "the kind can be listed", |_| true);
    }

    /// Removes a CRD with all its objects.
    #[track_caller]
    pub fn remove_kind(&self, plural: &str) {
        let path = format!("{CRDS}/{plural}.{}", self.group);
        self.plane.delete(&path);
        self.plane.wait_gone(&path, SOON);
    }

    pub fn api_version(&self) -> String {
        format!("{}/v1", self.group)
    }

    /// The API path of an object in the lab's namespace, or of a collection where `name` is empty.
    pub fn path(&self, api_version: &str, plural: &str, name: &str) -> String {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let collection = format!("/{root}/{api_version}/namespaces/{}/{plural}", self.namespace);
        if name.is_empty() { collection } else { format!("{collection}/{name}") }
    }

    pub fn thing(&self, name: &str) -> String {
        self.path(&self.api_version(), "things", name)
    }

    pub fn config_map(&self, name: &str) -> String {
        self.path("v1", "configmaps", name)
    }

    /// A Thing as a manifest.
    pub fn thing_with(&self, name: &str, spec: Value) -> Value {
        json!({"apiVersion": self.api_version(), "kind": "Thing", "metadata": {"name": name}, "spec": spec})
    }

    #[track_caller]
    pub fn add_thing(&self, name: &str, spec: Value) -> Value {
        self.plane.create(&self.thing(""), &self.thing_with(name, spec))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.plane.get(path).unwrap_or_else(|| panic!("nothing at {path}"))
    }

    #[track_caller]
    pub fn merge(&self, path: &str, patch: Value) -> Value {
        self.plane.merge(path, &patch)
    }

    #[track_caller]
    pub fn wait(&self, path: &str, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        self.plane.wait_for(path, SOON, what, test)
    }

    #[track_caller]
    pub fn create(&self, api_version: &str, plural: &str, object: &Value) {
        self.plane.create(&self.path(api_version, plural, ""), object);
    }

    #[track_caller]
    pub fn wait_gone(&self, path: &str) {
        self.plane.wait_gone(path, SOON);
    }

    #[track_caller]
    pub fn wait_until(&self, what: &str, test: impl Fn() -> bool) {
        wait_until(SOON, what, || if test() { Ok(()) } else { Err("not so") });
    }

    /// Waits until the parent's condition `Synced` is `False` for this reason, and answers its message.
    #[track_caller]
    pub fn wait_refused(&self, path: &str, reason: &str) -> String {
        let parent = self.wait(path, &format!("`Synced` is false: {reason}"), |parent| {
            synced(parent)
                .is_some_and(|condition| condition["status"] == "False" && condition["reason"] == reason)
        });
        synced(&parent).unwrap()["message"].as_str().expect("a condition has a message").to_owned()
    }

    /// Waits until there is an event on a cluster-scoped object, for this reason and with this in its message.
    #[track_caller]
    pub fn wait_event(&self, name: &str, reason: &str, message: &str) {
        self.wait_until(&format!("an event {reason} on {name}: {message}"), || {
            let events = self.get("/api/v1/namespaces/default/events");
            events["items"].as_array().into_iter().flatten().any(|event| {
                event["reason"] == reason
                    && event["involvedObject"]["name"] == name
                    && event["message"].as_str().is_some_and(|text| text.contains(message))
            })
        });
    }

    /// Waits until nothing stands in the parent's way.
    #[track_caller]
    pub fn wait_synced(&self, path: &str) -> Value {
        self.wait(path, "no condition `Synced` is false", |parent| {
            !parent["status"].is_null() && synced(parent).is_none()
        })
    }
}

/// The controller's own condition on a parent.
pub fn synced(parent: &Value) -> Option<&Value> {
    parent["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Synced")
}

/// A CompositeController as a manifest.
#[derive(Clone, Debug)]
pub struct Definition(pub Value);

impl Lab {
    /// A definition for the lab's Things: their children are found by `controller-uid`.
    pub fn definition(&self) -> Definition {
        Definition(json!({
            "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
            "metadata": {"name": self.namespace, "labels": {"lab": self.namespace}},
            "spec": {
                "parentResource": {"apiVersion": self.api_version(), "resource": "things"},
                "generateSelector": true,
                "childResources": [],
                "hooks": {},
            },
        }))
    }

    /// A DecoratorController that decorates what these rules pick, and may attach ConfigMaps.
    pub fn decorator(&self, resources: Value) -> Definition {
        Definition(json!({
            "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "DecoratorController",
            "metadata": {"name": self.namespace, "labels": {"lab": self.namespace}},
            "spec": {
                "resources": resources,
                "attachments": [{
                    "apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"},
                }],
                "hooks": {},
            },
        }))
    }

    /// The lab's Things as a rule of a decorator.
    pub fn things(&self) -> Value {
        json!([{"apiVersion": self.api_version(), "resource": "things"}])
    }

    /// Writes `controllers.yaml` and starts the controller with it.
    pub fn run(&self, definition: &Definition) -> Controller {
        self.write_definitions(&[definition]);
        self.start(&[])
    }

    pub fn write_definitions(&self, definitions: &[&Definition]) {
        let texts: Vec<String> = definitions.iter().map(|definition| definition.0.to_string()).collect();
        fs::write(self.folder.path().join("controllers.yaml"), texts.join("\n---\n")).unwrap();
    }

    /// Starts the controller with the definitions written before, and with more flags.
    pub fn start(&self, more: &[&str]) -> Controller {
        self.start_in(&self.user, more, &[])
    }

    /// The same with an account of its own, by which its writes are told from those of others.
    pub fn start_as(&self, user: &User, more: &[&str]) -> Controller {
        self.start_in(user, more, &[])
    }

    /// The same with variables in its environment.
    pub fn start_in(&self, user: &User, more: &[&str], environment: &[(&str, &str)]) -> Controller {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let kubeconfig = user.kubeconfig.display().to_string();
        let selector = format!("lab={}", self.namespace);
        let mut arguments = vec!["--log-level", "debug", "--kubeconfig", &kubeconfig];
        // The last of two counts: tests of the limit set it.
        arguments.extend(["--target-label-selector", &selector, "--client-go-qps=-1"]);
        let file = self.folder.path().join("controllers.yaml");
        if file.exists() {
            arguments.extend(["--controllers", "controllers.yaml"]);
        }
        arguments.extend(more);
        Controller::start(self.folder.path(), &format!("controller-{number}.log"), &arguments, environment)
    }

    /// From now on the lab's controllers may do what these rules say, in the whole cluster.
    #[track_caller]
    pub fn limit_rights(&mut self, rules: &Value) {
        let name = format!("{}-limited", self.namespace);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": rules,
        });
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        self.plane.create(roles, &role);
        self.plane.delete_at_end(format!("{roles}/{name}"));
        self.user = self.plane.user(&self.namespace, "limited", &name);
    }

    /// Puts a definition into the cluster, where only this lab's controllers take it up.
    #[track_caller]
    pub fn add_definition(&self, definition: &Definition) {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            self.plane.apply("default", COMPOSITE_CRD);
            self.plane.apply("default", DECORATOR_CRD);
            self.plane.wait_for(DEFINITIONS, SOON, "CompositeControllers can be listed", |_| true);
            self.plane.wait_for(DECORATORS, SOON, "DecoratorControllers can be listed", |_| true);
        });
        self.plane.create(definition.collection(), &definition.0);
        self.plane.delete_at_end(definition.path());
    }
}

impl Definition {
    /// Declares a kind of child.
    pub fn child(mut self, api_version: &str, plural: &str, method: &str) -> Definition {
        let rule = json!({
            "apiVersion": api_version, "resource": plural, "updateStrategy": {"method": method},
        });
        self.0["spec"]["childResources"].as_array_mut().unwrap().push(rule);
        self
    }

    /// Declares a kind of attachment.
    pub fn attach(mut self, api_version: &str, plural: &str) -> Definition {
        let rule = json!({"apiVersion": api_version, "resource": plural});
        self.0["spec"]["attachments"].as_array_mut().unwrap().push(rule);
        self
    }

    pub fn config_maps(self) -> Definition {
        self.child("v1", "configmaps", "InPlace")
    }

    pub fn sync(self, hook: &Hook) -> Definition {
        self.hook("sync", hook)
    }

    pub fn finalize(self, hook: &Hook) -> Definition {
        self.hook("finalize", hook)
    }

    pub fn customize(self, hook: &Hook) -> Definition {
        self.hook("customize", hook)
    }

    /// The wire format of all hooks that are declared so far.
    pub fn version(mut self, version: &str) -> Definition {
        for hook in self.0["spec"]["hooks"].as_object_mut().unwrap().values_mut() {
            hook["version"] = json!(version);
        }
        self
    }

    fn hook(self, name: &str, hook: &Hook) -> Definition {
        self.with(
            &format!("/spec/hooks/{name}"),
            json!({"webhook": {"url": hook.url(name), "timeout": "5s"}}),
        )
    }

    /// Sets the field at a JSON pointer whose parent is there.
    pub fn with(mut self, pointer: &str, value: Value) -> Definition {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let parent = self.0.pointer_mut(parent).expect("the field's parent is there");
        parent[name] = value;
        self
    }

    /// Declares what is labelled as its parent's, not as its controller's.
    pub fn named(self, name: &str) -> Definition {
        self.with("/metadata/name", json!(name))
    }

    fn collection(&self) -> &'static str {
        if self.0["kind"] == "DecoratorController" { DECORATORS } else { DEFINITIONS }
    }

    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.0["metadata"]["name"].as_str().unwrap())
    }
}

impl Lab {
    /// The writes of this lab's controllers so far, in order: `patch configmaps a`. Events are not counted.
    pub fn writes(&self) -> Vec<String> {
        let mut audit = self.audit.lock().unwrap();
        self.read_audit(&mut audit);
        audit.events.iter().filter_map(write_of).collect()
    }

    /// The objects that this lab's controllers have created so far, in order: `jobs a`.
    pub fn created(&self) -> Vec<String> {
        let mut audit = self.audit.lock().unwrap();
        self.read_audit(&mut audit);
        let created = audit.events.iter().filter(|event| event["responseStatus"]["code"] == 201);
        let created = created.filter_map(write_of);
        created.filter_map(|write| write.split_once(' ').map(|(_, what)| what.to_owned())).collect()
    }

    /// The objects and lists that this lab's controllers have read so far: `list configmaps`.
    pub fn reads(&self) -> Vec<String> {
        let mut audit = self.audit.lock().unwrap();
        self.read_audit(&mut audit);
        let reads = audit.events.iter().filter(|event| event["verb"] == "get" || event["verb"] == "list");
        reads.filter(|event| !event["objectRef"]["resource"].is_null()).map(told).collect()
    }

    /// Events of all labs are in one file, which grows: only what is new is read.
    fn read_audit(&self, audit: &mut Audit) {
        let path = self.plane.audit_log();
        let path = path.expect("writes are counted in the audit log, which only the tests' own cluster has");
        let mut file = fs::File::open(path).expect("the audit log is there");
        file.seek(SeekFrom::Start(audit.read)).expect("a file can be read from anywhere");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("the audit log is text");
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        audit.read += whole as u64;
        let ours = text[..whole].lines().filter(|line| line.contains(&self.user.name));
        audit.events.extend(ours.filter_map(|line| serde_json::from_str(line).ok()));
    }

    /// Waits until the controller has done nothing for a second, then watches that nothing happens for `time`.
    #[track_caller]
    pub fn expect_silence(&self, hook: &Hook, time: Duration) {
        self.wait_quiet(hook, Duration::from_secs(1));
        let before = (self.writes().len(), hook.count());
        let began = Instant::now();
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(100));
            if (self.writes().len(), hook.count()) != before {
                let calls = hook.calls().split_off(before.1);
                let calls: Vec<_> = calls.iter().map(|call| (&call.hook, call.parent_name())).collect();
                panic!("expected silence; writes: {:?}; hook calls: {calls:?}", &self.writes()[before.0..]);
            }
        }
    }

    /// Waits until there was neither a write nor a call for this time.
    #[track_caller]
    pub fn wait_quiet(&self, hook: &Hook, time: Duration) {
        let mut seen = (0, 0);
        let mut since = Instant::now();
        wait_until(SOON, "the controller is quiet", || {
            let now = (self.writes().len(), hook.count());
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > time { Ok(()) } else { Err(format!("{now:?}")) }
        });
    }
}

fn write_of(event: &Value) -> Option<String> {
    let writes = matches!(event["verb"].as_str(), Some("create" | "update" | "patch" | "delete"));
    (writes && event["objectRef"]["resource"] != "events").then(|| told(event))
}

/// A request as the tests write it; a refused one with its code.
fn told(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about = &event["objectRef"];
    let mut told = format!("{} {}", text(&event["verb"]), text(&about["resource"]));
    for (separator, part) in [("/", &about["subresource"]), (" ", &about["name"])] {
        if !part.is_null() {
            told = format!("{told}{separator}{}", text(part));
        }
    }
    if text(&event["requestURI"]).contains("dryRun") {
        told.push_str(" (dry run)");
    }
    match event["responseStatus"]["code"].as_i64() {
        Some(code) if code >= 300 => format!("{told} -> {code}"),
        _ => told,
    }
}
