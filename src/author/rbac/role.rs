//! Needs as manifests and their text: one ClusterRole, a Role for each namespace in which something in particular is needed, and bindings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::author::rbac::Duties;
use crate::author::rbac::needs::{Need, Place, Verb};
use crate::hook::local::to_yaml;
use crate::object::name::Key;

const API_GROUP: &str = "rbac.authorization.k8s.io";

/// How the roles are to be cut and what they are called.
pub(crate) struct Wanted {
    pub name: String,
    /// Who they are bound to, if to anybody.
    pub service_account: Option<Key>,
    /// What is looked at and written is in these namespaces alone; empty is everywhere.
    pub namespaces: Vec<String>,
    /// Resources that have no namespaces, by group and plural: a ClusterRole is for them.
    pub cluster_scoped: BTreeSet<(String, String)>,
}

/// Rights by resource; each with the one object that it is for, or none.
type Rights = BTreeMap<(String, Option<String>, String), BTreeSet<Verb>>;

impl Duties<'_> {
    /// The manifests, in the order in which they are to be read.
    pub(crate) fn roles(&self, wanted: &Wanted) -> Vec<Value> {
        let mut everywhere = Rights::new();
        let mut within: BTreeMap<String, Rights> = BTreeMap::new();
        for need in self.needs() {
            let right = (need.group.clone(), need.name.clone(), need.resource.clone());
            for namespace in wanted.namespaces_of(&need) {
                let rights = match namespace {
                    None => &mut everywhere,
                    Some(namespace) => within.entry(namespace).or_default(),
                };
                rights.entry(right.clone()).or_default().insert(need.verb);
            }
        }
        for rights in within.values_mut() {
            drop_what_is_granted(rights, &everywhere);
        }
        let mut manifests = Vec::new();
        if !everywhere.is_empty() {
            manifests.push(wanted.role(None, &everywhere));
            manifests.extend(wanted.binding(None));
        }
        for (namespace, rights) in within.iter().filter(|(_, rights)| !rights.is_empty()) {
            manifests.push(wanted.role(Some(namespace), rights));
            manifests.extend(wanted.binding(Some(namespace)));
        }
        manifests
    }
}

/// A right that holds everywhere need not be given once more.
fn drop_what_is_granted(rights: &mut Rights, everywhere: &Rights) {
    for ((group, _, resource), verbs) in rights.iter_mut() {
        if let Some(granted) = everywhere.get(&(group.clone(), None, resource.clone())) {
            verbs.retain(|verb| !granted.contains(verb));
        }
    }
    rights.retain(|_, verbs| !verbs.is_empty());
}

impl Wanted {
    /// Where a need is to be met; `None` is the whole cluster.
    fn namespaces_of(&self, need: &Need) -> Vec<Option<String>> {
        let plural = need.resource.split('/').next().unwrap_or_default();
        let has_namespaces = !self.cluster_scoped.contains(&(need.group.clone(), plural.to_string()));
        match &need.place {
            Place::Namespace(namespace) => vec![Some(namespace.clone())],
            Place::Cluster => vec![None],
            _ if has_namespaces && !self.namespaces.is_empty() => {
                self.namespaces.iter().cloned().map(Some).collect()
            }
            Place::Written | Place::Everywhere => vec![None],
        }
    }

    fn role(&self, namespace: Option<&str>, rights: &Rights) -> Value {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        json!({
            "apiVersion": format!("{API_GROUP}/v1"), "kind": kind,
            "metadata": self.metadata(namespace), "rules": rules(rights),
        })
    }

    fn binding(&self, namespace: Option<&str>) -> Option<Value> {
        let account = self.service_account.as_ref()?;
        let (kind, role) = match namespace {
            Some(_) => ("RoleBinding", "Role"),
            None => ("ClusterRoleBinding", "ClusterRole"),
        };
        Some(json!({
            "apiVersion": format!("{API_GROUP}/v1"), "kind": kind, "metadata": self.metadata(namespace),
            "roleRef": {"apiGroup": API_GROUP, "kind": role, "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "namespace": account.namespace, "name": account.name}],
        }))
    }

    fn metadata(&self, namespace: Option<&str>) -> Value {
        match namespace {
            Some(namespace) => json!({"name": self.name, "namespace": namespace}),
            None => json!({"name": self.name}),
        }
    }
}

/// Manifests as a person reviews them: each rule on a line of its own.
pub(crate) fn text(manifests: &[Value]) -> String {
    let one = |manifest: &Value| {
        let mut head = manifest.clone();
        let rules = head.as_object_mut().and_then(|fields| fields.shift_remove("rules"));
        let mut text = to_yaml(&head);
        if let Some(Value::Array(rules)) = rules {
            text.push_str("rules:\n");
            rules.iter().for_each(|rule| text.push_str(&format!("- {}\n", flow(rule))));
        }
        text
    };
    manifests.iter().map(one).collect::<Vec<_>>().join("---\n")
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether a text is itself in YAML without quotes. Numbers and words such as `no` are not; names may be either.
fn is_plain(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '/');
    let known_words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(letters)
        && !known_words.contains(&text)
}

/// What resources of one rule have in common: the group, the one object or none, the verbs.
type Shared<'r> = (&'r str, Option<&'r str>, &'r BTreeSet<Verb>);

/// Resources of one group with the same verbs share a rule.
fn rules(rights: &Rights) -> Vec<Value> {
    let mut shared: BTreeMap<Shared, Vec<&str>> = BTreeMap::new();
    for ((group, name, resource), verbs) in rights {
        shared.entry((group, name.as_deref(), verbs)).or_default().push(resource);
    }
    let rule = |((group, name, verbs), resources): (Shared, Vec<&str>)| {
        let verbs: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if let Some(name) = name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    };
    shared.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests;
