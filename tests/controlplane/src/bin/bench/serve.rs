//! How many sync calls of a MySQL with three children `syncwright serve` answers, beside a server that does nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, io, thread};

use controlplane::spawn_tied;
use serde_json::{Value, json};

use crate::load::{self, Outcome};
use crate::parents::mysql;
use crate::root;

pub const PATH: &str = "/mysql/sync";
const CONNECTIONS: [usize; 3] = [1, 8, 32];
/// Before anything is counted.
const WARM_UP: Duration = Duration::from_secs(2);

/// The service under load. It is killed when it is dropped.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn measure(program: &Path, seconds: usize) -> Result<(), String> {
    let time = Duration::from_secs(seconds as u64);
    let server = Server::start(program)?;
    let failed = |error: io::Error| format!("{}: {error}", server.address);
    let request = request(&server.address).map_err(failed)?;
    let answer = load::ask(&server.address, PATH, &request).map_err(failed)?;
    let floor = load::echo(&answer).map_err(|error| format!("the floor: {error}"))?;
    println!("A request of {} bytes, an answer of {}\n", request.len(), answer.len());
    println!(
        "| connections | requests/s | p50, ms | p99, ms | CPU of the service, ms | bare loopback, requests/s | ratio |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    load::post(&server.address, PATH, &request, 8, WARM_UP).map_err(failed)?;
    for connections in CONNECTIONS {
        let before = server.cpu();
        let ours = load::post(&server.address, PATH, &request, connections, time).map_err(failed)?;
        let cpu = (server.cpu() - before) * 1e3 / ours.requests as f64;
        let bare = load::post(&floor, PATH, &request, connections, time);
        let bare = bare.map_err(|error| format!("the floor: {error}"))?;
        print(connections, &ours, &bare, cpu);
    }
    Ok(())
}

fn print(connections: usize, ours: &Outcome, bare: &Outcome, cpu: f64) {
    println!(
        "| {connections} | {:.0} | {:.2} | {:.2} | {cpu:.2} | {:.0} | {:.2} |",
        ours.rate(),
        ours.milliseconds(0.5),
        ours.milliseconds(0.99),
        bare.rate(),
        ours.rate() / bare.rate(),
    );
}

impl Server {
    pub fn start(program: &Path) -> Result<Server, String> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--hooks"]).arg(root().join("hooks"));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            spawn_tied(command).map_err(|error| format!("starting {}: {error}", program.display()))?;
        let mut log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut told = String::new();
        let address = loop {
            let mut line = String::new();
            if log.read_line(&mut line).unwrap_or(0) == 0 {
                return Err(format!("it never listened:\n{told}"));
            }
            if let Some((_, port)) = line.split_once("127.0.0.1:") {
                let port: String = port.chars().take_while(char::is_ascii_digit).collect();
                break format!("127.0.0.1:{port}");
            }
            told.push_str(&line);
        };
        // Nobody else reads what it logs, and it is not to wait for that.
        thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        Ok(Server { child, address })
    }

    /// The seconds of CPU that it has taken so far.
    fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
        // The kernel tells of hundredths of a second, whatever it counts in.
        ticks.sum::<f64>() / 100.0
    }
}

/// What a controller asks when the children are there as the hook wanted them.
pub fn request(address: &str) -> io::Result<String> {
    let mut parent = mysql(0);
    let uid = "6f1c5b5e-5a37-4d5c-8a2e-0d1f0a9c1b11";
    for (field, value) in [
        ("namespace", json!("shop")),
        ("uid", json!(uid)),
        ("generation", json!(1)),
        ("resourceVersion", json!("1201")),
        ("creationTimestamp", json!("2026-01-01T00:00:00Z")),
    ] {
        parent["metadata"][field] = value;
    }
    let groups =
        ["Secret.v1", "ConfigMap.v1", "Service.v1", "StatefulSet.apps/v1", "PersistentVolumeClaim.v1"];
    let mut children: Value = groups.into_iter().map(|group| (group.to_string(), json!({}))).collect();
    let request = |children: &Value| {
        json!({
            "controller": {"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
                           "metadata": {"name": "mysql"}},
            "parent": parent, "children": children, "related": {}, "finalizing": false,
        })
        .to_string()
    };
    let answer: Value = serde_json::from_str(&load::ask(address, PATH, &request(&children))?)?;
    let wanted = answer["children"].as_array().cloned().unwrap_or_default();
    if wanted.len() != 3 {
        return Err(io::Error::other(format!("not three children: {answer}")));
    }
    for (number, child) in wanted.into_iter().enumerate() {
        let (group, name) = place(&child);
        children[group][name] = observed(child, number, uid);
    }
    Ok(request(&children))
}

fn place(child: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    (format!("{}.{}", text(&child["kind"]), text(&child["apiVersion"])), text(&child["metadata"]["name"]))
}

/// A child as the API server has it.
fn observed(mut child: Value, number: usize, parent: &str) -> Value {
    let is_set = child["kind"] == "StatefulSet";
    let metadata = &mut child["metadata"];
    metadata["namespace"] = json!("shop");
    metadata["uid"] = json!(format!("0b7f4c1e-1f0a-4c5b-9c1d-00000000000{number}"));
    metadata["resourceVersion"] = json!(format!("121{number}"));
    metadata["creationTimestamp"] = json!("2026-01-01T00:00:01Z");
    metadata["labels"]["controller-uid"] = json!(parent);
    metadata["ownerReferences"] = json!([{
        "apiVersion": "database.example.com/v1", "kind": "MySQL", "name": "m-00000", "uid": parent,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    if is_set {
        metadata["generation"] = json!(1);
        child["status"] = json!({
            "observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2,
            "availableReplicas": 2, "currentRevision": "m-1", "updateRevision": "m-1", "collisionCount": 0,
        });
    }
    child
}
