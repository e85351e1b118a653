//! Traces of a program with the feature `otel`: what a collector gets of a visit, and what becomes of visits without one.

mod collector;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use controlplane::wait_until;
use serde_json::{Value, json};

use crate::support::controller::Controller;
use crate::support::hook::{Hook, Reply, from_spec};
use crate::support::lab::{Lab, SOON};
use crate::support::objects::{config_map, secret};
use crate::support::tls::Identity;
use crate::traces::collector::{Collector, Span};

/// Spans are sent so often, in milliseconds.
const OFTEN: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "100");

/// The environment of a program that sends its traces to this collector.
fn sent_to(endpoint: &str) -> Vec<(&str, &str)> {
    vec![("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), OFTEN]
}

/// The whole trace in which a span of this sort was found.
#[track_caller]
fn trace_with(collector: &Collector, what: &str, is_meant: impl Fn(&Span) -> bool) -> Vec<Span> {
    wait_until(SOON, &format!("a trace with {what}, and its beginning"), || {
        let spans = collector.spans();
        let traces = spans.iter().filter(|span| is_meant(span)).map(|span| span.trace.clone());
        let whole = traces.map(|trace| spans.iter().filter(|span| span.trace == trace).cloned().collect());
        let mut whole = whole.filter(|trace: &Vec<Span>| trace.iter().any(|span| span.parent.is_empty()));
        whole.next().ok_or_else(|| format!("{spans:#?}"))
    })
}

#[track_caller]
fn one<'a>(trace: &'a [Span], name: &str) -> &'a Span {
    let mut found = trace.iter().filter(|span| span.name == name);
    found.next().unwrap_or_else(|| panic!("no `{name}` in {trace:#?}"))
}

/// The name of the span around a span.
fn around<'a>(trace: &'a [Span], span: &Span) -> &'a str {
    trace.iter().find(|other| other.id == span.parent).map_or("", |other| &other.name)
}

/// Every span is a part of another in its trace, but for one, which is there from the first to the last.
#[track_caller]
fn assert_whole(trace: &[Span]) {
    let roots: Vec<&Span> = trace.iter().filter(|span| span.parent.is_empty()).collect();
    let [root] = roots[..] else { panic!("{} beginnings: {trace:#?}", roots.len()) };
    for span in trace {
        assert!(span.parent.is_empty() || !around(trace, span).is_empty(), "a part of nothing: {span:#?}");
        assert!(span.start <= span.end, "{span:#?}");
        // Both processes are on this machine's clock.
        assert!(root.start <= span.start && span.end <= root.end, "{span:#?} beyond {root:#?}");
    }
}

/// `syncwright serve` with one template, and where it listens.
fn serve(lab: &Lab, environment: &[(&str, &str)]) -> (Controller, String) {
    let folder = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&folder).unwrap();
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ parent.metadata.name }}\"}\n\
                    data: {key: \"{{ parent.spec.value }}\"}\n---\nstatus: {seen: {{ children | length }}}\n";
    fs::write(folder.join("sync.yaml"), template).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.envs(environment.iter().copied());
    let service = Controller::start_as(command, lab.folder.path(), "service.log");
    let address = wait_until(SOON, "the service listens", || {
        let log = service.log();
        let address = log.split("\"address\":\"").nth(1).and_then(|rest| rest.split('"').next());
        address.map(str::to_owned).ok_or(log)
    });
    (service, format!("http://{address}"))
}

