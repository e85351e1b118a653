//! No value, however odd, changes type, breaks the structure or is changed, wherever it is written.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value as Json, json};

use crate::template::{Budget, Context, Library};

/// Where a value keeps its type.
const TYPED: &str = r#"{% set v = parent.v %}
{% macro labels(v) %}
macro: {{ v }}
{% endmacro %}
{% set captured %}
captured: {{ v }}
{% endset %}
plain: {{ v }}
flow: [{{ v }}, {key: {{ v }}}]
list:
  - {{ v }}
  - - {{ v }}
anchored: &anchor {{ v }}
alias: *anchor
made: {{ {"inner": [v]} }}
kept: {{ [v, 1] | first }}
looked: {{ parent["v"] }}
{{ labels(v) -}}
{{ captured -}}
{% include "included.yaml" %}
{% filter trim %}
filtered: {{ v }}
{% endfilter %}

"#;

/// Where a value becomes text, or part of one. `V` stands for its text in the expected answer.
const TEXT: &[(&str, &str)] = &[
    ("double: \"{{ v }}\"", "V"),
    ("single: '{{ v }}'", "V"),
    ("tagged: !!str {{ v }}", "V"),
    ("between: before {{ v }} after", "before V after"),
    ("betweenQuoted: \"before {{ v }} after\"", "before V after"),
    ("twice: {{ v }}{{ v }}", "VV"),
    ("literal: |\n  before\n  {{ v }}\n  after", "before\nV\nafter\n"),
    ("folded: >-\n  before\n  {{ v }}\n  after", "before V after"),
    ("joined: {{ [\"<\", v, \">\"] | join }}", "<V>"),
    ("concatenated: {{ \"<\" ~ v ~ \">\" }}", "<V>"),
    ("captured: {{ block | trim | replace(\"=8=\", \"\") }}", "<V>"),
    ("capturedConcatenated: {{ block ~ \"\" }}", "<=8=V>"),
    ("capturedLooked: {{ (\"x\" ~ block)[1:] }}", "<=8=V>"),
    ("called: {{ shout(v) | replace(\"=8=\", \"\") }}", "<V>"),
];

fn text_template() -> String {
    let mut template = "{% set v = parent.v %}\n{% set block %}<=8={{ v }}>{% endset %}\n\
                        {% macro shout(v) %}<=8={{ v }}>{% endmacro %}\n"
        .to_string();
    for (line, _) in TEXT {
        template += line;
        template += "\n";
    }
    template + "keys:\n  {{ v }}: 1\nquotedKeys:\n  \"<{{ v }}>\": 1\n"
}

fn library(template: &str) -> Library {
    let sources = BTreeMap::from([
        ("t.yaml".to_string(), template.to_string()),
        ("included.yaml".to_string(), "included: {{ parent.v }}\n".to_string()),
    ]);
    Library::compile("hooks", sources).unwrap_or_else(|problems| panic!("{}", problems[0].page()))
}

fn render(library: &Library, value: &Json) -> Result<Json, String> {
    let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    context.set("parent", json!({"v": value}));
    let rendered = library.render(&["t.yaml".to_string()], context, &Budget::default());
    let mut documents = rendered.map_err(|problem| problem.page())?;
    if documents.len() == 1 {
        Ok(documents.remove(0).value)
    } else {
        Err(format!("{} documents", documents.len()))
    }
}

/// Whole floats are written as integers, wherever they are.
fn normal(value: &Json) -> Json {
    match value {
        Json::Number(number) => number
            .as_f64()
            .filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e18)
            .map_or_else(|| value.clone(), |float| json!(float as i64)),
        Json::Array(items) => items.iter().map(normal).collect(),
        Json::Object(map) => map.iter().map(|(key, inner)| (key.clone(), normal(inner))).collect(),
        other => other.clone(),
    }
}

fn survives_typed(library: &Library, value: &Json) -> Result<(), String> {
    let rendered = render(library, value)?;
    let v = normal(value);
    let expected = json!({
        "plain": v, "flow": [v, {"key": v}], "list": [v, [v]], "anchored": v, "alias": v,
        "made": {"inner": [v]}, "kept": v, "looked": v, "macro": v, "captured": v, "included": v, "filtered": v,
    });
    same(&rendered, &expected)
}

