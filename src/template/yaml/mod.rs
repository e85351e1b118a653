//! YAML text to JSON as `kubectl apply` reads it, with the place of every node.
//!
//! Scalars follow kubectl's rules (YAML 1.1 words such as `yes`, octals with a leading zero, whole floats as integers).
//! Stricter than kubectl in what is never meant: a key given twice is an error, aliases and nesting are bounded.
//! Knows nothing of templates: a `Fill` puts values where a rendered text holds placeholders.

mod reader;
mod scalar;
mod trouble;

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::problem::{Place, Problem, floor};
use crate::template::fault::Fault;

pub(in crate::template) use self::reader::read_stream;
pub(in crate::template) use self::scalar::number;
pub(in crate::template) use self::trouble::{Trouble, over};

/// One document of a YAML stream.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub value: Json,
    pub places: Places,
}

/// Where each node of a document was written: twelve bytes a node, in the order in which they were read.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    marks: Arc<Marks>,
    /// Where the document ends at the latest: where the next one begins.
    end: usize,
    origin: Arc<dyn Origin>,
}

/// What is remembered of a document's text.
#[derive(Debug, Default)]
pub(in crate::template) struct Marks {
    nodes: Vec<Node>,
    traps: Vec<Trap>,
}

/// A plain scalar that YAML 1.1, and so kubectl, takes for something else than YAML 1.2 does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trap {
    offset: usize,
    /// `yes`, `0755`
    pub text: String,
    pub meaning: Json,
    /// The field whose value it is, or in whose list it is.
    pub field: Option<String>,
    pub is_key: bool,
}

/// A node's offset in the text that was read, how many nodes its subtree has (itself included), and its key or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) struct Node {
    offset: u32,
    size: u32,
    name: Name,
}

/// A digest of a key, or of an index as text: enough to find a node again, and it can only cost a wrong place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name(u32);

impl Name {
    const ROOT: Name = Name(0);

    /// FNV-1a.
    fn of(text: &str) -> Name {
        Name(text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)))
    }

    fn of_index(index: usize) -> Name {
        Name::of(&index.to_string())
    }
}

/// Turns an offset of the text that was read into a place in the file an author wrote.
pub(in crate::template) trait Origin: fmt::Debug + Send + Sync {
    fn place(&self, offset: usize) -> Place;

    /// What a range of the text is computed from, and the conditions it stands under; nothing where nothing is computed.
    fn written(&self, _: Range<usize>) -> (Vec<String>, Vec<String>) {
        (Vec::new(), Vec::new())
    }
}

/// Bounds of one stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::template) struct Limits {
    pub bytes: usize,
    pub documents: usize,
    pub nodes: usize,
    pub alias_nodes: usize,
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 8 << 20, documents: 10_000, nodes: 500_000, alias_nodes: 10_000, depth: 100 }
    }
}

/// What is wanted in place of a scalar that holds placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum Want {
    /// Plain and untagged: a lone placeholder gives its value with its own type.
    Typed,
    /// Quoted, tagged or a block: text.
    Text,
    /// Text that names a field.
    Key,
}

/// Puts values in place of placeholders.
pub(in crate::template) trait Fill {
    /// `None` where `text` holds no placeholder. `bytes` is what may still be spent; what is filled in is taken off it.
    fn fill(&self, text: &str, want: Want, bytes: &mut usize) -> Option<Result<Json, Misfit>>;
}

/// A value that does not fit where its placeholder stands.
#[derive(Debug)]
pub(in crate::template) struct Misfit {
    pub fault: Fault,
    /// The placeholder, as it is found in the text.
    pub at: String,
}

/// Where a document's first node is.
pub(in crate::template) fn start(marks: &Marks) -> usize {
    marks.nodes.first().map_or(0, |node| node.offset as usize)
}

impl Places {
    pub(in crate::template) fn new(marks: Marks, origin: Arc<dyn Origin>) -> Self {
        Places { marks: Arc::new(marks), end: usize::MAX, origin }
    }

    /// The document's plain scalars that are not what they seem, with their places.
    pub(crate) fn traps(&self) -> impl Iterator<Item = (Place, &Trap)> {
        self.marks.traps.iter().map(|trap| (self.origin.place(trap.offset), trap))
    }

    /// The same, known to end before this offset.
    pub(in crate::template) fn ending_at(self, end: usize) -> Self {
        Places { end, ..self }
    }

    /// Where the document begins.
    pub(crate) fn start(&self) -> Place {
        self.origin.place(self.marks.nodes.first().map_or(0, |node| node.offset as usize))
    }

    /// Where the node at `path` was written, or its nearest known parent. Elements are keys, or indices as text.
    pub(crate) fn place(&self, path: &[&str]) -> Option<Place> {
        self.marks.nodes.get(self.nearest(path)).map(|node| self.origin.place(node.offset as usize))
    }

    /// What the node at `path`, or its nearest known parent, is computed from, and the conditions it stands under.
    pub(in crate::template) fn written(&self, path: &[&str]) -> (Vec<String>, Vec<String>) {
        let at = self.nearest(path);
        let Some(node) = self.marks.nodes.get(at) else { return (Vec::new(), Vec::new()) };
        let next = self.marks.nodes.get(at + node.size as usize);
        let end = next.map_or(self.end, |next| next.offset as usize);
        self.origin.written(node.offset as usize..end)
    }

    fn nearest(&self, path: &[&str]) -> usize {
        let mut at = 0;
        for element in path {
            match self.child(at, Name::of(element)) {
                Some(child) => at = child,
                None => break,
            }
        }
        at
    }

    /// `None` also where the node's inside is not known: it came from a value or an alias.
    fn child(&self, parent: usize, name: Name) -> Option<usize> {
        let end = parent + self.marks.nodes.get(parent)?.size as usize;
        let mut at = parent + 1;
        while at < end {
            let node = self.marks.nodes.get(at)?;
            if node.name == name {
                return Some(at);
            }
            at += node.size as usize;
        }
        None
    }
}

/// Reads a stream of documents; empty ones are left out. `file` is how places call the text.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Document>, Problem> {
    let origin = Arc::new(Text { file: file.to_string(), text: text.to_string() });
    let documents =
        read_stream(text, &Limits::default(), None).map_err(|trouble| origin.problem(*trouble))?;
    Ok(documents
        .into_iter()
        .map(|(value, marks)| Document { value, places: Places::new(marks, origin.clone()) })
        .collect())
}

/// A file read as it stands: an offset is an offset of the file.
#[derive(Debug)]
struct Text {
    file: String,
    text: String,
}

impl Text {
    fn problem(&self, trouble: Trouble) -> Problem {
        let range = floor(&self.text, trouble.range.start)..floor(&self.text, trouble.range.end);
        let width = self.text[range.clone()].lines().next().map_or(0, |line| line.chars().count());
        let problem = trouble.fault.into_problem().at(self.place(range.start)).with_source(&self.text, width);
        match trouble.first {
            Some(first) => problem.found(format!("the first one at {}", self.place(first))),
            None => problem,
        }
    }
}

impl Origin for Text {
    fn place(&self, offset: usize) -> Place {
        let (line, column) = line_and_column(&self.text, offset);
        Place { file: self.file.clone(), line, column }
    }
}

/// Both count from 1; columns count characters.
pub(in crate::template) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..floor(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
