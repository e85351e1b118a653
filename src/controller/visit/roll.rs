//! Rolling updates: the hook is asked for every live revision of the parent, and where each child goes is noted in
//! ControllerRevisions before any child is touched.
//!
//! What moves when is decided in `plan::rollout`. An older revision whose hook refuses to answer holds nobody up: its
//! children are left as they are until their turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tracing::{debug, info};

use crate::cluster::kind::{Kind, Resource, State};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::{Force, Part};
use crate::controller::related::Lacking;
use crate::controller::visit::act::Wish;
use crate::controller::visit::ask::Guise;
use crate::controller::visit::claim::Claimed;
use crate::controller::visit::{CACHE, Conclusion, Ended, Situation, Visit, note, related};
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{Call, Failure};
use crate::object::name::Key;
use crate::plan::ChildRule;
use crate::plan::desired::Desired;
use crate::plan::rollout::revision::{Child, Draft, Revision, claims, is_same, name, patch_of};
use crate::plan::rollout::{Pace, Progress, Scene, Updated, blend, decide, settle};

/// A rollout's next step, not yet taken.
pub(super) struct Roll {
    progress: Progress,
    /// The name of the latest revision.
    latest: String,
    records: Vec<Record>,
}

/// One write of a ControllerRevision.
enum Record {
    Create(Key, Value),
    Update(Arc<Object>, Value),
    Delete(Arc<Object>),
}

/// A ControllerRevision of the parent's.
struct Kept {
    object: Arc<Object>,
    revision: Revision,
}

/// All of them, told apart.
struct Shelf {
    patch: Value,
    latest: Option<Kept>,
    older: Vec<Kept>,
    /// The same state as the latest, kept twice.
    repeated: Vec<Kept>,
    /// It has the latest's name, and somebody has changed the state that it tells of.
    spoilt: Option<Kept>,
}

/// Why nothing can be done before an older revision has its answer.
enum Silent {
    Failed(Call, Failure),
    /// What it wants to see is being read.
    Waits(Box<Conclusion>),
}

impl Roll {
    pub(super) fn updated(&self) -> Updated {
        self.progress.updated(&self.latest)
    }

    pub(super) fn moves(&self) -> bool {
        matches!(self.progress, Progress::Moves(_))
    }
}

