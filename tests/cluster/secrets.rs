//! Values of Secrets, and what templates make of them, are in nothing that a controller says.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::canary::{Canary, expect_hidden};
use crate::support::controller::Controller;
use crate::support::hook::{Hook, Reply};
use crate::support::lab::{DECORATORS, DEFINITIONS, Lab};
use crate::support::pages::{ANY_PORTS, Pages, port_in_log};

const CUSTOMIZE: &str = "relatedResources: [{apiVersion: v1, resource: secrets, names: [source]}]\n";
const SYNC: &str = r#"
{% set source = related.find("Secret", "source") %}
{% set word = source.data.word | b64decode | trim %}
{% set name = source.data.name | b64decode %}
{% set own = parent.metadata.name %}
{% set mode = parent.spec.mode %}
status: {mode: {{ mode }}}
---
{% if mode == "fail" %}
{{ fail(["no:", word, word | b64encode, word | b64encode | b64encode, ("u:" ~ word) | b64encode, word | sha256,
         word | shell_quote, {"a": word} | to_json, word | upper] | join(" ")) }}
{% elif mode == "number" %}
status: {size: {{ word | quantity_value }}}
{% elif mode == "named" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ name }}}
{% elif mode == "misnamed" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ word }}}
{% elif mode == "service" %}
apiVersion: v1
kind: Service
metadata: {name: {{ own }}}
spec: {type: {{ word }}, ports: [{port: 1}]}
{% elif mode == "port" %}
apiVersion: v1
kind: Service
metadata: {name: {{ own }}}
spec: {ports: [{port: {{ word }}}]}
{% elif mode == "label" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ own }}, labels: {word: {{ word }}}}
{% elif mode == "pod" %}
apiVersion: v1
kind: Pod
metadata: {name: {{ own }}}
spec:
  containers:
    - name: web
      image: web
      imagePullPolicy: {{ word }}
      args: ["--password={{ word }}"]
      env: [{name: PASSWORD, value: {{ word }}}]
{% elif mode == "denied" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ own }}, labels: {deny: "yes"}}
data: {url: "db://root:{{ word }}@db"}
{% elif mode == "fixed" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ own }}}
immutable: true
data: {url: "db://root:{{ word }}@db"}
{% elif mode == "file" %}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ own }}, annotations: {sum: {{ word | sha256 }}}}
data:
  my.cnf: |
    [client]
    password={{ word }}
  twice: {{ word | b64encode | b64encode }}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ own }}}
stringData: {url: "db://root:{{ word }}@db", name: {{ name }}}
{% endif %}
"#;
const PICK: &str = r#"
status: {phase: {{ related.find("Secret", "source").data.name | b64decode }}}
"#;
const MARK: &str = r#"
labels: {word: "{{ object.data.word | b64decode }}"}
"#;

/// A mode of the template, and the reason that its parent then says.
const REFUSED: [(&str, &str); 9] = [
    ("fail", "HookRefused"),
    ("number", "HookRefused"),
    ("misnamed", "ChildRefused"),
    ("service", "ChildRefused"),
    ("port", "ChildRefused"),
    ("label", "ChildRefused"),
    ("pod", "ChildRefused"),
    ("denied", "ChildDenied"),
    ("fixed", "ImmutableField"),
];

/// What the Secret `source` holds: a word, and those that it is changed to, and a name.
fn canaries() -> [Canary; 4] {
    [
        Canary::new("sing <7f3a9cd041> it's \"so\" $1/&\n", "7f3a9cd041"),
        Canary::new("sing <2b6c80ae95> it's \"so\" $1/&\n", "2b6c80ae95"),
        Canary::new("sing <c4d702be13> it's \"so\" $1/&\n", "c4d702be13"),
        Canary::new("plain-8d41e6b2c7", "8d41e6b2c7"),
    ]
}

fn source(word: &Canary, name: &Canary) -> Value {
    json!({"metadata": {"name": "source"}, "data": {"word": word.encoded(), "name": name.encoded()}})
}

fn write_hooks(folder: &Path) {
    for (file, text) in [
        ("thing/customize.yaml", CUSTOMIZE),
        ("thing/sync.yaml", SYNC),
        ("pick/customize.yaml", CUSTOMIZE),
        ("pick/sync.yaml", PICK),
        ("mark/sync.yaml", MARK),
    ] {
        let file = folder.join("hooks").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// From now on ConfigMaps with the label `deny` are denied in the lab's namespace, in words that quote them.
fn deny_config_maps(lab: &Lab) {
    let name = format!("{}-deny", lab.namespace);
    let root = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": lab.namespace}},
                "objectSelector": {"matchLabels": {"deny": "yes"}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"],
                }],
            },
            "validations": [{"expression": "false", "messageExpression": "'not ' + object.data.url"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    for (plural, object) in
        [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
    {
        lab.plane.create(&format!("{root}/{plural}"), &object);
        lab.plane.delete_at_end(format!("{root}/{plural}/{name}"));
    }
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "try", "labels": {"deny": "yes"}}, "data": {"url": "this"},
    });
    let path = format!("{}?dryRun=All", lab.config_map(""));
    lab.wait_until("the policy is in force", || {
        let answer = lab.plane.request("POST", &path, Some(&object)).unwrap();
        answer.message().contains("not this")
    });
}

