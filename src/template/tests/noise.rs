//! Whatever the text, reading and rendering it ends with an answer or a problem, never in a panic.

use std::collections::BTreeMap;

use jiff::Timestamp;
use minijinja::machinery::parse;
use serde_json::json;

use crate::template::library::syntax;
use crate::template::source::Source;
use crate::template::{Budget, Context, Library, yaml};

const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "\n",
    "\n  ",
    "\n- ",
    " ",
    ":",
    ": ",
    "- ",
    "#",
    "\"",
    "'",
    "|",
    "|-\n  ",
    ">",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "---\n",
    "\t",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    ".",
    "..",
    "~",
    "+",
    "-",
    "*",
    "/",
    "//",
    "**",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    " in ",
    " not ",
    " is ",
    " and ",
    " or ",
    " if ",
    " else ",
    "=",
    "1",
    "0",
    "2.5",
    "x",
    "parent",
    "parent.spec",
    ".metadata.name",
    "[0]",
    "[-1]",
    "[:2]",
    "[\"a\"]",
    "none",
    "true",
    "é",
    "\u{2028}",
    "\u{e001}",
    "\\",
    "\\u",
    "{% if parent %}",
    "{% endif %}",
    "{% else %}",
    "{% for x in parent.spec %}",
    "{% endfor %}",
    "{% set x = ",
    "{% set x %}",
    "{% endset %}",
    "{% macro m(x, y=1) %}",
    "{% endmacro %}",
    "{{ m(1) }}",
    "{{ m(x) }}",
    "{% call m(1) %}",
    "{% call(z) m(1) %}",
    "{% endcall %}",
    "{% include \"u.yaml\" %}",
    "{% import \"u.yaml\" as u %}",
    "{{ u.m() }}",
    "{% block b %}",
    "{% endblock %}",
    "{% filter trim %}",
    "{% endfilter %}",
    "{% with y = ",
    "{% endwith %}",
    "{% raw %}",
    "{% endraw %}",
    "{% do m() %}",
    "{{ caller() }}",
    "{{ loop.index }}",
    "{{ super() }}",
    " | default(1)",
    " | upper",
    " | join(\",\")",
    " | map(\"upper\")",
    " | select(\"defined\")",
    " | list",
    " | first",
    " is defined",
    " is none",
    ".items()",
    ".get(\"a\")",
    "namespace(a=1)",
    "range(3)",
    "dict(a=1)",
    "children.find(\"Job\", \"a\")",
    "children.list(\"Job\")",
    "{\"a\": 1}",
    "[1, 2]",
    "a: 1\n",
    "b: {{ parent.spec.a }}\n",
];

/// Numbers that look random and are the same in every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn text(&mut self) -> String {
        let length = 1 + self.below(14);
        (0..length).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    /// An expression that mostly is one.
    fn expression(&mut self, depth: usize) -> String {
        let inner = |noise: &mut Noise| noise.expression(depth + 1);
        match self.below(if depth > 3 { 5 } else { 18 }) {
            0 => "parent".into(),
            1 => "parent.spec.a".into(),
            2 => "\"é\"".into(),
            3 => "7".into(),
            4 => "x".into(),
            5 => format!("({})", inner(self)),
            6 => format!("{}.b", inner(self)),
            7 => format!("{}[{}]", inner(self), inner(self)),
            8 => format!("{} ~ {}", inner(self), inner(self)),
            9 => format!("{} == {}", inner(self), inner(self)),
            10 => format!("({} and {} or {})", inner(self), inner(self), inner(self)),
            11 => format!("{} in [{}, {}]", inner(self), inner(self), inner(self)),
            12 => format!("({} if {} else {})", inner(self), inner(self), inner(self)),
            13 => format!("{} | default({})", inner(self), inner(self)),
            14 => format!("-{} + {} * {}", inner(self), inner(self), inner(self)),
            15 => format!("m({}, y={})", inner(self), inner(self)),
            16 => format!("{}[{}:{}]", inner(self), inner(self), inner(self)),
            _ => format!("{} < {} <= {}", inner(self), inner(self), inner(self)),
        }
    }
}

fn compile_and_render(template: String) {
    let partial = "{% macro m(x=1) %}<{{ x }}>{% endmacro %}\n".to_string();
    let sources = BTreeMap::from([("t.yaml".to_string(), template), ("u.yaml".to_string(), partial)]);
    let Ok(library) =
        Library::compile("hooks", sources).map_err(|problems| problems.iter().for_each(|p| drop(p.page())))
    else {
        return;
    };
    let mut context = Context::new(Timestamp::UNIX_EPOCH, [0; 32]);
    context.set(
        "parent",
        json!({"metadata": {"name": "é: x"}, "spec": {"a": [1, {"b": null}], "b": "text\u{e000}0\u{e001}"}}),
    );
    context.set_family(
        "children",
        BTreeMap::from([("Job.batch/v1".into(), BTreeMap::from([("a".into(), json!({}))]))]),
    );
    match library.render(&["t.yaml".to_string()], context, &Budget { fuel: 20_000, ..Budget::default() }) {
        Ok(documents) => documents.iter().for_each(|document| {
            document.place();
            document.place_of(&["a", "0", "b"]);
        }),
        Err(problem) => drop(problem.page()),
    }
}

/// What parses keeps its meaning under guards: it parses again, and every offset leads back into the text.
fn guard(template: &str) {
    let functions = ["range", "dict", "namespace"].into_iter().collect();
    let Ok(source) = Source::read("t.yaml", template.to_string(), syntax(), &functions, None) else { return };
    if let Err(error) = parse(&source.guarded, "t.yaml", syntax()) {
        panic!("{template:?} became {:?}: {error}", source.guarded);
    }
    let mut last = 0;
    for offset in 0..=source.guarded.len() {
        let original = source.original_offset(offset);
        assert!(
            last <= original && original <= template.len(),
            "{template:?} at {offset}: {last} then {original}"
        );
        last = original;
    }
}

#[test]
fn any_text_is_answered() {
    let mut noise = Noise(1);
    for _ in 0..3000 {
        let text = noise.text();
        let _ = yaml::read("a.yaml", &text).map_err(|problem| problem.page());
        guard(&text);
        compile_and_render(text);
    }
}

#[test]
fn any_expression_keeps_its_meaning_under_guards() {
    let mut noise = Noise(2);
    for _ in 0..1500 {
        let (first, second) = (noise.expression(0), noise.expression(0));
        let template = format!(
            "{{% set x = {first} %}}{{% macro m(x, y=2) %}}{{{{ x }}}}{{% endmacro %}}\na: {{{{ {second} }}}}\n\
             {{% for i in [{first}] %}}{{% if {second} %}}b{{{{ i }}}}: 1{{% endif %}}{{% endfor %}}\n"
        );
        guard(&template);
        compile_and_render(template);
    }
}
