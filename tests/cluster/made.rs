//! The whole life of operators that `syncwright new` makes, and of the README's: kind, example, children, status, an edited
//! template, the parent's end, after which nothing of it is left.

use std::fs;
use std::process::Command;
use std::time::Duration;

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::lab::Lab;

const DATABASE: &str = include_str!("../data/chart-database.yaml");
const WORKERS: &str = include_str!("../data/chart-workers.yaml");
const README: &str = include_str!("../../README.md");

/// The garbage collector looks for new kinds of owners every half a minute, and not as long as any kind of the shared
/// control plane has just gone.
const COLLECTED: Duration = Duration::from_secs(180);

/// An operator at work in a lab.
struct Made {
    lab: Lab,
    hook: &'static str,
    /// Where its parents are, and the resources of its children.
    plural: String,
    children: Vec<(String, String)>,
}

impl Made {
    /// Made by `syncwright new`, with its kind installed.
    fn new(hook: &'static str, manifests: Option<&str>) -> Made {
        let lab = Lab::bare(&format!("made-{hook}"));
        let group = lab.group.clone();
        let mut arguments = vec!["new", hook, "--group", &group];
        if let Some(manifests) = manifests {
            let own = manifests.replace("namespace: data", &format!("namespace: {}", lab.namespace));
            fs::write(lab.folder.path().join("all.yaml"), own).unwrap();
            arguments.extend(["--from-manifests", "all.yaml"]);
        }
        let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
            .args(&arguments)
            .current_dir(lab.folder.path())
            .output()
            .expect("the binary was built for this test");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let made = Made::of(lab, hook);
        made.apply("crd.yaml");
        let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{group}", made.plural);
        made.lab.plane.delete_at_end(crd);
        made.lab.wait(&made.parent(""), "the kind can be listed", |_| true);
        made
    }

    /// What the lab's `controllers.yaml` defines.
    fn of(lab: Lab, hook: &'static str) -> Made {
        let text = fs::read_to_string(lab.folder.path().join("controllers.yaml")).unwrap();
        let definition: Value = serde_saphyr::from_str(&text).expect("one definition");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let resources = definition["spec"]["childResources"].as_array().unwrap();
        let children = resources.iter().map(|rule| (text(&rule["apiVersion"]), text(&rule["resource"])));
        let children = children.collect();
        Made { lab, hook, plural: text(&definition["spec"]["parentResource"]["resource"]), children }
    }

    fn apply(&self, file: &str) {
        let path = self.lab.folder.path().join("hooks").join(self.hook).join(file);
        self.lab.plane.apply(&self.lab.namespace, &fs::read_to_string(path).expect("the file is there"));
    }

    fn parent(&self, name: &str) -> String {
        self.lab.path(&self.lab.api_version(), &self.plural, name)
    }

    /// The live children of a parent, as `Kind name`.
    fn children_of(&self, uid: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (api_version, plural) in &self.children {
            let list = self.lab.get(&self.lab.path(api_version, plural, ""));
            let items = list["items"].as_array().into_iter().flatten();
            let is_own = |object: &&Value| object["metadata"]["ownerReferences"][0]["uid"] == uid;
            let name = |object: &Value| format!("{plural} {}", object["metadata"]["name"].as_str().unwrap());
            found.extend(items.filter(is_own).map(name));
        }
        found.sort();
        found
    }

