//! What a controller logs: the same key for the same thing in every line, and nobody's secrets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use controlplane::wait_until;
use serde_json::{Map, Value, json};

use crate::support::controller::Controller;
use crate::support::hook::Hook;
use crate::support::lab::{Definition, Lab, SOON};
use crate::support::objects::{config_map, secret};

/// The keys of the table in the documentation.
fn documented_keys() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let table = page.split("| key | what it is |").nth(1).expect("the page has the table of keys");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let keys =
        rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split('`').skip(1).step_by(2));
    keys.map(str::to_owned).collect()
}

/// Starts a controller that says everything it can say.
fn talkative(lab: &Lab, definitions: &[&Definition]) -> Controller {
    lab.write_definitions(definitions);
    let kubeconfig = lab.user.kubeconfig.display().to_string();
    let flags = ["--log-level", "trace", "--log-format", "json", "--kubeconfig", &kubeconfig];
    let selector = format!("lab={}", lab.namespace);
    let more = ["--controllers", "controllers.yaml", "--target-label-selector", &selector];
    Controller::start(lab.folder.path(), "talkative.log", &[&flags[..], &more].concat(), &[])
}

fn lines(controller: &Controller) -> Vec<Map<String, Value>> {
    let log = controller.log();
    // The last line may be half written.
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: `{line}`"));
    whole.lines().map(parse).collect()
}

#[track_caller]
fn line_with(controller: &Controller, message: &str, name: &str) -> Map<String, Value> {
    wait_until(SOON, &format!("`{message}` of {name} is logged"), || {
        let all = lines(controller);
        let found =
            all.into_iter().find(|line| line["message"] == message && line.get("name") == Some(&json!(name)));
        found.ok_or_else(|| controller.log())
    })
}

