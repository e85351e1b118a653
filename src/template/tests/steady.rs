//! The same input gives the same bytes, for ever, and leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::template::{Budget, Context, Library};

fn library(template: &str) -> Library {
    let sources = BTreeMap::from([("t.yaml".to_string(), template.to_string())]);
    Library::compile("hooks", sources).unwrap_or_else(|problems| panic!("{}", problems[0].page()))
}

fn render(library: &Library, parent: Json) -> Result<String, String> {
    let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    context.set("parent", parent);
    let documents = library.render(&["t.yaml".to_string()], context, &Budget::default());
    documents
        .map(|documents| documents.iter().map(|document| document.value.to_string()).collect())
        .map_err(|problem| problem.page())
}

// B11
#[test]
fn a_map_of_twenty_keys_comes_out_in_its_order_a_thousand_times() {
    let library = library(
        "{% for key, value in parent | items %}\n{{ key }}: {{ value }}\n{% endfor %}\nwhole: {{ parent }}\n\
         made: {{ dict(parent, z=1, a=2) }}\nchained: {{ parent | chain({\"b\": 1, \"a\": 2}) }}\n",
    );
    let keys = (0..20).map(|n| format!("k{}", (n * 7) % 20));
    let parent: Json = keys.clone().map(|key| (key, json!(1))).collect::<serde_json::Map<_, _>>().into();
    let first = render(&library, parent.clone()).expect("it renders");
    let order: Vec<usize> =
        keys.map(|key| first.find(&format!("\"{key}\"")).expect("every key is there")).collect();
    assert!(order.is_sorted(), "{first}");
    for _ in 0..1000 {
        assert_eq!(render(&library, parent.clone()).expect("it renders"), first);
    }
}

#[test]
fn the_revision_is_that_of_names_and_texts() {
    let of = |sources: &[(&str, &str)]| {
        let sources = sources.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        Library::compile("hooks", sources).expect("it compiles").revision().to_string()
    };
    assert_eq!(of(&[("a.yaml", "x: 1")]), of(&[("a.yaml", "x: 1")]));
    assert_ne!(of(&[("a.yaml", "x: 1")]), of(&[("a.yaml", "x: 2")]));
    assert_ne!(of(&[("a.yaml", "x: 1")]), of(&[("b.yaml", "x: 1")]));
    assert_ne!(of(&[("a", "b"), ("c", "")]), of(&[("a", ""), ("c", "b")]));
}

// B128
#[test]
fn renders_leave_nothing_behind() {
    let good = library(
        "{% set ns = namespace(l=[]) %}{% macro m(x) %}{{ x }}{% endmacro %}\
         {% for i in range(5) %}{% set ns.l = ns.l + [parent.big ~ i] %}{% endfor %}\na: {{ m(parent.big) }}\nb: {{ ns.l | length }}\n",
    );
    let bad = library("{% set kept = parent.big ~ 'x' %}\na: {{ kept }}\nb: {{ parent.typo }}\n");
    let run = || {
        let parent = json!({"big": "x".repeat(1 << 20)});
        render(&good, parent.clone()).expect("it renders");
        render(&bad, parent).expect_err("it does not");
    };
    run();
    let before = resident_mebibytes();
    for _ in 0..200 {
        run();
    }
    // Each turn handles some 10 MiB; a tenth of one kept would show. Other tests run beside this one.
    assert!(resident_mebibytes() < before + 150, "{before} MiB before, {} MiB after", resident_mebibytes());
}

fn resident_mebibytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|pages| pages.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 256
}

#[test]
fn a_library_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Library>();
}