    fn edit(&self, from: &str, to: &str) {
        let path = self.lab.folder.path().join("hooks").join(self.hook).join("sync.yaml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "no `{from}` in {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }

    /// Lives a parent's life: what it should come to, an edit with what a child then is, and the end.
    fn lives(&self, name: &str, children: &[&str], is_well: impl Fn(&Value) -> bool, edit: &Edit) {
        let controller = self.lab.start(&[]);
        self.apply("example.yaml");
        let parent = self.lab.wait(&self.parent(name), "it is well", is_well);
        let uid = parent["metadata"]["uid"].as_str().unwrap();
        assert_eq!(self.children_of(uid), children);
        self.edit(edit.from, edit.to);
        let (api_version, plural, child) = edit.child;
        self.lab.wait(&self.lab.path(api_version, plural, child), "the edit shows", |child| {
            child.pointer(edit.pointer) == Some(&edit.value)
        });
        self.lab.wait_synced(&self.parent(name));
        self.lab.plane.delete(&self.parent(name));
        self.lab.wait_gone(&self.parent(name));
        wait_until(COLLECTED, "its children go", || match self.children_of(uid) {
            left if left.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        });
        assert!(controller.terminate().success());
    }
}

/// A change of the template, and what a child then holds.
struct Edit {
    from: &'static str,
    to: &'static str,
    child: (&'static str, &'static str, &'static str),
    pointer: &'static str,
    value: Value,
}

fn is_ready(parent: &Value) -> bool {
    let conditions = parent["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[test]
fn new_operator_lives_and_leaves_nothing() {
    let edit = Edit {
        from: "          readinessProbe:\n",
        to: "          env: [{name: EDITED, value: \"yes\"}]\n          readinessProbe:\n",
        child: ("apps/v1", "deployments", "example"),
        pointer: "/spec/template/spec/containers/0/env/0/value",
        value: json!("yes"),
    };
    let children = ["deployments example", "services example"];
    Made::new("website", None).lives("example", &children, is_ready, &edit);
}

#[test]
fn operator_made_of_a_database_chart_lives_and_leaves_nothing() {
    let edit = Edit {
        from: "max_connections: \"100\"",
        to: "max_connections: \"200\"",
        child: ("v1", "configmaps", "shop-db-config"),
        pointer: "/data/max_connections",
        value: json!("200"),
    };
    let children = [
        "configmaps shop-db-config",
        "secrets shop-db-password",
        "serviceaccounts shop-db",
        "services shop-db",
        "statefulsets shop-db",
    ];
    Made::new("db", Some(DATABASE)).lives("shop-db", &children, is_ready, &edit);
}

#[test]
fn operator_made_of_a_chart_of_workers_lives_and_leaves_nothing() {
    let edit = Edit {
        from: "minAvailable: 1",
        to: "minAvailable: 2",
        child: ("policy/v1", "poddisruptionbudgets", "mail-worker"),
        pointer: "/spec/minAvailable",
        value: json!(2),
    };
    let children = [
        "cronjobs mail-digest",
        "daemonsets mail-agent",
        "deployments mail-worker",
        "horizontalpodautoscalers mail-worker",
        "ingresses mail-web",
        "jobs mail-index",
        "networkpolicies mail-worker",
        "poddisruptionbudgets mail-worker",
    ];
    Made::new("mail", Some(WORKERS)).lives("mail", &children, is_ready, &edit);
}

/// The YAML of the README that begins so.
fn from_readme(lab: &Lab, beginning: &str) -> String {
    let blocks = README.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut block = blocks.filter(|block| block.starts_with(beginning));
    block.next().expect("the README has it").replace("example.com/v1", &lab.api_version())
}

#[test]
fn website_of_the_readme_lives_and_leaves_nothing() {
    let lab = Lab::bare("made-readme");
    lab.define_kind(&lab.kind("websites", "Website"));
    let folder = lab.folder.path();
    fs::create_dir_all(folder.join("hooks/website")).unwrap();
    let example = json!({
        "apiVersion": lab.api_version(), "kind": "Website", "metadata": {"name": "blog"},
        "spec": {"image": "nginx:1.29", "resources": {"requests": {"cpu": "10m"}}},
    });
    // The label is the lab's, whose controllers look at no other.
    let definition = from_readme(&lab, "apiVersion: metacontroller.k8s.io/v1alpha1\n");
    fs::write(folder.join("controllers.yaml"), definition).unwrap();
    fs::write(folder.join("hooks/website/sync.yaml"), from_readme(&lab, "apiVersion: apps/v1\n")).unwrap();
    fs::write(folder.join("hooks/website/example.yaml"), example.to_string()).unwrap();
    let edit = Edit {
        from: "default(2)",
        to: "default(3)",
        child: ("apps/v1", "deployments", "blog"),
        pointer: "/status/readyReplicas",
        value: json!(3),
    };
    let made = Made::of(lab, "website");
    made.lives("blog", &["deployments blog"], |parent| parent["status"]["ready"] == 2, &edit);
}
