//! What a newcomer gets wrong, and the whole page that says so: a command, its mistake, what is printed.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::{folder, says, syncwright};

const PARENT: &str = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: x}\n";
const SYNC: &str = "status: {}\n";

#[test]
fn names_of_a_new_operator() {
    let project = folder(&[]);
    let refused = |hook: &str, group: &str, err: &str| {
        says(&syncwright(project.path(), &["new", hook, "--group", group]), 2, "", err);
    };
    let expected = "expected: lower-case letters, digits and `-`, 63 at most, beginning with a letter\n";
    let long = "a".repeat(64);
    refused(&long, "example.com", &format!("error: `{long}` cannot be the name of a hook\n{expected}"));
    refused(
        "web site",
        "example.com",
        &format!(
            "error: `web site` cannot be the name of a hook\n{expected}hint: `web-site`, with `--kind` for the kind\n"
        ),
    );
    refused(
        "a",
        "apps.k8s.io",
        "error: the group `apps.k8s.io` cannot be used: it is kept for Kubernetes' own kinds, and an API server refuses others\n\
         hint: name a domain of yours: `--group example.com`\n",
    );
    assert_eq!(fs::read_dir(project.path()).unwrap().count(), 0, "something was written");
}

#[test]
fn definitions_of_kinds_that_no_server_would_take() {
    let crd = |versions: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.b.c}}\n\
             spec:\n  group: b.c\n  names: {{kind: A, plural: as}}\n  scope: Namespaced\n  versions: {versions}\n"
        )
    };
    let project = folder(&[
        ("none.yaml", &crd("[]")),
        ("bare.yaml", &crd("[{name: v1, served: true, storage: true}]")),
        ("unstored.yaml", &crd("[{name: v1, served: true, storage: false}]")),
    ]);
    let refused =
        |file: &str, err: &str| says(&syncwright(project.path(), &["new", "a", "--from", file]), 2, "", err);
    refused("none.yaml", "error: `none.yaml`: no version is stored; there are none\n");
    refused(
        "bare.yaml",
        "error: `bare.yaml`: version `v1` has no schema\nexpected: `schema: {openAPIV3Schema: {type: object, …}}`\n",
    );
    refused("unstored.yaml", "error: `unstored.yaml`: no version is stored; there are: `v1`\n");
    assert!(!project.path().join("hooks").exists());
}

#[test]
fn manifests_that_are_there_twice() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let project = folder(&[("m/a.yaml", map), ("m/b.yaml", &format!("# again\n{map}"))]);
    let said = syncwright(project.path(), &["new", "a", "--group", "example.com", "--from-manifests", "m"]);
    let err = "error: m/b.yaml:2:1: ConfigMap `a` is there twice\nfound: it is also at m/a.yaml:1:1\n";
    says(&said, 2, "", err);
    assert!(!project.path().join("hooks").exists());
}

#[test]
fn requests_that_are_none() {
    let project = folder(&[
        ("hooks/site/sync.yaml", SYNC),
        ("empty.yaml", ""),
        ("text.yaml", "hello\n"),
        ("two.yaml", &format!("{PARENT}{PARENT}")),
        ("many.yaml", &format!("{PARENT}---\n{PARENT}")),
    ]);
    let refused = |file: &str, err: &str| {
        says(&syncwright(project.path(), &["render", "site", "sync", file]), 1, "", err);
    };
    let expected = "expected: a request or a parent object, as JSON or YAML\n";
    refused("empty.yaml", &format!("`empty.yaml` is empty\n{expected}"));
    refused("text.yaml", &format!("`text.yaml` is no request\nfound: a text\n{expected}"));
    refused(
        "two.yaml",
        "two.yaml:4:1: the key `apiVersion` is given twice in this map\n   |\n 4 | apiVersion: example.com/v1\n   | ^^^^^^^^^^\n\
         found: the first one at two.yaml:1:1\n",
    );
    refused(
        "many.yaml",
        "`many.yaml` holds 2 documents\nfound: the Site `x`, the Site `x`\nexpected: one parent, or a request with `parent`\n",
    );
    // Its own stdin is empty here.
    refused("-", &format!("`stdin` is empty\n{expected}"));
}

#[test]
fn two_reports_for_one_stdout() {
    let project = folder(&[("hooks/site/sync.yaml", SYNC)]);
    let said = syncwright(project.path(), &["test", "--json", "-", "--junit", "-"]);
    let err =
        "error: `--json -` and `--junit -` cannot both go to stdout; hint: name a file for one of them\n";
    says(&said, 2, "", err);
}

#[test]
fn definitions_that_are_at_fault_are_told_without_a_cluster() {
    let project = folder(&[("controllers.yaml", "kind: CompositeControler\n")]);
    for verb in [&["diff"][..], &["record", "sites/x"]] {
        let said = syncwright(project.path(), &[verb, &["--controllers", "controllers.yaml"]].concat());
        assert_eq!(said.code, 2);
        assert!(said.err.starts_with("controllers.yaml:1:"), "{}", said.err);
        let said = syncwright(project.path(), &[verb, &["--controllers", "none.yaml"]].concat());
        let err = "reading `none.yaml`: No such file or directory (os error 2)\nerror: the definitions cannot be used\n";
        says(&said, 2, "", err);
        fs::write(project.path().join("empty.yaml"), "# nothing\n").unwrap();
        let said = syncwright(project.path(), &[verb, &["--controllers", "empty.yaml"]].concat());
        let err = "error: there is no definition in `empty.yaml`; hint: `syncwright new` writes one\n";
        says(&said, 2, "", err);
    }
}

