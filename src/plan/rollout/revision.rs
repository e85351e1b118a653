//! One state of a parent's revision fields: taken from it, put back into it, and kept as a ControllerRevision.
//!
//! Names, labels and shape are Metacontroller's, so that either controller goes on with what the other has begun.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

use crate::object::name::Key;
use crate::object::owner::OwnerRef;
use crate::plan::desired::hash_value;
use crate::plan::{ChildRule, Claim, Parent};

/// The kind in which revisions are kept.
pub(crate) const API_VERSION: &str = "metacontroller.k8s.io/v1alpha1";
pub(crate) const KIND: &str = "ControllerRevision";
pub(crate) const PLURAL: &str = "controllerrevisions";

/// Says which fields a revision tells of: one of them that it lacks was absent. Metacontroller does not write it.
const FIELD_PATHS: &str = "syncwright.io/field-paths";
const LABEL_GROUP: &str = "metacontroller.k8s.io/apiGroup";
const LABEL_RESOURCE: &str = "metacontroller.k8s.io/resource";
/// With the dot, the hash and a dash it stays within the 253 characters of a name.
const LONGEST_PREFIX: usize = 212;

/// A child by its rule and name.
pub(crate) type Child = (usize, Key);

/// A revision as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Revision {
    pub name: String,
    /// The values of the revision fields, nested as in the parent.
    pub patch: Value,
    /// The fields that it tells of, where that was noted.
    paths: Option<Vec<String>>,
    claims: Vec<(String, String, Vec<String>)>,
}

/// The values at these paths, nested as in the parent. What is absent is left out.
pub(crate) fn patch_of(parent: &Value, paths: &[String]) -> Value {
    let mut patch = Value::Object(Map::new());
    for path in paths {
        if let Some(value) = at(parent, path) {
            put(&mut patch, path, value.clone());
        }
    }
    patch
}

/// Whether two patches are the same state: whole numbers equal integers, and the order of keys says nothing.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    let hash = |value: &Value| {
        let mut hasher = std::hash::DefaultHasher::new();
        hash_value(value, &mut hasher);
        std::hash::Hasher::finish(&hasher)
    };
    hash(left) == hash(right)
}

impl Revision {
    /// Reads a ControllerRevision.
    pub(crate) fn read(body: &Value) -> Revision {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let claim = |claim: &Value| {
            let names = claim["names"].as_array().into_iter().flatten().map(text).collect();
            (text(&claim["apiGroup"]), text(&claim["kind"]), names)
        };
        let noted = body["metadata"]["annotations"][FIELD_PATHS].as_str();
        Revision {
            name: text(&body["metadata"]["name"]),
            patch: body["parentPatch"].clone(),
            paths: noted.and_then(|noted| serde_json::from_str(noted).ok()),
            claims: body["children"].as_array().into_iter().flatten().map(claim).collect(),
        }
    }

    /// The children that it claims, as far as their kinds are rolled out one by one.
    pub(crate) fn children(&self, rules: &[ChildRule], parent: &Key) -> BTreeSet<Child> {
        let mut children = BTreeSet::new();
        for (group, kind, names) in &self.claims {
            let ours = |rule: &ChildRule| rule.rolls.is_some() && rule.gvk.group_kind() == (group, kind);
            let Some(rule) = rules.iter().position(ours) else { continue };
            let key = |name: &String| match name.split_once('/') {
                Some((namespace, name)) => Key::new(namespace, name),
                None if rules[rule].namespaced => Key::new(parent.namespace.as_str(), name.as_str()),
                None => Key::new("", name.as_str()),
            };
            children.extend(names.iter().map(|name| (rule, key(name))));
        }
        children
    }

