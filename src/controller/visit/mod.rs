//! One visit of a parent: observe, ask the hook, act on its answer, write the status.
//!
//! After its own writes a visit asks the hook once more, with what the writes have made, so that the status is
//! written once and is true. Nothing is deleted unless an answer is complete and nothing in it was refused.

mod act;
mod acted;
mod ask;
mod claim;
mod conclude;
mod finalizer;
mod pause;
mod prepare;
pub(crate) mod refused;
pub(crate) mod rehearsal;
mod related;
mod roll;
mod secrets;
pub(crate) mod status;
mod target;
#[cfg(test)]
mod tests;
mod write;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value};
use tracing::{error, info};

use crate::cluster::event::About;
use crate::cluster::kind::Origin as Visitor;
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Writer;
use crate::config::spec::Role;
use crate::controller::memory::Memory;
use crate::controller::meter::Outcome;
use crate::controller::queue::Next;
use crate::controller::room::Room;
use crate::controller::visit::acted::Acted;
use crate::controller::visit::ask::not_ready;
use crate::controller::visit::claim::Claimed;
use crate::controller::visit::rehearsal::Rehearsal;
use crate::controller::visit::status::Note;
use crate::hook::origin::Origin;
use crate::hook::wire::Call;
use crate::hook::wire::answer::Answer;
use crate::mask::scope;
use crate::object::name::Key;
use crate::object::selector::Selector;
use crate::plan::refusal::Verdict;
use crate::plan::rollout::Updated;
use crate::trace;

/// So many times a visit asks the hook while its own writes keep changing what there is to see.
const ROUNDS: usize = 3;
/// A relist that was asked for takes about so long.
const CACHE: Duration = Duration::from_millis(200);
/// The reason of a visit that panicked.
pub(crate) const INTERNAL_ERROR: &str = "InternalError";

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
    /// How far a rolling update is, where there are such.
    pub updated: Option<Updated>,
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
            updated: None,
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

/// What the controller says of a parent: without the values of the Secrets that the visit under way has in hand.
pub(crate) fn note(reason: &'static str, message: impl Into<String>) -> Note {
    Note { reason, message: scope::spoken(&message.into()).into_owned() }
}

/// Visits the parent of this name, if there still is one.
pub(crate) async fn visit(room: &Room, key: &Key) -> (Outcome, Next) {
    scope::within(visit_within(room, key)).await
}

async fn visit_within(room: &Room, key: &Key) -> (Outcome, Next) {
    let Some(parent) = room.parents.get(key) else {
        room.forget(key);
        return (Outcome::Done, Next::Never);
    };
    let origin = Visitor { controller: room.number, parent: key.clone() };
    let writer = Writer { cluster: &room.cluster, origin: &origin, trial: None };
    let memory = room.memory(key, &parent.uid);
    let mut visit = Visit::new(room, &writer, memory, &parent);
    let conclusion = survived(visit.come_to_an_end(parent)).await;
    let (outcome, next) = visit.conclude(key, conclusion).await;
    visit.memory.standing.set(&room.meter.parents, outcome);
    room.remember(key, visit.memory);
    (outcome, next)
}

