//! Which definitions run: started, stopped and refused as what is wanted changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::{Recorder, Severity};
use crate::config::Definition;
use crate::controller::farewell::Farewells;
use crate::controller::footing::{Footing, Started};
use crate::controller::hosted::{Hosted, Start};
use crate::controller::posted::{Posted, Refusal};
use crate::controller::reporter::{Entry, Reporter};
use crate::controller::room;
use crate::controller::source::{Definitions, Name};
use crate::controller::{Hooks, Settings};
use crate::problem::Problem;

/// Visits under way at the end of the process may take this long.
const GRACE: Duration = Duration::from_secs(30);

/// What every definition is started with.
pub(super) struct Means {
    pub cluster: Arc<Cluster>,
    pub recorder: Arc<Recorder>,
    pub reporter: Arc<Reporter>,
    pub hooks: Hooks,
    pub settings: Settings,
}

/// The definitions at work, by their ids.
pub(super) struct Running {
    means: Means,
    hosted: BTreeMap<String, Hosted>,
    /// Why others are not, as it was told.
    refused: BTreeMap<Name, Refusal>,
    farewells: Farewells,
}

impl Running {
    pub(super) fn new(means: Means) -> Self {
        let Means { cluster, recorder, reporter, .. } = &means;
        let farewells = Farewells::new(cluster.clone(), recorder.clone(), reporter.news.clone());
        Running { means, hosted: BTreeMap::new(), refused: BTreeMap::new(), farewells }
    }

    /// Makes those run that are wanted, and no others.
    pub(super) fn follow(&mut self, wanted: &Definitions) {
        let mut stopping = self.stop_others(wanted);
        let mut refused = BTreeMap::new();
        for posted in wanted.posted.values() {
            if let Err(refusal) = &posted.definitions {
                self.tell_of_posted(posted, refusal);
                refused.insert(posted.name(), refusal.clone());
            }
        }
        let mut begun = BTreeMap::new();
        for definition in in_order(wanted) {
            let id = definition.id();
            if let Some(hosted) = self.hosted.get(&id) {
                hosted.pause_as(&definition);
                continue;
            }
            if let Err(problem) = self.start(&definition, &mut begun, stopping.remove(&id)) {
                let name = (definition.spec.role, id);
                let refusal = Refusal::unusable(problem.to_string());
                self.tell_of_start(&name, &definition, &refusal);
                refused.insert(name, refusal);
            }
        }
        self.refused = refused;
        self.farewells.follow(wanted, stopping);
        let entries = wanted.posted.iter().map(|(name, posted)| (name.clone(), self.entry(posted)));
        self.means.reporter.know(entries.collect());
    }

    /// How a definition of the cluster stands.
    fn entry(&self, posted: &Arc<Posted>) -> Entry {
        let definitions = posted.definitions.iter().flatten();
        let ids: Vec<String> = definitions.map(|definition| definition.id()).collect();
        let role = posted.name().0;
        let refusal = self.refused.get(&posted.name());
        let refusal = refusal.or_else(|| ids.iter().find_map(|id| self.refused.get(&(role, id.clone()))));
        let footings = ids.iter().filter_map(|id| Some(self.hosted.get(id)?.footing.clone()));
        Entry {
            posted: posted.clone(),
            refusal: refusal.cloned(),
            footings: footings.collect(),
            farewell: self.farewells.words(&posted.name()),
        }
    }

    /// Has everything told that was not while this process stood by.
    pub(super) fn tell_anew(&mut self) {
        self.refused.clear();
        let mut told = BTreeSet::new();
        for hosted in self.hosted.values().filter(|hosted| told.insert(name(&hosted.definition))) {
            announce(&self.means.recorder, &hosted.definition, "Starting");
        }
    }

