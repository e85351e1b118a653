//! Asking the hook: what it is shown, what has to be known first, and what it means that it gives no answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tracing::{debug, warn};

use crate::cluster::event::Severity;
use crate::cluster::kind::{Resource, State};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::config::spec::HookVersion;
use crate::controller::related::Sight;
use crate::controller::room::Room;
use crate::controller::visit::claim::{Claimed, Missing};
use crate::controller::visit::{CACHE, Conclusion, Ended, Situation, Visit, finalizer, note};
use crate::hook::Hook;
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{Call, Failure, Groups, Request, inner_key};
use crate::object::name::Key;

/// A finalize hook that cannot be used is asked again after this time, while there is patience.
const FINALIZE_AGAIN: Duration = Duration::from_secs(10);

/// A parent says that it waits for its finalize hook after this time.
const FINALIZE_UNSAID: Duration = Duration::from_secs(10);
/// The reason of a parent whose finalize hook answers, but does not finalize.
pub(super) const NOT_FINALIZED: &str = "NotFinalized";

/// A hook that asks to be left alone, as against one that fails: that is no `SyncError`.
pub(super) const HOOK_BUSY: &str = "HookBusy";

/// The parent as a hook is shown it.
pub(super) struct Guise<'a> {
    pub body: &'a RawValue,
    /// The name of the older revision in which it is shown, empty for the parent as it is.
    pub revision: &'a str,
}

impl Situation {
    pub(super) fn guise(&self) -> Guise<'_> {
        Guise { body: self.parent.body.as_deref().expect("parents are kept whole"), revision: "" }
    }

    /// Whose answers are kept by their ETag.
    pub(super) fn subject(&self, guise: &Guise) -> String {
        let uid = &self.parent.uid;
        if guise.revision.is_empty() { uid.to_string() } else { format!("{uid}/{}", guise.revision) }
    }
}

impl Visit<'_> {
    pub(super) async fn ask(
        &self,
        situation: &Situation,
        claimed: &Claimed,
        sight: &Sight,
        guise: &Guise<'_>,
    ) -> Result<Answer, Failure> {
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
        let request = Request {
            role: self.room.role(),
            controller: &self.room.definition.json,
            parent: guise.body,
            children: &children,
            related: &related,
            finalizing: situation.finalizing,
        };
        let subject = situation.subject(guise);
        let body = request.body();
        let answer = hook.call(call, &subject, body.clone());
        let answer = self.room.meter.hook(call, answer).await;
        if let Some(rehearsal) = self.rehearsal {
            rehearsal.hear(call, body, &answer);
        }
        let revision = Some(guise.revision).filter(|revision| !revision.is_empty());
        debug!(call = call.name(), revision, ok = answer.is_ok(), "hook called");
        answer
    }

    /// What a call without an answer means. A deletion is not held up for ever by a hook that cannot be used.
    pub(super) async fn unanswered(
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
                let message = format!("{call}: 429: the hook is busy, and does not say for how long");
                (Ended::Retry(note(HOOK_BUSY, message)), None)
            }
        };
        Ok(Conclusion { retry_after, ..Conclusion::new(ended) })
    }

    fn hook(&self, call: Call) -> Option<&Hook> {
        match call {
            Call::Sync => self.room.sync.as_ref(),
            Call::Finalize => self.room.finalize.as_ref(),
            Call::Customize => self.room.customize.as_ref(),
            Call::Validate | Call::Default | Call::Convert => None,
        }
    }

    /// What a finalize hook must not be asked without: it could take children that are not shown for children that are
    /// gone, and have the parent go too early. A kind that cannot be read holds up a deletion only for so long.
    pub(super) fn not_sure(&mut self, claimed: &Claimed) -> Option<Conclusion> {
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

    /// A finalize hook takes the time it needs; after a while it is said on the parent whom everybody waits for.
    pub(super) fn not_finalized(&mut self, conclusion: &mut Conclusion) {
        let since = *self.memory.finalize_waits_since.get_or_insert_with(Instant::now);
        let left = FINALIZE_UNSAID.saturating_sub(since.elapsed());
        if left.is_zero() {
            let finalizer = &self.room.definition.spec.finalizer;
            let message = format!(
                "the finalize hook has not answered `finalized: true`: the finalizer `{finalizer}` stays until it does"
            );
            conclusion.ended = Ended::Waiting(note(NOT_FINALIZED, message));
        } else {
            conclusion.resync_after = Some(conclusion.resync_after.map_or(left, |after| after.min(left)));
        }
    }

    /// For how long the finalize hook may still hold up the deletion.
    fn patience_left(&mut self) -> Duration {
        let since = *self.memory.finalize_fails_since.get_or_insert_with(Instant::now);
        self.room.settings.finalize_patience.saturating_sub(since.elapsed())
    }

    /// Takes the finalizer off although the hook has not finalized, and says so.
    pub(super) async fn let_go(&self, parent: &Object, why: &str) -> Result<Conclusion, Error> {
        finalizer::remove(self.room, self.writer, parent).await?;
        let message = format!("finalizer removed without the finalize hook: {why}");
        warn!(why, "finalizer removed without the hook");
        self.room.recorder.publish(&self.about(parent), Severity::Warning, "FinalizeSkipped", &message);
        Ok(Conclusion::nothing_to_do())
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

/// What a visit has to wait for before the hook can be asked.
pub(super) fn not_ready(room: &Room, situation: &Situation, claimed: &Claimed) -> Option<Conclusion> {
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
