//! One file taken for another: each command says what the file is, and what it wants.

use crate::{folder, says, syncwright};

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  names: {kind: Site, plural: sites}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {image: {type: string}}}}}}
";
const DEFINITION: &str = "\
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: site}
spec:
  parentResource: {apiVersion: example.com/v1, resource: sites}
  hooks: {sync: {webhook: {path: /site/sync}}}
";
const SITE: &str = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: x}\nspec: {image: a}\n";

#[test]
fn render_says_what_it_was_given() {
    let two = format!("{DEFINITION}---\n{DEFINITION}");
    let project = folder(&[
        ("hooks/site/sync.yaml", "status: {image: {{ parent.spec.image }}}\n"),
        ("hooks/site/crd.yaml", CRD),
        ("hooks/site/example.yaml", SITE),
        ("one.yaml", DEFINITION),
        ("controllers.yaml", &two),
        ("answer.yaml", "status: {image: a}\nchildren: []\n"),
        ("list.yaml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: example.com/v1, kind: Site}]\n"),
        ("other.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"),
        ("request.yaml", "parent: {apiVersion: apps/v1, kind: Deployment}\n"),
        ("v2.yaml", &SITE.replace("/v1", "/v2")),
    ]);
    let wanted = "expected: one Site (`apiVersion: example.com/v1`), or a request with `parent`\n";
    let example = "hint: try `hooks/site/example.yaml`\n";
    let render = |file: &str| syncwright(project.path(), &["render", "site", "sync", file, "-o", "yaml"]);
    let refused = |file: &str, what: &str, hint: &str| {
        says(&render(file), 1, "", &format!("`{file}` {what}\n{wanted}{hint}"));
    };
    refused("hooks/site/crd.yaml", "defines a kind, and is no object of it", example);
    refused(
        "one.yaml",
        "is a CompositeController, which says what hooks are called, and is no parent",
        example,
    );
    refused("hooks/site/sync.yaml", "is a template, and not what a template is given", example);
    refused("other.yaml", "is the Deployment `web`", example);
    refused("request.yaml", "is a request about a Deployment", example);
    let hint = "hint: give one of them: `kubectl get KIND NAME -o yaml` prints it alone\n";
    refused("list.yaml", "is a List of 1", hint);
    let found = "holds 2 documents\nfound: the CompositeController `site`, the CompositeController `site`";
    refused("controllers.yaml", found, example);
    let found = "is an answer of a hook, and not what it is asked\nfound: `status`, `children`";
    refused("answer.yaml", found, "hint: of a case, give `<call>.request.yaml`\n");
    says(
        &render("hooks"),
        2,
        "",
        "error: `hooks` is a folder; expected: a file with a parent or a request\n",
    );
    for fine in ["hooks/site/example.yaml", "v2.yaml"] {
        assert_eq!(render(fine).out, "status:\n  image: a\nchildren: []\n", "{fine}");
    }
}

#[test]
fn definitions_that_are_something_else_are_called_so() {
    let project = folder(&[("crd.yaml", CRD), ("site.yaml", SITE), ("hooks/site/sync.yaml", "status: {}\n")]);
    for verb in [&["check"][..], &["diff"], &["record", "sites/x"], &["rbac"], &["run"], &["uninstall"]] {
        for (file, kind) in [("crd.yaml", "CustomResourceDefinition"), ("site.yaml", "Site")] {
            let said = syncwright(project.path(), &[verb, &["--controllers", file]].concat());
            let told = format!("{}{}", said.out, said.err);
            let expected = format!("this is a {kind}, and no definition of a controller");
            assert!(told.contains(&format!("{file}:")) && told.contains(&expected), "{verb:?}: {told}");
        }
    }
}

#[test]
fn hooks_folder_that_is_one_hooks_own_is_called_so() {
    let project = folder(&[("hooks/site/sync.yaml", "status: {}\n"), ("hooks/site/cases/a/x.txt", "")]);
    for verb in ["check", "test"] {
        let said = syncwright(project.path(), &[verb, "--hooks", "hooks/site"]);
        assert_eq!(said.code, 2);
        assert!(
            said.err.contains("hint: `hooks/site` is one hook: name the folder above, `hooks`"),
            "{}",
            said.err
        );
    }
}
