//! The way from an object's root to one of its parts, kept on the stack until somebody wants to read it.

use std::fmt;

use serde_json::Value;

use super::owned::{Element, ListKey};

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
    /// An item that a guessed key tells from others.
    With(&'static str, &'a Value),
    Element(Element<'a>),
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
            Step::With(key, value) => write!(f, "[{key}={}]", plain(value)),
            Step::Element(element) => write!(f, "[{}]", plain(&element.value())),
        }
    }
}

/// A value as it is named in a path: text without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
