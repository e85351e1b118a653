//! PostgreSQLClusters of every version become those of every other one and come back as they were.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::syncwright;

const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];
const CLASS: &str = "db.example.com/storage-class-name";

/// Numbers that look like chance (xorshift), the same in every run.
struct Chance(u64);

impl Chance {
    fn one_of(&mut self, values: &[Value]) -> Value {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        values[(self.0 % values.len() as u64) as usize].clone()
    }

    /// A cluster as its version holds it. Fields that are drawn as null are absent.
    fn cluster(&mut self, version: &str) -> Value {
        let size = self.one_of(&[json!("1Gi"), json!("10Gi"), json!("0010Gi"), json!("999999999Gi")]);
        let class = self.one_of(&[json!(null), json!(""), json!("fast"), json!("no"), json!("{{ x }}")]);
        let mut annotations =
            self.one_of(&[json!({}), json!({"team": "blue: 'x'"}), json!({"a": "", "b": "1"})]);
        let mut spec = json!({
            "replicas": self.one_of(&[json!(1), json!(10), json!(null)]),
            "version": self.one_of(&[json!("14"), json!("16")]),
            "backup": self.one_of(&[json!(null), json!({"schedule": "*/5 1-5 * * *", "retentionDays": 90})]),
            "resources": self.one_of(&[json!(null), json!({}), json!({"limits": {"cpu": 1, "memory": "1Gi"}})]),
            "passwordSecret": self.one_of(&[json!(null), json!({"name": "no", "key": "~"})]),
        });
        match version {
            "v1" => spec["storage"] = present(json!({"size": size, "storageClassName": class})),
            "v1beta1" => spec["storageSize"] = size,
            _ => spec["storage"] = size,
        }
        if version != "v1" && !class.is_null() {
            annotations[CLASS] = class;
        }
        let status = self.one_of(&[json!(null), json!({}), json!({"phase": "Running", "conditions": []})]);
        let annotations = if annotations == json!({}) { json!(null) } else { annotations };
        present(json!({
            "apiVersion": format!("db.example.com/{version}"),
            "kind": "PostgreSQLCluster",
            "metadata": present(json!({"name": "shop", "namespace": "blog", "annotations": annotations})),
            "spec": present(spec),
            "status": status,
        }))
    }
}

fn present(value: Value) -> Value {
    let Value::Object(fields) = value else { panic!("a map is drawn: {value}") };
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
}

fn converted(object: &Value, to: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let request = folder.path().join("request.yaml");
    std::fs::write(&request, json!({"object": object, "to": to}).to_string()).unwrap();
    let arguments = ["render", "postgresqlcluster", "convert", request.to_str().unwrap(), "-o", "json"];
    let said = syncwright(Path::new(env!("CARGO_MANIFEST_DIR")), &arguments);
    assert_eq!(said.code, 0, "{object} to {to}: {said:?}");
    serde_json::from_str(&said.out).expect("an answer is JSON")
}

#[test]
fn every_round_trip_of_a_cluster_loses_nothing() {
    let mut chance = Chance(0x5eed);
    for _ in 0..12 {
        for from in VERSIONS {
            let object = chance.cluster(from);
            for to in VERSIONS.into_iter().filter(|to| *to != from) {
                let there = converted(&object, to);
                let held = &there["spec"][if to == "v1beta1" { "storageSize" } else { "storage" }];
                assert_eq!(held.is_object(), to == "v1", "{object} to {to}: {there}");
                assert!(to != "v1" || there["metadata"]["annotations"][CLASS].is_null(), "{there}");
                assert_eq!(converted(&there, from), object, "by way of {to}: {there}");
            }
        }
    }
}

#[test]
fn a_size_that_is_edited_in_an_older_version_wins_and_the_class_stays() {
    let storage = json!({"size": "10Gi", "storageClassName": "fast"});
    let object = json!({
        "apiVersion": "db.example.com/v1", "kind": "PostgreSQLCluster", "metadata": {"name": "shop"},
        "spec": {"version": "16", "storage": storage},
    });
    for (older, field) in [("v1alpha1", "storage"), ("v1beta1", "storageSize")] {
        let mut edited = converted(&object, older);
        edited["spec"][field] = json!("20Gi");
        let newer = json!({"size": "20Gi", "storageClassName": "fast"});
        assert_eq!(converted(&edited, "v1")["spec"]["storage"], newer);
        edited["metadata"]["annotations"][CLASS] = json!("slow");
        assert_eq!(converted(&edited, "v1")["spec"]["storage"]["storageClassName"], json!("slow"));
    }
}
