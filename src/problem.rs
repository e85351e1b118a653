//! Where something an author wrote went wrong: file, line, column, what was found, what was expected, a hint.
//!
//! Knows no file format and prints nothing: rooms above make problems, `cli`, `serve` and `controller` show them.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// A position in a file an author wrote. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Place {
    /// Path as the author knows it, for example `hooks/mysql/sync.yaml`.
    pub file: String,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The source line a problem is on, and how many characters of it are meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Snippet {
    pub text: String,
    /// Width of the caret line in characters, at least 1; it begins at the place's column.
    pub width: usize,
}

/// Bytes of a part that repeats what somebody else has sent.
const LONGEST: usize = 500;

/// One fault in something an author wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// What is wrong, lower case, no full stop, literals in backticks.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How the place was reached, innermost first: include and macro call sites.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trail: Vec<Place>,
    /// Whether the author wrote that it is to end so, with `fail(…)`.
    #[serde(skip)]
    pub on_purpose: bool,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Problem {
            message: message.into(),
            place: None,
            snippet: None,
            found: None,
            expected: None,
            hint: None,
            trail: Vec::new(),
            on_purpose: false,
        }
    }

    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with no part longer than a person reads: what somebody else has sent may be in it.
    pub(crate) fn brief(mut self) -> Self {
        let parts = [Some(&mut self.message), self.found.as_mut(), self.hint.as_mut()];
        for part in parts.into_iter().flatten().filter(|part| part.len() > LONGEST) {
            part.truncate(floor(part, LONGEST));
            part.push_str("...");
        }
        self
    }

    /// Takes the source line under the problem's place out of `source`, with a caret of `width` characters.
    pub(crate) fn with_source(mut self, source: &str, width: usize) -> Self {
        let line = self.place.as_ref().and_then(|place| source.lines().nth(place.line.checked_sub(1)?));
        self.snippet = line.map(|text| Snippet { text: text.to_string(), width: width.max(1) });
        self
    }

    /// The same problem with other words. A source line keeps its width, so that the caret still points at its place.
    pub(crate) fn reworded(mut self, words: impl Fn(&str) -> String) -> Problem {
        self.message = words(&self.message);
        for part in [&mut self.found, &mut self.expected, &mut self.hint].into_iter().flatten() {
            *part = words(part);
        }
        if let Some(snippet) = &mut self.snippet {
            let text = words(&snippet.text);
            if text != snippet.text {
                snippet.text = covered(&snippet.text, &text);
            }
        }
        self
    }

    /// The whole page for a person: headline, source line with a caret, found, expected, trail, hint.
    pub(crate) fn page(&self) -> String {
        let mut page = visible(&self.headline());
        if let (Some(place), Some(snippet)) = (&self.place, &self.snippet) {
            page.push_str(&caret_lines(place, snippet));
        }
        for (label, text) in [("found", &self.found), ("expected", &self.expected)] {
            if let Some(text) = text {
                page.push_str(&format!("\n{label}: {}", visible(text)));
            }
        }
        for place in &self.trail {
            page.push_str(&format!("\nfrom: {place}"));
        }
        if let Some(hint) = &self.hint {
            page.push_str(&format!("\nhint: {}", visible(hint)));
        }
        page
    }

    fn headline(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

/// One line, for conditions and logs: place, message, found, expected, hint.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.headline()))?;
        for (label, text) in [("found", &self.found), ("expected", &self.expected), ("hint", &self.hint)] {
            if let Some(text) = text {
                write!(f, "; {label}: {}", one_line(text))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

fn caret_lines(place: &Place, snippet: &Snippet) -> String {
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let (text, before) = window(&snippet.text, place.column.saturating_sub(1));
    let indent: String = text.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let width = snippet.width.min(text.chars().count().saturating_sub(before)).max(1);
    format!("\n {margin} |\n {number} | {}\n {margin} | {indent}{}", visible(&text), "^".repeat(width))
}

/// The text with `*` where another one has other words.
fn covered(text: &str, other: &str) -> String {
    let same =
        |one: &mut dyn Iterator<Item = (char, char)>| one.take_while(|(one, other)| one == other).count();
    let length = text.chars().count();
    let before = same(&mut text.chars().zip(other.chars()));
    let after = same(&mut text.chars().rev().zip(other.chars().rev())).min(length - before);
    let covered = |(at, c)| if at < before || at >= length - after { c } else { '*' };
    text.chars().enumerate().map(covered).collect()
}

/// The part of a long line that is worth showing, and how many of its characters come before `column`.
fn window(line: &str, column: usize) -> (String, usize) {
    const LONGEST: usize = 160;
    const BEFORE: usize = 60;
    let length = line.chars().count();
    if length <= LONGEST {
        return (line.to_string(), column);
    }
    let start = column.saturating_sub(BEFORE).min(length - LONGEST);
    let shown: String = line.chars().skip(start).take(LONGEST).collect();
    let left = if start > 0 { "…" } else { "" };
    let right = if start + LONGEST < length { "…" } else { "" };
    (format!("{left}{shown}{right}"), column - start + left.chars().count())
}

/// Control characters by their pictures: what an author or a client wrote must not steer a terminal.
fn visible(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { picture(c) }).collect()
}

/// The same for places that hold one line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { picture(c) }).collect()
}

fn picture(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        c => c,
    }
}

