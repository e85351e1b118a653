//! What machines see of a controller at work: metrics and probes.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use controlplane::wait_until;
use serde_json::json;

use crate::support::controller::Controller;
use crate::support::hook::{Hook, Reply, from_spec};
use crate::support::lab::{Lab, SOON};
use crate::support::objects::config_map;
use crate::support::pages::{ANY_PORTS, Page, Pages, Scrape};

/// What has to agree about one definition's visits, whenever none is under way.
fn agrees(scrape: &Scrape, controller: &str) -> Result<(), String> {
    let sum = |name: &str, more: &str| scrape.sum(name, &[controller, more]);
    let visits = sum("operator_reconcile_total", "");
    let errors = sum("operator_reconcile_total", "result=\"retry\"");
    let stuck = sum("operator_reconcile_total", "result=\"stuck\"");
    let expected = [
        ("operator_reconcile_duration_seconds_count", visits),
        ("controller_runtime_reconcile_total", visits),
        ("controller_runtime_reconcile_time_seconds_count", visits),
        ("controller_runtime_reconcile_errors_total", errors),
        ("controller_runtime_terminal_reconcile_errors_total", stuck),
        ("controller_runtime_active_workers", 0.0),
        ("workqueue_adds_total", visits),
        ("workqueue_retries_total", errors),
        ("workqueue_depth", 0.0),
        ("workqueue_queue_duration_seconds_count", visits),
        ("workqueue_work_duration_seconds_count", visits),
        ("workqueue_unfinished_work_seconds", 0.0),
        ("workqueue_longest_running_processor_seconds", 0.0),
    ];
    let differs = expected.iter().find(|(name, value)| sum(name, "") != *value);
    differs.map_or(Ok(()), |(name, value)| Err(format!("{name} is {}, not {value}", sum(name, ""))))
}

#[test]
fn metrics_tell_of_visits_hooks_writes_and_objects() {
    let lab = Lab::new("metrics");
    let hook = Hook::new(|call| match call.parent_name() {
        "singular-bad" => Reply::Text(500, "not today".into()),
        _ => from_spec(call).into(),
    });
    lab.write_definitions(&[&lab.definition().named("metrics").config_maps().sync(&hook)]);
    let controller = lab.start(&ANY_PORTS);
    let pages = Pages::of(&controller);
    lab.add_thing("singular-good", json!({"children": [config_map("singular-map", "1")], "status": {}}));
    lab.wait_synced(&lab.thing("singular-good"));
    lab.add_thing("singular-bad", json!({}));
    lab.wait_refused(&lab.thing("singular-bad"), "HookUnavailable");
    let ours = "controller=\"CompositeController-metrics\"";
    pages.counts(&format!("syncwright_parents{{{ours},state=\"done\"}}"), 1.0);
    pages.counts(&format!("syncwright_parents{{{ours},state=\"retry\"}}"), 1.0);
    let scrape = wait_until(SOON, "the counters agree", || {
        let scrape = pages.scrape();
        agrees(&scrape, ours).map(|()| scrape)
    });
    let sum = |name: &str, labels: &[&str]| scrape.sum(name, labels);
    assert!(sum("operator_reconcile_total", &[ours, "result=\"done\""]) >= 1.0);
    assert!(sum("operator_reconcile_total", &[ours, "result=\"retry\""]) >= 1.0);
    assert!(sum("syncwright_hook_calls_total", &[ours, "call=\"sync\"", "outcome=\"answered\""]) >= 2.0);
    assert!(sum("syncwright_hook_duration_seconds_count", &[ours, "call=\"sync\""]) >= 2.0);
    let applied = ["resource=\"configmaps\"", "verb=\"apply\"", "outcome=\"done\""];
    assert_eq!(sum("syncwright_writes_total", &applied), 1.0);
    assert!(sum("syncwright_writes_total", &["resource=\"things\"", "verb=\"status\""]) >= 2.0);
    assert_eq!(sum("syncwright_stored_objects", &["resource=\"things\""]), 2.0);
    assert!(sum("syncwright_stored_bytes", &["resource=\"things\""]) > 200.0);
    assert_eq!(sum("syncwright_kind_live", &["resource=\"things\""]), 1.0);
    assert!(
        sum("rest_client_requests_total", &["code=\"201\"", "method=\"PATCH\"", "host=\"127.0.0.1:"]) >= 1.0
    );
    assert_eq!(sum("syncwright_build_info", &["version=\""]), 1.0);
    assert!(sum("process_resident_memory_bytes", &[]) > 1e6);
    let bounds = |sample: &&str| {
        sample.starts_with("operator_reconcile_duration_seconds_bucket") && sample.contains(ours)
    };
    assert_eq!(scrape.samples().filter(bounds).count(), 16, "15 bounds and infinity");
    let named = scrape.samples().find(|sample| sample.contains("singular"));
    assert_eq!(named, None, "no label has the name of an object: there are too many");
}

