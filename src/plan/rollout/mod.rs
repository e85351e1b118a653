//! Rolling updates: which child may be brought to the latest state of its parent next, and what the others are to be
//! like until their turn.
//!
//! A revision is one state of some fields of the parent, and the children that are in it. Each child is kept as the hook
//! wants it for its own revision. One child at a time moves to the latest revision, in the order of the hook's answer,
//! and only while every child that is there already is as wanted and well.
//!
//! Nothing but the revisions is remembered: whatever is killed at any moment finds the same children in the same
//! revisions, and goes on with the next step. A live child of no revision, which an adopted one is, is left as it is
//! until its turn.

pub(crate) mod ready;
pub(crate) mod revision;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::object::name::Key;
use crate::plan::ChildRule;
use crate::plan::desired::{Desired, Ownership, Wanted};
use crate::plan::memory::Memory;
use crate::plan::rollout::revision::Child;
use crate::plan::steps::{Control, Likeness, Observed, likeness};

/// What there is to decide on.
pub(crate) struct Scene<'a> {
    pub rules: &'a [ChildRule],
    pub parent: &'a Key,
    /// What the hook wants of the parent as it is.
    pub latest: &'a Desired,
    pub observed: &'a [Observed<'a>],
    pub memory: &'a Memory,
}

/// Whether a child may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    OneByOne,
    /// None, and this is why.
    Frozen(&'static str),
}

/// Where the children are, and what goes on.
#[derive(Debug, PartialEq)]
pub(crate) struct Rollout {
    /// The children of each revision, the latest first, the others in the order in which they were given.
    pub claims: Vec<BTreeSet<Child>>,
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Every child is in the latest revision, and as it is wanted there.
    Done,
    /// This child is brought to the latest revision now.
    Moves(Named),
    /// A child that is in the latest revision is not as it should be.
    Waits(String),
}

/// A child as people know it: `StatefulSet db`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named(pub String);

/// The condition `Updated` of a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Updated {
    pub holds: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Progress {
    /// What the parent's condition says. `latest` is the name of the latest revision.
    pub(crate) fn updated(&self, latest: &str) -> Updated {
        let (reason, message) = match self {
            Progress::Done => ("OnLatestRevision", format!("latest ControllerRevision: {latest}")),
            Progress::Moves(Named(child)) => ("RolloutProgressing", format!("updating {child}")),
            Progress::Waits(why) => ("RolloutWaiting", why.clone()),
        };
        Updated { holds: *self == Progress::Done, reason, message }
    }
}

/// How a live child stands to what the latest revision wants of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    Missing,
    Deleting,
    /// It has the name of a wanted child and is not the parent's.
    Foreign,
    Settled,
    /// A write would make its fields ours, and change nothing.
    SameContent,
    Differs,
}

/// Where each child is, as far as nothing has to be done to it: of two revisions that claim one the first has it, what is
/// not wanted any more is forgotten, and what is as the latest wants it is in the latest. `claims` are the children of each
/// revision as they are kept, the latest first.
pub(crate) fn settle(scene: &Scene, claims: &[BTreeSet<Child>]) -> Vec<BTreeSet<Child>> {
    let homes = Floor::of(scene).homes(claims);
    let mut settled = vec![BTreeSet::new(); claims.len()];
    for (child, revision) in homes {
        settled[revision].insert(child);
    }
    settled
}

/// Decides where each child is from now on. `claims` are settled; `older` is what the hook wants for the revisions after
/// the latest, `None` where that is not known.
pub(crate) fn decide(
    scene: &Scene,
    mut claims: Vec<BTreeSet<Child>>,
    older: &[Option<Desired>],
    pace: Pace,
) -> Rollout {
    let floor = Floor::of(scene);
    let mut progress = floor.progress(&claims[0], pace);
    if let Some(next) = floor.next(&claims, older).filter(|_| progress == Progress::Done) {
        let child = child_of(next);
        claims.iter_mut().for_each(|children| children.retain(|other| *other != child));
        claims[0].insert(child);
        progress = Progress::Moves(floor.name(next));
    }
    Rollout { claims, progress }
}

/// Everything that is wanted, each child as its revision has it.
pub(crate) fn blend(scene: &Scene, rollout: &Rollout, older: Vec<Option<Desired>>) -> Desired {
    let mut answers: Vec<HashMap<Child, Wanted>> = older.into_iter().map(by_child).collect();
    let mut blended =
        Desired { wanted: scene.latest.wanted.clone(), refusals: scene.latest.refusals.clone() };
    for wanted in blended.wanted.iter_mut().filter(|wanted| rolls(scene.rules, wanted)) {
        let child = child_of(wanted);
        let home = rollout.claims.iter().position(|children| children.contains(&child));
        if home == Some(0) {
            continue;
        }
        match home.and_then(|home| answers.get_mut(home - 1)?.remove(&child)) {
            Some(older) => *wanted = older,
            None => wanted.hold = true,
        }
    }
    blended
}

fn by_child(answer: Option<Desired>) -> HashMap<Child, Wanted> {
    // An answer of which nothing may be done tells of no child.
    let wanted = answer.filter(|answer| !answer.void()).map(|answer| answer.wanted).unwrap_or_default();
    let owned = wanted.into_iter().filter(|wanted| wanted.ownership == Ownership::Parent);
    owned.map(|wanted| (child_of(&wanted), wanted)).collect()
}

fn child_of(wanted: &Wanted) -> Child {
    (wanted.rule, wanted.key.clone())
}

fn rolls(rules: &[ChildRule], wanted: &Wanted) -> bool {
    rules[wanted.rule].rolls.is_some() && wanted.ownership == Ownership::Parent
}

