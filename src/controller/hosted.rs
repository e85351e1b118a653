//! One definition at work: the kinds it holds, what wakes its parents, its queue and its workers.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::{About, Recorder, Severity};
use crate::cluster::kind::{Interest, Kind, Origin, Resource, State, Use};
use crate::cluster::object::Object;
use crate::cluster::store::Change;
use crate::config::Definition;
use crate::config::spec::ChildRule;
use crate::controller::memory::Memory;
use crate::controller::queue::{Next, Queue};
use crate::controller::visit;
use crate::controller::waiting::Waiting;
use crate::controller::{Hooks, Settings};
use crate::hook::Hook;
use crate::object::name::{Gvk, Key};
use crate::object::selector::Selector;
use crate::problem::Problem;

/// Label by which `generateSelector` finds a parent's children.
pub(crate) const CONTROLLER_UID: &str = "controller-uid";

/// Parents are not visited before their children are seen, or this time is over.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// A running definition. Dropping it without `stop` aborts its tasks.
pub(crate) struct Hosted {
    pub definition: Arc<Definition>,
    ending: Arc<Ending>,
    tasks: JoinSet<()>,
}

struct Ending {
    queue: Arc<Queue>,
    notify: tokio::sync::Notify,
}

/// A child rule with the kind it names.
pub(crate) struct ChildKind {
    pub rule: ChildRule,
    pub hold: Use,
    /// Parents whose child's name belongs to another object.
    pub waiting: Arc<Waiting>,
}

/// What every visit of one definition shares.
pub(crate) struct Room {
    pub number: u64,
    pub definition: Arc<Definition>,
    pub settings: Settings,
    pub cluster: Arc<Cluster>,
    pub recorder: Arc<Recorder>,
    pub parents: Arc<Kind>,
    pub parent_resource: Arc<Resource>,
    pub selector: Selector,
    pub children: Vec<ChildKind>,
    pub sync: Option<Hook>,
    pub finalize: Option<Hook>,
    pub queue: Arc<Queue>,
    memories: Mutex<HashMap<Key, Memory>>,
    pub status_paths: Mutex<visit::status::Undeclared>,
}

impl Hosted {
    /// Starts a definition, once the one `before` it has ended. Its kinds need not exist yet.
    pub(crate) fn start(
        definition: Arc<Definition>,
        cluster: Arc<Cluster>,
        recorder: Arc<Recorder>,
        reach: &Hooks,
        settings: Settings,
        before: Option<JoinHandle<()>>,
    ) -> Result<Self, Problem> {
        let hooks = &definition.spec.hooks;
        let sync = hooks.sync.as_ref().map(|hook| Hook::of(hook, &reach.paths)).transpose()?;
        let finalize = hooks.finalize.as_ref().map(|hook| Hook::of(hook, &reach.paths)).transpose()?;
        let selector = definition.spec.parent.selector.clone();
        let queue = Arc::new(Queue::new(settings.longest_retry));
        let ending = Arc::new(Ending { queue: queue.clone(), notify: tokio::sync::Notify::new() });
        let mut tasks = JoinSet::new();
        let number = next_number();
        let changes = reach.changes.clone().filter(|_| is_local(&sync) || is_local(&finalize));
        let start =
            Start { number, cluster, recorder, sync, finalize, selector, queue, settings, changes, before };
        tasks.spawn(start.run(definition.clone(), ending.clone()));
        Ok(Hosted { definition, ending, tasks })
    }

    /// Lets the visits under way end, then stops.
    pub(crate) async fn stop(mut self) {
        self.ending.queue.close();
        self.ending.notify.notify_one();
        while self.tasks.join_next().await.is_some() {}
    }
}

fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Everything that is known before the parent's kind is.
struct Start {
    number: u64,
    cluster: Arc<Cluster>,
    recorder: Arc<Recorder>,
    sync: Option<Hook>,
    finalize: Option<Hook>,
    selector: Selector,
    queue: Arc<Queue>,
    settings: Settings,
    changes: Option<watch::Receiver<u64>>,
    /// The end of a definition of the same name.
    before: Option<JoinHandle<()>>,
}

fn is_local(hook: &Option<Hook>) -> bool {
    matches!(hook, Some(Hook::Local { .. }))
}

