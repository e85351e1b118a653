//! Which related objects a rule selects: every row of the table, by a hook of each version.

use serde_json::{Value, json};

use crate::support::hook::{Call, Hook};
use crate::support::lab::Lab;
use crate::support::objects::config_map;

/// A hook whose rules are the parent's, and that tells what it was shown.
fn telling() -> Hook {
    Hook::new(|call: &Call| match call.hook.as_str() {
        "customize" => json!({"relatedResources": call.spec()["rules"]}),
        _ => {
            let mut shown: Vec<&str> = call.related("ConfigMap.v1");
            // Each namespace has one of the cluster's own.
            shown.retain(|name| !name.ends_with("kube-root-ca.crt"));
            let groups: Vec<&String> = call.request["related"].as_object().unwrap().keys().collect();
            let namespaces = call.related("Namespace.v1").len();
            json!({"children": [], "status": {"shown": shown, "groups": groups, "namespaces": namespaces}})
        }
    })
}

fn labelled(name: &str) -> Value {
    let mut map = config_map(name, "1");
    map["metadata"]["labels"] = json!({"picked": "yes"});
    map
}

struct Rows<'a> {
    lab: &'a Lab,
    version: &'a str,
}

impl Rows<'_> {
    fn check(&self, number: usize, rule: Value, expected: &[&str]) {
        let mut rule = rule;
        rule["apiVersion"] = json!("v1");
        rule["resource"] = json!("configmaps");
        let name = format!("{}-{number}", self.version);
        self.lab.add_thing(&name, json!({"rules": [rule]}));
        let mut expected: Vec<String> =
            expected.iter().map(|name| name.replace("HERE", &self.lab.namespace)).collect();
        expected.sort();
        let thing = self.lab.wait(&self.lab.thing(&name), &format!("{rule} has an answer"), |thing| {
            thing["status"]["shown"].is_array() || !thing["status"]["conditions"].is_null()
        });
        assert_eq!(thing["status"]["shown"], json!(expected), "{} {rule}", self.version);
    }
}

#[test]
fn every_rule_selects_what_the_table_says() {
    let lab = Lab::new("selection");
    let second = lab.plane.namespace("selection-more");
    for map in [labelled("sel-a"), config_map("sel-b", "1")] {
        lab.create("v1", "configmaps", &map);
    }
    let there = format!("/api/v1/namespaces/{second}/configmaps");
    for map in [labelled("sel-a"), config_map("sel-c", "1")] {
        lab.plane.create(&there, &map);
    }
    let hook = telling();
    let picked = json!({"matchLabels": {"picked": "yes"}});
    let here = json!(lab.namespace);

    let definition = lab.definition().sync(&hook).customize(&hook);
    let controller = lab.run(&definition.clone().version("v1"));
    let rows = Rows { lab: &lab, version: "v1" };
    for (number, (rule, expected)) in [
        (json!({}), &["sel-a", "sel-b"][..]),
        (
            json!({"labelSelector": null, "names": null, "namespace": null, "namespaceSelector": null}),
            &["sel-a", "sel-b"],
        ),
        (json!({"labelSelector": {}}), &["sel-a", "sel-b"]),
        (json!({"labelSelector": picked}), &["sel-a"]),
        (json!({"namespace": here, "labelSelector": picked}), &["sel-a"]),
        (json!({"namespace": here}), &["sel-a", "sel-b"]),
        (json!({"namespace": here, "names": []}), &["sel-a", "sel-b"]),
        (json!({"namespace": here, "names": ["sel-b", "absent"]}), &["sel-b"]),
        (json!({"names": ["sel-a", "sel-c"]}), &["sel-a"]),
    ]
    .into_iter()
    .enumerate()
    {
        rows.check(number, rule, expected);
    }
    controller.kill();

    let _controller = lab.run(&definition.version("v2"));
    let rows = Rows { lab: &lab, version: "v2" };
    let (there_a, there_c) = (format!("{second}/sel-a"), format!("{second}/sel-c"));
    let by_name = |name: &str| json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
    for (number, (rule, expected)) in [
        (json!({"names": ["sel-a", "sel-c"]}), &["HERE/sel-a", &there_a, &there_c][..]),
        (json!({"namespace": second, "names": ["sel-c"]}), &[&there_c]),
        (json!({"namespace": second}), &[&there_a, &there_c]),
        (json!({"namespace": second, "labelSelector": picked}), &[&there_a]),
        (json!({"namespaceSelector": by_name(&second)}), &[&there_a, &there_c]),
        (json!({"namespaceSelector": by_name(&second), "labelSelector": picked}), &[&there_a]),
        (json!({"namespaceSelector": by_name("nowhere")}), &[]),
    ]
    .into_iter()
    .enumerate()
    {
        rows.check(number, rule, expected);
    }
}

#[test]
fn object_of_the_cluster_is_shown_by_the_second_version_alone_and_its_group_by_both() {
    let lab = Lab::new("ofcluster");
    let hook = telling();
    for (version, shown) in [("v1", 0), ("v2", 1)] {
        let controller = lab.run(&lab.definition().sync(&hook).customize(&hook).version(version));
        // A namespace to look in means nothing for such a kind.
        let rule = json!({
            "apiVersion": "v1", "resource": "namespaces", "names": [lab.namespace],
        });
        lab.add_thing(version, json!({"rules": [rule]}));
        let thing = lab.wait(&lab.thing(version), "it has an answer", |thing| !thing["status"].is_null());
        assert_eq!(thing["status"]["groups"], json!(["Namespace.v1"]));
        assert_eq!(thing["status"]["namespaces"], shown, "{version}");
        controller.kill();
    }
}

// Its data may hold what the rules depend on.
#[test]
fn rules_of_a_parent_without_a_generation_are_asked_for_when_its_data_change() {
    let lab = Lab::bare("rulesofdata");
    let hook = Hook::new(|call: &Call| match call.hook.as_str() {
        "customize" => {
            let name = &call.parent()["data"]["wants"];
            json!({"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "names": [name]}]})
        }
        _ => {
            let name = format!("{}-seen", call.parent_name());
            let shown = call.related("ConfigMap.v1").join(",");
            let mut child = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
            child["stringData"] = json!({ "shown": shown });
            json!({"children": [child]})
        }
    });
    for name in ["one", "two"] {
        lab.create("v1", "configmaps", &config_map(name, "1"));
    }
    let parent = json!({
        "apiVersion": "v1", "resource": "configmaps", "labelSelector": {"matchLabels": {"lab": lab.namespace}},
    });
    let definition = lab.definition().with("/spec/parentResource", parent).child("v1", "secrets", "InPlace");
    let _controller = lab.run(&definition.sync(&hook).customize(&hook));
    let mut map = config_map("p", "1");
    map["metadata"]["labels"] = json!({"lab": lab.namespace});
    map["data"] = json!({"wants": "one"});
    lab.create("v1", "configmaps", &map);
    let path = lab.path("v1", "secrets", "p-seen");
    lab.wait(&path, "it is shown the first", |child| child["data"]["shown"] == "b25l");
    lab.merge(&lab.config_map("p"), json!({"data": {"wants": "two"}}));
    lab.wait(&path, "it is shown the second", |child| child["data"]["shown"] == "dHdv");
}
