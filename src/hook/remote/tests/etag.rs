//! Answers kept by their ETag.

use super::*;
use crate::config::spec::Etag;

const ONE: &str = r#"{"children":[],"status":{"round":1}}"#;
const TWO: &str = r#"{"children":[],"status":{"round":2}}"#;

fn tagged(tag: &str, body: &str) -> Vec<u8> {
    http("200 OK", &format!("ETag: {tag}\r\n"), body)
}

fn not_modified() -> Vec<u8> {
    http("304 Not Modified", "", "")
}

/// A hook that keeps answers, and its server with these answers one after the other.
async fn keeping(keep: Option<Duration>, answered: &[Vec<u8>]) -> (Remote, Server) {
    let server = Server::start(vec![answered.iter().flat_map(|text| answer(text.clone())).collect()]).await;
    let etag = Some(Etag { keep });
    (Remote::new(RemoteSettings { etag, ..settings(&server) }).unwrap(), server)
}

async fn ask(remote: &Remote, call: Call, subject: &str) -> i64 {
    let answer = remote.call(call, subject, Bytes::from_static(BODY)).await.expect("an answer");
    answer.status.expect("a status")["round"].as_i64().expect("a number")
}

fn if_none_match(server: &Server) -> Vec<Option<String>> {
    let header = |name: &str, received: &super::super::server::Received| {
        received.headers().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    };
    server.received().iter().map(|received| header("if-none-match", received)).collect()
}

#[tokio::test]
async fn a_hook_that_has_nothing_new_is_taken_at_its_word() {
    let precondition = http("412 Precondition Failed", "", "no change");
    let answered = [tagged("W/\"a\"", ONE), not_modified(), precondition, tagged("b", TWO), not_modified()];
    let (remote, server) = keeping(None, &answered).await;
    let mut rounds = Vec::new();
    for _ in 0..5 {
        rounds.push(ask(&remote, Call::Sync, "a").await);
    }
    assert_eq!(rounds, [1, 1, 1, 2, 2]);
    let sent = if_none_match(&server);
    let sent: Vec<Option<&str>> = sent.iter().map(Option::as_deref).collect();
    assert_eq!(sent, [None, Some("W/\"a\""), Some("W/\"a\""), Some("W/\"a\""), Some("b")]);
    assert!(server.received().iter().all(|received| received.body == BODY), "the body is sent in full");
}

#[tokio::test]
async fn a_parents_answer_is_no_other_parents_and_no_other_calls() {
    let answered = [tagged("1", ONE), tagged("1", TWO), tagged("1", TWO), not_modified()];
    let (remote, server) = keeping(None, &answered).await;
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
    assert_eq!(ask(&remote, Call::Sync, "b").await, 2);
    assert_eq!(ask(&remote, Call::Finalize, "a").await, 2);
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
    assert_eq!(if_none_match(&server), [None, None, None, Some("1".to_string())]);
}

#[tokio::test]
async fn an_answer_that_is_over_is_asked_for_anew() {
    let (remote, server) = keeping(Some(Duration::ZERO), &[tagged("1", ONE), tagged("1", TWO)]).await;
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
    assert_eq!(ask(&remote, Call::Sync, "a").await, 2);
    assert_eq!(if_none_match(&server), [None, None]);
}

#[tokio::test]
async fn an_answer_without_a_tag_ends_the_one_before() {
    let (remote, server) = keeping(None, &[tagged("1", ONE), ok(TWO), ok(ONE)]).await;
    for round in [1, 2, 1] {
        assert_eq!(ask(&remote, Call::Sync, "a").await, round);
    }
    assert_eq!(if_none_match(&server), [None, Some("1".to_string()), None]);
}

#[tokio::test]
async fn an_answer_that_is_none_is_not_kept_and_harms_no_kept_one() {
    let wrong = tagged("2", r#"{"children":{}}"#);
    let failed = http("500 Internal Server Error", "ETag: 3\r\n", "");
    let (remote, server) = keeping(None, &[tagged("1", ONE), wrong, failed, not_modified()]).await;
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
    refused(remote.call(Call::Sync, "a", Bytes::from_static(BODY)).await);
    unavailable(remote.call(Call::Sync, "a", Bytes::from_static(BODY)).await);
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
    assert_eq!(if_none_match(&server)[1..], [Some("1".to_string()), Some("1".into()), Some("1".into())]);
}

#[tokio::test]
async fn a_hook_that_keeps_nothing_sends_no_tag_and_takes_no_304() {
    let server = Server::start(vec![[answer(tagged("1", ONE)), answer(not_modified())].concat()]).await;
    let remote = remote(&server);
    assert_eq!(ask(&remote, Call::Sync, "uid").await, 1);
    assert_eq!(refused(sync(&remote).await), "304: Not Modified");
    assert_eq!(if_none_match(&server), [None, None]);
}

#[tokio::test]
async fn a_304_to_a_first_call_is_refused() {
    let (remote, _server) = keeping(None, &[not_modified()]).await;
    assert_eq!(refused(sync(&remote).await), "304: Not Modified");
}

#[tokio::test]
async fn a_compressed_answer_is_kept_as_well() {
    let compressed = http("200 OK", "ETag: 1\r\nContent-Encoding: gzip\r\n", gzip(ONE.as_bytes()));
    let (remote, _server) = keeping(None, &[compressed, not_modified()]).await;
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
    assert_eq!(ask(&remote, Call::Sync, "a").await, 1);
}