#[test]
fn visit_is_one_trace_from_its_wake_to_the_status_across_processes() {
    let lab = Lab::new("trace");
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let (_service, url) =
        serve(&lab, &[sent_to(&endpoint), vec![("OTEL_SERVICE_NAME", "templates")]].concat());
    let own = json!({"webhook": {"path": "/shelf/sync"}});
    let definition = lab.definition().config_maps().with("/spec/hooks/sync", own);
    lab.write_definitions(&[&definition]);
    let flags = ["--hook-url", &url, "--log-format", "json"];
    let controller = lab.start_in(&lab.user, &flags, &sent_to(&endpoint));
    lab.add_thing("a", json!({"value": "plain"}));
    lab.wait_synced(&lab.thing("a"));

    let trace = trace_with(&collector, "an apply", |span| span.name == "apply");
    assert_whole(&trace);
    let visit = one(&trace, "visit");
    assert_eq!(
        (visit.parent.as_str(), visit.service.as_str(), visit.error.as_ref()),
        ("", "syncwright", None)
    );
    let kind = format!("{} Thing", lab.api_version());
    let expected = [
        ("controller", &*lab.namespace),
        ("parent_kind", &kind),
        ("namespace", &lab.namespace),
        ("name", "a"),
        ("outcome", "done"),
    ];
    let attributes: BTreeMap<&str, &str> =
        visit.attributes.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(attributes, expected.into());
    let queue = one(&trace, "queue");
    assert!(visit.start <= queue.start && queue.end <= one(&trace, "observe").start, "{queue:#?}");
    for (name, outer) in [
        ("queue", "visit"),
        ("claim", "visit"),
        ("observe", "visit"),
        ("related", "visit"),
        ("hook", "visit"),
        ("POST", "hook"),
        ("POST /{hook}/{call}", "POST"),
        ("render", "POST /{hook}/{call}"),
        ("plan", "visit"),
        ("apply", "visit"),
        ("status", "visit"),
    ] {
        assert_eq!(around(&trace, one(&trace, name)), outer, "around {name}: {trace:#?}");
    }
    let (apply, status) = (one(&trace, "apply"), one(&trace, "status"));
    let keys = ["kind", "namespace", "name", "outcome"];
    assert_eq!(keys.map(|key| apply.attribute(key)), ["v1 configmaps", &*lab.namespace, "a", "done"]);
    let things = format!("{} things", lab.api_version());
    assert_eq!(keys.map(|key| status.attribute(key)), [&*things, &*lab.namespace, "a", "done"]);
    let hook = one(&trace, "hook");
    assert_eq!(hook.attribute("hook"), format!("{url}/shelf/sync"));
    assert_eq!((hook.attribute("call"), hook.attribute("outcome")), ("sync", "answered"));
    assert!(hook.attribute("request_bytes").parse::<u32>().unwrap() > 100, "{hook:#?}");
    let (post, served, render) =
        (one(&trace, "POST"), one(&trace, "POST /{hook}/{call}"), one(&trace, "render"));
    assert_eq!((post.kind, served.kind), (3, 2));
    assert_eq!((&*served.service, &*render.service), ("templates", "templates"));
    assert_eq!(post.attribute("http.response.status_code"), "200");
    assert_eq!(post.attribute("http.request.body.size"), served.attribute("request_bytes"));
    assert_eq!((render.attribute("hook"), render.attribute("revision").len()), ("shelf", 12));
    // Of both calls of the visit, and of no other.
    assert_eq!(trace.iter().filter(|span| span.name == "hook").count(), 2, "{trace:#?}");

    let visits = collector.spans().into_iter().filter(|span| span.name == "visit");
    let traces: Vec<String> = visits.map(|visit| visit.trace).collect();
    let all = collector.spans();
    for trace in &traces {
        assert_eq!(traces.iter().filter(|other| *other == trace).count(), 1, "{all:#?}");
    }
    let first: Vec<&Span> = all.iter().filter(|span| span.parent.is_empty()).collect();
    assert!(first.iter().all(|span| span.name == "visit"), "{first:#?}");

    // The log is the same as ever.
    let log = controller.log();
    let line = log.lines().find(|line| line.contains("\"child created\"")).unwrap_or_else(|| panic!("{log}"));
    let line: BTreeMap<String, Value> = serde_json::from_str(line).expect("a line is JSON");
    let keys: Vec<&str> = line.keys().map(String::as_str).collect();
    let expected = [
        "child",
        "controller",
        "level",
        "message",
        "name",
        "namespace",
        "parent_kind",
        "target",
        "timestamp",
    ];
    assert_eq!(keys, expected);
}

#[test]
fn collector_behind_tls_is_trusted_by_its_own_authority_alone() {
    let lab = Lab::new("traced-safely");
    let identity = Identity::of_a_hook();
    let file = lab.folder.path().join("authority.pem");
    fs::write(&file, &identity.certificate).unwrap();
    let collector = Collector::secured(identity.server(None));
    let endpoint = format!("https://localhost:{}", collector.port);
    let authority = ("OTEL_EXPORTER_OTLP_CERTIFICATE", file.to_str().unwrap());
    let packed = ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    let (service, url) = serve(&lab, &[sent_to(&endpoint), vec![authority, packed]].concat());
    let parent = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"value": "1"}});
    let ask = |url: &str, traceparent: &str| {
        let client = reqwest::blocking::Client::builder().no_proxy().build().expect("a client can be made");
        let request = client.post(format!("{url}/shelf/sync")).body(parent.to_string());
        request.header("traceparent", traceparent).send().expect("the service answers");
    };
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    ask(&url, &format!("00-{trace}-{span}-01"));
    let call = wait_until(SOON, "the call comes to the collector", || {
        let spans = collector.spans();
        spans.iter().find(|span| span.name == "POST /{hook}/{call}").cloned().ok_or(format!("{spans:#?}"))
    });
    assert_eq!((call.trace.as_str(), call.parent.as_str()), (trace, span));
    assert!(collector.unpacked_any());
    // A caller that is in no trace begins one, and nonsense is none.
    ask(&url, "00-nonsense");
    trace_with(&collector, "a call of its own", |span| span.name == "POST /{hook}/{call}");
    assert!(service.terminate().success());

    let (stranger, url) = serve(&lab, &sent_to(&endpoint));
    ask(&url, "");
    lab.wait_until("it is not trusted", || {
        let log = stranger.log();
        log.contains("traces cannot be sent") && log.contains("certificate")
    });
}

