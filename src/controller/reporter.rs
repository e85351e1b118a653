//! Writes the status of the cluster's definitions: seldom, and only where it says something new.
//!
//! Nothing else depends on it: where it cannot be written, that is told once and all else goes on.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::{debug, info, warn};

use crate::cluster::Cluster;
use crate::cluster::kind::{Kind, Origin, Resource, Use};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::config::API_VERSION;
use crate::config::spec::Role;
use crate::controller::farewell::Words;
use crate::controller::footing::Footing;
use crate::controller::memory::Insistence;
use crate::controller::posted::{Posted, Refusal};
use crate::controller::report::{Report, Subject};
use crate::controller::source::Name;
use crate::controller::visit::refused::verdict;
use crate::plan::refusal::Verdict;

/// What happens within this time is told at once.
const COLLECT: Duration = Duration::from_millis(500);
/// After something was told, nothing more is for this time.
const SELDOM: Duration = Duration::from_secs(3);
/// A write that failed for a reason that may pass is tried again after this time.
const AGAIN: Duration = Duration::from_secs(10);
/// One that was refused for good is tried again after this time, in case somebody has mended it.
const REFUSED: Duration = Duration::from_secs(300);

/// What is known of one definition of the cluster.
#[derive(Clone)]
pub(super) struct Entry {
    pub posted: Arc<Posted>,
    /// Why it, or a part of it, is not run.
    pub refusal: Option<Refusal>,
    pub footings: Vec<Arc<Footing>>,
    /// Where its end has begun.
    pub farewell: Option<Words>,
}

impl Entry {
    /// `None` while it is not known yet how it stands.
    fn report(&self, before: Option<&Report>) -> Option<Report> {
        let about = Subject { generation: self.posted.generation, targets: self.posted.targets() };
        if let Some(words) = &self.farewell {
            return Some(Report::refused(about, &words.refusal()));
        }
        if let Some(refusal) = &self.refusal {
            return Some(Report::refused(about, refusal));
        }
        let accounts: Option<Vec<_>> = self.footings.iter().map(|footing| footing.account()).collect();
        let accounts = accounts.filter(|accounts| !accounts.is_empty())?;
        Some(Report::of(about, &accounts, before))
    }
}

/// Whom the definitions tell how they stand.
pub(super) struct Reporter {
    cluster: Arc<Cluster>,
    composite: Use,
    decorator: Use,
    entries: Mutex<BTreeMap<Name, Entry>>,
    pub news: Arc<Notify>,
}

impl Reporter {
    pub(super) fn new(cluster: Arc<Cluster>) -> Arc<Self> {
        let hold = |plural| cluster.watch_definitions(API_VERSION, plural, |_, _| {});
        let (composite, decorator) = (hold("compositecontrollers"), hold("decoratorcontrollers"));
        Arc::new(Reporter { composite, decorator, cluster, entries: Mutex::default(), news: Arc::default() })
    }

    /// Takes note of all there are.
    pub(super) fn know(&self, entries: BTreeMap<Name, Entry>) {
        *self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = entries;
        self.news.notify_one();
    }

    /// Writes, until it is dropped. A process that stands by tells nothing.
    pub(super) async fn run(self: Arc<Self>) {
        self.cluster.gate.led().await;
        let mut desk = Desk::default();
        let mut again: Option<Duration> = None;
        loop {
            tokio::select! {
                () = self.news.notified() => tokio::time::sleep(COLLECT).await,
                () = tokio::time::sleep(again.unwrap_or_default()), if again.is_some() => {}
            }
            let before = desk.written;
            again = self.write_all(&mut desk).await;
            if desk.written > before {
                tokio::time::sleep(SELDOM).await;
            }
        }
    }

    /// Gives after which time to look again at the latest.
    async fn write_all(&self, desk: &mut Desk) -> Option<Duration> {
        let entries = self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        desk.fights.retain(|name, _| entries.contains_key(name));
        let mut again: Option<Duration> = None;
        for (name, entry) in entries {
            let pause = match desk.muted_for(name.0) {
                Some(pause) => Some(pause),
                None => self.write(desk, &name, &entry).await,
            };
            again = again.into_iter().chain(pause).min();
        }
        again
    }

