//! Running definitions: which parents to visit, what to ask the hook, what to do with its answer.
//!
//! Knows the cluster through `cluster`, hooks through `hook`, and takes its decisions from `plan`.

pub(crate) mod access;
mod farewell;
pub(crate) mod footing;
pub(crate) mod hosted;
pub(crate) mod memory;
pub(crate) mod meter;
mod metrics;
pub(crate) mod pause;
pub(crate) mod posted;
pub(crate) mod preview;
pub(crate) mod queue;
pub(crate) mod related;
mod report;
mod reporter;
pub(crate) mod room;
mod running;
mod selectors;
pub(crate) mod source;
mod strays;
pub(crate) mod undeclared;
pub(crate) mod visit;
pub(crate) mod waiting;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::cluster::event::Recorder;
use crate::controller::meter::Meters;
use crate::controller::reporter::Reporter;
use crate::controller::running::{Means, Running};
use crate::hook::{Changes, PathService};

/// How every definition is run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Visits of one definition at once.
    pub workers: usize,
    /// Visits of all definitions at once, beside the one that each may always make.
    pub further_visits: Arc<Semaphore>,
    /// The longest wait between the retries of a parent.
    pub longest_retry: Duration,
    /// For how long a finalize hook that cannot be used may hold up a deletion.
    pub finalize_patience: Duration,
    /// Every parent is visited at least this often.
    pub resync: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            workers: 8,
            further_visits: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            longest_retry: queue::LONGEST_RETRY,
            finalize_patience: Duration::from_secs(60),
            resync: None,
        }
    }
}

/// How hooks are reached.
pub(crate) struct Hooks {
    pub paths: PathService,
    /// Tells which built-in hooks answer anew; the parents of their definitions are then visited.
    pub changes: Option<watch::Receiver<Changes>>,
    /// What is measured of definitions and the calls of their hooks.
    pub meters: Arc<Meters>,
}

/// Runs whatever definitions there are, following their changes, until `ending` resolves.
pub(crate) async fn run(
    cluster: Arc<Cluster>,
    mut definitions: watch::Receiver<source::Definitions>,
    hooks: Hooks,
    settings: Settings,
    ending: impl Future<Output = ()>,
) {
    let recorder = Recorder::new(cluster.clone());
    let mut leads = cluster.gate.leads();
    let reporter = Reporter::new(cluster.clone());
    let mut running = Running::new(Means { cluster, recorder, reporter: reporter.clone(), hooks, settings });
    // Ends with this function.
    let mut reporting = JoinSet::new();
    reporting.spawn(reporter.run());
    let mut ending = std::pin::pin!(ending);
    loop {
        let wanted = definitions.borrow_and_update().clone();
        running.follow(&wanted);
        tokio::select! {
            changed = definitions.changed() => if changed.is_err() { break },
            Ok(()) = leads.changed() => if *leads.borrow_and_update() { running.tell_anew() },
            () = &mut ending => break,
        }
    }
    running.stop_all().await;
}
