//! What the parents of one definition want to see beside their children: it holds the kinds that their rules name, wakes
//! the parents whose rules pick an object that changes, and shows what is there.
//!
//! A parent's rules stay in force until its customize hook gives others, so a change always wakes whom it concerns.

mod index;
pub(crate) mod rule;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use crate::cluster::Cluster;
use crate::cluster::kind::{Interest, Kind, Origin, Resource, State as KindState, Use};
use crate::cluster::object::{Object, Version};
use crate::cluster::store::Change;
use crate::config::spec::ResourceName;
use crate::controller::queue::Queue;
use crate::controller::related::index::Index;
use crate::controller::related::rule::{Rule, Scope};
use crate::controller::related::watches::Watches;
use crate::object::name::Key;
use crate::object::selector::Selector;
use crate::problem::Problem;

/// A customize hook is asked again at a visit after this time: what it depends on beside the parent is not known here.
const ANSWER_LASTS: Duration = Duration::from_secs(20 * 60);

pub(crate) struct Related {
    number: u64,
    cluster: Arc<Cluster>,
    queue: Arc<Queue>,
    state: Mutex<State>,
    /// For the listeners, which must not keep it alive.
    this: Weak<Related>,
}

#[derive(Default)]
struct State {
    wishes: HashMap<Key, Wish>,
    held: HashMap<ResourceName, Held>,
    /// Parents with rules that pick namespaces by their labels.
    labelling: BTreeSet<Key>,
    /// Held while there are such parents.
    namespaces: Option<Watched>,
}

/// What one parent's customize hook answered.
struct Wish {
    uid: Box<str>,
    made_of: MadeOf,
    since: Instant,
    /// By the name of the revision that it was asked about; empty for the parent as it is.
    answers: BTreeMap<String, Arc<[Rule]>>,
    /// Those of all answers: whatever any of them picks concerns the parent.
    rules: Arc<[Rule]>,
}

impl Wish {
    fn holds_for(&self, parent: &Object) -> bool {
        let same = self.uid == parent.uid && self.made_of == MadeOf::of(parent);
        same && self.since.elapsed() < ANSWER_LASTS
    }
}

/// The state of the parent that an answer is for. A kind without generations has only versions.
#[derive(PartialEq)]
struct MadeOf(i64, Option<Version>);

/// A kind that rules name.
#[derive(Default)]
struct Held {
    watches: Watches<Watched>,
    index: Index,
}

/// A kind, or the objects of it with some labels, under watch for the sake of rules.
struct Watched {
    hold: Use,
    /// Wakes parents when the kind comes or goes.
    following: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.following.abort();
    }
}

/// What there is to see for one parent.
#[derive(Default)]
pub(crate) struct Sight {
    pub groups: Vec<Group>,
    /// Why something may be missing from it.
    pub lacking: Option<Lacking>,
}

pub(crate) struct Group {
    pub resource: Arc<Resource>,
    pub objects: Vec<Arc<Object>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lacking {
    /// It is being read, and there in a moment.
    Cache(String),
    /// A kind that cannot be read, or is not there.
    Kind(String),
    /// A rule that makes no sense for its kind.
    Refused(Problem),
}

impl Related {
    pub(crate) fn new(number: u64, cluster: Arc<Cluster>, queue: Arc<Queue>) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new_cyclic(|this| Related { number, cluster, queue, state, this: this.clone() })
    }

    /// The rules that were answered for the parent, as it is or as it would be in another revision.
    pub(crate) fn known(&self, parent: &Object, revision: &str) -> Option<Arc<[Rule]>> {
        let state = self.lock();
        let wish = state.wishes.get(&parent.key).filter(|wish| wish.holds_for(parent))?;
        wish.answers.get(revision).cloned()
    }

    /// Puts a parent's rules in the place of those it had, or beside those of other revisions of the same parent.
    pub(crate) fn wish(&self, parent: &Object, revision: &str, rules: Vec<Rule>) -> Arc<[Rule]> {
        let answered: Arc<[Rule]> = rules.into();
        let mut state = self.lock();
        state.unlist(&parent.key);
        let known = state.wishes.remove(&parent.key).filter(|wish| wish.holds_for(parent));
        let (since, mut answers) =
            known.map_or_else(|| (Instant::now(), BTreeMap::new()), |wish| (wish.since, wish.answers));
        answers.insert(revision.into(), answered.clone());
        let rules: Arc<[Rule]> = match answers.len() {
            1 => answered.clone(),
            _ => answers.values().flat_map(|rules| rules.iter()).cloned().collect(),
        };
        let (uid, made_of) = (parent.uid.clone(), MadeOf::of(parent));
        let wish = Wish { uid, made_of, since, answers, rules: rules.clone() };
        let mut unused = Vec::new();
        for rule in rules.iter() {
            let held = state.held.entry(rule.resource.clone()).or_default();
            held.index.add(rule, &parent.key);
            unused.extend(held.watches.add(&rule.labels, |labels| self.hold(&rule.resource, labels)));
            if matches!(rule.scope, Scope::Labelled(_)) {
                state.labelling.insert(parent.key.clone());
                state.namespaces.get_or_insert_with(|| self.hold_namespaces());
            }
        }
        state.wishes.insert(parent.key.clone(), wish);
        unused.extend(state.unused());
        drop(state);
        drop(unused);
        answered
    }

