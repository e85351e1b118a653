//! One shipped operator in a lab of its own. Its controller sees only parents with the lab's label, and may do what the
//! roles allow that are printed for its definition.

use std::fs;
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, Instant};

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::controller::Controller;
use crate::support::lab::{Definition, Lab, SOON};
use crate::support::rights::{narrow, refused};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SHIPPED: [&str; 3] = ["backupschedule", "mysql", "postgresqlcluster"];

pub struct Operator {
    pub lab: Lab,
    name: &'static str,
    pub definition: Definition,
}

impl Operator {
    #[track_caller]
    pub fn new(name: &'static str, subject: &str) -> Operator {
        static INSTALLED: Once = Once::new();
        let lab = Lab::bare(subject);
        INSTALLED.call_once(|| install_kinds(&lab));
        Operator::on(lab, name, &[])
    }

    /// The same on a control plane of its own, which the test ends.
    #[track_caller]
    pub fn apart(name: &'static str, subject: &str) -> Operator {
        let lab = Lab::apart(subject);
        install_kinds(&lab);
        Operator::on(lab, name, &[])
    }

    /// The same, where the controller also may make itself a certificate in the Secret `hooks`.
    #[track_caller]
    pub fn apart_with_webhooks(name: &'static str, subject: &str) -> Operator {
        let lab = Lab::apart(subject);
        install_kinds(&lab);
        let secret = format!("{}/hooks", lab.namespace);
        Operator::on(lab, name, &["--webhook-secret", &secret])
    }

    #[track_caller]
    fn on(mut lab: Lab, name: &'static str, rights: &[&str]) -> Operator {
        copy(&Path::new(ROOT).join("hooks").join(name), &lab.folder.path().join("hooks").join(name));
        let labels = json!({"matchLabels": {"lab": lab.namespace}});
        let definition = shipped_definition(name).with("/spec/parentResource/labelSelector", labels);
        lab.write_definitions(&[&definition]);
        narrow(&mut lab, rights);
        Operator { lab, name, definition }
    }

    /// The definition with a finalizer of this lab's own. A parent that has a controller's finalizer and is not selected by it
    /// is finalized, so of the controllers with one finalizer only one may run.
    pub fn with_own_finalizer(mut self) -> Operator {
        let finalizer = json!(format!("{}.example.com/cleanup", self.lab.namespace));
        self.definition = self.definition.clone().with("/spec/finalizer", finalizer);
        self
    }

    pub fn start(&self) -> Controller {
        self.start_with(&[])
    }

    pub fn start_with(&self, more: &[&str]) -> Controller {
        self.lab.write_definitions(&[&self.definition]);
        self.lab.start(more)
    }

    fn resource(&self) -> (&str, &str) {
        let parent = &self.definition.0["spec"]["parentResource"];
        (parent["apiVersion"].as_str().unwrap(), parent["resource"].as_str().unwrap())
    }

    /// The API path of a parent in the lab's namespace.
    pub fn parent(&self, name: &str) -> String {
        let (api_version, plural) = self.resource();
        self.lab.path(api_version, plural, name)
    }

    /// Creates a parent, and answers its path.
    #[track_caller]
    pub fn add(&self, name: &str, spec: Value) -> String {
        let namespace = self.lab.namespace.clone();
        self.add_in(&namespace, name, spec)
    }

    #[track_caller]
    pub fn add_in(&self, namespace: &str, name: &str, spec: Value) -> String {
        let (api_version, plural) = self.resource();
        let collection = format!("/apis/{api_version}/namespaces/{namespace}/{plural}");
        self.lab.plane.create(&collection, &self.manifest(name, spec));
        format!("{collection}/{name}")
    }

    /// A parent that this lab's controller takes up.
    pub fn manifest(&self, name: &str, spec: Value) -> Value {
        let kind = match self.name {
            "backupschedule" => "BackupSchedule",
            "mysql" => "MySQL",
            _ => "PostgreSQLCluster",
        };
        let labels = json!({"lab": self.lab.namespace});
        json!({
            "apiVersion": self.resource().0, "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec,
        })
    }

    #[track_caller]
    pub fn set_spec(&self, path: &str, spec: Value) {
        self.lab.merge(path, json!({"spec": spec}));
    }

    /// Changes a file of this lab's copy of the hooks, and waits until the controller answers with it.
    #[track_caller]
    pub fn edit_hook(&self, controller: &Controller, file: &str, from: &str, to: &str) {
        let path = self.lab.folder.path().join("hooks").join(self.name).join(file);
        let text = fs::read_to_string(&path).expect("the hook has this file");
        assert!(text.contains(from), "{file} holds {from}");
        let revisions = || controller.log().matches("hook revision active").count();
        let before = revisions();
        fs::write(path, text.replace(from, to)).expect("the copy is ours");
        self.lab.wait_until("the changed hook is in force", || revisions() > before);
    }

    /// Waits until the operator's status says so of the generation that is there.
    #[track_caller]
    pub fn wait_phase(&self, path: &str, phase: &str) -> Value {
        self.lab.wait(path, &format!("it is {phase}, and its status is of its spec"), |parent| {
            parent["status"]["phase"] == phase && is_of_its_spec(parent)
        })
    }

