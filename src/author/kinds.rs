//! The kinds that every cluster has: their plural, their scope, and how a changed child of theirs is best brought about.

/// A kind of child, as a definition declares it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChildKind {
    pub api_version: String,
    pub kind: String,
    pub plural: String,
    /// `InPlace`, `OnDelete`, …
    pub method: &'static str,
}

/// Group, kind and plural of the namespaced kinds that Kubernetes has built in.
const NAMESPACED: &[(&str, &str, &str)] = &[
    ("", "ConfigMap", "configmaps"),
    ("", "Endpoints", "endpoints"),
    ("", "LimitRange", "limitranges"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "Pod", "pods"),
    ("", "PodTemplate", "podtemplates"),
    ("", "ReplicationController", "replicationcontrollers"),
    ("", "ResourceQuota", "resourcequotas"),
    ("", "Secret", "secrets"),
    ("", "Service", "services"),
    ("", "ServiceAccount", "serviceaccounts"),
    ("apps", "DaemonSet", "daemonsets"),
    ("apps", "Deployment", "deployments"),
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("batch", "CronJob", "cronjobs"),
    ("batch", "Job", "jobs"),
    ("coordination.k8s.io", "Lease", "leases"),
    ("discovery.k8s.io", "EndpointSlice", "endpointslices"),
    ("networking.k8s.io", "Ingress", "ingresses"),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "Role", "roles"),
    ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
];

/// The same of the kinds that belong to no namespace, which a namespaced parent cannot own.
const CLUSTER_SCOPED: &[(&str, &str, &str)] = &[
    ("", "Namespace", "namespaces"),
    ("", "Node", "nodes"),
    ("", "PersistentVolume", "persistentvolumes"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "APIService", "apiservices"),
    ("networking.k8s.io", "IngressClass", "ingressclasses"),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses"),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings"),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
    ("storage.k8s.io", "CSIDriver", "csidrivers"),
    ("storage.k8s.io", "StorageClass", "storageclasses"),
];

/// Whether Kubernetes has this kind built in, in no namespace.
pub(crate) fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    known(CLUSTER_SCOPED, api_version, kind).is_some()
}

/// The kind as a definition declares it. The plural of a kind that is not built in is guessed.
pub(crate) fn child_kind(api_version: &str, kind: &str) -> ChildKind {
    let known = known(NAMESPACED, api_version, kind).or_else(|| known(CLUSTER_SCOPED, api_version, kind));
    // The template of a Job and nearly all of a Pod cannot change: what runs is left to end.
    let method = if matches!(kind, "Job" | "Pod") { "OnDelete" } else { "InPlace" };
    let plural = known.map_or_else(|| plural(kind), str::to_string);
    ChildKind { api_version: api_version.into(), kind: kind.into(), plural, method }
}

/// Whether the plural of this kind is known, not guessed.
pub(crate) fn is_built_in(api_version: &str, kind: &str) -> bool {
    known(NAMESPACED, api_version, kind).is_some() || is_cluster_scoped(api_version, kind)
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

fn known(
    table: &'static [(&str, &str, &'static str)],
    api_version: &str,
    kind: &str,
) -> Option<&'static str> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    table.iter().find(|known| (known.0, known.1) == (group, kind)).map(|known| known.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guessed_plural_is_what_english_has() {
        let plurals = ["MySQL", "Website", "Policy", "Gateway", "Ingress", "Switch"].map(plural);
        assert_eq!(plurals, ["mysqls", "websites", "policies", "gateways", "ingresses", "switches"]);
    }

    #[test]
    fn every_version_of_a_built_in_kind_has_its_plural() {
        assert_eq!(child_kind("policy/v1beta1", "PodDisruptionBudget").plural, "poddisruptionbudgets");
        assert_eq!(child_kind("v1", "Endpoints").plural, "endpoints");
        assert!(is_built_in("v1", "Secret") && !is_built_in("example.com/v1", "Secret"));
    }
}
