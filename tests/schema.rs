//! `syncwright schema` from outside: what it prints is JSON Schema, and says of files what the other commands say of them.

use std::process::Command;

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

/// Exit code, stdout and stderr.
fn schema(of: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_syncwright")).arg("schema").args(of).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn check(of: &str, value: &Value) -> Result<(), String> {
    let (code, printed, told) = schema(&[of]);
    assert_eq!((code, told.as_str()), (0, ""));
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("https://schemas/it", serde_json::from_str(&printed).unwrap()).unwrap();
    let index = compiler.compile("https://schemas/it", &mut schemas).unwrap();
    schemas.validate(value, index).map_err(|error| error.to_string())
}

#[test]
fn a_misspelt_field_of_a_definition_is_found_where_it_stands() {
    let mut definition = json!({
        "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController", "metadata": {"name": "a"},
        "spec": {
            "parentResource": {"apiVersion": "a.b/v1", "resource": "as"},
            "childResources": [{"apiVersion": "v1", "resource": "pods"}],
            "hooks": {"sync": {"webhook": {"path": "/a/sync", "timeout": "30s"}}},
        },
    });
    check("controllers", &definition).unwrap();
    definition["spec"]["childResources"][0]["updateStrategie"] = json!({"method": "InPlace"});
    let found = check("controllers", &definition).unwrap_err();
    let expected = "at '/spec/childResources/0': additionalProperties 'updateStrategie' not allowed";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn files_of_a_case_are_checked() {
    check("case-request", &json!({"parent": {"kind": "A"}, "children": [], "now": "2026-01-01T00:00:00Z"}))
        .unwrap();
    check("case-request", &json!({"apiVersion": "v1", "kind": "A", "anything": 1})).unwrap();
    check("case-request", &json!({"parent": {}, "childs": []})).unwrap_err();
    check("case-response", &json!({"status": {}, "children": []})).unwrap();
    check("case-response", &json!({"status": {}, "labels": {"a": "b"}, "attachments": []})).unwrap();
    check("case-response", &json!({"status": 5, "children": []})).unwrap_err();
    check("case-response", &json!({"relatedResources": [{"apiVersion": "v1"}]})).unwrap_err();
}

#[test]
fn a_message_of_a_hook_is_one_of_those_that_have_a_name() {
    check("hook", &json!({"children": [], "status": {}})).unwrap();
    check("hook", &json!({"error": "x"})).unwrap_err();
    let (_, printed, _) = schema(&["hook"]);
    let names = serde_json::from_str::<Value>(&printed).unwrap()["$defs"].as_object().unwrap().clone();
    let messages = names.keys().filter(|name| name.ends_with("-request") || name.ends_with("-answer"));
    assert_eq!(messages.count(), 2 * 3 * 2 * 2, "two roles, three calls, two versions, two sides");
}

#[test]
fn what_there_is_no_schema_of_is_told_with_what_there_is() {
    let (code, printed, told) = schema(&["controler"]);
    assert_eq!((code, printed.as_str()), (2, ""));
    assert!(told.contains("possible values: controllers, case-request, case-response, hook"), "{told}");
    assert_eq!(schema(&[]).0, 2);
}

#[test]
fn the_kinds_of_definitions_can_be_installed_from_it() {
    let (code, printed, told) = schema(&["crds"]);
    assert_eq!((code, told.as_str()), (0, ""));
    let documents: Vec<&str> = printed.split("---\n").collect();
    let names = ["compositecontrollers", "decoratorcontrollers", "controllerrevisions"];
    assert_eq!(documents.len(), names.len(), "{printed}");
    for (document, name) in documents.iter().zip(names) {
        assert!(document.starts_with("apiVersion: apiextensions.k8s.io/v1\n"), "{document}");
        assert!(document.contains(&format!("  name: {name}.metacontroller.k8s.io\n")), "{document}");
    }
}
