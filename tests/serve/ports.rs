//! What strangers may do to a port, and what they may not do to those who call there in earnest.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use controlplane::wait_until;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;

use crate::server::{Server, reply};

const FILES: [(&str, &str); 2] =
    [("a/sync.yaml", "status: {name: {{ parent.metadata.name }}}\n"), ("a/validate.yaml", "errors: []\n")];
/// Longer than any limit that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than there are places on any port.
const MANY: usize = 2000;

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the port is open");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Everything that is said until the connection is closed.
#[track_caller]
fn said_until_closed(stream: &mut impl Read) -> String {
    let mut said = Vec::new();
    // TLS tells whether the end was said, too.
    let closed = [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof];
    match stream.read_to_end(&mut said) {
        Err(error) if !closed.contains(&error.kind()) => panic!("it is not closed: {error}"),
        _ => String::from_utf8_lossy(&said).into_owned(),
    }
}

fn call(name: &str) -> String {
    let body = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": name}}).to_string();
    let length = body.len();
    format!(
        "POST /a/sync HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// By a connection of its own, as a new caller has it.
#[track_caller]
fn is_answered(address: &str) {
    let mut stream = connect(address);
    stream.write_all(call("somebody").replace("Host: x", "Host: x\r\nConnection: close").as_bytes()).unwrap();
    let said = said_until_closed(&mut stream);
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains("\"name\":\"somebody\""), "{said}");
}

/// A service with a port of TLS, too.
struct Secured {
    server: Server,
    address: String,
    client: Arc<ClientConfig>,
    _files: tempfile::TempDir,
}

impl Secured {
    fn start() -> Secured {
        let files = tempfile::tempdir().unwrap();
        let (certificate, key) = (files.path().join("tls.crt"), files.path().join("tls.key"));
        let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let flags = ["--webhook-listen", ":0", "--tls-cert", certificate.to_str().unwrap()];
        let server =
            Server::start_with(&FILES, &[&flags[..], &["--tls-key", key.to_str().unwrap()]].concat());
        let listening = server.logged("listening for the API server");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let client = Arc::new(client.with_root_certificates(roots).with_no_client_auth());
        let port = listening["address"].as_str().and_then(|address| address.rsplit_once(':')).unwrap().1;
        Secured { server, address: format!("127.0.0.1:{port}"), client, _files: files }
    }

    fn shake_hands(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = StreamOwned::new(
            ClientConnection::new(self.client.clone(), name).unwrap(),
            connect(&self.address),
        );
        stream.conn.complete_io(&mut stream.sock).expect("hands are shaken");
        stream
    }

    #[track_caller]
    fn is_answered(&self) {
        let mut stream = self.shake_hands();
        stream
            .write_all(call("somebody").replace("Host: x", "Host: x\r\nConnection: close").as_bytes())
            .unwrap();
        let said = said_until_closed(&mut stream);
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    }
}

#[test]
fn a_port_of_every_address_hears_ipv4_and_ipv6() {
    let mut secured = Secured::start();
    secured.is_answered();
    let listening = secured.server.logged("listening for the API server");
    let address = listening["address"].as_str().unwrap();
    if TcpListener::bind("[::1]:0").is_ok() {
        assert!(address.starts_with("[::]:"), "{address}");
        secured.address = secured.address.replace("127.0.0.1", "[::1]");
        secured.is_answered();
    } else {
        assert!(address.starts_with("0.0.0.0:"), "{address}");
    }
}

#[test]
fn a_head_that_does_not_end_is_not_waited_for() {
    let server = Server::start(&FILES);
    let mut slow = connect(&server.address);
    slow.write_all(b"POST /a/sync HTTP/1.1\r\nHost: x\r\nX-Slow:").unwrap();
    let mut silent = connect(&server.address);
    let said = said_until_closed(&mut slow);
    assert!(said.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{said}");
    said_until_closed(&mut silent);
    is_answered(&server.address);
}

#[test]
fn a_handshake_that_does_not_end_is_not_waited_for() {
    let secured = Secured::start();
    let starts: [&[u8]; 4] = [b"", b"\x16\x03\x01\x02\x00", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n"];
    let mut strangers: Vec<TcpStream> = starts
        .iter()
        .cycle()
        .take(400)
        .map(|start| {
            let mut stream = connect(&secured.address);
            stream.write_all(start).unwrap();
            stream
        })
        .collect();
    secured.is_answered();
    for stranger in &mut strangers {
        let said = said_until_closed(stranger);
        assert!(said.len() < 20, "an alert at most: {said}");
    }
    // Whoever has shaken hands and then says nothing is one of those who wait.
    let mut silent = secured.shake_hands();
    said_until_closed(&mut silent);
    secured.is_answered();
}

#[test]
fn connections_that_are_held_open_take_no_place_from_callers() {
    let secured = Secured::start();
    let mut held = Vec::new();
    for number in 0..MANY {
        held.push(connect(&secured.server.address));
        if number % 100 == 99 {
            is_answered(&secured.server.address);
        }
    }
    for number in 0..MANY / 2 {
        held.push(secured.shake_hands().sock);
        if number % 100 == 99 {
            secured.is_answered();
        }
    }
    let full = secured.server.lines("port is full, new callers take the places of those that send nothing");
    assert!(matches!(full.len(), 1 | 2), "it is said once of each port: {full:?}");
    drop(held);
    is_answered(&secured.server.address);
    secured.is_answered();
}

#[test]
fn a_connection_in_use_outlives_those_that_are_held_open() {
    let server = Server::start(&FILES);
    let mut used = connect(&server.address);
    let mut held = Vec::new();
    for round in 0..20 {
        held.extend((0..MANY / 20).map(|_| connect(&server.address)));
        used.write_all(call(&format!("round-{round}")).as_bytes()).unwrap();
        assert!(answer(&mut used).contains(&format!("round-{round}")));
    }
}

/// One answer, as long as it says it is.
#[track_caller]
fn answer(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&said).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.and_then(|length| length.parse::<usize>().ok()).expect("a length") {
                return text;
            }
        }
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error} after {text}"));
        said.extend(byte);
    }
}

