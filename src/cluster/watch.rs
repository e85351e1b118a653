//! Keeps one kind's store true: looks the kind up, lists it, watches it, and begins again where that ends.
//!
//! Our own protocol code on kube's client, since what matters here is not offered by its watcher: the version of
//! a list (objects that vanished are told from objects written since), raw text per object, and an idle limit.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use futures::FutureExt;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::{debug, error, warn};

use super::discovery;
use super::kind::{Kind, Resource, State};
use super::limit::{Limiter, READS};
use super::object::{Object, Reading, Version};
use super::opening::Opening;
use super::request::{self, Error};
use super::store::Event;

/// How long the API server may keep one watch; each restart is a request.
const WATCH_SECONDS: u64 = 3000;
/// A watch that ends sooner has not worked.
const SHORT: Duration = Duration::from_secs(1);
/// So many objects are asked for at once.
pub(super) const PAGE: usize = 500;
/// A watch that panics begins anew after this time, and lists everything.
const AFTER_PANIC: Duration = Duration::from_secs(4);
/// A kind that is not served for so long does not exist. Until then it may only be that the server starts.
pub(crate) const DOUBT: Duration = Duration::from_secs(20);

/// What is watched, and how.
#[derive(Clone)]
pub(super) struct Source {
    pub client: Client,
    /// What lists and look-ups pass, and watches do not.
    pub limiter: Arc<Limiter>,
    pub kind: Weak<Kind>,
    /// The server sends a bookmark about every minute; a watch silent for longer than this is dead.
    pub idle: Duration,
}

/// Runs until the kind is dropped.
pub(super) async fn keep(source: Source) {
    outlived(|| keep_up(source.clone())).await;
}

/// Runs to the end, and anew after a panic: a watch that ended unseen would leave its kind as it was, for ever.
async fn outlived<F: Future<Output = ()>>(run: impl Fn() -> F) {
    while AssertUnwindSafe(run()).catch_unwind().await.is_err() {
        error!("watch panicked, will begin anew: this is a bug of syncwright");
        tokio::time::sleep(AFTER_PANIC).await;
    }
}

async fn keep_up(source: Source) {
    let mut watch = Watch::new(source);
    loop {
        let Some(kind) = watch.source.kind.upgrade() else { return };
        let (api_version, plural) = (kind.api_version.clone(), kind.plural.clone());
        drop(kind);
        watch.source.limiter.pass(READS).await;
        let resource = discovery::resolve(&watch.source.client, &api_version, &plural).await;
        let Some(kind) = watch.source.kind.upgrade() else { return };
        match resource {
            Ok(resource) => {
                kind.is_served();
                drop(kind);
                watch.follow(resource).await;
                continue;
            }
            Err(discovery::Unresolved::Absent(message)) => {
                let absent = kind.is_not_served();
                // A server that starts knows its custom kinds a moment later: what is known stays in use meanwhile.
                if kind.live().is_none() || absent > DOUBT {
                    watch.list_anew();
                    kind.vanished();
                    kind.set_state(State::Absent(message));
                }
            }
            Err(discovery::Unresolved::Failing(message)) => {
                watch.troubled = true;
                // What is known stays in use while discovery is out of reach.
                if kind.live().is_none() {
                    kind.set_state(State::Failing(message));
                }
            }
        }
        drop(kind);
        watch.pause.wait().await;
    }
}

/// Growing pauses between tries, with some jitter; none after something worked.
#[derive(Default)]
struct Pause {
    failures: u32,
    /// The failure that was told last.
    told: Option<String>,
}

impl Pause {
    /// A server that starts or is busy refuses for a moment; only what lasts is worth a person's time, and that once.
    fn is_worth_telling(&mut self, error: &str) -> bool {
        if self.failures < 3 || self.told.as_deref() == Some(error) {
            return false;
        }
        self.told = Some(error.to_string());
        true
    }

    async fn wait(&mut self) {
        self.wait_at_least(Duration::ZERO).await;
    }

    async fn wait_at_least(&mut self, least: Duration) {
        let base = 200u64.saturating_mul(1 << self.failures.min(5)).min(4_000);
        self.failures += 1;
        let jitter = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() as u64 % (base / 4 + 1);
        tokio::time::sleep(Duration::from_millis(base + jitter).max(least)).await;
    }
}

