//! The pages about the hooks, and the end of the program.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, reply};

const FILES: [(&str, &str); 2] = [
    ("a/sync.yaml", "status: {phase: {{ parent.spec.phase }}}\n"),
    ("b/customize.yaml", "relatedResources: []\n"),
];

#[test]
fn the_index_lists_the_calls_with_their_last_error() {
    let server = Server::start(&FILES);
    let listed =
        "POST a parent or a request, JSON or YAML, to one of these:\n\n  /a/sync\n\n  /b/customize\n";
    assert_eq!(server.get("/").body, listed);
    assert_eq!(server.call("/a/sync", &json!({"parent": {}})).status, 422);
    let text = server.get("/").body;
    assert!(text.contains("  /a/sync\n    last error, 20"), "{text}");
    let request =
        server.client.get(format!("http://{}/", server.address)).header("Accept", "application/json");
    let index: Value = serde_json::from_str(&reply(request.send()).body).unwrap();
    let error = index["hooks"]["a"]["calls"]["sync"]["lastError"]["message"].as_str().unwrap();
    assert!(error.starts_with("hooks/a/sync.yaml:1:"), "{error}");
    assert_eq!(index["hooks"]["b"]["calls"], json!({"customize": {"lastError": null}}));
}

#[test]
fn the_same_error_is_logged_once() {
    let server = Server::start(&FILES);
    for _ in 0..3 {
        assert_eq!(server.call("/a/sync", &json!({"parent": {}})).status, 422);
    }
    assert_eq!(server.call("/b/customize", &json!([])).status, 400);
    server.logged_where("call not answered", |line| line["hook"] == "b");
    assert_eq!(server.lines("call not answered").len(), 2);
}

#[test]
fn metrics_count_calls_by_how_they_ended() {
    let server = Server::start(&FILES);
    for (path, parent) in [("/b/customize", json!({})), ("/b/customize", json!({})), ("/a/sync", json!({}))] {
        server.call(path, &json!({"parent": parent}));
    }
    server.call("/b/customize", &json!([]));
    let text = server.get("/metrics").body;
    for line in [
        "syncwright_renders_total{hook=\"a\",call=\"sync\",outcome=\"fault\"} 1",
        "syncwright_renders_total{hook=\"b\",call=\"customize\",outcome=\"answered\"} 2",
        "syncwright_renders_total{hook=\"b\",call=\"customize\",outcome=\"malformed\"} 1",
        "syncwright_render_duration_seconds_count{hook=\"b\",call=\"customize\"} 3",
        "syncwright_hook_rejected{hook=\"a\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
}

#[test]
fn a_wrong_method_is_told_the_right_one() {
    let server = Server::start(&FILES);
    let response = server.client.put(format!("http://{}/a/sync", server.address)).send().unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"POST".parse().unwrap()));
    let response = server.post("/metrics").send().unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"GET".parse().unwrap()));
}

#[test]
fn an_empty_folder_is_not_ready() {
    let server = Server::start(&[]);
    let ready = server.get("/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, "not ready: the hooks folder holds no hook\n"));
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn a_call_under_way_ends_before_the_program_does() {
    let mut server = Server::start(&FILES);
    let body = "{\"parent\": {\"spec\": {\"phase\": \"x\"}}}";
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /a/sync HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read(&mut stream), "HTTP/1.1 100 Continue\r\n\r\n");
    server.terminate();
    server.logged("stopping");
    stream.write_all(body.as_bytes()).unwrap();
    let answer = read(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn an_idle_connection_does_not_hold_up_the_end() {
    let mut server = Server::start(&FILES);
    assert_eq!(server.get("/healthz").status, 200);
    let began = Instant::now();
    server.terminate();
    assert_eq!(server.exit_code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

fn read(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 4096];
    let length = stream.read(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}
