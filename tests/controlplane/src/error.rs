//! Why the control plane cannot be had: one sentence that a developer can act on.

use std::{fmt, io};

/// One sentence, and the last lines of a program's output where they explain it.
#[derive(Debug, Clone)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Error(sentence.into())
    }

    pub(crate) fn with_output(sentence: impl fmt::Display, output: &str) -> Self {
        let last = last_lines(output, 20);
        match last.is_empty() {
            true => Error(sentence.to_string()),
            false => Error(format!("{sentence}; its last lines:\n{last}")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Says what was being done when the system refused it.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error(format!("{}: {error}", what())))
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
