//! `syncwright uninstall` from outside: what it finds, what it leaves, what it refuses.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::Lab;
use crate::support::objects::config_map;

fn uninstall(lab: &Lab, more: &[&str]) -> Output {
    let selector = format!("lab={}", lab.namespace);
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command.current_dir(lab.folder.path()).env_remove("KUBECONFIG");
    command.arg("uninstall").arg("--kubeconfig").arg(&lab.user.kubeconfig);
    command
        .args(["--target-label-selector", &selector, "--leader-elect-namespace", &lab.namespace])
        .args(more);
    command.output().expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn finalizers(lab: &Lab, path: &str) -> usize {
    lab.get(path)["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
}

/// A definition in the cluster and one in a file, each with parents that it has put its finalizer on.
fn installed(lab: &Lab, hook: &Hook, decorating: &Hook) {
    lab.define_kind(&lab.kind("others", "Other"));
    let composite = lab.definition().config_maps().sync(hook).finalize(hook);
    let decorator = lab.decorator(json!([{"apiVersion": lab.api_version(), "resource": "others"}]));
    let decorator = decorator.sync(decorating).finalize(decorating);
    lab.write_definitions(&[&decorator]);
    let controller = lab.start(&[]);
    lab.add_definition(&composite.with("/spec/finalizer", json!("example.com/own")));
    for name in ["a", "b"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        lab.wait_synced(&lab.thing(name));
    }
    let others = lab.path(&lab.api_version(), "others", "");
    let other = json!({"apiVersion": lab.api_version(), "kind": "Other", "metadata": {"name": "o"}});
    lab.plane.create(&others, &other);
    lab.wait(&format!("{others}/o"), "it is decorated", |other| other["metadata"]["labels"]["seen"] == "yes");
    controller.terminate();
}

fn decorating() -> Hook {
    Hook::new(|_| json!({"labels": {"seen": "yes"}, "attachments": []}))
}

// B125
#[test]
fn everything_that_holds_a_parent_is_taken_away_and_children_stay() {
    let lab = Lab::new("uninstall");
    let (hook, decorating) = (Hook::from_spec(), decorating());
    installed(&lab, &hook, &decorating);
    let other = lab.path(&lab.api_version(), "others", "o");
    let (plan, done) = {
        let definition = lab.definition().path();
        let steps = |off: &str, delete: &str| {
            let name = definition.rsplit('/').next().unwrap();
            let namespace = &lab.namespace;
            let mut steps = vec![
                format!("{off} metacontroller.io/decoratorcontroller-{namespace} off Other {namespace}/o"),
                format!("{off} example.com/own off Thing {namespace}/a"),
                format!("{off} example.com/own off Thing {namespace}/b"),
                format!("{delete} CompositeController {name}"),
            ];
            if off == "took" {
                steps.push("3 parents cleaned, 1 object deleted".into());
            }
            steps
        };
        (steps("would take", "would delete"), steps("took", "deleted"))
    };

    let dry = uninstall(&lab, &["--controllers", "controllers.yaml", "--dry-run"]);
    assert_eq!(text(&dry.stdout).lines().collect::<Vec<_>>(), plan, "{}", text(&dry.stderr));
    assert_eq!(dry.status.code(), Some(0));
    assert_eq!((finalizers(&lab, &lab.thing("a")), finalizers(&lab, &other)), (1, 1), "nothing was done");

    let output = uninstall(&lab, &["--controllers", "controllers.yaml"]);
    assert_eq!(text(&output.stdout).lines().collect::<Vec<_>>(), done, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    for path in [lab.thing("a"), lab.thing("b"), other.clone()] {
        assert_eq!(finalizers(&lab, &path), 0, "{path}");
    }
    lab.wait_gone(&lab.definition().path());
    let child = lab.get(&lab.config_map("a"));
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "a", "its parent still has it");

    let again = uninstall(&lab, &["--controllers", "controllers.yaml"]);
    assert_eq!((text(&again.stdout).trim(), again.status.code()), ("nothing is left to remove", Some(0)));
    lab.plane.delete(&lab.thing("a"));
    assert!(lab.plane.get(&lab.thing("a")).is_none(), "nothing holds it");
}

#[test]
fn uninstall_is_refused_while_a_controller_runs() {
    let lab = Lab::new("stillruns");
    let (hook, decorating) = (Hook::from_spec(), decorating());
    installed(&lab, &hook, &decorating);
    let controller = lab.start(&["--leader-elect", "--leader-elect-namespace", &lab.namespace]);
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/metacontroller", lab.namespace);
    lab.wait(&leases, "it is held", |lease| {
        lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty())
    });
    let output = uninstall(&lab, &[]);
    let told = text(&output.stderr);
    let expected =
        format!("error: a controller still runs: Lease {}/metacontroller is held by `", lab.namespace);
    assert!(told.starts_with(&expected) && told.contains("hint: stop it"), "{told}");
    assert_eq!((text(&output.stdout), output.status.code()), (String::new(), Some(1)));
    assert_eq!(finalizers(&lab, &lab.thing("a")), 1, "nothing was done");

    let dry = uninstall(&lab, &["--dry-run"]);
    assert!(text(&dry.stderr).starts_with("note: it would be refused now: "), "{}", text(&dry.stderr));
    assert_eq!((text(&dry.stdout).lines().count(), dry.status.code()), (3, Some(0)));

    // One that ends gives its lease back.
    controller.terminate();
    let output = uninstall(&lab, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn finalizer_that_a_running_controller_puts_on_again_is_told() {
    let lab = Lab::new("putagain");
    let (hook, decorating) = (Hook::from_spec(), decorating());
    installed(&lab, &hook, &decorating);
    // Without leader election nothing tells that it runs.
    let _controller = lab.start(&[]);
    let other = lab.path(&lab.api_version(), "others", "o");
    lab.wait_until("it runs", || decorating.count() >= 2);
    let output = uninstall(&lab, &["--controllers", "controllers.yaml"]);
    // Its definition in the file stays, so it may or may not be quicker than the second look.
    let told = text(&output.stderr);
    match output.status.code() {
        Some(1) => {
            assert!(told.contains("had its finalizer put on again: a controller still runs"), "{told}")
        }
        code => assert_eq!((code, &*told), (Some(0), "")),
    }
    lab.wait(&other, "it is put on again", |other| other["metadata"]["finalizers"].is_array());
}

#[test]
fn what_cannot_be_cleaned_keeps_its_definition() {
    let mut lab = Lab::new("nocleaning");
    let (hook, decorating) = (Hook::from_spec(), decorating());
    installed(&lab, &hook, &decorating);
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let rules = json!([
        rule(&lab.group, &["things"], &["get", "list"]),
        rule("metacontroller.k8s.io", &["*"], &["*"]),
        rule("coordination.k8s.io", &["leases"], &["list"]),
    ]);
    lab.limit_rights(&rules);
    let output = uninstall(&lab, &[]);
    let told = text(&output.stderr);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    let refused = format!("error: Thing {}/a: things.{} \"a\" is forbidden", lab.namespace, lab.group);
    assert!(lines[0].starts_with(&refused), "{told}");
    assert!(lines[2].ends_with(" stays until its parents are clean"), "{told}");
    assert_eq!(text(&output.stdout).trim(), "0 parents cleaned, 0 objects deleted, 3 left: see above");
    assert_eq!(output.status.code(), Some(1));
    lab.get(&lab.definition().path());
}

#[test]
fn crds_stay_while_others_need_them() {
    let lab = Lab::new("crds");
    let hook = Hook::from_spec();
    let definition = lab.definition().sync(&hook);
    lab.add_definition(&definition);
    let foreign = lab.definition().named(&format!("{}-foreign", lab.namespace)).sync(&hook);
    lab.add_definition(&foreign.with("/metadata/labels", json!({"lab": "none"})));
    let dry = uninstall(&lab, &["--crds", "--dry-run"]);
    let shown = text(&dry.stdout);
    for kind in ["compositecontrollers", "decoratorcontrollers"] {
        let line = format!("would delete CustomResourceDefinition {kind}.metacontroller.k8s.io");
        assert!(shown.lines().any(|shown| shown == line), "{shown}");
    }
    let output = uninstall(&lab, &["--crds"]);
    assert!(
        text(&output.stderr).starts_with("error: the CRDs are still needed: "),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
    lab.get(&definition.path());
}

#[test]
fn cluster_that_cannot_be_reached_and_a_file_that_is_none_are_told() {
    let lab = Lab::bare("unreached");
    let missing = uninstall(&lab, &["--controllers", "none.yaml"]);
    assert!(text(&missing.stderr).contains("reading `none.yaml`"), "{}", text(&missing.stderr));
    assert_eq!(missing.status.code(), Some(2));
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(lab.folder.path().join("nowhere"), kubeconfig.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command.current_dir(lab.folder.path()).args(["uninstall", "--kubeconfig", "nowhere"]);
    let output: Output = command.output().expect("the binary runs");
    assert!(text(&output.stderr).starts_with("error: looking at "), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    let _: Value = kubeconfig;
}
