//! The kinds that every cluster has: their plural, their scope, and how a changed child of theirs is best brought about.

use std::sync::Arc;

use crate::object::name::plural;
use crate::schema::{Catalog, Kind};

/// A kind of child, as a definition declares it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChildKind {
    pub api_version: String,
    pub kind: String,
    pub plural: String,
    /// `InPlace`, `OnDelete`, …
    pub method: &'static str,
}

/// Whether Kubernetes has this kind built in, in no namespace.
pub(crate) fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    built_in(api_version, kind).is_some_and(|known| !known.namespaced)
}

/// The kind as a definition declares it. The plural of a kind that is not built in is guessed.
pub(crate) fn child_kind(api_version: &str, kind: &str) -> ChildKind {
    // The template of a Job and nearly all of a Pod cannot change: what runs is left to end.
    let method = if matches!(kind, "Job" | "Pod") { "OnDelete" } else { "InPlace" };
    let plural = built_in(api_version, kind).map_or_else(|| plural(kind), |known| known.plural.clone());
    ChildKind { api_version: api_version.into(), kind: kind.into(), plural, method }
}

/// Whether the plural of this kind is known, not guessed.
pub(crate) fn is_built_in(api_version: &str, kind: &str) -> bool {
    built_in(api_version, kind).is_some()
}

/// A kind's plural and scope are the same in all versions, also in those that are served no more.
fn built_in(api_version: &str, kind: &str) -> Option<&'static Arc<Kind>> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Catalog::built_in().of_group(group).find(|known| known.gvk.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_a_built_in_kind_has_its_plural() {
        assert_eq!(child_kind("policy/v1beta1", "PodDisruptionBudget").plural, "poddisruptionbudgets");
        assert_eq!(child_kind("v1", "Endpoints").plural, "endpoints");
        assert!(is_built_in("v1", "Secret") && !is_built_in("example.com/v1", "Secret"));
    }
}
