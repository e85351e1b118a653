//! One visit of a parent: observe, ask the hook, act on its answer, write the status.
//!
//! After its own writes a visit asks the hook once more, with what the writes have made, so that the status is
//! written once and is true. Nothing is deleted unless an answer is complete and nothing in it was refused.

pub(crate) mod act;
pub(crate) mod claim;
pub(crate) mod finalizer;
pub(crate) mod refused;
mod related;
pub(crate) mod status;
mod target;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tracing::{debug, info, warn};

use crate::cluster::event::{About, Severity};
use crate::cluster::kind::{Origin as Visitor, Resource, State};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::config::spec::{HookVersion, Role};
use crate::controller::memory::Memory;
use crate::controller::queue::Next;
use crate::controller::related::Sight;
use crate::controller::room::{CONTROLLER_UID, Room, own_selector};
use crate::controller::visit::act::Acted;
use crate::controller::visit::claim::{Claimed, Missing};
use crate::controller::visit::status::{Note, Said};
use crate::hook::Hook;
use crate::hook::origin::Origin;
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{Call, Failure, Groups, Request, inner_key};
use crate::object::name::Key;
use crate::object::selector::Selector;
use crate::plan::refusal::Verdict;
use crate::problem::Problem;

/// So many times a visit asks the hook while its own writes keep changing what there is to see.
const ROUNDS: usize = 3;
/// A relist that was asked for takes about so long.
const CACHE: Duration = Duration::from_millis(200);
/// A stuck parent is visited again after this time, in case what it is stuck on has changed unseen.
const STUCK: Duration = Duration::from_secs(300);
/// A finalize hook that cannot be used is asked again after this time, while there is patience.
const FINALIZE_AGAIN: Duration = Duration::from_secs(10);
/// A kind that is not there yet wakes its parents when it comes; this is for all else that is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// How a visit ended. The four are never mixed.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    Done,
    /// Something is on its way. No error.
    Waiting(Note),
    /// It may work the next time.
    Retry(Note),
    /// Only a change of the definition, the hook or the parent will help.
    Stuck(Note),
    /// The parent has changed meanwhile: once more, at once.
    Changed,
}

/// A visit's end, and the status that goes with it.
pub(crate) struct Conclusion {
    pub ended: Ended,
    /// The hook's status, if there was an answer.
    pub status: Option<Map<String, Value>>,
    pub resync_after: Option<Duration>,
    /// A retry comes no sooner than this.
    pub retry_after: Option<Duration>,
    /// Whether writes were made that no hook call has seen.
    pub unseen_writes: bool,
    /// Whether the parent's status may be touched at all.
    pub silent: bool,
}

impl Conclusion {
    fn new(ended: Ended) -> Self {
        Conclusion {
            ended,
            status: None,
            resync_after: None,
            retry_after: None,
            unseen_writes: false,
            silent: false,
        }
    }

    fn nothing_to_do() -> Self {
        Conclusion { silent: true, ..Conclusion::new(Ended::Done) }
    }
}

pub(crate) fn note(reason: &'static str, message: impl Into<String>) -> Note {
    Note { reason, message: message.into() }
}

/// Visits the parent of this name, if there still is one.
pub(crate) async fn visit(room: &Room, key: &Key) -> Next {
    let Some(parent) = room.parents.get(key) else {
        room.forget(key);
        return Next::Rest;
    };
    let origin = Visitor { controller: room.number, parent: key.clone() };
    let writer = Writer { cluster: &room.cluster, origin: &origin };
    let memory = room.memory(key, &parent.uid);
    let mut visit =
        Visit { room, writer: &writer, memory, generation: parent.generation, origins: Vec::new() };
    let conclusion = match visit.run(parent).await {
        Ok(conclusion) => conclusion,
        Err(error) => Conclusion { retry_after: error.retry_after(), ..Conclusion::new(of_error(&error)) },
    };
    let next = visit.conclude(key, conclusion).await;
    room.remember(key, visit.memory);
    next
}

