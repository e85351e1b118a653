//! The way from an object's root to one of its parts, kept on the stack until somebody wants to read it.

use std::fmt;

use super::owned::ListKey;

/// A part of an object.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    pub above: Option<&'a Path<'a>>,
    pub step: Step<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Item(ListKey<'a>),
    /// An item or element by a text that names it.
    Named(&'a str),
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Path<'static> = Path { above: None, step: Step::Root };

    pub(super) fn below(&'a self, step: Step<'a>) -> Path<'a> {
        Path { above: Some(self), step }
    }

    /// The name of the field this is, if it is one.
    pub(super) fn field(&self) -> Option<&'a str> {
        match self.step {
            Step::Field(name) => Some(name),
            _ => None,
        }
    }
}

/// As Kubernetes writes paths in its errors: `spec.containers[name=db].image`, `metadata.labels[app.io/name]`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        let first = self.above.is_none_or(|above| matches!(above.step, Step::Root));
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if name.contains(['.', '/', '[', ' ']) => write!(f, "[{name}]"),
            Step::Field(name) if first => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Item(key) => write!(f, "[{}]", key.text()),
            Step::Named(text) => write!(f, "[{text}]"),
        }
    }
}
