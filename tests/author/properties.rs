//! `syncwright test --properties`.

use crate::{folder, says, syncwright};

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Site, plural: sites}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, minimum: 1, maximum: 9}
                title: {type: string}
                mode: {type: string, enum: [fast, safe], default: fast}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const DEFINITIONS: &str = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: a}
spec:
  generateSelector: true
  parentResource: {apiVersion: example.com/v1, resource: sites}
  childResources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {path: /a/sync}}}
";

/// What is said of a hook with this template.
#[track_caller]
fn check(template: &str, code: i32, printed: &str) {
    let folder = folder(&[
        ("hooks/a/sync.yaml", template),
        ("hooks/a/crd.yaml", CRD),
        ("hooks/without-a-kind/sync.yaml", "status: {}\n"),
        ("controllers.yaml", DEFINITIONS),
    ]);
    says(&syncwright(folder.path(), &["test", "--properties", "--runs", "60"]), code, printed, "");
}

fn child(more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ dns_name(parent.metadata.name) }}}}\n{more}"
    )
}

#[test]
fn a_hook_that_answers_every_parent_is_good() {
    check(
        &child("data:\n  title: \"{{ parent.spec.title | default('') }}\"\n  mode: {{ parent.spec.mode }}\n"),
        0,
        "a: 60 parents, of which 0 are refused on purpose\n",
    );
}

#[test]
fn a_hook_may_refuse_on_purpose() {
    let refusing = "{% if parent.spec.size > 4 %}\n{{ fail('too large') }}\n{% endif %}\nstatus: {}\n";
    check(refusing, 0, "a: 60 parents, of which 19 are refused on purpose\n");
}

#[test]
fn a_field_that_may_be_absent_is_a_fault_and_the_parent_is_made_small() {
    let printed = "\
FAULT a/sync, after 0 parents of seed 1
  hooks/a/sync.yaml:6:14: `parent.spec.title` is absent
     |
   6 |   title: \"{{ parent.spec.title }}\"
     |              ^^^^^^^^^^^^^^^^^
";
    let folder = folder(&[
        ("hooks/a/sync.yaml", &child("data:\n  title: \"{{ parent.spec.title }}\"\n")),
        ("hooks/a/crd.yaml", CRD),
    ]);
    let said = syncwright(folder.path(), &["test", "--properties"]);
    assert_eq!(said.code, 1);
    let start = said.out.lines().next().unwrap();
    assert!(start.starts_with("FAULT a/sync, after "), "{}", said.out);
    let rest = |text: &str| text.split_once('\n').unwrap().1.to_string();
    assert!(rest(&said.out).starts_with(&rest(printed)), "{}", said.out);
    let smallest = "
  with the parent:
    apiVersion: example.com/v1
    kind: Site
    metadata:
      name: a
      namespace: default
      uid: 5b1f3d2e-0000-4000-8000-000000000000
      generation: 1
      creationTimestamp: \"2026-01-01T00:00:00Z\"
    spec:
      size: 1
      mode: fast
";
    assert!(said.out.ends_with(smallest), "{}", said.out);
}

/// The problem that a hook with this template shows, without the parent.
#[track_caller]
fn problem(template: &str) -> String {
    let folder = folder(&[
        ("hooks/a/sync.yaml", template),
        ("hooks/a/crd.yaml", CRD),
        ("controllers.yaml", DEFINITIONS),
    ]);
    let said = syncwright(folder.path(), &["test", "--properties"]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    let (_, rest) = said.out.split_once('\n').unwrap();
    rest.split("\n  with the parent:").next().unwrap().trim().to_string()
}

#[test]
fn children_that_no_cluster_takes_are_faults() {
    let page = problem(&child("data:\n  size: {{ parent.spec.size }}\n"));
    assert!(page.starts_with("child ConfigMap `a`: ConfigMap: `data.size` is"), "{page}");
    let page = problem(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ parent.metadata.name }}-config\n  labels: {title: \"{{ parent.spec.title | default('') }}\"}\n",
    );
    assert!(page.contains("title"), "{page}");
    let page = problem("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n");
    assert_eq!(page, "child Secret `a`: its kind is not declared in `childResources`");
}

#[test]
fn what_breaks_once_the_children_are_observed_is_a_fault() {
    let template = child("data: {a: b}\n")
        + "---\nstatus:\n  {% set own = children.find('ConfigMap', dns_name(parent.metadata.name)) %}\n  seen: {{ own.data.c if own is defined else 'no' }}\n";
    let page = problem(&template);
    assert!(page.contains("`own.data.c` is absent") || page.contains(".data.c` is absent"), "{page}");
}

#[test]
fn name_that_is_another_one_each_time_is_a_fault() {
    let random =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ dns_name('x', random_string(5)) }}\"}\n";
    assert!(problem(random).contains("a child has another name at each visit"), "{}", problem(random));
}

#[test]
fn what_cannot_be_tried_is_told() {
    let folder = folder(&[("hooks/a/sync.yaml", "status: {}\n")]);
    let said = syncwright(folder.path(), &["test", "--properties"]);
    says(&said, 2, "", "error: no hook below `hooks` that is meant has a `crd.yaml`\n");
}
