//! What there is to take away. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::cluster::kind::Resource;
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::config::marks::{Mark, marks};
use crate::config::spec::{ResourceName, Role};
use crate::config::{API_VERSION, schema};
use crate::object::name::Key;
use crate::uninstall::lease::{Holder, holder};
use crate::uninstall::{Marked, Plan, Thing, Trouble, Wish};

pub(crate) async fn survey(cluster: &Cluster, wish: &Wish) -> Result<Plan, Trouble> {
    let mut plan = Plan {
        holders: holders(cluster, wish).await?,
        kinds: Vec::new(),
        definitions: Vec::new(),
        others: 0,
        crds: Vec::new(),
    };
    let mut marks = wish.marks.clone();
    for role in [Role::Composite, Role::Decorator] {
        marks.extend(definitions(cluster, wish, role, &mut plan).await?);
    }
    for (name, finalizers) in by_kind(marks) {
        let about = |error| Trouble { about: name.to_string(), error };
        let kind = marked(cluster, &name, finalizers).await.map_err(about)?;
        plan.kinds.extend(kind.filter(|kind| !kind.objects.is_empty()));
    }
    if wish.crds {
        plan.crds = crds(cluster).await?;
    }
    Ok(plan)
}

async fn holders(cluster: &Cluster, wish: &Wish) -> Result<Vec<Holder>, Trouble> {
    let about = |error| Trouble { about: format!("leases called `{}`", wish.lease), error };
    let Some(resource) = cluster.resource("coordination.k8s.io/v1", "leases").await.map_err(about)? else {
        return Ok(Vec::new());
    };
    let leases = cluster.read_named(&resource, &wish.lease_namespace, &wish.lease).await.map_err(about)?;
    let now = Timestamp::now();
    Ok(leases.iter().filter_map(|lease| holder(&lease.parsed(), now)).collect())
}

/// Notes the definitions of one kind, and gives the marks of those that go.
async fn definitions(
    cluster: &Cluster,
    wish: &Wish,
    role: Role,
    plan: &mut Plan,
) -> Result<Vec<Mark>, Trouble> {
    let about = |error| Trouble { about: format!("{}s", role.kind()), error };
    let plural = format!("{}s", role.kind().to_lowercase());
    let Some(resource) = cluster.resource(API_VERSION, &plural).await.map_err(about)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for object in cluster.read_all(&resource).await.map_err(about)? {
        if !wish.selector.matches(&object.labels) {
            plan.others += 1;
            continue;
        }
        found.extend(marks(role, &object.parsed()));
        plan.definitions.push(Thing { resource: resource.clone(), object });
    }
    Ok(found)
}

/// A kind is looked at once, however many definitions have marks on it.
fn by_kind(marks: Vec<Mark>) -> BTreeMap<ResourceName, BTreeSet<String>> {
    let mut kinds: BTreeMap<ResourceName, BTreeSet<String>> = BTreeMap::new();
    for mark in marks {
        kinds.entry(mark.resource).or_default().extend(mark.finalizers);
    }
    kinds
}

/// The objects of a kind that have one of these finalizers; `None` where there is no such kind.
pub(super) async fn marked(
    cluster: &Cluster,
    name: &ResourceName,
    finalizers: BTreeSet<String>,
) -> Result<Option<Marked>, Error> {
    let Some(resource) = cluster.resource(&name.api_version, &name.resource).await? else { return Ok(None) };
    let objects = look(cluster, &resource, &finalizers).await?;
    Ok(Some(Marked { resource, finalizers, objects }))
}

/// The same of a kind that is known, in name order.
pub(super) async fn look(
    cluster: &Cluster,
    resource: &Resource,
    finalizers: &BTreeSet<String>,
) -> Result<Vec<Object>, Error> {
    let has = |object: &Object| object.finalizers.iter().any(|name| finalizers.contains(&**name));
    let mut objects: Vec<Object> = cluster.look(resource, has).await?;
    objects.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(objects)
}

async fn crds(cluster: &Cluster) -> Result<Vec<Thing>, Trouble> {
    let about = |error| Trouble { about: "CRDs".into(), error };
    let resource = cluster.resource("apiextensions.k8s.io/v1", "customresourcedefinitions").await;
    let Some(resource) = resource.map_err(about)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for name in schema::crds().iter().filter_map(|crd| crd["metadata"]["name"].as_str()) {
        let object = cluster.look_at(&resource, &Key::new("", name)).await.map_err(about)?;
        found.extend(object.map(|object| Thing { resource: resource.clone(), object }));
    }
    Ok(found)
}
