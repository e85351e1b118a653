//! What is known of one kind: every object by name, its owner and who has none.
//!
//! Three things feed it: the watch, a relist, and the answers to our own writes. An older version never
//! replaces a newer one, so a visit never sees a state from before its own last write. While a write is
//! under way, watch events of its object wait for the answer: the writer learns of its own write first.
//!
//! An answer holds whatever others wrote just before. Nobody was told of that as a change by others, so the watch
//! event of it, which comes late, still is one: it is told from the echo of our own write by its version.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::object::{Object, Version};
use crate::object::name::Key;

/// An object before and after.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub old: Option<Arc<Object>>,
    pub new: Option<Arc<Object>>,
}

/// Something a watch said.
#[derive(Debug)]
pub(crate) enum Event {
    Put(Object),
    Gone(Object),
}

#[derive(Default)]
pub(crate) struct Store {
    objects: HashSet<Named>,
    /// In name order.
    by_controller: HashMap<Box<str>, Vec<Arc<Object>>>,
    without_controller: BTreeMap<String, BTreeSet<Key>>,
    /// Uids that a delete of ours removed before the watch said so, with their namespaces. A uid never comes back.
    removed: HashMap<Box<str>, String>,
    /// Writes under way, with the events that wait for their answers.
    writing: HashMap<Key, Writing>,
    /// Versions that our own writes made and the watch has not told yet.
    echoes: HashMap<Key, Vec<Version>>,
    /// The newest version that a watch or a list has told: of each namespace where each has a watch of its own, else of all.
    told: HashMap<String, u64>,
    /// Whether each namespace has a watch of its own.
    by_namespace: bool,
    /// The JSON that is kept, all objects together.
    bytes: usize,
}

/// An object that is found by its own name, which so is kept once.
struct Named(Arc<Object>);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl Borrow<Key> for Named {
    fn borrow(&self) -> &Key {
        &self.0.key
    }
}

#[derive(Default)]
struct Writing {
    writers: usize,
    waiting: Vec<Event>,
}