#[test]
fn every_line_has_documented_keys_and_says_of_which_parent_it_is() {
    let lab = Lab::new("keys");
    let hook = Hook::from_spec();
    let own = json!({"webhook": {"path": "/shelf/sync"}});
    let remote =
        lab.definition().named("remote").config_maps().child("none.example.com/v1", "nothings", "InPlace");
    let remote = remote.sync(&hook).finalize(&hook);
    let local = lab.decorator(lab.things()).named("local").with("/spec/hooks/sync", own);
    let folder = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sync.yaml"), "labels: {marked: {{ object.spec.mark }}}\n").unwrap();
    let controller = talkative(&lab, &[&remote, &local]);
    lab.add_thing("good", json!({"children": [config_map("a", "1")], "mark": "yes"}));
    lab.wait(&lab.thing("good"), "it is marked", |thing| thing["metadata"]["labels"]["marked"] == "yes");
    lab.wait(&lab.config_map("a"), "it is there", |_| true);
    lab.add_thing(
        "bad",
        json!({"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "A B"}}]}),
    );
    fs::write(folder.join("sync.yaml"), "labels: {{ nothing\n").unwrap();
    let created = line_with(&controller, "child created", "good");
    let expected = json!({
        "controller": "remote", "parent_kind": format!("{} Thing", lab.api_version()), "namespace": lab.namespace,
        "name": "good", "child": format!("ConfigMap {}/a", lab.namespace),
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(created.get(key), Some(value), "{key} of {created:?}");
    }
    let changed = line_with(&controller, "target changed", "good");
    assert_eq!((&changed["controller"], &changed["differences"]), (&json!("local"), &json!("metadata")));
    let stuck = line_with(&controller, "parent cannot be brought to what is wanted", "bad");
    assert_eq!(stuck["level"], "WARN");
    assert!(stuck["error"].is_string() && stuck["reason"].is_string(), "{stuck:?}");
    wait_until(SOON, "the broken template is told of", || {
        let all = lines(&controller);
        let told = all
            .iter()
            .any(|line| line["message"] == "hook revision does not compile" && line["hook"] == "shelf");
        if told { Ok(()) } else { Err(controller.log()) }
    });
    lab.plane.delete(&lab.thing("good"));
    lab.wait_gone(&lab.thing("good"));
    controller.ask_to_end();
    wait_until(SOON, "it tells of the end", || {
        if controller.log().contains("\"stopping\"") { Ok(()) } else { Err(controller.log()) }
    });

    let documented = documented_keys();
    assert!(documented.contains("parent_kind"), "{documented:?}");
    for line in lines(&controller) {
        for key in ["timestamp", "level", "message", "target"] {
            assert!(line[key].is_string(), "no {key}: {line:?}");
        }
        // What other crates say at these levels is in their words.
        if !line["target"].as_str().unwrap().starts_with("syncwright") {
            continue;
        }
        let unknown: Vec<&String> = line.keys().filter(|key| !documented.contains(*key)).collect();
        assert!(unknown.is_empty(), "undocumented {unknown:?}: {line:?}");
        if line.contains_key("name") {
            let about = ["controller", "parent_kind"].iter().all(|key| line.contains_key(*key));
            assert!(about, "a parent without its kind and controller: {line:?}");
        }
        let of_visits = line["target"].as_str().unwrap().starts_with("syncwright::controller::visit");
        assert!(!of_visits || line.contains_key("name"), "a visit of nobody: {line:?}");
    }
}

// B115
#[test]
fn values_of_secrets_and_credentials_are_in_no_line_of_the_log() {
    let lab = Lab::new("hush");
    let hook = Hook::from_spec();
    let hidden = |what: &str| format!("hidden-{what}-7f3a9c");
    let own = json!({"webhook": {"path": "/shelf/sync"}});
    let mut auth = secret("auth", "");
    auth["stringData"] = json!({"token": hidden("token")});
    lab.create("v1", "secrets", &auth);
    let mut target = secret("target", &hidden("target"));
    target["metadata"]["labels"] = json!({"decorated": lab.namespace});
    lab.create("v1", "secrets", &target);
    let authorization = json!({"secretRef": {"name": "auth", "namespace": lab.namespace, "key": "token"}});
    let children = lab.definition().named("children").child("v1", "secrets", "InPlace").sync(&hook);
    let children = children.with("/spec/hooks/sync/webhook/authorization", authorization);
    let rule = json!([{
        "apiVersion": "v1", "resource": "secrets", "labelSelector": {"matchLabels": {"decorated": lab.namespace}},
    }]);
    let targets = lab.decorator(rule).named("targets").with("/spec/hooks/sync", own);
    let folder = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&folder).unwrap();
    // The value is an annotation, and where it is none the error is about the value.
    let template = "annotations: {copy: \"{{ object.data.key | b64decode }}\"}\n";
    fs::write(folder.join("sync.yaml"), template).unwrap();
    let controller = talkative(&lab, &[&children, &targets]);

    lab.add_thing("good", json!({"children": [secret("child", &hidden("child"))]}));
    lab.wait_synced(&lab.thing("good"));
    lab.merge(&lab.path("v1", "secrets", "child"), json!({"stringData": {"key": hidden("edited")}}));
    line_with(&controller, "child updated", "good");
    let mut refused = secret("refused", &hidden("refused"));
    refused["type"] = json!("kubernetes.io/tls");
    lab.add_thing("refused", json!({"children": [refused]}));
    lab.wait_refused(&lab.thing("refused"), "ChildRefused");
    let mut wrong = secret("wrong", "");
    wrong["stringData"] = json!({"key": {hidden("field"): hidden("wrong")}});
    lab.add_thing("wrong", json!({"children": [wrong]}));
    lab.wait_until("it is told of", || controller.log().contains("\"wrong\""));
    line_with(&controller, "target changed", "target");
    fs::write(folder.join("sync.yaml"), "labels: {number: {{ object.data.key | b64decode | int + 1 }}}\n")
        .unwrap();
    line_with(&controller, "parent cannot be brought to what is wanted", "target");
    fs::write(folder.join("sync.yaml"), "labels: {{ object.data.key | b64decode }}\n").unwrap();
    lab.merge(&lab.path("v1", "secrets", "target"), json!({"stringData": {"key": hidden("newer")}}));
    lab.wait_until("it is visited anew", || controller.log().matches("hook revision active").count() >= 3);

    let configuration = fs::read_to_string(&lab.user.kubeconfig).unwrap();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let token = configuration.split("token").nth(1);
    let token = token.and_then(|rest| rest.split(|c| !is_part(c)).find(|part| !part.is_empty()));
    let token = token.expect("the user of the lab has a token");
    assert!(token.len() > 100, "a token of a service account: {token}");
    let log = controller.log();
    assert!(!log.contains(token), "the API server's token is logged");
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("-7f3a9c")).collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    for what in ["token", "target", "child", "edited", "refused", "newer"] {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode(hidden(what));
        assert!(!log.contains(&encoded), "the value `{what}` is logged");
    }
}