#[test]
fn deleted_parent_stands_nowhere() {
    let lab = Lab::new("standing");
    let hook = Hook::from_spec();
    lab.write_definitions(&[&lab.definition().named("standing").config_maps().sync(&hook)]);
    let controller = lab.start(&ANY_PORTS);
    let pages = Pages::of(&controller);
    let done = "syncwright_parents{controller=\"CompositeController-standing\",state=\"done\"}";
    lab.add_thing("a", json!({}));
    pages.counts(done, 1.0);
    lab.plane.delete(&lab.thing("a"));
    pages.counts(done, 0.0);
}

#[test]
fn broken_template_is_named_and_takes_nothing_out_of_service() {
    let lab = Lab::new("ready");
    let hooks = lab.folder.path().join("hooks/shelf");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("sync.yaml"), "status: {version: one}\n").unwrap();
    let hook = json!({"webhook": {"path": "/shelf/sync"}});
    lab.write_definitions(&[&lab.definition().with("/spec/hooks/sync", hook)]);
    let controller = lab.start(&ANY_PORTS);
    let pages = Pages::of(&controller);
    pages.becomes_ready();
    let things = format!("[+]kind {} things: 0 objects\n", lab.api_version());
    let page = pages.probe("/readyz?verbose");
    assert!(page.text.contains("[+]api-server ok\n") && page.text.contains(&things), "{}", page.text);
    assert!(page.text.contains("[+]hook shelf: revision "), "{}", page.text);
    assert!(page.text.ends_with("readyz check passed\n"), "{}", page.text);

    fs::write(hooks.join("sync.yaml"), "status: {version: {{ two\n").unwrap();
    let page = wait_until(SOON, "the broken revision is named", || {
        let page = pages.probe("/readyz?verbose");
        if page.text.contains("[!]hook shelf: revision ") { Ok(page) } else { Err(page.text) }
    });
    assert!(page.text.contains("does not compile: hooks/shelf/sync.yaml:1:"), "{}", page.text);
    assert_eq!(page.status, 200, "the last good one answers");
    assert_eq!(pages.probe("/readyz").text, "ok");
    pages.counts("syncwright_hook_rejected{hook=\"shelf\"}", 1.0);
    let scrape = pages.scrape();
    for state in ["state=\"answers\"", "state=\"rejected\""] {
        assert_eq!(scrape.sum("syncwright_hook_revision", &["hook=\"shelf\"", state]), 1.0);
    }
    for path in ["/healthz", "/healthz/healthz", "/readyz/readyz"] {
        assert_eq!(pages.probe(path), Page { status: 200, text: "ok".into() }, "{path}");
    }
    assert_eq!(pages.probe("/healthz?verbose").text, "[+]pulse ok\nhealthz check passed\n");
    assert_eq!(pages.probe("/metrics").status, 404, "each port has its own pages");
}

#[test]
fn kind_that_is_missing_is_named_and_holds_up_nothing() {
    let lab = Lab::new("lacking");
    let hook = Hook::from_spec();
    let definition = lab.definition().child("none.example.com/v1", "nothings", "InPlace").sync(&hook);
    lab.write_definitions(&[&definition]);
    let controller = lab.start(&ANY_PORTS);
    let pages = Pages::of(&controller);
    pages.becomes_ready();
    wait_until(SOON, "it is named", || {
        let text = pages.probe("/readyz?verbose").text;
        let line = "[!]kind none.example.com/v1 nothings: the API server has no `none.example.com/v1`\n";
        if text.contains(line) { Ok(()) } else { Err(text) }
    });
}

#[test]
fn without_an_api_server_it_lives_and_is_not_ready() {
    let lab = Lab::bare("alone");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "a", "user": {}}],
    });
    fs::write(lab.folder.path().join("nowhere"), config.to_string()).unwrap();
    let flags: Vec<&str> = ["--kubeconfig", "nowhere"].into_iter().chain(ANY_PORTS).collect();
    let controller = Controller::start(lab.folder.path(), "alone.log", &flags, &[]);
    let pages = Pages::of(&controller);
    assert_eq!(pages.probe("/healthz").status, 200, "nothing would be mended by its end");
    let page = pages.probe("/readyz");
    assert_eq!(page.status, 503);
    assert!(page.text.contains("[-]api-server: it has not answered yet\n"), "{}", page.text);
    assert!(page.text.ends_with("readyz check failed\n"), "{}", page.text);
}