/// What an error on the parent itself, or on adopting a child, means for the visit.
fn of_error(error: &Error) -> Ended {
    let (verdict, summary) = refused::verdict(error);
    match verdict {
        Verdict::NotFound | Verdict::Replaced | Verdict::Stale => Ended::Changed,
        Verdict::Forbidden { verb, resource } => {
            Ended::Retry(note("Forbidden", format!("not allowed to {verb} {resource}: {summary}")))
        }
        _ => Ended::Retry(note("ApiServerFailed", summary)),
    }
}

pub(crate) struct Visit<'a> {
    pub room: &'a Room,
    pub writer: &'a Writer<'a>,
    pub memory: Memory,
    /// The parent's generation that the hook is asked about. The parent may have a newer one at the visit's end.
    pub generation: i64,
    /// Where the children of the answer were written, when templates of ours made them.
    pub origins: Vec<Origin>,
}

/// A parent in the light of its definition.
struct Situation {
    parent: Arc<Object>,
    selector: Selector,
    /// The finalize hook is called instead of the sync hook.
    finalizing: bool,
    /// Children may be written and deleted.
    manages: bool,
}

impl Situation {
    fn call(&self) -> Call {
        if self.finalizing { Call::Finalize } else { Call::Sync }
    }
}

impl Visit<'_> {
    async fn run(&mut self, parent: Arc<Object>) -> Result<Conclusion, Error> {
        let key = parent.key.clone();
        let Some(situation) = self.prepare(parent).await? else {
            self.room.related.forget(&key);
            return Ok(Conclusion::nothing_to_do());
        };
        let mut situation = match situation {
            Ok(situation) => situation,
            Err(problem) => {
                return Ok(Conclusion::new(Ended::Stuck(note("InvalidSelector", problem.to_string()))));
            }
        };
        if !situation.finalizing && self.room.sync.is_none() {
            return Ok(Conclusion::nothing_to_do());
        }
        claim::settle(self.room, self.writer, &situation.parent, &situation.selector).await?;
        let mut round = 0;
        loop {
            round += 1;
            let claimed = claim::families(self.room, &situation.parent, &situation.selector);
            if let Some(waiting) = not_ready(self.room, &situation, &claimed) {
                return Ok(waiting);
            }
            if situation.finalizing
                && let Some(waiting) = self.not_sure(&claimed)
            {
                return Ok(waiting);
            }
            let sight = match self.look_around(&situation).await {
                Ok(sight) => sight,
                Err(failure) => return self.unanswered(Call::Customize, &situation, &claimed, failure).await,
            };
            if let Some(waiting) = related::not_ready(&situation, &sight) {
                return Ok(waiting);
            }
            let answer = match self.ask(&situation, &claimed, &sight).await {
                Ok(answer) => answer,
                Err(failure) => {
                    return self.unanswered(situation.call(), &situation, &claimed, failure).await;
                }
            };
            if !self.is_still(&situation) {
                return Ok(Conclusion::new(Ended::Changed));
            }
            self.memory.finalize_fails_since = None;
            let finalized = situation.finalizing && answer.finalized;
            if finalized && self.room.role() == Role::Composite {
                return self.finish(&situation).await;
            }
            if self.room.role() == Role::Decorator
                && let Some(refused) = self.decorate(&mut situation, &answer).await?
            {
                return Ok(refused);
            }
            let Answer { status, children, resync_after, .. } = answer;
            let acted = if situation.manages {
                self.act(&situation, &claimed, children).await
            } else {
                Acted::default()
            };
            if situation.finalizing && acted.namespace_ends {
                return self.let_go(&situation.parent, "its namespace is being deleted").await;
            }
            if finalized && !acted.must_retry() && !acted.changed {
                return self.finish(&situation).await;
            }
            if !acted.wrote || acted.changed || acted.must_retry() || round == ROUNDS {
                let (unseen_writes, retry_after) = (acted.wrote, acted.retry_after);
                let resync_after = resync_after.into_iter().chain(acted.look_again).min();
                let restless = unseen_writes && self.memory.never_settles() && !acted.changes.is_empty();
                let ended = if restless {
                    let message = format!(
                        "each answer wants something else than the one before: {}",
                        acted.changes.join("; ")
                    );
                    Ended::Stuck(note("NeverSettles", message))
                } else {
                    acted.ended(&claimed)
                };
                let status = Some(status.unwrap_or_default());
                return Ok(Conclusion {
                    status,
                    resync_after,
                    retry_after,
                    unseen_writes,
                    ..Conclusion::new(ended)
                });
            }
        }
    }

    /// Takes the finalizer off a parent that has finalized.
    async fn finish(&self, situation: &Situation) -> Result<Conclusion, Error> {
        finalizer::remove(self.room, self.writer, &situation.parent).await?;
        info!(controller = self.room.definition.name, parent = %situation.parent.key, "parent finalized");
        Ok(Conclusion::nothing_to_do())
    }

    /// Brings the finalizer in order and finds out what kind of visit this is. `None`: nothing to do.
    async fn prepare(&mut self, parent: Arc<Object>) -> Result<Option<Result<Situation, Problem>>, Error> {
        let room = self.room;
        let selected = room.selects(&parent);
        let marked = finalizer::has(room, &parent);
        if !selected && !marked {
            return Ok(None);
        }
        let wants_finalizer = room.finalize.is_some();
        let missing = !marked && wants_finalizer && selected && !parent.deleting;
        let surplus = marked && !wants_finalizer;
        let pause = self.memory.finalizer_writes.pause(missing.into()).filter(|_| missing || surplus);
        match pause.filter(|_| !parent.deleting) {
            Some(pause) => {
                room.queue.add_after(parent.key.clone(), pause);
                if missing {
                    return Ok(None);
                }
            }
            None if surplus => {
                finalizer::remove(room, self.writer, &parent).await?;
                self.note_finalizer(&parent, missing);
            }
            None if missing => {
                finalizer::add(room, self.writer, &parent).await?;
                self.note_finalizer(&parent, missing);
            }
            None => {}
        }
        let Some(parent) = room.parents.get(&parent.key).filter(|now| now.uid == parent.uid) else {
            return Ok(None);
        };
        self.generation = parent.generation;
        let marked = finalizer::has(room, &parent);
        let finalizing = wants_finalizer && marked && (parent.deleting || !selected);
        if !finalizing && (!selected || (parent.deleting && wants_finalizer)) {
            return Ok(None);
        }
        let selector = match self.selector(&parent) {
            Ok(selector) => selector,
            // What is owned is owned: a bad selector must not hold up a deletion.
            Err(_) if parent.deleting => Selector::everything(),
            Err(problem) => return Ok(Some(Err(problem))),
        };
        let manages = !parent.deleting || (finalizing && !finalizer::left_to_collector(&parent));
        Ok(Some(Ok(Situation { parent, selector, finalizing, manages })))
    }

    fn note_finalizer(&mut self, parent: &Object, put_on: bool) {
        if self.memory.finalizer_writes.note(put_on.into()) {
            warn!(
                controller = self.room.definition.name, parent = %parent.key,
                "another writer keeps changing the finalizer back: it is written less often"
            );
        }
    }

    fn selector(&self, parent: &Object) -> Result<Selector, Problem> {
        if self.room.role() == Role::Decorator {
            return Ok(Selector::everything());
        }
        if self.room.definition.spec.generate_selector {
            return Ok(Selector::label(CONTROLLER_UID, &parent.uid));
        }
        own_selector(parent)
    }

    async fn ask(&self, situation: &Situation, claimed: &Claimed, sight: &Sight) -> Result<Answer, Failure> {
        let hooks = &self.room.definition.spec.hooks;
        let call = situation.call();
        let spec = if call == Call::Finalize { &hooks.finalize } else { &hooks.sync };
        let (Some(hook), Some(spec)) = (self.hook(call), spec) else {
            unreachable!("the hook of a visit is there")
        };
        let shown = claimed.families.iter().map(|family| (&*family.resource, &family.members[..]));
        let children = groups(spec.version, &situation.parent.key, shown);
        let shown = sight.groups.iter().map(|group| (&*group.resource, &group.objects[..]));
        let related = groups(spec.version, &situation.parent.key, shown);
        let parent = situation.parent.body.as_deref().expect("parents are kept whole");
        let request = Request {
            role: self.room.role(),
            controller: &self.room.definition.json,
            parent,
            children: &children,
            related: &related,
            finalizing: situation.finalizing,
        };
        let answer = hook.call(call, &situation.parent.uid, request.body()).await;
        debug!(
            controller = self.room.definition.name, parent = %situation.parent.key, hook = call.name(),
            ok = answer.is_ok(), "hook called"
        );
        answer
    }

    /// Whether the parent is still the one whose children are decided: not gone, replaced, or now being deleted.
    fn is_still(&self, situation: &Situation) -> bool {
        let parent = &situation.parent;
        self.room
            .parents
            .get(&parent.key)
            .is_some_and(|now| now.uid == parent.uid && now.deleting == parent.deleting)
    }

    /// What a call without an answer means. A deletion is not held up for ever by a hook that cannot be used.
    async fn unanswered(
        &mut self,
        asked: Call,
        situation: &Situation,
        claimed: &Claimed,
        failure: Failure,
    ) -> Result<Conclusion, Error> {
        let call = asked.name();
        let (ended, retry_after) = match failure {
            Failure::Refused(problem) if situation.finalizing && situation.parent.deleting => {
                let left = self.patience_left();
                if left.is_zero() {
                    return self
                        .let_go(&situation.parent, &format!("its {call} hook cannot be used: {problem}"))
                        .await;
                }
                let ended = Ended::Stuck(note("HookRefused", format!("{call}: {problem}")));
                let resync_after = Some(left.min(FINALIZE_AGAIN));
                return Ok(Conclusion { resync_after, ..Conclusion::new(ended) });
            }
            Failure::Refused(problem) => {
                let message = format!("{call}: {problem}");
                // A hook cannot know a kind that is not there: it is expected to fail until the kind comes.
                match claimed.missing.first() {
                    Some((_, Missing::Absent(absent))) => {
                        (Ended::Waiting(note("WaitingForKind", format!("{absent}; {message}"))), None)
                    }
                    // A template of ours that is mended wakes its parents; a remote hook has to be asked again.
                    _ if matches!(self.hook(asked), Some(Hook::Remote(_))) => {
                        (Ended::Retry(note("HookRefused", message)), None)
                    }
                    _ => (Ended::Stuck(note("HookRefused", message)), None),
                }
            }
            Failure::Unavailable { message, retry_after } => {
                (Ended::Retry(note("HookUnavailable", format!("{call}: {message}"))), retry_after)
            }
            Failure::Unready(problem) => {
                (Ended::Waiting(note("WaitingForAccess", format!("{call}: {problem}"))), None)
            }
            Failure::Busy { after: Some(after) } => {
                return Ok(Conclusion { resync_after: Some(after), ..Conclusion::nothing_to_do() });
            }
            Failure::Busy { after: None } => {
                (Ended::Retry(note("HookUnavailable", format!("{call}: 429"))), None)
            }
        };
        Ok(Conclusion { retry_after, ..Conclusion::new(ended) })
    }

    fn hook(&self, call: Call) -> Option<&Hook> {
        match call {
            Call::Sync => self.room.sync.as_ref(),
            Call::Finalize => self.room.finalize.as_ref(),
            Call::Customize => self.room.customize.as_ref(),
        }
    }

    /// What a finalize hook must not be asked without: it could take children that are not shown for children that are
    /// gone, and have the parent go too early. A kind that cannot be read holds up a deletion only for so long.
    fn not_sure(&mut self, claimed: &Claimed) -> Option<Conclusion> {
        let patience = self.room.settings.finalize_patience;
        let waited =
            self.memory.wait_for_kinds(claimed.missing.iter().any(|(_, missing)| missing.is_unknown()));
        let left = |rule: usize, missing: &Missing| match missing {
            Missing::Absent(_) => self.room.children[rule].hold.kind.doubt(),
            Missing::Unknown(_) => patience.checked_sub(waited),
        };
        claimed.missing.iter().find_map(|(rule, missing)| {
            let resync_after = Some(left(*rule, missing)?);
            let (Missing::Absent(message) | Missing::Unknown(message)) = missing;
            let ended = Ended::Waiting(note("WaitingForKind", message.clone()));
            Some(Conclusion { resync_after, ..Conclusion::new(ended) })
        })
    }

    /// For how long the finalize hook may still hold up the deletion.
    fn patience_left(&mut self) -> Duration {
        let since = *self.memory.finalize_fails_since.get_or_insert_with(Instant::now);
        self.room.settings.finalize_patience.saturating_sub(since.elapsed())
    }

    /// Takes the finalizer off although the hook has not finalized, and says so.
    async fn let_go(&self, parent: &Object, why: &str) -> Result<Conclusion, Error> {
        finalizer::remove(self.room, self.writer, parent).await?;
        let message = format!("finalizer removed without the finalize hook: {why}");
        warn!(controller = self.room.definition.name, parent = %parent.key, why, "finalizer removed without the hook");
        self.room.recorder.publish(&self.about(parent), Severity::Warning, "FinalizeSkipped", &message);
        Ok(Conclusion::nothing_to_do())
    }

    fn about(&self, parent: &Object) -> About {
        About {
            gvk: self.room.parent_resource.gvk.clone(),
            key: parent.key.clone(),
            uid: parent.uid.to_string(),
        }
    }

    /// Says how the visit ended: on the parent's status, in an event, in the log, to the queue.
    async fn conclude(&mut self, key: &Key, mut conclusion: Conclusion) -> Next {
        let parent = self.room.parents.get(key).filter(|parent| parent.uid == self.memory.uid);
        if let Some(parent) = &parent
            && !conclusion.silent
            && conclusion.ended != Ended::Changed
            // A decorator's target is somebody else's: its status is no place for conditions of ours.
            && self.room.role() == Role::Composite
        {
            self.write_status(parent, &mut conclusion).await;
        }
        if let (Some(parent), Ended::Waiting(note)) = (&parent, &conclusion.ended)
            && !conclusion.silent
            && self.room.role() == Role::Decorator
        {
            let message = format!("{}: {}", note.reason, note.message);
            self.room.recorder.publish(&self.about(parent), Severity::Normal, "Waiting", &message);
        }
        self.report(key, parent.as_deref(), &conclusion.ended);
        self.next(key, &conclusion)
    }

    async fn write_status(&mut self, parent: &Object, conclusion: &mut Conclusion) {
        let said = match &conclusion.ended {
            Ended::Waiting(note) | Ended::Retry(note) | Ended::Stuck(note) => Some(note),
            Ended::Done | Ended::Changed => None,
        };
        let said = Said { answered: conclusion.status.take(), generation: self.generation, note: said };
        match status::write(self.room, self.writer, parent, &mut self.memory, said).await {
            Ok(status::Outcome::Right) => {}
            Ok(status::Outcome::Later(pause)) => {
                let after = conclusion.resync_after.map_or(pause, |after| after.min(pause));
                conclusion.resync_after = Some(after);
            }
            Ok(status::Outcome::Refused(refusal)) => {
                if conclusion.ended == Ended::Done {
                    conclusion.ended = Ended::Stuck(refusal);
                }
            }
            Err(error) => {
                conclusion.retry_after = conclusion.retry_after.max(error.retry_after());
                match conclusion.ended {
                    Ended::Retry(_) => warn!(parent = %parent.key, %error, "status not written"),
                    _ => conclusion.ended = of_error(&error),
                }
            }
        }
    }

    fn report(&mut self, key: &Key, parent: Option<&Object>, ended: &Ended) {
        let controller = &self.room.definition.name;
        // The same failure at every retry is one fact: the event counts how often.
        let said = match ended {
            Ended::Retry(note) | Ended::Stuck(note) => Some(fingerprint(note)),
            Ended::Done | Ended::Changed | Ended::Waiting(_) => None,
        };
        let news = self.memory.is_news(said);
        let note = match ended {
            Ended::Done | Ended::Changed => return,
            Ended::Waiting(note) => {
                debug!(controller, parent = %key, reason = note.reason, message = note.message, "parent waits");
                return;
            }
            Ended::Retry(note) | Ended::Stuck(note) if !news => {
                debug!(controller, parent = %key, reason = note.reason, error = note.message, "visit failed as before");
                note
            }
            Ended::Retry(note) => {
                warn!(controller, parent = %key, reason = note.reason, error = note.message, "visit failed, will retry");
                note
            }
            Ended::Stuck(note) => {
                warn!(controller, parent = %key, reason = note.reason, error = note.message, "parent cannot be brought to what is wanted");
                note
            }
        };
        if let Some(parent) = parent {
            let message = format!("Sync error: {}: {}", note.reason, note.message);
            self.room.recorder.publish(&self.about(parent), Severity::Warning, "SyncError", &message);
        }
    }

    fn next(&mut self, key: &Key, conclusion: &Conclusion) -> Next {
        if !conclusion.unseen_writes {
            self.memory.settled();
        }
        match (&conclusion.ended, conclusion.resync_after) {
            (Ended::Changed | Ended::Retry(_), resync_after) => {
                // What the hook asks for comes in its time, however long the backoff has become.
                if let Some(after) = resync_after {
                    self.room.queue.add_after(key.clone(), after);
                }
                Next::Backoff(conclusion.retry_after.unwrap_or_default())
            }
            (Ended::Waiting(_), after) => Next::After(after.map_or(WAIT, |after| after.min(WAIT))),
            _ if conclusion.unseen_writes => match self.memory.slow_down() {
                None => Next::Again,
                Some(pause) => Next::After(pause),
            },
            (Ended::Stuck(_), None) => Next::After(STUCK),
            (Ended::Stuck(_), Some(after)) => Next::After(after.min(STUCK)),
            (Ended::Done, Some(after)) => Next::After(after),
            (Ended::Done, None) => Next::Rest,
        }
    }
}

