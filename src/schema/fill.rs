//! What the API server adds to an object: the defaults of a CRD.

use serde_json::Value;

use crate::schema::catalog::Kind;
use crate::schema::node::{Additional, Node};

impl Kind {
    /// Fills in the defaults of absent fields, in every map that is there, as the API server does.
    pub(crate) fn fill(&self, object: &mut Value) {
        self.fill_node(&self.schema, object);
    }

    fn fill_node(&self, node: &Node, value: &mut Value) {
        let node = self.resolve(node);
        match value {
            Value::Object(fields) => {
                for (name, inner) in &node.properties {
                    if let (None, Some(default)) = (fields.get(name), &inner.default) {
                        fields.insert(name.clone(), default.clone());
                    }
                    if let Some(value) = fields.get_mut(name) {
                        self.fill_node(inner, value);
                    }
                }
                if let Some(Additional::Values(inner)) = &node.additional_properties {
                    fields.values_mut().for_each(|value| self.fill_node(inner, value));
                }
            }
            Value::Array(items) => {
                let Some(inner) = &node.items else { return };
                items.iter_mut().for_each(|item| self.fill_node(inner, item));
            }
            _ => {}
        }
    }
}
