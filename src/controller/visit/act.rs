//! Doing what a plan says: deletes first, then applies in the order of the answer, one refusal holding up no other child.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tracing::info;

use crate::cluster::kind::{Kind, Resource};
use crate::cluster::object::{Controller, Object};
use crate::cluster::request::Error;
use crate::cluster::write::Force;
use crate::config::spec::{Role, UpdateMethod};
use crate::controller::room::ChildKind;
use crate::controller::visit::claim::{Claimed, Missing, is_of_decorator};
use crate::controller::visit::refused::verdict;
use crate::controller::visit::{Ended, Situation, Visit, note};
use crate::hook::wire::answer::DesiredChild;
use crate::object::name::{Gvk, Key};
use crate::plan::desired::{Desired, Ownership, Wanted, desired};
use crate::plan::memory::Probed;
use crate::plan::refusal::Verdict;
use crate::plan::steps::{Control, Farewell, Observed, Reason, Rest, Step, UNSEEN, steps};
use crate::plan::{ChildRule, Claim, Method, Parent, takeover};
use crate::problem::Place;

/// What came of acting on an answer.
#[derive(Default)]
pub(crate) struct Acted {
    /// Something in the cluster is different now, or will be.
    pub wrote: bool,
    /// Children that could not be brought to what is wanted, in the order of the answer.
    pub failures: Vec<Failed>,
    /// What was changed in live children, for whoever wonders why there is no end to it.
    pub changes: Vec<String>,
    /// A child is not what it was when this was planned.
    pub changed: bool,
    /// The children's namespace takes no new objects.
    pub namespace_ends: bool,
    /// How long the API server asks to be left alone.
    pub retry_after: Option<Duration>,
    /// When what was put off is to be done.
    pub look_again: Option<Duration>,
}

/// One child's failure.
pub(crate) struct Failed {
    pub sort: Sort,
    pub reason: &'static str,
    /// The field that the server names, empty where it names none.
    pub field: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// It will come by itself.
    Waits,
    /// Trying again may help.
    Retry,
    /// Only another wish or another object helps.
    Refused,
}

impl Acted {
    pub(crate) fn must_retry(&self) -> bool {
        self.failures.iter().any(|failed| failed.sort == Sort::Retry)
    }

    fn fail(&mut self, child: &str, doing: &str, error: &Error) {
        self.heed(error);
        let (verdict, summary) = verdict(error);
        match verdict {
            Verdict::Replaced | Verdict::Stale => self.changed = true,
            verdict => self.failures.push(failed_as(child, doing, verdict, &summary)),
        }
    }

    /// Leaves a deletion for later.
    fn put_off(&mut self, doubt: Duration) {
        if self.look_again.is_none() {
            let message = "nothing is deleted until it is certain that a kind is not there";
            self.failures.push(Failed { reason: "WaitingForKind", ..Failed::waits(message.into()) });
        }
        self.look_again = Some(doubt);
    }

    fn heed(&mut self, error: &Error) {
        self.retry_after = self.retry_after.max(error.retry_after());
    }

    /// What the failures make of the visit. A retry is worth more than a standing refusal beside it.
    pub(crate) fn ended(self, claimed: &Claimed) -> Ended {
        let absent = claimed.missing.iter().filter_map(|(_, missing)| match missing {
            Missing::Absent(message) => Some(message.clone()),
            Missing::Unknown(_) => None,
        });
        let absent: Vec<String> = absent.collect();
        if self.changed && self.failures.is_empty() {
            return Ended::Changed;
        }
        let Some(worst) = self.failures.iter().map(|failed| failed.sort).max() else {
            return if absent.is_empty() {
                Ended::Done
            } else {
                Ended::Waiting(note("WaitingForKind", absent.join("; ")))
            };
        };
        // A retry beside a standing refusal is still to be made.
        let sort = if worst == Sort::Refused && self.must_retry() { Sort::Retry } else { worst };
        let reason = self
            .failures
            .iter()
            .find(|failed| failed.sort == sort)
            .map_or("ChildFailed", |first| first.reason);
        let message =
            self.failures.iter().map(|failed| failed.message.as_str()).collect::<Vec<_>>().join("; ");
        match sort {
            Sort::Waits => Ended::Waiting(note(reason, message)),
            Sort::Retry => Ended::Retry(note(reason, message)),
            Sort::Refused => Ended::Stuck(note(reason, message)),
        }
    }
}

