//! What kind of visit this is: of a parent to be kept, to be finalized, or to be left alone.

use std::sync::Arc;

use tracing::warn;

use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::config::spec::Role;
use crate::controller::room::{CONTROLLER_UID, own_selector};
use crate::controller::visit::{Situation, Visit, finalizer};
use crate::object::selector::Selector;
use crate::problem::Problem;

impl Visit<'_> {
    /// Brings the finalizer in order and finds out what kind of visit this is. `None`: nothing to do.
    pub(super) async fn prepare(
        &mut self,
        parent: Arc<Object>,
    ) -> Result<Option<Result<Situation, Problem>>, Error> {
        let room = self.room;
        let selected = room.selects(&parent);
        let marked = finalizer::has(room, &parent);
        self.memory.concerned = selected || marked;
        if !self.memory.concerned {
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
                self.note_finalizer(missing);
            }
            None if missing => {
                finalizer::add(room, self.writer, &parent).await?;
                self.note_finalizer(missing);
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

    fn note_finalizer(&mut self, put_on: bool) {
        if self.memory.finalizer_writes.note(put_on.into()) {
            warn!("another writer keeps changing the finalizer back: it is written less often");
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
}
