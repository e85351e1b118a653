//! A problem's page goes to logs and conditions: no value of data is ever in it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use crate::template::{Budget, Context, Library};

/// Ways to fail with a secret at hand. `S` is its look-up. Functions that read formats (times, schedules, quantities)
/// do show what they cannot read: it is no secret.
const FAILING: &[&str] = &[
    "{{ S.below }}",
    "{{ S + 1 }}",
    "{{ 1 + S }}",
    "{{ S / 2 }}",
    "{{ S // 0 }}",
    "{{ -S }}",
    "{{ S() }}",
    "{{ S.nothing() }}",
    "{{ S | int }}",
    "{{ S | float }}",
    "{{ S | round }}",
    "{{ S | abs }}",
    "{{ S | join(1, 2, 3) }}",
    "{{ S | items }}",
    "{{ S | dictsort }}",
    "{{ S | sum }}",
    "{{ [S] | sum }}",
    "{{ [S, {}] | join }}",
    "{{ S | replace(1) }}",
    "{{ S | format(S, S) }}",
    "{{ '%d' | format(S) }}",
    "{{ S | batch(0) }}",
    "{{ S | from_json }}",
    "{{ S | from_yaml | from_json }}",
    "{{ ('{' ~ S) | from_yaml }}",
    "{{ S | b64decode }}",
    "{{ range(S) }}",
    "{{ dict(S) }}",
    "{{ namespace(S) }}",
    "{{ [1][S] }}",
    "{{ parent[S] }}",
    "{{ parent[S].x }}",
    "{{ 'x'[S:] }}",
    "{{ S in 5 }}",
    "{{ 5 in S.x }}",
    "{{ parent.data ~ 'x' }}",
    "{{ parent.data | upper }}",
    "{{ parent.data.items().x.y }}",
    "x{{ parent.data }}",
    "{% for c in S %}{% endfor %}",
    "{% for a, b in [S] %}{% endfor %}",
    "{% include S %}",
    "{% set x %}{{ S }}{{ parent.data }}{% endset %}{{ x | upper }}",
    "{{ S * 10**9 }}",
    "{{ fail(parent.nothing) }}",
    "a: b: {{ S }}",
    "{a: 1, a: {{ S }}}",
    "\"{{ S }}\" x",
    "[{{ S }}",
    "!!int {{ S }}",
    "!!binary {{ S }}x",
];

// B115
#[test]
fn no_value_of_data_is_shown() {
    let secrets =
        [json!("hunter2\nS3CR3T: yes"), json!(770_077_007), json!({"inner": "hunter2", "keys": ["S3CR3T"]})];
    let mut failures = 0;
    for secret in &secrets {
        for failing in FAILING {
            let template = format!("a: {}\n", failing.replace('S', "parent.data.password"));
            let sources = BTreeMap::from([("t.yaml".to_string(), template)]);
            let library = Library::compile("hooks", sources)
                .unwrap_or_else(|problems| panic!("{}", problems[0].page()));
            let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
            context.set("parent", json!({"data": {"password": secret, "user": "hunter2"}}));
            let rendered = library.render(&["t.yaml".to_string()], context, &Budget::default());
            let Err(problem) = rendered else { continue };
            let shown = problem.page() + &problem.to_string();
            failures += 1;
            for part in ["hunter2", "S3CR3T", "770077007", "770_077_007"] {
                assert!(!shown.contains(part), "{failing} shows {part}:\n{shown}");
            }
        }
    }
    assert!(failures > 100, "only {failures} failed");
}
