//! `syncwright render`, and what every command has in common.

use serde_json::{Value, json};

use crate::{ANSWER, PARENT, SYNC, folder, says, syncwright};

#[test]
fn render_prints_the_answer() {
    let folder = folder(&[("hooks/a/sync.yaml", SYNC), ("parent.yaml", PARENT)]);
    let now = ["--now", "2026-01-01T00:00:00Z"];
    let said = syncwright(
        folder.path(),
        &[&["render", "a", "sync", "parent.yaml", "-o", "yaml"], &now[..]].concat(),
    );
    says(&said, 0, ANSWER, "");
    let said = syncwright(folder.path(), &[&["render", "a", "sync", "parent.yaml"], &now[..]].concat());
    let child =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"text": ""}});
    let expected =
        json!({"status": {"phase": "Running", "now": "2026-01-01T00:00:00Z"}, "children": [child]});
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), expected);
}

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.b.c}
spec:
  group: b.c
  scope: Namespaced
  names: {kind: A, plural: as}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {schedule: {type: string, default: 30 2 * * *}}}
";

#[test]
fn a_parent_that_stands_alone_is_as_the_api_server_has_it() {
    let template = "status: {all: [{{ parent.spec.schedule }}, {{ parent.metadata.uid }}, {{ parent.metadata.namespace }}, {{ parent.metadata.creationTimestamp }}]}\n";
    let parent = "apiVersion: b.c/v1\nkind: A\nmetadata: {name: x}\nspec: {}\n";
    let folder = folder(&[
        ("hooks/a/crd.yaml", CRD),
        ("hooks/a/sync.yaml", template),
        ("p.yaml", parent),
        ("request.yaml", "parent: {apiVersion: b.c/v1, kind: A, metadata: {name: x}, spec: {}}\n"),
        ("hooks/a/cases/bare/sync.request.yaml", parent),
        ("hooks/a/cases/bare/sync.error.txt", "another\n"),
    ]);
    let asked = ["render", "a", "sync", "p.yaml", "-o", "yaml", "--now", "2026-11-30T17:00:00.5Z"];
    let made = "status:\n  all:\n  - 30 2 * * *\n  - 00000000-0000-4000-8000-000000000000\n  - default\n  - \"2026-11-30T17:00:00Z\"\nchildren: []\n";
    says(&syncwright(folder.path(), &asked), 0, made, "");
    // A request says itself what there is, and so does a case.
    let said = syncwright(folder.path(), &["render", "a", "sync", "request.yaml"]);
    assert!(said.code == 1 && said.err.contains("`parent.spec.schedule` is absent"), "{}", said.err);
    let said = syncwright(folder.path(), &["test"]);
    assert!(
        said.code == 1 && said.out.contains("`parent.spec.schedule` is absent"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn what_explains_can_be_yaml() {
    let folder = folder(&[("hooks/a/sync.yaml", SYNC), ("parent.yaml", PARENT)]);
    let said = |form: &str| {
        let said =
            syncwright(folder.path(), &["render", "a", "sync", "parent.yaml", "--explain", "-o", form]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        said.out
    };
    assert!(said("json").starts_with(['[', '{']), "{}", said("json"));
    assert!(said("yaml").starts_with("- ") || said("yaml").contains(":\n"), "{}", said("yaml"));
}

#[test]
fn render_shows_a_templates_fault_as_a_page() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", "status: {phase: {{ parent.spec.phase }}}\n"),
        ("p.yaml", "parent: {}\n"),
    ]);
    let said = syncwright(folder.path(), &["render", "a", "sync", "p.yaml"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let line = "\n 1 | status: {phase: {{ parent.spec.phase }}}\n   |                    ^";
    assert!(said.err.starts_with("hooks/a/sync.yaml:1:20: ") && said.err.contains(line), "{}", said.err);
}

#[test]
fn render_shows_where_a_request_is_none() {
    let folder = folder(&[("hooks/a/sync.yaml", SYNC), ("p.yaml", "parent: {}\nparent: {}\n")]);
    let said = syncwright(folder.path(), &["render", "a", "sync", "p.yaml"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("p.yaml:2:1: "), "{}", said.err);
}

#[test]
fn render_shows_why_a_hook_does_not_compile() {
    let folder = folder(&[("hooks/a/sync.yaml", "a: 1\n{% if %}\n"), ("p.yaml", PARENT)]);
    let said = syncwright(folder.path(), &["render", "a", "sync", "p.yaml"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("hooks/a/sync.yaml:2:"), "{}", said.err);
}

#[test]
fn what_cannot_be_asked_ends_with_2() {
    let folder = folder(&[("hooks/mysql/sync.yaml", SYNC), ("p.yaml", PARENT)]);
    let said = |arguments: &[&str]| syncwright(folder.path(), arguments);
    says(
        &said(&["render", "mysq", "sync", "p.yaml"]),
        2,
        "",
        "error: no hook `mysq`; expected: `mysql`; hint: did you mean `mysql`?\n",
    );
    says(
        &said(&["render", "mysql", "sync", "q.yaml"]),
        2,
        "",
        "error: `q.yaml` cannot be read: No such file or directory (os error 2)\n",
    );
    says(
        &said(&["render", "mysql", "sync", "p.yaml", "--hooks", "x"]),
        2,
        "",
        "error: there is no hooks folder `x`; hint: name it with --hooks\n",
    );
    says(
        &said(&["test"]),
        2,
        "",
        "error: there is no case below `hooks`; hint: a case is a folder `<hook>/cases/<case>/`\n",
    );
    assert_eq!(said(&["serve", "--listen", "nowhere"]).code, 2);
    assert_eq!(said(&["rendr"]).code, 2);
    assert_eq!(said(&["test", "--log-level", "a=b=c"]).code, 2);
}

#[test]
fn the_version_says_what_decides_behaviour() {
    let folder = folder(&[]);
    let said = syncwright(folder.path(), &["--version"]);
    assert_eq!(said.code, 0);
    let start = concat!("syncwright ", env!("CARGO_PKG_VERSION"), " (");
    assert!(said.out.starts_with(start), "{}", said.out);
    assert!(said.out.contains("time zones 20") && said.out.contains("kube "), "{}", said.out);
}

const WEBSITE: &str = "\
{% set spec = parent.spec %}
{% set web = children.find(\"Deployment\", parent.metadata.name) %}
status:
  ready: {{ web.status.readyReplicas | default(0) }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ parent.metadata.name }}}
spec:
  replicas: {{ spec.replicas }}
  {% if spec.resources is defined %}
  resources: {{ spec.resources }}
  {% endif %}
";
const SITE: &str = "\
apiVersion: example.com/v1
kind: Website
metadata: {name: shop, namespace: web}
spec: {replicas: 3, resources: {limits: {cpu: 1}}}
";

#[test]
fn render_explains_where_each_field_comes_from() {
    let folder = folder(&[("hooks/website/sync.yaml", WEBSITE), ("site.yaml", SITE)]);
    let said = syncwright(folder.path(), &["render", "website", "sync", "site.yaml", "--explain"]);
    let printed = "\
Answer
  status.ready: 0  hooks/website/sync.yaml:4  children.find(\"Deployment\", parent.metadata.name).status.readyReplicas
Deployment shop
  apiVersion: apps/v1           hooks/website/sync.yaml:6
  kind: Deployment              hooks/website/sync.yaml:7
  metadata.name: shop           hooks/website/sync.yaml:8   parent.metadata.name
  spec.replicas: 3              hooks/website/sync.yaml:10  parent.spec.replicas
  spec.resources.limits.cpu: 1  hooks/website/sync.yaml:12  parent.spec.resources  (if spec.resources is defined)
";
    says(&said, 0, printed, "");
    let said =
        syncwright(folder.path(), &["render", "website", "sync", "site.yaml", "--explain", "-o", "json"]);
    let explained: Value = serde_json::from_str(&said.out).unwrap();
    let replicas = json!({
        "object": "Deployment shop", "path": "spec.replicas", "value": 3, "from": ["parent.spec.replicas"],
        "place": {"file": "hooks/website/sync.yaml", "line": 10, "column": 3}, "conditions": [],
    });
    assert_eq!(explained[4], replicas);
}

#[test]
fn observed_children_can_be_a_folder_of_manifests() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop, namespace: web}\nstatus: {readyReplicas: 2}\n";
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", deployment.replace('\n', "\n  "));
    let folder = folder(&[
        ("hooks/website/sync.yaml", WEBSITE),
        ("site.yaml", SITE),
        ("request.yaml", "parent: {}\nchildren: []\n"),
        ("observed/web.yaml", deployment),
        ("observed/notes.txt", "not read"),
        ("list.yaml", list.trim_end()),
    ]);
    let render = |file: &str, children: &str| {
        syncwright(folder.path(), &["render", "website", "sync", file, "--children", children])
    };
    for children in ["observed", "list.yaml"] {
        let said = render("site.yaml", children);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["status"]["ready"], 2);
    }
    let refused = "error: `request.yaml` has `children` already\nhint: leave them out of the file, or leave out `--children`\n";
    says(&render("request.yaml", "observed"), 2, "", refused);
    let said = render("site.yaml", "nowhere");
    says(&said, 2, "", "error: `nowhere` cannot be read: No such file or directory (os error 2)\n");
}

/// A decorator's object may stand alone as a parent may: what the template asks for or answers tells which of the two it is.
#[test]
fn object_of_a_decorator_may_stand_alone() {
    let object = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n";
    let project = folder(&[
        ("hooks/asks/sync.yaml", "labels: {name: \"{{ object.metadata.name }}\"}\nattachments: []\n"),
        ("hooks/answers/sync.yaml", "annotations: {name: \"{{ parent.metadata.name }}\"}\nattachments: []\n"),
        ("hooks/wrong/sync.yaml", "labels: {name: \"{{ object.metadata.nam }}\"}\n"),
        ("web.yaml", object),
        ("hooks/asks/cases/one/sync.request.yaml", object),
    ]);
    let labels = "attachments: []\nlabels:\n  name: web\n";
    says(&syncwright(project.path(), &["render", "asks", "sync", "web.yaml", "-o", "yaml"]), 0, labels, "");
    let annotations = "attachments: []\nannotations:\n  name: web\n";
    says(
        &syncwright(project.path(), &["render", "answers", "sync", "web.yaml", "-o", "yaml"]),
        0,
        annotations,
        "",
    );
    let said = syncwright(project.path(), &["render", "wrong", "sync", "web.yaml"]);
    assert!(said.err.contains("`object.metadata.nam` is absent"), "{}", said.err);
    assert_eq!(syncwright(project.path(), &["test", "--accept"]).code, 0);
    let accepted = project.path().join("hooks/asks/cases/one/sync.response.yaml");
    assert_eq!(std::fs::read_to_string(accepted).expect("an answer, and no error"), labels);
}
