//! One rule of a customize hook's answer in the light of its parent: which objects it picks.

use std::collections::BTreeSet;

use crate::cluster::object::Object;
use crate::config::spec::{HookVersion, ResourceName};
use crate::hook::wire::answer::RelatedRule;
use crate::object::name::Key;
use crate::object::selector::Selector;
use crate::problem::Problem;

/// Which objects of a kind a parent wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub resource: ResourceName,
    pub scope: Scope,
    pub labels: Selector,
    /// Empty for any name.
    pub names: BTreeSet<String>,
    /// Its place in the answer.
    pub index: usize,
}

/// Where a rule looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everywhere,
    /// In this namespace and nowhere else: cluster-scoped objects are out of sight.
    Within(String),
    /// In this namespace, or anywhere if the kind has no namespaces.
    Namespace(String),
    /// In the namespaces with these labels.
    Labelled(Selector),
}

impl Rule {
    /// A v1 hook of a namespaced parent sees its own namespace only, whatever it asks for.
    pub(crate) fn of(
        written: RelatedRule,
        index: usize,
        parent: &Key,
        version: HookVersion,
    ) -> Result<Rule, Problem> {
        let confined = version == HookVersion::V1 && !parent.namespace.is_empty();
        let path = format!("relatedResources[{index}]");
        let scope = match (written.namespace, written.namespace_selector) {
            (Some(namespace), _) if confined && namespace != parent.namespace => {
                return Err(Problem::new(format!("`{path}.namespace` is `{namespace}`"))
                    .expected(format!("`{}`, the parent's namespace", parent.namespace))
                    .hint("a customize hook of version v2 may look into other namespaces"));
            }
            (None, Some(_)) if confined => {
                return Err(Problem::new(format!("`{path}` has a `namespaceSelector`"))
                    .expected("objects of the parent's namespace")
                    .hint("a customize hook of version v2 may look into other namespaces"));
            }
            _ if confined => Scope::Within(parent.namespace.clone()),
            (Some(namespace), _) => Scope::Namespace(namespace),
            (None, Some(selector)) => Scope::Labelled(selector),
            (None, None) => Scope::Everywhere,
        };
        Ok(Rule {
            resource: written.resource,
            scope,
            labels: written.label_selector.unwrap_or_default(),
            names: written.names.into_iter().collect(),
            index,
        })
    }

    /// Whether the rule picks this object. `labelled` tells whether a selector picks a namespace of this name.
    pub(crate) fn picks(&self, object: &Object, labelled: impl Fn(&Selector, &str) -> bool) -> bool {
        let namespace = &object.key.namespace;
        let named = self.names.is_empty() || self.names.contains(&object.key.name);
        named
            && self.labels.matches(&object.labels)
            && match &self.scope {
                Scope::Everywhere => true,
                Scope::Within(own) => namespace == own,
                Scope::Namespace(wanted) => namespace.is_empty() || namespace == wanted,
                Scope::Labelled(selector) => labelled(selector, namespace),
            }
    }
}