#[test]
fn heads_have_a_size() {
    let server = Server::start(&FILES);
    let status = |head: &str| {
        let mut stream = connect(&server.address);
        // It need not be read to its end.
        let _ = stream.write_all(head.as_bytes());
        said_until_closed(&mut stream).lines().next().unwrap_or_default().to_string()
    };
    let get = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n")
    };
    assert_eq!(status(&get("/healthz", &format!("X: {}\r\n", "a".repeat(60_000)))), "HTTP/1.1 200 OK");
    let too_large = "HTTP/1.1 431 Request Header Fields Too Large";
    assert_eq!(status(&get("/healthz", &format!("X: {}\r\n", "a".repeat(200_000)))), too_large);
    assert_eq!(status(&get("/healthz", &format!("X: {}", "a".repeat(200_000)))), too_large);
    assert_eq!(status(&get("/healthz", &"X: y\r\n".repeat(500))), too_large);
    assert_eq!(status(&get(&format!("/{}", "a".repeat(100_000)), "")), "HTTP/1.1 400 Bad Request");
    assert_eq!(status("\u{1}\u{2}\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    assert_eq!(status("GET / HTTP/9.9\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let twice = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(
        status(&format!("POST /a/sync HTTP/1.1\r\nHost: x\r\n{twice}\r\n0\r\n\r\n")),
        "HTTP/1.1 400 Bad Request"
    );
    is_answered(&server.address);
}

#[test]
fn a_page_repeats_no_more_of_a_request_than_a_person_reads() {
    let server = Server::start(&FILES);
    let long = "a".repeat(30_000);
    for path in [format!("/{long}"), format!("/a/b/{long}"), format!("/{long}/sync"), format!("/a/{long}")] {
        for method in ["GET", "POST", "DELETE"] {
            let url = format!("http://{}{path}", server.address);
            let request = server.client.request(method.parse().unwrap(), url).header("User-Agent", "curl/8");
            let page = reply(request.body("{\"parent\": {}}").send());
            assert!(matches!(page.status, 404 | 405), "{page:?}");
            assert!(page.body.len() < 700, "{method} {} of {}: {}", &path[..9], page.body.len(), page.body);
        }
    }
    let log: usize = server.lines("call not answered").iter().map(|line| line.to_string().len()).sum();
    assert!(log < 5_000, "{log} bytes of log");
}

#[test]
fn requests_that_come_at_once_are_answered_in_their_order() {
    let server = Server::start(&FILES);
    let mut stream = connect(&server.address);
    let calls: String = (0..100).map(|number| call(&format!("x{number}"))).collect();
    stream.write_all(calls.as_bytes()).unwrap();
    for number in 0..100 {
        let answer = answer(&mut stream);
        assert!(answer.contains(&format!("\"name\":\"x{number}\"")), "{number}: {answer}");
    }
}

#[test]
fn whoever_has_said_all_and_closes_its_half_is_answered() {
    let server = Server::start(&FILES);
    let half = |text: &str| {
        let mut stream = connect(&server.address);
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        said_until_closed(&mut stream)
    };
    let said = half(&call("whole"));
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains("\"name\":\"whole\""), "{said}");
    let cut = call("cut");
    let said = half(&cut[..cut.len() - 5]);
    assert!(said.starts_with("HTTP/1.1 400 Bad Request\r\n") && said.contains("the body"), "{said}");
    assert_eq!(half("POST /a/sync HTTP/1.1\r\nHo"), "");
    assert_eq!(half(""), "");
    is_answered(&server.address);
}

