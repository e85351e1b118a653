//! Keeps one kind's store true: looks the kind up, lists it, watches it, and begins again where that ends.
//!
//! Our own protocol code on kube's client, since what matters here is not offered by its watcher: the version of
//! a list (objects that vanished are told from objects written since), raw text per object, and an idle limit.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::{debug, warn};

use super::discovery;
use super::kind::{Kind, Resource, State};
use super::object::{Object, Version};
use super::request::{self, Error};
use super::store::Event;

/// The server sends a bookmark about every minute; a watch silent for longer is dead.
const IDLE: Duration = Duration::from_secs(90);
/// How long the API server may keep one watch; each restart is a request.
const WATCH_SECONDS: u64 = 3000;
/// A watch that ends sooner has not worked.
const SHORT: Duration = Duration::from_secs(1);
const PAGE: usize = 500;

/// Runs until the kind is dropped.
pub(super) async fn keep(client: Client, kind: Weak<Kind>) {
    let mut pause = Pause::default();
    loop {
        let Some(held) = kind.upgrade() else { return };
        let (api_version, plural) = (held.api_version.clone(), held.plural.clone());
        drop(held);
        let resource = discovery::resolve(&client, &api_version, &plural).await;
        let Some(held) = kind.upgrade() else { return };
        match resource {
            Ok(resource) => {
                drop(held);
                follow(&client, &kind, &Arc::new(resource), &mut pause).await;
            }
            Err(discovery::Unresolved::Absent(message)) => {
                held.relisted(Vec::new(), &Version::Number(u64::MAX));
                held.set_state(State::Absent(message));
            }
            Err(discovery::Unresolved::Failing(message)) => {
                // What is known stays in use while discovery is out of reach.
                if held.live().is_none() {
                    held.set_state(State::Failing(message));
                }
            }
        }
        pause.wait().await;
    }
}

/// Growing pauses between tries, with some jitter; none after something worked.
#[derive(Default)]
struct Pause {
    failures: u32,
}

impl Pause {
    async fn wait(&mut self) {
        let base = 200u64.saturating_mul(1 << self.failures.min(5)).min(4_000);
        self.failures += 1;
        let jitter = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() as u64 % (base / 4 + 1);
        tokio::time::sleep(Duration::from_millis(base + jitter)).await;
    }
}

/// Lists and watches until the kind has to be looked up anew.
async fn follow(client: &Client, kind: &Weak<Kind>, resource: &Arc<Resource>, pause: &mut Pause) {
    let mut at: Option<String> = None;
    let mut streaming = true;
    loop {
        let began = Instant::now();
        let outcome = match (&at, streaming) {
            (None, false) => list(client, kind, resource).await.map(|version| at = Some(version)),
            _ => {
                let mut stream = Stream { kind, resource, at: &mut at, fresh: None };
                stream.run(client).await
            }
        };
        let Some(held) = kind.upgrade() else { return };
        match outcome {
            Ok(()) if began.elapsed() > SHORT => pause.failures = 0,
            Ok(()) => {
                drop(held);
                pause.wait().await;
            }
            Err(Ended::Expired) => at = None,
            Err(Ended::Dropped) => return,
            Err(Ended::Failed(error)) if streaming && at.is_none() && refuses_streaming(&error) => {
                debug!(kind = %resource.gvk, "the API server has no streaming lists, listing by pages");
                streaming = false;
            }
            Err(Ended::Failed(error)) => {
                let gone = error.status() == Some(StatusCode::NOT_FOUND);
                if held.live().is_none() && !gone {
                    held.set_state(State::Failing(error.to_string()));
                }
                // A server that starts or is busy refuses for a moment; only what lasts is worth a person's time.
                if pause.failures >= 3 {
                    warn!(kind = %resource.gvk, %error, "watch ended, will begin again");
                } else {
                    debug!(kind = %resource.gvk, %error, "watch ended, will begin again");
                }
                drop(held);
                if gone {
                    return;
                }
                pause.wait().await;
                if error.status().is_some() {
                    at = None;
                }
            }
        }
    }
}

fn refuses_streaming(error: &Error) -> bool {
    matches!(error.status(), Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY))
}

enum Ended {
    /// The version to go on from is no longer known: list again.
    Expired,
    /// Nobody wants the kind any more.
    Dropped,
    Failed(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        if error.status() == Some(StatusCode::GONE) { Ended::Expired } else { Ended::Failed(error) }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::HashMap<String, String>,
}

struct Stream<'a> {
    kind: &'a Weak<Kind>,
    resource: &'a Arc<Resource>,
    at: &'a mut Option<String>,
    /// Objects of a streaming list that is not complete yet.
    fresh: Option<Vec<Object>>,
}

