//! Taking the plan's steps: deletes and applies, one refusal holding up no other child.

use futures::StreamExt;
use futures::stream;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use tracing::info;

use crate::cluster::kind::{Kind, Resource};
use crate::cluster::object::Version;
use crate::cluster::request::Error;
use crate::cluster::write::Force;
use crate::controller::visit::Visit;
use crate::controller::visit::act::{Scene, observed_as};
use crate::controller::visit::acted::{Acted, Failed, Sort, failed_as};
use crate::controller::visit::claim::Claimed;
use crate::controller::visit::refused::verdict;
use crate::mask::scope;
use crate::object::name::Key;
use crate::plan::desired::{Ownership, Wanted};
use crate::plan::memory::Probed;
use crate::plan::refusal::Verdict;
use crate::plan::steps::{Control, Farewell, Observed, Reason, Rest, Step};
use crate::plan::takeover;
use crate::problem::Place;

/// So many objects are written at once.
const AT_ONCE: usize = 8;

/// A child that is to be applied.
#[derive(Clone, Copy)]
struct Parcel<'a> {
    wanted: &'a Wanted,
    present: Option<&'a Observed<'a>>,
    why: &'a Reason,
    force: Force,
}

/// What came of one write.
enum Sent<T> {
    Answered(Result<T, Error>),
    NotTakenOver(Error),
    /// The parent's end came first, and what would be made after it is left to nobody.
    Late,
}

