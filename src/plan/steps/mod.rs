//! What to do, in order: delete what is no longer wanted, then create, change or leave alone each wanted child.
//!
//! A live child is touched only if the parent controls it. A child that is being deleted is waited for: its end is an
//! event that brings the parent back here.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::object::name::Key;
use crate::plan::desired::{Desired, Ownership, Wanted};
use crate::plan::difference::{Differences, difference};
use crate::plan::memory::Memory;
use crate::plan::{ChildRule, Method};
use crate::problem::Problem;

/// A live object that matters to the plan: a child of the parent, or one that has a wanted child's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// Index of the rule for its kind.
    pub rule: usize,
    pub key: &'a Key,
    pub uid: &'a str,
    /// The resource version, 0 where it is not a number.
    pub version: u64,
    pub deleting: bool,
    pub control: Control<'a>,
    /// `fieldsV1` of our manager's apply entry, in the version of the rule.
    pub owned: Option<&'a str>,
    /// Whether plain updates under our manager's name own fields of it as well.
    pub updated: bool,
    /// Its JSON, without `managedFields`; `UNSEEN` where only its head is kept.
    pub body: &'a str,
}

/// In place of the JSON of an object that is somebody else's and of which nothing was written yet.
pub(crate) const UNSEEN: &str = "{}";

/// Who controls a live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control<'a> {
    /// The parent.
    Ours,
    Nobody,
    /// A parent of the same name that is no more.
    Former,
    Other {
        kind: &'a str,
        name: &'a str,
    },
}

/// One thing to do. Numbers are indices into what was given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Delete a live child, with its uid as a precondition.
    Delete { observed: usize, why: Farewell },
    /// Apply a wanted child. Where it exists its uid belongs into what is sent, so that no other object is changed.
    Apply { wanted: usize, observed: Option<usize>, why: Reason },
    /// Apply it as a dry run and give the answer to `Memory::probed`: delete the live child if it differs, or if the
    /// dry run is refused because the change is not allowed in place.
    Probe { wanted: usize, observed: usize, differences: Differences },
    /// Nothing to do.
    Keep { wanted: usize, observed: usize, why: Rest },
    /// Nothing will be done until something changes: the API server refused this before.
    Stuck { wanted: usize, message: String },
    /// Nothing may be done: the name belongs to an object that isn't the parent's.
    Refuse { wanted: usize, problem: Box<Problem> },
}

impl Step {
    /// What is told of the live child where something is done about it.
    pub(crate) fn told(&mut self) -> Option<&mut Differences> {
        match self {
            Step::Delete { why: Farewell::Replaced(differences), .. }
            | Step::Apply { why: Reason::Differs(differences), .. }
            | Step::Probe { differences, .. } => Some(differences),
            _ => None,
        }
    }
}

/// Why a live child is deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Farewell {
    /// A complete answer does not hold it.
    Unwanted,
    /// It differs, and its kind is to be created anew.
    Replaced(Differences),
}

impl fmt::Display for Farewell {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Farewell::Unwanted => write!(to, "it is not wanted any more"),
            Farewell::Replaced(differences) => write!(to, "to be created anew: {differences}"),
        }
    }
}

/// Why a child is applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    Missing,
    /// It is somebody else's, and what it holds is not known.
    Unseen,
    /// It differs. Without a difference in sight, it is wanted in another form than it was applied in.
    Differs(Differences),
}

/// Why a live child is left as it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rest {
    /// It is as wanted.
    Settled,
    /// The server keeps it so, whatever is written.
    AsStored(Differences),
    /// Its method is to wait until someone deletes it.
    OnDelete,
    /// Its turn in a rollout is to come.
    Held,
    /// It is being deleted.
    Deleting,
    /// It is about to be collected with its owner, a former parent of the same name.
    Former,
}