#[test]
fn address_that_was_asked_for_must_be_free_and_a_default_need_not() {
    let lab = Lab::bare("ports");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let kubeconfig = lab.user.kubeconfig.display().to_string();
    for flag in ["--metrics-address", "--health-probe-bind-address"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
        command.args(["run", "--kubeconfig", &kubeconfig]).env_remove("KUBECONFIG");
        command.env("SYNCWRIGHT_METRICS_ADDRESS", "0").env("SYNCWRIGHT_HEALTH_PROBE_BIND_ADDRESS", "0");
        let output = command.args([flag, &address]).stdin(Stdio::null()).output().expect("the program runs");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        let expected = format!("error: {flag}: cannot listen on `{address}`; hint: `{flag} 0` serves none: ");
        assert!(told.contains(&expected), "{told}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    let output = command.args(["run", "--metrics-address", "8080"]).output().expect("the program runs");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    let expected = "invalid value '8080' for '--metrics-address <ADDRESS:PORT>': expected `:8080`, \
                    `127.0.0.1:8080`, or `0` for nowhere";
    assert!(told.contains(expected), "{told}");
    // Whether this test takes the usual ports or somebody else has them: they are taken.
    let _usual = ["[::]:8080", "[::]:8081"].map(TcpListener::bind);
    let controller =
        Controller::start_with_usual_ports(lab.folder.path(), "usual.log", &["--kubeconfig", &kubeconfig]);
    lab.wait_until("both are told and the work goes on", || {
        let log = controller.log();
        ["metrics are not served", "probes are not served", "ready"].iter().all(|words| log.contains(words))
    });
}

#[test]
fn standby_is_ready_and_tells_that_it_does_not_lead() {
    let lab = Lab::new("standby");
    let hook = Hook::from_spec();
    lab.write_definitions(&[&lab.definition().named("standby").config_maps().sync(&hook)]);
    let namespace = format!("--leader-elect-namespace={}", lab.namespace);
    let flags: Vec<&str> = ["--leader-elect", &namespace].into_iter().chain(ANY_PORTS).collect();
    let both = [lab.start(&flags), lab.start(&flags)].map(|controller| (Pages::of(&controller), controller));
    let leads = |pages: &Pages| {
        let scrape = pages.scrape();
        let status = scrape.get("leader_election_master_status{name=\"metacontroller\"}");
        assert_eq!(scrape.get("syncwright_leader"), status);
        status == Some(1.0)
    };
    both.iter().for_each(|(pages, _)| pages.becomes_ready());
    lab.wait_until("one of them leads", || both.iter().filter(|(pages, _)| leads(pages)).count() == 1);
    let standby = both.iter().find(|(pages, _)| !leads(pages)).map(|(pages, _)| pages).unwrap();
    let page = standby.probe("/readyz?verbose");
    let told = "[+]leader: another process holds the lease `metacontroller`, this one stands by\n";
    assert!(page.text.contains(told), "{}", page.text);
    let things = format!("[+]kind {} things: 0 objects\n", lab.api_version());
    assert!(page.text.contains(&things), "its caches are filled: {}", page.text);
}

#[test]
fn remote_hooks_are_measured_under_metacontrollers_names() {
    let lab = Lab::new("measured");
    let hook = Hook::from_spec();
    let url = format!("http://user:hidden@localhost:{}/sync", hook.port());
    let definition = lab.definition().named("measured").config_maps().finalize(&hook).sync(&hook);
    lab.write_definitions(&[&definition.with("/spec/hooks/sync/webhook/url", json!(url))]);
    let controller = lab.start(&ANY_PORTS);
    let pages = Pages::of(&controller);
    lab.add_thing("a", json!({"status": {"seen": true}}));
    lab.wait(&lab.thing("a"), "the hook's status", |thing| thing["status"]["seen"] == true);
    lab.plane.delete(&lab.thing("a"));
    lab.wait_gone(&lab.thing("a"));
    let scrape = pages.scrape();
    let labels = |url: String| {
        format!("controller_name=\"measured\",controller_type=\"CompositeController\",url=\"{url}\"")
    };
    let sync = labels(format!("http://localhost:{}/sync", hook.port()));
    let finalize = labels(hook.url("finalize"));
    for (call, labels) in [("sync", &sync), ("finalize", &finalize)] {
        let asked = format!("metacontroller_{call}_requests_total{{{labels},code=\"200\",method=\"post\"}}");
        assert_eq!(scrape.get(&asked), Some(hook.count_of(call) as f64), "{asked}: {scrape:#?}");
        let took = format!(
            "metacontroller_{call}_request_duration_histogram_seconds_count{{{labels},method=\"post\"}}"
        );
        assert_eq!(scrape.get(&took), scrape.get(&asked));
        assert_eq!(scrape.get(&format!("metacontroller_{call}_in_flight_requests{{{labels}}}")), Some(0.0));
    }
    for event in ["dns_start", "dns_done"] {
        let looked_up = "metacontroller_sync_dns_duration_histogram_seconds_count";
        assert!(scrape.get(&format!("{looked_up}{{{sync},event=\"{event}\"}}")) >= Some(1.0), "{scrape:#?}");
    }
    assert_eq!(scrape.families["metacontroller_sync_tls_duration_histogram_seconds"], "histogram");
    assert!(!scrape.samples().any(|sample| sample.contains("hidden")), "a password is no label");
}
