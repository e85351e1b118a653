//! What `syncwright check` says of a manifest is what the API server does with it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::lab::Lab;

const MANIFESTS: &str = include_str!("../data/manifests.yaml");

/// Where a finding is right and the API server says nothing, with the reason.
const LET_PASS: [(&str, &str); 3] = [
    ("# an integer beyond 32 bits", "it takes the lowest 32 bits, here 0"),
    ("# a thing with an unknown field", "it prunes the inside of a map that has no fields"),
    ("# a stateful set of 53 characters", "its pods are refused, for a label that is too long"),
];

fn crd(lab: &Lab) -> Value {
    let mut crd = lab.kind("things", "Thing");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({
        "type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "count": {"type": "integer", "minimum": 1, "maximum": 3},
            "share": {"type": "number", "minimum": 0, "maximum": 1, "exclusiveMaximum": true},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "none": {"type": "string", "nullable": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "closed": {"type": "object"},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "size": {"type": "string", "enum": ["small", "large"]},
        },
    });
    crd
}

/// Whether the API server would take the manifest, and else why not.
fn applied(lab: &Lab, manifest: &Value) -> Result<(), String> {
    let text = |path: &str| manifest.pointer(path).and_then(Value::as_str).expect("a manifest has it");
    let kind = text("/kind").to_lowercase();
    let plural = match kind.as_str() {
        "ingress" => "ingresses".into(),
        "networkpolicy" => "networkpolicies".into(),
        kind => format!("{kind}s"),
    };
    let path = lab.path(text("/apiVersion"), &plural, text("/metadata/name"));
    let path = format!("{path}?fieldManager=check&force=true&dryRun=All");
    let answer = lab.plane.request("PATCH", &path, Some(manifest)).expect("an answer");
    if answer.is_success() { Ok(()) } else { Err(answer.message()) }
}