/// A visit that panics is one that failed: its parent says so and is visited again, and the others go on.
async fn survived(end: impl Future<Output = Conclusion>) -> Conclusion {
    AssertUnwindSafe(end).catch_unwind().await.unwrap_or_else(|_| {
        error!("visit panicked: this is a bug of syncwright");
        let message = "a visit of this parent panicked, which is a bug of syncwright; the log says more";
        Conclusion::new(Ended::Retry(note(INTERNAL_ERROR, message)))
    })
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
    /// Hears what the hook is asked and answers, where the visit is only rehearsed.
    rehearsal: Option<&'a Rehearsal>,
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

impl<'a> Visit<'a> {
    fn new(room: &'a Room, writer: &'a Writer<'a>, memory: Memory, parent: &Object) -> Visit<'a> {
        let generation = parent.generation;
        Visit { room, writer, memory, generation, origins: Vec::new(), rehearsal: None }
    }
}

impl Visit<'_> {
    async fn come_to_an_end(&mut self, parent: Arc<Object>) -> Conclusion {
        match self.run(parent).await {
            Ok(conclusion) => conclusion,
            Err(error) => {
                Conclusion { retry_after: error.retry_after(), ..Conclusion::new(of_error(&error)) }
            }
        }
    }

    async fn run(&mut self, parent: Arc<Object>) -> Result<Conclusion, Error> {
        let key = parent.key.clone();
        scope::leave(&key.name);
        scope::leave(&key.namespace);
        if let Some(paused) = self.paused(&parent).await? {
            return Ok(paused);
        }
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
        let settled = claim::settle(self.room, self.writer, &situation.parent, &situation.selector);
        trace::within(&trace::span!("claim"), settled).await?;
        let mut round = 1;
        loop {
            if let Some(conclusion) = self.round(&mut situation, round >= self.rounds()).await? {
                return Ok(conclusion);
            }
            round += 1;
        }
    }

    /// Asks the hook and acts on its answer. `None`: something has changed by it, so that it has to be asked once more.
    async fn round(&mut self, situation: &mut Situation, last: bool) -> Result<Option<Conclusion>, Error> {
        let mut claimed = trace::span!("observe")
            .in_scope(|| claim::families(self.room, &situation.parent, &situation.selector));
        if let Some(rehearsal) = self.rehearsal {
            rehearsal.show_adopted(self.room, &situation.parent, &mut claimed);
        }
        let mut answer = match self.answer(situation, &claimed).await? {
            Ok(answer) => answer,
            Err(conclusion) => return Ok(Some(conclusion)),
        };
        if !self.is_still(situation) {
            return Ok(Some(Conclusion::new(Ended::Changed)));
        }
        self.memory.finalize_fails_since = None;
        if !situation.finalizing {
            self.memory.finalize_waits_since = None;
        }
        if self.room.role() == Role::Decorator
            && let Some(refused) = self.decorate(situation, &answer).await?
        {
            return Ok(Some(refused));
        }
        let children = std::mem::take(&mut answer.children);
        let mut wish = self.wish(situation, &claimed, children);
        let mut roll = None;
        if situation.manages && self.room.revisions.is_some() {
            match self.roll(situation, &claimed, &mut wish, &mut answer).await? {
                Ok(step) => roll = Some(step),
                Err(conclusion) => return Ok(Some(conclusion)),
            }
            if !self.is_still(situation) {
                return Ok(Some(Conclusion::new(Ended::Changed)));
            }
        }
        let finalized = situation.finalizing && answer.finalized;
        if finalized && self.room.role() == Role::Composite {
            return self.finish(situation).await.map(Some);
        }
        if let Some(roll) = &roll
            && let Some(conclusion) = self.record(roll).await?
        {
            return Ok(Some(conclusion));
        }
        let mut acted =
            if situation.manages { self.act(situation, &claimed, wish).await } else { Acted::default() };
        // A child that has moved is looked at once more, and so is one that was thought to differ.
        acted.wrote |= roll.as_ref().is_some_and(|roll| roll.moves() || acted.probed);
        if situation.finalizing && acted.namespace_ends {
            return self.let_go(&situation.parent, "its namespace is being deleted").await.map(Some);
        }
        if finalized && !acted.must_retry() && !acted.changed {
            return self.finish(situation).await.map(Some);
        }
        if acted.wrote && !acted.changed && !acted.must_retry() && !last {
            return Ok(None);
        }
        let updated = roll.map(|roll| roll.updated());
        let updated =
            updated.map(|updated| Updated { message: scope::spoken(&updated.message).into(), ..updated });
        let mut conclusion = Conclusion { updated, ..self.concluded(answer, acted, &claimed) };
        if situation.finalizing && conclusion.ended == Ended::Done {
            self.not_finalized(&mut conclusion);
        }
        Ok(Some(conclusion))
    }

    /// What the hook answers to the parent and its children as they are, or the visit's end where that cannot be known.
    async fn answer(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
    ) -> Result<Result<Answer, Conclusion>, Error> {
        secrets::know_seen(&self.room.parent_resource, std::slice::from_ref(&situation.parent));
        for family in &claimed.families {
            secrets::know_seen(&family.resource, &family.members);
        }
        if let Some(waiting) = not_ready(self.room, situation, claimed) {
            return Ok(Err(waiting));
        }
        if situation.finalizing
            && let Some(waiting) = self.not_sure(claimed)
        {
            return Ok(Err(waiting));
        }
        let guise = situation.guise();
        let sight = match trace::within(&trace::span!("related"), self.look_around(situation, &guise)).await {
            Ok(sight) => sight,
            Err(failure) => {
                return self.unanswered(Call::Customize, situation, claimed, failure).await.map(Err);
            }
        };
        for group in &sight.groups {
            secrets::know_seen(&group.resource, &group.objects);
        }
        if let Some(waiting) = related::not_ready(situation, &sight) {
            return Ok(Err(waiting));
        }
        match self.ask(situation, claimed, &sight, &guise).await {
            Ok(answer) => Ok(Ok(answer)),
            Err(failure) => self.unanswered(situation.call(), situation, claimed, failure).await.map(Err),
        }
    }

    fn concluded(&self, answer: Answer, acted: Acted, claimed: &Claimed) -> Conclusion {
        let (unseen_writes, retry_after) = (acted.wrote, acted.retry_after);
        let resync_after = answer.resync_after.into_iter().chain(acted.look_again).min();
        let restless = unseen_writes && self.memory.never_settles();
        let ended = match self.restless_words(&acted).filter(|_| restless) {
            Some(message) => Ended::Stuck(note("NeverSettles", message)),
            None => acted.ended(claimed),
        };
        let status = Some(answer.status.unwrap_or_default());
        Conclusion { status, resync_after, retry_after, unseen_writes, ..Conclusion::new(ended) }
    }

    /// What never comes to an end, where that can be named.
    fn restless_words(&self, acted: &Acted) -> Option<String> {
        if let Some(children) = self.memory.fleeting() {
            return Some(format!(
                "each answer wants other children than the one before: {children} were made and deleted again; \
                 a name has to be the same at each visit, so keep `now` and random text out of it"
            ));
        }
        let changes = acted.changes.join("; ");
        (!changes.is_empty())
            .then(|| format!("each answer wants something else than the one before: {changes}"))
    }

    /// A rehearsed visit's writes make nothing that there is to see, and children that do not last are not hurried.
    fn rounds(&self) -> usize {
        if self.rehearsal.is_some() || self.memory.fleeting().is_some() { 1 } else { ROUNDS }
    }

    /// Takes the finalizer off a parent that has finalized.
    async fn finish(&self, situation: &Situation) -> Result<Conclusion, Error> {
        finalizer::remove(self.room, self.writer, &situation.parent).await?;
        info!("parent finalized");
        Ok(Conclusion::nothing_to_do())
    }

    /// Whether the parent is still the one whose children are decided: not gone, replaced, or now being deleted.
    fn is_still(&self, situation: &Situation) -> bool {
        let parent = &situation.parent;
        self.room
            .parents
            .get(&parent.key)
            .is_some_and(|now| now.uid == parent.uid && now.deleting == parent.deleting)
    }

    fn about(&self, parent: &Object) -> About {
        About {
            gvk: self.room.parent_resource.gvk.clone(),
            key: parent.key.clone(),
            uid: parent.uid.to_string(),
        }
    }
}
