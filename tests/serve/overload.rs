//! What nobody's hook or body may do to the others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Server, reply};

const QUICK: &str = "children: []\n";

#[test]
fn a_body_that_is_too_large_is_a_413() {
    let server = Server::start_with(&[("a/sync.yaml", QUICK)], &["--max-body-bytes", "1024"]);
    let body = |length: usize| "a".repeat(length);
    let refused = reply(server.post("/a/sync").header("User-Agent", "curl/8").body(body(1025)).send());
    assert_eq!(refused.status, 413);
    assert_eq!(refused.body, "the body has more than 1024 bytes\nhint: raise it with --max-body-bytes\n");
    assert_eq!(server.curl("/a/sync", body(1024)).status, 400);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"POST /a/sync HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    for _ in 0..2 {
        write!(stream, "258\r\n{}\r\n", body(600)).unwrap();
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[test]
fn a_compressed_body_is_refused_by_name() {
    let server = Server::start(&[("a/sync.yaml", QUICK)]);
    let refused = reply(server.post("/a/sync").header("Content-Encoding", "gzip").body("x").send());
    assert_eq!(refused.status, 415, "{refused:?}");
}

#[test]
fn hostile_bodies_are_refused_soon() {
    let server = Server::start(&[("a/sync.yaml", QUICK)]);
    let wide = |n: usize| vec![format!("*l{}", n - 1); 9].join(",");
    let bomb: String = std::iter::once("l0: &l0 x\n".to_string())
        .chain((1..=9).map(|n| format!("l{n}: &l{n} [{}]\n", wide(n))))
        .collect();
    let bodies = [
        "[".repeat(200_000),
        "{\"a\":".repeat(200_000),
        "a: ".repeat(100_000),
        bomb,
        "apiVersion: v1\nkind: A\nkind: B\n".into(),
        "\u{0}\u{1}\u{2}".into(),
    ];
    for body in bodies {
        let began = Instant::now();
        let start: String = body.chars().take(40).collect();
        assert_eq!(server.curl("/a/sync", body).status, 400, "{start}");
        assert!(began.elapsed() < Duration::from_secs(2), "{start}");
    }
    assert_eq!(server.call("/a/sync", &json!({"parent": {}})).status, 200);
}

#[test]
fn a_template_without_an_end_meets_its_budget_and_holds_up_no_page() {
    let endless = "{% for x in range(10000) %}{% for y in range(10000) %}a{% endfor %}{% endfor %}\n";
    let server = Server::start(&[("a/sync.yaml", endless), ("b/sync.yaml", QUICK)]);
    let began = Instant::now();
    thread::scope(|scope| {
        let calls: Vec<_> =
            (0..8).map(|_| scope.spawn(|| server.call("/a/sync", &json!({"parent": {}})))).collect();
        assert_eq!(server.get("/healthz").status, 200);
        for call in calls {
            let reply = call.join().unwrap();
            assert_eq!(reply.status, 422, "{reply:?}");
        }
    });
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(server.call("/b/sync", &json!({"parent": {}})).status, 200);
}

#[test]
fn a_caller_that_sends_nothing_holds_up_nobody() {
    let server = Server::start(&[("a/sync.yaml", QUICK)]);
    let idle: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(b"POST /a/sync HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{").unwrap();
            stream
        })
        .collect();
    assert_eq!(server.call("/a/sync", &json!({"parent": {}})).status, 200);
    drop(idle);
}

#[test]
fn more_calls_than_can_wait_are_asked_to_come_later() {
    // The memory for bodies holds four of the largest size.
    let server = Server::start_with(&[("a/sync.yaml", QUICK)], &["--max-body-bytes", "4096"]);
    let announce = || {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = "POST /a/sync HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4096\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    };
    let _announced: Vec<TcpStream> = (0..20).map(|_| announce()).collect();
    let call = || server.post("/a/sync").body("{\"parent\": {}}").send().unwrap();
    assert_eq!(call().status(), 200, "what was only announced takes no memory");

    let mut held = Vec::new();
    controlplane::wait_until(Duration::from_secs(5), "no memory is left", || {
        // One that comes while a call has its part of the memory is refused itself.
        let mut stream = announce();
        stream.write_all(&[b' '; 4095]).unwrap();
        held.push(stream);
        let response = call();
        let said = (response.status().as_u16(), response.headers().get("retry-after").cloned());
        if said == (429, Some("1".parse().unwrap())) { Ok(()) } else { Err(format!("{said:?}")) }
    });
    drop(held);
    controlplane::wait_until(Duration::from_secs(5), "calls are answered again", || {
        let status = server.call("/a/sync", &json!({"parent": {}})).status;
        if status == 200 { Ok(()) } else { Err(status) }
    });
}

#[test]
fn many_callers_are_served_at_once() {
    let server = Server::start(&[("a/sync.yaml", "status: {name: {{ parent.metadata.name }}}\n")]);
    thread::scope(|scope| {
        for caller in 0..16 {
            let server = &server;
            scope.spawn(move || {
                for call in 0..50 {
                    let name = format!("{caller}-{call}");
                    let request = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": name}});
                    let reply = server.call("/a/sync", &request);
                    let answer: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
                    assert_eq!((reply.status, answer["status"]["name"].as_str()), (200, Some(name.as_str())));
                }
            });
        }
    });
}
