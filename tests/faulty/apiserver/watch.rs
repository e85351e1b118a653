//! Watches: the list as their beginning, what happens after, bookmarks when nothing does.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::MutexGuard;
use std::time::Instant;

use serde_json::{Value, json};

use crate::apiserver::fault::WatchEnd;
use crate::apiserver::objects::Refusal;
use crate::apiserver::request::Request;
use crate::apiserver::{Shared, State, answer};
use crate::http::{self, Then};

impl Shared {
    pub(super) fn watch(&self, request: &Request, stream: &mut TcpStream) -> io::Result<Then> {
        let begun = begin(&self.lock(), request);
        let (first, mut at, cuts) = match begun {
            Ok(begun) => begun,
            Err(refusal) => return answer(stream, Err(refusal)),
        };
        http::begin_chunks(stream)?;
        if !first.is_empty() {
            http::chunk(stream, &first)?;
        }
        loop {
            let (lines, ended) = self.next_lines(&request.plural, &mut at, cuts);
            if !lines.is_empty() {
                http::chunk(stream, &lines)?;
            }
            if ended {
                return http::end_chunks(stream);
            }
        }
    }

    /// Waits for something to tell: events, a bookmark, or the end of the watch.
    fn next_lines(&self, plural: &str, at: &mut u64, cuts: u64) -> (String, bool) {
        let began = Instant::now();
        let mut state = self.lock();
        loop {
            if state.cuts != cuts {
                return (String::new(), true);
            }
            let pause = state.manners.bookmarks;
            if !state.held.contains(plural) {
                let lines = events_since(&state, plural, *at);
                let due = began.elapsed() >= pause;
                if !lines.is_empty() || due {
                    *at = state.objects.version;
                    let kind = state.objects.kind(plural);
                    let mark = kind
                        .filter(|_| lines.is_empty())
                        .map(|kind| bookmark(&kind.api_version, &kind.kind, *at, json!({})));
                    return (lines + &mark.unwrap_or_default(), false);
                }
            }
            state = self.wait(state, pause.saturating_sub(began.elapsed()).max(pause / 8));
        }
    }

    /// A watch that says what a test has written down.
    pub(super) fn recite(&self, lines: &[Value], end: WatchEnd, stream: &mut TcpStream) -> io::Result<Then> {
        http::begin_chunks(stream)?;
        for told in lines {
            http::chunk(stream, &format!("{told}\n"))?;
        }
        match end {
            WatchEnd::Closes => http::end_chunks(stream),
            WatchEnd::MidLine => {
                http::chunk(stream, r#"{"type":"MODIFIED","object":{"apiVersion":"v1","metadata":{"na"#)?;
                stream.flush()?;
                Ok(Then::Close)
            }
        }
    }
}

/// The first lines of a watch, the version it goes on from, and which cut will end it.
fn begin(state: &MutexGuard<'_, State>, request: &Request) -> Result<(String, u64, u64), Refusal> {
    let Some(kind) = state.objects.kind(&request.plural) else {
        return Err(Refusal::new(404, "NotFound", "the server could not find the requested resource"));
    };
    let version = state.objects.version;
    if request.parameter("sendInitialEvents").is_none() {
        let from = request.parameter("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0);
        if from < state.objects.forgotten {
            return Err(Refusal::new(
                410,
                "Expired",
                format!("too old resource version: {from} ({version})"),
            ));
        }
        if from > version {
            let message = format!("Too large resource version: {from}, current: {version}");
            return Err(Refusal::new(504, "Timeout", message));
        }
        return Ok((String::new(), from, state.cuts));
    }
    if !state.manners.streaming_lists {
        let message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return Err(Refusal::new(422, "Invalid", message));
    }
    let mut lines = String::new();
    for object in state.objects.of_kind(&request.plural) {
        lines += &line("ADDED", object);
    }
    lines += &bookmark(&kind.api_version, &kind.kind, version, json!({"k8s.io/initial-events-end": "true"}));
    Ok((lines, version, state.cuts))
}

fn events_since(state: &State, plural: &str, at: u64) -> String {
    let after = state.objects.history.partition_point(|event| event.version <= at);
    let events = state.objects.history[after..].iter().filter(|event| event.plural == plural);
    events.map(|event| line(event.sort, &event.object)).collect()
}

pub fn line(sort: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": sort, "object": object}))
}

fn bookmark(api_version: &str, kind: &str, version: u64, annotations: Value) -> String {
    let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    line("BOOKMARK", &json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}))
}
