//! Does what the plan says, in an order in which it can be broken off anywhere and begun again: a definition goes only
//! when nothing of it is left on parents, since it is what tells of them.

use std::collections::BTreeSet;

use futures::StreamExt;

use crate::cluster::Cluster;
use crate::cluster::kind::Resource;
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::config::marks::{HELD, marks};
use crate::config::spec::Role;
use crate::object::name::Key;
use crate::uninstall::survey::look;
use crate::uninstall::{Marked, Plan, Thing, Trouble};

/// So many objects are written at once.
const AT_ONCE: usize = 8;

/// What came of one step.
pub(crate) enum Done<'p> {
    TakenOff(&'p Marked, &'p Object),
    /// Somebody has put a finalizer on again after it was taken off.
    PutOnAgain(&'p Resource, Key),
    Deleted(&'p Thing),
    /// It stays, since its finalizers could not all be taken off.
    Kept(&'p Thing),
    Failed(Trouble),
}

/// Does everything, and tells of each step as it is done.
pub(crate) async fn carry_out<'p>(cluster: &Cluster, plan: &'p Plan, tell: &mut dyn FnMut(Done<'p>)) {
    let mut left = BTreeSet::new();
    for kind in &plan.kinds {
        if !take_off(cluster, kind, tell).await {
            left.extend(kind.finalizers.iter().cloned());
        }
    }
    for definition in &plan.definitions {
        if finalizers(definition).is_disjoint(&left) {
            let outcome = delete(cluster, definition).await;
            tell(told(definition, outcome));
        } else {
            tell(Done::Kept(definition));
        }
    }
    for kind in &plan.kinds {
        look_again(cluster, kind, tell).await;
    }
    for crd in plan.crds.iter().filter(|_| left.is_empty()) {
        let outcome = cluster.remove(&crd.resource, &crd.object).await;
        tell(told(crd, outcome));
    }
}

/// Whether all went well.
async fn take_off<'p>(cluster: &Cluster, kind: &'p Marked, tell: &mut dyn FnMut(Done<'p>)) -> bool {
    let write = |object: &'p Object| async move {
        (object, cluster.take_off(&kind.resource, object, &kind.finalizers).await)
    };
    let mut writes = futures::stream::iter(&kind.objects).map(write).buffered(AT_ONCE);
    let mut well = true;
    while let Some((object, outcome)) = writes.next().await {
        well &= outcome.is_ok();
        tell(match outcome {
            Ok(()) => Done::TakenOff(kind, object),
            Err(error) => Done::Failed(Trouble { about: about(&kind.resource, object), error }),
        });
    }
    well
}

/// A controller that still runs puts its finalizers on again until its definition is gone.
async fn look_again<'p>(cluster: &Cluster, kind: &'p Marked, tell: &mut dyn FnMut(Done<'p>)) {
    let failed = |error| Done::Failed(Trouble { about: kind.resource.plural.clone(), error });
    let again = match look(cluster, &kind.resource, &kind.finalizers).await {
        Ok(again) => again,
        Err(error) => return tell(failed(error)),
    };
    // What could not be taken off before is not put on again.
    let is_known = |object: &Object| kind.objects.iter().any(|known| known.version == object.version);
    for object in again.into_iter().filter(|object| !is_known(object)) {
        if let Err(error) = cluster.take_off(&kind.resource, &object, &kind.finalizers).await {
            tell(failed(error));
        }
        tell(Done::PutOnAgain(&kind.resource, object.key));
    }
}

fn finalizers(definition: &Thing) -> BTreeSet<String> {
    let role = [Role::Composite, Role::Decorator]
        .into_iter()
        .find(|role| role.kind() == definition.resource.gvk.kind);
    let marks = role.map(|role| marks(role, &definition.object.parsed())).unwrap_or_default();
    marks.into_iter().flat_map(|mark| mark.finalizers).collect()
}

/// Deletes a definition, whose deletion need not wait for a controller.
async fn delete(cluster: &Cluster, definition: &Thing) -> Result<(), Error> {
    let Thing { resource, object } = definition;
    cluster.take_off(resource, object, &BTreeSet::from([HELD.to_string()])).await?;
    cluster.remove(resource, object).await
}

fn told<'p>(thing: &'p Thing, outcome: Result<(), Error>) -> Done<'p> {
    match outcome {
        Ok(()) => Done::Deleted(thing),
        Err(error) => Done::Failed(Trouble { about: about(&thing.resource, &thing.object), error }),
    }
}

pub(super) fn about(resource: &Resource, object: &Object) -> String {
    format!("{} {}", resource.gvk.kind, object.key)
}
