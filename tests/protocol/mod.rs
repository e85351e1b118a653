//! The hook protocol as the program publishes it: every message that a test's hook is sent, or sends, is held against it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

struct Protocol {
    schemas: Schemas,
    messages: BTreeMap<String, SchemaIndex>,
}

static PROTOCOL: LazyLock<Protocol> = LazyLock::new(|| {
    const PLACE: &str = "https://schemas/hook";
    let printed = Command::new(env!("CARGO_BIN_EXE_syncwright")).args(["schema", "hook"]).output();
    let schema: Value = serde_json::from_slice(&printed.expect("the binary starts").stdout).expect("JSON");
    let names: Vec<String> = schema["$defs"].as_object().expect("named messages").keys().cloned().collect();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(PLACE, schema).expect("one document");
    let mut message = |name: String| {
        let index = compiler.compile(&format!("{PLACE}#/$defs/{name}"), &mut schemas);
        (name, index.expect("a JSON Schema"))
    };
    let messages = names.into_iter().map(&mut message).collect();
    Protocol { schemas, messages }
});

/// What is wrong with a message, in the words of its schema: the request itself, or the answer to it.
pub fn check(side: &str, request: &Value, message: &Value) -> Result<(), String> {
    let name = format!("{}-{side}", kind_of(request));
    let index = PROTOCOL.messages.get(&name).ok_or_else(|| format!("no message is called {name}"))?;
    PROTOCOL.schemas.validate(message, *index).map_err(|error| format!("{error}\n{message:#}"))
}

/// `composite-sync-v1`: what a hook is called for stands in its request.
fn kind_of(request: &Value) -> String {
    let controller = &request["controller"];
    let decorator = controller["kind"] == "DecoratorController" || !request["object"].is_null();
    let role = if decorator { "decorator" } else { "composite" };
    let call = match request["finalizing"].as_bool() {
        None => "customize",
        Some(true) => "finalize",
        Some(false) => "sync",
    };
    // In the cluster a version is filled in; in a file it need not be there.
    let version = controller["spec"]["hooks"][call]["version"].as_str().unwrap_or("v1");
    format!("{role}-{call}-{version}")
}
