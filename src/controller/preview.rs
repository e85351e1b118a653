//! Looking at what definitions would do, with nobody at work: their kinds are watched, their visits only rehearsed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::Cluster;
use crate::cluster::event::Recorder;
use crate::cluster::kind::{Kind, Origin as Visitor, Resource, State, Use};
use crate::cluster::trial::{Tried, Write};
use crate::cluster::write::{Part, Writer};
use crate::config::Definition;
use crate::config::spec::{Role, UpdateMethod};
use crate::controller::access::Access;
use crate::controller::footing::Footing;
use crate::controller::hosted::Start;
use crate::controller::room::Room;
use crate::controller::source::Holds;
use crate::controller::visit::Ended;
use crate::controller::visit::refused::verdict;
use crate::controller::visit::rehearsal::{Asked, Rehearsed, rehearse};
use crate::controller::{Hooks, Settings};
use crate::hook::wire::Call;
use crate::hook::wire::answer::DesiredChild;
use crate::mask::{Secrets, Veil, Words, pair};
use crate::object::name::{Gvk, Key};
use crate::plan::preview::{Change, Outcome, Sort, Trouble, stated};
use crate::plan::refusal::Verdict;
use crate::problem::Problem;

/// What is not seen by then is said to be so.
const PATIENCE: Duration = Duration::from_secs(20);
/// Related kinds are being listed meanwhile.
const MOMENT: Duration = Duration::from_millis(50);

/// A definition whose visits can be rehearsed.
pub(crate) struct Preview {
    room: Arc<Room>,
    _parents: Use,
    _access: Access,
}

impl Preview {
    /// Lists the definition's kinds. The gate of `cluster` is to be closed: then nothing can be written by mistake.
    pub(crate) async fn open(
        definition: Definition,
        cluster: &Arc<Cluster>,
        hooks: &Hooks,
    ) -> Result<Preview, Problem> {
        let definition = Arc::new(at_once(definition));
        let recorder = Recorder::new(cluster.clone());
        // Nobody tells of it.
        let footing = Footing::new(Arc::default(), Arc::default());
        let start = Start::new(&definition, cluster.clone(), recorder, hooks, Settings::default(), footing)?;
        let parents = start.hold_parents(&definition);
        let access = start.access();
        let resource = match first_state(&parents.kind).await {
            Some(State::Live(resource)) => resource,
            Some(State::Absent(message)) => {
                let hint = "apply its CustomResourceDefinition first, as in `kubectl apply -f hooks/<hook>/crd.yaml`";
                return Err(unreadable(&definition, &message).hint(hint));
            }
            Some(State::Failing(message)) => return Err(unreadable(&definition, &message)),
            None | Some(State::Starting) => return Err(unreadable(&definition, "no answer")),
        };
        let room = Arc::new(start.room(definition, &parents, resource));
        tokio::join!(room.children_seen(), access.seen(&room.definition.name));
        Ok(Preview { room, _parents: parents, _access: access })
    }

    pub(crate) fn definition(&self) -> &Definition {
        &self.room.definition
    }

    /// The kind of the parents.
    pub(crate) fn gvk(&self) -> &Gvk {
        &self.room.parent_resource.gvk
    }

    /// The parents that are selected, in order.
    pub(crate) fn parents(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .room
            .parents
            .select(|parent| self.room.selects(parent))
            .into_iter()
            .map(|parent| parent.key.clone())
            .collect();
        keys.sort();
        keys
    }

