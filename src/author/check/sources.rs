//! The texts of the files that findings are in: for the line under a caret, and for comments that allow a finding.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::author::check::finding::Rule;
use crate::problem::{Place, Problem, Snippet};

/// Reads each file once.
pub(super) struct Sources {
    hooks: PathBuf,
    /// What places call the hooks folder, with a slash.
    label: String,
    lines: HashMap<String, Vec<String>>,
}

impl Sources {
    pub(super) fn new(hooks: &Path, label: &str) -> Sources {
        Sources { hooks: hooks.to_path_buf(), label: format!("{label}/"), lines: HashMap::new() }
    }

    /// The problem with its files named by the way from here, and with the line it is on.
    pub(super) fn complete(&mut self, mut problem: Problem) -> Problem {
        let rename = |place: &mut Place| {
            if let Some(rest) = place.file.strip_prefix(&self.label) {
                place.file = self.hooks.join(rest).display().to_string();
            }
        };
        problem.place.iter_mut().chain(&mut problem.trail).for_each(rename);
        let (Some(place), None) = (&problem.place, &problem.snippet) else { return problem };
        let Some(text) = self.line(&place.file, place.line).map(String::from) else { return problem };
        let width = width(&text.chars().skip(place.column.saturating_sub(1)).collect::<String>()).max(1);
        Problem { snippet: Some(Snippet { text, width }), ..problem }
    }

    /// Whether a comment on the problem's line or the one above it says `check: allow RULE`.
    pub(super) fn allow(&mut self, rule: Rule, problem: &Problem) -> bool {
        let Some(place) = &problem.place else { return false };
        let lines = [place.line, place.line.saturating_sub(1)];
        lines.into_iter().any(|line| {
            self.line(&place.file, line).is_some_and(|line| {
                let allowed = line.split("check: allow ").nth(1).unwrap_or_default();
                allowed.split([',', ' ']).any(|word| word == rule.name())
            })
        })
    }

    fn line(&mut self, file: &str, number: usize) -> Option<&str> {
        if !self.lines.contains_key(file) {
            let text = fs::read_to_string(file).unwrap_or_default();
            self.lines.insert(file.to_string(), text.lines().map(String::from).collect());
        }
        self.lines[file].get(number.checked_sub(1)?).map(String::as_str)
    }
}

/// How much of a text a caret line is put under: a word, or a text in quotes.
fn width(text: &str) -> usize {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
        && let Some(length) = text.chars().skip(1).position(|c| c == quote)
    {
        return length + 2;
    }
    text.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | ']' | '}')).count()
}
