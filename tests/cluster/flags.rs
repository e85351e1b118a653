//! Metacontroller's command lines on our binary.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::support::controller::Controller;
use crate::support::hook::Hook;
use crate::support::lab::Lab;
use crate::support::objects::config_map;

/// A lab with a definition in the cluster, and the binary under Metacontroller's name.
fn lab(subject: &str, hook: &Hook) -> (Lab, Command) {
    let lab = Lab::new(subject);
    lab.add_definition(&lab.definition().config_maps().sync(hook));
    let name = lab.folder.path().join("metacontroller");
    symlink(env!("CARGO_BIN_EXE_syncwright"), &name).expect("the folder is ours");
    let mut command = Command::new(name);
    command.envs([("SYNCWRIGHT_METRICS_ADDRESS", "0"), ("SYNCWRIGHT_HEALTH_PROBE_BIND_ADDRESS", "0")]);
    command.arg(format!("-target-label-selector=lab={}", lab.namespace));
    command.arg(format!("--kubeconfig={}", lab.user.kubeconfig.display()));
    (lab, command)
}

/// The log, in which some values are in quotes.
fn unquoted(controller: &Controller) -> String {
    controller.log().replace('"', "")
}

#[test]
fn arguments_of_metacontrollers_deployment_work() {
    let hook = Hook::from_spec();
    let (lab, mut command) = lab("deployment", &hook);
    command.args(["--zap-log-level=4", "--discovery-interval=20s", "--cache-flush-interval=30m"]);
    let controller = Controller::start_as(command, lab.folder.path(), "controller.log");
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    lab.wait(&lab.config_map("a"), "the child is made", |_| true);
    lab.wait_until("debug is on", || controller.log().contains("hook called"));
    let ignored = "flag has no meaning here, ignored flag=--discovery-interval ";
    assert_eq!(unquoted(&controller).matches(ignored).count(), 1, "said once");
    assert_eq!(controller.log().matches("no meaning").count(), 1, "of nothing else");
}

#[test]
fn every_flag_of_metacontroller_is_taken_in_each_spelling() {
    let hook = Hook::from_spec();
    let (lab, mut command) = lab("spellings", &hook);
    command.args([
        "-zap-devel",
        "-zap-encoder",
        "console",
        "-zap-stacktrace-level=error",
        "--zap-time-encoding=epoch",
    ]);
    command.args(["-v=2", "--logtostderr", "-stderrthreshold", "INFO", "--pprof-address", ":6060"]);
    command.args([
        "-leader-election=true",
        "--leader-election-resource-lock",
        "leases",
        "-leader-election-id=other",
    ]);
    command.args(["--leader-election-namespace", &lab.namespace]);
    command.args(["--apply-strategy=dynamic-apply", "-apply-strategy-ssa-field-manager", "mine"]);
    command.args([
        "--workers",
        "2",
        "-cache-flush-interval",
        "1s",
        "--metrics-address=0",
        "-health-probe-bind-address",
        "0",
    ]);
    command.args(["-client-go-qps", "-1", "--client-go-burst=5", "-events-qps=0.01", "--events-burst", "3"]);
    let controller = Controller::start_as(command, lab.folder.path(), "controller.log");
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    let child = lab.wait(&lab.config_map("a"), "the child is made", |_| true);
    assert_eq!(child["metadata"]["managedFields"][0]["manager"], "mine");
    lab.wait(&lab.path("coordination.k8s.io/v1", "leases", "other"), "it leads", |lease| {
        lease["spec"]["holderIdentity"].is_string()
    });
    lab.wait_quiet(&hook, Duration::from_millis(300));
    let calls = hook.count();
    lab.wait_until("every parent is visited each second", || hook.count() >= calls + 3);
    for flag in [
        "--zap-stacktrace-level",
        "--zap-time-encoding",
        "--pprof-address",
        "--logtostderr",
        "--stderrthreshold",
        "--apply-strategy=dynamic-apply",
    ] {
        assert!(unquoted(&controller).contains(&format!("ignored flag={flag} ")), "{flag}");
    }
}

#[test]
fn wrong_flags_are_refused_with_exit_code_2() {
    for (arguments, expected) in [
        (&["--nonsense"][..], "unexpected argument '--nonsense' found"),
        (&["-nonsense=4"], "unexpected argument '--nonsense' found"),
        (&["-apply-strategy", "magic"], "[possible values: dynamic-apply, server-side-apply]"),
        (&["--leader-election-resource-lock=endpoints"], "[possible values: leases]"),
        (&["--cache-flush-interval=5"], "a unit is missing"),
        (&["--leader-election-id="], "for '--leader-elect-id <NAME>'"),
        (&["--leader-elect-id", "a/b"], "for '--leader-elect-id <NAME>'"),
        (&["-leader-election-namespace=../kube-system"], "for '--leader-elect-namespace <NAMESPACE>'"),
        (
            &["--leader-elect", "--leader-elect-namespace=a", "--leader-elect-renew-deadline=20s"],
            "more than the renew deadline",
        ),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_syncwright")).args(arguments).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
