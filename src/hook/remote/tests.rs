mod access;
mod etag;

use std::io::Write;

use futures::future::join_all;

use super::connection::Origin;
use super::server::{Act, Server, answer, answers, http};
use super::*;
use crate::hook::wire::answer::DesiredChild;

const NO_CHILDREN: &str = r#"{"children":[]}"#;
const BODY: &[u8] = br#"{"parent":{"metadata":{"name":"a"}}}"#;

fn settings(server: &Server) -> RemoteSettings {
    let url = server.url("/hooks/sync");
    RemoteSettings { timeout: Duration::from_secs(20), ..RemoteSettings::new(url, Decoding::Loose) }
}

fn remote(server: &Server) -> Remote {
    Remote::new(settings(server)).expect("the URL is right")
}

/// A hook that is given up after a moment.
fn impatient(server: &Server) -> Remote {
    Remote::new(RemoteSettings { timeout: Duration::from_millis(100), ..settings(server) })
        .expect("the URL is right")
}

async fn sync(remote: &Remote) -> Result<Answer, Failure> {
    remote.call(Call::Sync, "uid", Bytes::from_static(BODY)).await
}

/// What comes of one call to a server that answers so, on every connection.
async fn outcome(answered: impl Into<Vec<u8>>) -> Result<Answer, Failure> {
    let server = Server::start(vec![answer(answered)]).await;
    sync(&remote(&server)).await
}

fn ok(body: &str) -> Vec<u8> {
    http("200 OK", "", body)
}

fn unavailable(result: Result<Answer, Failure>) -> String {
    match result {
        Err(Failure::Unavailable { message, .. }) => message,
        other => panic!("expected no answer, got {other:?}"),
    }
}