/// What `check` reports in JSON.
fn report(lab: &Lab, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    let command = command.args(["check", "--format", "json"]).args(arguments);
    let output = command.current_dir(lab.folder.path()).output().expect("it starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The errors that are found in the example, each with its line.
fn errors(report: &Value) -> Vec<(usize, String)> {
    let of_example = |finding: &&Value| {
        finding["place"]["file"] == "hooks/thing/example.yaml" && finding["level"] == "error"
    };
    let findings = report["findings"].as_array().expect("findings").iter().filter(of_example);
    findings
        .map(|finding| {
            let line = finding["place"]["line"].as_u64().expect("a line") as usize;
            (line, finding["message"].as_str().expect("a message").to_owned())
        })
        .collect()
}

/// Writes a hook that wants nothing, with this example.
fn write_hook(lab: &Lab, example: &str) -> PathBuf {
    let hook = lab.folder.path().join("hooks/thing");
    fs::create_dir_all(&hook).unwrap();
    fs::write(hook.join("sync.yaml"), "children: []\n").unwrap();
    fs::write(hook.join("example.yaml"), example).unwrap();
    hook
}

#[test]
fn what_is_found_in_a_manifest_is_what_the_api_server_refuses() {
    let lab = Lab::bare("checked");
    let crd = crd(&lab);
    lab.define_kind(&crd);
    let manifests = MANIFESTS.replace("GROUP", &lab.group);
    fs::write(write_hook(&lab, &manifests).join("crd.yaml"), crd.to_string()).unwrap();
    let found = errors(&report(&lab, &[]));
    let (mut line, mut differing, mut counts) = (1, Vec::new(), [0, 0]);
    for text in manifests.split("---\n") {
        let lines = line..line + text.lines().count() + 1;
        line = lines.end;
        let manifest: Value = serde_saphyr::from_str(text).expect("a manifest is YAML");
        let own: Vec<&String> =
            found.iter().filter(|(line, _)| lines.contains(line)).map(|(_, message)| message).collect();
        let applied = applied(&lab, &manifest);
        counts[usize::from(applied.is_ok())] += 1;
        let name = text.lines().next().unwrap_or_default();
        let passes = applied.is_ok() && LET_PASS.iter().all(|(other, _)| *other != name);
        if passes != own.is_empty() {
            differing.push(format!("{name}\n  found: {own:?}\n  the API server: {applied:?}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(counts.iter().all(|count| *count > 10), "both kinds of manifests: {counts:?}");
}

#[test]
fn schemas_of_a_cluster_stand_in_for_those_in_the_program() {
    let lab = Lab::bare("openapi");
    lab.define_kind(&crd(&lab));
    // The document follows the CRD after a while.
    let openapi = lab.wait("/openapi/v2", "the kind is in the document", |document| {
        let paths = document["paths"].as_object().expect("paths");
        paths.keys().any(|path| path.starts_with(&format!("/apis/{}/v1/", lab.group)))
    });
    fs::write(lab.folder.path().join("openapi.json"), openapi.to_string()).unwrap();
    let thing = format!(
        "apiVersion: {}\nkind: Thing\nmetadata: {{name: a}}\nspec: {{nmae: abc}}\n",
        lab.api_version()
    );
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{prot: 80}]}\n";
    write_hook(&lab, &format!("{thing}---\n{service}"));
    let report = report(&lab, &["--openapi", "openapi.json"]);
    assert_eq!(report["kubernetes"], openapi["info"]["version"]);
    assert_eq!(report["withoutSchema"], json!([]));
    let messages: Vec<String> = errors(&report).into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        messages,
        [
            "Thing: `spec` has no `name`",
            "Thing: unknown field `spec.nmae`",
            "Service: `spec.ports[0]` has no `port`",
            "Service: unknown field `spec.ports[0].prot`",
        ]
    );
}

/// What is changed in a CRD that is right, and whether the API server takes it then. `null` takes a field out.
const CRDS: &str = include_str!("../data/crds.yaml");

fn changed(crd: &Value, changes: &Value) -> Value {
    let mut crd = crd.clone();
    for (pointer, value) in changes.as_object().expect("pointers and values") {
        let (above, last) = pointer.rsplit_once('/').expect("a pointer");
        let above = crd.pointer_mut(above).unwrap_or_else(|| panic!("{pointer}"));
        match (above, value) {
            (Value::Object(fields), Value::Null) => drop(fields.remove(last)),
            (Value::Object(fields), value) => drop(fields.insert(last.into(), value.clone())),
            (Value::Array(items), value) => items.push(value.clone()),
            (other, _) => panic!("{pointer}: {other}"),
        }
    }
    crd
}

#[test]
fn what_is_found_in_a_definition_of_a_kind_is_what_the_api_server_refuses() {
    let lab = Lab::bare("definitions");
    let cases: Value = serde_saphyr::from_str(CRDS).expect("it is YAML");
    let crd = changed(&crd(&lab), &cases["base"]);
    let cases = cases["cases"].as_object().expect("cases");
    for (number, (_, changes)) in cases.iter().enumerate() {
        let group = format!("c{number}.{}", lab.group);
        let own = json!({"/spec/group": group, "/metadata/name": format!("things.{group}")});
        let hook = lab.folder.path().join(format!("hooks/c{number}"));
        fs::create_dir_all(&hook).unwrap();
        fs::write(hook.join("sync.yaml"), "children: []\n").unwrap();
        fs::write(hook.join("crd.yaml"), changed(&changed(&crd, &own), changes).to_string()).unwrap();
    }
    let report = report(&lab, &[]);
    let findings = report["findings"].as_array().expect("findings");
    let mut differing = Vec::new();
    for (number, name) in cases.keys().enumerate() {
        let file = format!("hooks/c{number}/crd.yaml");
        let own =
            findings.iter().filter(|finding| finding["place"]["file"] == file && finding["level"] == "error");
        let own: Vec<&Value> = own.map(|finding| &finding["message"]).collect();
        let crd: Value = serde_json::from_slice(&fs::read(lab.folder.path().join(&file)).unwrap())
            .expect("it was written so");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
        let answer = lab.plane.request("POST", path, Some(&crd)).expect("an answer");
        let passes = answer.is_success() && !name.starts_with("of no use: ");
        if passes != own.is_empty() || own.len() > 1 {
            let answer: String = answer.message().chars().take(if passes { 3 } else { 1000 }).collect();
            differing.push(format!("{name}\n  found: {own:?}\n  the API server: {answer}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
