//! Where a part of an answer was written, so that whoever meets a refusal can name the line.

use std::sync::Arc;

use crate::problem::Place;
use crate::template::yaml::Trap;
use crate::template::{Document, Written};

/// A node of a document that one of our templates rendered.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    document: Arc<Document>,
    path: Vec<String>,
}

impl Origin {
    /// The document as a whole.
    pub(crate) fn new(document: Arc<Document>) -> Origin {
        Origin { document, path: Vec::new() }
    }

    /// A node below this one: a key, or an index as text.
    pub(crate) fn below(&self, step: impl Into<String>) -> Origin {
        let mut below = self.clone();
        below.path.push(step.into());
        below
    }

    /// Where the node at `path` below this one was written, or its nearest known parent.
    pub(crate) fn place_of(&self, path: &[&str]) -> Place {
        self.document.place_of(&self.steps(path)).unwrap_or_else(|| self.document.place())
    }

    /// Plain scalars of the whole document that YAML 1.1 takes for something else, with their places.
    pub(crate) fn traps(&self) -> impl Iterator<Item = (Place, &Trap)> {
        self.document.traps()
    }

    /// Where the node at `path` below this one comes from, or its nearest known parent.
    pub(crate) fn written(&self, path: &[&str]) -> Written {
        self.document.written(&self.steps(path))
    }

    /// The path from the document's root to a node below this one.
    pub(crate) fn steps<'a>(&'a self, path: &[&'a str]) -> Vec<&'a str> {
        self.path.iter().map(String::as_str).chain(path.iter().copied()).collect()
    }
}

/// The same node of the same render.
impl PartialEq for Origin {
    fn eq(&self, other: &Origin) -> bool {
        Arc::ptr_eq(&self.document, &other.document) && self.path == other.path
    }
}
