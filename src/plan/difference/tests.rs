use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::plan::desired::normalise;

/// Applied to Kubernetes v1.36.3 by server-side apply: what was sent, the answer, and the record in it, both without
/// what the store cuts out.
struct Applied {
    wanted: Map<String, Value>,
    live: Value,
    owned: String,
}

fn applied() -> Vec<Applied> {
    include_str!("applied.jsonl")
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let mut wanted = line["wanted"].as_object().unwrap().clone();
            normalise(&mut wanted);
            Applied { wanted, live: line["live"].take(), owned: line["owned"].to_string() }
        })
        .collect()
}

/// The custom resource, as if its list's items had no defaults.
fn thing() -> Applied {
    let mut thing = applied_kind("Thing");
    thing.live["spec"]["steps"] = thing.wanted["spec"]["steps"].clone();
    thing
}

fn applied_kind(kind: &str) -> Applied {
    applied().into_iter().find(|applied| applied.live["kind"] == kind).unwrap()
}

fn shown(differences: &Differences) -> Vec<String> {
    differences.iter().map(Difference::to_string).collect()
}

impl Applied {
    fn differences(&self) -> Differences {
        difference(&self.wanted, &self.live, Some(&self.owned))
    }

    fn shown(&self) -> Vec<String> {
        shown(&self.differences())
    }
}

#[test]
fn object_just_applied_has_no_difference() {
    for applied in applied().into_iter().filter(|applied| applied.live["kind"] != "Thing") {
        assert_eq!(applied.shown(), [""; 0], "{} {}", applied.live["kind"], applied.live["metadata"]["name"]);
    }
}

/// The value at a JSON pointer of what is wanted.
fn at<'a>(object: &'a mut Map<String, Value>, pointer: &str) -> &'a mut Value {
    let (first, rest) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
    let value = object.get_mut(first).unwrap_or_else(|| panic!("{first}"));
    if rest.is_empty() {
        value
    } else {
        value.pointer_mut(&format!("/{rest}")).unwrap_or_else(|| panic!("{rest}"))
    }
}

fn set(object: &mut Map<String, Value>, pointer: &str, value: Value) {
    let (above, name) = pointer.rsplit_once('/').unwrap();
    let parent = if above.is_empty() { object } else { at(object, above).as_object_mut().unwrap() };
    parent.insert(name.into(), value);
}

fn remove(object: &mut Map<String, Value>, pointer: &str) {
    let (above, name) = pointer.rsplit_once('/').unwrap();
    let parent = if above.is_empty() { object } else { at(object, above).as_object_mut().unwrap() };
    parent.remove(name).unwrap_or_else(|| panic!("{pointer}"));
}

/// Whether these were defaults or dropped by us cannot be told; the memory of the next write settles it.
#[test]
fn default_inside_a_list_of_a_custom_resource_is_a_difference() {
    assert_eq!(
        applied_kind("Thing").shown(),
        ["`spec.steps[0].retries` is `3`, wanted none", "`spec.steps[1].retries` is `3`, wanted none"]
    );
}

#[test]
fn changed_field_is_named_with_both_values() {
    let mut applied = applied_kind("StatefulSet");
    set(&mut applied.wanted, "/spec/replicas", json!(2));
    *at(&mut applied.wanted, "/spec/template/spec/containers/0/image") = json!("mysql:8.4");
    assert_eq!(
        applied.shown(),
        [
            "`spec.replicas` is `3`, wanted `2`",
            "`spec.template.spec.containers[name=mysql].image` is `\"mysql:8.0\"`, wanted `\"mysql:8.4\"`",
        ]
    );
    assert_eq!(
        applied.differences().to_string(),
        "`spec.replicas` is `3`, wanted `2`, `spec.template.spec.containers[name=mysql].image` is `\"mysql:8.0\"`, wanted `\"mysql:8.4\"`"
    );
    assert!(applied.differences().in_content());
}

