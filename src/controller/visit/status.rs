//! A parent's status: what the hook computed, the generation it saw, and what stands in the way.
//!
//! Written by server-side apply under a manager of its own, and only when it differs from what is there.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::warn;

use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::controller::memory::{Memory, Written};
use crate::controller::room::Room;
use crate::controller::undeclared::{Undeclared, remove};
use crate::controller::visit::note;
use crate::controller::visit::refused::verdict;
use crate::mask::scope;
use crate::object::condition::Condition;
use crate::object::name::Gvk;
use crate::plan::desired::hash_value;
use crate::plan::difference::difference;
use crate::plan::refusal::Verdict;
use crate::plan::rollout::Updated;
use crate::plan::takeover;

/// The condition by which the controller itself speaks on a parent. Hooks cannot set it.
pub(crate) const SYNCED: &str = "Synced";
/// The condition that tells how far a rolling update is, as Metacontroller has it.
pub(crate) const UPDATED: &str = "Updated";
/// More refused fields than this are no oversight.
const MOST_REFUSED: usize = 20;

/// What the controller has to say on a parent: `Synced` is `False`, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub reason: &'static str,
    pub message: String,
}

/// What a status says beside the hook's own.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ours<'a> {
    /// The generation that it is said of.
    pub generation: i64,
    pub note: Option<&'a Note>,
    /// How far a rolling update is, where there was an answer and children are rolled out.
    pub updated: Option<&'a Updated>,
}

/// The status to write: the hook's, or without an answer the one that is there.
pub(crate) fn compose(
    answered: Option<Map<String, Value>>,
    parent: &Value,
    ours: &Ours,
    now: Timestamp,
) -> Map<String, Value> {
    let generation = ours.generation;
    let live = parent.get("status").and_then(Value::as_object);
    let mut status = match answered {
        Some(mut status) => {
            status.insert("observedGeneration".into(), json!(generation));
            status
        }
        None => live.cloned().unwrap_or_default(),
    };
    let before = live.and_then(|live| live.get("conditions"));
    let note = ours.note.map(|Note { reason, message }| {
        Condition { kind: SYNCED, holds: false, reason, message, generation }.written(before, now)
    });
    put_condition(&mut status, SYNCED, note);
    if let Some(Updated { holds, reason, message }) = ours.updated {
        let updated = Condition { kind: UPDATED, holds: *holds, reason, message, generation };
        put_condition(&mut status, UPDATED, Some(updated.written(before, now)));
    }
    status
}

/// Puts a condition of ours in the place of any other of its type.
fn put_condition(status: &mut Map<String, Value>, kind: &str, ours: Option<Value>) {
    // Anything else than a list is the hook's own idea of conditions.
    if status.get("conditions").is_some_and(|conditions| !conditions.is_array()) {
        return;
    }
    if ours.is_some() {
        status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    }
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        // A hook that hands on the conditions it was shown hands on ours too.
        conditions.retain(|condition| condition["type"] != kind);
        conditions.extend(ours);
    }
}

/// What a visit has to say on its parent.
pub(crate) struct Said<'a> {
    pub answered: Option<Map<String, Value>>,
    pub ours: Ours<'a>,
}

/// What came of a status.
pub(crate) enum Outcome {
    Right,
    /// A field that the server refuses was left out. The note stands in the condition where the visit has nothing else to
    /// say.
    Refused(Note),
    /// Another writer keeps changing it back: to be tried again after this time.
    Later(Duration),
}

impl From<Option<Note>> for Outcome {
    fn from(refusal: Option<Note>) -> Self {
        refusal.map_or(Outcome::Right, Outcome::Refused)
    }
}

/// Writes the status if anything about it is to change.
pub(crate) async fn write(
    room: &Room,
    writer: &Writer<'_>,
    parent: &Object,
    memory: &mut Memory,
    said: Said<'_>,
) -> Result<Outcome, Error> {
    if !room.has_status() {
        return Ok(Outcome::Right);
    }
    let now = Timestamp::now();
    let live = parent.parsed();
    let mut refused = 0;
    loop {
        let (status, refusal) = fitting(room, &live, memory, &said, now);
        let mut wanted = body(&room.parent_resource.gvk, status);
        let digest = digest(&wanted["status"]);
        let left = left_over(&live, parent, &wanted);
        if left.is_none_or(|left| memory.status == Some(Written { wanted: digest, left: Some(left) })) {
            return Ok(refusal.into());
        }
        let timeless = timeless(&wanted["status"]);
        if let Some(pause) = memory.status_writes.pause(timeless) {
            return Ok(Outcome::Later(pause));
        }
        if parent.updated.status {
            take_over(room, writer, parent).await?;
        }
        wanted.insert("metadata".into(), metadata(parent));
        let body = serde_json::to_vec(&wanted).expect("JSON is printed");
        wanted.remove("metadata");
        match writer.apply_status(&room.parents, &room.parent_resource, &parent.key, body).await {
            Ok(version) => {
                // What the server made of it matters once it is written in vain; most never are.
                let again = memory.status.as_ref().is_some_and(|before| before.wanted == digest);
                // What another writer has done since is not the server's doing.
                let after = room.parents.get(&parent.key).filter(|after| again && after.version == version);
                let left = after.and_then(|after| left_over(&after.parsed(), &after, &wanted));
                memory.status = Some(Written { wanted: digest, left });
                if memory.status_writes.note(timeless) {
                    warn!(
                        "another writer, or another definition of the same parents, keeps changing the status back: it is written less often"
                    );
                }
                return Ok(refusal.into());
            }
            Err(error) if error.is(404) => return Ok(refusal.into()),
            Err(error) => {
                let path = refused_path(&error).filter(|_| refused < MOST_REFUSED);
                let status = wanted.get_mut("status").and_then(Value::as_object_mut);
                let path = path.filter(|path| status.is_some_and(|status| remove(status, path)));
                let Some(path) = path else { return Err(error) };
                refused += 1;
                learn(room, memory, &said, path, &verdict(&error).1);
            }
        }
    }
}