/// The nearest character boundary at or before `offset`.
pub(crate) fn floor(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The candidate a person most likely meant by `word`, if one is near enough to be worth a "did you mean".
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate)
        })
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count().max(3) / 3).min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A value as a message shows it: a small one itself, another by its kind.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) if text.chars().count() <= 40 => format!("the text `{text}`"),
        Value::String(_) => "a text".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { file: "hooks/bluegreen/sync.yaml".into(), line: 12, column: 9 }
    }

    #[test]
    fn what_somebody_else_sent_is_repeated_in_part() {
        let problem = Problem::new("é".repeat(1000)).found("x".repeat(501)).hint("short").brief();
        assert_eq!(problem.message, "é".repeat(250) + "...");
        assert_eq!(problem.found, Some("x".repeat(500) + "..."));
        assert_eq!(problem.hint.as_deref(), Some("short"));
    }

    #[test]
    fn page_points_at_the_word_in_its_line() {
        let source = "\n".repeat(11) + "  name: {{ parnet.metadata.name }}\n";
        let mut at = place();
        at.column = 12;
        let problem = Problem::new("unknown name `parnet`")
            .at(at)
            .with_source(&source, 6)
            .hint("did you mean `parent`?");
        assert_eq!(
            problem.page(),
            "hooks/bluegreen/sync.yaml:12:12: unknown name `parnet`\n    |\n 12 |   name: {{ parnet.metadata.name }}\n    |            ^^^^^^\nhint: did you mean `parent`?"
        );
    }

    #[test]
    fn a_long_line_is_shown_in_part() {
        let source = format!("{}{}{}", "x".repeat(500), "wrong", "y".repeat(500));
        let at = Place { file: "a.yaml".into(), line: 1, column: 501 };
        let page = Problem::new("this is wrong").at(at).with_source(&source, 5).page();
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines[2], format!(" 1 | …{}wrong{}…", "x".repeat(60), "y".repeat(95)));
        assert_eq!(lines[3], format!("   | {}^^^^^", " ".repeat(61)));
    }

    #[test]
    fn line_form_names_place_message_and_hint() {
        let problem = Problem::new("unknown name `parnet`").at(place()).hint("did you mean `parent`?");
        assert_eq!(
            problem.to_string(),
            "hooks/bluegreen/sync.yaml:12:9: unknown name `parnet`; hint: did you mean `parent`?"
        );
    }

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        let at = Place { file: "a.yaml".into(), line: 1, column: 2 };
        let problem = Problem::new("bad\x1b[31m\nnext line").at(at).with_source("a\0b", 1).found("\u{9b}2J");
        assert_eq!(
            problem.page(),
            "a.yaml:1:2: bad␛[31m\nnext line\n   |\n 1 | a␀b\n   |  ^\nfound: \u{fffd}2J"
        );
        assert_eq!(problem.to_string(), "a.yaml:1:2: bad␛[31m next line; found: \u{fffd}2J");
    }

    #[test]
    fn nearest_finds_a_typo_and_nothing_far_off() {
        assert_eq!(nearest("parnet", ["parent", "children"]), Some("parent"));
        assert_eq!(nearest("banana", ["parent", "children"]), None);
    }
}