    /// Whether it claims what `children` of another says, and nothing else.
    pub(crate) fn claims_just(&self, children: &Value) -> bool {
        let flat = |revision: &Revision| {
            let mut flat = BTreeSet::new();
            for (group, kind, names) in &revision.claims {
                flat.extend(names.iter().map(|name| (group.clone(), kind.clone(), name.clone())));
            }
            flat
        };
        flat(self) == flat(&Revision::read(&json!({ "children": children })))
    }

    /// What it claims of kinds that no rule here is about: another definition of the same parents keeps its children in
    /// the same revision.
    fn others<'a>(
        &'a self,
        rules: &'a [ChildRule],
    ) -> impl Iterator<Item = &'a (String, String, Vec<String>)> {
        let is_ours =
            |(group, kind)| rules.iter().any(|rule: &ChildRule| rule.gvk.group_kind() == (group, kind));
        self.claims.iter().filter(move |(group, kind, names)| {
            !names.is_empty() && !is_ours((group.as_str(), kind.as_str()))
        })
    }

    pub(crate) fn claims_others(&self, rules: &[ChildRule]) -> bool {
        self.others(rules).next().is_some()
    }

    /// `children` of it when these are ours, a list as `claims` makes it, and those of others stay.
    pub(crate) fn beside_others(&self, ours: Value, rules: &[ChildRule]) -> Value {
        let other = |(group, kind, names): &(String, String, Vec<String>)| json!({"apiGroup": group, "kind": kind, "names": names});
        let ours = ours.as_array().cloned().unwrap_or_default();
        ours.into_iter().chain(self.others(rules).map(other)).collect()
    }

    /// The parent as it would be with the revision's values in place of its own. `paths` are those of today: what an
    /// unnoted revision lacks of them stays as it is.
    pub(crate) fn put_into(&self, parent: &Value, paths: &[String]) -> Value {
        let mut parent = parent.clone();
        for path in self.paths.as_deref().unwrap_or(paths) {
            match at(&self.patch, path) {
                Some(value) => put(&mut parent, path, value.clone()),
                None if self.paths.is_some() => remove(&mut parent, path),
                None => {}
            }
        }
        parent
    }
}

/// The name of the revision with this patch: the same for the same state of the same parent.
pub(crate) fn name(parent: &Parent, plural: &str, patch: &Value) -> String {
    let group = if parent.gvk.group.is_empty() { "core" } else { &parent.gvk.group };
    let mut prefix = format!("{plural}.{group}");
    prefix.truncate(LONGEST_PREFIX);
    let mut hash = Sha1::new();
    hash.update(parent.uid.as_bytes());
    hash.update(as_go_prints(patch).as_bytes());
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}-{hash}")
}

/// What a new revision is made of.
pub(crate) struct Draft<'a> {
    pub parent: &'a Parent,
    /// The whole parent.
    pub body: &'a Value,
    pub plural: &'a str,
    pub claim: &'a Claim,
    pub paths: &'a [String],
    pub namespace: &'a str,
}

impl Draft<'_> {
    pub(crate) fn revision(&self, patch: &Value, children: &Value) -> Value {
        let owner = OwnerRef::to_controller(&self.parent.gvk, &self.parent.key.name, &self.parent.uid);
        json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "name": name(self.parent, self.plural, patch),
                "namespace": self.namespace,
                "labels": self.labels(),
                "annotations": {FIELD_PATHS: json!(self.paths).to_string()},
                "ownerReferences": [owner.to_json()],
            },
            "parentPatch": patch,
            "children": children,
        })
    }

    /// Metacontroller looks for revisions by the parent's selector; it copies the labels of a pod template alone, which a
    /// parent need not have.
    fn labels(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        match self.claim {
            Claim::ControllerUid => {
                labels.insert(Claim::UID_LABEL.into(), self.parent.uid.clone().into());
            }
            _ => {
                for from in ["/spec/template/metadata/labels", "/spec/selector/matchLabels"] {
                    let found = self.body.pointer(from).and_then(Value::as_object).into_iter().flatten();
                    let texts = found.filter(|(_, value)| value.is_string());
                    labels.extend(texts.map(|(key, value)| (key.clone(), value.clone())));
                }
            }
        }
        labels.insert(LABEL_GROUP.into(), self.parent.gvk.group.clone().into());
        labels.insert(LABEL_RESOURCE.into(), self.plural.into());
        labels
    }
}

