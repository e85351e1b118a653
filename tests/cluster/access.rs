//! Hooks that are reached with something: certificates, tokens, passwords, in Secrets and ConfigMaps that change.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::controller::Controller;
use crate::support::hook::{Call, Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE, synced};
use crate::support::objects::{config_map, secret};
use crate::support::pages::webhook_port;
use crate::support::tls::Identity;

const WEBHOOK: &str = "/spec/hooks/sync/webhook";

/// The words that the hook lets in; anything else is refused.
fn guarded(word: &str) -> (Hook, Arc<Mutex<String>>) {
    let word = Arc::new(Mutex::new(word.to_owned()));
    let wanted = word.clone();
    let hook = Hook::new(move |call| match call.header("authorization") == *wanted.lock().unwrap() {
        true => from_spec(call).into(),
        false => Reply::Text(401, "who are you?".into()),
    });
    (hook, word)
}

fn token(lab: &Lab) -> Value {
    json!({"secretRef": {"name": "auth", "namespace": lab.namespace, "key": "token"}})
}

fn token_secret(value: &str) -> Value {
    let mut secret = secret("auth", "");
    secret["stringData"] = json!({"token": value});
    secret
}

fn round(lab: &Lab, round: u32) {
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"round": round}}}));
    lab.wait(&lab.thing("t"), "the hook has answered", |thing| thing["status"]["round"] == round);
}

/// Waits until the controller has said this, this often.
fn wait_said(lab: &Lab, controller: &Controller, words: &str, times: usize) {
    lab.wait_until(&format!("`{words}` is in the log"), || controller.log().matches(words).count() == times);
}

// B35
#[test]
fn new_token_in_the_secret_is_used_at_the_next_call() {
    let lab = Lab::new("token");
    let (hook, word) = guarded("Bearer one");
    lab.create("v1", "secrets", &token_secret(" one\n"));
    let definition = lab.definition().config_maps().sync(&hook);
    let controller = lab.run(&definition.with(&format!("{WEBHOOK}/authorization"), token(&lab)));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.get(&lab.config_map("a"));

    lab.merge(&lab.path("v1", "secrets", "auth"), json!({"stringData": {"token": "two"}}));
    wait_said(&lab, &controller, "hook is reached with what has changed", 1);
    *word.lock().unwrap() = "Bearer two".into();
    round(&lab, 1);

    *word.lock().unwrap() = "Bearer three".into();
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"round": 2}}}));
    assert_eq!(lab.wait_refused(&lab.thing("t"), "HookRefused"), "sync: 401: who are you?");
    lab.merge(&lab.path("v1", "secrets", "auth"), json!({"stringData": {"token": "three"}}));
    lab.wait(&lab.thing("t"), "the hook has answered", |thing| thing["status"]["round"] == 2);
    for word in ["one", "two", "three"] {
        assert!(!controller.log().contains(&format!("Bearer {word}")), "{}", controller.log());
    }
}

// B35
#[test]
fn new_authority_in_the_config_map_is_used_at_the_next_call() {
    let lab = Lab::new("authority");
    let (old, new) = (Identity::of_a_hook(), Identity::of_a_hook());
    let hook = Hook::from_spec();
    hook.secure(old.server(None));
    let trust = |identity: &Identity| json!({"data": {"ca.crt": identity.certificate}});
    let mut map = config_map("trust", "");
    map["data"] = trust(&old)["data"].clone();
    lab.create("v1", "configmaps", &map);
    let bundle = json!({"configMapRef": {"name": "trust", "namespace": lab.namespace}});
    let definition = lab.definition().sync(&hook).with(&format!("{WEBHOOK}/caBundle"), bundle);
    let controller = lab.run(&definition.with(&format!("{WEBHOOK}/url"), json!(hook.secure_url("sync"))));
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));

    lab.merge(&lab.config_map("trust"), trust(&new));
    wait_said(&lab, &controller, "hook is reached with what has changed", 1);
    let calls = hook.count();
    lab.merge(&lab.thing("t"), json!({"spec": {"status": {"round": 1}}}));
    let message = lab.wait_refused(&lab.thing("t"), "HookUnavailable");
    let url = hook.secure_url("");
    assert!(
        message.starts_with(&format!("sync: no connection to {}: ", url.trim_end_matches('/'))),
        "{message}"
    );
    assert_eq!(hook.count(), calls, "what was open before is not used");
    hook.secure(new.server(None));
    lab.wait(&lab.thing("t"), "the hook has answered", |thing| thing["status"]["round"] == 1);
}