/// A remote hook that says back whatever it was sent, its credentials too.
fn echo() -> Hook {
    Hook::new(|call| {
        if call.hook == "customize" {
            let rule = json!({"apiVersion": "v1", "resource": "secrets", "names": ["source"]});
            return Reply::Answer(json!({"relatedResources": [rule]}));
        }
        let word =
            call.request["related"]["Secret.v1"]["source"]["data"]["word"].as_str().unwrap_or_default();
        let code = if call.parent_name() == "away" { 500 } else { 422 };
        Reply::Text(code, format!("`{word}` is no word, by {}", call.header("authorization")))
    })
}

/// Everything that the controller has said so far, but for what the hooks computed.
fn said(lab: &Lab, controller: &Controller) -> Vec<(&'static str, String)> {
    let conditions = |path: String| {
        let list = lab.get(&path);
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|parent| format!("{}\n", parent["status"]["conditions"])).collect::<String>()
    };
    let pages = Pages::of(controller);
    let index = format!("http://127.0.0.1:{}/", port_in_log(controller, "listening"));
    let client = reqwest::blocking::Client::new();
    let page = |kind: &str| client.get(&index).header("Accept", kind).send().unwrap().text().unwrap();
    let events = |namespace: &str| lab.get(&format!("/api/v1/namespaces/{namespace}/events")).to_string();
    vec![
        ("the log", controller.log()),
        ("an event", events(&lab.namespace)),
        ("an event of a definition", events("default")),
        (
            "a condition",
            ["things", "asks", "picks"].map(|of| conditions(lab.path(&lab.api_version(), of, ""))).concat(),
        ),
        ("a definition", lab.get(DEFINITIONS)["items"].to_string()),
        ("a decorator", lab.get(DECORATORS)["items"].to_string()),
        ("a metric", pages.metrics_text()),
        ("a probe", pages.probe("/readyz?verbose").text + &pages.probe("/healthz?verbose").text),
        ("the index", page("text/plain") + &page("application/json")),
    ]
}

fn syncwright(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_syncwright")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// All files below a folder, one after the other.
fn files_below(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        text += &if path.is_dir() { files_below(&path) } else { fs::read_to_string(&path).unwrap() };
    }
    text
}

fn start(lab: &Lab) -> Controller {
    let more = ["--log-level", "trace", "--log-format", "json", "--listen", "127.0.0.1:0"];
    lab.start(&[&ANY_PORTS[..], &more].concat())
}