impl Start {
    async fn run(mut self, definition: Arc<Definition>, ending: Arc<Ending>) {
        if let Some(before) = self.before.take() {
            // A predecessor that panicked has ended as well.
            let _ = before.await;
        }
        let changes = self.changes.take();
        let hold = self.hold_parents(&definition);
        let resource = tokio::select! {
            resource = live(&definition.name, &hold.kind) => resource,
            () = ending.notify.notified() => return,
        };
        let room = Arc::new(self.room(definition, &hold, resource));
        room.announce();
        tokio::select! {
            () = room.children_seen() => {}
            () = ending.notify.notified() => return,
        }
        let watchers = watch_states(&room);
        // Before anybody works: a parent that is added while it is visited would be visited once more.
        room.add_all();
        let mut workers = JoinSet::new();
        for _ in 0..room.settings.workers {
            workers.spawn(work(room.clone()));
        }
        let resync = resync(room.clone());
        tokio::select! {
            () = async { while workers.join_next().await.is_some() {} } => {}
            () = resync => {}
            () = watchers => {}
            () = follow_hooks(&room, changes) => {}
        }
        // The queue is closed: the workers end with the visits they are at.
        while workers.join_next().await.is_some() {}
        drop(hold);
    }

    fn hold_parents(&self, definition: &Definition) -> Use {
        let (number, queue) = (self.number, self.queue.clone());
        let parent = &definition.spec.parent;
        let ignore_status = parent.ignore_status_changes;
        self.cluster.watch(
            &parent.resource.api_version,
            &parent.resource.resource,
            Interest::All,
            move |change, origin| {
                let Some(object) = change.new.as_ref().or(change.old.as_ref()) else { return };
                let ours =
                    origin.is_some_and(|origin| origin.controller == number && origin.parent == object.key);
                if ours || (ignore_status && only_status_changed(change)) {
                    return;
                }
                queue.add(object.key.clone());
            },
        )
    }

    fn room(self, definition: Arc<Definition>, parents: &Use, resource: Arc<Resource>) -> Room {
        let hold = |rule: &ChildRule| {
            let waiting = Arc::<Waiting>::default();
            let listener = ChildListener {
                waiting: waiting.clone(),
                number: self.number,
                parents: Arc::downgrade(&parents.kind),
                gvk: resource.gvk.clone(),
                namespaced: resource.namespaced,
                queue: self.queue.clone(),
                generated: definition.spec.generate_selector,
            };
            let owner =
                Interest::ControlledBy { group: resource.gvk.group.clone(), kind: resource.gvk.kind.clone() };
            let name = &rule.resource;
            let hold = self.cluster.watch(&name.api_version, &name.resource, owner, move |change, origin| {
                listener.hear(change, origin);
            });
            ChildKind { rule: rule.clone(), hold, waiting }
        };
        Room {
            number: self.number,
            children: definition.spec.children.iter().map(hold).collect(),
            definition,
            settings: self.settings,
            cluster: self.cluster,
            recorder: self.recorder,
            parents: parents.kind.clone(),
            parent_resource: resource,
            selector: self.selector,
            sync: self.sync,
            finalize: self.finalize,
            queue: self.queue,
            memories: Mutex::default(),
            status_paths: Mutex::default(),
        }
    }
}

