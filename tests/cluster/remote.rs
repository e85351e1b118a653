//! Hooks behind a URL, and what HTTP can come between.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::hook::{Call, Hook, Reply, from_spec};
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

const WEBHOOK: &str = "/spec/hooks/sync/webhook";

/// The messages of the `SyncError` events on a lab's objects.
fn sync_errors(lab: &Lab) -> Vec<String> {
    let events = lab.get(&format!("{}?fieldSelector=reason=SyncError", lab.path("v1", "events", "")));
    let events = events["items"].as_array().unwrap().iter();
    events.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn hook_that_has_moved_is_followed_and_one_that_moves_in_a_ring_is_not() {
    let lab = Lab::new("moved");
    let hook = Hook::new(|call| match call.hook.as_str() {
        "sync" => Reply::Headed(307, "Location: /moved/here\r\n".into(), String::new()),
        "moved/here" => from_spec(call).into(),
        _ => Reply::Headed(308, "Location: /ring\r\n".into(), String::new()),
    });
    let definition = lab.definition().config_maps().sync(&hook);
    let ring = json!({"url": hook.url("ring")});
    let other = lab.kind("others", "Other");
    lab.define_kind(&other);
    let round = lab.definition().sync(&hook).named(&format!("{}-ring", lab.namespace)).with(WEBHOOK, ring);
    let round = round.with("/spec/parentResource/resource", json!("others"));
    lab.write_definitions(&[&definition, &round]);
    let _controller = lab.start(&[]);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.get(&lab.config_map("a"));
    let other =
        json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}, "spec": {}});
    lab.create(&lab.api_version(), "others", &other);
    let message = lab.wait_refused(&lab.path(&lab.api_version(), "others", "o"), "HookRefused");
    assert_eq!(message, "sync: gave up after 10 redirects");
}

#[test]
fn answer_without_an_end_is_refused_at_the_limit_and_the_next_one_is_taken() {
    let lab = Lab::new("endless");
    let hook = Hook::new(|_| {
        Reply::Text(
            200,
            format!("{{\"children\": [], \"status\": {{\"long\": \"{}\"}}}}", "x".repeat(17 << 20)),
        )
    });
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    assert_eq!(lab.wait_refused(&lab.thing("t"), "HookRefused"), "sync: the answer is longer than 16 MiB");
    hook.set(from_spec);
    lab.wait_synced(&lab.thing("t"));
    lab.get(&lab.config_map("a"));
}

#[test]
fn calls_one_after_the_other_share_a_connection() {
    let lab = Lab::new("keepalive");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    for round in 0..10 {
        let name = format!("t{round}");
        lab.add_thing(&name, json!({"children": [config_map(&name, "1")]}));
        lab.wait_synced(&lab.thing(&name));
    }
    lab.wait_quiet(&hook, SILENCE);
    assert!(hook.count() >= 20, "{}", hook.count());
    assert!(hook.connections() <= 3, "{} connections for {} calls", hook.connections(), hook.count());
}

#[test]
fn hook_of_the_first_version_is_read_loosely_and_of_the_second_strictly_unless_it_says_otherwise() {
    let lab = Lab::new("strictness");
    let hook = Hook::new(|call: &Call| {
        let mut answer = from_spec(call);
        answer["surplus"] = json!(true);
        Reply::Text(200, answer.to_string())
    });
    for (number, version, mode, taken) in [
        (0, "v1", Value::Null, true),
        (1, "v2", Value::Null, false),
        (2, "v1", json!("strict"), false),
        (3, "v2", json!("loose"), true),
    ] {
        let definition = lab.definition().config_maps().sync(&hook).version(version);
        let controller = lab.run(&match &mode {
            Value::Null => definition,
            mode => definition.with(&format!("{WEBHOOK}/responseUnMarshallMode"), mode.clone()),
        });
        let name = format!("t{number}");
        lab.add_thing(&name, json!({"children": [config_map(&name, "1")]}));
        if taken {
            lab.wait_synced(&lab.thing(&name));
            lab.get(&lab.config_map(&name));
        } else {
            let message = lab.wait_refused(&lab.thing(&name), "HookRefused");
            assert_eq!(
                message,
                "sync: unknown field `surplus`; expected: `children`, `status`, `resyncAfterSeconds`, `finalized`",
                "{version} {mode}"
            );
            assert!(lab.plane.get(&lab.config_map(&name)).is_none());
        }
        controller.kill();
    }
}

