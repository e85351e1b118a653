//! From a parent to its children and its status, and then nothing.

use std::thread::sleep;
use std::time::Duration;

use controlplane::wait_until;
use serde_json::json;

use crate::support::hook::{Hook, from_spec};
use crate::support::lab::{Lab, SILENCE, SOON};
use crate::support::objects::{config_map, service};

/// A hook that counts the ConfigMaps it is shown.
fn counting() -> Hook {
    Hook::new(|call| {
        let mut answer = from_spec(call);
        answer["status"] = json!({"maps": call.children("ConfigMap.v1").len()});
        answer
    })
}

#[test]
fn parent_gets_children_and_status_in_two_calls_and_a_write_each() {
    let lab = Lab::new("create");
    let hook = counting();
    let _controller = lab.run(&lab.definition().config_maps().child("v1", "services", "InPlace").sync(&hook));
    let children = [config_map("a", "1"), config_map("b", "2"), service("c", 80)];
    let thing = lab.add_thing("t", json!({"children": children}));

    let done = lab.wait(&lab.thing("t"), "the status counts both", |thing| thing["status"]["maps"] == 2);
    assert_eq!(done["status"], json!({"maps": 2, "observedGeneration": 1}));
    let child = lab.get(&lab.config_map("a"));
    assert_eq!(child["data"], json!({"key": "1"}));
    assert_eq!(child["metadata"]["labels"], json!({"controller-uid": thing["metadata"]["uid"]}));
    let owner = json!({
        "apiVersion": lab.api_version(), "kind": "Thing", "name": "t", "uid": thing["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(child["metadata"]["ownerReferences"], json!([owner]));
    lab.expect_silence(&hook, SILENCE);
    let expected = ["patch configmaps a", "patch configmaps b", "patch services c", "patch things/status t"];
    let mut writes = lab.writes();
    // Neighbours of one kind are written at once.
    writes[..2].sort_unstable();
    assert_eq!(writes, expected, "in the order of the answer");
    assert_eq!(hook.count(), 2);
}

#[test]
fn hook_of_the_second_version_gets_keys_with_namespaces() {
    let lab = Lab::new("version");
    let hook = Hook::new(|call| {
        let mut answer = from_spec(call);
        answer["status"] = json!({"seen": call.children("ConfigMap.v1")});
        answer
    });
    let definition = lab.definition().config_maps().sync(&hook);
    let _controller = lab.run(&definition.with("/spec/hooks/sync/version", json!("v2")));
    lab.add_thing("t", json!({"children": [config_map("a", "1")]}));
    let seen = json!([format!("{}/a", lab.namespace)]);
    lab.wait(&lab.thing("t"), "the hook is shown its child", |thing| thing["status"]["seen"] == seen);
}

// B12; B110, in small
#[test]
fn restart_writes_nothing_and_reads_lists_only() {
    let lab = Lab::new("restart");
    let hook = counting();
    let definition = lab.definition().config_maps().child("v1", "services", "InPlace").sync(&hook);
    let controller = lab.run(&definition);
    for name in (0..20).map(|number| format!("t{number}")) {
        let children = [config_map(&format!("{name}-a"), "1"), service(&format!("{name}-b"), 80)];
        lab.add_thing(&name, json!({"children": children}));
    }
    for name in (0..20).map(|number| format!("t{number}")) {
        lab.wait(&lab.thing(&name), "the status counts one", |thing| thing["status"]["maps"] == 1);
    }
    lab.expect_silence(&hook, Duration::from_secs(1));
    assert_eq!(lab.writes().len(), 20 * 3);
    assert_eq!(hook.count(), 20 * 2);
    assert!(controller.terminate().success());

    let _controller = lab.start(&[]);
    wait_until(SOON, "every parent is visited again", || match hook.count() {
        60 => Ok(()),
        count => Err(count),
    });
    lab.expect_silence(&hook, SILENCE);
    assert_eq!(lab.writes().len(), 20 * 3, "{:?}", &lab.writes()[60..]);
    assert!(lab.reads().iter().all(|read| read.starts_with("list")), "{:?}", lab.reads());
}

#[test]
fn killed_at_any_moment_it_ends_up_the_same_with_each_child_written_once() {
    let lab = Lab::new("kill");
    let hook = counting();
    lab.write_definitions(&[&lab.definition().config_maps().sync(&hook)]);
    for (round, moment) in [0, 3, 8, 15, 25, 40].into_iter().enumerate() {
        let controller = lab.start(&[]);
        let name = format!("t{round}");
        let children: Vec<_> = (0..5).map(|child| config_map(&format!("{name}-{child}"), "1")).collect();
        lab.add_thing(&name, json!({"children": children}));
        wait_until(SOON, "the hook is called", || {
            if hook.calls_for(&name).is_empty() { Err("no call") } else { Ok(()) }
        });
        // Any moment will do: there is nothing to wait for.
        sleep(Duration::from_millis(moment));
        controller.kill();
    }
    let _controller = lab.start(&[]);
    for round in 0..6 {
        let thing = lab.thing(&format!("t{round}"));
        let done = lab.wait(&thing, "the status counts five", |thing| thing["status"]["maps"] == 5);
        assert_eq!(done["status"], json!({"maps": 5, "observedGeneration": 1}));
    }
    lab.expect_silence(&hook, SILENCE);
    // A request that the kill cut short is 504 in the audit log, whether or not it took effect.
    let mut written: Vec<_> = lab.writes().into_iter().filter(|write| !write.ends_with("504")).collect();
    written.retain(|write| write.starts_with("patch configmaps"));
    let count = written.len();
    written.sort();
    written.dedup();
    assert_eq!(written.len(), count, "{:?}", lab.writes());
}
