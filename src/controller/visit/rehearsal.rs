//! A visit that writes nothing: what it would do is tried on the API server, and told.
//!
//! It is the very visit that `run` makes, with a writer that only tries. Since its writes make nothing, the hook is asked
//! once, and the status is tried only where no other write comes before it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::cluster::kind::Origin as Visitor;
use crate::cluster::object::Object;
use crate::cluster::trial::{Trial, Tried};
use crate::cluster::write::Writer;
use crate::config::spec::Role;
use crate::controller::memory::Memory;
use crate::controller::room::Room;
use crate::controller::visit::claim::Claimed;
use crate::controller::visit::{Ended, Visit};
use crate::hook::wire::answer::{Answer, DesiredChild};
use crate::hook::wire::{Call, Failure};
use crate::mask::{Secrets, scope};
use crate::object::name::Key;

/// What is heard of a visit while it is rehearsed.
#[derive(Default)]
pub(crate) struct Rehearsal {
    trial: Trial,
    asked: Mutex<Vec<Asked>>,
}

/// One call of a hook.
pub(crate) struct Asked {
    pub call: Call,
    pub body: Bytes,
    /// The children that it wants; `None` where it gave no answer.
    pub children: Option<Vec<DesiredChild>>,
}

/// What came of a rehearsed visit.
pub(crate) struct Rehearsed {
    pub ended: Ended,
    pub tried: Vec<Tried>,
    pub asked: Vec<Asked>,
    /// Those of the Secrets that it had in hand.
    pub secrets: Secrets,
}

impl Rehearsal {
    pub(super) fn hear(&self, call: Call, body: Bytes, answer: &Result<Answer, Failure>) {
        let children = answer.as_ref().ok().map(|answer| answer.children.clone());
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(Asked { call, body, children });
    }

    /// Counts those among the children that would have been adopted: they are nobody's still.
    pub(super) fn show_adopted(&self, room: &Room, parent: &Object, claimed: &mut Claimed) {
        for (gvk, text) in self.trial.patched() {
            let Ok(object) = Object::read(&text, ("", ""), &room.cluster.managers) else { continue };
            let ours = object.controller.as_ref().is_some_and(|owner| owner.uid == parent.uid);
            let family = claimed.families.iter_mut().find(|family| family.resource.gvk == gvk);
            if let Some(family) = family.filter(|_| ours)
                && family.members.iter().all(|member| member.key != object.key)
            {
                family.members.push(Arc::new(object));
            }
        }
    }
}

/// Rehearses the visit of a parent; `None` when it is gone.
pub(crate) async fn rehearse(room: &Room, key: &Key) -> Option<Rehearsed> {
    scope::within(rehearse_within(room, key)).await
}

async fn rehearse_within(room: &Room, key: &Key) -> Option<Rehearsed> {
    let parent = room.parents.get(key)?;
    let rehearsal = Rehearsal::default();
    let origin = Visitor { controller: room.number, parent: key.clone() };
    let writer = Writer { cluster: &room.cluster, origin: &origin, trial: Some(&rehearsal.trial) };
    let memory = Memory::new(&parent.uid);
    let mut visit = Visit { rehearsal: Some(&rehearsal), ..Visit::new(room, &writer, memory, &parent) };
    let mut conclusion = visit.come_to_an_end(parent.clone()).await;
    let undisturbed = conclusion.ended == Ended::Done && !conclusion.silent && rehearsal.trial.is_empty();
    if undisturbed && room.role() == Role::Composite {
        visit.write_status(&parent, &mut conclusion).await;
    }
    let ended = conclusion.ended;
    let asked = rehearsal.asked.into_inner().unwrap_or_else(PoisonError::into_inner);
    Some(Rehearsed { ended, tried: rehearsal.trial.into_tried(), asked, secrets: scope::take() })
}