/// Plans one visit. A void answer plans nothing.
pub(crate) fn steps(
    rules: &[ChildRule],
    desired: &Desired,
    observed: &[Observed],
    memory: &mut Memory,
) -> Vec<Step> {
    if desired.void() {
        return Vec::new();
    }
    let live: HashMap<(usize, &Key), usize> =
        observed.iter().enumerate().map(|(index, child)| ((child.rule, child.key), index)).collect();
    let mut steps = if desired.complete() { farewells(desired, observed, memory) } else { Vec::new() };
    for (index, wanted) in desired.wanted.iter().enumerate() {
        let child = live.get(&(wanted.rule, &wanted.key)).copied();
        let planner = Planner { index, wanted, method: rules[wanted.rule].method };
        match child {
            None if wanted.ownership == Ownership::Other => {}
            None => steps.push(planner.missing(memory)),
            Some(child) => steps.push(planner.present(child, &observed[child], memory)),
        }
    }
    steps
}

/// How a live child of the parent's is, held against what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// No step would be planned for it.
    Settled,
    /// A write would change who owns its fields, and nothing else.
    SameContent,
    Other,
}

/// Compares without a plan.
pub(super) fn likeness(method: Method, wanted: &Wanted, observed: &Observed, memory: &Memory) -> Likeness {
    let settled = memory.peek(wanted).and_then(|remembered| remembered.settled_as(observed.uid));
    if settled.is_some_and(|settled| settled.holds(wanted, observed)) {
        return Likeness::Settled;
    }
    let Ok(body) = serde_json::from_str::<Value>(observed.body) else { return Likeness::Other };
    let known = Known::of(wanted, observed, memory);
    let fresh = known.fresh(difference(&wanted.body, &body, observed.owned));
    match known.matters(&fresh, method) {
        false => Likeness::Settled,
        true if fresh.is_empty() || fresh.in_content() => Likeness::Other,
        true => Likeness::SameContent,
    }
}

/// Deletes of the parent's children that a complete answer does not hold.
fn farewells(desired: &Desired, observed: &[Observed], memory: &mut Memory) -> Vec<Step> {
    memory.keep(desired);
    let wanted: HashMap<(usize, &Key), ()> =
        desired.wanted.iter().map(|wanted| ((wanted.rule, &wanted.key), ())).collect();
    let unwanted = |child: &Observed| {
        child.control == Control::Ours && !child.deleting && !wanted.contains_key(&(child.rule, child.key))
    };
    let unwanted = observed.iter().enumerate().filter(|(_, child)| unwanted(child));
    unwanted.map(|(observed, _)| Step::Delete { observed, why: Farewell::Unwanted }).collect()
}

struct Planner<'a> {
    index: usize,
    wanted: &'a Wanted,
    method: Method,
}