#[test]
fn hook_is_not_called_before_its_secret_is_there() {
    let lab = Lab::new("absent");
    let (hook, _) = guarded("Bearer one");
    let definition = lab.definition().config_maps().sync(&hook);
    let controller = lab.run(&definition.with(&format!("{WEBHOOK}/authorization"), token(&lab)));
    for name in ["t", "u"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        assert_eq!(
            lab.wait_refused(&lab.thing(name), "WaitingForAccess"),
            format!("sync: `authorization`: there is no Secret `{}/auth`", lab.namespace)
        );
    }
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(hook.count(), 0);
    assert_eq!(lab.writes(), ["patch things/status t", "patch things/status u"]);
    wait_said(&lab, &controller, "hook cannot be called", 1);

    lab.create("v1", "secrets", &secret("auth", "one"));
    wait_said(&lab, &controller, "hook cannot be called", 2);
    let message = format!("Secret `{}/auth` has no key `token`; found: `key`", lab.namespace);
    assert!(controller.log().contains(&message), "{}", controller.log());
    lab.merge(&lab.thing("t"), json!({"spec": {"again": 1}}));
    lab.wait(&lab.thing("t"), "the condition tells of the key", |thing| {
        thing["status"]["conditions"][0]["message"] == format!("sync: `authorization`: {message}")
    });
    assert_eq!(hook.count(), 0);

    let patched = Instant::now();
    lab.merge(&lab.path("v1", "secrets", "auth"), json!({"stringData": {"token": "one"}}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_synced(&lab.thing("u"));
    let first = hook.calls()[0].at - patched;
    assert!(first < Duration::from_secs(3), "both were woken: {first:?}");

    lab.plane.delete(&lab.path("v1", "secrets", "auth"));
    wait_said(&lab, &controller, "hook cannot be called", 3);
    lab.merge(&lab.thing("t"), json!({"spec": {"children": []}}));
    lab.wait_refused(&lab.thing("t"), "WaitingForAccess");
    lab.get(&lab.config_map("t"));
}

#[test]
fn name_and_password_are_sent_and_an_impossible_name_is_told() {
    let lab = Lab::new("basic");
    let (hook, _) = guarded("Basic bWU6cEBzczp3b3Jk");
    let login = |name: &str| json!({"username": name, "password": "p@ss:word"});
    let mut auth = secret("auth", "");
    auth["stringData"] = login("me:you");
    lab.create("v1", "secrets", &auth);
    let basic = json!({"secretRef": {"name": "auth", "namespace": lab.namespace}});
    let definition = lab.definition().sync(&hook).with(&format!("{WEBHOOK}/basicAuth"), basic);
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({}));
    assert_eq!(
        lab.wait_refused(&lab.thing("t"), "WaitingForAccess"),
        format!(
            "sync: `basicAuth`: key `username` of Secret `{}/auth` holds a user name with a `:`; hint: Basic authentication has no way to send one",
            lab.namespace
        )
    );
    lab.merge(&lab.path("v1", "secrets", "auth"), json!({"stringData": login("me")}));
    lab.wait_synced(&lab.thing("t"));
    let log = controller.log();
    assert!(!log.contains("p@ss") && !log.contains("bWU6") && !log.contains("cEBzc"), "{log}");
}

#[test]
fn hooks_of_one_host_share_what_its_endpoint_says() {
    let lab = Lab::new("endpoint");
    let hook = Hook::new(|call| match call.hook.as_str() {
        "customize" => json!({"relatedResources": []}),
        _ => from_spec(call),
    });
    lab.create("v1", "secrets", &token_secret("one"));
    let mut missing = token(&lab);
    missing["secretRef"]["name"] = json!("nobody");
    let endpoints = json!([
        {"host": "elsewhere.example.com", "authorization": missing},
        {"host": format!("127.0.0.1:{}", hook.port()), "authorization": token(&lab)},
        {"host": format!("127.0.0.1:{}", hook.port()), "authorization": missing},
    ]);
    let mut own = token(&lab);
    own["type"] = json!("Own");
    let definition = lab.definition().sync(&hook).finalize(&hook).with("/spec/endpointConfigs", endpoints);
    let definition = definition
        .with("/spec/hooks/finalize/webhook/authorization", own)
        .with("/spec/hooks/customize", json!({"webhook": {"url": hook.url("customize")}}));
    let _controller = lab.run(&definition);
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    let sent = |name: &str| -> Vec<String> {
        let of = |call: &Call| (call.hook == name).then(|| call.header("authorization").to_owned());
        hook.calls().iter().filter_map(of).collect()
    };
    for (name, wanted) in [("sync", "Bearer one"), ("customize", "Bearer one"), ("finalize", "Own one")] {
        let sent = sent(name);
        assert!(!sent.is_empty() && sent.iter().all(|header| header == wanted), "{name}: {sent:?}");
    }
}

#[test]
fn right_to_the_named_objects_is_enough() {
    let mut lab = Lab::new("rights");
    let (hook_identity, caller) = (Identity::of_a_hook(), Identity::of_a_caller());
    let hook = Hook::from_spec();
    hook.secure(hook_identity.server(Some(&caller)));
    let mut identity = secret("identity", "");
    identity["stringData"] =
        json!({"ca.crt": hook_identity.certificate, "tls.crt": caller.certificate, "tls.key": caller.key()});
    lab.create("v1", "secrets", &identity);
    give_rights(&mut lab, "identity");

    let reference = json!({"secretRef": {"name": "identity", "namespace": lab.namespace}});
    let definition = lab
        .definition()
        .sync(&hook)
        .with(&format!("{WEBHOOK}/url"), json!(hook.secure_url("sync")))
        .with(&format!("{WEBHOOK}/caBundle"), reference.clone())
        .with(&format!("{WEBHOOK}/clientTLS"), reference);
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({}));
    lab.wait_synced(&lab.thing("t"));
    drop(controller);

    let definition = definition.with(&format!("{WEBHOOK}/clientTLS/secretRef/name"), json!("other"));
    let controller = lab.run(&definition);
    lab.merge(&lab.thing("t"), json!({"spec": {"again": 1}}));
    let message = lab.wait_refused(&lab.thing("t"), "WaitingForAccess");
    assert!(
        message.starts_with(&format!("sync: `clientTLS`: Secret `{}/other` cannot be read: ", lab.namespace)),
        "{message}"
    );
    assert!(message.contains("is forbidden"), "{message}");
    drop(controller);
}

