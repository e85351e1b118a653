//! `syncwright render` and `syncwright test` as an author meets them: files, a command, what is printed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

const SYNC: &str = "\
status:
  phase: {{ parent.spec.phase }}
  now: {{ now }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ parent.metadata.name }}}
data: {text: \"{{ parent.spec.text | default('') }}\"}
";
const PARENT: &str = "apiVersion: v1\nkind: A\nmetadata: {name: x}\nspec: {phase: Running}\n";
const ANSWER: &str = "\
status:
  phase: Running
  now: \"2026-01-01T00:00:00Z\"
children:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: x
  data:
    text: \"\"
";

/// What a command printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn syncwright(folder: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("SYNCWRIGHT_HOOKS")
        .env_remove("SYNCWRIGHT_LOG_LEVEL")
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
    Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

#[track_caller]
fn says(said: &Said, code: i32, out: &str, err: &str) {
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (code, out, err));
}

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
fn cases_that_get_what_they_expect_pass() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/runs/sync.request.yaml", PARENT),
        ("hooks/a/cases/runs/sync.response.yaml", ANSWER),
        ("hooks/a/cases/typo/README.md", "Not read."),
        ("hooks/a/cases/typo/sync.request.yaml", "parent: {}"),
    ]);
    let said = syncwright(folder.path(), &["test", "--only", "typo", "--accept"]);
    says(&said, 0, "wrote hooks/a/cases/typo/sync.error.txt\n1 accepted\n", "");
    says(&syncwright(folder.path(), &["test"]), 0, "2 passed\n", "");
}

#[test]
fn a_case_that_gets_something_else_says_what_differs() {
    let other = ANSWER.replace("Running", "Pending").replace("name: x", "name: z");
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/runs/sync.request.yaml", PARENT),
        ("hooks/a/cases/runs/sync.response.yaml", &other),
    ]);
    let printed = "\
FAILED a/runs/sync
  children[ConfigMap z]: expected, but not there
  children[ConfigMap x]: not expected
  status.phase: expected \"Pending\", got \"Running\"
1 failed
";
    says(&syncwright(folder.path(), &["test"]), 1, printed, "");
    let accepted = "wrote hooks/a/cases/runs/sync.response.yaml\n1 accepted\n";
    says(&syncwright(folder.path(), &["test", "--accept"]), 0, accepted, "");
    let written = fs::read_to_string(folder.path().join("hooks/a/cases/runs/sync.response.yaml")).unwrap();
    assert_eq!(written, ANSWER);
    says(&syncwright(folder.path(), &["test"]), 0, "1 passed\n", "");
}

#[test]
fn a_case_whose_error_changed_shows_both_pages() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", "{{ fail('no') }}\n"),
        ("hooks/a/cases/fails/sync.request.yaml", PARENT),
        ("hooks/a/cases/fails/sync.error.txt", "another error\n"),
    ]);
    let said = syncwright(folder.path(), &["test"]);
    assert_eq!(said.code, 1);
    let start = "\
FAILED a/fails/sync
  expected the error:
    another error
  got the error:
    hooks/a/sync.yaml:1:";
    assert!(said.out.starts_with(start), "{}", said.out);
}

#[test]
fn a_case_that_is_none_fails() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/1/sync.request.yaml", PARENT),
        ("hooks/a/cases/2/sync.request.yaml", PARENT),
        ("hooks/a/cases/2/sync.respnse.yaml", ANSWER),
        ("hooks/a/cases/2/sync.response.yaml", ANSWER),
        ("hooks/a/cases/3/finalize.response.yaml", ANSWER),
        ("hooks/a/cases/4/finalize.request.yaml", PARENT),
        ("hooks/a/cases/5/sync.error.txt", "x"),
        ("hooks/a/cases/5/sync.request.yaml", PARENT),
        ("hooks/a/cases/5/sync.response.yaml", ANSWER),
        ("hooks/a/cases/6/sync.request.yaml", "parent: 1\n"),
    ]);
    let printed = "\
FAILED a/1/sync
  it has neither `sync.response.yaml` nor `sync.error.txt`
  hint: write what it gets now with `--accept`, then read it
FAILED a/2/sync.respnse.yaml
  `sync.respnse.yaml` is no file of a case
  expected: `<call>.request.yaml`, `<call>.response.yaml` or `<call>.error.txt`
FAILED a/3/finalize
  there is no `hooks/a/cases/3/finalize.request.yaml`
FAILED a/4/finalize
  hook `a` has no call `finalize`
  expected: `sync`
FAILED a/5/sync
  it has both `sync.response.yaml` and `sync.error.txt`: one of them is expected
FAILED a/6/sync
  `parent` is of the wrong type
  found: a number
  expected: an object
1 passed, 6 failed
";
    says(&syncwright(folder.path(), &["test"]), 1, printed, "");
}

#[test]
fn a_hook_that_does_not_compile_is_shown_once() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", "{% if %}\n"),
        ("hooks/a/cases/1/sync.request.yaml", PARENT),
        ("hooks/a/cases/2/sync.request.yaml", PARENT),
    ]);
    let said = syncwright(folder.path(), &["test"]);
    assert_eq!(said.code, 1);
    assert_eq!(
        said.out,
        "FAILED a/1/sync\n  its hook does not compile\nFAILED a/2/sync\n  its hook does not compile\n2 failed\n"
    );
    assert_eq!(said.err.matches("hooks/a/sync.yaml:1:").count(), 1, "{}", said.err);
}

#[test]
fn only_some_cases_can_be_run() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/one/sync.request.yaml", PARENT),
        ("hooks/a/cases/one/sync.response.yaml", ANSWER),
        ("hooks/a/cases/two/sync.request.yaml", PARENT),
    ]);
    let test = |pattern: &str| syncwright(folder.path(), &["test", "--only", pattern]);
    says(&test("a/one"), 0, "1 passed\n", "");
    assert_eq!(test("*/sync").code, 1);
    assert_eq!(test("a/*/finalize").code, 2);
    says(&test("three"), 2, "", "error: none of the 2 cases below `hooks` matches `three`\n");
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
