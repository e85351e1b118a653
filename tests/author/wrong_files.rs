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

#[test]
fn file_that_is_no_text_is_told_and_keeps_nothing_else_from_being_looked_at() {
    let project = folder(&[
        ("hooks/site/sync.yaml", "status: {image: {{ parent.spec.image }}}\n"),
        ("hooks/site/cases/good/sync.request.yaml", SITE),
        ("hooks/site/cases/good/sync.response.yaml", "status: {image: a}\nchildren: []\n"),
        ("hooks/site/cases/odd/sync.request.yaml", SITE),
        ("hooks/site/cases/odder/sync.response.yaml", "status: {image: a}\nchildren: []\n"),
    ]);
    let hooks = project.path().join("hooks/site");
    std::fs::write(hooks.join("cases/odd/sync.response.yaml"), b"# ok\nstatus: {image: \xe4}\n").unwrap();
    std::fs::write(hooks.join("cases/odder/sync.request.yaml"), b"\xff\xfea\0").unwrap();
    std::fs::write(hooks.join("crd.yaml"), b"kind: \xe4\n").unwrap();
    let path = std::ffi::CString::new(hooks.join("example.yaml").to_str().unwrap()).unwrap();
    // SAFETY: a plain system call with a path that ends in a zero.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let no_text = |file: &str, line: &str, at: &str, text: &str, column: usize| {
        format!(
            "{file}:{at}: the file is not UTF-8 text\n   |\n {line} | {text}\n   | {}^\nfound: the byte 0xE4\n\
             hint: save it as UTF-8\n",
            " ".repeat(column)
        )
    };
    let response =
        no_text("hooks/site/cases/odd/sync.response.yaml", "2", "2:17", "status: {image: \u{fffd}}", 16);
    let request =
        "hooks/site/cases/odder/sync.request.yaml:1:1: the file is UTF-16 text\nhint: save it as UTF-8\n";
    let indented = |page: &str| page.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let told = format!(
        "FAILED site/odd/sync\n{}FAILED site/odder/sync\n{}1 passed, 2 failed\n",
        indented(&response),
        indented(request)
    );
    says(&syncwright(project.path(), &["test"]), 1, &told, "");
    let checked = syncwright(project.path(), &["check"]);
    let text = &checked.out;
    let crd = no_text("hooks/site/crd.yaml", "1", "1:7", "kind: \u{fffd}", 6);
    for page in [&*crd, "hooks/site/example.yaml:1:1: this is no file\n", request] {
        assert!(text.contains(page), "{page}\n{text}");
    }
}