impl Visit<'_> {
    /// Takes one step, or several that may overlap.
    pub(super) async fn take(&mut self, scene: &Scene<'_>, steps: &[Step], acted: &mut Acted) {
        match steps {
            [Step::Apply { .. }, ..] => {
                let parcels: Vec<Parcel> = steps.iter().filter_map(|step| self.parcel(scene, step)).collect();
                let sending: Vec<_> = parcels.iter().map(|parcel| self.send(scene, *parcel)).collect();
                let sent = self.at_once(sending).await;
                for (parcel, sent) in parcels.iter().zip(sent) {
                    self.note_applied(scene, *parcel, sent, acted);
                }
            }
            [Step::Delete { .. }, ..] => {
                let farewells: Vec<(usize, &Farewell)> = steps.iter().filter_map(farewell).collect();
                let sending: Vec<_> =
                    farewells.iter().map(|(observed, _)| self.delete(scene, *observed)).collect();
                let sent = self.at_once(sending).await;
                for (farewell, sent) in farewells.into_iter().zip(sent) {
                    self.note_deleted(scene, farewell, sent, acted);
                }
            }
            others => {
                for step in others {
                    self.take_alone(scene, step, acted).await;
                }
            }
        }
    }

    async fn take_alone(&mut self, scene: &Scene<'_>, step: &Step, acted: &mut Acted) {
        let Scene { claimed, desired, .. } = *scene;
        match step {
            Step::Apply { .. } | Step::Delete { .. } => {}
            Step::Probe { wanted, observed, differences } => {
                let wanted = &desired.wanted[*wanted];
                match self.would_differ(scene, wanted, &scene.observed[*observed]).await {
                    Ok(false) => acted.probed = true,
                    Ok(true) => {
                        let why = Farewell::Replaced(differences.clone());
                        let sent = self.delete(scene, *observed).await;
                        self.note_deleted(scene, (*observed, &why), sent, acted);
                    }
                    Err(error) => acted.fail(&name(claimed, wanted.rule, &wanted.key), "trying", &error),
                }
            }
            Step::Keep { wanted, why: Rest::Deleting, .. } => {
                let wanted = &desired.wanted[*wanted];
                let message = format!("{} is being deleted", name(claimed, wanted.rule, &wanted.key));
                acted.failures.push(Failed::waits(message));
            }
            Step::Keep { wanted, why: Rest::Former, .. } => {
                let wanted = &desired.wanted[*wanted];
                self.wait_for_name(wanted);
                let child = name(claimed, wanted.rule, &wanted.key);
                let message =
                    format!("{child} belongs to a deleted parent of this name, and is still to be collected");
                acted.failures.push(Failed::waits(message));
            }
            Step::Keep { .. } => {}
            Step::Stuck { wanted, message } => {
                let wanted = &desired.wanted[*wanted];
                let reason = self.memory.refusal_reason(wanted.rule, &wanted.key);
                acted.failures.push(Failed { reason, ..Failed::refused(message.clone()) });
            }
            Step::Refuse { wanted, problem } => {
                self.wait_for_name(&desired.wanted[*wanted]);
                acted.failures.push(Failed::refused(problem.to_string()));
            }
        }
    }

    /// Has the parent visited again when the child's name is free.
    fn wait_for_name(&self, wanted: &Wanted) {
        let child = &self.room.children[wanted.rule];
        let parent = &self.writer.origin.parent;
        child.waiting.add(&wanted.key, parent);
        // It may have become free before anybody waited.
        if child.hold.kind.get(&wanted.key).is_none() {
            self.room.queue.add(parent.clone());
        }
    }

    /// A rehearsal is told in the order of the answer.
    async fn at_once<T>(&self, writes: Vec<impl Future<Output = T>>) -> Vec<T> {
        let at_once = if self.writer.trial.is_some() { 1 } else { AT_ONCE };
        stream::iter(writes).buffered(at_once).collect().await
    }

    async fn delete(&self, scene: &Scene<'_>, observed: usize) -> Sent<()> {
        let (rule, object) = &scene.live[observed];
        let Some(family) = scene.claimed.family(*rule).filter(|_| self.is_still(scene.situation)) else {
            return Sent::Late;
        };
        let kind = &self.room.children[*rule].hold.kind;
        Sent::Answered(self.writer.delete(kind, &family.resource, &object.key, &object.uid).await)
    }

    fn parcel<'a>(&mut self, scene: &'a Scene<'a>, step: &'a Step) -> Option<Parcel<'a>> {
        let Step::Apply { wanted, observed, why } = step else { return None };
        let wanted = &scene.desired.wanted[*wanted];
        let present = observed.map(|at| &scene.observed[at]);
        let fought_over =
            present.is_some() && self.memory.is_fought_over(wanted.rule, &wanted.key, wanted.hash);
        Some(Parcel { wanted, present, why, force: if fought_over { Force::No } else { Force::Yes } })
    }

    async fn send(&self, scene: &Scene<'_>, parcel: Parcel<'_>) -> Sent<Version> {
        let Parcel { wanted, present, force, .. } = parcel;
        let Some(family) = scene.claimed.family(wanted.rule).filter(|_| self.is_still(scene.situation))
        else {
            return Sent::Late;
        };
        let kind = &self.room.children[wanted.rule].hold.kind;
        if let Some(present) = present
            && wanted.ownership == Ownership::Parent
            && takeover::is_due(present.body, present.owned, present.updated)
            && let Err(error) = self.take_over(kind, &family.resource, wanted).await
        {
            return Sent::NotTakenOver(error);
        }
        let body = body(present.map(|present| present.uid), wanted);
        let mut answer = self.writer.apply(kind, &family.resource, &wanted.key, body.clone(), force).await;
        if let Err(error) = &answer
            && present.is_some()
            && self.make_room(kind, &family.resource, wanted, error).await
        {
            answer = self.writer.apply(kind, &family.resource, &wanted.key, body, force).await;
        }
        Sent::Answered(answer)
    }

    fn note_applied(
        &mut self,
        scene: &Scene<'_>,
        parcel: Parcel<'_>,
        sent: Sent<Version>,
        acted: &mut Acted,
    ) {
        let Parcel { wanted, why, .. } = parcel;
        let child = name(scene.claimed, wanted.rule, &wanted.key);
        match sent {
            Sent::Late => acted.changed = true,
            Sent::NotTakenOver(error) => {
                // The object has changed under us, or is gone: the next visit sees it anew.
                acted.changed |= error.is(404) || error.is(409) || error.is(422);
                if !acted.changed {
                    acted.fail(&child, "taking over", &error);
                }
            }
            Sent::Answered(Ok(version)) => {
                match why {
                    Reason::Missing => {
                        self.memory.note_made(&child);
                        info!(child, "child created");
                    }
                    Reason::Unseen => {
                        acted.changes.push(child.clone());
                        info!(child, "somebody else's object updated");
                    }
                    Reason::Differs(differences) => {
                        if self.memory.never_settles() {
                            acted.changes.push(format!("{child}: {}", differences.places()));
                        }
                        info!(child, %differences, "child updated");
                    }
                }
                acted.wrote = true;
                // What another writer has done since is not the server's doing.
                let kind = &self.room.children[wanted.rule].hold.kind;
                if let Some(answer) = kind.get(&wanted.key).filter(|answer| answer.version == version) {
                    let answer = observed_as(wanted.rule, &answer, Control::Ours);
                    self.memory.children.applied(wanted, &answer);
                }
            }
            Sent::Answered(Err(error)) => self.note_refused(&child, parcel, &error, acted),
        }
    }

    fn note_deleted(
        &mut self,
        scene: &Scene<'_>,
        (observed, why): (usize, &Farewell),
        sent: Sent<()>,
        acted: &mut Acted,
    ) {
        let (rule, object) = &scene.live[observed];
        let child = name(scene.claimed, *rule, &object.key);
        match sent {
            Sent::Late => acted.changed = true,
            Sent::Answered(Ok(())) => {
                if let Farewell::Replaced(differences) = why
                    && self.memory.never_settles()
                {
                    acted.changes.push(format!("{child}: {}", differences.places()));
                }
                self.memory.note_deleted(&child);
                info!(child, %why, "child deleted");
                acted.wrote = true;
            }
            Sent::Answered(Err(error)) | Sent::NotTakenOver(error) => acted.fail(&child, "deleting", &error),
        }
    }

    fn note_refused(&mut self, child: &str, parcel: Parcel<'_>, error: &Error, acted: &mut Acted) {
        let Parcel { wanted, present, why, .. } = parcel;
        acted.heed(error);
        let (verdict, summary) = verdict(error);
        acted.namespace_ends |= verdict == Verdict::NamespaceTerminating;
        if matches!(verdict, Verdict::Replaced | Verdict::Stale) {
            acted.changed = true;
            return;
        }
        let summary = match (&verdict, why) {
            // The server names the whole spec of a StatefulSet; what was to change is known here.
            (Verdict::Immutable { .. }, Reason::Differs(differences)) => {
                format!("{summary} (to be changed: {differences})")
            }
            _ => summary,
        };
        let mut failed = failed_as(child, "applying", verdict, &summary);
        if let Some(place) = self.place_of(wanted, &failed.field) {
            failed.message = format!("{place}: {}", failed.message);
        }
        if failed.sort == Sort::Refused {
            self.memory.note_refusal(wanted.rule, &wanted.key, failed.reason);
            // It is told again when a Secret may have other values.
            self.memory.children.refused(wanted, present, &scope::spoken(&failed.message));
        }
        acted.failures.push(failed);
    }

    /// Makes ours what others wrote before by plain updates, so that a field that is dropped later really goes.
    async fn take_over(&self, kind: &Kind, resource: &Resource, wanted: &Wanted) -> Result<(), Error> {
        let Some(live) = self.writer.read_text(resource, &wanted.key).await? else { return Ok(()) };
        let live: Value = serde_json::from_str(&live)?;
        let managers = &self.room.cluster.managers;
        match takeover::patch(&live, &wanted.body, &managers.objects, &managers.updaters()) {
            Some(patch) => self.writer.json_patch(kind, resource, &wanted.key, &patch).await,
            None => Ok(()),
        }
    }

    /// Takes the items of a list that leave no room for ours. Tells whether there were any.
    async fn make_room(&self, kind: &Kind, resource: &Resource, wanted: &Wanted, refusal: &Error) -> bool {
        let Error::Refused(status) = refusal else { return false };
        let mut causes = status.details.causes.iter();
        let Some(twice) = causes.find(|cause| cause.reason == "FieldValueDuplicate") else { return false };
        let Ok(Some(live)) = self.writer.read_text(resource, &wanted.key).await else { return false };
        let Ok(live) = serde_json::from_str::<Value>(&live) else { return false };
        let manager = &self.room.cluster.managers.objects;
        match takeover::evict(&live, &wanted.body, &twice.field, manager) {
            Some(patch) => self.writer.json_patch(kind, resource, &wanted.key, &patch).await.is_ok(),
            None => false,
        }
    }

    /// Where the author wrote what the server means, or else the child.
    fn place_of(&self, wanted: &Wanted, field: &str) -> Option<Place> {
        let child = wanted.place.as_ref()?;
        let origin = self.origins.iter().find(|origin| origin.place_of(&[]) == *child);
        let steps = path_steps(field);
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        origin.map(|origin| origin.place_of(&steps)).or_else(|| Some(child.clone()))
    }

    /// Whether applying would make another object of it. The server is asked, since only it knows its defaults.
    async fn would_differ(
        &mut self,
        scene: &Scene<'_>,
        wanted: &Wanted,
        present: &Observed<'_>,
    ) -> Result<bool, Error> {
        let Some(family) = scene.claimed.family(wanted.rule) else { return Ok(false) };
        let body = body(Some(present.uid), wanted);
        match self.writer.dry_run(&family.resource, &wanted.key, body).await {
            Ok(answer) => Ok(self.memory.children.probed(wanted, present, &answer) == Probed::Differs),
            // The change cannot be made in place: that is what recreating is for. Any other refusal, an overloaded
            // server's too, would be met by the new object as well.
            Err(error) => match verdict(&error).0 {
                Verdict::Immutable { .. } => Ok(true),
                _ => Err(error),
            },
        }
    }
}