    #[track_caller]
    pub fn wait_condition(&self, path: &str, kind: &str, reason: &str) -> Value {
        let parent = self.lab.wait(path, &format!("{kind} is {reason}"), |parent| {
            condition(parent, kind)["reason"] == reason && is_of_its_spec(parent)
        });
        condition(&parent, kind).clone()
    }

    /// Waits until the controller has written nothing for this time.
    #[track_caller]
    pub fn wait_settled(&self, time: Duration) {
        let (mut seen, mut since) = (0, Instant::now());
        wait_until(SOON, "the controller writes nothing more", || {
            let now = self.lab.writes().len();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if since.elapsed() > time { Ok(()) } else { Err(format!("{:?}", self.lab.writes())) }
        });
    }

    /// Kills the controller between the first write that comes of a change and the last.
    #[track_caller]
    pub fn kill_amid(&self, controller: Controller, change: impl FnOnce()) {
        let before = self.lab.writes().len();
        change();
        let deadline = Instant::now() + SOON;
        while self.lab.writes().len() == before {
            assert!(Instant::now() < deadline, "the change led to no write");
            std::thread::sleep(Duration::from_millis(1));
        }
        controller.kill();
    }

    /// Starts the controller once more, and sees it visit these parents and write nothing.
    #[track_caller]
    pub fn restart_in_silence(&self, parents: &[&str]) -> Controller {
        let before = self.lab.writes().len();
        let controller = self.start();
        for parent in parents {
            self.lab.wait_until("each parent is visited", || self.visits(&controller, parent) > 0);
        }
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(self.lab.writes()[before..], [""; 0], "nothing to write after a restart");
        controller
    }

    /// How often a controller has called the hook for this parent.
    pub fn visits(&self, controller: &Controller, parent: &str) -> usize {
        let parent = format!("namespace={} name={parent} ", self.lab.namespace);
        let log = controller.log();
        log.lines().filter(|line| line.contains("hook called") && line.contains(&parent)).count()
    }

    /// Waits until nothing of these kinds is left in the lab's namespace.
    #[track_caller]
    pub fn wait_none_left(&self, kinds: &[(&str, &str)]) {
        for (api_version, plural) in kinds {
            let path = self.lab.path(api_version, plural, "");
            // The garbage collector learns of a new kind within half a minute.
            let patience = Duration::from_secs(120);
            self.lab.plane.wait_for(&path, patience, "none is left", |list| items(list).is_empty());
        }
    }

    /// The live objects of a kind that have a label, by name.
    pub fn list(&self, api_version: &str, plural: &str, selector: &str) -> Vec<Value> {
        let path = format!("{}?labelSelector={selector}", self.lab.path(api_version, plural, ""));
        items(&self.lab.get(&path)).to_vec()
    }

    /// The columns that `kubectl get` prints.
    #[track_caller]
    pub fn columns(&self, short_name: &str) -> Vec<String> {
        let table = self.kubectl(&["get", short_name]);
        table.lines().next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = self.lab.plane.kubectl();
        let output = command.args(["--namespace", &self.lab.namespace]).args(arguments).output();
        let output = output.expect("kubectl starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("kubectl prints text")
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let refused = refused(&self.lab);
            assert_eq!(refused, [""; 0], "the printed roles are enough for an operator's whole life");
        }
    }
}

pub fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

pub fn condition<'a>(parent: &'a Value, kind: &str) -> &'a Value {
    let conditions = parent["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

pub fn is_of_its_spec(parent: &Value) -> bool {
    parent["status"]["observedGeneration"] == parent["metadata"]["generation"]
}

/// The uid of the live object.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a live object has a uid")
}

/// The kinds are one for the whole cluster, as their names are fixed. Nobody converts PostgreSQLClusters there unless a test
/// has it done: what knows the stored version alone needs nobody.
fn install_kinds(lab: &Lab) {
    let crd = |name| fs::read_to_string(Path::new(ROOT).join("hooks").join(name).join("crd.yaml"));
    for name in SHIPPED {
        lab.plane.apply("default", &crd(name).expect("each operator has a kind"));
        let parent = &shipped_definition(name).0["spec"]["parentResource"];
        let text = |field: &str| parent[field].as_str().unwrap().to_owned();
        let list = format!("/apis/{}/{}", text("apiVersion"), text("resource"));
        lab.plane.wait_for(&list, SOON, "the kind can be listed", |_| true);
    }
}

/// The operator's document of `controllers.yaml`.
fn shipped_definition(name: &str) -> Definition {
    let text = fs::read_to_string(Path::new(ROOT).join("controllers.yaml")).expect("it is shipped");
    let documents = text.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).expect("YAML"));
    let found = documents.into_iter().find(|document| document["metadata"]["name"] == name);
    Definition(found.unwrap_or_else(|| panic!("controllers.yaml has {name}")))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the lab's folder is ours");
    for entry in fs::read_dir(from).expect("a folder of hooks") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("an entry has a name"));
        if path.is_file() {
            fs::copy(&path, to).expect("a file can be copied");
        }
    }
}
