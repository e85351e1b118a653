//! One object of the cluster as it is kept: its JSON text once, beside the few fields the controller needs.
//!
//! `managedFields` are cut out of the text. What they say about our own field managers is kept as text of its
//! own, shared among objects of the same shape, so that a dropped field is recognised without asking the server.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::labels::LabelSet;
use crate::object::name::Key;

/// The names under which this process owns fields (server-side apply).
#[derive(Clone, Debug)]
pub(crate) struct Managers {
    /// Manager of children and of a parent's labels and annotations.
    pub objects: String,
    /// Manager of a parent's status.
    pub status: String,
}

impl Managers {
    /// `NAME` for objects, and `NAME-status` for statuses.
    pub(crate) fn named(name: &str) -> Self {
        Managers { objects: name.into(), status: format!("{name}-status") }
    }

    /// Under what names Metacontroller wrote by plain updates: that of its binary, or that which it shares with us.
    pub(crate) fn updaters(&self) -> [&str; 2] {
        ["metacontroller", &self.objects]
    }
}

/// The owner with `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Controller {
    pub api_version: Box<str>,
    pub kind: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
}

/// An observed object.
#[derive(Debug)]
pub(crate) struct Object {
    pub key: Key,
    pub uid: Box<str>,
    pub version: Version,
    pub generation: i64,
    pub deleting: bool,
    pub controller: Option<Controller>,
    pub labels: LabelSet,
    pub finalizers: Vec<Box<str>>,
    /// The whole object without `metadata.managedFields`; `None` for an object nobody here has asked for.
    pub body: Option<Box<RawValue>>,
    /// `fieldsV1` of our manager's apply entry, without owner references.
    pub owned: Option<Arc<str>>,
    /// `fieldsV1` of our manager's apply entry on the status subresource.
    pub owned_status: Option<Arc<str>>,
    /// What plain updates under our manager's name still own.
    pub updated: Updated,
}

/// What Metacontroller's plain updates own under the name by which we apply. An apply removes nothing of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Updated {
    /// Fields of the object, more than the finalizers and owner references that we write by plain updates too.
    pub object: bool,
    /// Fields of its status.
    pub status: bool,
}

/// A resource version. The API server's are ordered integers; any other text is only ever equal or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Number(u64),
    Text(Box<str>),
}

impl Version {
    pub(crate) fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Version::Text(text.into()), Version::Number)
    }

    /// Whether `self` was written after `other`. Unordered versions count as newer when they differ.
    pub(crate) fn newer_than(&self, other: &Version) -> bool {
        match (self, other) {
            (Version::Number(a), Version::Number(b)) => a > b,
            (a, b) => a != b,
        }
    }
}

impl Version {
    /// The number, 0 where it is none.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Version::Number(number) => *number,
            Version::Text(_) => 0,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Version::Number(number) => number.fmt(f),
            Version::Text(text) => text.fmt(f),
        }
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    generation: Option<i64>,
    #[serde(borrow)]
    deletion_timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    owner_references: Option<Vec<Owner<'a>>>,
    labels: Option<LabelSet>,
    finalizers: Option<Vec<Box<str>>>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    controller: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFields<'a> {
    #[serde(borrow)]
    manager: Option<Cow<'a, str>>,
    #[serde(borrow)]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    subresource: Option<Cow<'a, str>>,
    #[serde(borrow)]
    fields_v1: Option<&'a RawValue>,
}

/// An object's JSON of which the metadata has been read, and nothing copied but names.
pub(crate) struct Reading<'a> {
    text: &'a str,
    head: Head<'a>,
    pub key: Key,
    pub version: Version,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(text: &'a str) -> serde_json::Result<Self> {
        let mut head: Head = serde_json::from_str(text)?;
        let metadata = &mut head.metadata;
        let (namespace, name) = (metadata.namespace.take(), metadata.name.take());
        let key = Key::new(namespace.unwrap_or_default(), name.unwrap_or_default());
        let version = Version::parse(&metadata.resource_version.take().unwrap_or_default());
        Ok(Reading { text, head, key, version })
    }

    /// The uid, empty where there is none.
    pub(crate) fn uid(&self) -> &str {
        self.head.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The object to keep. `type_meta` (`apiVersion` and `kind`) is put in where the text lacks it, as items of a list do.
    pub(crate) fn object(self, type_meta: (&str, &str), managers: &Managers) -> serde_json::Result<Object> {
        let metadata = self.head.metadata;
        let mut object = Object {
            key: self.key,
            uid: metadata.uid.unwrap_or_default().into(),
            version: self.version,
            generation: metadata.generation.unwrap_or(0),
            deleting: metadata.deletion_timestamp.is_some_and(|time| time.get() != "null"),
            controller: controller(metadata.owner_references.unwrap_or_default()),
            labels: metadata.labels.unwrap_or_default(),
            finalizers: metadata.finalizers.unwrap_or_default(),
            body: None,
            owned: None,
            owned_status: None,
            updated: Updated::default(),
        };
        if let Some(managed) = metadata.managed_fields {
            object.take_ownership(managed, type_meta.0, managers)?;
        }
        let type_meta = self.head.api_version.is_none().then_some(type_meta);
        object.body = Some(without_managed_fields(self.text, metadata.managed_fields, type_meta)?);
        Ok(object)
    }
}

