use super::*;
use crate::author::rbac::Related;
use crate::config::spec::ResourceName;
use crate::config::{Definition, load};

const DEFINITION: &str = "
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: website}
spec:
  generateSelector: true
  parentResource: {apiVersion: example.com/v1, resource: websites}
  childResources:
    - {apiVersion: apps/v1, resource: deployments, updateStrategy: {method: InPlace}}
  hooks:
    sync:
      webhook:
        url: https://hooks.example.com/sync
        caBundle: {configMapRef: {namespace: web, name: ca}}
        clientTLS: {secretRef: {namespace: web, name: identity}}
";

fn wanted() -> Wanted {
    Wanted {
        name: "sw".into(),
        service_account: None,
        namespaces: Vec::new(),
        cluster_scoped: BTreeSet::new(),
    }
}

fn website() -> Definition {
    load("f", DEFINITION).unwrap().remove(0)
}

fn printed(definitions: &[Definition], related: Vec<Related>, lease: Option<Key>, wanted: Wanted) -> String {
    let follows_cluster = wanted.namespaces.is_empty();
    text(
        &Duties {
            definitions: definitions.iter().collect(),
            related,
            follows_cluster,
            lease,
            certificates: None,
        }
        .roles(&wanted),
    )
}

#[test]
fn secrets_of_a_hook_are_named_where_they_are() {
    assert_eq!(
        printed(&[website()], Vec::new(), None, wanted()),
        r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: sw
rules:
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [example.com], resources: [websites], verbs: [get, list, watch, patch]}
- {apiGroups: [example.com], resources: [websites/finalizers], verbs: [update]}
- {apiGroups: [example.com], resources: [websites/status], verbs: [patch]}
- {apiGroups: [metacontroller.k8s.io], resources: [compositecontrollers, decoratorcontrollers], verbs: [list, watch]}
- {apiGroups: [metacontroller.k8s.io], resources: [compositecontrollers/status, decoratorcontrollers/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: sw
  namespace: web
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch], resourceNames: [ca]}
- {apiGroups: [""], resources: [secrets], verbs: [list, watch], resourceNames: [identity]}
"#
    );
}

#[test]
fn all_is_bound_to_namespaces_where_that_is_asked_for() {
    let split = Wanted {
        namespaces: vec!["shop".into(), "blog".into()],
        service_account: Some(Key::new("ops", "sw")),
        cluster_scoped: BTreeSet::from([("example.com".into(), "websites".into())]),
        ..wanted()
    };
    let mut definition = website();
    definition.spec.hooks = Default::default();
    let printed = printed(&[definition], Vec::new(), None, split);
    let cluster = "- {apiGroups: [example.com], resources: [websites], verbs: [get, list, watch, patch]}\n";
    assert!(printed.contains(cluster), "a kind without namespaces: {printed}");
    let role = |namespace| {
        format!(
            "kind: Role\nmetadata:\n  name: sw\n  namespace: {namespace}\nrules:\n{}{}---\n",
            "- {apiGroups: [\"\"], resources: [events], verbs: [create, patch]}\n",
            "- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, patch, delete]}\n"
        )
    };
    assert!(printed.contains(&role("shop")) && printed.contains(&role("blog")), "{printed}");
    assert!(!printed.contains("compositecontrollers"), "definitions have no namespace: {printed}");
    assert_eq!(printed.matches("kind: RoleBinding").count(), 2);
    assert_eq!(printed.matches("kind: ClusterRoleBinding").count(), 1);
    assert_eq!(printed.matches("- kind: ServiceAccount\n  namespace: ops\n  name: sw\n").count(), 3);
}

#[test]
fn related_kinds_are_only_looked_at_and_a_lease_is_named() {
    let resource = ResourceName { api_version: "v1".into(), resource: "secrets".into() };
    let related = vec![Related { resource, by_namespace_labels: true }];
    let printed = printed(&[], related, Some(Key::new("ops", "leader")), wanted());
    assert!(
        printed.contains("- {apiGroups: [\"\"], resources: [namespaces, secrets], verbs: [list, watch]}\n"),
        "{printed}"
    );
    let lease = "  namespace: ops\nrules:\n\
        - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}\n\
        - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update], resourceNames: [leader]}\n";
    assert!(printed.ends_with(lease), "{printed}");
}

#[test]
fn what_roles_cannot_know_is_remarked() {
    let text = DEFINITION
        .replace("apps/v1, resource: deployments", "rbac.authorization.k8s.io/v1, resource: roles")
        + "    customize: {webhook: {path: /website/customize}}\n";
    let definitions = load("f", &text).unwrap();
    let duties = Duties {
        definitions: definitions.iter().collect(),
        related: Vec::new(),
        follows_cluster: true,
        lease: None,
        certificates: None,
    };
    assert_eq!(
        duties.remarks(),
        [
            "`website` has a customize hook, and no case tells what it asks for; hint: name the kinds with --related",
            "`website` makes roles: it must itself have every right that they give, which is to be added by hand",
        ]
    );
    let nothing = Duties {
        definitions: Vec::new(),
        related: Vec::new(),
        follows_cluster: true,
        lease: None,
        certificates: None,
    };
    assert_eq!(
        nothing.remarks(),
        ["there is no definition: the roles are those of a controller that waits for one"]
    );
}