fn survives_as_text(library: &Library, value: &Json, text: &str) -> Result<(), String> {
    let rendered = render(library, value)?;
    let mut expected = Map::new();
    for (line, shape) in TEXT {
        let name = line.split(':').next().unwrap_or_default();
        expected.insert(name.to_string(), Json::String(shape.replace('V', text)));
    }
    expected.insert("keys".into(), json!({text: 1}));
    expected.insert("quotedKeys".into(), json!({format!("<{text}>"): 1}));
    same(&rendered, &Json::Object(expected))
}

fn same(rendered: &Json, expected: &Json) -> Result<(), String> {
    // As text: the order of keys counts.
    let (rendered, expected) = (rendered.to_string(), expected.to_string());
    if rendered == expected { Ok(()) } else { Err(format!("rendered {rendered}\nexpected {expected}")) }
}

/// Text that has broken templates before: what YAML reads as something else, structure, marks of this engine's own.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "yes",
    "no",
    "~",
    "null",
    "y",
    "on",
    "0x10",
    "0755",
    "1_000",
    "1e3",
    "72044e0",
    "123456789012345678901",
    ".5",
    ".inf",
    "12:30:45",
    "2024-01-01",
    "a: b",
    "- x",
    "x\ny: injected",
    "  leading and trailing  ",
    "---\nkind: Evil\n---",
    "\"quoted\" 'twice'",
    "# no comment",
    "{{ parent }} {% raw %}",
    "{a: [b}",
    "*alias &anchor !tag",
    "|\n  block",
    "\t tab",
    "\u{0}\u{1}",
    "\u{2028}\u{85}\u{feff}",
    "\u{e000}0\u{e001}",
    "\u{e000}",
    "é中😀",
    "\\n\\",
    "%d %s",
    "trailing\n\n",
    "\r\n",
];

// B39
#[test]
fn hostile_text_survives_in_every_position() {
    let (typed, text) = (library(TYPED), library(&text_template()));
    for hostile in HOSTILE {
        // `trim` is for the whitespace around a captured block; this text has none of its own there.
        survives_typed(&typed, &json!(hostile)).unwrap_or_else(|why| panic!("{hostile:?}: {why}"));
        survives_as_text(&text, &json!(hostile), hostile).unwrap_or_else(|why| panic!("{hostile:?}: {why}"));
    }
}

// B37, B40
#[test]
fn scalars_of_other_types_are_written_as_yaml_writes_them() {
    let text = library(&text_template());
    let scalars = [
        (json!(true), "true"),
        (json!(false), "false"),
        (json!(0), "0"),
        (json!(-7), "-7"),
        (json!(10_000_000), "10000000"),
        (json!(356_136_738), "356136738"),
        (json!(9_007_199_254_740_993_i64), "9007199254740993"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(i64::MIN), "-9223372036854775808"),
        (json!(1.0), "1"),
        (json!(-0.0), "0"),
        (json!(0.1), "0.1"),
        (json!(1.5e300), "1.5e+300"),
    ];
    for (value, written) in scalars {
        survives_as_text(&text, &value, written).unwrap_or_else(|why| panic!("{value}: {why}"));
    }
}

#[test]
fn null_maps_and_lists_have_no_text() {
    for value in [json!(null), json!({"a": 1}), json!([1])] {
        for line in [
            "\"{{ parent.v }}\"",
            "x{{ parent.v }}",
            "{{ \"x\" ~ parent.v }}",
            "!!str {{ parent.v }}",
            "{? {{ parent.v }} : 1}",
        ] {
            let page = render(&library(&format!("a: {line}\n")), &value).expect_err("it has no text");
            assert!(page.contains("cannot be"), "{line}: {page}");
        }
    }
}

#[test]
fn any_json_survives_in_every_typed_position() {
    let library = library(TYPED);
    run(json_values(), |value| survives_typed(&library, &value));
}

#[test]
fn any_text_survives_in_every_text_position() {
    let library = library(&text_template());
    run(any::<String>(), |text| survives_as_text(&library, &json!(text), &text));
}

/// A fixed seed, so that a failure is the same everywhere.
fn run<S: Strategy>(strategy: S, check: impl Fn(S::Value) -> Result<(), String>) {
    let config = Config { cases: 256, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome =
        runner.run(&strategy, |value| check(value).map_err(proptest::test_runner::TestCaseError::fail));
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn json_values() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_filter("JSON holds finite numbers", |float| float.is_finite()).prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        prop::sample::select(HOSTILE).prop_map(Json::from),
    ];
    scalar.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Json::Object(pairs.into_iter().collect())),
        ]
    })
}
