//! Acting on an answer: its children are matched with what is there, and the plan's steps are taken in turn.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tracing::field::Empty;

use crate::cluster::object::{Controller, Object};
use crate::config::spec::{Role, UpdateMethod};
use crate::controller::room::ChildKind;
use crate::controller::visit::acted::{Acted, Failed};
use crate::controller::visit::claim::{Claimed, Missing, is_of_decorator};
use crate::controller::visit::secrets::{is_secret_text, know_wanted};
use crate::controller::visit::{Situation, Visit};
use crate::hook::wire::answer::DesiredChild;
use crate::object::name::Gvk;
use crate::plan::desired::{Desired, Ownership, desired};
use crate::plan::steps::{Control, Farewell, Observed, Step, UNSEEN, steps};
use crate::plan::{ChildRule, Claim, Method, Parent};
use crate::trace;

/// The children of an answer, read with the rules for their kinds.
pub(super) struct Wish {
    pub rules: Vec<ChildRule>,
    pub desired: Desired,
    /// What of it cannot be done.
    pub failures: Vec<Failed>,
}

/// What steps refer to.
pub(super) struct Scene<'a> {
    pub situation: &'a Situation,
    pub claimed: &'a Claimed,
    pub desired: &'a Desired,
    pub live: &'a [(usize, Arc<Object>)],
    pub observed: &'a [Observed<'a>],
}

impl Scene<'_> {
    /// Whether the second of two steps need not wait for the first: both apply, or both delete, objects of one kind.
    /// From kind to kind the order is the author's.
    fn may_overlap(&self, one: &Step, next: &Step) -> bool {
        match (one, next) {
            (Step::Apply { wanted: one, .. }, Step::Apply { wanted: next, .. }) => {
                self.desired.wanted[*one].rule == self.desired.wanted[*next].rule
            }
            (Step::Delete { observed: one, .. }, Step::Delete { observed: next, .. }) => {
                self.live[*one].0 == self.live[*next].0
            }
            _ => false,
        }
    }
}