    /// What a visit of this parent would change; `None` when it is gone.
    pub(crate) async fn outcome(&self, parent: &Key) -> Option<Outcome> {
        let rehearsed = self.rehearsed(parent).await?;
        let wanted: Vec<DesiredChild> =
            rehearsed.asked.into_iter().flat_map(|asked| asked.children.unwrap_or_default()).collect();
        let mut changes: Vec<Change> = Vec::new();
        for tried in rehearsed.tried {
            let Some(change) = self.change(parent, tried, &wanted).await else { continue };
            // Taking over and adopting come before applying: of an object's parts the last word counts.
            let same = |earlier: &Change| (&earlier.gvk, &earlier.key) == (&change.gvk, &change.key);
            match changes.iter_mut().find(|earlier| same(earlier)) {
                Some(earlier) => add(earlier, change),
                None => changes.push(change),
            }
        }
        hide_secrets(rehearsed.secrets, &mut changes);
        let trouble = match rehearsed.ended {
            Ended::Done | Ended::Changed => None,
            Ended::Waiting(note) | Ended::Retry(note) | Ended::Stuck(note) => {
                Some(Trouble { reason: note.reason.into(), message: note.message })
            }
        };
        Some(Outcome { gvk: self.gvk().clone(), parent: parent.clone(), changes, trouble })
    }

    /// What the hooks are asked at a visit of this parent; `None` when it is gone.
    pub(crate) async fn asked(&self, parent: &Key) -> Option<Vec<Asked>> {
        Some(self.rehearsed(parent).await?.asked)
    }

    /// Looks again while something is only being read. What was asked of the customize hook is not asked again then.
    async fn rehearsed(&self, parent: &Key) -> Option<Rehearsed> {
        let began = Instant::now();
        let mut customize = Vec::new();
        loop {
            let mut rehearsed = rehearse(&self.room, parent).await?;
            let passing = match &rehearsed.ended {
                Ended::Waiting(note) => note.reason == "WaitingForCache",
                Ended::Changed => true,
                _ => false,
            };
            if !passing || began.elapsed() > PATIENCE {
                rehearsed.asked.splice(0..0, customize);
                return Some(rehearsed);
            }
            let first = rehearsed.asked.into_iter().filter(|asked| asked.call == Call::Customize);
            customize.extend(first.take(1 - customize.len().min(1)));
            tokio::time::sleep(MOMENT).await;
        }
    }

    /// `None` where the object would stay as it is, but for who owns its fields.
    async fn change(&self, parent: &Key, tried: Tried, wanted: &[DesiredChild]) -> Option<Change> {
        let Tried { resource, key, write } = tried;
        let gvk = resource.gvk.clone();
        let before = stated(self.live(parent, &resource, &key).await);
        let wish = || wanted.iter().find(|child| is_about(child, &gvk, &key, parent));
        let wished = || wish().map_or(Value::Null, |child| Value::Object(child.object.clone()));
        let of_status = matches!(write, Write::Patch { part: Part::Status, .. });
        let (sort, after) = match write {
            Write::Delete if wish().is_some() => (Sort::Recreate, wished()),
            Write::Delete => (Sort::Delete, Value::Null),
            Write::Patch { outcome: Err(error), .. } => match verdict(&error).0 {
                Verdict::Immutable { .. } => (Sort::Immutable, wished()),
                _ => (Sort::Refused, wished()),
            },
            Write::Patch { outcome: Ok(text), part } => {
                let after = stated(serde_json::from_str(&text).unwrap_or_default());
                match wish() {
                    // What the author wrote is read more easily than what the server makes of it.
                    Some(wish) if part == Part::Main && before.is_null() => {
                        (Sort::Create, Value::Object(wish.object.clone()))
                    }
                    None if part == Part::Main && before.is_null() => (Sort::Create, after),
                    _ => (Sort::Change, after),
                }
            }
        };
        (before != after).then_some(Change { gvk, key, sort, of_status, before, after })
    }