    /// Lets go of what only this parent wanted.
    pub(crate) fn forget(&self, parent: &Key) {
        let mut state = self.lock();
        if !state.wishes.contains_key(parent) {
            return;
        }
        state.unlist(parent);
        state.wishes.remove(parent);
        let unused = state.unused();
        drop(state);
        drop(unused);
    }

    /// Has every customize hook asked again at its parent's next visit.
    pub(crate) fn ask_anew(&self) {
        self.lock().wishes.values_mut().for_each(|wish| wish.made_of = MadeOf(-1, None));
    }

    /// What the rules pick of what is there. Rules of one kind are joined.
    pub(crate) fn seen(&self, rules: &[Rule]) -> Sight {
        let mut sight = Sight::default();
        let mut kinds: BTreeMap<&ResourceName, Vec<&Rule>> = BTreeMap::new();
        rules.iter().for_each(|rule| kinds.entry(&rule.resource).or_default().push(rule));
        for (name, rules) in kinds {
            match self.group(name, &rules) {
                Ok(group) => sight.groups.push(group),
                Err(lacking) => {
                    sight.lacking.get_or_insert(lacking);
                }
            }
        }
        sight
    }

    fn group(&self, name: &ResourceName, rules: &[&Rule]) -> Result<Group, Lacking> {
        let state = self.lock();
        let kinds = state.kinds(name, rules);
        let namespaces = state.namespaces.as_ref().map(|watched| watched.hold.kind.clone());
        drop(state);
        let mut resource = None;
        for kind in &kinds {
            resource = Some(live(kind)?);
        }
        let resource = resource.ok_or_else(|| Lacking::Cache(format!("{name} is being listed")))?;
        let by_labels = rules.iter().find(|rule| matches!(rule.scope, Scope::Labelled(_)));
        if let Some(rule) = by_labels {
            if !resource.namespaced {
                let at = format!("relatedResources[{}]", rule.index);
                return Err(Lacking::Refused(
                    Problem::new(format!("`{at}` has a `namespaceSelector`"))
                        .expected(format!("none: {} has no namespaces", resource.plural)),
                ));
            }
            namespaces.as_deref().map(live).transpose()?;
        }
        let objects = pick(&kinds, rules, namespaces.as_deref());
        match objects.iter().find(|object| object.body.is_none()) {
            Some(blank) => Err(Lacking::Cache(format!("{} is being read anew", blank.key))),
            None => Ok(Group { resource, objects }),
        }
    }

    fn hold(&self, name: &ResourceName, labels: &Selector) -> Watched {
        let (this, about) = (self.this.clone(), name.clone());
        let hear = move |change: &Change, origin: Option<&Origin>| {
            if let Some(related) = this.upgrade() {
                related.hear(&about, change, origin);
            }
        };
        let hold = self.cluster.watch_labelled(&name.api_version, &name.resource, labels, hear);
        let about = name.clone();
        self.watched(hold, move |state| {
            state.held.get(&about).map(|held| held.index.parents()).unwrap_or_default()
        })
    }

    fn hold_namespaces(&self) -> Watched {
        let this = self.this.clone();
        let hold = self.cluster.watch("v1", "namespaces", Interest::All, move |change, _| {
            if let Some(related) = this.upgrade() {
                related.hear_of_namespace(change);
            }
        });
        self.watched(hold, |state| state.labelling.clone())
    }

    /// Wakes `concerned` whenever the kind comes or goes.
    fn watched(&self, hold: Use, concerned: impl Fn(&State) -> BTreeSet<Key> + Send + 'static) -> Watched {
        let this = self.this.clone();
        let mut states = hold.kind.states();
        let following = tokio::spawn(async move {
            while states.changed().await.is_ok() {
                let Some(related) = this.upgrade() else { return };
                let parents = concerned(&related.lock());
                parents.into_iter().for_each(|parent| related.queue.add(parent));
            }
        });
        Watched { hold, following: following.abort_handle() }
    }

    /// Wakes the parents whose rules pick the object as it was or as it is. A visit has seen its own writes.
    fn hear(&self, name: &ResourceName, change: &Change, origin: Option<&Origin>) {
        let state = self.lock();
        let mut parents = BTreeSet::new();
        for object in [&change.old, &change.new].into_iter().flatten() {
            parents.extend(state.picking(name, object));
        }
        drop(state);
        let own = origin.filter(|origin| origin.controller == self.number).map(|origin| &origin.parent);
        parents.into_iter().filter(|parent| Some(parent) != own).for_each(|parent| self.queue.add(parent));
    }

