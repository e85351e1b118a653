//! A way in which a value does not fit its schema.

use std::fmt::Write;

/// One misfit. Texts are those of a `Problem`; the place is for whoever knows where the value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub nature: Nature,
    /// Keys, and indices as text.
    pub path: Vec<String>,
    /// What is wrong; the kind is not named.
    pub message: String,
    pub expected: Option<String>,
    pub hint: Option<String>,
    /// The path of what it collides with.
    pub other: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nature {
    /// The schema has no such field.
    Unknown,
    /// A value of another type.
    Type,
    /// A required field that is absent.
    Missing,
    /// Of the right type, but not allowed: an enum, a bound, a pattern, a format.
    Value,
    /// An element of a list that has the key of another one.
    Repeated,
    /// A null where null means nothing.
    Null,
    /// A number in quotes where a number and a name mean different things.
    QuotedNumber,
}

impl Misfit {
    pub(super) fn new(nature: Nature, path: &[String], message: impl Into<String>) -> Misfit {
        let message = message.into();
        Misfit { nature, path: path.to_vec(), message, expected: None, hint: None, other: None }
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> Misfit {
        self.expected = Some(expected.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Misfit {
        self.hint = Some(hint.into());
        self
    }
}

/// `spec.containers[0].env`, `metadata.labels["example.com/x"]`.
pub(crate) fn dotted<T: AsRef<str>>(path: &[T]) -> String {
    let mut text = String::new();
    for step in path.iter().map(AsRef::as_ref) {
        let plain = step.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let _ = match (step.parse::<usize>(), plain) {
            (Ok(index), _) if !text.is_empty() => write!(text, "[{index}]"),
            (_, true) if text.is_empty() => write!(text, "{step}"),
            (_, true) => write!(text, ".{step}"),
            _ => write!(text, "[\"{step}\"]"),
        };
    }
    text
}
