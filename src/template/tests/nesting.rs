//! However deep a template is built, it is compiled and rendered on a thread's usual stack, or refused by a bound's name.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::template::tests::cpu_time;
use crate::template::{Budget, Context, Library, Watching};

/// Each way to build deep: what comes first, what is repeated, the middle, what is repeated behind it, and the end.
const WAYS: &[[&str; 5]] = &[
    ["{% if 0 %}", "{% elif 1 %}", "", "", "{% endif %}"],
    ["", "{% if 1 %}", "", "{% endif %}", ""],
    ["", "{% for i in [1] %}", "", "{% endfor %}", ""],
    ["", "{% if 0 %}{% elif 0 %}{% else %}", "", "{% endif %}", ""],
    ["", "{% if 0 %}{% elif 1 %}", "", "{% endif %}", ""],
    ["", "{% set x %}", "", "{% endset %}", ""],
    ["", "{% with x = 1 %}", "", "{% endwith %}", ""],
    ["", "{% filter upper %}", "", "{% endfilter %}", ""],
    ["", "{% macro m() %}", "", "{% endmacro %}", ""],
    ["{% macro m() %}{% endmacro %}", "{% call m() %}", "", "{% endcall %}", ""],
    ["{{ parent", ".a", "", "", " | default(1) }}"],
    ["{{ parent", "['a']", "", "", " | default(1) }}"],
    ["{{ [1]", "[0:]", "", "", " }}"],
    ["{{ range", "()", "", "", " }}"],
    ["{{ 1", " | string", "", "", " }}"],
    ["{% filter upper", " | lower", "", "", " %}a{% endfilter %}"],
    ["{% set x", " | string", "", "", " %}a{% endset %}"],
    ["{{ 1", " is odd", "", "", " }}"],
    ["{{ 1", " is not odd", "", "", " }}"],
    ["{{ 'a'", " ~ parent.b", "", "", " }}"],
    ["{{ 1", " + 1", "", "", " }}"],
    ["{{ [1]", " + [1]", "", "", " }}"],
    ["{{ 1", " - 1", "", "", " }}"],
    ["{{ 1", " * 1", "", "", " }}"],
    ["{{ 1", " ** 1", "", "", " }}"],
    ["{{ 1", " and 1", "", "", " }}"],
    ["{{ 0", " or 0", "", "", " }}"],
    ["{{ 0", " < 1", "", "", " }}"],
    ["{{ 0", " in [0]", "", "", " }}"],
    ["{{ 0", " not in [1]", "", "", " }}"],
    ["{{ ", "not ", "1", "", " }}"],
    ["{{ ", "-", "1", "", " }}"],
    ["{{ ", "-(", "1", ")", " }}"],
    ["{{ ", "not (", "1", ")", " }}"],
    ["{{ ", "1 if 0 else ", "1", "", " }}"],
    ["{{ 1", " if 1", "", "", " }}"],
    ["{{ ", "(", "1", ")", " }}"],
    ["{{ ", "(1 + ", "1", ")", " }}"],
    ["{{ ", "(", "1", " + 1)", " }}"],
    ["{{ ", "(", "1", " ~ 1)", " }}"],
    ["{{ ", "(1 < ", "1", ")", " }}"],
    ["{{ ", "(1 < 2 + 'a' ~ -[", "1", "])", " }}"],
    ["{{ ", "[", "1", "]", " }}"],
    ["{{ ", "{'a': ", "1", "}", " }}"],
    ["{{ ", "{", "1", ": 1}", " }}"],
    ["{{ ", "parent[", "'a'", "]", " }}"],
    ["{{ ", "dict(a=", "1", ")", " }}"],
    ["{{ ", "1 | default(", "1", ")", " }}"],
    ["{{ ", "1 is eq(", "1", ")", " }}"],
    ["{% set ", "(", "x", ")", " = 1 %}"],
    ["{% for ", "(", "x", ")", " in [1] %}{% endfor %}"],
    ["{% with ", "(", "x", ")", " = 1 %}{% endwith %}"],
    ["{% set x = namespace() %}{% set x", ".a", "", "", " = 1 %}"],
    ["{% if ", "not ", "1", "", " %}{% endif %}"],
    ["{% for i in [1]", " + [1]", "", "", " %}{% endfor %}"],
    ["{% include 'a'", " ~ 'a'", "", "", " %}"],
];

fn built([first, again, middle, after, last]: &[&str; 5], times: usize) -> String {
    format!("{first}{}{middle}{}{last}\n", again.repeat(times), after.repeat(times))
}

/// What is said of a template that is not taken, or nothing. Whether a render of what is taken succeeds is no matter here.
fn refusal(text: String, watching: Watching) -> Option<String> {
    let sources = BTreeMap::from([("t.yaml".to_string(), text)]);
    let library = match Library::compile_watched("hooks", sources, watching) {
        Ok(library) => library,
        Err(problems) => return Some(problems[0].page()),
    };
    let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    context.set("parent", json!({"b": "b"}));
    let _ = library.render(&["t.yaml".to_string()], context, &Budget::default()).map(|documents| {
        documents.iter().for_each(|document| drop(document.place()));
    });
    None
}

#[test]
fn every_way_to_nest_is_bounded_by_name() {
    for way in WAYS {
        for watching in [Watching::Nothing, Watching::Branches] {
            let begin = cpu_time();
            let page = refusal(built(way, 30_000), watching).unwrap_or_default();
            let took = cpu_time() - begin;
            assert!(took < Duration::from_secs(1), "{way:?}: it took {took:?}");
            let named = page.contains("expected: at most ") || way[1] == "-" && page.contains("`-`");
            assert!(named, "{way:?}:\n{page}");
        }
    }
}

#[test]
fn what_is_just_within_the_bounds_fits_on_the_stack() {
    for way in WAYS {
        for watching in [Watching::Nothing, Watching::Branches] {
            let (mut most, mut least) = (1, 30_000);
            while most + 1 < least {
                let times = (most + least) / 2;
                let taken = refusal(built(way, times), watching).is_none();
                if taken { most = times } else { least = times }
            }
            assert!(most >= 10 || way[1] == "-", "{way:?}: only {most}");
        }
    }
}

#[test]
fn what_people_write_is_taken() {
    for (way, times) in [
        (["{{ 'a'", " ~ parent.b", "", "", " }}"], 150),
        (["{{ 1", " + 1", "", "", " }}"], 150),
        (["{{ 0", " or parent.b == 'a'", "", "", " }}"], 60),
        (["{{ parent", ".a", "", "", " | default(1) }}"], 100),
        (["{{ 1", " | string", "", "", " }}"], 100),
        (["{% if 0 %}", "{% elif parent.b == 'c' %}", "", "", "{% endif %}"], 90),
        (["", "{% if parent.b not in ['c'] %}", "", "{% endif %}", ""], 40),
        (["{{ ", "1 if parent.b == 'c' else ", "1", "", " }}"], 60),
        (["{{ ", "(1 + ", "1", ")", " }}"], 25),
        (["{{ ", "{'a': [", "1", "]}", " }}"], 14),
        (["{{ [", "parent.b ~ 'a', ", "1", "", "] }}"], 5_000),
        (["", "{% if parent.b ~ 'a' %}{% elif 1 %}{% endif %}", "", "", ""], 5_000),
        (["{{ dict(", "", "a=1", "", ") }}"], 1),
    ] {
        for watching in [Watching::Nothing, Watching::Branches] {
            assert_eq!(refusal(built(&way, times), watching), None, "{way:?}");
        }
    }
}
