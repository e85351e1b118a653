//! Hooks as most users write them: Python's `http.server`, one thread, HTTP/1.0.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use controlplane::spawn_tied;
use serde_json::{Value, json};

use crate::support::lab::Lab;
use crate::support::plain::{PlainServer, dumped};

/// What users have: no more than a hook needs.
const PYTHON_HOOK: &str = r#"
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

class Controller(BaseHTTPRequestHandler):
    def sync(self, parent, children):
        name = parent["metadata"]["name"]
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": parent["spec"]}
        return {"status": {"children": len(children["ConfigMap.v1"])}, "children": [child]}

    def do_POST(self):
        observed = json.loads(self.rfile.read(int(self.headers.get("content-length"))))
        desired = self.sync(observed["parent"], observed["children"])
        self.send_response(200)
        self.send_header("Content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(desired).encode())

server = HTTPServer(("127.0.0.1", 0), Controller)
with open("port.part", "w") as file:
    file.write(str(server.server_port))
import os
os.rename("port.part", "port")
server.serve_forever()
"#;

/// The same hook without Python.
fn counted(_path: &str, request: &Value) -> Option<Value> {
    let parent = &request["parent"];
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": parent["metadata"]["name"]},
        "data": parent["spec"],
    });
    let count = request["children"]["ConfigMap.v1"].as_object()?.len();
    Some(json!({"status": {"children": count}, "children": [child]}))
}

/// The hook in Python, where there is one, with its port.
fn python(lab: &Lab) -> Option<(Child, u16)> {
    fs::write(lab.folder.path().join("hook.py"), PYTHON_HOOK).unwrap();
    let log = fs::File::create(lab.folder.path().join("hook.log")).unwrap();
    let mut command = Command::new("python3");
    command.arg("hook.py").current_dir(lab.folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let server = spawn_tied(command).ok()?;
    let port = || fs::read_to_string(lab.folder.path().join("port")).ok()?.parse().ok();
    lab.wait_until("the Python hook listens", || port().is_some());
    Some((server, port()?))
}

/// All that a server sends until it closes the connection.
fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it ends the connection in order");
    answer
}

/// An answer but for the moment and the version of Python.
fn timeless(answer: &str) -> Vec<&str> {
    let varies =
        |line: &&str| !line.starts_with("Date: ") && !line.starts_with("Server: BaseHTTP/0.6 Python/3");
    answer.split("\r\n").filter(varies).collect()
}

// Python answers where there is one. Without it, the stand-in does, so that the test is the same everywhere.
#[test]
fn plain_python_server_serves_many_parents() {
    let lab = Lab::new("python");
    let stand_in = PlainServer::start(counted);
    let python = python(&lab);
    let port = python.as_ref().map_or(stand_in.port, |(_, port)| *port);
    let webhook = json!({"webhook": {"url": format!("http://127.0.0.1:{port}/sync")}});
    let _controller = lab.run(&lab.definition().config_maps().with("/spec/hooks/sync", webhook));
    for number in 0..20 {
        lab.add_thing(
            &format!("t{number}"),
            json!({"number": number.to_string(), "text": "ü\u{2028}😀\u{7f}"}),
        );
    }
    for number in 0..20 {
        lab.wait(&lab.thing(&format!("t{number}")), "its child is counted", |thing| {
            thing["status"]["children"] == 1
        });
        let child = lab.get(&lab.config_map(&format!("t{number}")));
        assert_eq!(child["data"]["number"], number.to_string());
        assert_eq!(child["data"]["text"], "ü\u{2028}😀\u{7f}");
    }
    if let Some((mut server, port)) = python {
        let body = json!({
            "parent": {"metadata": {"name": "ü\u{2028}😀\u{7f}\"\\\n"}, "spec": {"a": [1.5, null, true, {}, []]}},
            "children": {"ConfigMap.v1": {"a": {}}},
        });
        let body = body.to_string();
        let length = body.len();
        for request in [
            format!("POST /sync HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"),
            format!("POST /sync HTTP/1.1\r\nHost: a\r\ncontent-length: {length}\r\n\r\n{body}"),
            "POST /sync HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        ] {
            let answer = exchange(port, &request);
            assert_eq!(timeless(&exchange(stand_in.port, &request)), timeless(&answer), "{request}");
        }
        server.kill().expect("it runs until here");
        server.wait().expect("it was started here");
    }
}

#[test]
fn server_of_one_thread_that_fails_at_first_is_asked_by_many_workers_until_it_answers() {
    let lab = Lab::new("onethread");
    let seen = Mutex::new(HashMap::<String, u32>::new());
    let server = PlainServer::start(move |path, request| {
        if path == "/finalize" {
            return Some(json!({"children": [], "finalized": true}));
        }
        let name = request["parent"]["metadata"]["name"].as_str()?.to_owned();
        let mut seen = seen.lock().unwrap();
        let times = seen.entry(name).or_default();
        *times += 1;
        let mut answer = counted(path, request)?;
        answer["children"][0]["data"]["long"] = json!("x".repeat(300_000));
        (*times > 1).then_some(answer)
    });
    let webhook = |call: &str| json!({"webhook": {"url": format!("http://127.0.0.1:{}/{call}", server.port), "timeout": "20s"}});
    let definition = lab.definition().config_maps().with("/spec/hooks/sync", webhook("sync"));
    lab.write_definitions(&[&definition.with("/spec/hooks/finalize", webhook("finalize"))]);
    let _controller = lab.start(&["--workers", "16"]);
    for number in 0..40 {
        lab.add_thing(&format!("t{number}"), json!({"number": number.to_string()}));
    }
    for number in 0..40 {
        let thing = lab.thing(&format!("t{number}"));
        lab.wait(&thing, "its child is counted", |thing| {
            thing["status"] == json!({"children": 1, "observedGeneration": 1})
        });
        lab.plane.delete(&thing);
        lab.wait_gone(&thing);
    }
    // Two calls to make a parent's child and see it, the one that failed, and one to finalize.
    let calls = server.connections();
    assert!((40 * 4..=40 * 6).contains(&calls), "a connection for each call and no other: {calls}");
}

#[test]
fn stand_in_prints_json_as_python_does() {
    let value = json!({"a": ["ü\u{2028}", 1.0, 10, -0.5, null, true, "\u{7f}\"\\/\n\u{1}"], "b": {}, "c": [], "e": "😀"});
    assert_eq!(
        dumped(&value),
        r#"{"a": ["\u00fc\u2028", 1.0, 10, -0.5, null, true, "\u007f\"\\/\n\u0001"], "b": {}, "c": [], "e": "\ud83d\ude00"}"#
    );
}