/// From now on the lab's controllers may do what its Things need, and read this Secret.
fn give_rights(lab: &mut Lab, secret: &str) {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let mut named = rule("", &["secrets"], &["get", "list", "watch"]);
    named["resourceNames"] = json!([secret]);
    let rules = json!([
        rule(&lab.group, &["things"], &["get", "list", "watch", "patch"]),
        rule(&lab.group, &["things/status"], &["patch"]),
        rule("metacontroller.k8s.io", &["*"], &["get", "list", "watch"]),
        named,
    ]);
    lab.limit_rights(&rules);
}

#[test]
fn answer_with_an_etag_is_used_again_when_the_hook_says_so() {
    let lab = Lab::new("etag");
    let hook = Hook::new(|call| {
        let (tag, unchanged) = if call.spec()["round"] == 1 { ("\"one\"", 304) } else { ("W/\"none\"", 412) };
        match call.header("if-none-match") == tag {
            true => Reply::Text(unchanged, String::new()),
            false => Reply::Tagged(tag, from_spec(call)),
        }
    });
    let etag = json!({"enabled": true, "cacheTimeoutSeconds": 300});
    let definition = lab.definition().config_maps().sync(&hook).with(&format!("{WEBHOOK}/etag"), etag);
    let _controller = lab.run(&definition.with("/spec/resyncPeriodSeconds", json!(1)));
    let tags = |name: &str| -> Vec<String> {
        hook.calls_for(name).iter().map(|call| call.header("if-none-match").to_owned()).collect()
    };
    for name in ["t", "u"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        lab.wait_synced(&lab.thing(name));
        lab.wait_until("it is asked again, three times", || tags(name).len() >= 4);
        assert_eq!(tags(name)[..4], ["", "W/\"none\"", "W/\"none\"", "W/\"none\""]);
    }
    let uid = lab.get(&lab.config_map("t"))["metadata"]["uid"].clone();
    lab.plane.delete(&lab.config_map("t"));
    lab.wait(&lab.config_map("t"), "it is made again", |child| child["metadata"]["uid"] != uid);

    lab.merge(&lab.thing("t"), json!({"spec": {"round": 1, "children": [config_map("t", "2")]}}));
    lab.wait(&lab.config_map("t"), "it is changed", |child| child["data"]["key"] == "2");
    lab.wait_until("the new answer is kept", || tags("t").last().is_some_and(|tag| tag == "\"one\""));
    lab.wait_synced(&lab.thing("t"));
    assert_eq!(lab.get(&lab.config_map("u"))["data"]["key"], "1");
}

