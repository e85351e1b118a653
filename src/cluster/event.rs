//! Kubernetes Events: what `kubectl describe` shows.
//!
//! Repeats of an event within ten minutes count up the first one instead of making more.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Request;
use kube::client::Body;
use serde_json::json;
use tokio::sync::Semaphore;
use tracing::debug;

use super::limit::{Bucket, EVENTS};
use super::{Cluster, request};
use crate::mask::scope;
use crate::object::condition::time;
use crate::object::name::{Gvk, Key};
use crate::problem::floor;

/// The reporting component, as Metacontroller names itself: users' alerts look for it.
const COMPONENT: &str = "metacontroller";
const REPEAT: Duration = Duration::from_secs(600);
/// A Kubernetes event's message may have 1024 bytes.
const MESSAGE_BYTES: usize = 1000;
const KEPT: usize = 4096;
/// So many events are sent at once, apart from all other requests: nothing important waits for them.
const PLACES: usize = 4;
/// Further events are dropped while so many are on their way.
const WAITING: usize = 1000;

/// The object an event is about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub gvk: Gvk,
    pub key: Key,
    pub uid: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

struct Told {
    name: String,
    count: u64,
    first: String,
    last_sent: Instant,
}

/// Publishes events, without ever holding up who reports.
pub(crate) struct Recorder {
    cluster: Arc<Cluster>,
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// By the object's uid, the reason, and a hash of the message.
    told: Mutex<HashMap<(String, String, u64), Told>>,
    /// How many more events may tell of an object, by its uid.
    shares: Mutex<HashMap<String, Bucket>>,
}

impl Recorder {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Arc<Self> {
        Arc::new(Recorder {
            cluster,
            places: Arc::new(Semaphore::new(PLACES)),
            waiting: Arc::new(Semaphore::new(WAITING)),
            told: Mutex::default(),
            shares: Mutex::default(),
        })
    }

    /// Reports in the background, unless this process only stands by. A failure to publish is only logged.
    pub(crate) fn publish(self: &Arc<Self>, about: &About, severity: Severity, reason: &str, message: &str) {
        if !self.cluster.gate.is_open() {
            return;
        }
        let message = scope::spoken(message);
        let message = message[..floor(&message, MESSAGE_BYTES)].to_string();
        let Some((name, count, first)) = self.count(about, reason, &message) else { return };
        if !self.has_a_share(about) {
            debug!(event = name, "event not published: too many about one object");
            return;
        }
        let namespace = if about.key.namespace.is_empty() { "default" } else { &about.key.namespace };
        let now = time(jiff::Timestamp::now());
        let severity = if severity == Severity::Warning { "Warning" } else { "Normal" };
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.gvk.api_version(), "kind": about.gvk.kind, "name": about.key.name,
                "namespace": about.key.namespace, "uid": about.uid,
            },
            "reason": reason, "message": message, "type": severity, "count": count,
            "firstTimestamp": first, "lastTimestamp": now,
            "source": {"component": COMPONENT}, "reportingComponent": COMPONENT, "reportingInstance": "",
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let request = if count == 1 { Request::post(path) } else { Request::patch(format!("{path}/{name}")) };
        let content_type = if count == 1 { "application/json" } else { "application/merge-patch+json" };
        let request = request.header(http::header::CONTENT_TYPE, content_type);
        let Ok(waiting) = self.waiting.clone().try_acquire_owned() else {
            debug!(event = name, "event not published: too many are on their way");
            return;
        };
        let recorder = self.clone();
        tokio::spawn(async move {
            let _waiting = waiting;
            let Ok(_place) = recorder.places.acquire().await else { return };
            let Ok(request) = request.body(Body::from(event.to_string().into_bytes())) else { return };
            recorder.cluster.limiter.pass(EVENTS).await;
            if let Err(error) = request::answer(&recorder.cluster.writes, request).await {
                debug!(event = name, %error, "event not published");
            }
        });
    }

    /// Takes one of the events that may tell of this object.
    fn has_a_share(&self, about: &About) -> bool {
        let rate = self.cluster.event_rate;
        let mut shares = self.shares.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if shares.len() >= KEPT {
            shares.retain(|_, share| !share.is_full(rate));
        }
        // Where so many objects have each something to tell, some may tell more.
        if shares.len() >= KEPT {
            shares.clear();
        }
        shares.entry(about.uid.clone()).or_insert_with(|| Bucket::new(rate)).take(rate).is_ok()
    }

    /// The event's name, how often it happened, and since when; `None` while a repeat is too soon to tell.
    fn count(&self, about: &About, reason: &str, message: &str) -> Option<(String, u64, String)> {
        let mut told = self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if told.len() >= KEPT {
            make_room(&mut told);
        }
        let id = (about.uid.clone(), reason.to_string(), hash(message));
        if let Some(known) = told.get_mut(&id).filter(|known| known.last_sent.elapsed() < REPEAT) {
            known.count += 1;
            // Told at 2, 4, 8, …: the count stays roughly right, and a failing parent stays quiet.
            if !known.count.is_power_of_two() {
                return None;
            }
            known.last_sent = Instant::now();
            return Some((known.name.clone(), known.count, known.first.clone()));
        }
        let now = jiff::Timestamp::now();
        let name = format!("{}.{:x}", about.key.name, now.as_nanosecond());
        let first = time(now);
        let event = Told { name: name.clone(), count: 1, first: first.clone(), last_sent: Instant::now() };
        told.insert(id, event);
        Some((name, 1, first))
    }
}

/// Forgets what is too old to be repeated, and at least the older half of all: a repeat of that is told as something new.
fn make_room<K>(told: &mut HashMap<K, Told>) {
    told.retain(|_, event| event.last_sent.elapsed() < REPEAT);
    let mut times: Vec<Instant> = told.values().map(|event| event.last_sent).collect();
    times.sort_unstable();
    if let Some(middle) = times.get(KEPT / 2) {
        told.retain(|_, event| event.last_sent > *middle);
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
