use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::hook::local::Given;
use crate::hook::local::request::Request;
use crate::template::yaml;

struct Printed {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Printed {
    fn new(schema: Value) -> Printed {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.enable_format_assertions();
        compiler.add_resource("https://schemas/case", schema).expect("JSON");
        let index = compiler.compile("https://schemas/case", &mut schemas).expect("a JSON Schema");
        Printed { schemas, index }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| error.to_string())
    }
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of hooks") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

#[test]
fn shipped_cases_fit() {
    for (ending, schema) in [(".request.yaml", case_request()), (".response.yaml", case_response())] {
        let printed = Printed::new(schema);
        let mut found = Vec::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks"), ending, &mut found);
        assert!(found.len() > 40, "{ending}: {}", found.len());
        for path in found {
            let name = path.display().to_string();
            for document in yaml::read(&name, &fs::read_to_string(&path).unwrap()).unwrap() {
                printed.check(&document.value).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}

fn one_of(values: Value) -> BoxedStrategy<Value> {
    let Value::Array(values) = values else { unreachable!("a list of choices") };
    prop::sample::select(values).boxed()
}

fn seen() -> BoxedStrategy<Value> {
    one_of(json!([
        null, {}, [], [], {}, 5, "x", [null], [{}], {"Pod.v1": {}}, {"Pod.v1": null}, {"Pod.v1": {"a": {}}}, {"Pod.v1": {"a": 5}},
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}],
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}],
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}}], [{"apiVersion": "v1", "kind": "Pod", "metadata": {}}],
        [{"apiVersion": "", "kind": "Pod", "metadata": {"name": "a"}}], [{"apiVersion": "v1", "metadata": {"name": "a"}}],
        [{"apiVersion": "v1", "kind": 5, "metadata": {"name": "a"}}],
    ]))
}

fn bodies() -> impl Strategy<Value = Value> {
    let parent =
        || one_of(json!([{"metadata": {"name": "p"}}, {"metadata": {"name": "p"}}, {}, null, 5, []]));
    let fields: Vec<(&str, BoxedStrategy<Value>)> = vec![
        ("children", seen()),
        ("attachments", seen()),
        ("related", seen()),
        ("finalizing", one_of(json!([true, false, null, "true"]))),
        (
            "now",
            one_of(json!([
                "2026-11-30T17:00:00Z",
                "2026-11-30T17:00:00.5+01:00",
                null,
                "soon",
                5,
                "2026-13-30T17:00:00Z"
            ])),
        ),
        ("entropy", one_of(json!(["", "seed", null, 5]))),
        ("controller", one_of(json!([null, {}, 5]))),
        ("aprent", one_of(json!([{}]))),
    ];
    let optional = |(name, values)| (Just(name), prop::option::weighted(0.25, values));
    let fields: Vec<_> = fields.into_iter().map(optional).collect();
    let whole = (prop::sample::select(vec!["parent", "object", "nothing"]), parent(), fields).prop_map(
        |(name, parent, fields)| {
            let mut body: Map<String, Value> =
                fields.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect();
            if name != "nothing" {
                body.insert(name.into(), parent);
            }
            Value::Object(body)
        },
    );
    let alone = one_of(json!([
        {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": 5},
        {"apiVersion": "v1"}, {"kind": "Pod"}, {"metadata": {}}, [], "text", 5,
    ]));
    prop_oneof![4 => whole, 1 => alone]
}

/// Lists of the other role's field are let pass unread.
fn is_read(body: &Value) -> bool {
    let given = Given { now: "2026-01-01T00:00:00Z".parse().unwrap(), entropy: [0; 32] };
    Request::read(Call::Sync, body.to_string().as_bytes(), given).is_ok()
}

fn has_unread_fields(body: &Value) -> bool {
    let unread = if body.get("object").is_some() { "children" } else { "attachments" };
    body.get(unread).is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn schema_of_a_request_and_its_reader_agree(body in bodies()) {
        thread_local!(static PRINTED: Printed = Printed::new(case_request()));
        let fits = PRINTED.with(|printed| printed.check(&body));
        prop_assert!(fits.is_err() || is_read(&body), "{body}");
        if !has_unread_fields(&body) {
            prop_assert_eq!(fits.is_ok(), is_read(&body), "{}: {:?}", body, fits);
        }
    }
}

#[test]
fn bodies_that_are_compared_fall_on_both_sides() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let bodies = (0..400).filter(|_| is_read(&bodies().new_tree(&mut runner).unwrap().current())).count();
    assert!((40..360).contains(&bodies), "{bodies} of 400 are requests");
}
