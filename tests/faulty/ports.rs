//! The ports of metrics and probes, while somebody holds connections there.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use controlplane::wait_until;

use crate::controller::Controller;
use crate::stage::{SOON, Stage};

/// Longer than any limit that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than there are places on either port.
const MANY: usize = 150;
const PROBE: &str = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";

fn address(controller: &Controller, what: &str) -> String {
    let port = wait_until(SOON, "it says where it is", || {
        let log = controller.log();
        let line = log.lines().find(|line| line.contains(&format!("serving {what}")));
        let port = line.and_then(|line| line.split("127.0.0.1:").nth(1));
        port.map(|port| port.chars().take_while(char::is_ascii_digit).collect::<String>()).ok_or(log)
    });
    format!("127.0.0.1:{port}")
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the port is open");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What a kubelet does, which has a connection of its own for each probe.
fn probe(address: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(PROBE.replace("Host: x", "Host: x\r\nConnection: close").as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap_or_else(|error| panic!("{error}: {said}"));
    said
}

#[track_caller]
fn is_ready(address: &str) {
    wait_until(SOON, "it is ready", || {
        let said = probe(address);
        if said.starts_with("HTTP/1.1 200 OK\r\n") { Ok(()) } else { Err(said) }
    });
}

const ANY_PORTS: [&str; 4] =
    ["--metrics-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"];

#[test]
fn probes_are_answered_whoever_holds_connections() {
    let stage = Stage::usual();
    let controller = stage.run(&ANY_PORTS);
    let (metrics, probes) = (address(&controller, "metrics"), address(&controller, "probes"));
    is_ready(&probes);
    let mut held = Vec::new();
    for number in 0..MANY {
        held.push(connect(&metrics));
        let mut deaf = connect(&metrics);
        deaf.write_all("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(10).as_bytes()).unwrap();
        held.extend([deaf, connect(&probes)]);
        if number % 50 == 49 {
            assert!(probe(&probes).starts_with("HTTP/1.1 200 OK\r\n"));
        }
    }
    assert!(probe(&metrics).starts_with("HTTP/1.1 404 Not Found\r\n"), "the other port answers, too");
    drop(held);
}

#[test]
fn a_caller_that_goes_silent_after_an_answer_is_let_go() {
    let stage = Stage::usual();
    let controller = stage.run(&ANY_PORTS);
    let probes = address(&controller, "probes");
    is_ready(&probes);
    let seconds = ["", "GET /readyz HTT", "GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: a"];
    let silent = seconds.map(|second| {
        let mut stream = connect(&probes);
        stream.write_all(PROBE.as_bytes()).unwrap();
        let mut said = [0; 15];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200 OK");
        stream.write_all(second.as_bytes()).unwrap();
        stream
    });
    for (mut stream, second) in silent.into_iter().zip(seconds) {
        match stream.read_to_end(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "after `{second}`"),
        }
    }
}

#[test]
fn a_caller_that_reads_no_answers_is_let_go() {
    let stage = Stage::usual();
    let controller = stage.run(&ANY_PORTS);
    let metrics = address(&controller, "metrics");
    let mut deaf = connect(&metrics);
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let many = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    let error = wait_until(PATIENCE, "what is written has nobody to read it", || {
        match deaf.write_all(many.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Ok(error.kind()),
            other => Err(format!("{other:?}")),
        }
    });
    assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert!(probe(&metrics).starts_with("HTTP/1.1 404 Not Found\r\n"));
}