#[test]
fn field_no_longer_wanted_is_seen_though_the_live_value_covers_what_is_wanted() {
    let mut applied = applied_kind("StatefulSet");
    remove(&mut applied.wanted, "/spec/template/metadata/annotations");
    assert_eq!(applied.shown(), ["`spec.template.metadata.annotations` is no longer wanted"]);

    let mut applied = applied_kind("StatefulSet");
    at(&mut applied.wanted, "/spec/template/spec/volumes").as_array_mut().unwrap().remove(1);
    at(&mut applied.wanted, "/spec/template/spec/containers/0/ports").as_array_mut().unwrap().remove(0);
    assert_eq!(
        applied.shown(),
        [
            "`spec.template.spec.containers[name=mysql].ports[containerPort=3306,protocol=TCP]` is no longer wanted",
            "`spec.template.spec.volumes[name=tmp]` is no longer wanted",
        ]
    );

    let mut applied = applied_kind("ConfigMap");
    remove(&mut applied.wanted, "/data/empty");
    at(&mut applied.wanted, "/metadata/finalizers").as_array_mut().unwrap().remove(0);
    assert_eq!(
        applied.shown(),
        ["`data.empty` is no longer wanted", "`metadata.finalizers[example.com/keep]` is no longer wanted"]
    );
}

#[test]
fn new_field_is_seen() {
    let mut applied = applied_kind("ConfigMap");
    set(&mut applied.wanted, "/data/new", json!("x"));
    set(&mut applied.wanted, "/metadata/labels", json!({ "app.io/name": "x" }));
    at(&mut applied.wanted, "/metadata/finalizers").as_array_mut().unwrap().push(json!("example.com/new"));
    assert_eq!(
        applied.shown(),
        [
            "`data.new` is absent, wanted `\"x\"`",
            "`metadata.finalizers` is `[\"example.com/keep\",\"example.com/b\"]`, wanted `[\"example.com/keep\",\"example.com/b\",\"example.com/new\"]`",
            "`metadata.labels` is absent, wanted `{\"app.io/name\":\"x\"}`",
        ]
    );
}

#[test]
fn key_with_dots_is_written_in_brackets() {
    let mut applied = applied_kind("StatefulSet");
    at(&mut applied.wanted, "/metadata/labels")["mysql.database.example.com/cr"] = json!("x");
    assert_eq!(
        applied.shown(),
        ["`metadata.labels[mysql.database.example.com/cr]` is `\"db\"`, wanted `\"x\"`"]
    );
}