    async fn write(&self, desk: &mut Desk, name: &Name, entry: &Entry) -> Option<Duration> {
        let kind = &*self.of(name.0).kind;
        let about = &entry.posted.about;
        let object = kind.get(&about.key).filter(|object| *object.uid == *about.uid)?;
        let resource = kind.live()?;
        let live = object.parsed()["status"].take();
        let before = Report::read(&live);
        let report = entry.report(before.as_ref())?;
        if before.as_ref() == Some(&report) {
            return None;
        }
        if !resource.has_status {
            return desk.mute(name.0, "its CRD has no status subresource", CRD_HINT);
        }
        let fight = desk.fights.entry(name.clone()).or_default();
        let wanted = digest(&report);
        if let Some(pause) = fight.pause(wanted) {
            return Some(pause);
        }
        if fight.note(wanted) {
            warn!(
                controller = name.1,
                "another writer keeps changing the status of the definition back: it is written less often"
            );
        }
        desk.written += 1;
        let body = body(&resource, &object, Value::Object(report.to_status(&live, Timestamp::now())));
        match self.apply(kind, &resource, &object, body).await {
            Ok(Some(after)) if Report::read(&after.parsed()["status"]).as_ref() != Some(&report) => {
                desk.mute(name.0, "its CRD has no place for one", CRD_HINT)
            }
            Ok(_) => desk.unmute(name.0),
            Err(error) => desk.failed(name, &error),
        }
    }

    /// Gives the object as the write left it, where nobody has written it since.
    async fn apply(
        &self,
        kind: &Kind,
        resource: &Resource,
        object: &Object,
        body: Vec<u8>,
    ) -> Result<Option<Arc<Object>>, Error> {
        // No visit has the number 0.
        let origin = Origin { controller: 0, parent: object.key.clone() };
        let writer = Writer { cluster: &self.cluster, origin: &origin, trial: None };
        let version = writer.apply_status(kind, resource, &object.key, body).await?;
        Ok(kind.get(&object.key).filter(|after| after.version == version))
    }

    fn of(&self, role: Role) -> &Use {
        match role {
            Role::Composite => &self.composite,
            Role::Decorator => &self.decorator,
        }
    }
}

const CRD_HINT: &str = "install the CRDs that come with syncwright";

fn body(resource: &Resource, object: &Object, status: Value) -> Vec<u8> {
    let body = json!({
        "apiVersion": resource.gvk.api_version(), "kind": resource.gvk.kind,
        "metadata": {"name": object.key.name, "uid": object.uid}, "status": status,
    });
    body.to_string().into_bytes()
}

fn digest(report: &Report) -> u64 {
    let mut hasher = DefaultHasher::new();
    report.hash(&mut hasher);
    hasher.finish()
}

/// What is remembered of the writing.
#[derive(Default)]
struct Desk {
    written: u64,
    fights: BTreeMap<Name, Insistence>,
    /// Kinds whose status cannot be written: until when it is left alone, and what was told of it.
    muted: BTreeMap<Role, (Instant, String)>,
}

impl Desk {
    fn muted_for(&self, role: Role) -> Option<Duration> {
        let left = self.muted.get(&role)?.0.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn mute(&mut self, role: Role, why: &str, hint: &str) -> Option<Duration> {
        let kind = role.kind();
        if self.muted.get(&role).is_none_or(|(_, told)| told != why) {
            warn!(kind, why, hint, "status of definitions is not written; everything else works");
        }
        self.muted.insert(role, (Instant::now() + REFUSED, why.into()));
        Some(REFUSED)
    }

    fn unmute(&mut self, role: Role) -> Option<Duration> {
        if self.muted.remove(&role).is_some() {
            info!(kind = role.kind(), "status of definitions is written");
        }
        None
    }

    fn failed(&mut self, name: &Name, error: &Error) -> Option<Duration> {
        match verdict(error) {
            // It is gone.
            (Verdict::NotFound | Verdict::Replaced, _) => None,
            (Verdict::Forbidden { verb, resource }, _) => {
                let why = format!("not allowed to {verb} {resource}");
                self.mute(name.0, &why, "give the right to `patch` on it, or leave it so")
            }
            (Verdict::Schema { .. } | Verdict::Invalid { .. }, _) => {
                self.mute(name.0, "its CRD has no place for one", CRD_HINT)
            }
            (_, summary) => {
                debug!(
                    controller = name.1,
                    error = summary,
                    "status of the definition not written, will retry"
                );
                Some(AGAIN)
            }
        }
    }
}