/// Makes ours what Metacontroller has written of the status, so that a field that the hook drops really goes.
async fn take_over(room: &Room, writer: &Writer<'_>, parent: &Object) -> Result<(), Error> {
    let resource = &room.parent_resource;
    let Some(live) = writer.read_text(resource, &parent.key).await? else { return Ok(()) };
    let live: Value = serde_json::from_str(&live)?;
    let managers = &room.cluster.managers;
    let api_version = resource.gvk.api_version();
    match takeover::status_patch(&live, &api_version, &managers.updaters(), &managers.status) {
        Some(patch) => writer.json_patch(&room.parents, resource, &parent.key, &patch).await,
        None => Ok(()),
    }
}

/// The status without what the server is known to refuse, and what to say of that.
fn fitting(
    room: &Room,
    live: &Value,
    memory: &Memory,
    said: &Said,
    now: Timestamp,
) -> (Map<String, Value>, Option<Note>) {
    let mut answered = said.answered.clone();
    let mut words = Vec::new();
    if let (Some(status), Some(whole)) = (&mut answered, &said.answered) {
        words.extend(lock(room).cut(status));
        words.extend(memory.unfit.cut(whole, status));
    }
    let message = format!("status fields refused: {}", words.join("; "));
    let refusal = (!words.is_empty()).then(|| note("StatusRefused", message));
    let ours = Ours { note: said.ours.note.or(refusal.as_ref()), ..said.ours };
    let mut status = compose(answered, live, &ours, now);
    // What is added here may have no place in the schema either.
    lock(room).cut(&mut status);
    (status, refusal)
}

/// A field that the schema lacks is left out of every parent's status, a value that it forbids of this one alone.
fn learn(room: &Room, memory: &mut Memory, said: &Said, path: String, words: &str) {
    // They are told again when a Secret may have other values.
    let words = scope::spoken(words).into_owned();
    match &said.answered {
        Some(answered) if !words.contains("field not declared in schema") => {
            memory.unfit.note(answered, path, words);
        }
        _ => lock(room).note(path, words),
    }
}

/// What of a parent, whose JSON is `live`, is not as wanted.
fn left_over(live: &Value, parent: &Object, wanted: &Map<String, Value>) -> Option<u64> {
    let difference = difference(wanted, live, parent.owned_status.as_deref());
    (!difference.is_empty()).then(|| difference.signature())
}

/// Tells one status from another by all but the times in its conditions, whatever the order of its keys.
fn timeless(status: &Value) -> u64 {
    let mut sum = 0u64;
    let mut note = |place: usize, key: &str, value: &Value| {
        let mut hasher = DefaultHasher::new();
        (place, key).hash(&mut hasher);
        hash_value(value, &mut hasher);
        sum = sum.wrapping_add(hasher.finish());
    };
    for (key, value) in status.as_object().into_iter().flatten() {
        match value.as_array().filter(|_| key == "conditions") {
            None => note(0, key, value),
            Some(conditions) => {
                for (index, condition) in conditions.iter().enumerate() {
                    let fields = condition.as_object().into_iter().flatten();
                    let lasting = fields.filter(|(key, _)| *key != "lastTransitionTime");
                    lasting.for_each(|(key, value)| note(index + 1, key, value));
                }
            }
        }
    }
    sum
}

fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(value, &mut hasher);
    hasher.finish()
}

fn body(gvk: &Gvk, status: Map<String, Value>) -> Map<String, Value> {
    let fields = [
        ("apiVersion", Value::from(gvk.api_version())),
        ("kind", Value::from(gvk.kind.as_str())),
        ("status", Value::Object(status)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

fn metadata(parent: &Object) -> Value {
    let mut metadata = json!({"name": parent.key.name, "uid": parent.uid});
    if !parent.key.namespace.is_empty() {
        metadata["namespace"] = json!(parent.key.namespace);
    }
    metadata
}

/// `status.phase` out of the server's refusal of a status field.
fn refused_path(error: &Error) -> Option<String> {
    match verdict(error).0 {
        Verdict::Schema { field } | Verdict::Invalid { field } => {
            let path = field.trim_start_matches('.').to_string();
            path.starts_with("status.").then_some(path)
        }
        _ => None,
    }
}

fn lock(room: &Room) -> std::sync::MutexGuard<'_, Undeclared> {
    room.status_paths.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
