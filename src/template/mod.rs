//! Text and JSON in, JSON or a problem out: Jinja whose text is YAML and whose values are data.
//!
//! Knows nothing of Kubernetes, no clock but to stop a render that takes too long, no file system: sources, time and
//! entropy are handed in.
//!
//! A source is read twice: `source` checks it and adds guards to its expressions, minijinja compiles what comes out.
//! A render writes `placeholder`s for values, `yaml` reads the text and fills them in, `report` tells what went wrong
//! where in the author's own source.

pub(crate) mod yaml;

mod branches;
mod data;
mod document;
mod effort;
mod family;
mod fault;
mod functions;
mod habits;
mod inclusion;
mod inputs;
mod jinja;
mod library;
mod nesting;
mod operator;
mod placeholder;
mod registry;
mod render;
mod report;
mod source;
mod span;
mod syntax;
mod value;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::branches::{Branch, Watching};
pub(crate) use self::document::{Document, Written};
pub(crate) use self::library::Library;
pub(crate) use self::render::{Budget, Context};

/// Every name that some call gives its template. A name that is none of these, no function and set nowhere is a slip.
const CONTEXT_NAMES: &[&str] = &[
    "parent",
    "children",
    "related",
    "finalizing",
    "controller",
    "now",
    "object",
    "attachments",
    "request",
    "old",
    "operation",
    "dry_run",
    "user",
    "from",
    "to",
];