fn refused(result: Result<Answer, Failure>) -> String {
    match result {
        Err(Failure::Refused(problem)) => problem.to_string(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_request_has_the_headers_of_the_protocol_and_no_others() {
    let server = Server::start(vec![answer(ok(NO_CHILDREN))]).await;
    assert_eq!(sync(&remote(&server)).await, Ok(Answer::default()));
    let received = server.received();
    assert_eq!(received[0].line(), "POST /hooks/sync HTTP/1.1");
    assert_eq!(received[0].body, BODY);
    let mut headers = received[0].headers();
    headers.sort();
    let wanted = [
        ("accept-encoding", "gzip".to_string()),
        ("content-length", BODY.len().to_string()),
        ("content-type", "application/json".to_string()),
        ("host", server.address.to_string()),
        ("user-agent", concat!("syncwright/", env!("CARGO_PKG_VERSION")).to_string()),
    ];
    assert_eq!(headers, wanted.map(|(name, value)| (name.to_string(), value)));
}

#[tokio::test]
async fn a_user_in_the_url_becomes_a_header_and_is_never_shown() {
    let server = Server::start(vec![answer(http("404 Not Found", "", "gone"))]).await;
    let url = format!("http://me:p%40ss@{}/sync", server.address);
    let hook = Remote::new(RemoteSettings { url, ..settings(&server) }).unwrap();
    refused(sync(&hook).await);
    let headers = server.received()[0].headers();
    assert!(headers.contains(&("authorization".into(), "Basic bWU6cEBzcw==".into())), "{headers:?}");
    assert!(headers.contains(&("host".into(), server.address.to_string())), "{headers:?}");
    let problem = Target::parse("http://me:secret@ho st/").unwrap_err();
    assert_eq!(problem.message, "webhook URL `http://***@ho st/`: not a URL (invalid uri character)");
    let problem = Target::parse("h:secret@host/").unwrap_err();
    assert_eq!(problem.message, "webhook URL `***@host/`: neither `http://` nor `https://`");
}

#[tokio::test]
async fn an_answer_is_decoded_with_the_strictness_of_the_hook() {
    let body = r#"{"children":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}],"note":1}"#;
    let server = Server::start(vec![answer(ok(body))]).await;
    let answer = sync(&remote(&server)).await.expect("unknown fields are let pass");
    let kinds: Vec<_> = answer.children.iter().map(|DesiredChild { object, .. }| &object["kind"]).collect();
    assert_eq!(kinds, ["Pod"]);
    let strict = Remote::new(RemoteSettings { decoding: Decoding::Strict, ..settings(&server) }).unwrap();
    assert_eq!(
        refused(sync(&strict).await),
        "unknown field `note`; expected: `children`, `status`, `resyncAfterSeconds`, `finalized`"
    );
}

#[tokio::test]
async fn calls_one_after_the_other_use_one_connection() {
    let server = Server::start(vec![answers(3, ok(NO_CHILDREN))]).await;
    let remote = remote(&server);
    for _ in 0..3 {
        sync(&remote).await.expect("an answer");
    }
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[tokio::test]
async fn an_answer_of_http_1_0_ends_with_its_connection() {
    let server = Server::start(vec![answer(format!("HTTP/1.0 200 OK\r\n\r\n{NO_CHILDREN}"))]).await;
    let remote = remote(&server);
    for _ in 0..2 {
        assert_eq!(sync(&remote).await, Ok(Answer::default()));
    }
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[tokio::test]
async fn a_chunked_answer_is_put_together() {
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"chi\r\n3\r\nldr\r\n7\r\nen\":[]}\r\n0\r\n\r\n";
    assert_eq!(outcome(chunks).await, Ok(Answer::default()));
}

#[tokio::test]
async fn a_resting_connection_that_the_server_closes_is_replaced() {
    let closing_when_asked_again = [answer(ok(NO_CHILDREN)), vec![Act::Read]].concat();
    let server = Server::start(vec![closing_when_asked_again, answers(2, ok(NO_CHILDREN))]).await;
    let remote = remote(&server);
    for _ in 0..3 {
        assert_eq!(sync(&remote).await, Ok(Answer::default()));
    }
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1]);
}

#[tokio::test]
async fn a_call_is_asked_once_more_and_not_for_ever() {
    let scripts = vec![[answer(ok(NO_CHILDREN)), vec![Act::Read]].concat(), vec![Act::Read]];
    let server = Server::start(scripts).await;
    let remote = remote(&server);
    sync(&remote).await.expect("an answer");
    let message = unavailable(sync(&remote).await);
    assert!(message.starts_with("no HTTP answer: "), "{message}");
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn a_new_connection_that_is_closed_is_not_tried_again() {
    let server = Server::start(vec![vec![Act::Read]]).await;
    unavailable(sync(&remote(&server)).await);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_end_the_connection() {
    let mut bytes = ok(NO_CHILDREN);
    bytes.extend(ok(r#"{"children":[],"finalized":true}"#));
    let server =
        Server::start(vec![[answer(bytes), vec![Act::Hang]].concat(), answer(ok(NO_CHILDREN))]).await;
    let remote = remote(&server);
    for _ in 0..2 {
        assert_eq!(sync(&remote).await, Ok(Answer::default()));
    }
}

#[tokio::test]
async fn a_hook_that_never_answers_is_given_up_and_holds_nobody_else() {
    let hanging = Server::start(vec![vec![Act::Read, Act::Hang]]).await;
    let quick = Server::start(vec![answers(8, ok(NO_CHILDREN))]).await;
    let (stuck, other) = (impatient(&hanging), remote(&quick));
    let calls = join_all((0..40).map(|_| sync(&stuck)));
    let others = async {
        for _ in 0..8 {
            sync(&other).await.expect("the other hook answers");
        }
    };
    let (calls, ()) = futures::join!(calls, others);
    for call in calls {
        assert_eq!(unavailable(call), "no answer within 100ms");
    }
}

#[tokio::test]
async fn an_answer_that_stops_half_way_is_given_up() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"chi".to_vec();
    let server = Server::start(vec![[answer(half), vec![Act::Hang]].concat()]).await;
    assert_eq!(unavailable(sync(&impatient(&server)).await), "no complete answer within 100ms");
}

#[tokio::test]
async fn an_answer_that_trickles_for_ever_is_given_up() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let server = Server::start(vec![vec![Act::Read, Act::Write(head), Act::Flood("1\r\n \r\n")]]).await;
    let remote = Remote::new(RemoteSettings {
        timeout: Duration::from_millis(100),
        answer_bytes: usize::MAX / 2,
        ..settings(&server)
    });
    assert_eq!(unavailable(sync(&remote.unwrap()).await), "no complete answer within 100ms");
}

#[tokio::test]
async fn a_connection_closed_half_way_is_no_answer() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"chi";
    let message = unavailable(outcome(half).await);
    assert!(message.starts_with("the answer broke off: "), "{message}");
}

#[tokio::test]
async fn what_is_no_http_is_no_answer() {
    let message = unavailable(outcome("SSH-2.0-OpenSSH_9.2\r\n\r\n").await);
    assert!(message.starts_with("no HTTP answer: "), "{message}");
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named() {
    let server = Server::start(vec![]).await;
    let (remote, address) = (remote(&server), server.address);
    drop(server);
    let gone = async {
        loop {
            let message = unavailable(sync(&remote).await);
            if message.contains("refused") {
                return message;
            }
        }
    };
    let message = tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the port is closed");
    assert!(message.starts_with(&format!("no connection to http://{address}: ")), "{message}");
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_refused_by_its_announced_length() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 17000000\r\n\r\n";
    let server = Server::start(vec![[answer(head), vec![Act::Hang]].concat()]).await;
    assert_eq!(refused(sync(&remote(&server)).await), "the answer is longer than 16 MiB");
}

#[tokio::test]
async fn an_endless_answer_is_refused_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    let script = vec![Act::Read, Act::Write(head), Act::Flood(chunk.leak())];
    let server = Server::start(vec![script]).await;
    let remote = Remote::new(RemoteSettings { answer_bytes: 1 << 20, ..settings(&server) }).unwrap();
    assert_eq!(refused(sync(&remote).await), "the answer is longer than 1 MiB");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    coder.write_all(text).expect("memory takes all");
    coder.finish().expect("memory takes all")
}

#[tokio::test]
async fn a_compressed_answer_is_read() {
    let answered = http("200 OK", "Content-Encoding: gzip\r\n", gzip(NO_CHILDREN.as_bytes()));
    assert_eq!(outcome(answered).await, Ok(Answer::default()));
}

#[tokio::test]
async fn a_compressed_answer_is_limited_by_what_it_becomes() {
    let answered = http("200 OK", "Content-Encoding: gzip\r\n", gzip(&vec![b' '; 17 << 20]));
    assert_eq!(refused(outcome(answered).await), "the answer is longer than 16 MiB");
}

#[tokio::test]
async fn a_broken_compression_is_no_answer() {
    let mut cut = gzip(NO_CHILDREN.as_bytes());
    cut.truncate(cut.len() - 9);
    let message = unavailable(outcome(http("200 OK", "Content-Encoding: gzip\r\n", cut)).await);
    assert!(message.starts_with("the answer is no complete gzip: "), "{message}");
}

#[tokio::test]
async fn a_moved_hook_is_followed_as_browsers_do() {
    for (status, method, length) in [
        ("301", "GET", 0),
        ("302", "GET", 0),
        ("303", "GET", 0),
        ("307", "POST", BODY.len()),
        ("308", "POST", BODY.len()),
    ] {
        let moved = http(&format!("{status} Moved"), "Location: elsewhere?x=1\r\n", "");
        let server = Server::start(vec![[answer(moved), answer(ok(NO_CHILDREN))].concat()]).await;
        assert_eq!(sync(&remote(&server)).await, Ok(Answer::default()), "{status}");
        let received = server.received();
        assert_eq!(received[1].line(), format!("{method} /hooks/elsewhere?x=1 HTTP/1.1"));
        assert_eq!(received[1].body.len(), length, "{status}");
    }
}

#[tokio::test]
async fn a_hook_may_move_to_another_host() {
    let new = Server::start(vec![answer(ok(NO_CHILDREN))]).await;
    let moved = http("308 Permanent Redirect", &format!("Location: {}\r\n", new.url("/sync")), "");
    let old = Server::start(vec![answer(moved)]).await;
    assert_eq!(sync(&remote(&old)).await, Ok(Answer::default()));
    assert_eq!(new.received()[0].line(), "POST /sync HTTP/1.1");
    assert_eq!(new.received()[0].body, BODY);
}

#[tokio::test]
async fn redirects_in_a_ring_end() {
    let moved = http("307 Temporary Redirect", "Location: /hooks/sync\r\n", "");
    let server = Server::start(vec![answers(20, moved)]).await;
    assert_eq!(refused(sync(&remote(&server)).await), "gave up after 10 redirects");
    assert_eq!(server.received().len(), 11);
}

#[tokio::test]
async fn a_redirect_to_nowhere_is_refused() {
    let moved = http("307 Temporary Redirect", "Location: ftp://files/\r\n", "");
    assert_eq!(refused(outcome(moved).await), "webhook URL `ftp://files/`: neither `http://` nor `https://`");
    assert_eq!(refused(outcome(http("307 Temporary Redirect", "", "")).await), "307: Temporary Redirect");
}

#[tokio::test]
async fn a_busy_hook_says_how_long_it_wants_to_be_left_alone() {
    let busy = async |header: &str| outcome(http("429 Too Many Requests", header, "slow down")).await;
    let after = |seconds| Err(Failure::Busy { after: Some(Duration::from_secs(seconds)) });
    assert_eq!(busy("Retry-After: 7\r\n").await, after(7));
    assert_eq!(busy("Retry-After: 99999999999\r\n").await, after(24 * 3600));
    assert_eq!(busy("Retry-After: Thu, 01 Jan 2099 00:00:00 GMT\r\n").await, after(24 * 3600));
    for none in ["", "0", "-5", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let header = if none.is_empty() { String::new() } else { format!("Retry-After: {none}\r\n") };
        assert_eq!(busy(&header).await, Err(Failure::Busy { after: None }), "{none}");
    }
}

#[tokio::test]
async fn a_server_in_trouble_is_asked_again() {
    let answered = http("503 Service Unavailable", "Retry-After: 3\r\n", "draining");
    let message = "503: draining".to_string();
    let failure = Failure::Unavailable { message, retry_after: Some(Duration::from_secs(3)) };
    assert_eq!(outcome(answered).await, Err(failure));
    assert_eq!(
        unavailable(outcome(http("500 Internal Server Error", "", "")).await),
        "500: Internal Server Error"
    );
    assert_eq!(unavailable(outcome(http("408 Request Timeout", "", "")).await), "408: Request Timeout");
}

#[tokio::test]
async fn a_refusal_tells_what_the_hook_said() {
    let problem = r#"{"message":"image is required","place":{"file":"hooks/web/sync.yaml","line":3,"column":9},"hint":"set it"}"#;
    let cases = [
        (
            http("422 Unprocessable Entity", "", problem),
            "hooks/web/sync.yaml:3:9: 422: image is required; hint: set it",
        ),
        (http("400 Bad Request", "", r#"{"error":"no spec"}"#), "400: no spec"),
        (http("404 Not Found", "", "<html>\n  no such\tpage\u{7}</html>"), "404: <html> no such page</html>"),
        (http("201 Created", "", NO_CHILDREN), r#"201: {"children":[]}"#),
        (b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), "204: No Content"),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), "304: Not Modified"),
    ];
    for (answered, told) in cases {
        assert_eq!(refused(outcome(answered).await), told);
    }
}

#[tokio::test]
async fn only_the_beginning_of_a_refusing_body_is_told() {
    let told = refused(outcome(http("400 Bad Request", "", "x".repeat(5000))).await);
    assert_eq!(told, format!("400: {}…", "x".repeat(1024)));
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn_and_not_against_their_timeout() {
    let server = Server::start(vec![vec![Act::Read, Act::Hang]]).await;
    let remote =
        Remote::new(RemoteSettings { in_flight: 2, timeout: Duration::from_millis(50), ..settings(&server) });
    let remote = remote.unwrap();
    let started = std::time::Instant::now();
    for call in join_all((0..6).map(|_| sync(&remote))).await {
        assert_eq!(unavailable(call), "no answer within 50ms");
    }
    assert!(started.elapsed() >= Duration::from_millis(150), "two at a time, each for its 50 ms");
}

#[tokio::test]
async fn a_call_that_is_given_up_frees_its_turn() {
    let server = Server::start(vec![vec![Act::Read, Act::Hang], answer(ok(NO_CHILDREN))]).await;
    let remote = Remote::new(RemoteSettings { in_flight: 1, ..settings(&server) }).unwrap();
    {
        let mut call = std::pin::pin!(sync(&remote));
        while server.received().is_empty() {
            let step = tokio::time::timeout(Duration::from_millis(1), &mut call).await;
            assert!(step.is_err(), "the first connection never answers");
        }
    }
    assert_eq!(sync(&remote).await, Ok(Answer::default()));
}

#[tokio::test]
async fn an_answer_before_the_whole_request_is_read_is_an_answer() {
    let early = http("413 Payload Too Large", "Connection: close\r\n", "too much");
    let server = Server::start(vec![vec![Act::Write(early), Act::Hang]]).await;
    let call = remote(&server);
    let result = call.call(Call::Sync, "uid", Bytes::from(vec![b' '; 32 << 20])).await;
    assert_eq!(refused(result), "413: too much");
}

#[test]
fn a_url_is_taken_apart() {
    let target = Target::parse("https://[::1]:8443/a/b?c=d").unwrap();
    let origin = Origin { tls: true, host: "::1".into(), port: 8443 };
    assert_eq!((target.origin, target.path.to_string()), (origin, "/a/b?c=d".to_string()));
    let target = Target::parse("http://hooks.web").unwrap();
    let origin = Origin { tls: false, host: "hooks.web".into(), port: 80 };
    assert_eq!((target.origin, target.path.to_string()), (origin, "/".to_string()));
    for (url, told) in [
        ("hooks.web/sync", "webhook URL `hooks.web/sync`: neither `http://` nor `https://`"),
        ("ftp://hooks/sync", "webhook URL `ftp://hooks/sync`: neither `http://` nor `https://`"),
        ("http:///sync", "webhook URL `http:///sync`: not a URL (invalid format)"),
        ("http://hooks/a b", "webhook URL `http://hooks/a b`: not a URL (invalid uri character)"),
    ] {
        assert_eq!(Target::parse(url).unwrap_err().message, told);
    }
}

#[test]
fn a_location_is_read_from_where_it_was_given() {
    let here = Target::parse("http://hooks:81/a/b?c=d").unwrap();
    for (location, url) in [
        ("https://other/x", "https://other/x"),
        ("//other/x", "http://other/x"),
        ("/x", "http://hooks:81/x"),
        ("x", "http://hooks:81/a/x"),
        ("?e=f", "http://hooks:81/a/b?e=f"),
        ("/x?to=http://y", "http://hooks:81/x?to=http://y"),
        ("x#part", "http://hooks:81/a/x"),
    ] {
        assert_eq!(here.join(location).unwrap(), Target::parse(url).unwrap(), "{location}");
    }
}
