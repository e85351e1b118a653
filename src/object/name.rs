//! What an object is called: its kind and its name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind in one version of its group: `apps/v1` `StatefulSet`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gvk {
    pub group: String,
    pub version: String,
    pub kind: String,
}

impl Gvk {
    /// Splits an `apiVersion`: `apps/v1` is group `apps`, `v1` is the core group `""`.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Gvk { group: group.into(), version: version.into(), kind: kind.into() }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The hook protocol's outer key: `StatefulSet.apps/v1`, `Pod.v1`.
    pub(crate) fn grouping_key(&self) -> String {
        format!("{}.{}", self.kind, self.api_version())
    }

    pub(crate) fn group_kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

/// The plural that a kind most likely has: `Website` gives `websites`, `Policy` gives `policies`.
pub(crate) fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    let consonant_y = kind
        .strip_suffix('y')
        .filter(|stem| stem.ends_with(|c: char| !matches!(c, 'a' | 'e' | 'i' | 'o' | 'u')));
    match consonant_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "z", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// Name within a kind. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

/// `namespace/name`, or `name` alone for a cluster-scoped object.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guessed_plural_is_what_english_has() {
        let plurals = ["MySQL", "Website", "Policy", "Gateway", "Ingress", "Switch"].map(plural);
        assert_eq!(plurals, ["mysqls", "websites", "policies", "gateways", "ingresses", "switches"]);
    }
}