#[test]
fn no_cluster_is_named() {
    let project = folder(&[]);
    let hint = "; hint: name a cluster with --kubeconfig FILE or KUBECONFIG\n";
    for verb in [&["diff"][..], &["record", "sites/x"], &["run", "--log-level", "off"], &["uninstall"]] {
        let said = syncwright(project.path(), &[verb, &["--kubeconfig", "none"]].concat());
        assert_eq!(said.code, 2);
        let starts = said.err.starts_with("error: connecting to the cluster: ");
        assert!(starts && said.err.ends_with(hint), "{verb:?}: {}", said.err);
    }
}

#[test]
fn names_that_are_no_text() {
    let project = folder(&[("hooks/site/sync.yaml", SYNC)]);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::create_dir(project.path().join("hooks").join(name)).unwrap();
    let err = "cannot be read: the name of `hooks/caf\u{fffd}` is not UTF-8 text\n";
    for (verb, before) in [("check", "error: `hooks` "), ("test", "error: hooks folder `hooks` ")] {
        let said = syncwright(project.path(), &[verb]);
        says(&said, 2, "", &format!("{before}{err}"));
    }
}

#[test]
fn a_case_without_its_folder() {
    let project = folder(&[("hooks/site/sync.yaml", SYNC), ("hooks/site/cases/sync.request.yaml", PARENT)]);
    let out = "FAILED site/sync.request.yaml\n  `sync.request.yaml` is no file of a case\n  expected: a folder for each case, `cases/<case>/`\n1 failed\n";
    says(&syncwright(project.path(), &["test"]), 1, out, "");
}

/// What other programs' users type first is told what it is here.
#[test]
fn command_lines_of_other_programs() {
    let project = folder(&[("hooks/a/sync.yaml", SYNC), ("hooks/a/example.yaml", PARENT)]);
    for (typed, hint) in [
        ("help test", "`syncwright test --help`"),
        ("version", "`syncwright --version`"),
        ("lint", "`syncwright check`"),
        ("init", "`syncwright new NAME`"),
        ("delete", "`syncwright uninstall`"),
        ("run controllers.yaml", "definitions are named with `--controllers controllers.yaml`"),
        ("serve hooks", "the hooks folder is named with `--hooks hooks`"),
        ("rbac a", "`rbac` is about all definitions or hooks, and takes no names"),
        ("diff sites shop", "one parent is `RESOURCE/NAME`, such as `sites/shop`"),
        ("run --leader-elect true", "write `--leader-elect=true`"),
        ("check --only a", "a hook is named as it is: `syncwright check HOOK`"),
        ("render hooks/a/example.yaml", "`syncwright render a sync hooks/a/example.yaml`"),
    ] {
        let said = syncwright(project.path(), &typed.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 2, "{typed}");
        assert!(said.err.ends_with(&format!("\n\nhint: {hint}\n")), "{typed}: {}", said.err);
    }
}

#[test]
fn definitions_that_are_named_and_not_there() {
    let project = folder(&[("hooks/a/sync.yaml", SYNC), ("controllers.yaml/file", "")]);
    for arguments in [&["check"][..], &["test", "--properties"]] {
        let err = "error: `controllers.yaml` is no file; expected: a file with definitions\n";
        says(&syncwright(project.path(), arguments), 2, "", err);
        let err = "error: `nope` cannot be read: No such file or directory (os error 2)\n";
        says(&syncwright(project.path(), &[arguments, &["--controllers", "nope"]].concat()), 2, "", err);
    }
}

/// Each call is told what it may answer, and not what another one may.
#[test]
fn answers_of_another_call() {
    for (call, template, expected) in [
        (
            "finalize",
            "",
            "hint: write `finalized: true` where nothing is left to be done, or the parent stays for ever\n",
        ),
        (
            "customize",
            "",
            "expected: `relatedResources`\nhint: write `relatedResources: []` to say that none is wanted\n",
        ),
        ("customize", "apiVersion: v1\n", "expected: `relatedResources`\n"),
        ("default", "spec: {replicas: 2}\n", "hint: put what is to be filled in below `defaults:`\n"),
        ("validate", "apiVersion: v1\nkind: Pod\n", "expected: `errors`, `warnings`\n"),
        (
            "sync",
            "apiVersion: v1\nkind: List\nmetadata: {}\nitems: []\n",
            "hint: give each of its items as a document of its own\n",
        ),
    ] {
        let request = match call {
            "default" | "validate" => format!("object: {{{}}}", PARENT.trim_end().replace('\n', ", ")),
            _ => PARENT.to_string(),
        };
        let project = folder(&[(&format!("hooks/a/{call}.yaml"), template), ("request.yaml", &request)]);
        let said = syncwright(project.path(), &["render", "a", call, "request.yaml"]);
        assert!(said.code == 1 && said.err.ends_with(expected), "{call}: {}", said.err);
    }
}

#[test]
fn roles_for_a_kind_in_place_of_its_plural() {
    let project = folder(&[("controllers.yaml", "")]);
    for (typed, meant) in [
        ("v1/secret", "v1/secrets"),
        ("v1/Secret", "v1/secrets"),
        ("apps/v1/deployment", "apps/v1/deployments"),
    ] {
        let said = syncwright(project.path(), &["rbac", "--related", typed]);
        assert!(said.code == 2 && said.err.contains(&format!("did you mean `{meant}`?")), "{}", said.err);
    }
}
