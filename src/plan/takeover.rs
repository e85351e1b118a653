//! Taking over an object that others wrote before: by Metacontroller without server-side apply, by kubectl, by hand.
//!
//! Server-side apply removes a field when the last manager that owns it no longer wants it. Whoever wrote the object before
//! us by plain updates would own its fields for ever, and a field dropped from a template would stay. So what we want, and
//! what Metacontroller's own record says it wanted, becomes ours before the first apply, in one patch.

use serde_json::{Map, Value, json};

use crate::plan::desired::LAST_APPLIED;

/// Whether an object is to be taken over before it is applied: nothing in it is recorded as ours, Metacontroller left
/// its record of what it applied, or plain updates of its own (`updated`) own fields beside what it applied later.
pub(crate) fn is_due(body: &str, owned: Option<&str>, updated: bool) -> bool {
    owned.is_none() || updated || body.contains(LAST_APPLIED[0])
}

/// The JSON patch that makes `manager` the owner of what it is about to apply. `updaters` are the names of
/// Metacontroller's plain updates.
///
/// `live` is the whole object, `managedFields` included. The patch holds its resource version and is refused if the
/// object has changed meanwhile. `None` when there is nothing to take.
pub(crate) fn patch(
    live: &Value,
    wanted: &Map<String, Value>,
    manager: &str,
    updaters: &[&str],
) -> Option<Value> {
    let record = last_applied(live.get("metadata")?);
    let wishes: Vec<&Map<String, Value>> = [Some(wanted), record.as_ref()].into_iter().flatten().collect();
    patch_for(&wishes, live, wanted, (manager, updaters))
}

/// The JSON patch that makes `applier` the owner of the whole status that `updaters` have written by plain updates: a hook
/// states a status as a whole, so what its next answer lacks is to go. `None` when there is nothing to take.
pub(crate) fn status_patch(
    live: &Value,
    api_version: &str,
    updaters: &[&str],
    applier: &str,
) -> Option<Value> {
    let metadata = live.get("metadata")?;
    let entries = metadata.get("managedFields").and_then(Value::as_array)?;
    let is_status = |entry: &Value| entry["subresource"] == "status" && entry["apiVersion"] == api_version;
    let updated = |entry: &Value| {
        entry["operation"] == "Update" && updaters.iter().any(|updater| entry["manager"] == *updater)
    };
    let applied = |entry: &Value| entry["manager"] == applier && entry["operation"] == "Apply";
    let (taken, mut rest): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| is_status(entry) && (updated(entry) || applied(entry)));
    let mut ours = taken.iter().find(|entry| updated(entry)).map(|entry| (*entry).clone())?;
    let mut record = Map::new();
    for fields in taken.iter().filter_map(|entry| entry.get("fieldsV1")?.as_object()) {
        join(&mut record, fields);
    }
    (ours["manager"], ours["operation"], ours["fieldsV1"]) = (applier.into(), "Apply".into(), record.into());
    rest.push(&ours);
    Some(json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")? },
        { "op": "replace", "path": "/metadata/managedFields", "value": rest },
    ]))
}

/// The JSON patch that makes `manager` the owner of every item of the list in which `field` was refused, so that an apply
/// removes those it doesn't want.
///
/// An apply leaves the items of others alone. A Service's port that somebody has renumbered is such an item, and with it
/// ours can't come back: both have one name. `None` where that is not the reason.
pub(crate) fn evict(live: &Value, wanted: &Map<String, Value>, field: &str, manager: &str) -> Option<Value> {
    let (path, below) = field.split_once('[')?;
    // What is refused deeper down lies in an item that may be ours.
    if below.contains('[') {
        return None;
    }
    let mut pointer = path.split('.').fold(String::new(), |pointer, step| pointer + "/" + step);
    let list = live.pointer(&pointer).filter(|list| list.is_array())?;
    let mut whole = list.clone();
    while let Some((parent, name)) = pointer.rsplit_once('/') {
        whole = json!({ name: whole });
        pointer = parent.to_string();
    }
    let states = Value::Object(wanted.clone()).pointer(&format!("/{}", path.replace('.', "/")))?.is_array();
    patch_for(&[whole.as_object().filter(|_| states)?], live, wanted, (manager, &[manager]))
}