impl Store {
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key).map(|Named(object)| object)
    }

    /// Objects, and bytes of their JSON.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.objects.len(), self.bytes)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.iter().map(|Named(object)| object)
    }

    /// Objects whose controller has this uid, in name order.
    pub(crate) fn controlled_by(&self, uid: &str) -> Vec<Arc<Object>> {
        self.by_controller.get(uid).cloned().unwrap_or_default()
    }

    /// Objects without a controller, of one namespace or (empty) of all, in name order.
    pub(crate) fn orphans(&self, namespace: &str) -> Vec<Arc<Object>> {
        let of_one = self.without_controller.get(namespace).into_iter();
        let keys: Vec<&Key> = if namespace.is_empty() {
            self.without_controller.values().flatten().collect()
        } else {
            of_one.flatten().collect()
        };
        keys.into_iter().filter_map(|key| self.get(key)).cloned().collect()
    }

    /// Takes in what the watch said. `None`: nothing new.
    pub(crate) fn watched(&mut self, event: Event) -> Option<Change> {
        let (Event::Put(Object { key, version, .. }) | Event::Gone(Object { key, version, .. })) = &event;
        let told = self.told(&key.namespace);
        *told = (*told).max(version.number());
        if let Some(writing) = self.writing.get_mut(key) {
            writing.waiting.push(event);
            return None;
        }
        self.hear(event)
    }

    /// Whether a watch event only tells what the answer to our own write has told already, which it does once.
    pub(crate) fn echoed(&mut self, key: &Key, uid: &str, version: &Version) -> bool {
        let known = self.get(key);
        let same = known
            .is_some_and(|known| *known.uid == *uid && known.version == *version && known.body.is_some());
        if !same || self.writing.contains_key(key) || !self.is_echo(key, version) {
            return false;
        }
        let told = self.told(&key.namespace);
        *told = (*told).max(version.number());
        true
    }

    /// The newest version that was told of this namespace.
    fn told(&mut self, namespace: &str) -> &mut u64 {
        let namespace = if self.by_namespace { namespace } else { "" };
        if !self.told.contains_key(namespace) {
            self.told.insert(namespace.into(), 0);
        }
        self.told.get_mut(namespace).expect("it was just put in")
    }

    /// Announces a write of `key`; `answered` must follow.
    pub(crate) fn begin_write(&mut self, key: &Key) {
        self.writing.entry(key.clone()).or_default().writers += 1;
    }

    /// Ends a write: its answer first, then the events that waited. Gives the answer's own change, and the
    /// changes that the waiting events still made.
    pub(crate) fn end_write(&mut self, key: &Key, answer: Option<Event>) -> (Option<Change>, Vec<Change>) {
        let own = answer.and_then(|event| self.take_in(event));
        if let Some(Change { new: Some(object), .. }) = &own {
            self.echoes.entry(key.clone()).or_default().push(object.version.clone());
        }
        let Some(writing) = self.writing.get_mut(key) else { return (own, Vec::new()) };
        writing.writers -= 1;
        if writing.writers > 0 {
            return (own, Vec::new());
        }
        let waiting = self.writing.remove(key).map(|writing| writing.waiting).unwrap_or_default();
        let others = waiting.into_iter().filter_map(|event| self.hear(event)).collect();
        (own, others)
    }

    /// Remembers that a delete of ours has removed the object at once.
    pub(crate) fn remove_now(&mut self, key: &Key, uid: &str) -> Option<Change> {
        if self.get(key).is_none_or(|object| &*object.uid != uid) {
            return None;
        }
        self.removed.insert(uid.into(), key.namespace.clone());
        self.remove(key)
    }

    /// Takes in a complete list of a namespace, or (empty) of all, taken at `version`.
    pub(crate) fn relisted(&mut self, list: Vec<Object>, namespace: &str, version: &Version) -> Vec<Change> {
        self.by_namespace = !namespace.is_empty();
        let within = |key: &Key| namespace.is_empty() || key.namespace == namespace;
        // A cluster that was put back to a backup counts its versions from there: nothing known is newer than the list.
        let told = self.told(namespace);
        let went_back = matches!(version, Version::Number(number) if *number < *told);
        *told = version.number();
        let names: HashSet<Key> = list.iter().map(|object| object.key.clone()).collect();
        let outlived = |object: &Object| !went_back && object.version.newer_than(version);
        let vanished =
            |object: &&Arc<Object>| within(&object.key) && !names.contains(&object.key) && !outlived(object);
        let vanished: Vec<Key> = self.all().filter(vanished).map(|object| object.key.clone()).collect();
        let unheard = self.unheard(within, went_back, version);
        let mut changes: Vec<Change> = vanished.iter().filter_map(|key| self.remove(key)).collect();
        let take =
            |object: Object| if went_back { self.replace(object) } else { self.watched(Event::Put(object)) };
        changes.extend(list.into_iter().filter_map(take));
        self.removed.retain(|_, at| !namespace.is_empty() && at != namespace);
        let known = unheard.iter().filter_map(|key| self.get(key));
        changes.extend(known.map(|object| Change { old: None, new: Some(object.clone()) }));
        changes
    }

    /// Forgets every object: their kind is gone.
    pub(crate) fn vanished(&mut self) -> Vec<Change> {
        let keys: Vec<Key> = self.all().map(|object| object.key.clone()).collect();
        keys.iter().filter_map(|key| self.remove(key)).collect()
    }

    /// Takes in a watch event that waits for nothing. One that an answer has overtaken still tells of a change.
    fn hear(&mut self, event: Event) -> Option<Change> {
        let Event::Put(object) = &event else { return self.take_in(event) };
        let ours = self.is_echo(&object.key, &object.version);
        let known = self.get(&object.key);
        let overtaken = known.filter(|known| !ours && known.version.newer_than(&object.version)).cloned();
        let gone = self.removed.contains_key(&object.uid);
        let change = self.take_in(event);
        change.or_else(|| Some(Change { old: None, new: Some(overtaken.filter(|_| !gone)?) }))
    }

    /// Objects that we wrote and whose events a list has come in place of: what others did before is in our answers, and
    /// nothing else will tell of it.
    fn unheard(&mut self, within: impl Fn(&Key) -> bool, went_back: bool, version: &Version) -> Vec<Key> {
        let mut unheard = Vec::new();
        self.echoes.retain(|key, echoes| {
            if !within(key) {
                return true;
            }
            let before = echoes.len();
            echoes.retain(|echo| !went_back && echo.newer_than(version));
            if echoes.len() < before {
                unheard.push(key.clone());
            }
            !echoes.is_empty()
        });
        unheard
    }

    /// Whether an event tells of our own write, which it does once.
    fn is_echo(&mut self, key: &Key, version: &Version) -> bool {
        let Some(echoes) = self.echoes.get_mut(key) else { return false };
        let before = echoes.len();
        echoes.retain(|echo| echo != version);
        let found = echoes.len() < before;
        if echoes.is_empty() {
            self.echoes.remove(key);
        }
        found
    }

    fn take_in(&mut self, event: Event) -> Option<Change> {
        match event {
            Event::Put(object) => self.put(object),
            Event::Gone(object) => {
                self.removed.remove(&object.uid);
                let known = self.get(&object.key)?;
                // The version of a deletion is newer than anything known of the deleted object.
                let superseded = known.uid != object.uid && known.version.newer_than(&object.version);
                if superseded { None } else { self.remove(&object.key) }
            }
        }
    }

    fn put(&mut self, object: Object) -> Option<Change> {
        if self.removed.contains_key(&object.uid) {
            return None;
        }
        if let Some(known) = self.get(&object.key)
            && !object.version.newer_than(&known.version)
        {
            // The same object, now wanted whole: no change in the cluster.
            if object.version == known.version && known.body.is_none() && object.body.is_some() {
                self.replace(object);
            }
            return None;
        }
        self.replace(object)
    }

    fn replace(&mut self, object: Object) -> Option<Change> {
        let object = Arc::new(object);
        let old = self.objects.replace(Named(object.clone())).map(|Named(old)| old);
        if let Some(old) = &old {
            self.unindex(old);
        }
        self.index(&object);
        Some(Change { old, new: Some(object) })
    }

    fn remove(&mut self, key: &Key) -> Option<Change> {
        let Named(old) = self.objects.take(key)?;
        self.echoes.remove(key);
        self.unindex(&old);
        Some(Change { old: Some(old), new: None })
    }

    fn index(&mut self, object: &Arc<Object>) {
        self.bytes += length(object);
        let Some(controller) = &object.controller else {
            let orphans = self.without_controller.entry(object.key.namespace.clone()).or_default();
            orphans.insert(object.key.clone());
            return;
        };
        let owned = self.by_controller.entry(controller.uid.clone()).or_insert_with(|| Vec::with_capacity(1));
        let at = owned.partition_point(|known| known.key < object.key);
        owned.insert(at, object.clone());
    }

    fn unindex(&mut self, object: &Object) {
        self.bytes -= length(object);
        match &object.controller {
            Some(controller) => {
                if let Some(owned) = self.by_controller.get_mut(&controller.uid) {
                    owned.retain(|known| known.key != object.key);
                    if owned.is_empty() {
                        self.by_controller.remove(&controller.uid);
                    }
                }
            }
            None => {
                if let Some(keys) = self.without_controller.get_mut(&object.key.namespace) {
                    keys.remove(&object.key);
                    if keys.is_empty() {
                        self.without_controller.remove(&object.key.namespace);
                    }
                }
            }
        }
    }
}