/// `children` of a ControllerRevision: in one order, so that the same children are the same text.
pub(crate) fn claims(children: &BTreeSet<Child>, rules: &[ChildRule], parent: &Key) -> Value {
    let mut kinds: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (rule, key) in children {
        // A cluster-scoped parent may have children of one name in several namespaces.
        let name = if parent.namespace.is_empty() { key.to_string() } else { key.name.clone() };
        kinds.entry(rules[*rule].gvk.group_kind()).or_default().push(name);
    }
    let kind = |((group, kind), names)| json!({"apiGroup": group, "kind": kind, "names": names});
    kinds.into_iter().map(kind).collect()
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| value.as_object()?.get(key)).filter(|value| !value.is_null())
}

/// Sets the field; whatever on the way is no object becomes one.
fn put(target: &mut Value, path: &str, value: Value) {
    let mut target = target;
    for key in path.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = target.as_object_mut().expect("it is made one").entry(key).or_insert(Value::Null);
    }
    *target = value;
}

fn remove(target: &mut Value, path: &str) {
    let (way, last) = path.rsplit_once('.').map_or(("", path), |(way, last)| (way, last));
    let mut keys = way.split('.').filter(|key| !key.is_empty());
    let holder = keys.try_fold(target, |target, key| target.as_object_mut()?.get_mut(key));
    if let Some(holder) = holder.and_then(Value::as_object_mut) {
        holder.shift_remove(last);
    }
}

/// JSON as Go's encoder prints it: keys in order, and what could end a script escaped. Revisions are named by its bytes.
fn as_go_prints(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, &Value> = fields.iter().collect();
            let field = |(key, value): (&String, &Value)| {
                format!("{}:{}", escaped(&Value::from(key.as_str())), as_go_prints(value))
            };
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(as_go_prints).collect::<Vec<_>>().join(","))
        }
        scalar => escaped(scalar),
    }
}