/// How far the watching of a kind is.
struct Watch {
    source: Source,
    resource: Option<Arc<Resource>>,
    /// One for each namespace that is watched, or one for all.
    places: Vec<Place>,
    /// Whether the server can begin a watch with the list.
    streaming: bool,
    /// Whether the last request failed.
    troubled: bool,
    pause: Pause,
}

/// A namespace, or (empty) all.
struct Place {
    namespace: String,
    /// The version to go on from; `None` when everything is to be listed.
    at: Option<String>,
}

impl Watch {
    fn new(source: Source) -> Self {
        let namespaces = source.kind.upgrade().map(|kind| kind.namespaces.clone()).unwrap_or_default();
        let everywhere = namespaces.is_empty().then(String::new);
        let places = namespaces.into_iter().chain(everywhere);
        let places = places.map(|namespace| Place { namespace, at: None }).collect();
        Watch { source, resource: None, places, streaming: true, troubled: false, pause: Pause::default() }
    }

    fn list_anew(&mut self) {
        self.places.iter_mut().for_each(|place| place.at = None);
    }

    fn is_listed(&self) -> bool {
        self.places.iter().all(|place| place.at.is_some())
    }

    /// Lists and watches until the watch ends. The kind is then looked up anew: whoever changes its definition ends
    /// its watches.
    async fn follow(&mut self, resource: Resource) {
        let resource = match &self.resource {
            Some(known) if **known == resource => known.clone(),
            _ => {
                self.list_anew();
                self.resource.insert(Arc::new(resource)).clone()
            }
        };
        if !resource.namespaced && !self.places[0].namespace.is_empty() {
            return self.refuse(&resource).await;
        }
        if !self.streaming
            && !self.is_listed()
            && let Err(ended) = self.list(&resource).await
        {
            return self.recover(&resource, ended).await;
        }
        let began = Instant::now();
        let (outcome, heard) = self.stream(&resource).await;
        let long = began.elapsed() > SHORT;
        if heard && long {
            self.pause = Pause::default();
        }
        match outcome {
            Ok(()) if long => {}
            Ok(()) => self.pause.wait().await,
            Err(ended) => self.recover(&resource, ended).await,
        }
    }

    /// A kind without namespaces is in none of those that may be looked at.
    async fn refuse(&mut self, resource: &Resource) {
        let Some(kind) = self.source.kind.upgrade() else { return };
        kind.set_state(State::Failing(format!(
            "{} `{}` have no namespace, and only namespaces are looked at: {}",
            kind.api_version,
            resource.plural,
            kind.namespaces.join(", ")
        )));
        drop(kind);
        tokio::time::sleep(DOUBT).await;
    }

    /// Lists by pages what is not listed yet.
    async fn list(&mut self, resource: &Arc<Resource>) -> Result<(), Ended> {
        for place in self.places.iter_mut().filter(|place| place.at.is_none()) {
            place.at = Some(list(&self.source, resource, &place.namespace).await?);
        }
        if let Some(kind) = self.source.kind.upgrade() {
            kind.set_state(State::Live(resource.clone()));
        }
        Ok(())
    }

    /// Watches all places until the first of these watches ends. Also says whether the server has said anything.
    async fn stream(&mut self, resource: &Arc<Resource>) -> (Result<(), Ended>, bool) {
        // The notifier outlives the kind, which the streams must not keep alive.
        let relist = match self.source.kind.upgrade() {
            Some(kind) => kind.relist.clone(),
            None => return (Err(Ended::Dropped), false),
        };
        let unlisted = self.places.iter().filter(|place| place.at.is_none()).count();
        let progress = Progress {
            troubled: AtomicBool::new(self.troubled),
            heard: AtomicBool::new(false),
            unlisted: AtomicUsize::new(unlisted),
        };
        let (source, shared) = (&self.source, &progress);
        let streams = self.places.iter_mut().map(|place| {
            let stream = Stream { source, resource, place, progress: shared, fresh: None };
            Box::pin(stream.run())
        });
        let outcome = tokio::select! {
            (outcome, ..) = futures::future::select_all(streams) => outcome,
            () = relist.notified() => Err(Ended::Widened),
        };
        self.troubled = progress.troubled.into_inner();
        (outcome, progress.heard.into_inner())
    }