/// Both ends are ours: the hooks are served by a process of their own, which answers nobody else.
#[test]
fn hook_service_of_our_own_asks_for_a_token_and_a_certificate() {
    let lab = Lab::new("ours");
    let (service, caller, stranger) =
        (Identity::of_a_hook(), Identity::of_a_caller(), Identity::of_a_caller());
    let write = |name: &str, text: &str| fs::write(lab.folder.path().join(name), text).unwrap();
    fs::create_dir(lab.folder.path().join("served")).unwrap();
    fs::create_dir(lab.folder.path().join("served/thing")).unwrap();
    write("served/thing/sync.yaml", "status: {round: {{ parent.spec.round }}}\n");
    write("tls.crt", &service.certificate);
    write("tls.key", &service.key());
    write("callers.crt", &stranger.certificate);
    write("tokens", "one\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command.args([
        "serve",
        "--hooks",
        "served",
        "--listen",
        "127.0.0.1:0",
        "--webhook-listen",
        "127.0.0.1:0",
    ]);
    command.args([
        "--tls-cert",
        "tls.crt",
        "--tls-key",
        "tls.key",
        "--client-ca",
        "callers.crt",
        "--token-file",
        "tokens",
    ]);
    let serving = Controller::start_as(command, lab.folder.path(), "serve.log");
    let port = webhook_port(&serving);

    lab.create("v1", "secrets", &token_secret("one"));
    let mut identity = secret("identity", "");
    identity["stringData"] =
        json!({"ca.crt": service.certificate, "tls.crt": caller.certificate, "tls.key": caller.key()});
    lab.create("v1", "secrets", &identity);
    let reference = json!({"secretRef": {"name": "identity", "namespace": lab.namespace}});
    let hook = Hook::from_spec();
    let definition = lab
        .definition()
        .sync(&hook)
        .with(&format!("{WEBHOOK}/url"), json!(format!("https://localhost:{port}/thing/sync")))
        .with(&format!("{WEBHOOK}/authorization"), token(&lab))
        .with(&format!("{WEBHOOK}/caBundle"), reference.clone())
        .with(&format!("{WEBHOOK}/clientTLS"), reference);
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({"round": 1}));
    let message = lab.wait_refused(&lab.thing("t"), "HookUnavailable");
    assert!(message.starts_with("sync: "), "{message}");
    write("callers.crt", &caller.certificate);
    lab.wait(&lab.thing("t"), "the hook has answered", |thing| thing["status"]["round"] == 1);

    // A token goes, and the service hears of the next one first, so that no call is lost.
    write("tokens", "one\ntwo\n");
    lab.merge(&lab.path("v1", "secrets", "auth"), json!({"stringData": {"token": "two"}}));
    wait_said(&lab, &controller, "hook is reached with what has changed", 1);
    write("tokens", "two\n");
    lab.merge(&lab.thing("t"), json!({"spec": {"round": 2}}));
    let thing = lab.wait(&lab.thing("t"), "the hook has answered", |thing| thing["status"]["round"] == 2);
    assert!(synced(&thing).is_none(), "{thing}");

    write("tokens", "three\n");
    lab.merge(&lab.thing("t"), json!({"spec": {"round": 3}}));
    let message = lab.wait_refused(&lab.thing("t"), "HookRefused");
    assert!(message.contains("401: this service answers only those who have its token"), "{message}");
    for log in [controller.log(), serving.log()] {
        assert!(!log.contains("Bearer t"), "{log}");
    }
}