fn escaped(scalar: &Value) -> String {
    let text = scalar.to_string();
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    escapes.iter().fold(text, |text, (from, to)| text.replace(*from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::spec::StatusChecks;
    use crate::object::name::Gvk;
    use crate::object::selector::Selector;
    use crate::plan::Method;

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| path.to_string()).collect()
    }

    fn parent(namespace: &str) -> Parent {
        Parent {
            gvk: Gvk::new("demo.io/v1", "Shelf"),
            key: Key::new(namespace, "s1"),
            uid: "0b5f7a8e-1111-2222-3333-444455556666".into(),
        }
    }

    fn rules() -> Vec<ChildRule> {
        let rule = |api_version, kind, rolls| ChildRule {
            gvk: Gvk::new(api_version, kind),
            namespaced: kind != "Namespace",
            method: Method::InPlace,
            rolls,
        };
        let rolling = || Some(StatusChecks::default());
        vec![
            rule("v1", "ConfigMap", None),
            rule("apps/v1", "StatefulSet", rolling()),
            rule("v1", "Namespace", rolling()),
        ]
    }

    #[test]
    fn patch_holds_what_is_there_at_the_paths() {
        let shelf = json!({"spec": {"template": {"a": 1}, "size": null, "other": 2}, "metadata": {"labels": {"x": "y"}}});
        let patch = |names: &[&str]| patch_of(&shelf, &paths(names));
        assert_eq!(
            patch(&["spec.template", "spec.size", "spec.nosuch.deep"]),
            json!({"spec": {"template": {"a": 1}}})
        );
        assert_eq!(patch(&["spec"]), json!({"spec": shelf["spec"]}));
        assert_eq!(
            patch(&["metadata.labels", "spec.other"]),
            json!({"metadata": {"labels": {"x": "y"}}, "spec": {"other": 2}})
        );
    }

    #[test]
    fn field_that_a_noted_revision_lacks_is_taken_out_of_the_parent() {
        let now = json!({"spec": {"image": "2", "extra": true, "replicas": 3}});
        let today = paths(&["spec.image", "spec.extra"]);
        let revision = |noted: Value| {
            Revision::read(&json!({
                "metadata": {"name": "r", "annotations": {FIELD_PATHS: noted}}, "parentPatch": {"spec": {"image": "1"}},
            }))
        };
        let noted = revision(json!("[\"spec.image\",\"spec.extra\"]"));
        assert_eq!(noted.put_into(&now, &today), json!({"spec": {"image": "1", "replicas": 3}}));
        let unnoted = revision(Value::Null);
        assert_eq!(
            unnoted.put_into(&now, &today),
            json!({"spec": {"image": "1", "extra": true, "replicas": 3}})
        );
        // Made when `spec.image` alone was a revision field, it says nothing of others.
        let older = revision(json!("[\"spec.image\"]"));
        assert_eq!(
            older.put_into(&now, &today),
            json!({"spec": {"image": "1", "extra": true, "replicas": 3}})
        );
        let whole = Revision::read(&json!({"parentPatch": {"spec": {"a": 1}}}));
        assert_eq!(whole.put_into(&now, &paths(&["spec"])), json!({"spec": {"a": 1}}));
    }

    #[test]
    fn claims_of_kinds_of_another_definition_stay() {
        let claim = |kind: &str, names: &[&str]| json!({"apiGroup": "apps", "kind": kind, "names": names});
        let read = |claims: Value| Revision::read(&json!({"parentPatch": {}, "children": claims}));
        let revision =
            read(json!([claim("StatefulSet", &["a"]), claim("Deployment", &["b"]), claim("DaemonSet", &[])]));
        assert!(revision.claims_others(&rules()));
        let ours = json!([claim("StatefulSet", &["c"])]);
        assert_eq!(
            revision.beside_others(ours.clone(), &rules()),
            json!([claim("StatefulSet", &["c"]), claim("Deployment", &["b"])])
        );
        let own = read(json!([claim("StatefulSet", &["a"])]));
        assert!(!own.claims_others(&rules()));
        assert_eq!(own.beside_others(ours.clone(), &rules()), ours);
    }

    #[test]
    fn patches_are_compared_by_what_they_mean() {
        assert!(is_same(&json!({"a": 1, "b": [1.0]}), &json!({"b": [1], "a": 1.0})));
        assert!(!is_same(&json!({"a": 1}), &json!({"a": 2})));
        assert!(!is_same(&json!({"a": [1, 2]}), &json!({"a": [2, 1]})));
        assert!(!is_same(&json!({"a": "1"}), &json!({"a": 1})));
    }

    #[test]
    fn name_is_plural_group_and_the_hash_that_metacontroller_takes() {
        // printf '%s%s' UID JSON | sha1sum
        let patch = json!({"spec": {"b": "<&>", "a": 1}});
        assert_eq!(as_go_prints(&patch), r#"{"spec":{"a":1,"b":"\u003c\u0026\u003e"}}"#);
        assert_eq!(
            name(&parent("lib"), "shelves", &patch),
            "shelves.demo.io-bb5199561575fec5c7bc26474dd578d7c2fd9bef"
        );
        let core = Parent { gvk: Gvk::new("v1", "ConfigMap"), ..parent("lib") };
        assert!(name(&core, "configmaps", &patch).starts_with("configmaps.core-"));
        let long = name(&parent("lib"), &"x".repeat(300), &patch);
        assert_eq!(long.len(), LONGEST_PREFIX + 41);
        assert_ne!(name(&parent("lib"), "shelves", &json!({})), name(&parent("lib"), "shelves", &patch));
    }

    #[test]
    fn new_revision_has_what_either_controller_looks_for() {
        let body = json!({"spec": {
            "selector": {"matchLabels": {"app": "s", "tier": "gold"}},
            "template": {"metadata": {"labels": {"app": "t", "more": "m", "odd": 1}}},
        }});
        let (parent, paths) = (parent("lib"), paths(&["spec"]));
        let draft = |claim| Draft {
            parent: &parent,
            body: &body,
            plural: "shelves",
            claim,
            paths: &paths,
            namespace: "lib",
        };
        let selector = Selector::from_json(&body["spec"]["selector"]).expect("a selector");
        let by_selector = Claim::Selector(selector.clone());
        let made = draft(&by_selector).revision(&json!({"spec": 1}), &json!([]));
        assert_eq!(
            made["metadata"]["labels"],
            json!({
                "app": "s", "more": "m", "tier": "gold",
                "metacontroller.k8s.io/apiGroup": "demo.io", "metacontroller.k8s.io/resource": "shelves",
            })
        );
        assert!(selector.matches(made["metadata"]["labels"].as_object().unwrap()));
        assert_eq!(made["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(made["metadata"]["annotations"], json!({"syncwright.io/field-paths": "[\"spec\"]"}));
        let made = draft(&Claim::ControllerUid).revision(&json!({"spec": 1}), &json!([]));
        assert_eq!(
            made["metadata"]["labels"],
            json!({
                "controller-uid": parent.uid,
                "metacontroller.k8s.io/apiGroup": "demo.io", "metacontroller.k8s.io/resource": "shelves",
            })
        );
    }

    #[test]
    fn claims_are_written_as_they_are_read() {
        let sets: BTreeSet<Child> = [(1, Key::new("lib", "b")), (1, Key::new("lib", "a"))].into();
        let written = claims(&sets, &rules(), &Key::new("lib", "s1"));
        assert_eq!(written, json!([{"apiGroup": "apps", "kind": "StatefulSet", "names": ["a", "b"]}]));
        let read = |children: &Value, parent: &Key| {
            Revision::read(&json!({ "children": children })).children(&rules(), parent)
        };
        assert_eq!(read(&written, &Key::new("lib", "s1")), sets);
        let other = json!([
            {"apiGroup": "apps", "kind": "StatefulSet", "names": ["b"]},
            {"apiGroup": "", "kind": "Gone", "names": []},
            {"apiGroup": "apps", "kind": "StatefulSet", "names": ["a"]},
        ]);
        let other = Revision::read(&json!({ "children": other }));
        assert!(other.claims_just(&written), "in another order");
        assert!(!other.claims_just(&json!([{"apiGroup": "apps", "kind": "StatefulSet", "names": ["a"]}])));

        let parent = Key::new("", "s1");
        let several: BTreeSet<Child> =
            [(1, Key::new("x", "a")), (1, Key::new("y", "a")), (2, Key::new("", "n"))].into();
        let written = claims(&several, &rules(), &parent);
        assert_eq!(
            written,
            json!([
                {"apiGroup": "", "kind": "Namespace", "names": ["n"]},
                {"apiGroup": "apps", "kind": "StatefulSet", "names": ["x/a", "y/a"]},
            ])
        );
        assert_eq!(read(&written, &parent), several);
    }

    #[test]
    fn claims_of_kinds_that_are_not_rolled_are_forgotten() {
        let claimed = json!([
            {"apiGroup": "", "kind": "ConfigMap", "names": ["c"]},
            {"apiGroup": "apps", "kind": "Deployment", "names": ["d"]},
            {"apiGroup": "apps", "kind": "StatefulSet"},
            "nonsense",
        ]);
        let revision = Revision::read(&json!({ "children": claimed }));
        assert_eq!(revision.children(&rules(), &Key::new("lib", "s1")), BTreeSet::new());
    }
}
