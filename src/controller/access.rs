//! The Secrets and ConfigMaps that a definition's hooks are reached with: read while the definition runs, and handed
//! to the hooks as often as they change.
//!
//! Each is watched by its name, so that a right to these objects alone is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::cluster::Cluster;
use crate::cluster::kind::{State, Use};
use crate::cluster::object::Object;
use crate::controller::room::Room;
use crate::hook::Hook;
use crate::hook::access::{Admission, Contents, Holder, Renewal, Sort};

/// Hooks are not called before their objects are seen, or this time is over.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// What the hooks of one definition are reached with.
pub(crate) struct Access {
    hooks: Vec<(&'static str, Arc<Admission>)>,
    holds: BTreeMap<Holder, Use>,
    changed: Arc<Notify>,
    /// Tell of objects that come within or out of reach.
    _states: JoinSet<()>,
}

impl Access {
    /// Begins to watch what these hooks, by the names of their calls, are reached with.
    pub(crate) fn watch<'h>(
        cluster: &Cluster,
        hooks: impl IntoIterator<Item = (&'static str, &'h Hook)>,
    ) -> Access {
        let admission = |(call, hook): (_, &'h Hook)| Some((call, hook.admission()?.clone()));
        let hooks: Vec<_> = hooks.into_iter().filter_map(admission).collect();
        let changed = Arc::new(Notify::new());
        let holders: BTreeSet<Holder> = hooks.iter().flat_map(|(_, hook)| hook.holders()).collect();
        let is_named = |holder: &Holder| !holder.key.namespace.is_empty() && !holder.key.name.is_empty();
        let mut states = JoinSet::new();
        let hold = |holder: Holder| {
            let plural = if holder.sort == Sort::Secret { "secrets" } else { "configmaps" };
            let tell = changed.clone();
            let hold = cluster.watch_one("v1", plural, &holder.key, move |_, _| tell.notify_one());
            let (mut state, tell) = (hold.kind.states(), changed.clone());
            states.spawn(async move {
                while state.changed().await.is_ok() {
                    tell.notify_one();
                }
            });
            (holder, hold)
        };
        let holds = holders.into_iter().filter(is_named).map(hold).collect();
        Access { hooks, holds, changed, _states: states }
    }

    /// Waits until every object is looked at, but not for long, and hands their contents to the hooks.
    pub(crate) async fn seen(&self, controller: &str) {
        let all = async {
            for hold in self.holds.values() {
                // The kind is held, so its state does not end.
                let _ = hold.kind.states().wait_for(|state| *state != State::Starting).await;
            }
        };
        // What is not seen by then is said to be so.
        let _ = tokio::time::timeout(FIRST_LOOK, all).await;
        for (call, hook) in &self.hooks {
            hook.renew(&|holder| self.contents(holder));
            if let Some(problem) = hook.problem() {
                warn!(controller, call, error = %problem, "hook cannot be called");
            }
        }
    }

    /// Hands every change to the hooks, and wakes the parents that it may help.
    pub(crate) async fn follow(self, room: &Room) {
        let controller = &room.definition.name;
        loop {
            self.changed.notified().await;
            for (call, hook) in &self.hooks {
                match hook.renew(&|holder| self.contents(holder)) {
                    Renewal::Same => continue,
                    Renewal::Changed => {
                        info!(controller, call, "hook is reached with what has changed");
                        room.queue.hurry();
                    }
                    Renewal::Usable => {
                        info!(controller, call, "hook can be called");
                        room.add_all();
                    }
                    Renewal::Unusable(problem) => {
                        warn!(controller, call, error = %problem, "hook cannot be called");
                    }
                }
                room.news.notify_one();
            }
        }
    }

    fn contents(&self, holder: &Holder) -> Contents {
        let Some(hold) = self.holds.get(holder) else { return Contents::Absent };
        match hold.kind.state() {
            State::Starting => Contents::Unknown("it is not looked at yet".into()),
            State::Absent(why) | State::Failing(why) => Contents::Unknown(why),
            State::Live(_) => match hold.kind.get(&holder.key) {
                Some(object) => Contents::Data(data(&object, holder.sort)),
                None => Contents::Absent,
            },
        }
    }
}

/// What the keys hold. A Secret's values are base64, and so are a ConfigMap's that are no text.
fn data(object: &Object, sort: Sort) -> BTreeMap<String, Vec<u8>> {
    let body = object.parsed();
    let fields = |name: &str| body.get(name).and_then(Value::as_object).into_iter().flatten();
    let decoded = |(key, value): (&String, &Value)| {
        Some((key.clone(), STANDARD.decode(value.as_str().unwrap_or_default()).ok()?))
    };
    let plain = |(key, value): (&String, &Value)| {
        (key.clone(), value.as_str().unwrap_or_default().as_bytes().to_vec())
    };
    match sort {
        Sort::Secret => fields("data").filter_map(decoded).collect(),
        Sort::ConfigMap => {
            fields("binaryData").filter_map(decoded).chain(fields("data").map(plain)).collect()
        }
    }
}
