//! What every visit of one definition shares: its kinds, hooks, queue, and what is remembered of its parents.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tracing::field::Empty;
use tracing::{Span, error_span, info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::{About, Recorder, Severity};
use crate::cluster::kind::{Kind, Resource, State, Use};
use crate::cluster::object::Object;
use crate::config::Definition;
use crate::config::spec::{ChildRule, Role};
use crate::controller::Settings;
use crate::controller::footing::{Fares, Started};
use crate::controller::memory::Memory;
use crate::controller::meter::Meter;
use crate::controller::pause::Pause;
use crate::controller::queue::Queue;
use crate::controller::related::Related;
use crate::controller::undeclared::Undeclared;
use crate::controller::waiting::Waiting;
use crate::hook::Hook;
use crate::object::name::{Gvk, Key};
use crate::object::selector::Selector;
use crate::problem::Problem;
use crate::trace;

/// Label by which `generateSelector` finds a parent's children.
pub(crate) const CONTROLLER_UID: &str = "controller-uid";

/// Parents are not visited before their children are seen, or this time is over.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// A child rule with the kind it names.
pub(crate) struct ChildKind {
    pub rule: ChildRule,
    pub hold: Use,
    /// Parents whose child's name belongs to another object.
    pub waiting: Arc<Waiting>,
    /// Parents that state something of somebody else's object.
    pub stated: Arc<Waiting>,
}

/// What every visit of one definition shares.
pub(crate) struct Room {
    pub number: u64,
    pub definition: Arc<Definition>,
    pub settings: Settings,
    /// What the definition asks for now, for all of its parents.
    pub pause: watch::Receiver<Option<Pause>>,
    /// The visit that this definition may always make.
    pub own_visit: Semaphore,
    pub meter: Arc<Meter>,
    pub cluster: Arc<Cluster>,
    pub recorder: Arc<Recorder>,
    pub parents: Arc<Kind>,
    pub parent_resource: Arc<Resource>,
    pub children: Vec<ChildKind>,
    /// ControllerRevisions, where children are updated one by one.
    pub revisions: Option<Use>,
    pub sync: Option<Hook>,
    pub finalize: Option<Hook>,
    pub customize: Option<Hook>,
    pub related: Arc<Related>,
    pub queue: Arc<Queue>,
    pub memories: Mutex<HashMap<Key, Memory>>,
    pub fares: Mutex<Fares>,
    /// Wakes whoever tells how the definition stands.
    pub news: Arc<Notify>,
    pub status_paths: Mutex<Undeclared>,
}

impl Room {
    /// What the whole definition is paused by.
    pub(crate) fn paused(&self) -> Option<Pause> {
        let pause = self.pause.borrow().clone();
        pause.filter(|pause| pause.left(Timestamp::now()) != Some(Duration::ZERO))
    }

    /// The same for people to read.
    pub(crate) fn pause_words(&self) -> Option<String> {
        let (kind, name) = (self.role().kind(), &self.definition.name);
        Some(self.paused()?.words(&format!("{kind} `{name}`")))
    }

    /// Waits until one more visit may be made. Hooks that hang here leave a visit to every other definition.
    pub(crate) async fn seat(&self) -> SemaphorePermit<'_> {
        let seat = tokio::select! {
            biased;
            seat = self.settings.further_visits.acquire() => seat,
            seat = self.own_visit.acquire() => seat,
        };
        seat.expect("neither is ever closed")
    }

    pub(crate) fn role(&self) -> Role {
        self.definition.spec.role
    }

    /// Whether the definition is about this object.
    pub(crate) fn selects(&self, parent: &Object) -> bool {
        let rule = &self.definition.spec.parent;
        if !rule.selector.matches(&parent.labels) {
            return false;
        }
        // Most definitions look at no annotations, and the whole object is read for them.
        rule.annotations.is_empty() || {
            let body = parent.parsed();
            match body.pointer("/metadata/annotations").and_then(Value::as_object) {
                Some(annotations) => rule.annotations.matches(annotations),
                None => rule.annotations.matches(&()),
            }
        }
    }

    /// What everything that happens during a visit of this parent has to do with. It is there at every level of the log.
    pub(crate) fn span_of(&self, key: &Key) -> Span {
        let namespace = (!key.namespace.is_empty()).then_some(&*key.namespace);
        error_span!(
            "visit",
            controller = self.definition.name,
            parent_kind = %self.parent_resource.gvk,
            namespace,
            name = key.name
        )
    }

    /// The trace of a visit that begins, from when it was asked for. It is within what its log lines have in common.
    pub(crate) fn trace_of(&self, key: &Key, logged: &Span) -> Span {
        let began = LazyCell::new(|| Timestamp::now() - self.queue.waited(key));
        let visit = trace::span!(
            parent: logged,
            "visit",
            began = %*began,
            controller = self.definition.name,
            parent_kind = %self.parent_resource.gvk,
            namespace = (!key.namespace.is_empty()).then_some(&*key.namespace),
            name = key.name,
            outcome = Empty,
            reason = Empty,
            error = Empty
        );
        drop(trace::span!(parent: &visit, "queue", began = %*began));
        visit
    }

    pub(crate) fn announce(&self, started: &Started) {
        info!(controller = self.definition.name, parent_kind = %self.parent_resource.gvk, "controller started");
        if let Some(about) = about(&self.definition).filter(|_| started.is_to_be_told()) {
            let message = format!("Started controller: {}", self.definition.name);
            self.recorder.publish(&about, Severity::Normal, "Started", &message);
        }
        if !self.parent_resource.has_status && self.role() == Role::Composite {
            let message = format!(
                "[{}] Sync error - ignoring, CRD [{}.{}] does not have subresource 'Status' enabled",
                self.definition.name, self.parent_resource.plural, self.parent_resource.gvk.group
            );
            warn!(
                controller = self.definition.name,
                "parent kind has no status subresource: no status is written"
            );
            if let Some(about) = about(&self.definition) {
                self.recorder.publish(&about, Severity::Warning, "SyncError", &message);
            }
        }
    }

    /// Waits until every child kind is listed or known to be absent, but not for long: one that cannot be read is a
    /// condition on the parents.
    pub(crate) async fn children_seen(&self) {
        let all = async {
            let children = self.children.iter().map(|child| &child.hold);
            for hold in children.chain(&self.revisions) {
                let mut states = hold.kind.states();
                let seen = |state: &State| matches!(state, State::Live(_) | State::Absent(_));
                // The kind is held, so its state does not end.
                let _ = states.wait_for(seen).await;
            }
        };
        if tokio::time::timeout(FIRST_LOOK, all).await.is_err() {
            warn!(
                controller = self.definition.name,
                "starting although not every child kind could be listed"
            );
        }
    }

    /// Whether there is a place for a parent's status: whoever forgot it in the kind's definition can still add it.
    pub(crate) fn has_status(&self) -> bool {
        self.parents.live().unwrap_or_else(|| self.parent_resource.clone()).has_status
    }

    pub(crate) fn add_all(&self) {
        for key in self.parents.keys() {
            self.queue.add(key);
        }
    }

    /// What is remembered of a parent between visits; forgotten with its uid.
    pub(crate) fn memory(&self, key: &Key, uid: &str) -> Memory {
        let mut memories = self.lock_memories();
        match memories.remove(key) {
            Some(memory) if *memory.uid == *uid => memory,
            _ => Memory::new(uid),
        }
    }

    pub(crate) fn remember(&self, key: &Key, memory: Memory) {
        let news = self.fares().note(key, memory.fare());
        self.lock_memories().insert(key.clone(), memory);
        if news {
            self.news.notify_one();
        }
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.related.forget(key);
        for child in &self.children {
            child.waiting.forget(key);
            child.stated.forget(key);
        }
        self.lock_memories().remove(key);
        if self.fares().forget(key) {
            self.news.notify_one();
        }
    }

    pub(crate) fn fares(&self) -> MutexGuard<'_, Fares> {
        self.fares.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lock_memories(&self) -> MutexGuard<'_, HashMap<Key, Memory>> {
        self.memories.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The selector in `parent.spec.selector`.
pub(crate) fn own_selector(parent: &Object) -> Result<Selector, Problem> {
    let missing = || {
        Problem::new(".spec.selector must have matchLabels or matchExpressions")
            .hint("or set `generateSelector: true` in the CompositeController")
    };
    let body = parent.parsed();
    let selector = body.pointer("/spec/selector").ok_or_else(missing)?;
    let selector = Selector::from_json(selector)
        .map_err(|error| Problem::new(format!(".spec.selector: {}: {}", error.path, error.message)))?;
    if selector.is_empty() { Err(missing()) } else { Ok(selector) }
}

/// A definition as an object, when it lives in the cluster.
pub(crate) fn about(definition: &Definition) -> Option<About> {
    let uid = definition.raw.pointer("/metadata/uid")?.as_str()?.to_string();
    Some(About {
        gvk: Gvk::new("metacontroller.k8s.io/v1alpha1", definition.spec.role.kind()),
        key: Key::new("", definition.name.clone()),
        uid,
    })
}