impl Planner<'_> {
    fn missing(&self, memory: &mut Memory) -> Step {
        let refused =
            memory.of(self.wanted).and_then(|remembered| remembered.still_refused(self.wanted, None));
        if let Some(message) = refused {
            return self.stuck(message);
        }
        memory.try_to_create(self.wanted);
        Step::Apply { wanted: self.index, observed: None, why: Reason::Missing }
    }

    fn present(&self, child: usize, observed: &Observed, memory: &mut Memory) -> Step {
        let keep = |why| Step::Keep { wanted: self.index, observed: child, why };
        match (observed.deleting, observed.control, self.method) {
            (true, ..) => keep(Rest::Deleting),
            (_, _, Method::OnDelete) if self.wanted.ownership == Ownership::Other => keep(Rest::OnDelete),
            _ if self.wanted.ownership == Ownership::Other => self.ours(child, observed, memory),
            (_, Control::Nobody, _) => self.foreign(None),
            (_, Control::Former, _) => keep(Rest::Former),
            (_, Control::Other { kind, name }, _) => self.foreign(Some((kind, name))),
            (_, Control::Ours, Method::OnDelete) => keep(Rest::OnDelete),
            (_, Control::Ours, _) if self.wanted.hold => keep(Rest::Held),
            (_, Control::Ours, _) => self.ours(child, observed, memory),
        }
    }

    fn ours(&self, child: usize, observed: &Observed, memory: &mut Memory) -> Step {
        if let Some(remembered) = memory.of(self.wanted) {
            let settled = remembered.settled_as(observed.uid);
            if settled.is_some_and(|settled| settled.holds(self.wanted, observed)) {
                return Step::Keep { wanted: self.index, observed: child, why: Rest::Settled };
            }
            if let Some(message) = remembered.still_refused(self.wanted, Some(observed)) {
                return self.stuck(message);
            }
        }
        let Ok(body) = serde_json::from_str::<Value>(observed.body) else { return self.unreadable() };
        let differences = difference(&self.wanted.body, &body, observed.owned);
        self.compared(child, observed, differences, memory)
    }

    fn compared(
        &self,
        child: usize,
        observed: &Observed,
        differences: Differences,
        memory: &mut Memory,
    ) -> Step {
        let known = Known::of(self.wanted, observed, memory);
        let (fresh, differences) = match &known.residue {
            Some(_) => (known.fresh(differences.clone()), Some(differences)),
            None => (differences, None),
        };
        if !known.matters(&fresh, self.method) {
            let differences = differences.unwrap_or(fresh);
            memory.settle(self.wanted, observed, differences.hashes());
            let why = if differences.is_empty() { Rest::Settled } else { Rest::AsStored(differences) };
            return Step::Keep { wanted: self.index, observed: child, why };
        }
        let ours = self.wanted.ownership == Ownership::Parent;
        let remembered = memory.of(self.wanted).filter(|_| ours);
        if let Some(message) =
            remembered.and_then(|remembered| remembered.refused_to(self.wanted, observed.uid, &fresh))
        {
            return self.stuck(message);
        }
        memory.try_to(self.wanted, &fresh);
        match self.method {
            // It is never deleted, whatever its kind's method; and what its owner makes of it may allow the change.
            _ if !ours && observed.body == UNSEEN => {
                Step::Apply { wanted: self.index, observed: Some(child), why: Reason::Unseen }
            }
            _ if !ours => {
                Step::Apply { wanted: self.index, observed: Some(child), why: Reason::Differs(fresh) }
            }
            Method::Recreate if fresh.in_content() && known.residue.is_none() => {
                Step::Probe { wanted: self.index, observed: child, differences: fresh }
            }
            Method::Recreate if fresh.in_content() => {
                Step::Delete { observed: child, why: Farewell::Replaced(fresh) }
            }
            _ => Step::Apply { wanted: self.index, observed: Some(child), why: Reason::Differs(fresh) },
        }
    }

    fn stuck(&self, message: &str) -> Step {
        Step::Stuck { wanted: self.index, message: message.into() }
    }

    fn foreign(&self, controller: Option<(&str, &str)>) -> Step {
        let problem = Problem::new(format!("child `{}` exists and is not this parent's", self.wanted.name()));
        let problem = match controller {
            Some((kind, name)) => problem.found(format!("it is controlled by `{kind} {name}`")),
            None => problem.found("it has no controller").hint(
                "delete it, or give it the labels that the parent's selector matches: then it is adopted",
            ),
        };
        self.refuse(problem)
    }

    fn unreadable(&self) -> Step {
        self.refuse(Problem::new(format!(
            "child `{}` cannot be compared: its JSON does not read",
            self.wanted.name()
        )))
    }

    fn refuse(&self, mut problem: Problem) -> Step {
        problem.place = self.wanted.place.clone();
        Step::Refuse { wanted: self.index, problem: problem.into() }
    }
}

/// What is remembered of the very object that is observed.
struct Known {
    residue: Option<Box<[u64]>>,
    wanted_changed: bool,
}

impl Known {
    fn of(wanted: &Wanted, observed: &Observed, memory: &Memory) -> Known {
        let settled = memory.peek(wanted).and_then(|remembered| remembered.settled_as(observed.uid));
        Known {
            residue: settled.and_then(|settled| settled.residue.clone()),
            wanted_changed: settled.is_some_and(|settled| settled.wanted != wanted.hash),
        }
    }

    /// The differences that are not the server's own doing.
    fn fresh(&self, differences: Differences) -> Differences {
        differences.without(self.residue.as_deref().unwrap_or_default())
    }

    fn matters(&self, fresh: &Differences, method: Method) -> bool {
        match method {
            // What is wanted in another form may have lost an entry where a difference can't be seen.
            Method::InPlace => !fresh.is_empty() || self.wanted_changed,
            // Deleting for that would be on doubt; and taking ownership is no reason for it at all.
            _ => !fresh.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests;