#[test]
fn heads_of_all_callers_together_fit_into_memory() {
    let server = Server::start(&FILES);
    let before = server.memory();
    let head = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(120_000));
    let held: Vec<TcpStream> = (0..MANY)
        .map(|_| {
            let mut stream = connect(&server.address);
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    is_answered(&server.address);
    let grown = server.memory().saturating_sub(before);
    println!("{grown} KiB for {} callers", held.len());
    assert!(grown < 200 << 10, "{grown} KiB for {} callers", held.len());
}

/// A few more than the service has for itself: for less callers than a port has places.
const FEW_FILES: usize = 28;

#[test]
fn a_process_without_files_waits_for_some_and_then_goes_on() {
    let server = Server::start_with_files(&FILES, &[], FEW_FILES);
    is_answered(&server.address);
    let mut held: Vec<TcpStream> = (0..FEW_FILES).map(|_| connect(&server.address)).collect();
    // Those that have a place keep it by using it, and so there is none for the others.
    let mut refused = |times: usize| {
        wait_until(PATIENCE, "there are no files for further callers", || {
            held.iter_mut().for_each(|stream| drop(stream.write_all(call("x").as_bytes())));
            let lines = server.lines_with("Too many open files");
            if lines.len() >= times { Ok(lines.len()) } else { Err(format!("{lines:#?}")) }
        })
    };
    let (first, cpu) = (refused(1), server.cpu());
    server.write("a/sync.yaml", "status: {name: {{ parent.metadata.name }}, changed: true}\n");
    let last = refused(4);
    assert!(last - first < 20, "it asks again with a pause: {first} and then {last} times");
    let spent = server.cpu() - cpu;
    assert!(spent < 100, "{spent} hundredths of a second of CPU");
    drop(held);
    is_answered(&server.address);
    wait_until(PATIENCE, "the changed template is used", || {
        let answer = server.call("/a/sync", &json!({"parent": {"metadata": {"name": "x"}}}));
        if answer.body.contains("changed") { Ok(()) } else { Err(answer.body) }
    });
}

#[test]
fn a_port_gives_away_its_own_places_before_the_process_runs_out_of_files() {
    let server = Server::start_with_files(&FILES, &[], 64);
    let held: Vec<TcpStream> = (0..500).map(|_| connect(&server.address)).collect();
    is_answered(&server.address);
    server.logged("port is full, new callers take the places of those that send nothing");
    assert_eq!(server.lines_with("Too many open files").len(), 0);
    drop(held);
}

#[test]
fn callers_that_read_no_answers_hold_up_nobody() {
    let server = Server::start(&FILES);
    let before = server.memory();
    let many = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(40_000);
    let deaf: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = connect(&server.address);
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            // It ends where nobody takes any more of it.
            let _ = stream.write_all(many.as_bytes());
            stream
        })
        .collect();
    is_answered(&server.address);
    let grown = server.memory().saturating_sub(before);
    println!("{grown} KiB for {} callers", deaf.len());
    assert!(grown < 50 * 600, "{grown} KiB for {} callers", deaf.len());
}