#[test]
fn field_that_another_manager_took_is_seen_even_with_the_wanted_value() {
    let mut applied = applied_kind("Deployment");
    applied.owned = applied.owned.replace(r#""f:replicas":{},"#, "");
    assert_eq!(applied.shown(), ["`spec.replicas` is as wanted and not ours"]);
    assert!(!applied.differences().in_content());
    applied.live["spec"]["replicas"] = json!(4);
    assert_eq!(applied.shown(), ["`spec.replicas` is `4`, wanted `2`"]);
    assert!(applied.differences().in_content());
}

#[test]
fn without_a_record_content_is_told_from_ownership() {
    for applied in applied().into_iter().filter(|applied| applied.live["kind"] != "StatefulSet") {
        let found = difference(&applied.wanted, &applied.live, None);
        assert!(!found.is_empty());
        let kind = applied.live["kind"].as_str().unwrap();
        // Without a record it can't be told whether somebody removed what the server may also leave out.
        let zeros_matter =
            ["ConfigMap", "Deployment", "Job", "PersistentVolumeClaim", "Pod", "RoleBinding", "Service"];
        if !zeros_matter.contains(&kind) {
            assert_eq!(shown(&found), ["`the object` is as wanted and not ours"], "{kind}");
        }
    }
    let mut applied = applied_kind("Role");
    *at(&mut applied.wanted, "/rules/0/verbs") = json!(["get", "list"]);
    let found = difference(&applied.wanted, &applied.live, None);
    assert_eq!(shown(&found), ["`rules[0].verbs` is `[\"get\"]`, wanted `[\"get\",\"list\"]`"]);
}

#[test]
fn record_that_does_not_read_counts_as_none() {
    let applied = applied_kind("Role");
    for record in ["", "{", "[]", "{\"x\":{}}", "{\"f:rules\":1}", "{\"f:rules\":{}", "{\"f:a\\", "null"] {
        let found = difference(&applied.wanted, &applied.live, Some(record));
        assert_eq!(shown(&found), ["`the object` is as wanted and not ours"], "{record}");
    }
}

#[test]
fn record_that_metacontroller_left_is_a_difference_and_none_in_content() {
    let mut applied = applied_kind("Service");
    applied.live["metadata"]["annotations"] =
        json!({ "metacontroller.k8s.io/last-applied-configuration": "{}" });
    assert_eq!(
        applied.shown(),
        [
            "`metadata.annotations[metacontroller.k8s.io/last-applied-configuration]` is left from Metacontroller"
        ]
    );
    assert!(!applied.differences().in_content());
}

// B10
#[test]
fn quantities_are_compared_by_amount_only_where_kubernetes_holds_them() {
    let quota = |cpu: &str| {
        let mut applied = applied_kind("ResourceQuota");
        *at(&mut applied.wanted, "/spec/hard/cpu") = json!(cpu);
        applied.shown()
    };
    assert_eq!(quota("1"), [""; 0]);
    assert_eq!(quota("1000000u"), [""; 0]);
    assert_eq!(quota("2"), ["`spec.hard.cpu` is `\"1\"`, wanted `\"2\"`"]);

    let mut applied = applied_kind("ConfigMap");
    *at(&mut applied.wanted, "/data/limits") = json!("1");
    assert_eq!(applied.shown(), ["`data.limits` is `\"1000m\"`, wanted `\"1\"`"]);

    let mut applied = thing();
    *at(&mut applied.wanted, "/spec/limits/cpu") = json!("1");
    assert_eq!(applied.shown(), ["`spec.limits.cpu` is `\"1000m\"`, wanted `\"1\"`"]);
}

#[test]
fn label_that_reads_like_a_quantity_is_text() {
    let mut applied = applied_kind("Service");
    applied.live["spec"]["selector"]["app"] = json!("1");
    *at(&mut applied.wanted, "/spec/selector/app") = json!("1000m");
    assert_eq!(applied.shown(), ["`spec.selector.app` is `\"1\"`, wanted `\"1000m\"`"]);
}

#[test]
fn extra_entry_in_a_map_that_is_ours_whole_is_seen() {
    let mut applied = applied_kind("Service");
    applied.live["spec"]["selector"]["tier"] = json!("x");
    assert_eq!(applied.shown(), ["`spec.selector.tier` is `\"x\"`, wanted none"]);
}

#[test]
fn node_selector_made_empty_is_seen() {
    let mut applied = applied_kind("StatefulSet");
    applied.live["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    assert_eq!(applied.shown(), ["`spec.template.spec.nodeSelector.disk` is `\"ssd\"`, wanted none"]);
}

#[test]
fn what_others_add_beside_ours_is_no_difference() {
    let mut applied = applied_kind("StatefulSet");
    let live = &mut applied.live;
    live["metadata"]["labels"]["other"] = json!("x");
    live["metadata"]["annotations"] = json!({ "kubectl.kubernetes.io/restartedAt": "x" });
    live["metadata"]["finalizers"] = json!(["example.com/x"]);
    live["metadata"]["ownerReferences"].as_array_mut().unwrap().push(json!({ "uid": "other", "name": "x" }));
    let pod = &mut live["spec"]["template"]["spec"];
    pod["containers"].as_array_mut().unwrap().push(json!({ "name": "sidecar", "image": "x" }));
    pod["initContainers"].as_array_mut().unwrap().insert(1, json!({ "name": "mm", "image": "x" }));
    pod["containers"][0]["env"].as_array_mut().unwrap().insert(0, json!({ "name": "INJECTED" }));
    assert_eq!(applied.shown(), [""; 0]);
}

#[test]
fn lost_owner_reference_is_seen_without_a_record_of_it() {
    let mut applied = applied_kind("Service");
    applied.live["metadata"]["ownerReferences"] = json!([{ "uid": "other", "name": "x" }]);
    assert!(applied.shown()[0].starts_with("`metadata.ownerReferences"), "{:?}", applied.shown());
    applied.live["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    assert!(applied.shown()[0].starts_with("`metadata.ownerReferences` is absent"));
}

#[test]
fn order_of_environment_variables_counts() {
    let mut applied = applied_kind("StatefulSet");
    at(&mut applied.wanted, "/spec/template/spec/containers/0/env").as_array_mut().unwrap().swap(0, 2);
    assert_eq!(applied.shown(), ["`spec.template.spec.containers[name=mysql].env` is in another order"]);
}

#[test]
fn changed_protocol_of_a_port_is_a_port_dropped_and_a_port_added() {
    let mut applied = applied_kind("StatefulSet");
    at(&mut applied.wanted, "/spec/template/spec/containers/0/ports/0")["protocol"] = json!("UDP");
    assert_eq!(
        applied.shown(),
        [
            "`spec.template.spec.containers[name=mysql].ports[containerPort=3306,protocol=TCP]` is no longer wanted",
            "`spec.template.spec.containers[name=mysql].ports[0].protocol` is `\"TCP\"`, wanted `\"UDP\"`",
        ]
    );
}

#[test]
fn port_used_for_two_protocols_is_two_items() {
    let mut applied = applied_kind("Service");
    *at(&mut applied.wanted, "/spec/ports/1/name") = json!("udp");
    assert_eq!(applied.shown(), ["`spec.ports[port=53,protocol=UDP].name` is `\"dns\"`, wanted `\"udp\"`"]);
}

// B04
#[test]
fn claim_template_with_the_servers_additions_is_unchanged_and_a_new_size_is_seen() {
    let mut applied = applied_kind("StatefulSet");
    assert!(applied.live["spec"]["volumeClaimTemplates"][0].get("status").is_some());
    *at(&mut applied.wanted, "/spec/volumeClaimTemplates/0/spec/resources/requests/storage") = json!("2Gi");
    assert_eq!(
        applied.shown(),
        ["`spec.volumeClaimTemplates[0].spec.resources.requests.storage` is `\"1Gi\"`, wanted `\"2Gi\"`"]
    );
}

// B05
#[test]
fn tolerations_that_admission_adds_to_a_pod_are_no_difference() {
    let mut applied = applied_kind("Pod");
    assert_eq!(applied.live["spec"]["tolerations"].as_array().unwrap().len(), 3);
    *at(&mut applied.wanted, "/spec/tolerations/0/key") = json!("other");
    assert_eq!(applied.shown().len(), 1);
    assert!(applied.shown()[0].starts_with("`spec.tolerations` is"));
}

#[test]
fn values_of_a_secret_are_never_shown() {
    let mut applied = applied_kind("Secret");
    *at(&mut applied.wanted, "/data/password") = json!("bmV3");
    let found = applied.differences();
    for text in [found.to_string(), format!("{found:?}"), format!("{:?}", found.iter().next())] {
        assert!(text.contains("`data.password` has another value"), "{text}");
        assert!(!text.contains("bmV3") && !text.contains("c2VjcmV0"), "{text}");
    }
}

#[test]
fn zero_value_of_a_custom_resource_must_be_there() {
    let mut applied = thing();
    for field in ["zero", "no", "text", "emptyMap", "emptyList"] {
        applied.live["spec"].as_object_mut().unwrap().remove(field);
    }
    assert_eq!(applied.shown().len(), 5, "{:?}", applied.shown());
}

#[test]
fn items_of_a_list_with_a_key_of_any_text_are_found() {
    let key = r#"a"b\c/ü€\n"#;
    let live = json!({ "apiVersion": "e/v1", "kind": "T", "metadata": { "name": "t" }, "l": [{ "k": key, "n": 1.5, "v": 1 }] });
    let record = json!({ "f:l": { format!("k:{}", json!({ "k": key, "n": 1.5 })): { ".": {}, "f:k": {}, "f:n": {}, "f:v": {} } } });
    let wanted = |v: i64| {
        let mut wanted = live.as_object().unwrap().clone();
        wanted["l"][0]["v"] = json!(v);
        wanted
    };
    assert!(difference(&wanted(1), &live, Some(&record.to_string())).is_empty());
    assert_eq!(
        shown(&difference(&wanted(2), &live, Some(&record.to_string()))),
        [format!("`l[k={key},n=1.5].v` is `1`, wanted `2`")]
    );
}

#[test]
fn long_lists_are_compared_too() {
    let items: Vec<Value> = (0..100).map(|n| json!({ "name": format!("n{n}"), "v": n })).collect();
    let live = json!({ "apiVersion": "e/v1", "kind": "T", "metadata": { "name": "t" }, "l": items });
    let mut record = Map::new();
    for n in (0..100).rev() {
        record.insert(format!("k:{{\"name\":\"n{n}\"}}"), json!({ ".": {}, "f:name": {}, "f:v": {} }));
    }
    let record = json!({ "f:l": record }).to_string();
    let mut wanted = live.as_object().unwrap().clone();
    assert!(difference(&wanted, &live, Some(&record)).is_empty());
    wanted["l"][57]["v"] = json!(0);
    assert_eq!(shown(&difference(&wanted, &live, Some(&record))), ["`l[name=n57].v` is `57`, wanted `0`"]);
}

#[test]
fn same_difference_has_the_same_hash_and_another_value_another() {
    let with = |replicas: i64, live: i64| {
        let mut applied = applied_kind("Deployment");
        set(&mut applied.wanted, "/spec/replicas", json!(replicas));
        applied.live["spec"]["replicas"] = json!(live);
        applied.differences()
    };
    assert_eq!(with(5, 4).signature(), with(5, 4).signature());
    assert_ne!(with(5, 4).signature(), with(6, 4).signature());
    assert_ne!(with(5, 4).signature(), with(5, 3).signature());
    assert!(with(5, 4).without(&with(5, 4).hashes()).is_empty());
    assert!(!with(5, 4).without(&with(6, 4).hashes()).is_empty());
}

#[test]
fn long_value_is_cut() {
    let mut applied = applied_kind("ConfigMap");
    *at(&mut applied.wanted, "/data/limits") = json!("ü".repeat(1000));
    let wanted = applied.differences().iter().next().unwrap().want.clone().unwrap();
    assert_eq!(wanted, format!("`\"{}…`", "ü".repeat(59)));
}

/// A small API server for one kind: maps are merged, `items` are keyed by name and get a default, `set` is a set,
/// `whole` and `nodeSelector` are values of one owner.
struct Model {
    live: Value,
    record: Value,
}

impl Model {
    fn new() -> Self {
        let live = json!({ "apiVersion": "e/v1", "kind": "T", "metadata": { "name": "t" }, "spec": {} });
        Model { live, record: json!({}) }
    }

    fn apply(&mut self, wanted: &Value) {
        let record = Model::record("spec", &wanted["spec"]);
        if let Some(old) = self.record.get("f:spec") {
            Model::prune(&mut self.live["spec"], old, &record);
        }
        Model::merge("spec", &mut self.live["spec"], &wanted["spec"]);
        self.record = json!({ "f:spec": record });
    }

    fn record(field: &str, value: &Value) -> Value {
        let members: Map<String, Value> = match (field, value) {
            ("whole" | "nodeSelector", _) => Map::new(),
            ("items", Value::Array(items)) => items
                .iter()
                .map(|item| {
                    let mut members = Model::record("item", item);
                    members["."] = json!({});
                    (format!("k:{}", json!({ "name": item["name"] })), members)
                })
                .collect(),
            ("set", Value::Array(elements)) => {
                elements.iter().map(|element| (format!("v:{element}"), json!({}))).collect()
            }
            (_, Value::Object(fields)) => {
                fields.iter().map(|(name, value)| (format!("f:{name}"), Model::record(name, value))).collect()
            }
            _ => Map::new(),
        };
        let mut members: Vec<(String, Value)> = members.into_iter().collect();
        members.sort_by(|left, right| left.0.cmp(&right.0));
        Value::Object(members.into_iter().collect())
    }

    /// Removes what the old record names and the new one doesn't.
    fn prune(live: &mut Value, old: &Value, new: &Value) {
        for (member, old) in old.as_object().unwrap().iter().filter(|(member, _)| *member != ".") {
            let (kept, name) = (new.get(member), &member[2..]);
            match (member.as_bytes()[0], live.as_array_mut()) {
                (b'f', _) => match (kept, live.get_mut(name)) {
                    (Some(kept), Some(live)) => Model::prune(live, old, kept),
                    (None, Some(_)) => drop(live.as_object_mut().unwrap().remove(name)),
                    _ => {}
                },
                (b'k', Some(items)) => {
                    let key: Value = serde_json::from_str(name).unwrap();
                    let place = items.iter().position(|item| item["name"] == key["name"]);
                    match (kept, place) {
                        (Some(kept), Some(place)) => Model::prune(&mut items[place], old, kept),
                        (None, Some(place)) => drop(items.remove(place)),
                        _ => {}
                    }
                }
                (b'v', Some(elements)) if kept.is_none() => {
                    let element: Value = serde_json::from_str(name).unwrap();
                    elements.retain(|other| *other != element);
                }
                _ => {}
            }
        }
    }

    fn merge(field: &str, live: &mut Value, wanted: &Value) {
        match (field, &mut *live, wanted) {
            ("whole" | "nodeSelector", ..) => *live = wanted.clone(),
            ("items", Value::Array(live), Value::Array(wanted)) => Model::merge_items(live, wanted),
            ("set", Value::Array(live), Value::Array(wanted)) => {
                wanted.iter().for_each(|element| {
                    if !live.contains(element) {
                        live.push(element.clone())
                    }
                });
            }
            (_, Value::Object(live), Value::Object(wanted)) => {
                for (name, value) in wanted {
                    let empty = match value {
                        Value::Object(_) => json!({}),
                        Value::Array(_) => json!([]),
                        _ => Value::Null,
                    };
                    Model::merge(name, live.entry(name).or_insert(empty), value);
                }
            }
            _ => *live = wanted.clone(),
        }
    }

    fn merge_items(live: &mut Vec<Value>, wanted: &[Value]) {
        let place =
            |live: &[Value], item: &Value| live.iter().position(|other| other["name"] == item["name"]);
        let places: Vec<usize> = wanted.iter().filter_map(|item| place(live, item)).collect();
        if !places.is_sorted() {
            let (ours, others): (Vec<Value>, Vec<Value>) =
                live.drain(..).partition(|item| place(wanted, item).is_some());
            *live = wanted.iter().filter_map(|item| place(&ours, item).map(|at| ours[at].clone())).collect();
            live.extend(others);
        }
        let mut next = 0;
        for item in wanted {
            let at = place(live, item).unwrap_or_else(|| {
                live.insert(next, json!({ "name": item["name"], "filled": 1 }));
                next
            });
            next = at + 1;
            Model::merge("item", &mut live[at], item);
        }
    }
}

fn wanted_spec() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let scalar = || prop_oneof![(0..3i64).prop_map(Value::from), name().prop_map(Value::from)];
    let subset = || prop::sample::subsequence(vec!["a", "b", "c", "d"], 0..4).prop_shuffle();
    let item_fields = prop::collection::btree_map(prop::sample::select(vec!["x", "y"]), scalar(), 0..3);
    let items = (subset(), prop::collection::vec(item_fields, 4)).prop_map(|(names, fields)| {
        let items = names.into_iter().zip(fields).map(|(name, fields)| {
            let mut item = json!(fields);
            item["name"] = json!(name);
            item
        });
        items.collect::<Value>()
    });
    let map = prop::collection::btree_map(name(), scalar(), 1..4).prop_map(|fields| json!(fields));
    let field = prop_oneof![
        items.prop_map(|value| ("items", value)),
        subset()
            .prop_filter("a set with elements", |set| !set.is_empty())
            .prop_map(|set| ("set", json!(set))),
        prop::collection::vec(scalar(), 0..3).prop_map(|list| ("whole", json!(list))),
        map.clone().prop_map(|map| ("nodeSelector", map)),
        map.prop_map(|map| ("map", map)),
        scalar().prop_map(|value| ("n", value)),
    ];
    prop::collection::vec(field, 1..5)
        .prop_map(|fields| fields.into_iter().filter(|(_, value)| *value != json!([])).collect::<Vec<_>>())
        .prop_filter("a spec with fields", |fields| !fields.is_empty())
        .prop_map(|fields| {
            let spec: Map<String, Value> =
                fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            json!({ "apiVersion": "e/v1", "kind": "T", "metadata": { "name": "t" }, "spec": spec })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn there_is_a_difference_exactly_when_an_apply_would_change_something(
        first in wanted_spec(), second in wanted_spec(), same: bool,
    ) {
        let second = if same { first.clone() } else { second };
        let mut server = Model::new();
        server.apply(&first);
        let found = difference(first.as_object().unwrap(), &server.live, Some(&server.record.to_string()));
        prop_assert!(found.is_empty(), "{found}");
        let found = difference(second.as_object().unwrap(), &server.live, Some(&server.record.to_string()));
        let (live, record) = (server.live.clone(), server.record.clone());
        server.apply(&second);
        let changes = server.live != live || server.record != record;
        prop_assert_eq!(!found.is_empty(), changes, "{} | {} | {}", found, live, server.live);
        let found = difference(second.as_object().unwrap(), &server.live, Some(&server.record.to_string()));
        prop_assert!(found.is_empty(), "{found}");
    }

    #[test]
    fn no_record_and_no_live_object_panics(record in r#"[{}":,.fkv\\ nameü:]{0,60}"#, live in wanted_spec(), wanted in wanted_spec()) {
        difference(wanted.as_object().unwrap(), &live, Some(&record));
        difference(wanted.as_object().unwrap(), &live, None);
        difference(wanted.as_object().unwrap(), &Value::Null, Some(&record));
    }
}

/// 556 changes of the applied objects, one at a time, and whether Kubernetes v1.36.3 said in a dry run that applying them
/// would change anything. Kind, name, what was done, where, what came of it.
#[test]
fn there_is_a_difference_exactly_when_kubernetes_would_change_something() {
    let applied = applied();
    let mut disagreements = Vec::new();
    for line in include_str!("mutants.tsv").lines() {
        let [kind, name, what, pointer, outcome] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let applied = applied
            .iter()
            .find(|applied| applied.live["kind"] == kind && applied.live["metadata"]["name"] == name)
            .unwrap();
        let live = if kind == "Thing" { thing().live } else { applied.live.clone() };
        let mut wanted = Value::from(applied.wanted.clone());
        mutate(&mut wanted, what, pointer);
        let found = difference(wanted.as_object().unwrap(), &live, Some(&applied.owned));
        if found.is_empty() != (outcome == "same") {
            disagreements.push(format!("{line}: {found}"));
        }
    }
    assert_eq!(
        disagreements,
        [
            // The order of a set means nothing.
            "ConfigMap\tdb\tswap\t/metadata/finalizers\tchanges: ",
            // The server fills it in again; the memory of the next write settles it.
            "NetworkPolicy\tweb\tempty\t/spec/policyTypes\tsame: `spec.policyTypes` is `[\"Ingress\",\"Egress\"]`, wanted `[]`",
            "Thing\tt\tswap\t/spec/set\tchanges: ",
            // A custom resource's map of one owner looks, when it is wanted empty, like one that others may add to.
            "Thing\tt\tremove\t/spec/atomic/a\tchanges: ",
            "Thing\tt\tempty\t/spec/atomic\tchanges: ",
        ]
    );
}

fn mutate(object: &mut Value, what: &str, pointer: &str) {
    let (above, name) = pointer.rsplit_once('/').unwrap();
    if what == "remove" {
        let name = name.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(above).unwrap() {
            Value::Object(fields) => drop(fields.shift_remove(&name)),
            Value::Array(list) => drop(list.remove(name.parse().unwrap())),
            _ => unreachable!("a member of a scalar"),
        }
        return;
    }
    let value = object.pointer_mut(pointer).unwrap();
    match (what, &mut *value) {
        ("empty", Value::Object(fields)) => fields.clear(),
        ("empty", Value::Array(list)) => list.clear(),
        ("swap", Value::Array(list)) => list.swap(0, 1),
        ("seven", value) => *value = json!("7"),
        ("change", Value::Bool(truth)) => *truth = !*truth,
        ("change", Value::Number(number)) => {
            *value = match number.as_i64() {
                Some(integer) => json!(integer + 1),
                None => json!(number.as_f64().unwrap() + 1.0),
            }
        }
        ("change", Value::String(text)) => text.push('x'),
        _ => unreachable!("{what} of {value}"),
    }
}

#[test]
fn places_are_the_same_text_whatever_the_values() {
    let object = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value, "b": value, "c": value, "d": value}});
    let live = object("0");
    let places = ["1", "2"].map(|value| {
        let wanted = object(value);
        difference(wanted.as_object().unwrap(), &live, None).places()
    });
    assert_eq!(places[0], "`data.a`, `data.b`, `data.c` and 1 more");
    assert_eq!(places[0], places[1]);
}
