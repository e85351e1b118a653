use std::fs;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{Document, read};
use crate::template::tests::cpu_time;

/// What this reader does on purpose where kubectl (sigs.k8s.io/yaml 1.6) does something else: case, here, why.
const DIFFERENCES: &[(&str, Here, &str)] = &[
    ("duplicate keys", Here::Refused, "kubectl takes the last one and says nothing"),
    ("dup nested", Here::Refused, "kubectl takes the last one and says nothing"),
    ("empty", Here::Nothing, "no document is nothing, not null"),
    ("comment only", Here::Nothing, "an empty document is nothing, not null"),
    ("doc with comment only", Here::Reads(r#"{"a":1}"#), "an empty document is nothing, not null"),
    (
        "quoted",
        Here::Reads(r#"{"a":"x\nyé\t","b":"it's","c":"A/","d":"ab"}"#),
        r"`\/` is an escape of YAML 1.2 and JSON",
    ),
    ("surrogate", Here::Reads(r#"{"a":"😀"}"#), "surrogate pairs are escapes of JSON"),
    ("deep", Here::Refused, "nesting is bounded at 100"),
];

enum Here {
    Refused,
    Nothing,
    Reads(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Case {
    name: String,
    text: String,
}

#[derive(Deserialize)]
struct Kubectl {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "JSON")]
    json: Option<String>,
}

fn recorded<T: for<'de> Deserialize<'de>>(file: &str) -> Vec<T> {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).expect("the recorded cases are in tests/data");
    text.lines().map(|line| serde_json::from_str(line).expect("a recorded case is JSON")).collect()
}

fn first(text: &str) -> Result<Option<Json>, String> {
    let documents = read("a.yaml", text).map_err(|problem| problem.page())?;
    Ok(documents.into_iter().next().map(|document| document.value))
}

fn document(text: &str) -> Document {
    let mut documents = read("a.yaml", text).expect("the text is YAML");
    assert_eq!(documents.len(), 1, "one document in {text:?}");
    documents.remove(0)
}

fn page(text: &str) -> String {
    read("a.yaml", text).expect_err("the text is refused").page()
}

/// Numbers as doubles where one of them is not an integer: `-0` and `0`, `1e20` and its digits are the same number.
fn same(here: &Json, there: &Json) -> bool {
    match (here, there) {
        (Json::Number(a), Json::Number(b)) => {
            a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => here == there,
    }
}

// B39
#[test]
fn every_recorded_quirk_reads_as_kubectl_reads_it_or_is_a_stated_difference() {
    let cases: Vec<Case> = recorded("yaml-cases.jsonl");
    let answers: Vec<Kubectl> = recorded("yaml-kubectl.jsonl");
    assert_eq!(cases.len(), 76);
    let mut wrong = Vec::new();
    for (case, kubectl) in cases.iter().zip(&answers) {
        assert_eq!(case.name, kubectl.name, "the two files are in the same order");
        let here = first(&case.text);
        let stated = DIFFERENCES.iter().find(|(name, ..)| *name == case.name);
        let expected = match stated {
            Some((_, Here::Refused, _)) => None,
            Some((_, Here::Nothing, _)) => Some(None),
            Some((_, Here::Reads(json), _)) => {
                Some(Some(serde_json::from_str(json).expect("the table holds JSON")))
            }
            None => kubectl
                .json
                .as_ref()
                .map(|json| Some(serde_json::from_str(json).expect("kubectl prints JSON"))),
        };
        let agrees = match (&here, &expected) {
            (Err(_), None) | (Ok(None), Some(None)) => true,
            (Ok(Some(here)), Some(Some(there))) => same(here, there),
            _ => false,
        };
        if !agrees {
            wrong.push(format!("{}: read {here:?}, expected {expected:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// B40
#[test]
fn integers_are_exact_to_64_bits() {
    let text = "a: 9007199254740993\nb: 18446744073709551615\nc: -9223372036854775808\nd: 10000000\n";
    assert_eq!(
        document(text).value.to_string(),
        r#"{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808,"d":10000000}"#
    );
}

#[test]
fn keys_keep_their_order() {
    assert_eq!(
        document("z: 1\na: 2\nm: {x: 1, b: 2}\n").value.to_string(),
        r#"{"z":1,"a":2,"m":{"x":1,"b":2}}"#
    );
}

#[test]
fn documents_are_split_and_empty_ones_dropped() {
    let documents =
        read("a.yaml", "---\n# nothing\n---\na: 1\n---\n---\nb: 2\n---\n").expect("the text is YAML");
    let values: Vec<_> = documents.iter().map(|document| document.value.clone()).collect();
    assert_eq!(values, [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(documents[1].places.start().to_string(), "a.yaml:7:1");
}

#[test]
fn a_null_document_that_is_written_out_is_a_document() {
    assert_eq!(document("~\n").value, Json::Null);
}

#[test]
fn every_field_has_its_place() {
    let text = "# a stateful set\nkind: StatefulSet\nspec:\n  ports:\n  - name: a\n    port: 1\n  - {name: b, port: 2}\n  é: [x, y]\n";
    let document = document(text);
    let place = |path: &[&str]| document.places.place(path).expect("known").to_string();
    assert_eq!(document.places.start().to_string(), "a.yaml:2:1");
    assert_eq!(place(&["kind"]), "a.yaml:2:1");
    assert_eq!(place(&["spec", "ports"]), "a.yaml:4:3");
    assert_eq!(place(&["spec", "ports", "0"]), "a.yaml:5:5");
    assert_eq!(place(&["spec", "ports", "0", "port"]), "a.yaml:6:5");
    assert_eq!(place(&["spec", "ports", "1", "port"]), "a.yaml:7:15");
    assert_eq!(place(&["spec", "é", "1"]), "a.yaml:8:10");
}

#[test]
fn a_path_that_ends_early_gives_its_nearest_parent() {
    let document = document("a: &x\n  b: {c: 1}\nd: *x\n");
    let place = |path: &[&str]| document.places.place(path).expect("known").to_string();
    assert_eq!(place(&["a", "b", "nothing", "here"]), "a.yaml:2:3");
    assert_eq!(place(&["d", "b", "c"]), "a.yaml:3:1");
    assert_eq!(place(&["zzz"]), "a.yaml:1:1");
}

#[test]
fn merged_keys_are_placed_at_the_merge() {
    let document = document("base: &b {x: 1, z: 2}\nd:\n  <<: *b\n  z: 3\n  w: 4\n");
    assert_eq!(document.value["d"], json!({"z": 3, "w": 4, "x": 1}));
    let place = |path: &[&str]| document.places.place(path).expect("known").to_string();
    assert_eq!(place(&["d", "x"]), "a.yaml:3:3");
    assert_eq!(place(&["d", "w"]), "a.yaml:5:3");
}

#[test]
fn a_key_before_the_merge_that_replaces_it_is_refused() {
    assert_eq!(
        page("base: &b {x: 1}\nd:\n  x: 2\n  <<: *b\n"),
        "a.yaml:4:3: `<<` brings the key `x` again\n   |\n 4 |   <<: *b\n   |   ^^\nfound: the first one at a.yaml:3:3\nhint: write `<<` before the keys that replace its own"
    );
}

// B51
#[test]
fn a_key_given_twice_names_both_lines() {
    assert_eq!(
        page("metadata:\n  name: a\n  labels: {}\n  name: b\n"),
        "a.yaml:4:3: the key `name` is given twice in this map\n   |\n 4 |   name: b\n   |   ^^^^\nfound: the first one at a.yaml:2:3"
    );
}

#[test]
fn common_slips_say_what_to_do() {
    let slips = [
        ("a:\n  b: 1\n\tc: 2\n", "a.yaml:3:1: a tab is used for indentation", "indent with spaces"),
        (
            "name: {{ x }}\n",
            "a.yaml:1:8: this file is no template: nothing is computed in it",
            "write the value itself; of a chart, give the output of `helm template`",
        ),
        (
            "b: {% if x %}\n",
            "a.yaml:1:5: this file is no template: nothing is computed in it",
            "write the value itself; of a chart, give the output of `helm template`",
        ),
        ("a:\n\tb: 1\n", "a.yaml:2:2: a tab is used for indentation", "indent with spaces"),
        (
            "a: b: c\n",
            "a.yaml:1:5: a second `: ` in one line",
            "if it belongs to the value, put the value in quotes",
        ),
        ("a: \"x\nb: 1\n", "a.yaml:1:4: a quoted text does not end", ""),
        ("a: @x\n", "a.yaml:1:4: a plain value cannot begin with `@`", "put the value in quotes"),
        (
            "a: 1\nfoo\nb: 2\n",
            "a.yaml:2:1: this line is neither a key nor part of a value",
            "is a `:` missing, or some indentation?",
        ),
        (
            "a:\n  b: 1\n c: 2\n",
            "a.yaml:3:2: a key is expected here",
            "is this line indented like the ones it belongs to?",
        ),
        ("a: 'x' y\n", "a.yaml:1:8: text after the closing quote", "quote the whole value, or none of it"),
        (
            "a: \"\\d\"\n",
            "a.yaml:1:4: an unknown escape in double quotes",
            r"write `\\` for a backslash, or use single quotes",
        ),
    ];
    for (text, headline, hint) in slips {
        let problem = read("a.yaml", text).expect_err("a slip is refused");
        let page = problem.page();
        assert_eq!(page.lines().next(), Some(headline), "{page}");
        assert_eq!(problem.hint.as_deref().unwrap_or_default(), hint, "{page}");
    }
}

#[test]
fn a_byte_order_mark_moves_no_place() {
    assert_eq!(document("\u{feff}a: 1\nb: 2\n").value, json!({"a": 1, "b": 2}));
    assert!(page("\u{feff}a: 1\na: 2\n").starts_with("a.yaml:2:1: the key `a`"));
}

// B52
#[test]
fn alias_bombs_end_at_once() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_string();
    for (name, inner) in ('b'..='i').zip('a'..) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{inner}"); 9].join(", "));
    }
    let begin = cpu_time();
    assert!(page(&bomb).starts_with("a.yaml:5:"), "{}", page(&bomb));
    assert!(page(&bomb).contains("more than 10000 values copied by aliases"));
    assert!(cpu_time() - begin < Duration::from_secs(1));
}

#[test]
fn aliases_cannot_nest_deeper_than_text_can() {
    let open = "[".repeat(60);
    let close = "]".repeat(60);
    let text = format!("a: &a {open}{close}\nb: {open}*a{close}\n");
    assert!(page(&text).contains("more than 100 levels of nesting"));
}

#[test]
fn nesting_is_bounded_in_every_style() {
    let flow = format!("a: {}{}", "[".repeat(50_000), "]".repeat(50_000));
    let dashes = format!("a:\n{}x", "- ".repeat(5_000));
    let keys: String = (0..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for text in [flow, dashes, keys] {
        let begin = cpu_time();
        assert!(page(&text).contains("more than 100 levels of nesting"));
        assert!(cpu_time() - begin < Duration::from_secs(1));
    }
}
