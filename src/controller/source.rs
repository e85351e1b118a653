//! Where definitions come from: a file, the cluster's CompositeControllers and DecoratorControllers, or both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::kind::Interest;
use crate::config::{self, Definition};
use crate::object::selector::Selector;
use crate::problem::Problem;

/// Definitions by their ids.
pub(crate) type Definitions = BTreeMap<String, Arc<Definition>>;

/// A file's change is live within this time.
const LOOK: Duration = Duration::from_millis(500);

/// Follows a file of definitions. A version of it with any problem is not taken; the last good one stays.
///
/// The file is looked at, not subscribed to: what a mounted ConfigMap does to its links is always seen.
pub(crate) fn follow_file(path: PathBuf, first: Definitions) -> watch::Receiver<Definitions> {
    let (sender, receiver) = watch::channel(first);
    tokio::spawn(async move {
        let mut seen = std::fs::read(&path).ok();
        loop {
            tokio::time::sleep(LOOK).await;
            let text = std::fs::read(&path).ok();
            if text == seen || sender.is_closed() {
                continue;
            }
            seen = text;
            match read_file(&path) {
                Ok(definitions) => {
                    info!(file = %path.display(), controllers = definitions.len(), "definitions reloaded");
                    sender.send_replace(definitions);
                }
                Err(problems) => {
                    for problem in problems {
                        error!(%problem, "definition refused, the file's last good version stays in use");
                    }
                }
            }
        }
    });
    receiver
}

/// Reads a file of definitions, with all its problems at once.
pub(crate) fn read_file(path: &Path) -> Result<Definitions, Vec<Problem>> {
    let label = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| vec![Problem::new(format!("reading `{label}`: {error}"))])?;
    let definitions = config::load(&label, &text)?;
    Ok(definitions.into_iter().map(|definition| (definition.id(), Arc::new(definition))).collect())
}

/// Follows the cluster's CompositeControllers and DecoratorControllers that `selector` picks. A definition that is refused keeps its last good
/// version out of use.
pub(crate) fn follow_cluster(cluster: &Arc<Cluster>, selector: Selector) -> watch::Receiver<Definitions> {
    let (sender, receiver) = watch::channel(Definitions::new());
    let changed = Arc::new(Notify::new());
    let hold = |plural| {
        let tell = changed.clone();
        cluster.watch("metacontroller.k8s.io/v1alpha1", plural, Interest::All, move |_, _| {
            tell.notify_one();
        })
    };
    let holds = ["compositecontrollers", "decoratorcontrollers"].map(hold);
    tokio::spawn(async move {
        loop {
            changed.notified().await;
            let mut definitions = Definitions::new();
            let objects: Vec<_> = holds.iter().flat_map(|hold| hold.kind.all()).collect();
            for object in objects.iter().filter(|object| selector.matches(&object.labels)) {
                match Definition::from_object(object.parsed()) {
                    Ok(read) => definitions
                        .extend(read.into_iter().map(|definition| (definition.id(), Arc::new(definition)))),
                    Err(problems) => {
                        for problem in problems {
                            error!(controller = object.key.name, %problem, "definition refused");
                        }
                    }
                }
            }
            sender.send_replace(definitions);
        }
    });
    receiver
}

/// Joins both; a definition in the file hides one of the same name in the cluster.
pub(crate) fn join(
    mut file: watch::Receiver<Definitions>,
    mut cluster: watch::Receiver<Definitions>,
) -> watch::Receiver<Definitions> {
    let (sender, receiver) = watch::channel(file.borrow().clone());
    tokio::spawn(async move {
        loop {
            let mut joined = cluster.borrow_and_update().clone();
            for (name, definition) in file.borrow_and_update().iter() {
                if joined.insert(name.clone(), definition.clone()).is_some() {
                    warn!(controller = name, "defined in the file and in the cluster: the file's is used");
                }
            }
            sender.send_replace(joined);
            tokio::select! {
                Ok(()) = file.changed() => {}
                Ok(()) = cluster.changed() => {}
                else => return,
            }
        }
    });
    receiver
}
