//! `syncwright test`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{ANSWER, PARENT, SYNC, folder, says, syncwright};

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
    says(&said, 0, "wrote hooks/a/cases/typo/sync.error.txt: what it expects is an error\n1 accepted\n", "");
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
fn several_patterns_pick_what_any_of_them_means() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/one/sync.request.yaml", PARENT),
        ("hooks/a/cases/one/sync.response.yaml", ANSWER),
        ("hooks/a/cases/three/sync.request.yaml", PARENT),
        ("hooks/a/cases/two/sync.request.yaml", PARENT),
        ("hooks/a/cases/two/sync.response.yaml", ANSWER),
    ]);
    let said = syncwright(folder.path(), &["test", "--only", "one", "--only", "a/two"]);
    says(&said, 0, "2 passed\n", "");
    let said = syncwright(folder.path(), &["test", "--only", "four", "--only", "five"]);
    says(&said, 2, "", "error: none of the 3 cases below `hooks` matches `four` or `five`\n");
}

#[test]
fn reports_are_written_beside_the_text_or_in_its_place() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/one/sync.request.yaml", PARENT),
        ("hooks/a/cases/one/sync.response.yaml", &ANSWER.replace("Running", "Pending")),
        ("hooks/b/sync.yaml", "{% if %}\n"),
    ]);
    let said = syncwright(folder.path(), &["test", "--junit", "report.xml", "--json", "report.json"]);
    assert_eq!(said.code, 1);
    assert!(said.out.starts_with("FAILED a/one/sync\n"), "{}", said.out);
    let xml = fs::read_to_string(folder.path().join("report.xml")).unwrap();
    let failure = "<failure message=\"status.phase: expected &quot;Pending&quot;, got &quot;Running&quot;\">";
    assert!(xml.contains(failure), "{xml}");
    assert!(xml.contains("<testcase classname=\"compile\" name=\"hooks/b/sync.yaml\">"), "{xml}");
    let written = fs::read_to_string(folder.path().join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&report["failed"], &report["cases"][0]["verdict"]), (&1.into(), &"failed".into()));
    assert_eq!(report["problems"][0]["place"]["file"], "hooks/b/sync.yaml");

    let said = syncwright(folder.path(), &["test", "--json", "-"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["failed"], 1);
    let said = syncwright(folder.path(), &["test", "--junit", "nowhere/report.xml"]);
    assert_eq!(said.code, 2);
    assert!(said.err.starts_with("error: `nowhere/report.xml` cannot be written"), "{}", said.err);
}

/// The shipped hooks in under a second in all, and hundreds of cases a second, also in a debug build.
#[test]
fn many_cases_are_all_run() {
    let folder = folder(&[("hooks/a/sync.yaml", SYNC)]);
    for number in 0..1000 {
        let case = folder.path().join(format!("hooks/a/cases/{number}"));
        fs::create_dir_all(&case).unwrap();
        fs::write(case.join("sync.request.yaml"), PARENT).unwrap();
        fs::write(case.join("sync.response.yaml"), ANSWER).unwrap();
    }
    let said = syncwright(folder.path(), &["test", "--json", "-"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["passed"], 1000);
}

#[test]
fn the_shipped_hooks_pass() {
    let said = syncwright(Path::new(env!("CARGO_MANIFEST_DIR")), &["test", "--json", "-"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["failed"], 0);
}

#[test]
fn branches_that_no_case_takes_are_told() {
    let template = "{% if parent.spec.phase == 'Running' %}\nstatus: {up: true}\n{% else %}\nstatus: {up: false}\n{% endif %}\n{% for x in parent.spec.list | default([]) %}\n{% endfor %}\n";
    let folder = folder(&[
        ("hooks/a/sync.yaml", template),
        ("hooks/a/cases/one/sync.request.yaml", PARENT),
        ("hooks/a/cases/one/sync.response.yaml", "status: {up: true}\nchildren: []\n"),
        ("hooks/b/sync.yaml", SYNC),
    ]);
    let printed = "\
1 passed
hooks/a/sync.yaml: 2 of 4 branches
  1:7: `parent.spec.phase == 'Running'` was never false
  6:13: `parent.spec.list | default([])` never had an item
2 of 4 branches taken
";
    says(&syncwright(folder.path(), &["test", "--coverage"]), 0, printed, "");
    let said = syncwright(folder.path(), &["test", "--coverage", "--json", "-"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["coverage"]["taken"], &report["coverage"]["branches"]), (&2.into(), &4.into()));
    assert_eq!(report["coverage"]["files"][0]["untaken"][1]["line"], 6);
}

#[test]
fn line_ends_of_an_expected_page_are_no_difference() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", "{{ fail('no') }}\n"),
        ("hooks/a/cases/fails/sync.request.yaml", PARENT),
    ]);
    assert_eq!(syncwright(folder.path(), &["test", "--accept"]).code, 0);
    let file = folder.path().join("hooks/a/cases/fails/sync.error.txt");
    let page = fs::read_to_string(&file).unwrap();
    fs::write(&file, page.replace('\n', "\r\n")).unwrap();
    says(&syncwright(folder.path(), &["test"]), 0, "1 passed\n", "");
}

