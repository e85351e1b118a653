//! YAML text to JSON as `kubectl apply` reads it, with the place of every node.

use serde_json::Value as Json;

use crate::problem::{Place, Problem};

/// One document of a YAML stream.
#[derive(Debug)]
pub(crate) struct Document {
    pub value: Json,
    pub places: Places,
}

/// Where each node of a document was written.
#[derive(Debug, Default)]
pub(crate) struct Places {}

impl Places {
    /// Where the node at `path` was written, or its nearest known parent. Elements are keys, or indices as text.
    pub(crate) fn place(&self, _path: &[&str]) -> Option<Place> {
        None
    }
}

/// Reads a stream of documents; empty ones are left out. `file` is how places call the text.
pub(crate) fn read(_file: &str, _text: &str) -> Result<Vec<Document>, Problem> {
    Ok(Vec::new())
}
