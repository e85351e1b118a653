//! One compiled revision of all template files below a hooks folder.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::problem::{Place, Problem};
use crate::template::render::{Budget, Context};
use crate::template::yaml;

/// All templates of one revision, compiled; renders run in parallel on it.
pub(crate) struct Library {
    revision: String,
}

impl Library {
    /// Compiles every source. `label` is put before each path in a place (`hooks`); sources are relative path → text.
    pub(crate) fn compile(_label: &str, _sources: BTreeMap<String, String>) -> Result<Library, Vec<Problem>> {
        Ok(Library { revision: String::new() })
    }

    /// A short digest of all sources.
    pub(crate) fn revision(&self) -> &str {
        &self.revision
    }

    /// Renders the files in order; their documents make one answer.
    pub(crate) fn render(
        &self,
        _files: &[String],
        _context: Context,
        _budget: &Budget,
    ) -> Result<Vec<Document>, Problem> {
        Ok(Vec::new())
    }
}

/// One YAML document that a render made.
#[derive(Debug)]
pub(crate) struct Document {
    pub value: Json,
    places: yaml::Places,
}

impl Document {
    /// Where the document begins, in the template that made it.
    pub(crate) fn place(&self) -> Place {
        self.places.start()
    }

    /// Where the field at `path` was written, or its nearest known parent. Elements are keys, or indices as text.
    pub(crate) fn place_of(&self, path: &[&str]) -> Option<Place> {
        self.places.place(path)
    }
}
