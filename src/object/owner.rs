//! Who owns an object: `metadata.ownerReferences`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::object::name::{Gvk, Key};

/// One owner of an object. At most one of them is its controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(default)]
    pub controller: bool,
    #[serde(default)]
    pub block_owner_deletion: bool,
}

impl OwnerRef {
    /// The reference a child carries to the parent that controls it.
    pub(crate) fn to_controller(gvk: &Gvk, name: &str, uid: &str) -> OwnerRef {
        OwnerRef {
            api_version: gvk.api_version(),
            kind: gvk.kind.clone(),
            name: name.into(),
            uid: uid.into(),
            controller: true,
            block_owner_deletion: true,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": self.controller,
            "blockOwnerDeletion": self.block_owner_deletion,
        })
    }

    /// The owner's kind. The version is the one its writer used and says nothing about the owner.
    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::new(&self.api_version, &self.kind)
    }

    /// Where the owner of an object in `namespace` is looked for: owners live beside what they own, or in no namespace.
    pub(crate) fn key(&self, namespaced: bool, namespace: &str) -> Key {
        Key::new(if namespaced { namespace } else { "" }, self.name.as_str())
    }
}

/// The controller of an object with this `metadata`, if it has one. References that don't read as such are skipped.
pub(crate) fn controller_of(metadata: &Map<String, Value>) -> Option<OwnerRef> {
    metadata
        .get("ownerReferences")?
        .as_array()?
        .iter()
        .find(|reference| reference.get("controller") == Some(&Value::Bool(true)))
        .and_then(|reference| OwnerRef::deserialize(reference).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(references: Value) -> Map<String, Value> {
        json!({ "name": "db", "ownerReferences": references }).as_object().unwrap().clone()
    }

    #[test]
    fn controller_is_the_reference_that_says_so() {
        let ours = OwnerRef::to_controller(&Gvk::new("demo.io/v1", "Shelf"), "s1", "u-1");
        let other = json!({ "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-2" });
        assert_eq!(controller_of(&metadata(json!([other, ours.to_json()]))), Some(ours));
        assert_eq!(controller_of(&metadata(json!([other]))), None);
        assert_eq!(controller_of(&metadata(json!([]))), None);
        assert_eq!(controller_of(&Map::new()), None);
    }

    #[test]
    fn reference_blocks_the_owners_deletion() {
        let ours = OwnerRef::to_controller(&Gvk::new("demo.io/v1", "Shelf"), "s1", "u-1");
        assert_eq!(
            ours.to_json().to_string(),
            r#"{"apiVersion":"demo.io/v1","kind":"Shelf","name":"s1","uid":"u-1","controller":true,"blockOwnerDeletion":true}"#
        );
    }

    #[test]
    fn owner_is_looked_for_beside_what_it_owns() {
        let ours = OwnerRef::to_controller(&Gvk::new("demo.io/v1", "Shelf"), "s1", "u-1");
        assert_eq!(ours.key(true, "lib").to_string(), "lib/s1");
        assert_eq!(ours.key(false, "lib").to_string(), "s1");
    }
}