#[test]
fn remote_hook_is_told_the_trace_and_its_failure_is_recorded() {
    let lab = Lab::new("traceparent");
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let hook = Hook::new(|_| Reply::Text(422, "image is required".into()));
    let url = json!(format!("http://user:hidden-7f3a9c@localhost:{}/sync?key=hidden-7f3a9c", hook.port()));
    let definition = lab.definition().config_maps().sync(&hook).with("/spec/hooks/sync/webhook/url", url);
    lab.write_definitions(&[&definition]);
    let controller = lab.start_in(&lab.user, &[], &sent_to(&endpoint));
    lab.add_thing("a", json!({"children": [config_map("a", "1")]}));
    let message = lab.wait_refused(&lab.thing("a"), "HookRefused");
    let trace = trace_with(&collector, "a call", |span| span.name == "hook");
    let (visit, asked, post) = (one(&trace, "visit"), one(&trace, "hook"), one(&trace, "POST"));
    assert_eq!((visit.attribute("outcome"), visit.attribute("reason")), ("retry", "HookRefused"));
    assert_eq!(visit.error.as_ref(), Some(&message));
    assert_eq!((asked.attribute("outcome"), asked.error.is_some()), ("refused", true));
    assert_eq!(post.attribute("http.response.status_code"), "422");
    assert_eq!(post.attribute("url.full"), format!("http://localhost:{}/sync", hook.port()));
    let told: Vec<String> = hook.calls().iter().map(|call| call.header("traceparent").to_owned()).collect();
    assert!(told.contains(&post.header()), "{} is not in {told:?}", post.header());

    hook.set(from_spec);
    lab.wait_synced(&lab.thing("a"));
    lab.plane.delete(&lab.config_map("a"));
    lab.wait(&lab.config_map("a"), "it is made anew", |_| true);
    lab.merge(&lab.thing("a"), json!({"spec": {"children": []}}));
    lab.wait_gone(&lab.config_map("a"));
    let before = Instant::now();
    // The last spans are sent at the end.
    assert!(controller.terminate().success());
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
    let trace = trace_with(&collector, "a delete", |span| span.name == "delete");
    assert_eq!(one(&trace, "delete").attribute("name"), "a");
    assert_eq!(around(&trace, one(&trace, "delete")), "visit");
    let sent = String::from_utf8_lossy(&collector.bytes()).into_owned();
    assert!(sent.contains("HookRefused") && !sent.contains("7f3a9c"), "credentials in a URL are sent");
}

