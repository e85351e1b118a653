//! One kind of the cluster under watch: what the API server says it is, its objects, and who wants to know.
//!
//! A kind is shared by all controllers that need it and stops being watched when the last of them lets go.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::object::{Managers, Object, Reading, Version};
use super::store::{Change, Event, Store};
use super::watch::DOUBT;
use crate::object::name::{Gvk, Key};
use crate::object::selector::Selector;

/// What discovery says of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub gvk: Gvk,
    pub plural: String,
    pub namespaced: bool,
    /// Whether `/status` is a subresource of its own.
    pub has_status: bool,
}

impl Resource {
    /// Path of a collection (`name` none) or of one object.
    pub(crate) fn path(&self, namespace: &str, name: Option<&str>) -> String {
        let mut path = if self.gvk.group.is_empty() {
            format!("/api/{}", self.gvk.version)
        } else {
            format!("/apis/{}/{}", self.gvk.group, self.gvk.version)
        };
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

/// As definitions name it: `apps/v1 deployments`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.gvk.api_version(), self.plural)
    }
}

/// How far a kind is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not yet looked up, or not yet listed.
    Starting,
    /// The API server does not know it (yet): the message says what is missing.
    Absent(String),
    /// It exists or may exist, but cannot be read: the message says why.
    Failing(String),
    /// Listed and under watch.
    Live(Arc<Resource>),
}

/// Which visit caused a change: a controller by its number, and the parent it was at work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub controller: u64,
    pub parent: Key,
}

pub(super) type Listener = Arc<dyn Fn(&Change, Option<&Origin>) + Send + Sync>;

/// Whose objects are kept with their bodies. Of all others only names and owners are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Interest {
    /// Every object that is looked at: parents and related objects.
    All,
    /// Objects with these labels or this finalizer: parents that are still to be finalized when they are selected no
    /// more, so that those that are not selected have to be looked at.
    Picked { labels: Selector, finalizer: String },
    /// Objects controlled by a parent of this group and kind.
    ControlledBy { group: String, kind: String },
}

/// A kind under watch, or one object of it.
pub(crate) struct Kind {
    pub api_version: String,
    pub plural: String,
    /// The one object that is looked at; all others are neither read nor known.
    pub only: Option<Key>,
    /// The namespaces outside of which nothing is read or known; everything is where there are none.
    pub namespaces: Vec<String>,
    /// The labels without which nothing is read or known.
    pub labels: Selector,
    managers: Managers,
    store: Mutex<Store>,
    state: watch::Sender<State>,
    uses: Mutex<HashMap<u64, (Interest, Listener)>>,
    /// Wakes the watch task to list anew, since somebody wants more than was kept.
    pub(super) relist: Arc<Notify>,
    task: Mutex<Option<AbortHandle>>,
    /// Since when the API server does not serve it.
    absent_since: Mutex<Option<Instant>>,
    /// Counts up when the API server answers again after it did not.
    recoveries: watch::Sender<u64>,
}

/// A controller's hold on a kind. Dropping it ends its notifications, and the watch with the last one.
pub(crate) struct Use {
    pub kind: Arc<Kind>,
    number: u64,
}

impl Drop for Use {
    fn drop(&mut self) {
        lock(&self.kind.uses).remove(&self.number);
    }
}

impl Drop for Kind {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// What is watched: a kind, by its apiVersion and plural, or one object of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    pub api_version: String,
    pub plural: String,
    pub only: Option<Key>,
    pub namespaces: Vec<String>,
    pub labels: Selector,
}

/// All that is under watch.
#[derive(Default)]
pub(crate) struct Kinds(Mutex<HashMap<Subject, Weak<Kind>>>);

impl Kinds {
    /// What is under watch now.
    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        lock(&self.0).values().filter_map(Weak::upgrade).collect()
    }

    /// The subject, and its watch started with `start` when nobody else holds it.
    pub(super) fn hold(
        &self,
        subject: Subject,
        managers: &Managers,
        (interest, listener): (Interest, Listener),
        start: impl FnOnce(Weak<Kind>) -> AbortHandle,
    ) -> Use {
        let mut kinds = lock(&self.0);
        kinds.retain(|_, kind| kind.strong_count() > 0);
        if let Some(kind) = kinds.get(&subject).and_then(Weak::upgrade) {
            return kind.used(interest, listener);
        }
        let kind = Arc::new(Kind::new(subject.clone(), managers));
        let hold = kind.used(interest, listener);
        *lock(&kind.task) = Some(start(Arc::downgrade(&kind)));
        kinds.insert(subject, Arc::downgrade(&kind));
        hold
    }
}

impl Kind {
    fn new(subject: Subject, managers: &Managers) -> Self {
        Kind {
            api_version: subject.api_version,
            plural: subject.plural,
            only: subject.only,
            namespaces: subject.namespaces,
            labels: subject.labels,
            managers: managers.clone(),
            store: Mutex::default(),
            state: watch::Sender::new(State::Starting),
            uses: Mutex::default(),
            relist: Arc::default(),
            task: Mutex::default(),
            absent_since: Mutex::default(),
            recoveries: watch::Sender::new(0),
        }
    }