fn patch_for(
    wishes: &[&Map<String, Value>],
    live: &Value,
    wanted: &Map<String, Value>,
    (manager, updaters): (&str, &[&str]),
) -> Option<Value> {
    let metadata = live.get("metadata")?;
    let entries = metadata.get("managedFields").and_then(Value::as_array)?;
    let taker = Taker { manager, updaters, version: wanted.get("apiVersion")? };
    let (managers, taken) = share_out(entries, wishes, taker);
    let mut patch = vec![json!({
        "op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")?,
    })];
    if taken {
        patch.push(json!({ "op": "replace", "path": "/metadata/managedFields", "value": managers }));
    }
    if metadata.pointer(&annotation_pointer()).is_some() {
        patch.push(json!({ "op": "remove", "path": format!("/metadata{}", annotation_pointer()) }));
    }
    (patch.len() > 1).then_some(patch.into())
}

/// What Metacontroller applied last. One that can't be read is as good as none.
fn last_applied(metadata: &Value) -> Option<Map<String, Value>> {
    let text = metadata.pointer(&annotation_pointer())?.as_str()?;
    serde_json::from_str(text).ok()
}

/// Below `/metadata`; a `/` in a key is written `~1`.
fn annotation_pointer() -> String {
    format!("/annotations/{}", LAST_APPLIED[0].replace('/', "~1"))
}

/// Whose entry receives what is taken, and the version in which it applies.
#[derive(Clone, Copy)]
struct Taker<'a> {
    manager: &'a str,
    updaters: &'a [&'a str],
    version: &'a Value,
}

/// The managers' entries after ours has taken its share of plain updates, and whether it took any.
fn share_out(entries: &[Value], wishes: &[&Map<String, Value>], taker: Taker) -> (Vec<Value>, bool) {
    let mut ours = json!({
        "manager": taker.manager, "operation": "Apply", "apiVersion": taker.version, "fieldsType": "FieldsV1",
    });
    let (mut record, mut taken) = (Map::new(), false);
    let mut rest = Vec::new();
    for entry in entries {
        match (entry.get("fieldsV1").and_then(Value::as_object), taker.relation(entry)) {
            (Some(fields), Relation::Ours) => {
                join(&mut record, fields);
                ours["time"] = entry["time"].clone();
            }
            (Some(fields), Relation::Update) => {
                let mut share = Map::new();
                wishes.iter().for_each(|wish| join(&mut share, &common(fields, wish)));
                // What Metacontroller owned under our name and never wanted are the server's defaults: nobody's.
                let nobodys = taker.updaters.iter().any(|updater| entry["manager"] == *updater);
                taken |= nobodys || !share.is_empty();
                if ours.get("time").is_none() {
                    ours["time"] = entry["time"].clone();
                }
                let left = without(fields, &share);
                if !left.is_empty() && !nobodys {
                    let mut entry = entry.clone();
                    entry["fieldsV1"] = left.into();
                    rest.push(entry);
                }
                join(&mut record, &share);
            }
            _ => rest.push(entry.clone()),
        }
    }
    if taken {
        ours["fieldsV1"] = record.into();
        rest.push(ours);
    }
    (rest, taken)
}

enum Relation {
    /// Our own apply entry.
    Ours,
    /// A plain update of the object, in our version of it.
    Update,
    /// Another one's apply, a subresource, or another version, whose fields may be called otherwise.
    Apart,
}

impl Taker<'_> {
    fn relation(&self, entry: &Value) -> Relation {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        if !text("subresource").is_empty() || entry.get("apiVersion") != Some(self.version) {
            return Relation::Apart;
        }
        match text("operation") {
            "Apply" if text("manager") == self.manager => Relation::Ours,
            "Update" => Relation::Update,
            _ => Relation::Apart,
        }
    }
}

/// The members of a record that name parts of an object.
fn common(record: &Map<String, Value>, object: &Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (member, below) in record {
        let Some(part) = member.strip_prefix("f:").and_then(|name| object.get(name)) else { continue };
        keep_common(member, below, part, &mut kept);
    }
    kept
}

fn keep_common(member: &str, below: &Value, part: &Value, kept: &mut Map<String, Value>) {
    let Some(below) = below.as_object().filter(|below| !below.is_empty()) else {
        kept.insert(member.into(), json!({}));
        return;
    };
    let mut inner = match part {
        Value::Object(fields) => common(below, fields),
        Value::Array(list) => common_items(below, list),
        _ => Map::new(),
    };
    let container = part.as_object().is_some_and(Map::is_empty) || part.as_array().is_some_and(Vec::is_empty);
    if below.contains_key(".") && (container || !inner.is_empty()) {
        inner.insert(".".into(), json!({}));
    }
    if !inner.is_empty() {
        kept.insert(member.into(), inner.into());
    }
}