#[test]
fn an_expected_answer_is_one_document() {
    let documents = "status: {phase: Running}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/many/sync.request.yaml", PARENT),
        ("hooks/a/cases/many/sync.response.yaml", documents),
        ("hooks/a/cases/none/sync.request.yaml", PARENT),
        ("hooks/a/cases/none/sync.response.yaml", ""),
    ]);
    let printed = "\
FAILED a/many/sync
  `hooks/a/cases/many/sync.response.yaml` holds 2 documents
  expected: one, with the children in a list: `children: […]`
  hint: `--accept` writes what the case gets now: read it
FAILED a/none/sync
  `hooks/a/cases/none/sync.response.yaml` is empty
  expected: the whole answer
  hint: `--accept` writes what the case gets now: read it
2 failed
";
    says(&syncwright(folder.path(), &["test"]), 1, printed, "");
    assert_eq!(syncwright(folder.path(), &["test", "--accept"]).code, 0);
    says(&syncwright(folder.path(), &["test"]), 0, "2 passed\n", "");
}

#[test]
fn a_case_without_a_request_is_no_case_that_passes() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/empty/README.md", "Later.\n"),
        ("hooks/a/cases/runs/sync.request.yaml", PARENT),
        ("hooks/a/cases/runs/sync.response.yaml", ANSWER),
    ]);
    let printed = "\
FAILED a/empty
  `hooks/a/cases/empty` holds no request
  expected: `<call>.request.yaml`, such as `sync.request.yaml`
1 passed, 1 failed
";
    says(&syncwright(folder.path(), &["test"]), 1, printed, "");
}

#[test]
fn children_beside_a_parent_that_stands_alone_are_not_passed_over() {
    let request = format!("{PARENT}children: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: x}}}}]\n");
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/runs/sync.request.yaml", &request),
        ("hooks/a/cases/runs/sync.response.yaml", ANSWER),
    ]);
    let said = syncwright(folder.path(), &["test"]);
    let expected = "`children` stands beside the parent's own fields, where it is one of them\n  \
                    hint: put the parent below `parent:`, and `children:` beside that\n";
    assert!(said.code == 1 && said.out.contains(expected), "{}", said.out);
}

#[test]
fn hooks_are_chosen_by_name_or_folder() {
    let folder = folder(&[
        ("hooks/a/sync.yaml", SYNC),
        ("hooks/a/cases/runs/sync.request.yaml", PARENT),
        ("hooks/a/cases/runs/sync.response.yaml", ANSWER),
        ("hooks/ab/sync.yaml", SYNC),
        ("hooks/ab/cases/runs/sync.request.yaml", PARENT),
    ]);
    for hook in ["a", "hooks/a", "hooks/a/"] {
        says(&syncwright(folder.path(), &["test", hook]), 0, "1 passed\n", "");
    }
    let err = "error: there is no hook `abc` below `hooks`; hint: did you mean `ab`?\n";
    says(&syncwright(folder.path(), &["test", "abc"]), 2, "", err);
}
