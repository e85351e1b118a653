//! What the shelf's parts promise each other; what it promises the world is tested over HTTP.

use serde_json::json;

use crate::hook::local::{Given, Reason, Shelf, to_yaml};
use crate::template::yaml;

// B117
#[test]
fn a_render_that_panics_is_refused_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for (hook, text) in [("bad", "status: {{ parent.spec | panic }}"), ("good", "status: {a: 1}")] {
        std::fs::create_dir(folder.path().join(hook)).expect("a folder");
        std::fs::write(folder.path().join(hook).join("sync.yaml"), text).expect("a file");
    }
    let shelf = Shelf::open(folder.path());
    let parent = br#"{"apiVersion": "a.b/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"n": 1}}"#;
    let given = || Given { now: "2026-01-01T00:00:00Z".parse().expect("a time"), entropy: [0; 32] };
    for _ in 0..3 {
        let refusal = shelf.answer("bad", "sync", parent, given()).expect_err("it panics");
        assert_eq!(refusal.reason, Reason::Panicked);
        assert!(shelf.answer("good", "sync", parent, given()).is_ok());
    }
}

#[test]
fn an_answer_as_yaml_reads_as_the_same_answer() {
    let texts = [
        "",
        " a ",
        "#a",
        "%a",
        "- a",
        "---",
        "...",
        "1.",
        "+1",
        "0.0",
        "0755",
        "0b101",
        "0o17",
        "0x1F",
        "1_000",
        "1e3",
        "12:30:00",
        "190:20:30",
        "2026-01-01",
        "<<",
        "=",
        "@a",
        "False",
        "NULL",
        "`a",
        "a #b",
        "a: b",
        "a:",
        "y",
        "n",
        "yes",
        "on",
        "null",
        "nUll",
        "~",
        ".inf",
        ".nan",
        "{a}",
        "[a]",
        "|",
        ">",
        "!a",
        "&a",
        "*a",
        "?",
        "'",
        "\"",
        "\\",
        "x\ny",
        "x\ny\n",
        "\nx",
        "  x\ny",
        "x\n\n",
        "\t",
        "\r\n",
        "é",
        "a\u{2028}b",
        "a\u{85}b",
        "\u{feff}a",
        "\u{0}",
        "\u{7f}",
        "\u{e000}0\u{e001}",
    ];
    for text in texts {
        let answer = json!({"status": {text: text, "list": [text, [text]]}, "n": [1, -1, 1.5, u64::MAX, true, null, {}, []]});
        let written = to_yaml(&answer);
        let read =
            yaml::read("answer", &written).unwrap_or_else(|problem| panic!("{}\n{written}", problem.page()));
        assert_eq!(read[0].value, answer, "{text:?} is written as\n{written}");
    }
}
