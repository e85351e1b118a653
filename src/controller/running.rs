//! Which definitions run: started, stopped and refused as what is wanted changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::{Recorder, Severity};
use crate::config::Definition;
use crate::controller::hosted::Hosted;
use crate::controller::posted::{Posted, Refusal};
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
    pub hooks: Hooks,
    pub settings: Settings,
}

/// The definitions at work, by their ids.
pub(super) struct Running {
    means: Means,
    hosted: BTreeMap<String, Hosted>,
    /// Why others are not, as it was told.
    refused: BTreeMap<Name, Refusal>,
}

impl Running {
    pub(super) fn new(means: Means) -> Self {
        Running { means, hosted: BTreeMap::new(), refused: BTreeMap::new() }
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
        for definition in in_order(wanted) {
            let id = definition.id();
            if self.hosted.contains_key(&id) {
                continue;
            }
            if let Err(problem) = self.start(&definition, stopping.remove(&id)) {
                let name = (definition.spec.role, id);
                let refusal = Refusal::unusable(problem.to_string());
                self.tell_of_start(&name, &definition, &refusal);
                refused.insert(name, refusal);
            }
        }
        self.refused = refused;
    }

    /// Has everything told that was not while this process stood by.
    pub(super) fn tell_anew(&mut self) {
        self.refused.clear();
        for hosted in self.hosted.values() {
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
        let stop = |(id, hosted): (String, Hosted)| {
            info!(controller = id, "controller stopping");
            // Visits may take their time to end; only a successor of the same name waits for them.
            (id, tokio::spawn(stop(hosted, recorder.clone())))
        };
        others.into_iter().map(stop).collect()
    }

    fn start(&mut self, definition: &Arc<Definition>, before: Option<JoinHandle<()>>) -> Result<(), Problem> {
        let running = self.hosted.values().map(|hosted| &*hosted.definition);
        if let Some(rival) = rival(definition, running) {
            return Err(finalizer_taken(definition, rival));
        }
        let Means { cluster, recorder, hooks, settings } = &self.means;
        let hosted =
            Hosted::start(definition.clone(), cluster.clone(), recorder.clone(), hooks, *settings, before)?;
        announce(recorder, definition, "Starting");
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
        error!(controller = name.1, problem = refusal.message, "definition refused");
        let message = format!("Cannot create new controller: {}", refusal.message);
        self.means.recorder.publish(&posted.about, Severity::Warning, refusal.reason, &message);
    }

    fn tell_of_start(&self, name: &Name, definition: &Definition, refusal: &Refusal) {
        if !self.is_news(name, refusal) {
            return;
        }
        error!(controller = name.1, problem = refusal.message, "controller cannot be started");
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

async fn stop(hosted: Hosted, recorder: Arc<Recorder>) {
    let definition = hosted.definition.clone();
    announce(&recorder, &definition, "Stopping");
    hosted.stop().await;
    announce(&recorder, &definition, "Stopped");
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
    let name = |definition: &Definition| (definition.spec.role, definition.name.clone());
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