/// Objects as a hook is shown them. Each kind has its group, even when it is empty.
fn groups<'a>(
    version: HookVersion,
    parent: &Key,
    shown: impl Iterator<Item = (&'a Resource, &'a [Arc<Object>])>,
) -> Groups<'a> {
    let mut groups = Groups::new();
    for (resource, objects) in shown {
        let group = groups.entry(resource.gvk.grouping_key()).or_default();
        for object in objects {
            let key = inner_key(version, parent, &object.key);
            if let (Some(key), Some(body)) = (key, &object.body) {
                group.insert(key.into_owned(), &**body);
            }
        }
    }
    groups
}

fn fingerprint(note: &Note) -> u64 {
    let mut hasher = DefaultHasher::new();
    (note.reason, &note.message).hash(&mut hasher);
    hasher.finish()
}

/// What a visit has to wait for before the hook can be asked.
fn not_ready(room: &Room, situation: &Situation, claimed: &Claimed) -> Option<Conclusion> {
    let unknown = claimed.missing.iter().find_map(|(rule, missing)| match missing {
        Missing::Unknown(message) => Some((*rule, message)),
        Missing::Absent(_) => None,
    });
    // A deletion does not wait for ever for kinds that cannot be read: see `not_sure`.
    if let Some((rule, message)) = unknown.filter(|_| !situation.parent.deleting) {
        let resource = &room.children[rule].rule.resource;
        let message = format!("{} of {} cannot be read: {message}", resource.resource, resource.api_version);
        let waiting = Conclusion::new(Ended::Waiting(note("WaitingForKind", message)));
        // What takes a moment is not worth a status.
        let silent = room.children[rule].hold.kind.state() == State::Starting;
        return Some(Conclusion { silent, resync_after: silent.then_some(CACHE), ..waiting });
    }
    let mut members = claimed.families.iter().flat_map(|family| &family.members);
    let blank = members.find(|object| object.body.is_none())?;
    let waiting = Ended::Waiting(note("WaitingForCache", format!("{} is being read anew", blank.key)));
    Some(Conclusion { silent: true, resync_after: Some(CACHE), ..Conclusion::new(waiting) })
}
