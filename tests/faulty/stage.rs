//! What every test here needs: a fake API server, a hook, and the built binary between them.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use controlplane::wait_until;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::apiserver::ApiServer;
use crate::controller::Controller;
use crate::hook::Hook;

/// Within this time everything is right again, once nothing is in the way.
pub const SOON: Duration = Duration::from_secs(15);
/// So long without a write counts as the end of it.
const QUIET: Duration = Duration::from_millis(500);

/// The kinds of most tests: a parent, and one built-in child kind.
pub const THINGS: (&str, &str, &str, bool) = ("demo.io/v1", "Thing", "things", true);
pub const MAPS: (&str, &str, &str, bool) = ("v1", "ConfigMap", "configmaps", false);

pub struct Stage {
    pub server: ApiServer,
    pub hook: Hook,
    folder: TempDir,
    runs: AtomicU32,
}

/// Runs the same for each of some variants, all at once: most of such a run is waiting.
pub fn side_by_side<T: Send>(variants: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    let run = &run;
    std::thread::scope(|scope| {
        for variant in variants {
            scope.spawn(move || run(variant));
        }
    });
}

impl Stage {
    pub fn new(kinds: &[(&str, &str, &str, bool)]) -> Stage {
        let folder = TempDir::new().expect("a folder of its own");
        let stage =
            Stage { server: ApiServer::start(kinds), hook: Hook::start(), folder, runs: AtomicU32::new(0) };
        fs::write(stage.folder.path().join("kubeconfig"), stage.server.kubeconfig()).expect("written");
        stage.define(&[stage.definition("things", "demo.io/v1/things", &["v1/configmaps"])]);
        stage
    }

    /// A stage with things that have ConfigMaps.
    pub fn usual() -> Stage {
        Stage::new(&[THINGS, MAPS])
    }

    /// A CompositeController whose children are changed in place. Kinds are `apiVersion/plural`.
    pub fn definition(&self, name: &str, parent: &str, children: &[&str]) -> Value {
        let resource = |text: &str| {
            let (api_version, plural) = text.rsplit_once('/').expect("apiVersion/plural");
            json!({"apiVersion": api_version, "resource": plural})
        };
        let child = |text: &&str| {
            let mut rule = resource(text);
            rule["updateStrategy"] = json!({"method": "InPlace"});
            rule
        };
        json!({
            "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
            "metadata": {"name": name},
            "spec": {
                "generateSelector": true,
                "parentResource": resource(parent),
                "childResources": children.iter().map(child).collect::<Vec<_>>(),
                "hooks": {"sync": {"webhook": {"url": self.hook.url(), "timeout": "60s"}}},
            },
        })
    }

    /// Writes the definitions that controllers run, also those that run already.
    pub fn define(&self, definitions: &[Value]) {
        let text: Vec<String> = definitions.iter().map(Value::to_string).collect();
        fs::write(self.folder.path().join("controllers.yaml"), text.join("\n---\n")).expect("written");
    }

    /// Starts the controller.
    pub fn run(&self, flags: &[&str]) -> Controller {
        let log = format!("log-{}", self.runs.fetch_add(1, Ordering::Relaxed));
        let mut arguments = vec!["--controllers", "controllers.yaml", "--kubeconfig", "kubeconfig"];
        // The last of two counts: tests of the limit set it.
        arguments.push("--client-go-qps=-1");
        if !self.folder.path().join("hooks").exists() {
            arguments.extend(["--hook-url", "http://127.0.0.1:9"]);
        }
        arguments.extend(flags);
        Controller::start(self.folder.path(), &log, &arguments, &[])
    }

    /// Writes a template of a hook that answers in the controller's own process.
    pub fn template(&self, path: &str, text: &str) {
        let path = self.folder.path().join("hooks").join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder is ours");
        fs::write(path, text).expect("written");
    }

    pub fn thing(&self, name: &str, size: u64, value: &str) -> Value {
        let object = json!({
            "metadata": {"namespace": "shop", "name": name}, "spec": {"size": size, "value": value},
        });
        self.server.create("things", object)
    }

    pub fn set_value(&self, thing: &str, value: &str) {
        self.server.edit("things", thing, |thing| thing["spec"]["value"] = json!(value));
    }

    /// What is still wrong with a thing and its maps.
    pub fn check(&self, thing: &str) -> Result<(), String> {
        self.server.look(|objects| {
            let Some(parent) = objects.find("things", thing) else { return Err(format!("no {thing}")) };
            let (spec, status, metadata) = (&parent["spec"], &parent["status"], &parent["metadata"]);
            let maps = objects.beginning_with("configmaps", &format!("{thing}-"));
            let ours = |map: &&Value| map.pointer("/metadata/ownerReferences/0/uid") == metadata.get("uid");
            let maps: Vec<&Value> = maps.into_iter().filter(ours).collect();
            let right = maps.iter().filter(|map| map["data"]["value"] == spec["value"]).count();
            let done = spec["size"] == right
                && spec["size"] == maps.len()
                && status["maps"] == spec["size"]
                && status["value"] == spec["value"]
                && status["observedGeneration"] == metadata["generation"]
                && status.get("conditions").is_none();
            if done { Ok(()) } else { Err(format!("{right} of {} maps right for {parent}", maps.len())) }
        })
    }

    /// Waits until a thing has its maps and says so.
    #[track_caller]
    pub fn settles(&self, thing: &str) {
        self.until(&format!("{thing} is as it should be"), || self.check(thing));
    }

    #[track_caller]
    pub fn until<T, S: std::fmt::Display>(&self, what: &str, look: impl FnMut() -> Result<T, S>) -> T {
        wait_until(SOON, what, look)
    }

    #[track_caller]
    pub fn until_true(&self, what: &str, mut look: impl FnMut() -> bool) {
        self.until(what, || if look() { Ok(()) } else { Err("not so") });
    }

    /// Waits until nothing has been written for a while.
    #[track_caller]
    pub fn becomes_quiet(&self) {
        let mut last = (usize::MAX, Instant::now());
        self.until("no more is written", || {
            let writes = self.server.traffic().count(|request| request.is_write());
            if writes != last.0 {
                last = (writes, Instant::now());
            }
            if last.1.elapsed() >= QUIET { Ok(()) } else { Err(format!("{writes} writes")) }
        });
    }
}