    /// Gets ready for the next try.
    async fn recover(&mut self, resource: &Resource, ended: Ended) {
        match ended {
            // The next upgrade of the kind tells.
            Ended::Dropped => {}
            Ended::Widened => self.list_anew(),
            Ended::Expired => {
                self.list_anew();
                self.pause.wait().await;
            }
            Ended::Failed(error) if self.streaming && !self.is_listed() && refuses_streaming(&error) => {
                debug!(kind = %resource, "the API server has no streaming lists, listing by pages");
                self.streaming = false;
            }
            Ended::Failed(error) => {
                self.troubled = true;
                self.report(resource, &error);
                if !goes_on(&error, self.pause.failures) {
                    self.list_anew();
                }
                self.pause.wait_at_least(error.retry_after().unwrap_or_default()).await;
            }
        }
    }

    fn report(&mut self, resource: &Resource, error: &Error) {
        let Some(kind) = self.source.kind.upgrade() else { return };
        if kind.live().is_none() && error.status() != Some(StatusCode::NOT_FOUND) {
            kind.set_state(State::Failing(error.to_string()));
        }
        if self.pause.is_worth_telling(&error.to_string()) {
            warn!(kind = %resource, %error, "watch ended, will begin again");
        } else {
            debug!(kind = %resource, %error, "watch ended, will begin again");
        }
    }
}

/// Whether the next watch can go on where this one ended: a busy server is not made to list everything again.
fn goes_on(error: &Error, failures: u32) -> bool {
    let Some(status) = error.status() else { return !matches!(error, Error::Silent(_)) };
    match status.as_u16() {
        // The server's versions are older than ours: it was put back to a backup.
        504 => !error.to_string().contains("Too large resource version"),
        401 | 403 | 429 | 502 | 503 => true,
        500 => failures < 5,
        _ => false,
    }
}

fn refuses_streaming(error: &Error) -> bool {
    matches!(error.status(), Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY))
}

enum Ended {
    /// The version to go on from is no longer known: list again.
    Expired,
    /// Somebody wants more than was kept: list again.
    Widened,
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

/// What the watches of one kind's places have come to.
struct Progress {
    /// Whether the last request failed.
    troubled: AtomicBool,
    /// Whether the server has said anything but an error.
    heard: AtomicBool,
    /// Places whose list is not complete yet.
    unlisted: AtomicUsize,
}

struct Stream<'a> {
    source: &'a Source,
    resource: &'a Arc<Resource>,
    place: &'a mut Place,
    progress: &'a Progress,
    /// Objects of a streaming list that is not complete yet.
    fresh: Option<Vec<Object>>,
}

