//! Text and JSON in, JSON or a problem out: Jinja whose text is YAML and whose values are data.
//!
//! Knows nothing of Kubernetes, no clock, no file system: sources, time and entropy are handed in.

pub(crate) mod yaml;

mod fault;
mod functions;
mod library;
mod registry;
mod render;
mod value;

pub(crate) use self::{
    library::{Document, Library},
    render::{Budget, Context},
};
