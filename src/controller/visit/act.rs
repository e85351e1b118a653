//! Doing what a plan says: deletes first, then applies in the order of the answer, one refusal holding up no other child.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tracing::info;

use crate::cluster::kind::{Kind, Resource};
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::cluster::write::Force;
use crate::config::spec::UpdateMethod;
use crate::controller::memory::{ChildId, Refused, Written};
use crate::controller::visit::claim::{Claimed, Missing};
use crate::controller::visit::{Ended, Situation, Visit, note};
use crate::hook::wire::answer::DesiredChild;
use crate::plan::desired::{Desired, Wanted, desired};
use crate::plan::difference::difference;
use crate::plan::{ChildRule, Claim, Method, Parent};

/// What came of acting on an answer.
#[derive(Default)]
pub(crate) struct Acted {
    /// Something in the cluster is different now, or will be.
    pub wrote: bool,
    /// Children that could not be brought to what is wanted, in the order of the answer.
    pub failures: Vec<Failed>,
    /// The children's namespace takes no new objects.
    pub namespace_ends: bool,
}

/// One child's failure.
pub(crate) struct Failed {
    pub sort: Sort,
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

    /// What the failures make of the visit. A retry is worth more than a standing refusal beside it.
    pub(crate) fn ended(self, claimed: &Claimed) -> Ended {
        let absent = claimed.missing.iter().filter_map(|(_, missing)| match missing {
            Missing::Absent(message) => Some(message.clone()),
            Missing::Unknown(_) => None,
        });
        let absent: Vec<String> = absent.collect();
        let Some(worst) = self.failures.iter().map(|failed| failed.sort).max() else {
            return if absent.is_empty() {
                Ended::Done
            } else {
                Ended::Waiting(note("WaitingForKind", absent.join("; ")))
            };
        };
        let message =
            self.failures.iter().map(|failed| failed.message.as_str()).collect::<Vec<_>>().join("; ");
        match worst {
            Sort::Waits => Ended::Waiting(note("WaitingForChild", message)),
            _ if self.must_retry() => Ended::Retry(note("ChildFailed", message)),
            _ => Ended::Stuck(note("ChildRefused", message)),
        }
    }
}

/// A family and the index of a wanted child's rule in it.
struct Kin<'a> {
    kind: &'a Arc<Kind>,
    resource: &'a Resource,
    method: UpdateMethod,
    id: ChildId,
}

