//! A template that would run for ever, or fill the memory, ends soon with a problem that names the budget.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::template::tests::cpu_time;
use crate::template::{Budget, Context, Library};

fn page_of(sources: &[(&str, &str)], budget: &Budget) -> String {
    let sources = sources.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let library =
        Library::compile("hooks", sources).unwrap_or_else(|problems| panic!("{}", problems[0].page()));
    let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    context.set("parent", json!({"big": "x".repeat(1 << 20), "list": vec![1; 1000]}));
    let begin = cpu_time();
    let rendered = library.render(&["t.yaml".to_string()], context, budget);
    let took = cpu_time() - begin;
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    rendered.expect_err("a budget is crossed").page()
}

fn page(template: &str) -> String {
    page_of(&[("t.yaml", template)], &Budget::default())
}

#[track_caller]
fn names(budget: &str, page: &str) {
    let headline = page.lines().next().unwrap_or_default();
    let named = headline.contains(&format!("over its budget of {budget}"))
        || headline.contains("more than ") && headline.ends_with(budget);
    assert!(named, "{page}");
    assert!(headline.starts_with("hooks/"), "{page}");
}

// B52
#[test]
fn a_range_of_a_thousand_million_is_refused() {
    let page = page("{% for i in range(10**9) %}\n- {{ i }}\n{% endfor %}\n");
    assert!(page.contains("`range` makes too long a list"), "{page}");
}

#[test]
fn loops_in_loops_run_out_of_steps() {
    names(
        "steps",
        &page("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}\n"),
    );
}

#[test]
fn a_huge_repeated_text_is_refused_before_it_is_made() {
    names("steps", &page("a: {{ 'x' * 10**9 }}\n"));
    names("steps", &page("a: {{ 'x' * 10**18 }}\n"));
    names("output", &page("a: {{ [1] * 10**18 }}\n"));
}

#[test]
fn text_that_doubles_runs_out_of_steps() {
    let doubling = "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}a: 1\n";
    names("steps", &page(doubling));
}

#[test]
fn macros_that_never_end_run_out_of_recursion() {
    names("recursion", &page("{% macro m() %}{{ m() }}{% endmacro %}\na: {{ m() }}\n"));
}

#[test]
fn files_that_include_themselves_run_out_of_recursion() {
    let page = page_of(
        &[("t.yaml", "{% include 'u.yaml' %}"), ("u.yaml", "{% include 't.yaml' %}")],
        &Budget::default(),
    );
    names("recursion", &page);
}

#[test]
fn loops_that_call_themselves_run_out_of_recursion() {
    names("recursion", &page("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}\n"));
}

#[test]
fn a_value_written_many_times_runs_out_of_output() {
    names("output", &page("{% for i in range(1000) %}\n- {{ parent.big }}\n{% endfor %}\n"));
    names("output", &page("{% for i in range(1000) %}\n- \"{{ parent.big }}\"\n{% endfor %}\n"));
    names("output", &page("a: &a {{ parent.big }}\nb: [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"));
    names(
        "output",
        &page(
            "{% set x %}{% for i in range(20) %}{{ parent.big }}{% endfor %}{% endset %}\na: {{ x | length }}\n",
        ),
    );
}

#[test]
fn too_many_documents_are_refused() {
    names("documents", &page("{% for i in range(20000) %}\n---\na: 1\n{% endfor %}\n"));
}

#[test]
fn documents_of_several_files_are_counted_together() {
    let text = "a: 1\n---\nb: 1\n".to_string();
    let sources = BTreeMap::from([("a.yaml".to_string(), text.clone()), ("b.yaml".to_string(), text)]);
    let library = Library::compile("hooks", sources).expect("it compiles");
    let context = || Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    let files = ["a.yaml".to_string(), "b.yaml".to_string()];
    let render = |documents| library.render(&files, context(), &Budget { documents, ..Budget::default() });
    assert_eq!(render(4).map(|documents| documents.len()), Ok(4));
    let problem = render(3).expect_err("there are four");
    assert_eq!(problem.to_string(), "hooks/b.yaml:3:1: more than 3 documents");
}

// B52
#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_string();
    for (name, inner) in ('b'..='i').zip('a'..) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{inner}"); 9].join(", "));
    }
    names("values copied by aliases", &page(&bomb));
}

// B52
#[test]
fn deep_nesting_is_refused_wherever_it_comes_from() {
    let text = format!("a: {}{}\n", "[".repeat(500), "]".repeat(500));
    names("levels of nesting", &page(&text));
    let dashes = "{% for i in range(500) %}- {% endfor %}x\n";
    names("levels of nesting", &page(dashes));
    let kept =
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}a: 1\n";
    assert!(page(kept).contains("nested deeper than 128 levels"));
    let added = "{% set ns = namespace(x=[]) %}{% for i in range(9000) %}{% set ns.x = [ns.x] + [] %}{% endfor %}a: 1\n";
    assert!(page(added).contains("nested deeper than 128 levels"));
    let set: String = "{% set x = [x | default(1)] %}".repeat(2000);
    assert!(page(&(set + "\na: 1\n")).contains("nested deeper than 128 levels"));
    let brackets = format!("{{% set x = {}{} %}}\na: 1\n", "[".repeat(10_000), "]".repeat(10_000));
    let problems =
        Library::compile("hooks", BTreeMap::from([("t.yaml".into(), brackets)])).expect_err("it is too deep");
    assert!(problems[0].page().contains("nested too deep"), "{}", problems[0].page());
}