impl Stream<'_> {
    /// One watch request from its start to its end; `Ok` when the server closed it in good order.
    async fn run(&mut self, client: &Client) -> Result<(), Ended> {
        let mut query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}");
        match &self.at {
            Some(version) => query.push_str(&format!("&resourceVersion={version}")),
            None => {
                query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
                self.fresh = Some(Vec::new());
            }
        }
        let uri = format!("{}?{query}", self.resource.path("", None));
        let request = Request::get(uri).body(Body::empty()).map_err(Error::from)?;
        let mut body = request::open(client, request).await?;
        let Some(held) = self.kind.upgrade() else { return Err(Ended::Dropped) };
        // The notifier outlives the kind, which the stream must not keep alive.
        let relist = held.relist.clone();
        drop(held);
        let mut buffer = BytesMut::new();
        loop {
            let frame = tokio::select! {
                frame = tokio::time::timeout(IDLE, body.frame()) => frame,
                () = relist.notified() => return Err(Ended::Expired),
            };
            match frame {
                Err(_) => return Err(Error::silent(IDLE).into()),
                Ok(None) => return Ok(()),
                Ok(Some(Err(error))) => return Err(Error::from(error).into()),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        buffer.extend_from_slice(&data);
                        self.take_lines(&mut buffer)?;
                    }
                }
            }
        }
    }

    fn take_lines(&mut self, buffer: &mut BytesMut) -> Result<(), Ended> {
        let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let lines = buffer.split_to(end + 1);
        for line in lines.chunk().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = std::str::from_utf8(line).map_err(Error::from)?;
            self.take_line(text)?;
        }
        Ok(())
    }

    fn take_line(&mut self, text: &str) -> Result<(), Ended> {
        let Some(kind) = self.kind.upgrade() else { return Err(Ended::Dropped) };
        let line: Line = serde_json::from_str(text).map_err(Error::from)?;
        match line.r#type {
            "BOOKMARK" => self.bookmark(&kind, line.object)?,
            "ERROR" => return Err(Error::from_status(line.object.get()).into()),
            sort => {
                let object = kind.read(line.object.get(), &self.resource.gvk.kind).map_err(Error::from)?;
                match (&mut self.fresh, sort) {
                    (Some(fresh), "ADDED") => fresh.push(object),
                    (_, "ADDED" | "MODIFIED") => {
                        *self.at = Some(object.version.to_string());
                        kind.watched(Event::Put(object));
                    }
                    (_, "DELETED") => {
                        *self.at = Some(object.version.to_string());
                        kind.watched(Event::Gone(object));
                    }
                    (_, other) => {
                        warn!(kind = %self.resource.gvk, event = other, "unknown sort of watch event")
                    }
                }
            }
        }
        Ok(())
    }

    fn bookmark(&mut self, kind: &Kind, object: &RawValue) -> Result<(), Ended> {
        let bookmark: Bookmark = serde_json::from_str(object.get()).map_err(Error::from)?;
        let metadata = bookmark.metadata;
        if metadata.annotations.contains_key("k8s.io/initial-events-end")
            && let Some(fresh) = self.fresh.take()
        {
            kind.relisted(fresh, &Version::parse(&metadata.resource_version));
            kind.set_state(State::Live(self.resource.clone()));
        }
        if self.fresh.is_none() {
            *self.at = Some(metadata.resource_version);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    r#continue: Option<String>,
}

/// The whole list by pages, for servers without streaming lists. Gives the list's version.
async fn list(client: &Client, kind: &Weak<Kind>, resource: &Arc<Resource>) -> Result<String, Ended> {
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        let uri = format!("{}?limit={PAGE}{next}", resource.path("", None));
        let request = Request::get(uri).body(Body::empty()).map_err(Error::from)?;
        let bytes = request::answer(client, request).await?;
        let Some(kind) = kind.upgrade() else { return Err(Ended::Dropped) };
        let page: Page = serde_json::from_slice(&bytes).map_err(Error::from)?;
        for item in page.items.unwrap_or_default() {
            objects.push(kind.read(item.get(), &resource.gvk.kind).map_err(Error::from)?);
        }
        match page.metadata.r#continue.filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => {
                kind.relisted(objects, &Version::parse(&page.metadata.resource_version));
                kind.set_state(State::Live(resource.clone()));
                return Ok(page.metadata.resource_version);
            }
        }
    }
}
