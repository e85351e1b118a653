//! The roles under which `run` works: what its definitions need of the API server, and no more.
//!
//! A need is stated where the request that has it is known; roles are needs put together.

mod needs;
pub(crate) mod related;
pub(crate) mod role;

use crate::config::Definition;
use crate::config::spec::ResourceName;
use crate::object::name::Key;

use crate::author::rbac::needs::{Need, of_all, of_certificates, of_definition, of_definitions, of_election};

/// What `run` is to be allowed to do.
pub(crate) struct Duties<'d> {
    pub definitions: Vec<&'d Definition>,
    /// Kinds that customize hooks ask for, with whether they are picked by namespaces' labels.
    pub related: Vec<Related>,
    /// Definitions in the cluster are followed, too.
    pub follows_cluster: bool,
    /// The Lease that replicas elect a leader by.
    pub lease: Option<Key>,
    /// The Secret that keeps webhook certificates.
    pub certificates: Option<Key>,
}

/// A kind that a customize hook asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Related {
    pub resource: ResourceName,
    /// Its objects are picked by the labels of their namespaces.
    pub by_namespace_labels: bool,
}

impl Duties<'_> {
    fn needs(&self) -> Vec<Need> {
        let mut needs = of_all();
        if self.follows_cluster {
            needs.extend(of_definitions());
        }
        needs.extend(self.definitions.iter().flat_map(|definition| of_definition(definition)));
        needs.extend(self.related.iter().flat_map(needs::of_related));
        needs.extend(self.lease.iter().flat_map(of_election));
        needs.extend(self.certificates.iter().flat_map(of_certificates));
        needs
    }

    /// What a person should know who relies on the roles.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let asks = |definition: &&&Definition| definition.spec.hooks.customize.is_some();
        if self.related.is_empty()
            && let Some(definition) = self.definitions.iter().find(asks)
        {
            remarks.push(format!(
                "`{}` has a customize hook, and no case tells what it asks for; hint: name the kinds with --related",
                definition.name
            ));
        }
        for definition in &self.definitions {
            let children = &definition.spec.children;
            for rule in children.iter().filter(|rule| gives_rights(&rule.resource)) {
                remarks.push(format!(
                    "`{}` makes {}: it must itself have every right that they give, which is to be added by hand",
                    definition.name, rule.resource.resource
                ));
            }
        }
        if self.certificates.is_some() {
            remarks.push(
                "caBundle is written into objects that ask for it by a label: the right to patch is one to all of \
                 their kinds, and can be cut down to their names by hand"
                    .into(),
            );
        }
        if self.definitions.is_empty() {
            remarks.push(
                "there is no definition: the roles are those of a controller that waits for one".into(),
            );
        }
        remarks
    }
}

/// Kubernetes lets nobody hand out a right that he has not.
fn gives_rights(resource: &ResourceName) -> bool {
    resource.group() == "rbac.authorization.k8s.io"
}