// B52: a map that holds another one twice is small, and what is made of it doubles with each turn.
#[test]
fn values_that_double_by_being_shared_are_refused_wherever_they_are_looked_through() {
    let doubled =
        "{% set ns = namespace(m=1) %}{% for i in range(60) %}{% set ns.m = DOUBLED %}{% endfor %}a: 1\n";
    for shape in ["[ns.m, ns.m]", "{'a': ns.m, 'b': ns.m}", "[{'a': [ns.m]}, ns.m]", "dict(a=ns.m, b=ns.m)"] {
        names("output", &page(&doubled.replace("DOUBLED", shape)));
    }
    // What is handed on by calls is kept by nobody.
    let handed = "{% macro m(x, depth) %}{% if depth %}{{ m([x, x], depth - 1) }}{% else %}USE{% endif %}{% endmacro %}{{ m(1, 30) }}\n";
    for used in [
        "a: {{ x }}",
        "a: {{ x | to_json }}",
        "a: {{ x | to_yaml | length }}",
        "a: {{ x == [1] }}",
        "{% for y in x %}a{% endfor %}",
        "a: {{ [x] | sort }}",
        "a: {{ [x, x] | unique }}",
    ] {
        names("output", &page(&handed.replace("USE", used)));
    }
}

// B52
#[test]
fn long_text_that_is_put_in_many_times_is_refused_before_it_is_made() {
    names("steps", &page("a: {{ range(100000) | join(parent.big) | length }}\n"));
    names("steps", &page("a: {{ ('%(a)s' * 1000) | format(a=parent.big) | length }}\n"));
    names("steps", &page("a: {{ ('%s' * 1000) | format(*([parent.big] * 1000)) | length }}\n"));
    assert!(
        page("a: {{ '%s' | format([parent.big] * 1000) }}\n")
            .contains("a list cannot be written inside text")
    );
    names("steps", &page("a: {{ ('a\\n' * 30000) | indent(100000) | length }}\n"));
    names("steps", &page("a: {{ ('a\\n' * 30000) | indent(width=10**18) | length }}\n"));
    names("steps", &page("a: {{ dns_name(*([parent.big] * 1000)) }}\n"));
    names("output", &page("a: {{ ([parent.big] * 1000) | to_json | length }}\n"));
    names("output", &page("a: {{ ([parent.big] * 1000) | to_yaml | length }}\n"));
    names("output", &page("a: {{ ([parent] * 1000) | to_json | length }}\n"));
}

#[test]
fn a_namespace_cannot_hold_itself() {
    let page = page("{% set ns = namespace(x=1) %}{% set ns.x = [ns] %}a: 1\n");
    assert!(page.contains("a namespace cannot be kept in a namespace"), "{page}");
}

#[test]
fn long_lists_made_item_by_item_are_fine() {
    let library = Library::compile(
        "hooks",
        BTreeMap::from([(
            "t.yaml".to_string(),
            "{% set ns = namespace(l=[]) %}{% for i in range(200) %}{% set ns.l = ns.l + [i] %}{% endfor %}\na: {{ ns.l | sum }}\n"
                .to_string(),
        )]),
    );
    let context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    let documents = library
        .expect("it compiles")
        .render(&["t.yaml".to_string()], context, &Budget::default())
        .unwrap_or_else(|problem| panic!("{}", problem.page()));
    assert_eq!(documents[0].value, json!({"a": 19_900}));
}

#[test]
fn time_is_a_budget_of_its_own() {
    let budget = Budget { time: Duration::from_millis(20), fuel: u64::MAX / 128, ..Budget::default() };
    let template = "{% for i in range(100000) %}{% for j in range(100000) %}{% if parent.big == parent.big ~ 'x' %}{% endif %}{% endfor %}{% endfor %}";
    names("time", &page_of(&[("t.yaml", template)], &budget));
}

// B127
#[test]
fn time_in_which_a_render_waits_for_a_core_is_not_counted() {
    let template =
        "a: {{ 200 | wait_for_a_core }}\n{% for i in range(100) %}\nk{{ i }}: {{ i + 1 }}\n{% endfor %}\n";
    let sources = BTreeMap::from([("t.yaml".to_string(), template.to_string())]);
    let library = Library::compile("hooks", sources).expect("it compiles");
    let budget = Budget { time: Duration::from_millis(100), ..Budget::default() };
    let context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    let documents = library.render(&["t.yaml".to_string()], context, &budget);
    let documents = documents.unwrap_or_else(|problem| panic!("{}", problem.page()));
    assert_eq!(documents[0].value["k99"], 100);
}

#[test]
fn every_budget_can_be_set_for_one_render() {
    let fuel = Budget { fuel: 500, ..Budget::default() };
    names("steps", &page_of(&[("t.yaml", "{% for i in range(1000) %}{{ i }}{% endfor %}")], &fuel));
    let recursion = Budget { recursion: 20, ..Budget::default() };
    names(
        "recursion",
        &page_of(
            &[("t.yaml", "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(10) }}")],
            &recursion,
        ),
    );
    let output = Budget { output_bytes: 100, ..Budget::default() };
    names("output", &page_of(&[("t.yaml", "a: {{ parent.list }}\n")], &output));
    let documents = Budget { documents: 2, ..Budget::default() };
    names("documents", &page_of(&[("t.yaml", "a: 1\n---\nb: 1\n---\nc: 1\n")], &documents));
}