impl Failed {
    fn waits(message: String) -> Self {
        Failed { sort: Sort::Waits, reason: "WaitingForChild", field: String::new(), message }
    }

    fn refused(message: String) -> Self {
        Failed { sort: Sort::Refused, reason: "ChildRefused", field: String::new(), message }
    }
}

impl Visit<'_> {
    /// Brings the children to what the answer wants, as far as the API server lets us.
    pub(super) async fn act(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
        children: Vec<DesiredChild>,
    ) -> Acted {
        let mut acted = Acted::default();
        self.memory.give_another_chance();
        let rules = self.rules(claimed);
        let desired = self.desired(situation, claimed, &rules, children, &mut acted);
        self.follow_others(situation, &desired);
        let live = self.live(claimed, &desired);
        let observed: Vec<Observed> =
            live.iter().map(|(rule, object)| self.observed(situation, *rule, object)).collect();
        let doubt = self.doubt(claimed);
        for step in steps(&rules, &desired, &observed, &mut self.memory.children) {
            // A write may take long, and what comes after the parent's end is left to nobody.
            if !self.is_still(situation) {
                acted.changed = true;
                break;
            }
            if let (Some(doubt), Step::Delete { why: Farewell::Unwanted, .. }) = (doubt, &step) {
                acted.put_off(doubt);
                continue;
            }
            self.take(claimed, &desired, &live, &observed, step, &mut acted).await;
        }
        acted
    }

    /// For how long it is not certain that the kinds that are missing do not exist: without their objects, the hook may
    /// have answered less than it would.
    fn doubt(&self, claimed: &Claimed) -> Option<Duration> {
        let missing = claimed.missing.iter();
        missing.filter_map(|(rule, _)| self.room.children[*rule].hold.kind.doubt()).max()
    }

    /// The rules with their kinds. One whose kind is not there matches no child.
    fn rules(&self, claimed: &Claimed) -> Vec<ChildRule> {
        let rule = |(index, child): (usize, &ChildKind)| match claimed.family(index) {
            Some(family) => ChildRule {
                gvk: family.resource.gvk.clone(),
                namespaced: family.resource.namespaced,
                method: method(child.rule.update),
            },
            None => ChildRule {
                gvk: Gvk::new(&child.rule.resource.api_version, ""),
                namespaced: true,
                method: Method::OnDelete,
            },
        };
        self.room.children.iter().enumerate().map(rule).collect()
    }

    fn desired(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
        rules: &[ChildRule],
        children: Vec<DesiredChild>,
        acted: &mut Acted,
    ) -> Desired {
        let parent = Parent {
            gvk: self.room.parent_resource.gvk.clone(),
            key: situation.parent.key.clone(),
            uid: situation.parent.uid.to_string(),
        };
        let claim = match self.room.role() {
            Role::Decorator => Claim::Decorator(self.room.definition.name.clone()),
            Role::Composite if self.room.definition.spec.generate_selector => Claim::ControllerUid,
            Role::Composite => Claim::Selector(situation.selector.clone()),
        };
        let mut known = Vec::new();
        self.origins.clear();
        for child in children {
            self.origins.extend(child.origin.clone());
            match self.missing_kind(claimed, &child) {
                Some(message) => acted.failures.push(Failed::waits(message)),
                None => known.push((child.object, child.place)),
            }
        }
        let desired = desired(&parent, rules, &claim, known);
        for refusal in &desired.refusals {
            acted.failures.push(Failed::refused(refusal.problem.to_string()));
        }
        desired
    }

    /// Whether this owner had the parent's name before it.
    fn is_former(&self, situation: &Situation, owner: &Controller) -> bool {
        let (parent, gvk) = (&situation.parent, &self.room.parent_resource.gvk);
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let named_alike = *owner.kind == gvk.kind && group == gvk.group && *owner.name == parent.key.name;
        named_alike && owner.uid != parent.uid
    }

    fn observed<'a>(&self, situation: &Situation, rule: usize, object: &'a Object) -> Observed<'a> {
        let control = match &object.controller {
            Some(owner) if owner.uid == situation.parent.uid && is_of_decorator(self.room, object) => {
                Control::Ours
            }
            Some(owner) if self.is_former(situation, owner) => Control::Former,
            Some(owner) => Control::Other { kind: &owner.kind, name: &owner.name },
            None => Control::Nobody,
        };
        observed_as(rule, object, control)
    }

    /// What to say of a child whose declared kind the API server does not have.
    fn missing_kind(&self, claimed: &Claimed, child: &DesiredChild) -> Option<String> {
        let api_version = child.object.get("apiVersion")?.as_str()?;
        let kind = child.object.get("kind")?.as_str()?;
        let lower = kind.to_lowercase();
        // The plural of a kind begins with all of it but perhaps its last letter.
        let stem = &lower[..lower.len().saturating_sub(1)];
        claimed.missing.iter().find_map(|(rule, missing)| {
            let resource = &self.room.children[*rule].rule.resource;
            let (Missing::Absent(message) | Missing::Unknown(message)) = missing;
            let meant = resource.api_version == api_version && resource.resource.starts_with(stem);
            meant.then(|| format!("{kind} cannot be written: {message}"))
        })
    }

    /// Has the parent visited again when somebody else's object of which it states something comes or changes.
    fn follow_others(&self, situation: &Situation, desired: &Desired) {
        for wanted in desired.wanted.iter().filter(|wanted| wanted.ownership == Ownership::Other) {
            self.room.children[wanted.rule].stated.add(&wanted.key, &situation.parent.key);
        }
    }

    /// The live objects that matter: the parent's children, and whatever has a wanted child's name.
    fn live(&self, claimed: &Claimed, desired: &Desired) -> Vec<(usize, Arc<Object>)> {
        let mut live = Vec::new();
        let mut names = HashSet::new();
        for family in &claimed.families {
            for object in &family.members {
                names.insert((family.rule, &object.key));
                live.push((family.rule, object.clone()));
            }
        }
        for wanted in &desired.wanted {
            if !names.contains(&(wanted.rule, &wanted.key))
                && let Some(object) = self.room.children[wanted.rule].hold.kind.get(&wanted.key)
            {
                live.push((wanted.rule, object));
            }
        }
        live
    }

    async fn take(
        &mut self,
        claimed: &Claimed,
        desired: &Desired,
        live: &[(usize, Arc<Object>)],
        observed: &[Observed<'_>],
        step: Step,
        acted: &mut Acted,
    ) {
        match step {
            Step::Delete { observed, why } => {
                let (rule, object) = &live[observed];
                let why = match why {
                    Farewell::Unwanted => "it is not wanted any more".to_string(),
                    Farewell::Replaced(differences) => format!("to be created anew: {differences}"),
                };
                self.delete(claimed, *rule, object, &why, acted).await;
            }
            Step::Apply { wanted, observed: at, why } => {
                let wanted = &desired.wanted[wanted];
                let present = at.map(|at| &observed[at]);
                self.apply(claimed, wanted, present, why, acted).await;
            }
            Step::Probe { wanted, observed: at, differences } => {
                let wanted = &desired.wanted[wanted];
                let (rule, object) = &live[at];
                match self.would_differ(claimed, wanted, &observed[at]).await {
                    Ok(false) => {}
                    Ok(true) => {
                        let why = format!("to be created anew: {differences}");
                        self.delete(claimed, *rule, object, &why, acted).await;
                    }
                    Err(error) => acted.fail(&name(claimed, *rule, &object.key), "trying", &error),
                }
            }
            Step::Keep { wanted, why: Rest::Deleting, .. } => {
                let wanted = &desired.wanted[wanted];
                let message = format!("{} is being deleted", name(claimed, wanted.rule, &wanted.key));
                acted.failures.push(Failed::waits(message));
            }
            Step::Keep { wanted, why: Rest::Former, .. } => {
                let wanted = &desired.wanted[wanted];
                self.wait_for_name(wanted);
                let child = name(claimed, wanted.rule, &wanted.key);
                let message =
                    format!("{child} belongs to a deleted parent of this name, and is still to be collected");
                acted.failures.push(Failed::waits(message));
            }
            Step::Keep { .. } => {}
            Step::Stuck { wanted, message } => {
                let wanted = &desired.wanted[wanted];
                let reason = self.memory.refusal_reason(wanted.rule, &wanted.key);
                acted.failures.push(Failed { reason, ..Failed::refused(message) });
            }
            Step::Refuse { wanted, problem } => {
                self.wait_for_name(&desired.wanted[wanted]);
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

    async fn delete(&self, claimed: &Claimed, rule: usize, object: &Object, why: &str, acted: &mut Acted) {
        let Some(family) = claimed.family(rule) else { return };
        let kind = &self.room.children[rule].hold.kind;
        let child = name(claimed, rule, &object.key);
        match self.writer.delete(kind, &family.resource, &object.key, &object.uid).await {
            Ok(()) => {
                info!(controller = self.room.definition.name, child, why, "child deleted");
                acted.wrote = true;
            }
            Err(error) => acted.fail(&child, "deleting", &error),
        }
    }

    async fn apply(
        &mut self,
        claimed: &Claimed,
        wanted: &Wanted,
        present: Option<&Observed<'_>>,
        why: Reason,
        acted: &mut Acted,
    ) {
        let Some(family) = claimed.family(wanted.rule) else { return };
        let kind = &self.room.children[wanted.rule].hold.kind;
        let child = name(claimed, wanted.rule, &wanted.key);
        let body = body(present.map(|present| present.uid), wanted);
        let fought_over =
            present.is_some() && self.memory.is_fought_over(wanted.rule, &wanted.key, wanted.hash);
        let force = if fought_over { Force::No } else { Force::Yes };
        if let Some(present) = present
            && wanted.ownership == Ownership::Parent
            && takeover::is_due(present.body, present.owned)
            && let Err(error) = self.take_over(kind, &family.resource, wanted).await
        {
            // The object has changed under us, or is gone: the next visit sees it anew.
            acted.changed |= error.is(404) || error.is(409) || error.is(422);
            if !acted.changed {
                acted.fail(&child, "taking over", &error);
            }
            return;
        }
        let mut answer = self.writer.apply(kind, &family.resource, &wanted.key, body.clone(), force).await;
        if let Err(error) = &answer
            && present.is_some()
            && self.make_room(kind, &family.resource, wanted, error).await
        {
            answer = self.writer.apply(kind, &family.resource, &wanted.key, body, force).await;
        }
        match answer {
            Ok(version) => {
                match &why {
                    Reason::Missing => info!(controller = self.room.definition.name, child, "child created"),
                    Reason::Unseen => {
                        acted.changes.push(child.clone());
                        info!(
                            controller = self.room.definition.name,
                            child, "somebody else's object updated"
                        );
                    }
                    Reason::Differs(differences) => {
                        acted.changes.push(format!("{child}: {}", differences.places()));
                        info!(controller = self.room.definition.name, child, %differences, "child updated");
                    }
                }
                acted.wrote = true;
                // What another writer has done since is not the server's doing.
                if let Some(answer) = kind.get(&wanted.key).filter(|answer| answer.version == version) {
                    let answer = observed_as(wanted.rule, &answer, Control::Ours);
                    self.memory.children.applied(wanted, &answer);
                }
            }
            Err(error) => {
                acted.heed(&error);
                let (verdict, summary) = verdict(&error);
                acted.namespace_ends |= verdict == Verdict::NamespaceTerminating;
                if matches!(verdict, Verdict::Replaced | Verdict::Stale) {
                    acted.changed = true;
                    return;
                }
                let summary = match (&verdict, &why) {
                    // The server names the whole spec of a StatefulSet; what was to change is known here.
                    (Verdict::Immutable { .. }, Reason::Differs(differences)) => {
                        format!("{summary} (to be changed: {differences})")
                    }
                    _ => summary,
                };
                let mut failed = failed_as(&child, "applying", verdict, &summary);
                if let Some(place) = self.place_of(wanted, &failed.field) {
                    failed.message = format!("{place}: {}", failed.message);
                }
                if failed.sort == Sort::Refused {
                    self.memory.note_refusal(wanted.rule, &wanted.key, failed.reason);
                    self.memory.children.refused(wanted, present, &failed.message);
                }
                acted.failures.push(failed);
            }
        }
    }

    /// Makes ours what others wrote before by plain updates, so that a field that is dropped later really goes.
    async fn take_over(&self, kind: &Kind, resource: &Resource, wanted: &Wanted) -> Result<(), Error> {
        let Some(live) = self.writer.read_text(resource, &wanted.key).await? else { return Ok(()) };
        let live: Value = serde_json::from_str(&live)?;
        match takeover::patch(&live, &wanted.body, &self.room.cluster.managers.objects) {
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
        claimed: &Claimed,
        wanted: &Wanted,
        present: &Observed<'_>,
    ) -> Result<bool, Error> {
        let Some(family) = claimed.family(wanted.rule) else { return Ok(false) };
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

fn method(update: UpdateMethod) -> Method {
    match update {
        UpdateMethod::OnDelete => Method::OnDelete,
        UpdateMethod::Recreate | UpdateMethod::RollingRecreate => Method::Recreate,
        UpdateMethod::InPlace | UpdateMethod::RollingInPlace => Method::InPlace,
    }
}

fn observed_as<'a>(rule: usize, object: &'a Object, control: Control<'a>) -> Observed<'a> {
    Observed {
        rule,
        key: &object.key,
        uid: &object.uid,
        version: object.version.number(),
        deleting: object.deleting,
        control,
        owned: object.owned.as_deref(),
        body: object.body.as_ref().map_or(UNSEEN, |body| body.get()),
    }
}

/// What is sent: with the live object's uid, so that an object of the same name is never taken for it.
fn body(uid: Option<&str>, wanted: &Wanted) -> Vec<u8> {
    let Some(uid) = uid else { return serde_json::to_vec(&wanted.body).expect("JSON is printed") };
    let mut body = wanted.body.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".into(), Value::from(uid));
    }
    serde_json::to_vec(&body).expect("JSON is printed")
}

/// A child as people know it: `StatefulSet shop/db`.
fn name(claimed: &Claimed, rule: usize, key: &Key) -> String {
    claimed
        .family(rule)
        .map_or_else(|| key.to_string(), |family| format!("{} {key}", family.resource.gvk.kind))
}

fn failed_as(child: &str, doing: &str, verdict: Verdict, summary: &str) -> Failed {
    let lasts = verdict.lasts();
    let (sort, reason, field) = match &verdict {
        Verdict::Immutable { field } => (Sort::Refused, "ImmutableField", field.clone()),
        Verdict::Invalid { field } | Verdict::Schema { field } => {
            (Sort::Refused, "ChildRefused", field.clone())
        }
        Verdict::Conflict { .. } => (Sort::Refused, "ChildConflict", String::new()),
        Verdict::Denied { .. } => (Sort::Retry, "ChildDenied", String::new()),
        Verdict::Forbidden { .. } => (Sort::Retry, "Forbidden", String::new()),
        _ if lasts => (Sort::Refused, "ChildRefused", String::new()),
        _ => (Sort::Retry, "ChildFailed", String::new()),
    };
    let message = match verdict {
        Verdict::Forbidden { verb, resource } => {
            format!("{doing} {child}: not allowed to {verb} {resource}: {summary}")
        }
        Verdict::Conflict { managers, fields } => format!(
            "{child}: {} is also written by {}, which keeps changing it back; leave it out of the template",
            fields.join(", "),
            managers.join(", ")
        ),
        _ => format!("{doing} {child}: {summary}"),
    };
    Failed { sort, reason, field, message }
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
