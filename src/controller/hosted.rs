//! One definition at work: it is started, its parents are visited, it is stopped.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt;
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{Instrument, error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::Recorder;
use crate::cluster::kind::{Interest, Kind, Origin, Resource, State, Use};
use crate::cluster::store::Change;
use crate::config::Definition;
use crate::config::spec::{ChildRule, HookSpec, Role};
use crate::controller::access::Access;
use crate::controller::footing::Footing;
use crate::controller::meter::{Meter, Outcome};
use crate::controller::pause::Pause;
use crate::controller::queue::{Next, Queue};
use crate::controller::related::Related;
use crate::controller::room::{ChildKind, Room};
use crate::controller::selectors::Selectors;
use crate::controller::strays;
use crate::controller::visit;
use crate::controller::waiting::Waiting;
use crate::controller::wake::{ChildListener, Orphans, ParentListener};
use crate::controller::{Hooks, Settings};
use crate::hook::wire::Call;
use crate::hook::{Changes, Hook};
use crate::object::name::Key;
use crate::plan::rollout::revision;
use crate::problem::Problem;
use crate::trace;

/// A running definition. Dropping it without `stop` aborts its tasks.
pub(crate) struct Hosted {
    pub definition: Arc<Definition>,
    pub footing: Arc<Footing>,
    ending: Arc<Ending>,
    pause: Arc<watch::Sender<Option<Pause>>>,
    tasks: JoinSet<()>,
}

struct Ending {
    queue: Arc<Queue>,
    notify: tokio::sync::Notify,
}

impl Hosted {
    /// Starts a definition, once the one `before` it, of the same name, has ended. Its kinds need not exist yet.
    pub(crate) fn start(definition: Arc<Definition>, start: Start, before: Option<JoinHandle<()>>) -> Self {
        let ending = Arc::new(Ending { queue: start.queue.clone(), notify: tokio::sync::Notify::new() });
        let (footing, pause) = (start.footing.clone(), start.pause.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(start.run(definition.clone(), ending.clone(), before));
        Hosted { definition, footing, ending, pause, tasks }
    }

    /// Takes up what the definition, as it is now, says of pausing.
    pub(crate) fn pause_as(&self, definition: &Definition) {
        let pause = Pause::of_definition(&definition.raw);
        self.pause.send_if_modified(|known| {
            let changed = *known != pause;
            *known = pause;
            changed
        });
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
pub(crate) struct Start {
    number: u64,
    pause: Arc<watch::Sender<Option<Pause>>>,
    cluster: Arc<Cluster>,
    recorder: Arc<Recorder>,
    sync: Option<Hook>,
    finalize: Option<Hook>,
    customize: Option<Hook>,
    queue: Arc<Queue>,
    settings: Settings,
    meter: Arc<Meter>,
    changes: Option<OwnChanges>,
    footing: Arc<Footing>,
}

impl Start {
    pub(super) fn new(
        definition: &Definition,
        cluster: Arc<Cluster>,
        recorder: Arc<Recorder>,
        reach: &Hooks,
        settings: Settings,
        footing: Arc<Footing>,
    ) -> Result<Start, Problem> {
        let hooks = &definition.spec.hooks;
        let role = definition.spec.role;
        let hook = |call: Call, spec: &Option<HookSpec>| {
            let hook = spec.as_ref().map(|spec| Hook::of(spec, role, &reach.paths)).transpose()?;
            Ok(hook.map(|hook| hook.measured(&reach.meters.remote, (role, &definition.name), call)))
        };
        let (sync, finalize, customize) = (
            hook(Call::Sync, &hooks.sync)?,
            hook(Call::Finalize, &hooks.finalize)?,
            hook(Call::Customize, &hooks.customize)?,
        );
        let meter = reach.meters.of(definition);
        let queue = Arc::new(Queue::new(settings.longest_retry, meter.traffic.clone()));
        meter.follow(&queue, settings.workers);
        let own = [&sync, &finalize, &customize].into_iter().flatten().filter_map(Hook::built_in);
        let changes = reach.changes.clone().and_then(|changes| OwnChanges::of(own, changes));
        let number = next_number();
        let pause = Arc::new(watch::Sender::new(Pause::of_definition(&definition.raw)));
        Ok(Start {
            number,
            pause,
            cluster,
            recorder,
            sync,
            finalize,
            customize,
            queue,
            settings,
            meter,
            changes,
            footing,
        })
    }

    async fn run(mut self, definition: Arc<Definition>, ending: Arc<Ending>, before: Option<JoinHandle<()>>) {
        if let Some(before) = before {
            // A predecessor that panicked has ended as well.
            let _ = before.await;
        }
        let changes = self.changes.take();
        let hold = self.hold_parents(&definition);
        let access = self.access();
        let resource = tokio::select! {
            resource = live(&definition.name, &hold.kind, &self.footing) => resource,
            () = ending.notify.notified() => return,
        };
        let footing = self.footing.clone();
        let room = Arc::new(self.room(definition, &hold, resource));
        // One that stands by comes so far, and keeps what it has seen up to date.
        let led = async {
            room.cluster.gate.led().await;
            room.announce(footing.started());
        };
        tokio::select! {
            _ = async { tokio::join!(room.children_seen(), access.seen(&room.definition.name), led) } => {}
            () = ending.notify.notified() => return,
        }
        footing.works(&room);
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
            () = strays::let_go(&room) => {}
            () = follow_hooks(&room, changes) => {}
            () = access.follow(&room) => {}
            () = follow_pause(&room, &footing) => {}
        }
        // The queue is closed: the workers end with the visits they are at.
        while workers.join_next().await.is_some() {}
        drop(hold);
    }

    /// What the hooks are reached with.
    pub(super) fn access(&self) -> Access {
        let hooks = [("sync", &self.sync), ("finalize", &self.finalize), ("customize", &self.customize)];
        Access::watch(
            &self.cluster,
            hooks.into_iter().filter_map(|(call, hook)| Some((call, hook.as_ref()?))),
        )
    }

    pub(super) fn hold_parents(&self, definition: &Definition) -> Use {
        let parent = &definition.spec.parent;
        let listener = ParentListener {
            number: self.number,
            ignore_status: parent.ignore_status_changes,
            queue: self.queue.clone(),
        };
        let (name, labels) = (&parent.resource, &parent.selector);
        let hear = move |change: &Change, origin: Option<&Origin>| listener.hear(change, origin);
        if definition.spec.hooks.finalize.is_some() {
            // One that loses its labels is to be finalized.
            let finalizer = definition.spec.finalizer.clone();
            let picked = Interest::Picked { labels: labels.clone(), finalizer };
            let interest = if labels.is_empty() { Interest::All } else { picked };
            return self.cluster.watch(&name.api_version, &name.resource, interest, hear);
        }
        self.cluster.watch_labelled(&name.api_version, &name.resource, labels, hear)
    }

    pub(super) fn room(self, definition: Arc<Definition>, parents: &Use, resource: Arc<Resource>) -> Room {
        let selectors = Arc::<Selectors>::default();
        let watch = |(api_version, plural): (&str, &str),
                     orphans,
                     waiting: &Arc<Waiting>,
                     stated: &Arc<Waiting>| {
            let listener = ChildListener {
                waiting: waiting.clone(),
                stated: stated.clone(),
                number: self.number,
                parents: Arc::downgrade(&parents.kind),
                gvk: resource.gvk.clone(),
                namespaced: resource.namespaced,
                queue: self.queue.clone(),
                orphans,
                selectors: selectors.clone(),
            };
            let owner =
                Interest::ControlledBy { group: resource.gvk.group.clone(), kind: resource.gvk.kind.clone() };
            self.cluster.watch(api_version, plural, owner, move |change, origin| {
                listener.hear(change, origin);
            })
        };
        let orphans = match definition.spec.role {
            Role::Decorator => Orphans::Left,
            Role::Composite if definition.spec.generate_selector => Orphans::ByUid,
            Role::Composite => Orphans::BySelector,
        };
        let hold = |rule: &ChildRule| {
            let (waiting, stated) = (Arc::<Waiting>::default(), Arc::<Waiting>::default());
            let name = (&*rule.resource.api_version, &*rule.resource.resource);
            let hold = watch(name, orphans, &waiting, &stated);
            ChildKind { rule: rule.clone(), hold, waiting, stated }
        };
        let nobody = Arc::<Waiting>::default();
        let name = (revision::API_VERSION, revision::PLURAL);
        let revisions = definition.spec.rolls_any().then(|| watch(name, Orphans::Left, &nobody, &nobody));
        Room {
            number: self.number,
            children: definition.spec.children.iter().map(hold).collect(),
            revisions,
            definition,
            settings: self.settings,
            pause: self.pause.subscribe(),
            own_visit: Semaphore::new(1),
            meter: self.meter,
            recorder: self.recorder,
            parents: parents.kind.clone(),
            parent_resource: resource,
            sync: self.sync,
            finalize: self.finalize,
            customize: self.customize,
            related: Related::new(self.number, self.cluster.clone(), self.queue.clone()),
            cluster: self.cluster,
            queue: self.queue,
            memories: Mutex::default(),
            fares: Mutex::default(),
            news: self.footing.news(),
            status_paths: Mutex::default(),
        }
    }
}

/// Waits until a kind can be read, saying once what it waits for.
async fn live(controller: &str, kind: &Kind, footing: &Footing) -> Arc<Resource> {
    let mut states = kind.states();
    loop {
        match states.borrow_and_update().clone() {
            State::Live(resource) => return resource,
            State::Absent(message) | State::Failing(message) => {
                warn!(controller, error = %message, "parent kind cannot be watched yet, waiting for it");
                footing.waits(&message);
            }
            State::Starting => {}
        }
        if states.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// From now on wakes all parents whenever a kind arrives, goes or is changed, and those that wait for a retry when the
/// API server answers again.
fn watch_states(room: &Arc<Room>) -> impl Future<Output = ()> + use<> {
    let mut watches = JoinSet::new();
    let held = room.children.iter().map(|child| &child.hold).chain(&room.revisions);
    let kinds = held.map(|hold| &hold.kind).chain([&room.parents]);
    for kind in kinds {
        let (mut states, mut recoveries) = (kind.states(), kind.recoveries());
        let room = room.clone();
        watches.spawn(async move {
            loop {
                tokio::select! {
                    // While the kind is being listed there is nothing to be done.
                    Ok(()) = states.changed() => if *states.borrow_and_update() != State::Starting {
                        room.add_all();
                        room.news.notify_one();
                    },
                    Ok(()) = recoveries.changed() => room.queue.hurry(),
                    else => return,
                }
            }
        });
    }
    for child in 0..room.children.len() {
        watches.spawn(tell_of_child_kind(room.clone(), child));
    }
    async move {
        while watches.join_next().await.is_some() {}
        std::future::pending().await
    }
}

/// Says which child kind is not there, and when it comes.
async fn tell_of_child_kind(room: Arc<Room>, child: usize) {
    let child = &room.children[child];
    let (controller, kind) = (&room.definition.name, &child.rule.resource);
    let mut states = child.hold.kind.states();
    let mut missed = false;
    loop {
        match &*states.borrow_and_update() {
            State::Absent(message) => {
                warn!(controller, %kind, error = %message, "child kind is not there, waiting for it");
                missed = true;
            }
            State::Live(_) if std::mem::take(&mut missed) => {
                info!(controller, %kind, "child kind is there");
            }
            _ => {}
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// Wakes all parents when one of their own built-in hooks answers anew.
async fn follow_hooks(room: &Room, changes: Option<OwnChanges>) {
    let Some(mut changes) = changes else { return std::future::pending().await };
    while changes.next().await.is_some() {
        room.related.ask_anew();
        room.add_all();
        room.news.notify_one();
    }
    std::future::pending().await
}

/// The changes of a definition's own built-in hooks.
struct OwnChanges {
    hooks: BTreeSet<String>,
    seen: Changes,
    all: watch::Receiver<Changes>,
}

impl OwnChanges {
    /// What changes from now on; nothing, where the definition has no such hook.
    fn of<'h>(hooks: impl Iterator<Item = &'h str>, mut all: watch::Receiver<Changes>) -> Option<Self> {
        let hooks: BTreeSet<String> = hooks.map(String::from).collect();
        let seen = own(&hooks, &all.borrow_and_update());
        (!hooks.is_empty()).then_some(OwnChanges { hooks, seen, all })
    }

    async fn next(&mut self) -> Option<()> {
        loop {
            self.all.changed().await.ok()?;
            let now = own(&self.hooks, &self.all.borrow_and_update());
            if std::mem::replace(&mut self.seen, now.clone()) != now {
                return Some(());
            }
        }
    }
}

fn own(hooks: &BTreeSet<String>, changes: &Changes) -> Changes {
    let own = changes.iter().filter(|(hook, _)| hooks.contains(*hook));
    own.map(|(hook, number)| (hook.clone(), *number)).collect()
}

/// Wakes all parents when the definition is paused, and when that is over.
async fn follow_pause(room: &Room, footing: &Footing) {
    let mut pause = room.pause.clone();
    loop {
        let end = async {
            match room.paused().and_then(|pause| pause.left(Timestamp::now())) {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(()) = pause.changed() => {
                info!(controller = room.definition.name, paused = room.pause_words(), "pause of the controller changed");
            }
            () = end => {}
        }
        room.add_all();
        footing.news().notify_one();
    }
}

async fn resync(room: Arc<Room>) {
    let periods = room.definition.spec.resync_period.into_iter().chain(room.settings.resync);
    let Some(period) = periods.min() else { return std::future::pending().await };
    let mut ticks = tokio::time::interval(period);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        room.add_all();
    }
}

async fn work(room: Arc<Room>) {
    while let Some(key) = room.queue.next().await {
        let _seat = room.seat().await;
        // What is logged meanwhile says of which parent it is.
        let span = room.span_of(&key);
        let trace = room.trace_of(&key, &span);
        let visit = trace::within(&trace, measured_visit(&room, &key));
        let next = visit.instrument(span).await;
        room.queue.done(&key, next);
    }
}

async fn measured_visit(room: &Room, key: &Key) -> Next {
    let _under_way = room.meter.visit_begins();
    let began = Instant::now();
    let (outcome, next) = survive(visit::visit(room, key)).await;
    trace::current().record("outcome", outcome.name());
    room.meter.visit_ended(outcome, next, began.elapsed());
    next
}

/// What a visit itself cannot catch, such as a panic while it is told how it ended: the others go on.
async fn survive(visit: impl Future<Output = (Outcome, Next)>) -> (Outcome, Next) {
    AssertUnwindSafe(visit).catch_unwind().await.unwrap_or_else(|_| {
        error!("visit panicked, will retry");
        (Outcome::Panicked, Next::Backoff(Duration::ZERO))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // B117: no parent and no hook is known to make a visit panic, so that only a stand-in for one can.
    #[tokio::test]
    async fn visit_that_panics_is_tried_again() {
        let ended = survive(async { panic!("meant to") }).await;
        assert_eq!(ended, (Outcome::Panicked, Next::Backoff(Duration::ZERO)));
        let ended = survive(async { (Outcome::Done, Next::Rest) }).await;
        assert_eq!(ended, (Outcome::Done, Next::Rest));
    }
}