    /// Ends those that are gone or were changed. Metadata alone never restarts one.
    fn stop_others(&mut self, wanted: &Definitions) -> BTreeMap<String, JoinHandle<()>> {
        let same = |id: &String, hosted: &Hosted| {
            wanted.by_id.get(id).is_some_and(|definition| definition.spec == hosted.definition.spec)
        };
        let running = std::mem::take(&mut self.hosted).into_iter();
        let (kept, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            running.partition(|(id, hosted)| same(id, hosted));
        self.hosted = kept;
        let recorder = &self.means.recorder;
        let mut told = BTreeSet::new();
        let stop = |(id, hosted): (String, Hosted)| {
            info!(controller = id, "controller stopping");
            let recorder = told.insert(name(&hosted.definition)).then(|| recorder.clone());
            // Visits may take their time to end; only a successor of the same name waits for them.
            (id, tokio::spawn(stop(hosted, recorder)))
        };
        others.into_iter().map(stop).collect()
    }

    /// Starts one of the definitions of an object. Those that have `begun` with it share one event.
    fn start(
        &mut self,
        definition: &Arc<Definition>,
        begun: &mut BTreeMap<Name, Arc<Started>>,
        before: Option<JoinHandle<()>>,
    ) -> Result<(), Problem> {
        let running = self.hosted.values().map(|hosted| &*hosted.definition);
        if let Some(rival) = rival(definition, running.clone()) {
            return Err(finalizer_taken(definition, rival));
        }
        if let Some(other) = running.clone().find(|other| other.shares_parents_with(definition)) {
            tell_of_shared(&self.means.recorder, definition, other);
        }
        let Means { cluster, recorder, reporter, hooks, settings } = &self.means;
        let known = begun.get(&name(definition)).cloned();
        let started = known.clone().unwrap_or_default();
        let footing = Footing::new(reporter.news.clone(), started.clone());
        let start =
            Start::new(definition, cluster.clone(), recorder.clone(), hooks, settings.clone(), footing)?;
        let hosted = Hosted::start(definition.clone(), start, before);
        if known.is_none() {
            announce(recorder, definition, "Starting");
            begun.insert(name(definition), started);
        }
        self.hosted.insert(definition.id(), hosted);
        Ok(())
    }

    /// A refusal is told once, and again when its words change.
    fn is_news(&self, name: &Name, refusal: &Refusal) -> bool {
        self.refused.get(name) != Some(refusal)
    }

    fn tell_of_posted(&self, posted: &Posted, refusal: &Refusal) {
        let name = posted.name();
        // What the file hides is told by whoever joins the two.
        if refusal.reason != Refusal::UNUSABLE || !self.is_news(&name, refusal) {
            return;
        }
        error!(controller = name.1, error = refusal.message, "definition refused");
        let message = format!("Cannot create new controller: {}", refusal.message);
        self.means.recorder.publish(&posted.about, Severity::Warning, refusal.reason, &message);
    }

    fn tell_of_start(&self, name: &Name, definition: &Definition, refusal: &Refusal) {
        if !self.is_news(name, refusal) {
            return;
        }
        error!(controller = name.1, error = refusal.message, "controller cannot be started");
        if let Some(about) = room::about(definition) {
            let message = format!("Cannot create new controller: {}", refusal.message);
            self.means.recorder.publish(&about, Severity::Warning, refusal.reason, &message);
        }
    }

    pub(super) async fn stop_all(self) {
        let stops = futures::future::join_all(self.hosted.into_values().map(Hosted::stop));
        if tokio::time::timeout(GRACE, stops).await.is_err() {
            warn!(seconds = GRACE.as_secs(), "visits under way did not end in time");
        }
    }
}

async fn stop(hosted: Hosted, recorder: Option<Arc<Recorder>>) {
    let definition = hosted.definition.clone();
    let tell = |what| recorder.iter().for_each(|recorder| announce(recorder, &definition, what));
    tell("Stopping");
    hosted.stop().await;
    tell("Stopped");
}

fn name(definition: &Definition) -> Name {
    (definition.spec.role, definition.name.clone())
}

/// Events as Metacontroller makes them of a definition's life.
fn announce(recorder: &Arc<Recorder>, definition: &Definition, what: &str) {
    if let Some(about) = room::about(definition) {
        let message = format!("{what} controller: {}", definition.name);
        recorder.publish(&about, Severity::Normal, what, &message);
    }
}

/// Those of the file first, then the oldest, so that of two that cannot both run it is always the same one that does.
fn in_order(wanted: &Definitions) -> Vec<Arc<Definition>> {
    let mut definitions: Vec<Arc<Definition>> = wanted.by_id.values().cloned().collect();
    definitions.sort_by(|a, b| age(a).cmp(&age(b)));
    definitions
}

fn age(definition: &Definition) -> Option<&str> {
    definition.raw.pointer("/metadata/creationTimestamp").and_then(Value::as_str)
}

/// Another definition that would take the finalizer off this one's parents, and have its own finalized by this one.
fn rival<'r>(
    definition: &Definition,
    running: impl IntoIterator<Item = &'r Definition>,
) -> Option<&'r Definition> {
    let kind = |definition: &Definition| {
        let resource = &definition.spec.parent.resource;
        (resource.group().to_string(), resource.resource.clone())
    };
    running.into_iter().find(|other| {
        other.spec.finalizer == definition.spec.finalizer
            && kind(other) == kind(definition)
            && name(other) != name(definition)
    })
}

/// Each works by itself, so that neither is refused: a migration from one to the other passes through this.
fn tell_of_shared(recorder: &Arc<Recorder>, definition: &Definition, other: &Definition) {
    for (one, rival) in [(definition, other), (other, definition)] {
        let message =
            format!("has the parents of `{}` too: each writes their status over the other's", rival.name);
        warn!(controller = one.name, "{message}");
        if let Some(about) = room::about(one) {
            recorder.publish(&about, Severity::Warning, "SharedParents", &message);
        }
    }
}

fn finalizer_taken(definition: &Definition, rival: &Definition) -> Problem {
    let finalizer = &definition.spec.finalizer;
    let (kind, name, resource) = (rival.spec.role.kind(), &rival.name, &definition.spec.parent.resource);
    Problem::new(format!("finalizer `{finalizer}` is the one of {kind} `{name}` already, for {resource} too"))
        .expected("another `spec.finalizer`: each would finalize the other's parents")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, more: &str) -> Definition {
        let text = format!(
            "apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController\nmetadata: {{name: {name}}}\n\
             spec:\n  hooks: {{sync: {{webhook: {{url: 'http://a'}}}}}}\n  {more}\n"
        );
        crate::config::load("f.yaml", &text).expect("a good definition").remove(0)
    }

    #[test]
    fn finalizer_of_a_kind_belongs_to_one_definition() {
        let shelves = "parentResource: {apiVersion: demo.io/v1, resource: shelves}";
        let own = format!("{shelves}\n  finalizer: demo.io/own");
        let newer = own.replace("v1,", "v2,");
        let books = own.replace("shelves", "books");
        let first = definition("first", &own);
        let rival_of = |name: &str, more: &str| rival(&definition(name, more), [&first]).is_some();
        assert!(rival_of("second", &own));
        assert!(rival_of("second", &newer), "a kind's versions are the same objects");
        assert!(!rival_of("second", &books));
        assert!(!rival_of("second", shelves), "it has one of its own name");
        assert!(!rival_of("first", &own), "itself");
        let mimic = format!("{shelves}\n  finalizer: metacontroller.io/compositecontroller-plain");
        assert!(rival(&definition("mimic", &mimic), [&definition("plain", shelves)]).is_some());
    }
}