impl Kin<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.resource.gvk.kind, self.id.1)
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
        let desired = self.desired(situation, claimed, children, &mut acted);
        if desired.void() {
            return acted;
        }
        if acted.failures.is_empty() && claimed.missing.is_empty() {
            self.prune(claimed, &desired.wanted, &mut acted).await;
        }
        for wanted in &desired.wanted {
            self.bring(&situation.parent, claimed, wanted, &mut acted).await;
        }
        acted
    }

    fn desired(
        &self,
        situation: &Situation,
        claimed: &Claimed,
        children: Vec<DesiredChild>,
        acted: &mut Acted,
    ) -> Desired {
        let parent = Parent {
            gvk: self.room.parent_resource.gvk.clone(),
            key: situation.parent.key.clone(),
            uid: situation.parent.uid.to_string(),
        };
        let rules: Vec<ChildRule> = claimed
            .families
            .iter()
            .map(|family| ChildRule {
                gvk: family.resource.gvk.clone(),
                namespaced: family.resource.namespaced,
                method: Method::default(),
            })
            .collect();
        let claim = if self.room.definition.spec.generate_selector {
            Claim::ControllerUid
        } else {
            Claim::Selector(situation.selector.clone())
        };
        let mut known = Vec::new();
        for child in children {
            match self.missing_kind(claimed, &child) {
                Some(message) => acted.failures.push(Failed { sort: Sort::Waits, message }),
                None => known.push((child.object, child.place)),
            }
        }
        let desired = desired(&parent, &rules, &claim, known);
        for refusal in &desired.refusals {
            acted.failures.push(Failed { sort: Sort::Refused, message: refusal.problem.to_string() });
        }
        desired
    }

    /// What to say of a child whose declared kind the API server does not have.
    fn missing_kind(&self, claimed: &Claimed, child: &DesiredChild) -> Option<String> {
        let api_version = child.object.get("apiVersion")?.as_str()?;
        let kind = child.object.get("kind")?.as_str()?.to_lowercase();
        let stem = &kind[..kind.len().saturating_sub(1)];
        claimed.missing.iter().find_map(|(rule, missing)| {
            let resource = &self.room.children[*rule].rule.resource;
            let (Missing::Absent(message) | Missing::Unknown(message)) = missing;
            let meant = resource.api_version == api_version && resource.resource.starts_with(stem);
            meant.then(|| {
                format!("{} cannot be written: {message}", child.object["kind"].as_str().unwrap_or(""))
            })
        })
    }

    fn kin<'a>(&'a self, claimed: &'a Claimed, family: usize, key: &crate::object::name::Key) -> Kin<'a> {
        let family = &claimed.families[family];
        let child = &self.room.children[family.rule];
        Kin {
            kind: &child.hold.kind,
            resource: &family.resource,
            method: child.rule.update,
            id: (family.rule, key.clone()),
        }
    }

    /// Deletes the children that nobody wants any more.
    async fn prune(&mut self, claimed: &Claimed, wanted: &[Wanted], acted: &mut Acted) {
        let names: HashSet<(usize, &crate::object::name::Key)> =
            wanted.iter().map(|wanted| (wanted.rule, &wanted.key)).collect();
        for (index, family) in claimed.families.iter().enumerate() {
            for object in &family.members {
                if object.deleting || names.contains(&(index, &object.key)) {
                    continue;
                }
                let kin = self.kin(claimed, index, &object.key);
                let outcome = self.delete(&kin, object).await;
                match outcome {
                    Ok(()) => acted.wrote = true,
                    Err(error) => acted.failures.push(failed(&kin, "deleting", &error)),
                }
                self.memory.forget_child(&(family.rule, object.key.clone()));
            }
        }
    }

    async fn delete(&self, kin: &Kin<'_>, object: &Object) -> Result<(), Error> {
        info!(controller = self.room.definition.name, child = kin.name(), "child deleted");
        self.writer.delete(kin.kind, kin.resource, &object.key, &object.uid).await
    }

    /// Makes one child what is wanted.
    async fn bring(&mut self, parent: &Object, claimed: &Claimed, wanted: &Wanted, acted: &mut Acted) {
        let kin = self.kin(claimed, wanted.rule, &wanted.key);
        let live = kin.kind.get(&wanted.key);
        let left = match &live {
            None => None,
            Some(live) if live.controller.as_ref().is_none_or(|owner| owner.uid != parent.uid) => {
                let owner = live.controller.as_ref().map(|owner| format!("{} {}", owner.kind, owner.name));
                let owner = owner.map_or("has no owner".to_string(), |owner| format!("belongs to {owner}"));
                let message = format!("{} exists and {owner}: not taken over", at(&kin, wanted));
                acted.failures.push(Failed { sort: Sort::Refused, message });
                return;
            }
            Some(live) if live.deleting => {
                let message = format!("{} is being deleted", kin.name());
                acted.failures.push(Failed { sort: Sort::Waits, message });
                return;
            }
            Some(live) => {
                let difference = difference(&wanted.body, &live.parsed(), live.owned.as_deref());
                if difference.is_empty() {
                    let id = kin.id;
                    self.memory.forget_child(&id);
                    return;
                }
                Some(difference)
            }
        };
        if let Some(left) = &left {
            let written = Written { wanted: wanted.hash, left: left.signature() };
            if kin.method == UpdateMethod::OnDelete || self.memory.written.get(&kin.id) == Some(&written) {
                return;
            }
        }
        if let Some(refused) = self.memory.refusal(&kin.id, wanted.hash) {
            acted.failures.push(Failed { sort: Sort::Refused, message: refused.message.clone() });
            return;
        }
        let recreates = matches!(kin.method, UpdateMethod::Recreate | UpdateMethod::RollingRecreate);
        let outcome = match (&live, left) {
            (Some(live), Some(left)) if recreates && left.in_content() => {
                self.recreate(&kin, live, wanted).await
            }
            (live, left) => {
                let why = left
                    .as_ref()
                    .map_or("child created".to_string(), |left| format!("child updated: {left}"));
                self.apply(&kin, live.as_deref(), wanted, &why).await
            }
        };
        let id = kin.id.clone();
        match outcome {
            Ok(wrote) => {
                acted.wrote |= wrote;
                let after = kin.kind.get(&wanted.key);
                let left =
                    after.map(|after| difference(&wanted.body, &after.parsed(), after.owned.as_deref()));
                self.memory.forget_child(&id);
                if let Some(left) = left.filter(|left| !left.is_empty()) {
                    let written = Written { wanted: wanted.hash, left: left.signature() };
                    self.memory.written.insert(id, written);
                }
            }
            Err(error) => {
                acted.namespace_ends |= error.to_string().contains("because it is being terminated");
                let mut failed = failed(&kin, "applying", &error);
                failed.message = match &wanted.place {
                    Some(place) => format!("{place}: {}", failed.message),
                    None => failed.message,
                };
                if failed.sort == Sort::Refused {
                    let refused =
                        Refused { wanted: wanted.hash, at: Instant::now(), message: failed.message.clone() };
                    self.memory.refused.insert(id, refused);
                }
                acted.failures.push(failed);
            }
        }
    }

    async fn apply(
        &self,
        kin: &Kin<'_>,
        live: Option<&Object>,
        wanted: &Wanted,
        why: &str,
    ) -> Result<bool, Error> {
        let body = self.body(live, wanted);
        self.writer.apply(kin.kind, kin.resource, &wanted.key, body, Force::Yes).await?;
        info!(controller = self.room.definition.name, child = kin.name(), "{why}");
        Ok(true)
    }

    /// Deletes the child if applying would really change it. The server is asked, since only it knows its defaults.
    async fn recreate(&self, kin: &Kin<'_>, live: &Object, wanted: &Wanted) -> Result<bool, Error> {
        let body = self.body(Some(live), wanted);
        match self.writer.would_change(kin.kind, kin.resource, live, body).await {
            Ok(false) => Ok(false),
            Err(error) if error.is(403) => Err(error),
            // A refusal means that the change cannot be made in place: that is what recreating is for.
            Ok(true) | Err(Error::Refused(_)) => {
                self.delete(kin, live).await?;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// What is sent: with the live object's uid, so that an object of the same name is never taken for it.
    fn body(&self, live: Option<&Object>, wanted: &Wanted) -> Vec<u8> {
        let Some(live) = live else { return serde_json::to_vec(&wanted.body).expect("JSON is printed") };
        let mut body = wanted.body.clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".into(), Value::from(&*live.uid));
        }
        serde_json::to_vec(&body).expect("JSON is printed")
    }
}

fn at(kin: &Kin<'_>, wanted: &Wanted) -> String {
    match &wanted.place {
        Some(place) => format!("{place}: {}", kin.name()),
        None => kin.name(),
    }
}

fn failed(kin: &Kin<'_>, doing: &str, error: &Error) -> Failed {
    let sort = match error {
        Error::Unanswered(_) => Sort::Retry,
        Error::Refused(status) => match status.code {
            400 | 405 | 422 => Sort::Refused,
            500 if status.message.starts_with("failed to create typed patch object") => Sort::Refused,
            _ => Sort::Retry,
        },
    };
    Failed { sort, message: format!("{doing} {}: {error}", kin.name()) }
}
