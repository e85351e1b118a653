use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::schema::{Unknown, check};
use crate::config::{identity, load};

struct Printed {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Printed {
    fn new() -> Printed {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.enable_format_assertions();
        compiler.add_resource("https://schemas/definitions", definitions()).expect("JSON");
        let root = compiler.compile("https://schemas/definitions", &mut schemas).expect("a JSON Schema");
        Printed { schemas, root }
    }

    fn accepts(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.root).is_ok()
    }
}

/// What `config` says of the shape of a document, before it asks what the shape means.
fn is_readable(value: &Value) -> bool {
    let mut value = value.clone();
    let Ok((role, _)) = identity(&mut value) else { return false };
    check(schema_of(role.kind()).unwrap(), &value, Unknown::Refused).is_empty()
}

#[test]
fn shipped_definitions_fit() {
    let printed = Printed::new();
    let text = include_str!("../../../controllers.yaml");
    for document in crate::template::yaml::read("controllers.yaml", text).unwrap() {
        assert!(printed.accepts(&document.value), "{:#}", document.value);
    }
}

#[test]
fn lists_fit_as_they_are_read() {
    let printed = Printed::new();
    let definition = json!({
        "apiVersion": API_VERSION, "kind": "DecoratorController", "metadata": {"name": "d"},
        "spec": {
            "resources": [{"apiVersion": "v1", "resource": "nodes"}],
            "hooks": {"sync": {"webhook": {"path": "/d/sync"}}},
        },
    });
    let mut broken = definition.clone();
    broken["spec"]["resources"][0]["resourse"] = json!("pods");
    for (value, fits) in [
        (json!({"kind": "List", "items": [definition]}), true),
        (json!({"kind": "List", "items": [broken]}), false),
        (json!({"kind": "List"}), false),
        (json!({"kind": "DecoratorControllerList", "items": []}), true),
        (json!({"kind": "Deployment"}), false),
    ] {
        assert_eq!(printed.accepts(&value), fits, "{value}");
        assert_eq!(load("f", &value.to_string()).is_ok(), fits, "{value}");
    }
}

/// Values out of a schema, most of them as it wants them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    fn value(&mut self, schema: &Value) -> Value {
        if self.below(60) == 0 {
            let odd = [
                json!(null),
                json!(7),
                json!(3_000_000_000_u64),
                json!("x"),
                json!([]),
                json!({}),
                json!(true),
            ];
            return self.pick(&odd);
        }
        match schema["type"].as_str().unwrap_or_default() {
            "object" => self.object(schema),
            "array" => (0..self.below(3)).map(|_| self.value(&schema["items"])).collect(),
            "integer" => json!(self.pick(&[0_i64, -1, 30, i64::from(i32::MAX), i64::from(i32::MAX) + 1])),
            "boolean" => json!(self.below(2) == 0),
            _ if schema["format"] == "duration" => {
                let texts =
                    ["10s", "1h30m", "-.5h", "0", "", "5", "1d", "1.2.3s", ".s", "1.s", "30 s", "2s\n"];
                json!(self.pick(&texts))
            }
            _ => match schema["enum"].as_array().cloned() {
                Some(mut words) => {
                    words.push(json!("other"));
                    self.pick(&words)
                }
                None => json!(self.pick(&["", "a", "apps/v1", "deployments"])),
            },
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut fields = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let wanted = required.contains(&name.as_str());
            if (wanted && self.below(40) > 0) || (!wanted && self.below(4) == 0) {
                fields.insert(name.clone(), self.value(schema));
            }
        }
        if let Some(values) = schema.get("additionalProperties") {
            fields.insert("key".into(), self.value(values));
        } else if schema.get("properties").is_some() && self.below(60) == 0 {
            fields.insert("unheard".into(), json!("of"));
        }
        Value::Object(fields)
    }

    fn document(&mut self) -> Value {
        let role = self.pick(&[Role::Composite, Role::Decorator]);
        let mut document = self.object(schema_of(role.kind()).unwrap());
        document["apiVersion"] = json!(self.pick(&[API_VERSION, API_VERSION, API_VERSION, "v1"]));
        document["kind"] = json!(role.kind());
        let names = ["web", "a.b-c", "9", "Web", "-a", "a..b", "", "a\n"];
        let name = self.pick(&names);
        document["metadata"] = self.pick(&[json!({"name": "web", "labels": {}}), json!({"name": name})]);
        if self.below(20) == 0 {
            document["metadata"] =
                self.pick(&[json!(null), json!({}), json!({"name": 5}), json!({"name": "a".repeat(254)})]);
        }
        document
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    /// Both ways: an editor shows a problem exactly where the program finds one.
    #[test]
    fn printed_schema_and_reader_agree(seed in 1_u64..) {
        thread_local!(static PRINTED: Printed = Printed::new());
        let document = Dice(seed).document();
        let accepted = PRINTED.with(|printed| printed.accepts(&document));
        prop_assert_eq!(accepted, is_readable(&document), "{:#}", document);
    }
}

#[test]
fn dice_fall_on_both_sides() {
    let readable = (1..2000_u64).filter(|seed| is_readable(&Dice(seed * 0x9E37_79B9).document())).count();
    assert!((200..1900).contains(&readable), "{readable} of 2000 documents are readable");
}
