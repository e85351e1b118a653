//! What a definition may have left on its parents, read without asking whether the definition is a good one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::config::spec::{ResourceName, Role};

/// An annotation: what becomes of the finalizers on a definition's parents when it is deleted: `remove`, or `keep` as
/// without it.
pub(crate) const FINALIZERS: &str = "syncwright.io/finalizers";
/// Holds up the deletion of a definition whose parents' finalizers are to go with it.
pub(crate) const HELD: &str = "syncwright.io/parents";

/// The finalizers that a definition puts on objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub resource: ResourceName,
    pub finalizers: BTreeSet<String>,
}

/// The marks of a definition: under the name that it gives its finalizer, and under the one it has without that.
pub(crate) fn marks(role: Role, object: &Value) -> Vec<Mark> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let usual = format!("{}{name}", finalizer_prefix(role));
    let own = object["spec"]["finalizer"].as_str().filter(|_| role == Role::Composite);
    let finalizers: BTreeSet<String> = own.map(String::from).into_iter().chain([usual]).collect();
    let rules: Vec<&Value> = match role {
        Role::Composite => vec![&object["spec"]["parentResource"]],
        Role::Decorator => object["spec"]["resources"].as_array().into_iter().flatten().collect(),
    };
    let resource = |rule: &Value| {
        let text = |field: &str| rule[field].as_str().map(String::from);
        Some(ResourceName { api_version: text("apiVersion")?, resource: text("resource")? })
    };
    let resources = rules.into_iter().filter_map(resource);
    resources.map(|resource| Mark { resource, finalizers: finalizers.clone() }).collect()
}

/// Finalizers begin so where a definition gives them no name of its own, as Metacontroller's do.
pub(crate) fn finalizer_prefix(role: Role) -> String {
    format!("metacontroller.io/{}-", role.kind().to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_are_read_of_definitions_that_are_otherwise_wrong() {
        let resource =
            |resource: &str| ResourceName { api_version: "demo.io/v1".into(), resource: resource.into() };
        let object = json!({
            "metadata": {"name": "shelf"},
            "spec": {"finalizer": "demo.io/own", "parentResource": {"apiVersion": "demo.io/v1", "resource": "shelves"}},
        });
        let finalizers =
            ["demo.io/own", "metacontroller.io/compositecontroller-shelf"].map(String::from).into();
        assert_eq!(marks(Role::Composite, &object), [Mark { resource: resource("shelves"), finalizers }]);

        let rules = json!([{"apiVersion": "demo.io/v1", "resource": "a"}, {"resource": "b"}, 5]);
        let object = json!({"metadata": {"name": "dec"}, "spec": {"finalizer": "x", "resources": rules}});
        let finalizers = BTreeSet::from(["metacontroller.io/decoratorcontroller-dec".to_string()]);
        assert_eq!(marks(Role::Decorator, &object), [Mark { resource: resource("a"), finalizers }]);
        assert_eq!(marks(Role::Composite, &json!({})), []);
    }
}
