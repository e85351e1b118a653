//! Who owns an object: `metadata.ownerReferences`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::name::Gvk;

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_blocks_the_owners_deletion() {
        let ours = OwnerRef::to_controller(&Gvk::new("demo.io/v1", "Shelf"), "s1", "u-1");
        assert_eq!(
            ours.to_json().to_string(),
            r#"{"apiVersion":"demo.io/v1","kind":"Shelf","name":"s1","uid":"u-1","controller":true,"blockOwnerDeletion":true}"#
        );
    }
}