impl Object {
    /// Reads an object out of the API server's JSON.
    ///
    /// `api_version` and `kind` are put in where the text lacks them, as items of a list do.
    pub(crate) fn read(text: &str, type_meta: (&str, &str), managers: &Managers) -> serde_json::Result<Self> {
        Reading::of(text)?.object(type_meta, managers)
    }

    fn take_ownership(
        &mut self,
        managed: &RawValue,
        api_version: &str,
        managers: &Managers,
    ) -> serde_json::Result<()> {
        for entry in serde_json::from_str::<Vec<ManagedFields>>(managed.get())? {
            // Fields of another version may be called otherwise: such an entry is as good as none.
            if entry.api_version.as_deref() != Some(api_version) {
                continue;
            }
            let (Some(manager), Some(fields)) = (entry.manager, entry.fields_v1) else { continue };
            let applied = entry.operation.as_deref() == Some("Apply");
            match entry.subresource.as_deref() {
                None | Some("") if manager == managers.objects && applied => {
                    self.owned = Some(shared(&without_owner_references(fields.get())));
                }
                Some("status") if manager == managers.status && applied => {
                    self.owned_status = Some(shared(fields.get()));
                }
                None | Some("") if managers.updaters().contains(&&*manager) && !applied => {
                    self.updated.object |= is_more_than_bookkeeping(fields.get());
                }
                Some("status") if managers.updaters().contains(&&*manager) => self.updated.status = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// The parsed body. Objects that are kept without a body parse to an empty map.
    pub(crate) fn parsed(&self) -> serde_json::Value {
        self.body
            .as_ref()
            .and_then(|body| serde_json::from_str(body.get()).ok())
            .unwrap_or_else(|| serde_json::Value::Object(Default::default()))
    }

    /// The same object without its body, for kinds of which only names and owners matter here.
    pub(crate) fn slim(mut self) -> Self {
        self.body = None;
        self.owned = None;
        self.owned_status = None;
        self
    }
}

fn controller(owners: Vec<Owner>) -> Option<Controller> {
    let owner = owners.into_iter().find(|owner| owner.controller == Some(true))?;
    Some(Controller {
        api_version: owner.api_version.into(),
        kind: owner.kind.into(),
        name: owner.name.into(),
        uid: owner.uid.into(),
    })
}

/// Cuts `"managedFields":…` with one adjacent comma out of the text, and adds type information where asked.
fn without_managed_fields(
    text: &str,
    managed: Option<&RawValue>,
    type_meta: Option<(&str, &str)>,
) -> serde_json::Result<Box<RawValue>> {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.trim();
    if let Some((api_version, kind)) = type_meta {
        let head = serde_json::json!({"apiVersion": api_version, "kind": kind}).to_string();
        kept.push_str(&head[..head.len() - 1]);
        rest = rest[1..].trim_start();
        if !rest.starts_with('}') {
            kept.push(',');
        }
    }
    match managed.map(|value| member_span(rest, "\"managedFields\"", value.get())) {
        Some((start, end)) => {
            kept.push_str(&rest[..start]);
            kept.push_str(&rest[end..]);
        }
        None => kept.push_str(rest),
    }
    RawValue::from_string(kept)
}

/// The span of the member whose value is the slice `value` of `text`, with one neighbouring comma.
fn member_span(text: &str, name: &str, value: &str) -> (usize, usize) {
    let value_start = value.as_ptr() as usize - text.as_ptr() as usize;
    let mut end = value_start + value.len();
    let mut start = text[..value_start].rfind(name).expect("a member's value follows its name");
    let after = text[end..].len() - text[end..].trim_start().len();
    if text[end + after..].starts_with(',') {
        end += after + 1;
    } else {
        let before = text[..start].trim_end();
        if before.ends_with(',') {
            start = before.len() - 1;
        }
    }
    (start, end)
}

#[derive(Deserialize)]
struct OwnedFields<'a> {
    #[serde(borrow, rename = "f:metadata")]
    metadata: Option<OwnedMetadata<'a>>,
}

#[derive(Deserialize)]
struct OwnedMetadata<'a> {
    #[serde(borrow, rename = "f:ownerReferences")]
    owner_references: Option<&'a RawValue>,
}

/// Owner references carry a uid in their keys, which would make every object's ownership text unique.
fn without_owner_references(fields: &str) -> Cow<'_, str> {
    let read = serde_json::from_str::<OwnedFields>(fields).ok();
    let Some(references) = read.and_then(|read| read.metadata?.owner_references) else {
        return Cow::Borrowed(fields);
    };
    let (start, end) = member_span(fields, "\"f:ownerReferences\"", references.get());
    Cow::Owned([&fields[..start], &fields[end..]].concat())
}