/// The JSON that is kept of an object.
fn length(object: &Object) -> usize {
    object.body.as_ref().map_or(0, |body| body.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::object::Managers;

    fn object(name: &str, uid: &str, version: u64) -> Object {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"namespace":"n","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
        );
        let managers = Managers { objects: "m".into(), status: "s".into() };
        Object::read(&text, ("v1", "ConfigMap"), &managers).expect("readable")
    }

    fn key(name: &str) -> Key {
        Key::new("n", name)
    }

    #[test]
    fn older_event_never_replaces_a_newer_answer() {
        let mut store = Store::default();
        store.begin_write(&key("a"));
        let (own, _) = store.end_write(&key("a"), Some(Event::Put(object("a", "1", 7))));
        assert!(own.is_some());
        store.watched(Event::Put(object("a", "1", 6)));
        assert_eq!(store.get(&key("a")).expect("it is there").version, Version::Number(7));
        assert!(store.watched(Event::Put(object("a", "1", 7))).is_none());
        assert!(store.watched(Event::Put(object("a", "1", 8))).is_some());
    }

    #[test]
    fn event_of_our_own_write_waits_for_the_answer_and_says_nothing_new() {
        let mut store = Store::default();
        store.begin_write(&key("a"));
        assert!(store.watched(Event::Put(object("a", "1", 7))).is_none());
        let (own, others) = store.end_write(&key("a"), Some(Event::Put(object("a", "1", 7))));
        assert!(own.is_some());
        assert!(others.is_empty());
    }

    #[test]
    fn change_that_our_answer_overtook_is_still_told() {
        let mut store = Store::default();
        store.watched(Event::Put(object("a", "1", 5)));
        // Ours is version 7; 6 is by someone else, and its event comes during our write or after it.
        store.begin_write(&key("a"));
        store.watched(Event::Put(object("a", "1", 6)));
        let (_, others) = store.end_write(&key("a"), Some(Event::Put(object("a", "1", 7))));
        assert_eq!(others.len(), 1);
        assert_eq!(others[0].new.as_ref().expect("it is there").version, Version::Number(7), "as it is now");
        assert!(store.watched(Event::Put(object("a", "1", 7))).is_none(), "our own");

        store.begin_write(&key("a"));
        store.end_write(&key("a"), Some(Event::Put(object("a", "1", 9))));
        store.begin_write(&key("a"));
        store.end_write(&key("a"), Some(Event::Put(object("a", "1", 10))));
        assert!(store.watched(Event::Put(object("a", "1", 8))).is_some());
        assert!(store.watched(Event::Put(object("a", "1", 9))).is_none(), "our own");
        assert!(store.watched(Event::Put(object("a", "1", 10))).is_none(), "our own");
        assert!(store.echoes.is_empty());
    }

    #[test]
    fn list_in_place_of_our_own_event_tells_that_something_may_have_changed() {
        let mut store = Store::default();
        store.watched(Event::Put(object("a", "1", 5)));
        store.begin_write(&key("a"));
        store.end_write(&key("a"), Some(Event::Put(object("a", "1", 7))));
        let changes = store.relisted(vec![object("a", "1", 7)], "", &Version::Number(8));
        assert_eq!(changes.len(), 1, "6 may have been another's");
        assert!(store.relisted(vec![object("a", "1", 7)], "", &Version::Number(9)).is_empty(), "told once");
    }

    #[test]
    fn event_of_someone_else_during_our_write_is_still_a_change() {
        let mut store = Store::default();
        store.begin_write(&key("a"));
        store.watched(Event::Put(object("a", "1", 9)));
        let (_, others) = store.end_write(&key("a"), Some(Event::Put(object("a", "1", 7))));
        assert_eq!(others.len(), 1);
    }

    #[test]
    fn deleted_object_does_not_come_back_by_a_late_event() {
        let mut store = Store::default();
        store.watched(Event::Put(object("a", "1", 7)));
        assert!(store.remove_now(&key("a"), "1").is_some());
        assert!(store.watched(Event::Put(object("a", "1", 8))).is_none());
        assert!(store.watched(Event::Gone(object("a", "1", 9))).is_none());
        assert!(store.watched(Event::Put(object("a", "2", 10))).is_some());
    }

    #[test]
    fn object_kept_without_its_body_gets_it_by_a_relist_in_silence() {
        let mut store = Store::default();
        store.watched(Event::Put(object("a", "1", 7).slim()));
        assert!(store.relisted(vec![object("a", "1", 7)], "", &Version::Number(8)).is_empty());
        assert!(store.get(&key("a")).is_some_and(|object| object.body.is_some()));
    }

    #[test]
    fn bytes_are_those_of_what_is_kept() {
        let mut store = Store::default();
        let whole = |version| object("a", "1", version);
        let length = whole(1).body.expect("kept").get().len();
        store.watched(Event::Put(whole(1).slim()));
        assert_eq!(store.size(), (1, 0));
        store.watched(Event::Put(whole(1)));
        assert_eq!(store.size(), (1, length));
        store.watched(Event::Put(whole(2)));
        assert_eq!(store.size(), (1, length));
        store.watched(Event::Gone(whole(3)));
        assert_eq!(store.size(), (0, 0));
    }

    #[test]
    fn late_deletion_leaves_the_successor_of_the_same_name() {
        let mut store = Store::default();
        store.watched(Event::Put(object("a", "2", 10)));
        assert!(store.watched(Event::Gone(object("a", "1", 9))).is_none());
        assert!(store.get(&key("a")).is_some());
    }

    #[test]
    fn list_of_a_server_put_back_to_a_backup_replaces_what_is_newer() {
        let mut store = Store::default();
        store.watched(Event::Put(object("a", "1", 20)));
        store.watched(Event::Put(object("b", "2", 21)));
        store.relisted(vec![object("a", "1", 5)], "", &Version::Number(10));
        assert_eq!(store.get(&key("a")).map(|object| object.version.number()), Some(5));
        assert!(store.get(&key("b")).is_none());
        assert!(store.watched(Event::Put(object("a", "1", 11))).is_some());
    }

    #[test]
    fn list_of_one_namespace_says_nothing_of_another() {
        let mut store = Store::default();
        let at = |namespace: &str, name: &str, version| {
            let mut object = object(name, &format!("{namespace}{name}"), version);
            object.key.namespace = namespace.into();
            object
        };
        store.relisted(vec![at("n", "a", 5), at("n", "b", 6)], "n", &Version::Number(50));
        let changes = store.relisted(vec![at("m", "a", 7)], "m", &Version::Number(20));
        assert_eq!(changes.len(), 1, "another watch's list may be older");
        assert_eq!(store.size().0, 3);
        store.watched(Event::Put(at("m", "a", 60)));
        let changes = store.relisted(vec![at("n", "a", 5)], "n", &Version::Number(55));
        let gone: Vec<&Key> = changes.iter().filter_map(|change| Some(&change.old.as_ref()?.key)).collect();
        assert_eq!(gone, [&key("b")]);
        assert_eq!(store.get(&Key::new("m", "a")).map(|object| object.version.number()), Some(60));
    }

    #[test]
    fn relist_reports_what_vanished_and_keeps_what_was_written_since() {
        let mut store = Store::default();
        store.watched(Event::Put(object("gone", "1", 5)));
        store.begin_write(&key("written"));
        store.end_write(&key("written"), Some(Event::Put(object("written", "2", 20))));
        store.watched(Event::Put(object("same", "3", 6)));
        let changes =
            store.relisted(vec![object("same", "3", 6), object("new", "4", 9)], "", &Version::Number(10));
        let names: Vec<_> =
            changes.iter().map(|c| c.new.as_ref().or(c.old.as_ref()).map(|o| o.key.name.clone())).collect();
        assert_eq!(names, [Some("gone".to_string()), Some("new".to_string())]);
        assert!(store.get(&key("written")).is_some());
    }
}