// B115
#[test]
fn secrets_and_what_is_derived_from_them_are_in_nothing_that_is_said() {
    let lab = Lab::new("canary");
    let mut pick = lab.kind("picks", "Pick");
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    *pick.pointer_mut(schema).unwrap() = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
               "properties": {"phase": {"type": "string", "enum": ["a", "b"]}}});
    lab.define_kind(&pick);
    lab.define_kind(&lab.kind("asks", "Ask"));
    deny_config_maps(&lab);
    write_hooks(lab.folder.path());
    let words = canaries();
    let token = Canary::new("letmein-61f09be4d2", "61f09be4d2");
    lab.create("v1", "secrets", &json!({"metadata": {"name": "auth"}, "data": {"token": token.encoded()}}));
    let mut first = source(&words[0], &words[3]);
    first["metadata"]["labels"] = json!({"marked": lab.namespace});
    lab.create("v1", "secrets", &first);

    let (echo, api_version) = (echo(), lab.api_version());
    let built_in = |name: &str, plural: &str| {
        let webhook = |call: &str| json!({"webhook": {"path": format!("/{name}/{call}")}});
        let parents = json!({"apiVersion": api_version, "resource": plural});
        let definition = lab.definition().named(name).with("/spec/parentResource", parents);
        definition
            .with("/spec/hooks/sync", webhook("sync"))
            .with("/spec/hooks/customize", webhook("customize"))
    };
    let things = built_in("thing", "things").config_maps().child("v1", "secrets", "InPlace");
    let things = things.child("v1", "services", "InPlace").child("v1", "pods", "InPlace");
    let authorization = json!({"secretRef": {"name": "auth", "namespace": lab.namespace, "key": "token"}});
    let asks = lab.definition().named("asks").with("/spec/parentResource/resource", json!("asks"));
    let asks =
        asks.sync(&echo).customize(&echo).with("/spec/hooks/sync/webhook/authorization", authorization);
    let rule = json!([{
        "apiVersion": "v1", "resource": "secrets", "labelSelector": {"matchLabels": {"marked": lab.namespace}},
    }]);
    let marks = lab.decorator(rule).named("marks");
    let marks = marks.with("/spec/hooks/sync", json!({"webhook": {"path": "/mark/sync"}}));
    let definitions = [&things, &built_in("pick", "picks"), &asks, &marks];
    definitions.iter().for_each(|definition| lab.add_definition(definition));
    let controller = start(&lab);
    let add = |plural: &str, kind: &str, name: &str| {
        let parent = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {}});
        lab.create(&api_version, plural, &parent);
        lab.path(&api_version, plural, name)
    };
    for (mode, _) in REFUSED {
        lab.add_thing(mode, json!({"mode": mode}));
    }
    for mode in ["named", "file"] {
        lab.add_thing(mode, json!({"mode": mode}));
        lab.wait_synced(&lab.thing(mode));
    }
    let hidden = |path: &str, reason: &str| {
        let message = lab.wait_refused(path, reason);
        assert!(message.contains("(masked)"), "{path}: {message}");
    };
    for (mode, reason) in REFUSED.into_iter().filter(|(mode, _)| *mode != "fixed") {
        // What the API server says of a wrong type has no value in it.
        let has_value = mode != "port";
        if has_value {
            hidden(&lab.thing(mode), reason)
        } else {
            drop(lab.wait_refused(&lab.thing(mode), reason))
        }
    }
    hidden(&add("picks", "Pick", "a"), "StatusRefused");
    hidden(&add("asks", "Ask", "here"), "HookRefused");
    hidden(&add("asks", "Ask", "away"), "HookUnavailable");
    lab.wait_synced(&lab.thing("fixed"));
    lab.wait(&lab.config_map(&words[3].value), "the author's own choice is followed", |_| true);

    // What was derived follows, and what it was before is as secret.
    lab.merge(&lab.path("v1", "secrets", "source"), source(&words[1], &words[3]));
    let sum = |word: &Canary| crate::support::canary::digest(word.value.trim().as_bytes());
    lab.wait(&lab.config_map("file"), "it follows", |map| {
        map["metadata"]["annotations"]["sum"] == sum(&words[1])
    });
    let message = lab.wait_refused(&lab.thing("fixed"), "ImmutableField");
    assert!(message.contains("`data.url` has another value"), "{message}");
    lab.wait_until("it is told of", || controller.log().contains("child updated"));
    let of_decorator = |line: &str| line.contains("\"marks\"") && line.contains("Refused");
    lab.wait_until("the decorator is told of", || controller.log().lines().any(of_decorator));
    let degraded = |path: &str| {
        lab.wait(path, "it tells of its parents", |definition| {
            definition["status"]["conditions"].to_string().contains("ParentsFailing")
        })
    };
    let live = degraded(&things.path());
    assert!(live["status"].to_string().contains("(masked)"), "{}", live["status"]);
    let secret: Vec<&Canary> = words.iter().chain([&token]).collect();
    expect_hidden(&secret, &said(&lab, &controller));
    controller.terminate();

    let folder = lab.folder.path();
    lab.write_definitions(&definitions);
    let kubeconfig = lab.user.kubeconfig.display().to_string();
    let usual = ["--controllers", "controllers.yaml", "--kubeconfig", &kubeconfig, "--log-level", "trace"];
    lab.merge(&lab.path("v1", "secrets", "source"), source(&words[2], &words[3]));
    let (code, out, log) = syncwright(folder, &[&["diff"][..], &usual].concat());
    assert!(out.contains("~ ConfigMap file") && out.contains("(digest of (masked "), "{code}: {out}{log}");
    expect_hidden(&secret, &[("diff", out), ("its log", log)]);
    for parent in ["things/file", "things/fail", "things/named"] {
        let (code, out, log) = syncwright(folder, &[&["record", parent][..], &usual].concat());
        assert_eq!(code, 0, "{log}");
        expect_hidden(&secret, &[("record", out), ("its log", log)]);
    }
    expect_hidden(&secret, &[("a recorded file", files_below(&folder.join("hooks")))]);
    let (code, out, log) = syncwright(folder, &["test"]);
    assert_eq!((code, log.as_str()), (0, ""), "what was recorded is got again: {out}");
}