    fn used(self: &Arc<Self>, interest: Interest, listener: Listener) -> Use {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut uses = lock(&self.uses);
        let known = uses.values().any(|(other, _)| *other == interest || *other == Interest::All);
        let first = uses.is_empty();
        uses.insert(number, (interest, listener));
        if !known && !first {
            self.relist.notify_one();
        }
        Use { kind: self.clone(), number }
    }

    /// The URI that lists or watches what is looked at in a namespace, or (empty) everywhere.
    pub(super) fn list_uri(&self, resource: &Resource, namespace: &str, query: &str) -> String {
        let Some(Key { namespace, name }) = &self.only else {
            let path = resource.path(&in_percent(namespace), None);
            if self.labels.is_empty() {
                return format!("{path}?{query}");
            }
            return format!("{path}?labelSelector={}&{query}", in_percent(&self.labels.to_string()));
        };
        let path = resource.path(&in_percent(namespace), None);
        // In this form a right to one object by its name is also a right to list and watch it.
        format!("{path}?fieldSelector=metadata.name%3D{}&{query}", in_percent(name))
    }

    /// The resource, once it is listed and under watch.
    pub(crate) fn live(&self) -> Option<Arc<Resource>> {
        match &*self.state.borrow() {
            State::Live(resource) => Some(resource.clone()),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn states(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Tells when the API server answers again.
    pub(crate) fn recoveries(&self) -> watch::Receiver<u64> {
        self.recoveries.subscribe()
    }

    pub(super) fn recovered(&self) {
        self.recoveries.send_modify(|count| *count += 1);
    }

    /// Notes that the API server serves the kind. Until it is listed nothing is known of its objects.
    pub(super) fn is_served(&self) {
        self.state.send_if_modified(|state| {
            let was_absent = matches!(state, State::Absent(_));
            if was_absent {
                *state = State::Starting;
            }
            was_absent
        });
        *lock(&self.absent_since) = None;
    }

    /// Notes that the API server does not serve the kind. Gives for how long it has not.
    pub(super) fn is_not_served(&self) -> Duration {
        lock(&self.absent_since).get_or_insert_with(Instant::now).elapsed()
    }

    /// For how long it may still come to light that the kind exists after all, since the API server only starts.
    pub(crate) fn doubt(&self) -> Option<Duration> {
        let absent = (*lock(&self.absent_since))?.elapsed();
        DOUBT.checked_sub(absent)
    }

    pub(super) fn vanished(&self) {
        let changes = self.store().vanished();
        self.tell(changes.into_iter(), None);
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.send_if_modified(|known| {
            let changed = *known != state;
            *known = state;
            changed
        });
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.store().get(key).cloned()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.store().all().map(|object| object.key.clone()).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Object>> {
        self.store().all().cloned().collect()
    }

    /// How many objects there are.
    pub(crate) fn count(&self) -> usize {
        self.size().0
    }

    /// How many objects there are, and how many bytes of JSON are kept of them.
    pub(super) fn size(&self) -> (usize, usize) {
        self.store().size()
    }

    /// The objects that `test` picks.
    pub(crate) fn select(&self, test: impl Fn(&Object) -> bool) -> Vec<Arc<Object>> {
        self.store().all().filter(|object| test(object)).cloned().collect()
    }

    pub(crate) fn controlled_by(&self, uid: &str) -> Vec<Arc<Object>> {
        self.store().controlled_by(uid)
    }

    pub(crate) fn orphans(&self, namespace: &str) -> Vec<Arc<Object>> {
        self.store().orphans(namespace)
    }

    /// Reads an object out of JSON, keeping of it what somebody here wants.
    pub(super) fn read(&self, text: &str, kind: &str) -> serde_json::Result<Object> {
        self.keep(Reading::of(text)?, kind)
    }

    /// As much of the object as somebody wants.
    pub(super) fn keep(&self, reading: Reading, kind: &str) -> serde_json::Result<Object> {
        let object = reading.object((&self.api_version, kind), &self.managers)?;
        Ok(if self.wanted(&object) { object } else { object.slim() })
    }

    /// Whether a watch event tells nothing but our own write, whose answer is known.
    pub(super) fn echoed(&self, event: &Reading) -> bool {
        self.store().echoed(&event.key, event.uid(), &event.version)
    }

    /// Reads an object of which everything is kept: the answer to a write.
    pub(super) fn read_whole(&self, text: &str) -> serde_json::Result<Object> {
        Object::read(text, (&self.api_version, ""), &self.managers)
    }

    /// What we write of somebody else's object has to be compared as well.
    fn wanted(&self, object: &Object) -> bool {
        object.owned.is_some()
            || lock(&self.uses).values().any(|(interest, _)| match interest {
                Interest::All => true,
                Interest::Picked { labels, finalizer } => {
                    labels.matches(&object.labels)
                        || object.finalizers.iter().any(|known| **known == **finalizer)
                }
                Interest::ControlledBy { group, kind } => object.controller.as_ref().is_some_and(|owner| {
                    let gvk_group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
                    gvk_group == group && *owner.kind == **kind
                }),
            })
    }

    pub(super) fn watched(&self, event: Event) {
        let change = self.store().watched(event);
        self.tell(change.into_iter(), None);
    }

    pub(super) fn relisted(&self, list: Vec<Object>, namespace: &str, version: &Version) {
        let changes = self.store().relisted(list, namespace, version);
        self.tell(changes.into_iter(), None);
    }

    pub(super) fn begin_write<'a>(&'a self, key: &'a Key) -> Write<'a> {
        self.store().begin_write(key);
        Write { kind: self, key, over: false }
    }

    pub(super) fn remove_now(&self, key: &Key, uid: &str, origin: Option<&Origin>) {
        let change = self.store().remove_now(key, uid);
        self.tell(change.into_iter(), origin);
    }

    /// What an answer means here: an object that has lost the labels that are looked for is gone. Its watch tells of
    /// nothing that happens to it afterwards.
    fn in_sight(&self, answer: Event) -> Event {
        match answer {
            Event::Put(object) if !self.labels.matches(&object.labels) => Event::Gone(object),
            other => other,
        }
    }

    fn tell(&self, changes: impl Iterator<Item = Change>, origin: Option<&Origin>) {
        let mut listeners: Option<Vec<Listener>> = None;
        for change in changes {
            let listeners = listeners.get_or_insert_with(|| {
                lock(&self.uses).values().map(|(_, listener)| listener.clone()).collect()
            });
            for listener in listeners {
                listener(&change, origin);
            }
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }
}

/// A text as part of a URI. Names that Kubernetes takes stay as they are.
fn in_percent(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.".contains(byte);
    let part = |byte: u8| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

/// A write under way: the watch's events of its object wait for its end, be it an answer, a panic, or the end of its
/// visit.
pub(super) struct Write<'a> {
    kind: &'a Kind,
    key: &'a Key,
    over: bool,
}

impl Write<'_> {
    pub(super) fn end(mut self, answer: Option<Event>, origin: Option<&Origin>) {
        self.over = true;
        self.take_in(answer, origin);
    }

    fn take_in(&self, answer: Option<Event>, origin: Option<&Origin>) {
        let answer = answer.map(|answer| self.kind.in_sight(answer));
        let (own, others) = self.kind.store().end_write(self.key, answer);
        self.kind.tell(own.into_iter(), origin);
        self.kind.tell(others.into_iter(), None);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.take_in(None, None);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_is_listed_by_its_name_in_its_namespace_alone() {
        let secrets = Resource {
            gvk: Gvk::new("v1", "Secret"),
            plural: "secrets".into(),
            namespaced: true,
            has_status: false,
        };
        let managers = Managers { objects: "us".into(), status: "us-status".into() };
        let uri = |only: Option<Key>| {
            let (api_version, plural) = ("v1".into(), "secrets".into());
            let (namespaces, labels) = (Vec::new(), Selector::everything());
            let subject = Subject { api_version, plural, only, namespaces, labels };
            Kind::new(subject, &managers).list_uri(&secrets, "", "watch=1")
        };
        assert_eq!(uri(None), "/api/v1/secrets?watch=1");
        assert_eq!(
            uri(Some(Key::new("web", "my.auth-1"))),
            "/api/v1/namespaces/web/secrets?fieldSelector=metadata.name%3Dmy.auth-1&watch=1"
        );
        assert_eq!(
            uri(Some(Key::new("../x", "a&b,c=d"))),
            "/api/v1/namespaces/..%2Fx/secrets?fieldSelector=metadata.name%3Da%26b%2Cc%3Dd&watch=1"
        );
    }

    #[test]
    fn object_that_our_write_takes_out_of_sight_is_gone() {
        let managers = Managers { objects: "us".into(), status: "us-status".into() };
        let subject = Subject {
            api_version: "v1".into(),
            plural: "pods".into(),
            only: None,
            namespaces: Vec::new(),
            labels: Selector::label("app", "a"),
        };
        let kind = Kind::new(subject, &managers);
        let pod = |app: &str, version: u64| {
            let text = format!(
                r#"{{"metadata":{{"name":"p","uid":"1","labels":{{"app":"{app}"}},"resourceVersion":"{version}"}}}}"#
            );
            Object::read(&text, ("v1", "Pod"), &managers).expect("readable")
        };
        let key = Key::new("", "p");
        let write = |object| kind.begin_write(&key).end(Some(Event::Put(object)), None);
        write(pod("a", 5));
        assert_eq!(kind.count(), 1);
        write(pod("b", 6));
        assert_eq!(kind.count(), 0, "no watch would ever tell that it has gone");
        kind.watched(Event::Put(pod("a", 7)));
        assert_eq!(kind.count(), 1, "it may come back");
    }
}