/// The children that take part, in the order of the answer, each with how it stands.
struct Floor<'a> {
    scene: &'a Scene<'a>,
    children: Vec<(&'a Wanted, Option<&'a Observed<'a>>, Stand)>,
}

impl<'a> Floor<'a> {
    fn of(scene: &'a Scene<'a>) -> Floor<'a> {
        let live: HashMap<(usize, &Key), &Observed> =
            scene.observed.iter().map(|observed| ((observed.rule, observed.key), observed)).collect();
        let wanted = scene.latest.wanted.iter().filter(|wanted| rolls(scene.rules, wanted));
        let stands = wanted.map(|wanted| {
            let observed = live.get(&(wanted.rule, &wanted.key)).copied();
            (wanted, observed, stand(scene, wanted, observed))
        });
        Floor { scene, children: stands.collect() }
    }

    /// The revision of each child that has one.
    fn homes(&self, claims: &[BTreeSet<Child>]) -> BTreeMap<Child, usize> {
        let mut homes = BTreeMap::new();
        for (wanted, _, stand) in &self.children {
            let child = child_of(wanted);
            let claimed = claims.iter().position(|children| children.contains(&child));
            let home = match (claimed, stand) {
                // Nothing has to be done about it, whichever revision it comes from.
                (_, Stand::Settled | Stand::SameContent) => Some(0),
                (Some(revision), _) => Some(revision),
                (None, Stand::Differs) => None,
                // It is made anew, or it is none of ours: that stops the others.
                (None, _) => Some(0),
            };
            home.map(|home| homes.insert(child, home));
        }
        homes
    }

    /// The child that follows: the first one that is not in the latest revision. But one that is not as its own revision
    /// wants it either was on its way there when that was the latest: it is to change anyhow, and no other beside it.
    fn next(&self, claims: &[BTreeSet<Child>], older: &[Option<Desired>]) -> Option<&'a Wanted> {
        let outside = || self.children.iter().filter(|(wanted, ..)| !claims[0].contains(&child_of(wanted)));
        let mut on_their_way =
            outside().filter(|(wanted, observed, _)| self.is_on_its_way(wanted, *observed, claims, older));
        on_their_way.next().or_else(|| outside().next()).map(|(wanted, ..)| *wanted)
    }

    fn is_on_its_way(
        &self,
        wanted: &Wanted,
        observed: Option<&Observed>,
        claims: &[BTreeSet<Child>],
        older: &[Option<Desired>],
    ) -> bool {
        let child = child_of(wanted);
        let Some(home) = claims.iter().position(|children| children.contains(&child)) else { return false };
        let Some(Some(answer)) = home.checked_sub(1).and_then(|home| older.get(home)) else { return false };
        let own = answer.wanted.iter().find(|own| (own.rule, &own.key) == (child.0, &child.1));
        let at_rest = [Stand::Settled, Stand::SameContent];
        own.is_some_and(|own| !at_rest.contains(&stand(self.scene, own, observed)))
    }

    /// `Done` is that nothing stands in the way of whoever comes next.
    fn progress(&self, latest: &BTreeSet<Child>, pace: Pace) -> Progress {
        let is_there = |wanted: &Wanted| latest.contains(&child_of(wanted));
        let goes_on = self.children.iter().any(|(wanted, ..)| !is_there(wanted));
        if let Pace::Frozen(why) = pace
            && goes_on
        {
            return Progress::Waits(why.into());
        }
        let mut trouble = self.children.iter().filter(|(wanted, ..)| is_there(wanted)).filter_map(|child| {
            let (wanted, observed, stand) = child;
            let why = match stand {
                Stand::Missing => "it is missing".into(),
                Stand::Deleting => "it is being deleted".into(),
                Stand::Foreign => "it exists and is not this parent's".into(),
                Stand::SameContent | Stand::Differs => "it is not as wanted yet".into(),
                // A child that falls ill later takes nothing back of what was rolled out.
                Stand::Settled if !goes_on => return None,
                Stand::Settled => self.illness(wanted, (*observed)?)?,
            };
            Some(format!("{}: {why}", self.name(wanted).0))
        });
        trouble.next().map_or(Progress::Done, Progress::Waits)
    }

    fn illness(&self, wanted: &Wanted, observed: &Observed) -> Option<String> {
        let rule = &self.scene.rules[wanted.rule];
        let live = serde_json::from_str(observed.body).unwrap_or_default();
        ready::why_not(rule.rolls.as_ref()?, rule.gvk.group_kind(), &live)
    }

    /// Without the namespace that it shares with its parent.
    fn name(&self, wanted: &Wanted) -> Named {
        let kind = &self.scene.rules[wanted.rule].gvk.kind;
        let (parent, key) = (self.scene.parent, &wanted.key);
        let namespaced = key.namespace != parent.namespace;
        Named(if namespaced { format!("{kind} {key}") } else { format!("{kind} {}", key.name) })
    }
}

fn stand(scene: &Scene, wanted: &Wanted, observed: Option<&Observed>) -> Stand {
    let Some(observed) = observed else { return Stand::Missing };
    match observed.control {
        Control::Ours | Control::Former if observed.deleting => Stand::Deleting,
        Control::Former => Stand::Deleting,
        Control::Ours => match likeness(scene.rules[wanted.rule].method, wanted, observed, scene.memory) {
            Likeness::Settled => Stand::Settled,
            Likeness::SameContent => Stand::SameContent,
            Likeness::Other => Stand::Differs,
        },
        Control::Nobody | Control::Other { .. } => Stand::Foreign,
    }
}
