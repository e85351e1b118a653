//! Running definitions: which parents to visit, what to ask the hook, what to do with its answer.
//!
//! Knows the cluster through `cluster`, hooks through `hook`, and takes its decisions from `plan`.

pub(crate) mod access;
pub(crate) mod hosted;
pub(crate) mod memory;
pub(crate) mod queue;
pub(crate) mod related;
pub(crate) mod room;
pub(crate) mod source;
pub(crate) mod undeclared;
pub(crate) mod visit;
pub(crate) mod waiting;
mod wake;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::event::{Recorder, Severity};
use crate::controller::hosted::Hosted;
use crate::hook::PathService;

/// How every definition is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Visits of one definition at once.
    pub workers: usize,
    /// The longest wait between the retries of a parent.
    pub longest_retry: Duration,
    /// For how long a finalize hook that cannot be used may hold up a deletion.
    pub finalize_patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            workers: 8,
            longest_retry: queue::LONGEST_RETRY,
            finalize_patience: Duration::from_secs(60),
        }
    }
}

/// How hooks are reached.
pub(crate) struct Hooks {
    pub paths: PathService,
    /// Counts up whenever the built-in hooks answer anew; every parent is then visited.
    pub changes: Option<watch::Receiver<u64>>,
}

/// Visits under way at the end of the process may take this long.
const GRACE: Duration = Duration::from_secs(30);

/// Runs whatever definitions there are, following their changes, until `ending` resolves.
pub(crate) async fn run(
    cluster: Arc<Cluster>,
    mut definitions: watch::Receiver<source::Definitions>,
    hooks: Hooks,
    settings: Settings,
    ending: impl Future<Output = ()>,
) {
    let recorder = Recorder::new(cluster.clone());
    let mut running: BTreeMap<String, Hosted> = BTreeMap::new();
    let mut ending = std::pin::pin!(ending);
    loop {
        let wanted = definitions.borrow_and_update().clone();
        let mut stopping = BTreeMap::new();
        for name in ended(&running, &wanted) {
            let hosted = running.remove(&name).expect("a running definition");
            info!(controller = name, "controller stopping");
            // Visits may take their time to end; only a successor of the same name waits for them.
            stopping.insert(name, tokio::spawn(hosted.stop()));
        }
        for (name, definition) in wanted {
            if running.contains_key(&name) {
                continue;
            }
            let before = stopping.remove(&name);
            let about = room::about(&definition);
            match Hosted::start(definition, cluster.clone(), recorder.clone(), &hooks, settings, before) {
                Ok(hosted) => {
                    running.insert(name, hosted);
                }
                Err(problem) => {
                    error!(controller = name, %problem, "controller cannot be started");
                    if let Some(about) = about {
                        let message = format!("Cannot create new controller: {problem}");
                        recorder.publish(&about, Severity::Warning, "CreateError", &message);
                    }
                }
            }
        }
        tokio::select! {
            changed = definitions.changed() => if changed.is_err() { break },
            () = &mut ending => break,
        }
    }
    stop_all(running).await;
}

/// Running definitions that are gone or were changed. Metadata alone never restarts one.
fn ended(running: &BTreeMap<String, Hosted>, wanted: &source::Definitions) -> Vec<String> {
    let same = |name: &String, hosted: &Hosted| {
        wanted.get(name).is_some_and(|definition| definition.spec == hosted.definition.spec)
    };
    running.iter().filter(|(name, hosted)| !same(name, hosted)).map(|(name, _)| name.clone()).collect()
}

async fn stop_all(running: BTreeMap<String, Hosted>) {
    let stops = futures::future::join_all(running.into_values().map(Hosted::stop));
    if tokio::time::timeout(GRACE, stops).await.is_err() {
        warn!(seconds = GRACE.as_secs(), "visits under way did not end in time");
    }
}
