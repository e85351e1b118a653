//! Where definitions come from: a file, the cluster's CompositeControllers and DecoratorControllers, or both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::cluster::kind::Use;
use crate::cluster::object::Version;
use crate::config::spec::Role;
use crate::config::{self, Definition};
use crate::controller::posted::Posted;
use crate::problem::Problem;

/// The kind of a definition and its name.
pub(crate) type Name = (Role, String);

/// What is to be run.
#[derive(Clone, Default)]
pub(crate) struct Definitions {
    /// The good ones, by their ids.
    pub by_id: BTreeMap<String, Arc<Definition>>,
    /// The objects of the cluster, good or not.
    pub posted: BTreeMap<Name, Arc<Posted>>,
}

impl Definitions {
    fn of(definitions: impl IntoIterator<Item = Definition>) -> Self {
        let by_id = definitions.into_iter().map(|definition| (definition.id(), Arc::new(definition)));
        Definitions { by_id: by_id.collect(), posted: BTreeMap::new() }
    }

    /// Puts in an object of the cluster. One that ends with its parents' finalizers is not run any more.
    fn post(&mut self, posted: Arc<Posted>) {
        if !posted.is_ending() {
            let definitions = posted.definitions.iter().flatten();
            self.by_id.extend(definitions.map(|definition| (definition.id(), definition.clone())));
        }
        self.posted.insert(posted.name(), posted);
    }

    /// Whether both have the very same objects.
    fn is_same(&self, other: &Definitions) -> bool {
        let same = |(a, b): (&Arc<Posted>, &Arc<Posted>)| Arc::ptr_eq(a, b);
        self.posted.len() == other.posted.len() && self.posted.values().zip(other.posted.values()).all(same)
    }
}

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
            match read_file(&path).and_then(|definitions| unless_blank(&path, definitions)) {
                Ok(definitions) => {
                    let controllers = definitions.by_id.len();
                    info!(file = %path.display(), controllers, "definitions reloaded");
                    sender.send_replace(definitions);
                }
                Err(problems) => {
                    for problem in problems {
                        error!(error = %problem, "definition refused, the file's last good version stays in use");
                    }
                }
            }
        }
    });
    receiver
}

/// A file that has become empty is a save that was cut short, and stops nobody.
fn unless_blank(path: &Path, definitions: Definitions) -> Result<Definitions, Vec<Problem>> {
    let is_blank = || std::fs::read_to_string(path).is_ok_and(|text| config::is_blank(&text));
    if definitions.by_id.is_empty() && is_blank() {
        let problem = Problem::new(format!("`{}` is empty", path.display()));
        return Err(vec![
            problem.hint("to stop all controllers, write `{apiVersion: v1, kind: List, items: []}`"),
        ]);
    }
    Ok(definitions)
}

/// Reads a file of definitions, with all its problems at once.
pub(crate) fn read_file(path: &Path) -> Result<Definitions, Vec<Problem>> {
    let label = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| vec![Problem::new(format!("reading `{label}`: {error}"))])?;
    Ok(Definitions::of(config::load(&label, &text)?))
}

/// The kinds of definitions under watch: beside what they say, this is where their status is read and written.
pub(crate) struct Holds {
    composite: Use,
    decorator: Use,
    changed: Arc<Notify>,
}

impl Holds {
    pub(crate) fn of(cluster: &Cluster) -> Arc<Self> {
        let changed = Arc::new(Notify::new());
        let hold = |plural| {
            let tell = changed.clone();
            cluster.watch_definitions(config::API_VERSION, plural, move |_, _| tell.notify_one())
        };
        let (composite, decorator) = (hold("compositecontrollers"), hold("decoratorcontrollers"));
        Arc::new(Holds { composite, decorator, changed })
    }

    pub(crate) fn of_role(&self, role: Role) -> &Use {
        match role {
            Role::Composite => &self.composite,
            Role::Decorator => &self.decorator,
        }
    }
}

/// Follows the CompositeControllers and DecoratorControllers that are under watch. A definition that is refused keeps its
/// last good version out of use.
pub(crate) fn follow_cluster(holds: Arc<Holds>) -> watch::Receiver<Definitions> {
    let (sender, receiver) = watch::channel(Definitions::default());
    tokio::spawn(async move {
        let mut known = Known::default();
        loop {
            holds.changed.notified().await;
            let definitions = known.read(&holds);
            sender.send_if_modified(|sent| {
                let changed = !sent.is_same(&definitions);
                *sent = definitions;
                changed
            });
        }
    });
    receiver
}

/// What was read of the cluster's definitions: most of their changes are of their status, and mean nothing.
#[derive(Default)]
struct Known(BTreeMap<Name, (Version, Arc<Posted>)>);

impl Known {
    fn read(&mut self, holds: &Holds) -> Definitions {
        let mut definitions = Definitions::default();
        let mut known = BTreeMap::new();
        for role in [Role::Composite, Role::Decorator] {
            for object in holds.of_role(role).kind.all() {
                let name = (role, object.key.name.clone());
                let posted = match self.0.remove(&name) {
                    Some((version, posted)) if version == object.version => posted,
                    before => {
                        let before = before.map(|(_, posted)| posted);
                        let new = Posted::read(role, &object, before.as_deref());
                        new.map_or_else(|| before.expect("what is not new was there before"), Arc::new)
                    }
                };
                known.insert(name, (object.version.clone(), posted.clone()));
                definitions.post(posted);
            }
        }
        self.0 = known;
        definitions
    }
}

/// Joins both; a definition in the file hides one of the same name in the cluster.
pub(crate) fn join(
    mut file: watch::Receiver<Definitions>,
    mut cluster: watch::Receiver<Definitions>,
) -> watch::Receiver<Definitions> {
    let (sender, receiver) = watch::channel(file.borrow().clone());
    tokio::spawn(async move {
        let mut told = BTreeSet::new();
        loop {
            let joined = joined(&file.borrow_and_update(), &cluster.borrow_and_update());
            let hidden: BTreeSet<Name> = joined
                .posted
                .iter()
                .filter(|(_, posted)| posted.is_hidden())
                .map(|(name, _)| name.clone())
                .collect();
            for (_, controller) in hidden.difference(&told) {
                warn!(controller, "defined in the file and in the cluster: the file's is used");
            }
            told = hidden;
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

fn joined(file: &Definitions, cluster: &Definitions) -> Definitions {
    let mut joined = Definitions::default();
    let name = |definition: &Definition| (definition.spec.role, definition.name.clone());
    let in_file: BTreeSet<Name> = file.by_id.values().map(|definition| name(definition)).collect();
    for (name, posted) in &cluster.posted {
        let hidden = in_file.contains(name) && !posted.is_ending();
        joined.post(if hidden { Arc::new(posted.hidden()) } else { posted.clone() });
    }
    joined.by_id.extend(file.by_id.clone());
    joined
}
