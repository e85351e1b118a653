//! What a function, a filter or the engine itself says when it refuses: a problem that has no place yet.

use std::fmt;

use minijinja::{Error, ErrorKind};

use crate::problem::Problem;

/// A refusal raised while a template runs. The engine adds place, caret and include trail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::template) struct Fault {
    pub message: String,
    pub found: Option<String>,
    pub expected: Option<String>,
    pub hint: Option<String>,
    pub subject: Subject,
    pub guarded: Option<Guarded>,
    /// Raised by the author's own `fail(…)`.
    pub on_purpose: bool,
}

/// A word of the message that may be a value, and what is said instead unless the author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::template) struct Guarded {
    pub word: String,
    pub message: String,
}

/// What of the call or expression is at fault: the caret goes there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::template) enum Subject {
    #[default]
    Whole,
    /// By position; of a filter and a test, the first one stands before the name.
    Argument(usize),
    Named(String),
    /// By the text of its expression.
    Text(String),
    /// What a method is called on.
    Receiver,
    /// The method's name.
    Method(String),
}

impl Fault {
    pub(in crate::template) fn new(message: impl Into<String>) -> Self {
        Fault { message: message.into(), ..Fault::default() }
    }

    pub(in crate::template) fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(in crate::template) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(in crate::template) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(in crate::template) fn about_its(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }

    /// The fault inside an engine's error.
    pub(in crate::template) fn inside(error: &Error) -> Option<&Fault> {
        std::error::Error::source(error)?.downcast_ref()
    }

    /// The fault of an error that has no place to be told at.
    pub(in crate::template) fn of(error: &Error) -> Fault {
        Fault::inside(error).cloned().unwrap_or_else(|| Fault::new("a value cannot be written"))
    }

    /// The same error, told to be about one argument of the call. The engine's own errors find theirs by themselves.
    pub(in crate::template) fn about(error: Error, subject: Subject) -> Error {
        match Fault::inside(&error) {
            Some(fault) => Fault { subject, ..fault.clone() }.into(),
            None => error,
        }
    }

    /// Takes a word out of the message that the author's text does not have: it comes from data.
    pub(in crate::template) fn without_values(mut self, text: &str) -> Self {
        if let Some(guarded) = self.guarded.take().filter(|guarded| !text.contains(&guarded.word)) {
            self.message = guarded.message;
        }
        self
    }

    /// The same, ready to be given a place.
    pub(in crate::template) fn into_problem(self) -> Problem {
        let mut problem = Problem::new(self.message);
        (problem.found, problem.expected, problem.hint) = (self.found, self.expected, self.hint);
        problem.on_purpose = self.on_purpose;
        problem
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// minijinja carries the fault as the cause of its own error.
impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error::new(ErrorKind::InvalidOperation, fault.message.clone()).with_source(fault)
    }
}
