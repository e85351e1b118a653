//! A cluster with the CRDs of an older Metacontroller, whose definitions have no place for a status. It is one of its own,
//! since all tests share the CRDs of the other.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{COMPOSITE_CRD, CRDS, DECORATOR_CRD, DECORATORS, DEFINITIONS, Lab, SILENCE, SOON};
use crate::support::objects::config_map;

fn status_writes(lab: &Lab) -> Vec<String> {
    lab.writes().into_iter().filter(|write| write.contains("controllers/status")).collect()
}

/// As Metacontroller's: `.status` is an object without fields.
fn make_older(lab: &Lab) {
    for plural in ["compositecontrollers", "decoratorcontrollers"] {
        let path = format!("{CRDS}/{plural}.metacontroller.k8s.io");
        let mut versions = lab.get(&path)["spec"]["versions"].clone();
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({"type": "object"});
        versions[0]["additionalPrinterColumns"] = Value::Null;
        lab.merge(&path, json!({"spec": {"versions": versions}}));
    }
}

#[test]
fn older_crds_are_told_of_once_and_removed_when_asked() {
    let lab = Lab::apart("older");
    let crds = || {
        lab.plane.apply("default", COMPOSITE_CRD);
        lab.plane.apply("default", DECORATOR_CRD);
        for list in [DEFINITIONS, DECORATORS] {
            lab.plane.wait_for(list, SOON, "definitions can be listed", |_| true);
        }
    };
    crds();
    make_older(&lab);
    let hook = Hook::from_spec();
    let definition = lab.definition().config_maps().sync(&hook).finalize(&hook);
    let controller = lab.start(&[]);
    lab.plane.create(DEFINITIONS, &definition.0);
    for name in ["a", "b"] {
        lab.add_thing(name, json!({"children": [config_map(name, "1")]}));
        lab.wait_synced(&lab.thing(name));
    }
    lab.wait_until("the log tells of it", || {
        controller.log().contains("status of definitions is not written")
    });
    lab.merge(&definition.path(), json!({"spec": {"resyncPeriodSeconds": 3600}}));
    lab.add_thing("c", json!({"children": [config_map("c", "1")]}));
    lab.wait_synced(&lab.thing("c"));
    lab.expect_silence(&hook, SILENCE);
    let log = controller.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("status of definitions")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("its CRD has no place for one"), "{}", told[0]);
    assert!(status_writes(&lab).len() <= 1, "{:?}", status_writes(&lab));
    assert_eq!(log.matches("controller stopping").count(), 1, "it was restarted for the edit alone");
    controller.terminate();

    // The CRDs that come with the product, and all is told.
    crds();
    let controller = lab.start(&[]);
    lab.wait(&definition.path(), "it has a status", |live| live["status"]["parents"] == 3);
    controller.terminate();

    let mut command = Command::new(env!("CARGO_BIN_EXE_syncwright"));
    command.current_dir(lab.folder.path()).args(["uninstall", "--crds", "--kubeconfig"]);
    let output = command.arg(&lab.user.kubeconfig).output().expect("the binary was built for this test");
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}{errors}");
    assert!(told.ends_with("3 parents cleaned, 3 objects deleted\n"), "{told}");
    for plural in ["compositecontrollers", "decoratorcontrollers"] {
        lab.wait_gone(&format!("{CRDS}/{plural}.metacontroller.k8s.io"));
    }
    assert_eq!(lab.get(&lab.thing("a"))["metadata"]["finalizers"], Value::Null);
    lab.get(&lab.config_map("a"));
    lab.plane.stop();
}