/// Waits until a kind can be read, saying once what it waits for.
async fn live(controller: &str, kind: &Kind) -> Arc<Resource> {
    let mut states = kind.states();
    loop {
        match states.borrow_and_update().clone() {
            State::Live(resource) => return resource,
            State::Absent(message) | State::Failing(message) => {
                warn!(controller, %message, "parent kind cannot be watched yet, waiting for it");
            }
            State::Starting => {}
        }
        if states.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Wakes all parents whenever a child kind arrives or goes, from now on.
fn watch_states(room: &Arc<Room>) -> impl Future<Output = ()> + use<> {
    let mut watches = JoinSet::new();
    for child in &room.children {
        let mut states = child.hold.kind.states();
        let room = room.clone();
        watches.spawn(async move {
            while states.changed().await.is_ok() {
                room.add_all();
            }
        });
    }
    async move {
        while watches.join_next().await.is_some() {}
        std::future::pending().await
    }
}

/// Wakes all parents when the built-in hooks answer anew.
async fn follow_hooks(room: &Room, changes: Option<watch::Receiver<u64>>) {
    let Some(mut changes) = changes else { return std::future::pending().await };
    while changes.changed().await.is_ok() {
        room.add_all();
    }
    std::future::pending().await
}

async fn resync(room: Arc<Room>) {
    let Some(period) = room.definition.spec.resync_period else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(period);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        room.add_all();
    }
}

async fn work(room: Arc<Room>) {
    while let Some(key) = room.queue.next().await {
        let visit = AssertUnwindSafe(visit::visit(&room, &key)).catch_unwind().await;
        let next = visit.unwrap_or_else(|_| {
            error!(controller = room.definition.name, parent = %key, "visit panicked, will retry");
            Next::Backoff(Duration::ZERO)
        });
        room.queue.done(&key, next);
    }
}

impl Room {
    fn announce(&self) {
        info!(controller = self.definition.name, parent = %self.parent_resource.gvk, "controller started");
        if !self.parent_resource.has_status {
            let message = format!(
                "[{}] Sync error - ignoring, CRD [{}.{}] does not have subresource 'Status' enabled",
                self.definition.name, self.parent_resource.plural, self.parent_resource.gvk.group
            );
            warn!(
                controller = self.definition.name,
                "parent kind has no status subresource: no status is written"
            );
            if let Some(about) = self.about_definition() {
                self.recorder.publish(&about, Severity::Warning, "SyncError", &message);
            }
        }
    }

    /// The definition as an object, when it lives in the cluster.
    fn about_definition(&self) -> Option<About> {
        let uid = self.definition.raw.pointer("/metadata/uid")?.as_str()?.to_string();
        Some(About {
            gvk: Gvk::new("metacontroller.k8s.io/v1alpha1", "CompositeController"),
            key: Key::new("", self.definition.name.clone()),
            uid,
        })
    }

    /// Waits until every child kind is listed or known to be absent, but not for long: one that cannot be read is a
    /// condition on the parents.
    async fn children_seen(&self) {
        let all = async {
            for child in &self.children {
                let mut states = child.hold.kind.states();
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

    fn add_all(&self) {
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
        self.lock_memories().insert(key.clone(), memory);
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.lock_memories().remove(key);
    }

    fn lock_memories(&self) -> MutexGuard<'_, HashMap<Key, Memory>> {
        self.memories.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Finds the parents that a change of a child concerns.
struct ChildListener {
    waiting: Arc<Waiting>,
    number: u64,
    parents: std::sync::Weak<Kind>,
    gvk: Gvk,
    namespaced: bool,
    queue: Arc<Queue>,
    generated: bool,
}

impl ChildListener {
    fn hear(&self, change: &Change, origin: Option<&Origin>) {
        let Some(parents) = self.parents.upgrade() else { return };
        if let Some(name) = freed(change) {
            self.waiting.take(name).into_iter().for_each(|parent| self.queue.add(parent));
        }
        let mut told: Option<Key> = None;
        for object in [&change.old, &change.new].into_iter().flatten() {
            match self.owner(&parents, object) {
                Some(key) if told.as_ref() != Some(&key) => {
                    told = Some(key.clone());
                    self.wake(key, origin);
                }
                Some(_) => {}
                None if object.controller.is_none() && change.new.is_some() => {
                    self.wake_selecting(&parents, object, origin)
                }
                None => {}
            }
        }
    }

    fn wake(&self, key: Key, origin: Option<&Origin>) {
        if origin.is_none_or(|origin| origin.controller != self.number || origin.parent != key) {
            self.queue.add(key);
        }
    }

    fn owner(&self, parents: &Kind, object: &Object) -> Option<Key> {
        let owner = object.controller.as_ref()?;
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        if group != self.gvk.group || *owner.kind != *self.gvk.kind {
            return None;
        }
        let namespace = if self.namespaced { object.key.namespace.clone() } else { String::new() };
        let key = Key::new(namespace, &*owner.name);
        // One that follows an owner of its name may have waited for the name of this object.
        parents.get(&key).map(|_| key)
    }

    /// An orphan concerns every parent that would adopt it.
    fn wake_selecting(&self, parents: &Kind, orphan: &Object, origin: Option<&Origin>) {
        if orphan.labels.is_empty() || orphan.deleting {
            return;
        }
        if self.generated {
            let Some(uid) = orphan.labels.get(CONTROLLER_UID) else { return };
            for parent in parents.all().iter().filter(|parent| parent.uid == *uid) {
                self.wake(parent.key.clone(), origin);
            }
            return;
        }
        for parent in parents.all() {
            let near = !self.namespaced || parent.key.namespace == orphan.key.namespace;
            if near && own_selector(&parent).is_ok_and(|selector| selector.matches(&orphan.labels)) {
                self.wake(parent.key.clone(), origin);
            }
        }
    }
}

/// The name of an object that is gone, or belongs to somebody else than before.
fn freed(change: &Change) -> Option<&Key> {
    let old = change.old.as_ref()?;
    let still = change.new.as_ref().is_some_and(|new| new.uid == old.uid && new.controller == old.controller);
    (!still).then_some(&old.key)
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

/// Whether an update left alone everything that `ignoreStatusChanges` still looks at.
fn only_status_changed(change: &Change) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return false };
    if new.deleting != old.deleting || new.generation != old.generation || new.labels != old.labels {
        return false;
    }
    let (mut old, mut new) = (old.parsed(), new.parsed());
    if old.pointer("/metadata/annotations") != new.pointer("/metadata/annotations") {
        return false;
    }
    // Kinds without a generation do not tell their content's changes by it.
    if new.pointer("/metadata/generation").is_some() {
        return true;
    }
    for body in [&mut old, &mut new] {
        if let Some(fields) = body.as_object_mut() {
            fields.shift_remove("metadata");
            fields.shift_remove("status");
        }
    }
    old == new
}