impl Visit<'_> {
    /// Decides which child goes to which revision, and makes of the wish what each child's own revision wants of it.
    /// Nothing is written yet. Gives the visit's end where that cannot be known.
    pub(super) async fn roll(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
        wish: &mut Wish,
        answer: &mut Answer,
    ) -> Result<Result<Roll, Conclusion>, Error> {
        let body = situation.parent.parsed();
        let shelf = match self.shelf(situation, &body) {
            Ok(shelf) => shelf,
            Err(waiting) => return Ok(Err(waiting)),
        };
        let pace = self.pace(situation, claimed, wish);
        let live = self.live(claimed, &wish.desired);
        let observed = self.all_observed(situation, &live);
        let memory = std::mem::take(&mut self.memory.children);
        let scene = Scene {
            rules: &wish.rules,
            parent: &situation.parent.key,
            latest: &wish.desired,
            observed: &observed,
            memory: &memory,
        };
        let settled = settle(&scene, &shelf.claims(&scene));
        let asked = self.ask_older(situation, claimed, &shelf.older, &settled[1..], &body).await;
        let decided = self.read_older(situation, claimed, &wish.rules, asked, answer).map(|older| {
            let rollout = decide(&scene, settled, &older, pace);
            let blended = blend(&scene, &rollout, older);
            (rollout, blended)
        });
        self.memory.children = memory;
        let (rollout, blended) = match decided {
            Ok(decided) => decided,
            Err(Silent::Failed(call, failure)) => {
                return self.unanswered(call, situation, claimed, failure).await.map(Err);
            }
            Err(Silent::Waits(waiting)) => return Ok(Err(*waiting)),
        };
        let latest = match &shelf.latest {
            Some(latest) => latest.revision.name.clone(),
            None => name(&self.parent(situation), &self.room.parent_resource.plural, &shelf.patch),
        };
        let records = match pace {
            Pace::OneByOne => self.records(situation, &shelf, &rollout.claims, &wish.rules, &body),
            Pace::Frozen(_) => Vec::new(),
        };
        wish.desired = blended;
        Ok(Ok(Roll { progress: rollout.progress, latest, records }))
    }

    /// What the older revisions want, where they have an answer. A parent has finalized when all of them say so, and is
    /// visited again when the first of them asks for it.
    fn read_older(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
        rules: &[ChildRule],
        asked: Vec<Result<Option<Answer>, Silent>>,
        latest: &mut Answer,
    ) -> Result<Vec<Option<Desired>>, Silent> {
        let asked: Vec<Option<Answer>> = asked.into_iter().collect::<Result<_, _>>()?;
        let mut read = |older: Answer| {
            latest.finalized &= older.finalized;
            latest.resync_after = latest.resync_after.into_iter().chain(older.resync_after).min();
            self.desired(situation, claimed, rules, older.children).0
        };
        Ok(asked.into_iter().map(|answer| answer.map(&mut read)).collect())
    }

    /// Whether a child may move. Never on doubt of what the parent's children are.
    fn pace(&self, situation: &Situation, claimed: &Claimed, wish: &Wish) -> Pace {
        if situation.finalizing || situation.parent.deleting {
            return Pace::Frozen("the parent is being finalized");
        }
        if self.doubt(claimed).is_some() {
            return Pace::Frozen("it is not certain yet that a kind of child is not there");
        }
        if !wish.desired.complete() {
            return Pace::Frozen("a child of the hook's answer is refused");
        }
        Pace::OneByOne
    }

    /// The parent's ControllerRevisions, wherever they are: they are known by their owner alone.
    fn shelf(&self, situation: &Situation, body: &Value) -> Result<Shelf, Conclusion> {
        let patch = patch_of(body, &self.room.definition.spec.parent.revision_paths);
        let latest = name(&self.parent(situation), &self.room.parent_resource.plural, &patch);
        let mut shelf = Shelf { patch, latest: None, older: Vec::new(), repeated: Vec::new(), spoilt: None };
        for object in self.revisions(situation)? {
            if object.body.is_none() {
                let message = format!("{} is being read anew", object.key);
                let waiting = Ended::Waiting(note("WaitingForCache", message));
                return Err(Conclusion {
                    silent: true,
                    resync_after: Some(CACHE),
                    ..Conclusion::new(waiting)
                });
            }
            let revision = Revision::read(&object.parsed());
            let kept = Kept { object, revision };
            match &shelf.latest {
                _ if !is_same(&kept.revision.patch, &shelf.patch) && kept.revision.name == latest => {
                    shelf.spoilt = Some(kept);
                }
                _ if !is_same(&kept.revision.patch, &shelf.patch) => shelf.older.push(kept),
                None => shelf.latest = Some(kept),
                Some(_) => shelf.repeated.push(kept),
            }
        }
        Ok(shelf)
    }

    fn revisions(&self, situation: &Situation) -> Result<Vec<Arc<Object>>, Conclusion> {
        let parent = &situation.parent;
        let Some(hold) = &self.room.revisions else { return Ok(Vec::new()) };
        let (message, silent) = match hold.kind.state() {
            State::Live(_) => {
                let mut kept = hold.kind.controlled_by(&parent.uid);
                kept.retain(|kept| {
                    parent.key.namespace.is_empty() || kept.key.namespace == parent.key.namespace
                });
                return Ok(kept);
            }
            // Without revisions every child is left as it is, which a deletion need not wait for.
            _ if situation.finalizing => return Ok(Vec::new()),
            State::Absent(message) | State::Failing(message) => (message, false),
            State::Starting => ("they are being listed".into(), true),
        };
        let message = format!(
            "ControllerRevisions cannot be read, which a rolling update needs: {message}; \
             `syncwright schema crds | kubectl apply -f -` installs their kind"
        );
        let waiting = Conclusion::new(Ended::Waiting(note("WaitingForKind", message)));
        Err(Conclusion { silent, resync_after: silent.then_some(CACHE), ..waiting })
    }

    /// Asks the hook what the parent would have in each older revision that has children. `None` is one that has none, or
    /// whose hook refuses, or wants to see what is not there.
    async fn ask_older(
        &self,
        situation: &Situation,
        claimed: &Claimed,
        older: &[Kept],
        claims: &[BTreeSet<Child>],
        body: &Value,
    ) -> Vec<Result<Option<Answer>, Silent>> {
        let paths = &self.room.definition.spec.parent.revision_paths;
        let calls = older.iter().zip(claims).map(async |(kept, children)| {
            if children.is_empty() {
                return Ok(None);
            }
            let parent = kept.revision.put_into(body, paths).to_string();
            let parent = RawValue::from_string(parent).expect("JSON is printed");
            let guise = Guise { revision: &kept.revision.name, body: &parent };
            self.ask_as(situation, claimed, &guise).await
        });
        join_all(calls).await
    }

    async fn ask_as(
        &self,
        situation: &Situation,
        claimed: &Claimed,
        guise: &Guise<'_>,
    ) -> Result<Option<Answer>, Silent> {
        let failed = |call: Call, failure: Failure| match failure {
            Failure::Refused(problem) => {
                debug!(
                    controller = self.room.definition.name, parent = %situation.parent.key,
                    revision = guise.revision, %problem, "older revision has no answer, its children are left"
                );
                Ok(None)
            }
            failure => Err(Silent::Failed(call, failure)),
        };
        let sight = match self.look_around(situation, guise).await {
            Ok(sight) => sight,
            Err(failure) => return failed(Call::Customize, failure),
        };
        if let Some(Lacking::Kind(_)) = sight.lacking {
            return Ok(None);
        }
        if let Some(waiting) = related::not_ready(situation, &sight) {
            return Err(Silent::Waits(Box::new(waiting)));
        }
        match self.ask(situation, claimed, &sight, guise).await {
            Ok(answer) => Ok(Some(answer)),
            Err(failure) => failed(situation.call(), failure),
        }
    }

    /// What to write for the revisions to claim these children. The older ones come first, each guarded by its version: who
    /// has not seen the newest notes adds none. A process that is killed in between leaves a child in no revision, which
    /// stays as it is until its turn, and its turn is next.
    fn records(
        &self,
        situation: &Situation,
        shelf: &Shelf,
        children: &[BTreeSet<Child>],
        rules: &[ChildRule],
        body: &Value,
    ) -> Vec<Record> {
        let parent = &situation.parent.key;
        let written = |children: &BTreeSet<Child>| claims(children, rules, parent);
        let update = |kept: &Kept, children: &BTreeSet<Child>| {
            let written = kept.revision.beside_others(written(children), rules);
            (!kept.revision.claims_just(&written)).then(|| Record::Update(kept.object.clone(), written))
        };
        let older = || shelf.older.iter().zip(&children[1..]);
        let mut records: Vec<Record> = older().filter_map(|(kept, left)| update(kept, left)).collect();
        // It is out of the way before the latest is made, which has its name.
        records.extend(shelf.spoilt.iter().map(|kept| Record::Delete(kept.object.clone())));
        match &shelf.latest {
            Some(latest) => records.extend(update(latest, &children[0])),
            None => records.push(self.draft(situation, shelf, &written(&children[0]), body)),
        }
        let is_empty =
            |kept: &Kept, left: &BTreeSet<Child>| left.is_empty() && !kept.revision.claims_others(rules);
        let empty = older().filter(|(kept, left)| is_empty(kept, left)).map(|(kept, _)| kept);
        records.extend(empty.chain(&shelf.repeated).map(|kept| Record::Delete(kept.object.clone())));
        records
    }

    /// A cluster-scoped parent's revisions are kept in the controller's own namespace.
    fn draft(&self, situation: &Situation, shelf: &Shelf, children: &Value, body: &Value) -> Record {
        let own = &situation.parent.key.namespace;
        let namespace = if own.is_empty() { &self.room.cluster.namespace } else { own };
        let draft = Draft {
            parent: &self.parent(situation),
            body,
            plural: &self.room.parent_resource.plural,
            claim: &self.claim(situation),
            paths: &self.room.definition.spec.parent.revision_paths,
            namespace,
        };
        let revision = draft.revision(&shelf.patch, children);
        let name = revision["metadata"]["name"].as_str().unwrap_or_default();
        Record::Create(Key::new(namespace.as_str(), name), revision)
    }

    /// Notes in the ControllerRevisions where the children are from now on. Gives the visit's end where there is no place
    /// for one.
    pub(super) async fn record(&mut self, roll: &Roll) -> Result<Option<Conclusion>, Error> {
        let Some(hold) = &self.room.revisions else { return Ok(None) };
        let Some(resource) = hold.kind.live() else { return Ok(None) };
        for record in &roll.records {
            match self.write_record(&hold.kind, &resource, record).await {
                Err(error) if error.is(404) && matches!(record, Record::Create(..)) => {
                    let message = format!("ControllerRevision {}: {error}", record.key());
                    return Ok(Some(Conclusion::new(Ended::Retry(note("ApiServerFailed", message)))));
                }
                outcome => outcome?,
            }
        }
        if let Progress::Moves(child) = &roll.progress {
            info!(child = child.0, revision = roll.latest, "child goes to the latest revision");
            // However many children follow, this comes to an end.
            self.memory.settled();
        }
        Ok(None)
    }

    async fn write_record(&self, kind: &Kind, resource: &Resource, record: &Record) -> Result<(), Error> {
        match record {
            Record::Create(key, body) => {
                let body = serde_json::to_vec(body).expect("JSON is printed");
                self.writer.apply(kind, resource, key, body, Force::Yes).await.map(drop)
            }
            Record::Update(object, children) => {
                self.writer.merge(kind, resource, object, Part::Main, json!({ "children": children })).await
            }
            Record::Delete(object) => self.writer.delete(kind, resource, &object.key, &object.uid).await,
        }
    }
}

impl Record {
    fn key(&self) -> &Key {
        match self {
            Record::Create(key, _) => key,
            Record::Update(object, _) | Record::Delete(object) => &object.key,
        }
    }
}

impl Shelf {
    /// The children of each revision as they are kept, the latest first.
    fn claims(&self, scene: &Scene) -> Vec<BTreeSet<Child>> {
        let children = |kept: &Kept| kept.revision.children(scene.rules, scene.parent);
        let latest =
            self.latest.iter().chain(&self.repeated).chain(&self.spoilt).flat_map(children).collect();
        std::iter::once(latest).chain(self.older.iter().map(children)).collect()
    }
}