#[test]
fn strictness_of_a_customize_hook_reaches_into_its_rules() {
    let lab = Lab::new("strictrules");
    let hook = Hook::new(|call: &Call| match call.hook.as_str() {
        "customize" => {
            let rule = json!({"apiVersion": "v1", "resource": "configmaps", "foo": 1});
            Reply::Text(200, json!({"relatedResources": [rule]}).to_string())
        }
        _ => from_spec(call).into(),
    });
    let definition = lab.definition().sync(&hook).customize(&hook).version("v2");
    let controller = lab.run(&definition);
    lab.add_thing("t", json!({}));
    let message = lab.wait_refused(&lab.thing("t"), "HookRefused");
    assert!(message.starts_with("customize: unknown field `relatedResources[0].foo`; "), "{message}");
    controller.kill();
    let _controller = lab.run(&definition.version("v1"));
    lab.wait_synced(&lab.thing("t"));
}

#[test]
fn only_200_is_an_answer() {
    let lab = Lab::new("codes");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    let uid = lab.get(&lab.config_map("a"))["metadata"]["uid"].clone();
    for (code, message) in [
        (201, "sync: 201: {\"children\":[]}"),
        (204, "sync: 204: No Content"),
        (304, "sync: 304: Not Modified"),
        (412, "sync: 412: Precondition Failed"),
    ] {
        let text = if code == 201 { "{\"children\":[]}" } else { "" };
        hook.set(move |_| Reply::Text(code, text.into()));
        lab.merge(&lab.thing("t"), json!({"spec": {"code": code}}));
        lab.wait(&lab.thing("t"), message, |thing| thing["status"]["conditions"][0]["message"] == message);
    }
    assert_eq!(lab.get(&lab.config_map("a"))["metadata"]["uid"], uid, "nothing is deleted for that");
}

/// A hook that is busy at the first call of each kind.
fn busy_once(headers: String) -> Hook {
    let seen = std::sync::Mutex::new(Vec::new());
    Hook::new(move |call: &Call| {
        let mut seen = seen.lock().unwrap();
        if !seen.contains(&call.hook) {
            seen.push(call.hook.clone());
            return Reply::Headed(429, headers.clone(), "slow down".into());
        }
        match call.hook.as_str() {
            "customize" => json!({"relatedResources": []}).into(),
            _ => from_spec(call).into(),
        }
    })
}

#[test]
fn every_hook_may_be_busy_for_some_seconds_without_an_error() {
    let lab = Lab::new("busyall");
    let hook = busy_once("Retry-After: 2\r\n".into());
    let definition = lab.definition().config_maps().sync(&hook).finalize(&hook).customize(&hook);
    let _controller = lab.run(&definition);
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    let calls = hook.calls();
    for name in ["customize", "sync", "finalize"] {
        let at: Vec<_> = calls.iter().filter(|call| call.hook == name).map(|call| call.at).collect();
        let waited = at[1] - at[0];
        assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(4), "{name}: {waited:?}");
    }
    assert_eq!(sync_errors(&lab), [""; 0]);
}

#[test]
fn busy_hook_may_name_a_date_or_nothing() {
    let lab = Lab::new("busydate");
    // HTTP's dates are in whole seconds.
    let at = Timestamp::from_second(Timestamp::now().as_second() + 12).unwrap();
    let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let hook = Hook::new(move |call: &Call| match call.parent_name() {
        _ if Timestamp::now() >= at => from_spec(call).into(),
        "dated" => Reply::Headed(429, format!("Retry-After: {date}\r\n"), String::new()),
        "over" => Reply::Headed(429, "Retry-After: Mon, 02 Jan 2006 15:04:05 GMT\r\n".into(), String::new()),
        _ => Reply::Headed(429, String::new(), String::new()),
    });
    let _controller = lab.run(&lab.definition().sync(&hook));
    for name in ["dated", "over", "plain"] {
        lab.add_thing(name, json!({"status": {"done": true}}));
    }
    for name in ["over", "plain"] {
        let message = lab.wait_refused(&lab.thing(name), "HookBusy");
        assert_eq!(message, "sync: 429: the hook is busy, and does not say for how long");
    }
    for name in ["dated", "over", "plain"] {
        lab.wait(&lab.thing(name), "it is answered", |thing| thing["status"]["done"] == true);
    }
    let calls = hook.calls_for("dated");
    assert!(calls.len() <= 3, "it is asked when its time has come: {} calls", calls.len());
    let calls = hook.calls_for("plain").len();
    assert!((4..30).contains(&calls), "it is asked again, ever more slowly: {calls} calls");
    assert_eq!(sync_errors(&lab), [""; 0]);
}
