//! What is measured of the traffic with the API server, and what is held of its objects.
//!
//! A process speaks with one API server, so that what it counts is the process's own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use http::Method;

use super::Cluster;
use super::kind::{Kind, State};
use super::request::Error;
use crate::metric::count::Counter;
use crate::metric::series::Series;
use crate::metric::text::Text;

static METER: LazyLock<Meter> = LazyLock::new(Meter::default);

#[derive(Default)]
struct Meter {
    /// By status code and method.
    requests: Series<2, Counter>,
    /// By apiVersion, plural, verb and outcome.
    writes: Series<4, Counter>,
    answered: AtomicBool,
}

/// Counts a request by its answer's status, or by the lack of an answer.
pub(super) fn note_request(method: &Method, code: Option<u16>) {
    let text = code.map(|code| code.to_string());
    // client-go writes it like this where there is no answer.
    METER.requests.of([text.as_deref().unwrap_or("<error>"), method.as_str()]).one();
    if code.is_some() {
        METER.answered.store(true, Ordering::Relaxed);
    }
}

/// Counts a write by what came of it.
pub(super) fn note_write<T>(kind: &Kind, verb: &str, answer: &Result<T, Error>) {
    METER.writes.of([&kind.api_version, &kind.plural, verb, outcome(answer)]).one();
}

/// What came of a write, in a word.
pub(super) fn outcome<T>(answer: &Result<T, Error>) -> &'static str {
    match answer {
        Ok(_) => "done",
        Err(error) => match error.status().map(|status| status.as_u16()) {
            Some(401 | 403) => "forbidden",
            Some(404) => "gone",
            Some(409) => "conflict",
            Some(400 | 422) => "refused",
            Some(429) => "throttled",
            _ => "failed",
        },
    }
}

/// How far a kind under watch is.
pub(crate) struct Progress {
    /// `apps/v1 deployments`; of a single object that is watched, with its name, and of labelled ones with their selector.
    pub name: String,
    pub state: State,
    pub objects: usize,
}

/// What is held of one kind.
#[derive(Default)]
struct Held {
    objects: usize,
    bytes: usize,
    live: bool,
}

impl Cluster {
    /// Whether the API server has ever answered, be it by a refusal.
    pub(crate) fn has_answered(&self) -> bool {
        METER.answered.load(Ordering::Relaxed)
    }

    /// All that is under watch, in the order of names.
    pub(crate) fn progress(&self) -> Vec<Progress> {
        let progress = |kind: Arc<Kind>| {
            let only = kind.only.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
            let labels = Some(&kind.labels).filter(|labels| !labels.is_empty());
            let labels = labels.map(|labels| format!(" {labels}")).unwrap_or_default();
            let name = format!("{} {}{only}{labels}", kind.api_version, kind.plural);
            Progress { name, state: kind.state(), objects: kind.size().0 }
        };
        let mut all: Vec<Progress> = self.kinds.all().into_iter().map(progress).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Writes requests, writes by outcome, and the stored objects.
    pub(crate) fn write_metrics(&self, text: &mut Text) {
        let mut family = text.counter("rest_client_requests_total", "Requests to the API server.");
        for ([code, method], counter) in METER.requests.all() {
            let labels = [("code", code.as_str()), ("method", &method), ("host", &self.host)];
            family.sample(&labels, counter.value());
        }
        let mut family = text.counter("syncwright_writes_total", "Writes of objects by what came of them.");
        for ([api_version, resource, verb, outcome], counter) in METER.writes.all() {
            let kind = [("api_version", api_version.as_str()), ("resource", &resource)];
            let how = [("verb", verb.as_str()), ("outcome", &outcome)];
            family.sample(&[kind, how].concat(), counter.value());
        }
        let held = self.held();
        type Number = fn(&Held) -> usize;
        let gauges: [(&str, &str, Number); 3] = [
            ("syncwright_stored_objects", "Objects that are known, by kind.", |held| held.objects),
            ("syncwright_stored_bytes", "Bytes of JSON that are kept of them.", |held| held.bytes),
            ("syncwright_kind_live", "Whether a kind is listed and under watch.", |held| held.live.into()),
        ];
        for (name, help, value) in gauges {
            let mut family = text.gauge(name, help);
            for ((api_version, resource), held) in &held {
                family.sample(&[("api_version", api_version), ("resource", resource)], value(held));
            }
        }
    }

    /// By kind. Single objects that are watched by their names count for their kinds.
    fn held(&self) -> BTreeMap<(String, String), Held> {
        let mut all: BTreeMap<(String, String), Held> = BTreeMap::new();
        for kind in self.kinds.all() {
            let held = all.entry((kind.api_version.clone(), kind.plural.clone())).or_default();
            let (objects, bytes) = kind.size();
            held.objects += objects;
            held.bytes += bytes;
            held.live |= matches!(kind.state(), State::Live(_));
        }
        all
    }
}
