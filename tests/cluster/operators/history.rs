//! Every state that an object goes through, from the API server's watch: a look now and then would miss some.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use controlplane::{ControlPlane, spawn_tied, wait_until};
use serde_json::Value;

use crate::support::lab::SOON;

pub struct History {
    kubectl: Child,
    states: Arc<Mutex<Vec<Value>>>,
}

impl History {
    /// Follows the objects of a collection from now on.
    pub fn of(plane: &ControlPlane, collection: &str) -> History {
        let mut command = plane.kubectl();
        // The end of what was there at the start is marked by a bookmark.
        let query =
            "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
        command.args(["get", "--raw", &format!("{collection}?{query}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut kubectl = spawn_tied(command).expect("kubectl starts");
        let lines = BufReader::new(kubectl.stdout.take().expect("its output is piped")).lines();
        let states = Arc::<Mutex<Vec<Value>>>::default();
        let seen = states.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                seen.lock().unwrap().push(event);
            }
        });
        let history = History { kubectl, states };
        wait_until(SOON, "the watch has begun", || {
            let begun = history.states.lock().unwrap().iter().any(|event| event["type"] == "BOOKMARK");
            if begun { Ok(()) } else { Err("no bookmark yet") }
        });
        history
    }

    /// What `look` finds in one object's states, without repetitions in a row.
    pub fn told<T: PartialEq>(&self, name: &str, look: impl Fn(&Value) -> T) -> Vec<T> {
        let states = self.states.lock().unwrap();
        let objects = states.iter().map(|event| &event["object"]);
        let mut told: Vec<T> = objects.filter(|it| it["metadata"]["name"] == name).map(look).collect();
        told.dedup();
        told
    }

    /// The uids and names of all objects that were there at any time.
    pub fn objects(&self) -> Vec<(String, String)> {
        let states = self.states.lock().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |event: &Value| {
            let metadata = &event["object"]["metadata"];
            (text(&metadata["name"]), text(&metadata["uid"]))
        };
        let changes = states.iter().filter(|event| event["type"] != "BOOKMARK");
        let mut objects: Vec<_> = changes.map(of).collect();
        objects.sort();
        objects.dedup();
        objects
    }
}

impl Drop for History {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}