// B115
#[test]
fn values_of_secrets_are_in_no_trace() {
    use base64::Engine;
    let lab = Lab::new("hushed");
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let hook = Hook::from_spec();
    let hidden = |what: &str| format!("hidden-{what}-7f3a9c");
    let mut target = secret("target", &hidden("target"));
    target["metadata"]["labels"] = json!({"decorated": lab.namespace});
    let mut auth = secret("auth", "");
    auth["stringData"] = json!({"token": hidden("token")});
    for object in [&target, &auth] {
        lab.create("v1", "secrets", object);
    }
    let authorization = json!({"secretRef": {"name": "auth", "namespace": lab.namespace, "key": "token"}});
    let children = lab.definition().named("children").config_maps();
    let children = children.child("v1", "secrets", "InPlace").sync(&hook);
    let children = children.with("/spec/hooks/sync/webhook/authorization", authorization);
    let rule = json!([{
        "apiVersion": "v1", "resource": "secrets", "labelSelector": {"matchLabels": {"decorated": lab.namespace}},
    }]);
    let own = json!({"webhook": {"path": "/shelf/sync"}});
    let targets = lab.decorator(rule).named("targets").with("/spec/hooks/sync", own);
    let folder = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&folder).unwrap();
    let template = "labels: {number: {{ object.data.key | b64decode | int + 1 }}}\n";
    fs::write(folder.join("sync.yaml"), template).unwrap();
    lab.write_definitions(&[&children, &targets]);
    let controller = lab.start_in(&lab.user, &[], &sent_to(&endpoint));
    lab.add_thing("good", json!({"children": [secret("child", &hidden("child"))]}));
    lab.wait_synced(&lab.thing("good"));
    let named = json!([secret("own", &hidden("named")), config_map(&hidden("named"), "1")]);
    lab.add_thing("named", json!({"children": named}));
    lab.wait_synced(&lab.thing("named"));
    let mut refused = secret("refused", &hidden("refused"));
    refused["type"] = json!("kubernetes.io/tls");
    lab.add_thing("refused", json!({"children": [refused]}));
    lab.wait_refused(&lab.thing("refused"), "ChildRefused");
    let mut wrong = secret("wrong", "");
    wrong["stringData"] = json!({"key": {hidden("field"): hidden("wrong")}});
    lab.add_thing("wrong", json!({"children": [wrong]}));
    lab.wait_until("it is told of", || controller.log().contains("wrong"));
    let failed =
        trace_with(&collector, "a template at fault", |span| span.name == "render" && span.error.is_some());
    assert_eq!(around(&failed, one(&failed, "render")), "hook");
    let refused = trace_with(&collector, "a refused write", |span| {
        span.name == "apply" && span.attribute("outcome") == "refused"
    });
    assert_eq!(one(&refused, "apply").error.as_deref(), Some("Invalid"));
    trace_with(&collector, "the wrong one", |span| {
        span.name == "visit" && span.attribute("name") == "wrong" && span.error.is_some()
    });
    assert!(controller.terminate().success());

    let sent = String::from_utf8_lossy(&collector.bytes()).into_owned();
    assert!(sent.contains("child") && sent.contains("target"), "names are there to be seen");
    assert!(!sent.contains("7f3a9c"), "{:#?}", collector.spans());
    for what in ["token", "target", "child", "named", "refused", "wrong"] {
        let encoded = base64::engine::general_purpose::STANDARD.encode(hidden(what));
        assert!(!sent.contains(&encoded), "the value `{what}` is sent");
    }
}

#[test]
fn collector_that_is_away_is_told_of_once_and_holds_up_nothing() {
    let lab = Lab::new("uncollected");
    // It takes connections and never answers: the worst that there is.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let hook = Hook::from_spec();
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook)]);
    let environment = [sent_to(&endpoint), vec![("OTEL_EXPORTER_OTLP_TIMEOUT", "500")]].concat();
    let controller = lab.start_in(&lab.user, &[], &environment);
    let warnings = || controller.log().matches("traces cannot be sent").count();
    let fill = |round: &str| {
        for number in 0..20 {
            let name = format!("t{round}{number}");
            lab.add_thing(&name, json!({"children": [config_map(&name, "1")]}));
        }
        for number in 0..20 {
            lab.wait_synced(&lab.thing(&format!("t{round}{number}")));
        }
    };
    fill("a");
    lab.wait_until("it is told of", || warnings() == 1);
    fill("b");
    fill("c");
    assert_eq!(warnings(), 1, "{}", controller.log());

    let collector = Collector::on(listener);
    fill("d");
    lab.wait_until("they are sent again", || controller.log().contains("traces are sent again"));
    trace_with(&collector, "a later visit", |span| {
        span.name == "visit" && span.attribute("name").starts_with("td")
    });
    assert_eq!(warnings(), 1, "{}", controller.log());
}

#[test]
fn nothing_is_sent_without_a_collector_and_what_is_not_sampled_is_told_as_such() {
    let lab = Lab::new("unsampled");
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let hook = Hook::from_spec();
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook)]);
    let controller = lab.start(&[]);
    lab.add_thing("a", json!({"children": [config_map("a", "1")]}));
    lab.wait_synced(&lab.thing("a"));
    assert!(hook.calls().iter().all(|call| call.header("traceparent").is_empty()), "{:?}", hook.calls());
    assert!(controller.terminate().success());

    let environment = [sent_to(&endpoint), vec![("OTEL_TRACES_SAMPLER", "always_off")]].concat();
    let controller = lab.start_in(&lab.user, &[], &environment);
    lab.add_thing("b", json!({"children": [config_map("b", "1")]}));
    lab.wait_synced(&lab.thing("b"));
    let told: Vec<String> =
        hook.calls_for("b").iter().map(|call| call.header("traceparent").to_owned()).collect();
    assert!(!told.is_empty() && told.iter().all(|header| header.ends_with("-00")), "{told:?}");
    assert!(controller.terminate().success());
    assert_eq!(collector.spans(), []);
}
