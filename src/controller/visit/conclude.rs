//! How a visit is told: on the parent's status, in an event, in the log, to the queue.

use std::time::Duration;

use tracing::{debug, warn};

use crate::cluster::event::Severity;
use crate::cluster::object::Object;
use crate::config::spec::Role;
use crate::controller::meter::Outcome;
use crate::controller::pause;
use crate::controller::queue::Next;
use crate::controller::visit::ask::{HOOK_BUSY, NOT_FINALIZED};
use crate::controller::visit::status::{self, Ours, Said};
use crate::controller::visit::{Conclusion, Ended, Visit, of_error};
use crate::object::name::Key;
use crate::trace;

/// A stuck parent is visited again after this time, in case what it is stuck on has changed unseen.
const STUCK: Duration = Duration::from_secs(300);
/// A kind that is not there yet wakes its parents when it comes; this is for all else that is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// Notes on the visit's trace what it ended with, where that is not the state that was wanted.
fn note_on_trace(ended: &Ended) {
    let trace = trace::current();
    match ended {
        Ended::Done | Ended::Changed => {}
        Ended::Waiting(note) => drop(trace.record("reason", note.reason)),
        Ended::Retry(note) | Ended::Stuck(note) => {
            trace.record("reason", note.reason).record("error", &note.message);
        }
    }
}

impl Visit<'_> {
    /// Says how the visit ended: on the parent's status, in an event, in the log, to the queue.
    pub(super) async fn conclude(&mut self, key: &Key, mut conclusion: Conclusion) -> (Outcome, Next) {
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
            && (self.room.role() == Role::Decorator || note.reason == NOT_FINALIZED)
        {
            let message = format!("{}: {}", note.reason, note.message);
            self.room.recorder.publish(&self.about(parent), Severity::Normal, "Waiting", &message);
        }
        self.report(parent.as_deref(), &conclusion.ended);
        (Outcome::of(&conclusion.ended), self.next(key, &conclusion))
    }

    pub(super) async fn write_status(&mut self, parent: &Object, conclusion: &mut Conclusion) {
        let said = match &conclusion.ended {
            Ended::Waiting(note) | Ended::Retry(note) | Ended::Stuck(note) => Some(note),
            Ended::Done | Ended::Changed => None,
        };
        let ours = Ours { generation: self.generation, note: said, updated: conclusion.updated.as_ref() };
        let said = Said { answered: conclusion.status.take(), ours };
        let outcome = status::write(self.room, self.writer, parent, &mut self.memory, said).await;
        let news = self.memory.is_news_of_status(outcome.as_ref().err());
        match outcome {
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
                    Ended::Retry(_) if news => warn!(%error, "status not written"),
                    Ended::Retry(_) => debug!(%error, "status not written, as before"),
                    _ => conclusion.ended = of_error(&error),
                }
            }
        }
    }

    fn report(&mut self, parent: Option<&Object>, ended: &Ended) {
        // The same failure at every retry is one fact: the event counts how often.
        let said = match ended {
            Ended::Retry(note) | Ended::Stuck(note) => Some(note),
            Ended::Done | Ended::Changed | Ended::Waiting(_) => None,
        };
        let news = self.memory.is_news(said);
        note_on_trace(ended);
        let note = match ended {
            Ended::Done | Ended::Changed => return,
            Ended::Waiting(note) => {
                debug!(reason = note.reason, why = note.message, "parent waits");
                return;
            }
            Ended::Retry(note) | Ended::Stuck(note) if !news => {
                debug!(reason = note.reason, error = note.message, "visit failed as before");
                note
            }
            Ended::Retry(note) => {
                warn!(reason = note.reason, error = note.message, "visit failed, will retry");
                note
            }
            Ended::Stuck(note) => {
                warn!(
                    reason = note.reason,
                    error = note.message,
                    "parent cannot be brought to what is wanted"
                );
                note
            }
        };
        if let Some(parent) = parent.filter(|_| note.reason != HOOK_BUSY) {
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
            // Both end by themselves: by an edit, or by what the finalize hook waits for.
            (Ended::Waiting(note), after) if matches!(note.reason, pause::REASON | NOT_FINALIZED) => {
                after.map_or(Next::Rest, Next::After)
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