fn farewell(step: &Step) -> Option<(usize, &Farewell)> {
    match step {
        Step::Delete { observed, why } => Some((*observed, why)),
        _ => None,
    }
}

/// What is sent: with the live object's uid, so that an object of the same name is never taken for it.
fn body(uid: Option<&str>, wanted: &Wanted) -> Vec<u8> {
    match uid {
        Some(uid) => serde_json::to_vec(&Meant { body: &wanted.body, uid }),
        None => serde_json::to_vec(&wanted.body),
    }
    .expect("JSON is printed")
}

/// An object with a uid in its metadata.
struct Meant<'a> {
    body: &'a Map<String, Value>,
    uid: &'a str,
}

impl Serialize for Meant<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_map(Some(self.body.len()))?;
        for (key, value) in self.body {
            match value {
                Value::Object(metadata) if key == "metadata" => {
                    body.serialize_entry(key, &Identified { metadata, uid: self.uid })?;
                }
                other => body.serialize_entry(key, other)?,
            }
        }
        body.end()
    }
}

struct Identified<'a> {
    metadata: &'a Map<String, Value>,
    uid: &'a str,
}

impl Serialize for Identified<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let others = self.metadata.iter().filter(|(key, _)| *key != "uid");
        serializer.collect_map(
            others.map(|(key, value)| (key.as_str(), value)).chain([("uid", &Value::from(self.uid))]),
        )
    }
}

/// A child as people know it: `StatefulSet shop/db`.
fn name(claimed: &Claimed, rule: usize, key: &Key) -> String {
    claimed
        .family(rule)
        .map_or_else(|| key.to_string(), |family| format!("{} {key}", family.resource.gvk.kind))
}

/// The steps of `.spec.containers[0].image`, as far as they are names and indices.
pub(super) fn path_steps(field: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for part in field.trim_start_matches('.').split('.') {
        let (name, rest) = part.split_once('[').map_or((part, ""), |(name, rest)| (name, rest));
        if !name.is_empty() {
            steps.push(name.to_string());
        }
        for index in rest.split('[').filter(|index| !index.is_empty()) {
            match index.trim_end_matches(']').parse::<usize>() {
                Ok(index) => steps.push(index.to_string()),
                Err(_) => return steps,
            }
        }
    }
    steps
}