fn common_items(record: &Map<String, Value>, list: &[Value]) -> Map<String, Value> {
    let mut kept = Map::new();
    for (member, below) in record {
        let (sort, text) = member.split_at(2.min(member.len()));
        let named = serde_json::from_str::<Value>(text).unwrap_or_default();
        let part = match sort {
            "k:" => list.iter().find(|item| has_keys(item, &named)),
            "v:" => list.iter().find(|element| **element == named),
            _ => None,
        };
        if let Some(part) = part {
            keep_common(member, below, part, &mut kept);
        }
    }
    kept
}

/// Whether an item is the one with these keys. A key that it leaves out is a default.
fn has_keys(item: &Value, keys: &Value) -> bool {
    let Some(keys) = keys.as_object() else { return false };
    keys.iter().any(|(name, _)| item.get(name).is_some())
        && keys.iter().all(|(name, value)| item.get(name).is_none_or(|other| other == value))
}

fn join(into: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (member, below) in other {
        match (into.get_mut(member).and_then(Value::as_object_mut), below.as_object()) {
            (Some(into), Some(below)) => join(into, below),
            _ => drop(into.insert(member.clone(), below.clone())),
        }
    }
}

/// The record without what was taken of it, and without the containers that this leaves empty.
fn without(record: &Map<String, Value>, taken: &Map<String, Value>) -> Map<String, Value> {
    let mut left = Map::new();
    for (member, below) in record {
        match (below.as_object(), taken.get(member).and_then(Value::as_object)) {
            (Some(below), Some(taken)) if member != "." => {
                let below = without(below, taken);
                if below.keys().any(|member| member != ".") {
                    left.insert(member.clone(), below.into());
                }
            }
            _ => drop(left.insert(member.clone(), below.clone())),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ConfigMap as Metacontroller's dynamic apply leaves it: its own updates, and its record of what it wanted.
    fn left_by_metacontroller() -> Value {
        let record = r#"{"apiVersion":"v1","data":{"kept":"1","dropped":"2"},"kind":"ConfigMap","metadata":{"labels":{"a":"b"},"name":"c","namespace":"n"}}"#;
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "c", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "annotations": { "metacontroller.k8s.io/last-applied-configuration": record },
                "labels": { "a": "b" },
                "managedFields": [
                    {
                        "manager": "metacontroller", "operation": "Update", "apiVersion": "v1", "time": "t1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {
                            "f:data": { ".": {}, "f:kept": {}, "f:dropped": {} },
                            "f:immutable": {},
                            "f:metadata": {
                                "f:annotations": { ".": {}, "f:metacontroller.k8s.io/last-applied-configuration": {} },
                                "f:labels": { ".": {}, "f:a": {} },
                                "f:ownerReferences": { ".": {}, "k:{\"uid\":\"p\"}": {} },
                            },
                        },
                    },
                    {
                        "manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1", "time": "t2",
                        "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:other": {} } },
                    },
                ],
            },
            "data": { "kept": "1", "dropped": "2", "other": "3" },
            "immutable": false,
        })
    }

    fn wanted(data: Value) -> Map<String, Value> {
        let wanted = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "c", "namespace": "n", "ownerReferences": [{ "uid": "p" }] },
            "data": data,
        });
        wanted.as_object().unwrap().clone()
    }

    #[test]
    fn item_of_another_that_leaves_no_room_for_ours_becomes_ours() {
        let live = json!({
            "metadata": {"resourceVersion": "7", "managedFields": [
                {
                    "manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1", "time": "t",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": { "f:spec": { "f:type": {}, "f:ports": {
                        "k:{\"port\":81,\"protocol\":\"TCP\"}": { ".": {}, "f:name": {}, "f:port": {} },
                    } } },
                },
            ]},
            "spec": {"type": "NodePort", "ports": [{"name": "main", "port": 81, "protocol": "TCP"}]},
        });
        let wanted = json!({"apiVersion": "v1", "spec": {"ports": [{"name": "main", "port": 80}]}});
        let wanted = wanted.as_object().unwrap();
        let patch = evict(&live, wanted, "spec.ports[1].name", "metacontroller").unwrap();
        let managers = &patch[1]["value"];
        assert_eq!(managers[0]["fieldsV1"], json!({ "f:spec": { "f:type": {} } }));
        assert_eq!(
            managers[1]["fieldsV1"],
            json!({ "f:spec": { "f:ports": {
                "k:{\"port\":81,\"protocol\":\"TCP\"}": { ".": {}, "f:name": {}, "f:port": {} },
            } } })
        );
        for field in ["spec.type", "spec.ports", "spec.ports[1].a[0]", "spec.other[0]", "spec.type[0]"] {
            assert_eq!(evict(&live, wanted, field, "metacontroller"), None, "{field}");
        }
    }

    #[test]
    fn what_metacontroller_wanted_becomes_ours_and_its_annotation_goes() {
        let patch = patch(
            &left_by_metacontroller(),
            &wanted(json!({ "kept": "1" })),
            "metacontroller",
            &["metacontroller"],
        )
        .unwrap();
        assert_eq!(
            patch,
            json!([
                { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
                { "op": "replace", "path": "/metadata/managedFields", "value": [
                    {
                        "manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1", "time": "t2",
                        "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:other": {} } },
                    },
                    {
                        "manager": "metacontroller", "operation": "Apply", "apiVersion": "v1", "time": "t1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {
                            "f:data": { ".": {}, "f:kept": {}, "f:dropped": {} },
                            "f:metadata": {
                                "f:labels": { ".": {}, "f:a": {} },
                                "f:ownerReferences": { ".": {}, "k:{\"uid\":\"p\"}": {} },
                            },
                        },
                    },
                ] },
                { "op": "remove", "path": "/metadata/annotations/metacontroller.k8s.io~1last-applied-configuration" },
            ])
        );
    }

    #[test]
    fn after_the_takeover_what_metacontroller_wanted_and_we_do_not_is_seen_as_dropped() {
        let live = left_by_metacontroller();
        let wanted = wanted(json!({ "kept": "1" }));
        let patch = patch(&live, &wanted, "metacontroller", &["metacontroller"]).unwrap();
        let record = &patch[1]["value"][1]["fieldsV1"];
        let mut live = live;
        live["metadata"]["ownerReferences"] = json!([{ "uid": "p" }]);
        live["metadata"].as_object_mut().unwrap().remove("annotations");
        let found = crate::plan::difference::difference(&wanted, &live, Some(&record.to_string()));
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["`data.dropped` is no longer wanted", "`metadata.labels` is no longer wanted"]);
    }

    #[test]
    fn of_other_writers_only_what_we_want_is_taken() {
        let mut live = left_by_metacontroller();
        live["metadata"].as_object_mut().unwrap().remove("annotations");
        live["metadata"]["managedFields"][0]["manager"] = json!("kubectl-create");
        let patch = patch(&live, &wanted(json!({ "kept": "5", "new": "6" })), "ours", &["ours"]).unwrap();
        assert_eq!(patch.as_array().unwrap().len(), 2);
        let entries = &patch[1]["value"];
        assert_eq!(
            entries[0]["fieldsV1"],
            json!({
                "f:data": { ".": {}, "f:dropped": {} },
                "f:immutable": {},
                "f:metadata": {
                    "f:annotations": { ".": {}, "f:metacontroller.k8s.io/last-applied-configuration": {} },
                    "f:labels": { ".": {}, "f:a": {} },
                },
            })
        );
        assert_eq!(entries[1]["manager"], "kubectl-edit");
        assert_eq!(
            entries[2]["fieldsV1"],
            json!({
                "f:data": { ".": {}, "f:kept": {} },
                "f:metadata": { "f:ownerReferences": { ".": {}, "k:{\"uid\":\"p\"}": {} } },
            })
        );
    }

    #[test]
    fn appliers_subresources_and_other_versions_keep_what_they_own() {
        let mut live = left_by_metacontroller();
        let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
        entries[1] = json!({ "manager": "flux", "operation": "Apply", "apiVersion": "v1", "fieldsV1": { "f:data": { "f:kept": {} } } });
        let mut scale = entries[1].clone();
        scale["operation"] = json!("Update");
        scale["subresource"] = json!("scale");
        let mut old = scale.clone();
        old.as_object_mut().unwrap().remove("subresource");
        old["apiVersion"] = json!("v1beta1");
        entries.extend([scale, old]);
        let others: Vec<Value> = entries[1..].to_vec();
        let patch =
            patch(&live, &wanted(json!({ "kept": "1" })), "metacontroller", &["metacontroller"]).unwrap();
        assert_eq!(patch[1]["value"].as_array().unwrap()[..3], others[..]);
    }

    #[test]
    fn list_items_are_taken_by_their_keys() {
        let record = json!({ "f:ports": {
            ".": {},
            "k:{\"port\":53,\"protocol\":\"UDP\"}": { ".": {}, "f:port": {}, "f:protocol": {} },
            "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {}, "f:targetPort": {} },
        }, "f:finalizers": { "v:\"a\"": {}, "v:\"b\"": {} } });
        let object = json!({ "ports": [{ "port": 80 }], "finalizers": ["b"] });
        let taken = common(record.as_object().unwrap(), object.as_object().unwrap());
        assert_eq!(
            Value::from(taken.clone()),
            json!({
                "f:ports": { ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } },
                "f:finalizers": { "v:\"b\"": {} },
            })
        );
        assert_eq!(
            Value::from(without(record.as_object().unwrap(), &taken)),
            json!({
                "f:ports": {
                    ".": {},
                    "k:{\"port\":53,\"protocol\":\"UDP\"}": { ".": {}, "f:port": {}, "f:protocol": {} },
                    "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:targetPort": {} },
                },
                "f:finalizers": { "v:\"a\"": {} },
            })
        );
    }

    #[test]
    fn nothing_to_take_is_no_patch() {
        let mut live = left_by_metacontroller();
        live["metadata"]["managedFields"] = json!([]);
        live["metadata"].as_object_mut().unwrap().remove("annotations");
        assert_eq!(patch(&live, &wanted(json!({})), "metacontroller", &["metacontroller"]), None);
        live["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(patch(&live, &wanted(json!({})), "metacontroller", &["metacontroller"]), None);
    }

    #[test]
    fn annotation_that_does_not_read_goes_too() {
        let mut live = left_by_metacontroller();
        live["metadata"]["annotations"][LAST_APPLIED[0]] = json!("{");
        let patch =
            patch(&live, &wanted(json!({ "kept": "1" })), "metacontroller", &["metacontroller"]).unwrap();
        assert_eq!(patch.as_array().unwrap().len(), 3);
        assert_eq!(patch[1]["value"][1]["fieldsV1"]["f:data"], json!({ ".": {}, "f:kept": {} }));
    }

    #[test]
    fn updates_under_our_name_end_where_we_apply_too() {
        let mut live = left_by_metacontroller();
        live["metadata"].as_object_mut().unwrap().remove("annotations");
        let applied = json!({
            "manager": "metacontroller", "operation": "Apply", "apiVersion": "v1", "time": "t3",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:kept": {}, "f:dropped": {} } },
        });
        live["metadata"]["managedFields"].as_array_mut().unwrap().push(applied);
        let patch =
            patch(&live, &wanted(json!({ "kept": "1" })), "metacontroller", &["metacontroller"]).unwrap();
        let managers = patch[1]["value"].as_array().unwrap();
        let updates: Vec<&Value> = managers.iter().filter(|entry| entry["operation"] == "Update").collect();
        assert_eq!(updates.len(), 1, "{patch}");
        assert_eq!(updates[0]["manager"], "kubectl-edit");
        let applied = managers.iter().find(|entry| entry["operation"] == "Apply").unwrap();
        assert_eq!(applied["fieldsV1"]["f:data"]["f:dropped"], json!({}), "seen as dropped by the apply");
    }

    #[test]
    fn status_that_metacontroller_wrote_becomes_ours_as_a_whole() {
        let entry = |manager: &str, operation: &str, fields: Value| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": "v1", "time": "t",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:status": fields }, "subresource": "status",
            })
        };
        let theirs = entry("metacontroller", "Update", json!({ "f:old": {}, "f:phase": {} }));
        let others = entry("kubectl", "Update", json!({ "f:other": {} }));
        let ours = entry("ours", "Apply", json!({ "f:phase": {}, "f:new": {} }));
        let live =
            |entries: &[&Value]| json!({"metadata": {"resourceVersion": "7", "managedFields": entries}});
        let patch = |live: &Value| status_patch(live, "v1", &["metacontroller"], "ours");
        let joined = entry("ours", "Apply", json!({ "f:old": {}, "f:phase": {}, "f:new": {} }));
        assert_eq!(patch(&live(&[&theirs, &others, &ours])).unwrap()[1]["value"], json!([others, joined]));
        assert_eq!(patch(&live(&[&others, &ours])), None);
        assert_eq!(status_patch(&live(&[&theirs]), "v2", &["metacontroller"], "ours"), None);
    }

    #[test]
    fn takeover_is_due_at_first_contact_and_while_metacontrollers_record_is_there() {
        assert!(is_due("{}", None, false));
        assert!(!is_due("{}", Some("{}"), false));
        assert!(is_due("{}", Some("{}"), true));
        assert!(is_due(&left_by_metacontroller().to_string(), Some("{}"), false));
    }
}