impl Visit<'_> {
    /// Reads the children of an answer.
    pub(super) fn wish(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
        children: Vec<DesiredChild>,
    ) -> Wish {
        let rules = self.rules(claimed);
        self.origins.clear();
        let (desired, failures) = self.desired(situation, claimed, &rules, children);
        Wish { rules, desired, failures }
    }

    /// Brings the children to what is wished, as far as the API server lets us.
    pub(super) async fn act(&mut self, situation: &Situation, claimed: &Claimed, wish: Wish) -> Acted {
        let Wish { rules, desired, failures } = wish;
        let mut acted = Acted { failures, ..Acted::default() };
        self.memory.give_another_chance();
        self.follow_others(situation, &desired);
        let planning = trace::span!("plan", wanted = desired.wanted.len(), observed = Empty, steps = Empty);
        let live = self.live(claimed, &desired);
        let observed = self.all_observed(situation, &live);
        let mut steps = steps(&rules, &desired, &observed, &mut self.memory.children);
        planning.record("observed", observed.len()).record("steps", steps.len());
        drop(planning);
        if let Some(doubt) = self.doubt(claimed) {
            steps.retain(|step| {
                let unwanted = matches!(step, Step::Delete { why: Farewell::Unwanted, .. });
                if unwanted {
                    acted.put_off(doubt);
                }
                !unwanted
            });
        }
        steps.iter_mut().filter_map(Step::told).for_each(|differences| differences.hide(is_secret_text));
        let scene = Scene { situation, claimed, desired: &desired, live: &live, observed: &observed };
        for together in steps.chunk_by(|one, next| scene.may_overlap(one, next)) {
            self.take(&scene, together, &mut acted).await;
        }
        acted
    }

    /// For how long it is not certain that the kinds that are missing do not exist: without their objects, the hook may
    /// have answered less than it would.
    pub(super) fn doubt(&self, claimed: &Claimed) -> Option<Duration> {
        let missing = claimed.missing.iter();
        missing.filter_map(|(rule, _)| self.room.children[*rule].hold.kind.doubt()).max()
    }

    /// The rules with their kinds. One whose kind is not there matches no child.
    fn rules(&self, claimed: &Claimed) -> Vec<ChildRule> {
        let spec = &self.room.definition.spec;
        let rule = |(index, child): (usize, &ChildKind)| match claimed.family(index) {
            Some(family) => ChildRule {
                gvk: family.resource.gvk.clone(),
                namespaced: family.resource.namespaced,
                method: method(child.rule.update),
                rolls: spec.rolls(&child.rule).then(|| child.rule.status_checks.clone()),
            },
            None => ChildRule {
                gvk: Gvk::new(&child.rule.resource.api_version, ""),
                namespaced: true,
                method: Method::OnDelete,
                rolls: None,
            },
        };
        self.room.children.iter().enumerate().map(rule).collect()
    }

    pub(super) fn desired(
        &mut self,
        situation: &Situation,
        claimed: &Claimed,
        rules: &[ChildRule],
        children: Vec<DesiredChild>,
    ) -> (Desired, Vec<Failed>) {
        know_wanted(&children);
        let mut failures = Vec::new();
        let mut known = Vec::new();
        for child in children {
            self.origins.extend(child.origin.clone());
            match self.missing_kind(claimed, &child) {
                Some(message) => failures.push(Failed::waits(message)),
                None => known.push((child.object, child.place)),
            }
        }
        let desired = desired(&self.parent(situation), rules, &self.claim(situation), known);
        failures.extend(desired.refusals.iter().map(|refusal| Failed::refused(refusal.problem.to_string())));
        (desired, failures)
    }

    pub(super) fn parent(&self, situation: &Situation) -> Parent {
        Parent {
            gvk: self.room.parent_resource.gvk.clone(),
            key: situation.parent.key.clone(),
            uid: situation.parent.uid.to_string(),
        }
    }

    pub(super) fn claim(&self, situation: &Situation) -> Claim {
        match self.room.role() {
            Role::Decorator => Claim::Decorator(self.room.definition.name.clone()),
            Role::Composite if self.room.definition.spec.generate_selector => Claim::ControllerUid,
            Role::Composite => Claim::Selector(situation.selector.clone()),
        }
    }

    pub(super) fn all_observed<'a>(
        &self,
        situation: &Situation,
        live: &'a [(usize, Arc<Object>)],
    ) -> Vec<Observed<'a>> {
        live.iter().map(|(rule, object)| self.observed(situation, *rule, object)).collect()
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
        // The plural of a kind begins with all of it but perhaps its last letter.
        let mut stem = kind.to_lowercase();
        stem.pop();
        claimed.missing.iter().find_map(|(rule, missing)| {
            let resource = &self.room.children[*rule].rule.resource;
            let (Missing::Absent(message) | Missing::Unknown(message)) = missing;
            let meant = resource.api_version == api_version && resource.resource.starts_with(&stem);
            meant.then(|| format!("{kind} cannot be written: {message}"))
        })
    }

    /// Has the parent visited again when somebody else's object of which it states something comes or changes.
    fn follow_others(&self, situation: &Situation, desired: &Desired) {
        for (rule, child) in self.room.children.iter().enumerate() {
            let others = desired.wanted.iter().filter(|wanted| wanted.ownership == Ownership::Other);
            let names = others.filter(|wanted| wanted.rule == rule).map(|wanted| &wanted.key);
            child.stated.wait_for(&situation.parent.key, names);
        }
    }

    /// The live objects that matter: the parent's children, and whatever has a wanted child's name.
    pub(super) fn live(&self, claimed: &Claimed, desired: &Desired) -> Vec<(usize, Arc<Object>)> {
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
}

fn method(update: UpdateMethod) -> Method {
    match update {
        UpdateMethod::OnDelete => Method::OnDelete,
        UpdateMethod::Recreate | UpdateMethod::RollingRecreate => Method::Recreate,
        UpdateMethod::InPlace | UpdateMethod::RollingInPlace => Method::InPlace,
    }
}

pub(super) fn observed_as<'a>(rule: usize, object: &'a Object, control: Control<'a>) -> Observed<'a> {
    Observed {
        rule,
        key: &object.key,
        uid: &object.uid,
        version: object.version.number(),
        deleting: object.deleting,
        control,
        owned: object.owned.as_deref(),
        updated: object.updated.object,
        body: object.body.as_ref().map_or(UNSEEN, |body| body.get()),
    }
}
