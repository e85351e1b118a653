//! Makes a working hook folder and the definition that calls it: from nothing, from a CRD, or from manifests.
//!
//! What is made is data first, a `Sketch`; `write` puts it on disk and never over what is there, unless told to.

mod before;
mod crd;
mod definition;
mod manifests;
mod names;
mod starter;
mod write;

use std::path::PathBuf;

use serde_json::Value;

use crate::author::kinds::ChildKind;
use crate::problem::Problem;

pub(crate) use self::names::{Names, Wish};
pub(crate) use self::write::{Appended, Overwrite, Target, Written, write};

/// What a new operator is made from.
#[derive(Clone, Debug)]
pub(crate) enum From {
    Nothing,
    /// A file with a CustomResourceDefinition.
    Crd(PathBuf),
    /// A folder or a file of manifests; `-` is stdin.
    Manifests(PathBuf),
}

/// A hook folder and its definition, not yet written.
#[derive(Debug)]
pub(crate) struct Sketch {
    pub names: Names,
    files: Vec<NewFile>,
    children: Vec<ChildKind>,
    /// The children that the first case must answer, where they are known beforehand.
    promised: Option<Vec<Value>>,
    /// What a person should know of what was made.
    pub notes: Vec<String>,
    /// The namespace of the example, where it says one.
    pub namespace: Option<String>,
}

/// A file below the hook's folder.
#[derive(Debug)]
struct NewFile {
    path: String,
    text: String,
}

impl NewFile {
    fn new(path: &str, text: impl Into<String>) -> NewFile {
        NewFile { path: path.into(), text: text.into() }
    }
}

/// Sketches the operator that is wished for.
pub(crate) fn sketch(wish: Wish, from: &From) -> Result<Sketch, Problem> {
    match from {
        From::Nothing => starter::sketch(wish.names()?),
        From::Crd(file) => crd::sketch(wish, file),
        From::Manifests(source) => manifests::sketch(wish.names()?, source),
    }
}

/// Whether the parents of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
}