/// Whether a record names more than what is written by plain updates here as well.
fn is_more_than_bookkeeping(fields: &str) -> bool {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(borrow, rename = "f:metadata", default)]
        metadata: BTreeMap<&'a str, serde::de::IgnoredAny>,
        #[serde(borrow, flatten)]
        others: BTreeMap<&'a str, serde::de::IgnoredAny>,
    }
    let Ok(Record { metadata, others }) = serde_json::from_str(fields) else { return true };
    let known = |member: &&str| matches!(*member, "." | "f:finalizers" | "f:ownerReferences");
    !others.is_empty() || !metadata.keys().all(known)
}

/// One copy of each distinct text for the whole process.
fn shared(text: &str) -> Arc<str> {
    static TEXTS: OnceLock<Mutex<HashSet<Arc<str>>>> = OnceLock::new();
    let mut texts =
        TEXTS.get_or_init(Default::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(known) = texts.get(text) {
        return known.clone();
    }
    if texts.len() >= 1024 && texts.len().is_power_of_two() {
        texts.retain(|text| Arc::strong_count(text) > 1);
    }
    let text: Arc<str> = text.into();
    texts.insert(text.clone());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn managers() -> Managers {
        Managers::named("metacontroller")
    }

    #[test]
    fn managed_fields_are_cut_wherever_they_stand() {
        for text in [
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"x":"}]"}],"name":"a"}}"#,
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"x":"}]"}]}}"#,
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a" , "managedFields" : [] }}"#,
        ] {
            let object = Object::read(text, ("v1", "ConfigMap"), &managers()).expect("readable");
            let body: serde_json::Value =
                serde_json::from_str(object.body.expect("kept").get()).expect("JSON");
            assert_eq!(
                body,
                serde_json::json!({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})
            );
        }
    }

    #[test]
    fn list_items_get_their_type() {
        let object = Object::read(r#"{"metadata":{"name":"a"}}"#, ("apps/v1", "Deployment"), &managers())
            .expect("readable");
        assert_eq!(
            object.body.expect("kept").get(),
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}"#
        );
    }

    #[test]
    fn our_apply_entry_is_kept_without_owner_references() {
        let text = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[
            {"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{}}},
            {"manager":"metacontroller","operation":"Apply","apiVersion":"v0","fieldsV1":{"f:old":{}}},
            {"manager":"metacontroller","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:x":{}},"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}},"f:labels":{"f:a":{}}}}}]}}"#;
        let object = Object::read(text, ("v1", "ConfigMap"), &managers()).expect("readable");
        assert_eq!(
            object.owned.as_deref(),
            Some(r#"{"f:data":{"f:x":{}},"f:metadata":{"f:labels":{"f:a":{}}}}"#)
        );
    }

    #[test]
    fn what_plain_updates_of_our_name_own_is_noticed_but_for_what_we_write_so_ourselves() {
        let updated = |subresource: &str, fields: &str| {
            let text = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","managedFields":[
                {{"manager":"metacontroller","operation":"Update","apiVersion":"v1"{subresource},"fieldsV1":{fields}}}]}}}}"#
            );
            let updated = Object::read(&text, ("v1", "ConfigMap"), &managers()).expect("readable").updated;
            (updated.object, updated.status)
        };
        assert_eq!(updated("", r#"{"f:data":{"f:x":{}}}"#), (true, false));
        assert_eq!(updated("", r#"{"f:metadata":{"f:labels":{"f:x":{}}}}"#), (true, false));
        let ours = r#"{"f:metadata":{"f:finalizers":{".":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}"#;
        assert_eq!(updated("", ours), (false, false));
        assert_eq!(updated(r#","subresource":"status""#, r#"{"f:status":{"f:x":{}}}"#), (false, true));
        assert_eq!(updated(r#","subresource":"scale""#, r#"{"f:spec":{"f:replicas":{}}}"#), (false, false));
    }

    #[test]
    fn versions_are_ordered_as_numbers_and_otherwise_only_equal() {
        assert!(Version::parse("10").newer_than(&Version::parse("9")));
        assert!(!Version::parse("9").newer_than(&Version::parse("10")));
        assert!(Version::parse("a").newer_than(&Version::parse("b")));
        assert!(!Version::parse("a").newer_than(&Version::parse("a")));
    }
}
