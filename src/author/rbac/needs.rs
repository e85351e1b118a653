//! What `run` asks the API server for, request by request.

use crate::author::rbac::Related;
use crate::config::Definition;
use crate::config::marks::FINALIZERS;
use crate::config::spec::{Access, CaBundle, Credentials, HookSpec, ResourceName, Role};
use crate::object::name::Key;

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Need {
    pub place: Place,
    pub group: String,
    /// With its subresource: `websites/status`.
    pub resource: String,
    /// Only the object of this name.
    pub name: Option<String>,
    pub verb: Verb,
}

/// Where a right must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In all namespaces, or in those that are looked at.
    Everywhere,
    /// Where the objects are that are written.
    Written,
    /// In one namespace.
    Namespace(String),
    /// Objects without a namespace.
    Cluster,
}

/// In the order in which roles list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
        }
    }
}

const METACONTROLLER: &str = "metacontroller.k8s.io";
/// Events of cluster-scoped objects are there, those of definitions among them.
const EVENTS_OF_THE_CLUSTER: &str = "default";

fn need(place: Place, group: &str, resource: impl Into<String>, verb: Verb) -> Need {
    Need { place, group: group.into(), resource: resource.into(), name: None, verb }
}

fn needs(place: Place, group: &str, resource: &str, verbs: &[Verb]) -> Vec<Need> {
    verbs.iter().map(|verb| need(place.clone(), group, resource, *verb)).collect()
}

/// What is needed whatever the definitions are.
pub(super) fn of_all() -> Vec<Need> {
    events(Place::Written)
}

/// What is needed to follow the definitions in the cluster.
pub(super) fn of_definitions() -> Vec<Need> {
    let kinds = ["compositecontrollers", "decoratorcontrollers"];
    let watched = |kind| needs(Place::Everywhere, METACONTROLLER, kind, &[Verb::List, Verb::Watch]);
    let mut all: Vec<Need> = kinds.into_iter().flat_map(watched).collect();
    let told = |kind| need(Place::Everywhere, METACONTROLLER, format!("{kind}/status"), Verb::Patch);
    all.extend(kinds.map(told));
    all.extend(events(Place::Namespace(EVENTS_OF_THE_CLUSTER.into())));
    all
}

fn events(place: Place) -> Vec<Need> {
    needs(place, "", "events", &[Verb::Create, Verb::Patch])
}

pub(super) fn of_definition(definition: &Definition) -> Vec<Need> {
    let spec = &definition.spec;
    let mut all = of_parent(spec.role, &spec.parent.resource);
    all.extend(of_its_end(definition));
    all.extend(spec.children.iter().flat_map(|rule| of_child(&rule.resource)));
    if spec.rolls_any() {
        let (look, verbs) = ([Verb::List, Verb::Watch], [Verb::Create, Verb::Patch, Verb::Delete]);
        all.extend(needs(Place::Everywhere, METACONTROLLER, "controllerrevisions", &look));
        all.extend(needs(Place::Written, METACONTROLLER, "controllerrevisions", &verbs));
    }
    all.extend(spec.hooks.each().flat_map(of_hook));
    all
}

/// Where its deletion is to wait, it bears a finalizer of ours.
fn of_its_end(definition: &Definition) -> Vec<Need> {
    let kind = format!("{}s", definition.spec.role.kind().to_lowercase());
    let waits = definition.raw["metadata"]["annotations"][FINALIZERS] == "remove";
    needs(Place::Everywhere, METACONTROLLER, &kind, if waits { &[Verb::Get, Verb::Patch] } else { &[] })
}