    /// Wakes the parents for whom a namespace has begun or ceased to count.
    fn hear_of_namespace(&self, change: &Change) {
        let matched = |selector: &Selector, object: &Option<Arc<Object>>| {
            object.as_ref().is_some_and(|object| selector.matches(&object.labels))
        };
        let moved = |rule: &Rule| match &rule.scope {
            Scope::Labelled(selector) => matched(selector, &change.old) != matched(selector, &change.new),
            _ => false,
        };
        let state = self.lock();
        let wishing = state
            .labelling
            .iter()
            .filter(|parent| state.wishes.get(parent).is_some_and(|wish| wish.rules.iter().any(moved)));
        let parents: Vec<Key> = wishing.cloned().collect();
        drop(state);
        parents.into_iter().for_each(|parent| self.queue.add(parent));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl MadeOf {
    fn of(parent: &Object) -> Self {
        MadeOf(parent.generation, (parent.generation == 0).then(|| parent.version.clone()))
    }
}

impl State {
    /// Takes a parent's rules out of the indexes.
    fn unlist(&mut self, parent: &Key) {
        self.labelling.remove(parent);
        for rule in self.wishes.get(parent).into_iter().flat_map(|wish| wish.rules.iter()) {
            if let Some(held) = self.held.get_mut(&rule.resource) {
                held.index.remove(rule, parent);
                held.watches.remove(&rule.labels);
            }
        }
    }

    /// What no rule needs any more, to be let go.
    fn unused(&mut self) -> Vec<Watched> {
        let mut unused: Vec<Watched> =
            self.held.values_mut().flat_map(|held| held.watches.take_unused()).collect();
        self.held.retain(|_, held| !held.index.is_empty());
        if self.labelling.is_empty() {
            unused.extend(self.namespaces.take());
        }
        unused
    }

    /// What shows all that these rules of one kind may pick.
    fn kinds(&self, name: &ResourceName, rules: &[&Rule]) -> Vec<Arc<Kind>> {
        let watches = self.held.get(name).map(|held| &held.watches);
        let mut kinds: Vec<Arc<Kind>> = Vec::new();
        for watched in rules.iter().filter_map(|rule| watches?.showing(&rule.labels)) {
            if !kinds.iter().any(|known| Arc::ptr_eq(known, &watched.hold.kind)) {
                kinds.push(watched.hold.kind.clone());
            }
        }
        kinds
    }

    /// The parents with a rule that picks this object.
    fn picking<'a>(&'a self, name: &'a ResourceName, object: &'a Object) -> impl Iterator<Item = Key> + 'a {
        let candidates = self.held.get(name).into_iter().flat_map(|held| held.index.candidates(&object.key));
        let namespaces = self.namespaces.as_ref().map(|held| &*held.hold.kind);
        let picked = move |rule: &&Rule| {
            rule.resource == *name && rule.picks(object, |selector, at| is_labelled(namespaces, selector, at))
        };
        let picks = move |parent: &&Key| {
            self.wishes.get(*parent).is_some_and(|wish| wish.rules.iter().any(|rule| picked(&rule)))
        };
        candidates.filter(picks).cloned()
    }
}

fn is_labelled(namespaces: Option<&Kind>, selector: &Selector, name: &str) -> bool {
    let namespace = namespaces.and_then(|namespaces| namespaces.get(&Key::new("", name)));
    namespace.is_some_and(|namespace| selector.matches(&namespace.labels))
}

fn live(kind: &Kind) -> Result<Arc<Resource>, Lacking> {
    let name = || format!("related {} of {}", kind.plural, kind.api_version);
    match kind.state() {
        KindState::Live(resource) => Ok(resource),
        KindState::Absent(message) => Err(Lacking::Kind(format!("{}: {message}", name()))),
        KindState::Failing(message) => Err(Lacking::Kind(format!("{} cannot be read: {message}", name()))),
        KindState::Starting => Err(Lacking::Cache(format!("{} are being listed", name()))),
    }
}

/// The objects that any of the rules picks. One with the labels of several is shown once, as it was seen last.
fn pick(kinds: &[Arc<Kind>], rules: &[&Rule], namespaces: Option<&Kind>) -> Vec<Arc<Object>> {
    let mut chosen: HashMap<&Selector, HashSet<String>> = HashMap::new();
    for rule in rules {
        if let (Scope::Labelled(selector), Some(namespaces)) = (&rule.scope, namespaces) {
            let matching = namespaces.select(|namespace| selector.matches(&namespace.labels));
            chosen.insert(selector, matching.iter().map(|namespace| namespace.key.name.clone()).collect());
        }
    }
    let labelled = |selector: &Selector, namespace: &str| {
        chosen.get(selector).is_some_and(|chosen| chosen.contains(namespace))
    };
    let mut picked: HashMap<Key, Arc<Object>> = HashMap::new();
    for kind in kinds {
        for object in kind.select(|object| rules.iter().any(|rule| rule.picks(object, labelled))) {
            let known = picked.entry(object.key.clone()).or_insert_with(|| object.clone());
            if object.version.newer_than(&known.version) {
                *known = object;
            }
        }
    }
    picked.into_values().collect()
}