    /// The object as it is, null where it is not there. One that is nobody's is kept without its body, and read anew.
    async fn live(&self, parent: &Key, resource: &Resource, key: &Key) -> Value {
        let kinds = self.room.children.iter().map(|child| &child.hold.kind).chain([&self.room.parents]);
        let mut of_kind = kinds.filter(|kind| kind.live().is_some_and(|live| live.gvk == resource.gvk));
        let Some(object) = of_kind.find_map(|kind| kind.get(key)) else { return Value::Null };
        if object.body.is_some() {
            return object.parsed();
        }
        let origin = Visitor { controller: self.room.number, parent: parent.clone() };
        let reader = Writer { cluster: &self.room.cluster, origin: &origin, trial: None };
        let text = reader.read_text(resource, key).await.ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// Takes the values of Secrets out of what is shown, in such a way that it still shows where they differ.
fn hide_secrets(mut secrets: Secrets, changes: &mut [Change]) {
    for change in &*changes {
        secrets.add(&change.before);
        secrets.add(&change.after);
    }
    let veil = Veil::new(&secrets, Words::Compared);
    for change in changes {
        change.key.name = veil.text(&change.key.name).into();
        pair::hide(&veil, &mut change.before, &mut change.after);
    }
}

/// Puts a later write of the same object over an earlier one. Neither was made, so that neither shows the other's part.
fn add(earlier: &mut Change, mut later: Change) {
    if later.of_status && !earlier.of_status {
        earlier.after["status"] = later.after["status"].take();
        return;
    }
    if earlier.of_status && !later.of_status {
        later.after["status"] = earlier.after["status"].take();
    }
    *earlier = later;
}

/// The definition as it ends up: a roll-out would show its first step alone.
fn at_once(mut definition: Definition) -> Definition {
    for rule in &mut definition.spec.children {
        rule.update = match rule.update {
            UpdateMethod::RollingInPlace => UpdateMethod::InPlace,
            UpdateMethod::RollingRecreate => UpdateMethod::Recreate,
            other => other,
        };
    }
    definition
}

fn unreadable(definition: &Definition, why: &str) -> Problem {
    let resource = &definition.spec.parent.resource;
    Problem::new(format!("the parents of `{}`, {resource}, cannot be read: {why}", definition.name))
}

/// Whether a wanted child is the object of this kind and name.
fn is_about(child: &DesiredChild, gvk: &Gvk, key: &Key, parent: &Key) -> bool {
    let text = |way: &[&str]| {
        let mut field = child.object.get(way[0]);
        for step in &way[1..] {
            field = field.and_then(|field| field.get(step));
        }
        field.and_then(Value::as_str).unwrap_or_default()
    };
    let namespace = match text(&["metadata", "namespace"]) {
        "" => &parent.namespace,
        own => own,
    };
    let named =
        text(&["metadata", "name"]) == key.name && (key.namespace.is_empty() || *namespace == key.namespace);
    named && text(&["kind"]) == gvk.kind && Gvk::new(text(&["apiVersion"]), "").group == gvk.group
}

/// The definitions that are in the cluster, bad ones as their problems.
pub(crate) async fn definitions(cluster: &Arc<Cluster>) -> Result<Vec<Definition>, Vec<Problem>> {
    let holds = Holds::of(cluster);
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for role in [Role::Composite, Role::Decorator] {
        let kind = &holds.of_role(role).kind;
        match first_state(kind).await {
            Some(State::Live(_)) => {}
            // Whoever has no such kinds has no such definitions.
            Some(State::Absent(_)) => continue,
            Some(State::Failing(why)) => {
                bad.push(Problem::new(format!("{}s cannot be read: {why}", role.kind())));
            }
            None | Some(State::Starting) => bad.push(Problem::new("the API server gives no answer")),
        }
        for object in kind.all() {
            match Definition::from_object(object.parsed()) {
                Ok(definitions) => good.extend(definitions),
                Err(problems) => bad.extend(problems),
            }
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}

/// What a kind is once it has been looked at. One whose CRD was created a moment ago is served, but cannot be listed until
/// the API server has opened its storage, which it says in words alone.
async fn first_state(kind: &Kind) -> Option<State> {
    let opening =
        |state: &State| matches!(state, State::Failing(why) if why.contains("storage is (re)initializing"));
    let mut states = kind.states();
    let seen = states.wait_for(|state| *state != State::Starting && !opening(state));
    tokio::time::timeout(PATIENCE, seen).await.ok().and_then(|state| Some(state.ok()?.clone()))
}