impl Stream<'_> {
    /// One watch request from its start to its end; `Ok` when the server closed it in good order.
    async fn run(mut self) -> Result<(), Ended> {
        match self.watch().await {
            Err(Ended::Failed(error)) => Err(self.opening().explained(error).await.into()),
            outcome => outcome,
        }
    }

    fn opening(&self) -> Opening<'_> {
        Opening { source: self.source, resource: self.resource, namespace: &self.place.namespace }
    }

    async fn watch(&mut self) -> Result<(), Ended> {
        let mut query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}");
        match &self.place.at {
            Some(version) => query.push_str(&format!("&resourceVersion={version}")),
            None => {
                query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
                self.fresh = Some(Vec::new());
            }
        }
        let uri = match self.source.kind.upgrade() {
            Some(kind) => kind.list_uri(self.resource, &self.place.namespace, &query),
            None => return Err(Ended::Dropped),
        };
        let request = Request::get(uri).body(Body::empty()).map_err(Error::from)?;
        let mut body = self.opening().send(request).await?;
        let Some(held) = self.source.kind.upgrade() else { return Err(Ended::Dropped) };
        if self.progress.troubled.swap(false, Ordering::Relaxed) {
            held.recovered();
        }
        drop(held);
        let mut buffer = BytesMut::new();
        loop {
            match tokio::time::timeout(self.source.idle, body.frame()).await {
                Err(_) => return Err(Error::Silent(self.source.idle).into()),
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
        let Some(kind) = self.source.kind.upgrade() else { return Err(Ended::Dropped) };
        let line: Line = serde_json::from_str(text).map_err(Error::from)?;
        match line.r#type {
            "BOOKMARK" => self.bookmark(&kind, line.object)?,
            "ERROR" => return Err(Error::from_status(line.object.get()).into()),
            sort => {
                if let Err(error) = self.object(&kind, sort, line.object.get()) {
                    unreadable(self.resource, &error);
                }
            }
        }
        self.progress.heard.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn object(&mut self, kind: &Kind, sort: &str, text: &str) -> serde_json::Result<()> {
        let reading = Reading::of(text)?;
        if self.fresh.is_none() && sort != "DELETED" && kind.echoed(&reading) {
            self.place.at = Some(reading.version.to_string());
            return Ok(());
        }
        let object = kind.keep(reading, &self.resource.gvk.kind)?;
        self.event(kind, sort, object);
        Ok(())
    }

    fn event(&mut self, kind: &Kind, sort: &str, object: Object) {
        let event = match sort {
            "ADDED" | "MODIFIED" => Event::Put(object),
            "DELETED" => Event::Gone(object),
            other => {
                warn!(kind = %self.resource, event = other, "unknown sort of watch event");
                return;
            }
        };
        match (&mut self.fresh, event) {
            // What happens while the list is on its way belongs to it: there is no version to go on from yet.
            (Some(fresh), Event::Put(object)) => fresh.push(object),
            (Some(fresh), Event::Gone(object)) => fresh.retain(|known| known.key != object.key),
            (None, event) => {
                let (Event::Put(object) | Event::Gone(object)) = &event;
                self.place.at = Some(object.version.to_string());
                kind.watched(event);
            }
        }
    }

    fn bookmark(&mut self, kind: &Kind, object: &RawValue) -> Result<(), Ended> {
        let bookmark: Bookmark = serde_json::from_str(object.get()).map_err(Error::from)?;
        let metadata = bookmark.metadata;
        if metadata.annotations.contains_key("k8s.io/initial-events-end")
            && let Some(fresh) = self.fresh.take()
        {
            kind.relisted(fresh, &self.place.namespace, &Version::parse(&metadata.resource_version));
            if self.progress.unlisted.fetch_sub(1, Ordering::Relaxed) == 1 {
                kind.set_state(State::Live(self.resource.clone()));
            }
        }
        if self.fresh.is_none() {
            self.place.at = Some(metadata.resource_version);
        }
        Ok(())
    }
}

/// One object that cannot be read must not keep all others from being seen.
fn unreadable(resource: &Resource, error: &serde_json::Error) {
    warn!(kind = %resource, %error, "object cannot be read, left out");
}

#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub metadata: PageMetadata,
    #[serde(borrow, default)]
    pub items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    pub r#continue: Option<String>,
}

/// The whole list of a place by pages, for servers without streaming lists. Gives the list's version.
async fn list(source: &Source, resource: &Arc<Resource>, namespace: &str) -> Result<String, Ended> {
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        let uri = match source.kind.upgrade() {
            Some(kind) => kind.list_uri(resource, namespace, &format!("limit={PAGE}{next}")),
            None => return Err(Ended::Dropped),
        };
        let request = Request::get(uri).body(Body::empty()).map_err(Error::from)?;
        source.limiter.pass(READS).await;
        let bytes = request::answer(&source.client, request).await?;
        let Some(kind) = source.kind.upgrade() else { return Err(Ended::Dropped) };
        let page: Page = serde_json::from_slice(&bytes).map_err(Error::from)?;
        for item in page.items.unwrap_or_default() {
            match kind.read(item.get(), &resource.gvk.kind) {
                Ok(object) => objects.push(object),
                Err(error) => unreadable(resource, &error),
            }
        }
        match page.metadata.r#continue.filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => {
                kind.relisted(objects, namespace, &Version::parse(&page.metadata.resource_version));
                return Ok(page.metadata.resource_version);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B117
    #[tokio::test(start_paused = true)]
    async fn watch_that_panics_begins_anew_and_one_that_ends_does_not() {
        let runs = AtomicUsize::new(0);
        let began = tokio::time::Instant::now();
        outlived(|| async { assert!(runs.fetch_add(1, Ordering::Relaxed) == 2, "meant to") }).await;
        assert_eq!(runs.load(Ordering::Relaxed), 3);
        assert_eq!(began.elapsed(), 2 * AFTER_PANIC);
    }

    #[test]
    fn what_lasts_is_told_once_and_again_when_it_changes() {
        let mut pause = Pause::default();
        assert!(!pause.is_worth_telling("forbidden"));
        pause.failures = 3;
        assert!(pause.is_worth_telling("forbidden"));
        assert!(!pause.is_worth_telling("forbidden"));
        assert!(pause.is_worth_telling("connection refused"));
    }
}
