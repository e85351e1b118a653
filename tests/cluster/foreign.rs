//! Objects that belong to somebody else, or did before.

use serde_json::{Value, json};

use crate::support::hook::Hook;
use crate::support::lab::{Lab, SILENCE};
use crate::support::objects::config_map;

/// What a hook states of an object that is not its parent's.
fn stated(name: &str, value: &str) -> Value {
    let mut child = config_map(name, value);
    child["metadata"]["annotations"] = json!({"syncwright.io/ownership": "none"});
    child
}

#[test]
fn somebody_elses_object_is_changed_where_it_exists_and_survives_the_parent() {
    let lab = Lab::new("loan");
    let hook = Hook::from_spec();
    let _controller = lab.run(&lab.definition().config_maps().sync(&hook));
    let path = lab.path("v1", "configmaps", "theirs");
    lab.add_thing("t", json!({"children": [stated("theirs", "1")]}));
    lab.wait_synced(&lab.thing("t"));
    lab.wait_quiet(&hook, SILENCE);
    assert!(lab.plane.get(&path).is_none(), "never created");

    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": lab.namespace},
        "data": {"key": "0", "other": "kept"},
    });
    lab.plane.create(&lab.path("v1", "configmaps", ""), &theirs);
    let live = lab.wait(&path, "what is stated is there", |live| live["data"]["key"] == "1");
    assert_eq!(live["data"]["other"], "kept");
    assert_eq!(live["metadata"].get("ownerReferences"), None);
    assert_eq!(live["metadata"].get("annotations"), None);
    lab.merge(&path, json!({"data": {"key": "edited"}}));
    lab.wait(&path, "it is brought back", |live| live["data"]["key"] == "1");
    lab.wait_quiet(&hook, SILENCE);
    let writes = lab.writes().len();
    lab.merge(&lab.thing("t"), json!({"metadata": {"labels": {"seen": "again"}}}));
    lab.wait_quiet(&hook, SILENCE);
    assert_eq!(lab.writes().len(), writes, "compared, not written again: {:?}", lab.writes());

    lab.plane.delete(&lab.thing("t"));
    lab.wait_gone(&lab.thing("t"));
    assert!(lab.plane.get(&path).is_some(), "it outlives the parent");
}