/// A parent is patched for finalizers, for a decorator's labels and annotations, and when what another controller wrote of
/// its status is taken over. It is read past the cache before it adopts, which a decorator never does.
fn of_parent(role: Role, resource: &ResourceName) -> Vec<Need> {
    let (group, plural) = (resource.group(), &resource.resource);
    let mut all = needs(Place::Everywhere, group, plural, &[Verb::List, Verb::Watch]);
    all.push(need(Place::Written, group, plural, Verb::Patch));
    if role == Role::Composite {
        all.push(need(Place::Written, group, plural, Verb::Get));
    }
    all.push(need(Place::Written, group, format!("{plural}/status"), Verb::Patch));
    // Some clusters want it of whoever makes an object that blocks its owner's deletion.
    all.push(need(Place::Written, group, format!("{plural}/finalizers"), Verb::Update));
    all
}

/// Whatever its update strategy is, a child is applied by a patch, which creates it too, and deleted when it is not wanted.
/// It is read past the cache when it is adopted or taken over.
fn of_child(resource: &ResourceName) -> Vec<Need> {
    let (group, plural) = (resource.group(), &resource.resource);
    let writes = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete];
    let mut all = needs(Place::Everywhere, group, plural, &[Verb::List, Verb::Watch]);
    all.extend(needs(Place::Written, group, plural, &writes));
    all
}

/// Related objects are only looked at.
pub(super) fn of_related(related: &Related) -> Vec<Need> {
    let look = [Verb::List, Verb::Watch];
    let resource = &related.resource;
    let mut all = needs(Place::Everywhere, resource.group(), &resource.resource, &look);
    if related.by_namespace_labels {
        all.extend(needs(Place::Everywhere, "", "namespaces", &look));
    }
    all
}

/// The Secrets and ConfigMaps that a hook is reached with are watched one by one.
fn of_hook(hook: &HookSpec) -> Vec<Need> {
    let watched = |(plural, key): (&str, Key)| {
        [Verb::List, Verb::Watch].map(|verb| Need {
            name: Some(key.name.clone()),
            ..need(Place::Namespace(key.namespace.clone()), "", plural, verb)
        })
    };
    named_by(&hook.webhook.access).into_iter().flat_map(watched).collect()
}

fn named_by(access: &Access) -> Vec<(&'static str, Key)> {
    let secret = |namespace: &str, name: &str| ("secrets", Key::new(namespace, name));
    let authority = access.ca_bundle.iter().filter_map(|bundle| match bundle {
        CaBundle::Inline(_) => None,
        CaBundle::Secret(reference) => Some(secret(&reference.namespace, &reference.name)),
        CaBundle::ConfigMap(reference) => {
            Some(("configmaps", Key::new(&*reference.namespace, &*reference.name)))
        }
    });
    let certificate = access.client_tls.iter().map(|tls| secret(&tls.namespace, &tls.name));
    let credentials = access.credentials.iter().map(|credentials| match credentials {
        Credentials::Token { secret: reference, .. } => secret(&reference.namespace, &reference.name),
        Credentials::Basic { namespace, name, .. } => secret(namespace, name),
    });
    authority.chain(certificate).chain(credentials).collect()
}

/// What keeps webhook certificates needs: their Secret, and whatever asks for their authorities, under any name.
pub(super) fn of_certificates(secret: &Key) -> Vec<Need> {
    let place = || Place::Namespace(secret.namespace.clone());
    let named = |verb| Need { name: Some(secret.name.clone()), ..need(place(), "", "secrets", verb) };
    let mut all: Vec<Need> = [Verb::List, Verb::Watch, Verb::Update].map(named).into();
    all.push(need(place(), "", "secrets", Verb::Create));
    let targets = [
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ];
    for (group, plural) in targets {
        all.extend(needs(Place::Cluster, group, plural, &[Verb::List, Verb::Watch, Verb::Patch]));
    }
    all
}

/// A right to create cannot be bound to a name.
pub(super) fn of_election(lease: &Key) -> Vec<Need> {
    let place = || Place::Namespace(lease.namespace.clone());
    let named = |verb| Need {
        name: Some(lease.name.clone()),
        ..need(place(), "coordination.k8s.io", "leases", verb)
    };
    let mut all = vec![named(Verb::Get), named(Verb::Update)];
    all.push(need(place(), "coordination.k8s.io", "leases", Verb::Create));
    all.extend(events(place()));
    all
}
