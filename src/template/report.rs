//! From an engine's error to a problem: in the author's words, at a place in the author's source.
//!
//! Values of data are never shown: an engine's own detail is read, not repeated.

use std::ops::Range;

use minijinja::{Error, ErrorKind};

use crate::problem::{Place, Problem, nearest};
use crate::template::CONTEXT_NAMES;
use crate::template::data::is_name;
use crate::template::fault::{Fault, Subject};
use crate::template::habits;
use crate::template::jinja;
use crate::template::library::Files;
use crate::template::nesting;
use crate::template::render::{Budget, over_budget};
use crate::template::source::Source;
use crate::template::syntax;
use crate::template::yaml::line_and_column;

/// What an error says about itself when it is told where it happened.
struct Spot<'f> {
    file: &'f str,
    source: &'f Source,
    /// In the author's text.
    range: Range<usize>,
}

/// Tells what went wrong in a render that had this budget, or while a file was compiled.
///
/// `given` are the names that the render had.
pub(in crate::template) fn problem(
    files: &Files,
    budget: &Budget,
    given: &[String],
    error: &Error,
) -> Problem {
    let chain = chain(error);
    let spots: Vec<Spot> = chain.iter().rev().filter_map(|error| spot(files, error)).collect();
    let cause = chain.last().copied().unwrap_or(error);
    let Some(first) = spots.first() else { return fault_of(cause, "", files, budget).into_problem() };
    let text = first.source.text.get(first.range.clone()).unwrap_or_default();
    let fault = fault_of(cause, text, files, budget).without_values(&first.source.text);
    let fault = of_names(fault, files, first.source, given);
    let fault = habits::of_comment(fault, &first.source.text, first.range.start);
    let range = subject(first, &fault, cause).unwrap_or_else(|| first.range.clone());
    let mut problem = at(files, first.file, first.source, range, fault.into_problem());
    problem.trail = trail(files, &spots);
    problem
}

/// A problem of a range of a file, with its line and caret.
pub(in crate::template) fn at(
    files: &Files,
    file: &str,
    source: &Source,
    range: Range<usize>,
    problem: Problem,
) -> Problem {
    let shown = source.text.get(range.clone()).unwrap_or_default();
    let width = shown.lines().next().map_or(1, |line| line.chars().count());
    problem.at(place(files, file, source, range.start)).with_source(&source.text, width)
}

pub(in crate::template) fn place(files: &Files, file: &str, source: &Source, offset: usize) -> Place {
    let (line, column) = line_and_column(&source.text, offset);
    Place { file: files.shown(file), line, column }
}

/// The error and its causes, as far as the engine knows them.
fn chain(error: &Error) -> Vec<&Error> {
    let mut chain = vec![error];
    while let Some(cause) =
        chain.last().and_then(|last| std::error::Error::source(*last)?.downcast_ref::<Error>())
    {
        chain.push(cause);
    }
    chain
}

fn spot<'f>(files: &'f Files, error: &Error) -> Option<Spot<'f>> {
    let (file, source) = files.find(error.name()?)?;
    let range = match error.range() {
        Some(guarded) => source.original(guarded),
        None => syntax::line_range(&source.text, error.line()?),
    };
    Some(Spot { file, source, range })
}

/// An endless recursion is told by its first steps.
const LONGEST_TRAIL: usize = 8;

/// The places from which the first one was reached, innermost first.
fn trail(files: &Files, spots: &[Spot]) -> Vec<Place> {
    let mut places: Vec<Place> =
        spots.iter().map(|spot| place(files, spot.file, spot.source, spot.range.start)).collect();
    places.dedup();
    places.drain(..1.min(places.len()));
    places.truncate(LONGEST_TRAIL);
    places
}

/// What is said of an error. `text` is the expression it is about, as the author wrote it.
fn fault_of(error: &Error, text: &str, files: &Files, budget: &Budget) -> Fault {
    if let Some(fault) = Fault::inside(error) {
        return fault.clone();
    }
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::OutOfFuel => over_budget("steps", &format!("{} steps", budget.fuel))
            .hint("a loop that runs too long, or text that grows too large"),
        ErrorKind::UndefinedError => undefined(detail, text),
        ErrorKind::TemplateNotFound => missing_file(detail, files),
        ErrorKind::InvalidOperation if detail == "recursion limit exceeded" => {
            over_budget("recursion", &format!("a depth of {}", budget.recursion))
                .hint("a macro calls itself, or a file includes itself, without an end")
        }
        ErrorKind::InvalidOperation if detail.starts_with("repeated ") => {
            over_budget("output", &format!("{} bytes", budget.output_bytes))
        }
        ErrorKind::InvalidOperation => operation(detail),
        ErrorKind::TooManyArguments | ErrorKind::MissingArgument => arguments(detail),
        ErrorKind::UnknownFunction => Fault::new("this is no function"),
        ErrorKind::UnknownBlock => Fault::new("there is no block of that name"),
        ErrorKind::CannotUnpack => Fault::new("this cannot be split into several names")
            .expected("a list with one item for each name"),
        // Of the text with its guards: the author's own is Jinja, or it would not have come so far.
        ErrorKind::SyntaxError => nesting::beyond_the_engine(),
        _ => Fault::new("this cannot be computed"),
    }
}

fn operation(detail: &str) -> Fault {
    if let Some(rest) = detail.strip_prefix("tried to use ") {
        let mut words = rest.split(" operator on unsupported types ");
        let operator = words.next().unwrap_or_default();
        let (left, right) = words.next().unwrap_or_default().split_once(" and ").unwrap_or_default();
        let fault = format!("`{operator}` cannot combine {} and {}", in_words(left), in_words(right));
        let joins = operator == "+" && [left, right].contains(&"string");
        let fault = Fault::new(fault);
        return match (operator, left, right) {
            _ if joins => fault.hint("`~` joins values as text"),
            ("%", "string", _) => fault.hint(jinja::FORMAT),
            ("+", "map", "map") => {
                fault.hint("`map | chain(other)` makes one map of two, in which the last one wins")
            }
            _ => fault,
        };
    }
    if let Some(rest) = detail.strip_prefix("value of type ") {
        let what = if rest.ends_with("is not callable") { "called" } else { "sliced" };
        return Fault::new(format!(
            "{} cannot be {what}",
            in_words(rest.split(' ').next().unwrap_or_default())
        ));
    }
    if let Some((found, wanted)) =
        detail.strip_prefix("cannot convert ").and_then(|rest| rest.split_once(" to "))
    {
        return Fault::new(format!("{} cannot be used here", in_words(found)))
            .expected(wanted_in_words(wanted));
    }
    if detail.ends_with("can only be multiplied with integers") {
        return Fault::new("`*` repeats a text or a list").expected("a whole number beside it");
    }
    if detail.starts_with("unable to calculate") {
        return Fault::new("this has no result").hint("a division by zero, or a number too large");
    }
    if detail.ends_with("is not iterable") {
        return Fault::new("this cannot be looped over").expected("a list or a map");
    }
    if detail.starts_with("cannot recurse") || detail.starts_with("cannot super") {
        return Fault::new("this can only be called inside its loop or block");
    }
    if detail.starts_with("cycle in template inheritance") {
        return Fault::new("this file extends itself");
    }
    Fault::new("this cannot be computed")
}

/// The engine's name of a kind in the author's words.
fn in_words(kind: &str) -> &'static str {
    match kind {
        "none" => "null",
        "bool" => "true or false",
        "number" => "a number",
        "string" => "text",
        "bytes" => "bytes",
        "sequence" | "iterator" => "a list",
        "map" => "a map",
        "undefined" => "nothing",
        _ => "a function",
    }
}

/// The engine's name of a Rust type in the author's words.
fn wanted_in_words(target: &str) -> &'static str {
    match target {
        "bool" => "true or false",
        "f32" | "f64" | "float" => "a number",
        "String" | "string" | "str" => "text",
        _ => "a whole number",
    }
}

fn arguments(detail: &str) -> Fault {
    let quoted = detail.split(['`', '\'']).nth(1);
    match (quoted, detail) {
        (Some(name), detail) if detail.starts_with("duplicate") => {
            Fault::new(format!("the argument `{name}` is given twice"))
        }
        (Some(name), detail) if detail.starts_with("unknown") => {
            Fault::new(format!("there is no argument `{name}`"))
        }
        (Some(name), _) => Fault::new(format!("the argument `{name}` is missing")),
        (None, _) => Fault::new("this call has more arguments than its macro takes"),
    }
}

/// "`parent.x` is undefined", or with " (from line 3)" or " (from sync.yaml:3)" behind it, or nothing.
fn undefined(detail: &str, text: &str) -> Fault {
    let expression = detail.split('`').nth(1).filter(|expression| !expression.contains("(...)"));
    let expression = expression.unwrap_or(text);
    let fault = match expression {
        _ if text.contains(" if ") && !text.contains(" else ") => {
            Fault::new(format!("`{text}` has no value here")).hint("add `else` to say what it is otherwise")
        }
        name if CONTEXT_NAMES.contains(&name) => Fault::new(format!("`{name}` is not given to this call")),
        "self" => Fault::new("`self` has no value here")
            .hint("`self.name()` writes a block of this file; a variable is written by its own name"),
        name if is_name(name) => Fault::new(format!("`{name}` has no value here")).hint(SAY_OTHERWISE),
        path if path.starts_with("now.") => Fault::new(format!("`{path}` is absent"))
            .hint("`now` is text such as `2026-01-31T12:00:00Z`: `now[:4]` is its year, `timestamp(now)` its seconds"),
        path if path.starts_with("old.") => Fault::new(format!("`{path}` is absent"))
            .hint("`old` is null where there was nothing before: ask `{% if old and … %}`"),
        path => Fault::new(format!("`{path}` is absent")).hint(SAY_OTHERWISE),
    };
    match detail.split("from ").nth(1) {
        Some(from) => fault.found(format!("it was left absent in {}", from.trim_end_matches(')'))),
        None => fault,
    }
}

/// Says more of a name that has no value: what this call has instead, or which file sets it.
fn of_names(fault: Fault, files: &Files, source: &Source, given: &[String]) -> Fault {
    let name = fault.message.split('`').nth(1).unwrap_or_default().to_string();
    if fault.message.ends_with("is not given to this call") {
        let listed = given.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let fault = if given.is_empty() { fault } else { fault.expected(format!("one of {listed}")) };
        let has = |name: &str| given.iter().any(|given| given == name);
        return match name.as_str() {
            "request" => fault.hint("what a request holds has names of its own"),
            "parent" if has("object") => fault.hint("did you mean `object`?"),
            "object" if has("parent") => fault.hint("did you mean `parent`?"),
            _ => fault,
        };
    }
    let elsewhere = || files.all().any(|(_, other)| other.assigned.contains(&name));
    if fault.message.ends_with("has no value here") && !source.assigned.contains(&name) && elsewhere() {
        return fault.hint(format!(
            "another file sets it, and each file has names of its own: set it in a file such as `_names.yaml`, and `{{% from \"_names.yaml\" import {name} %}}` where it is used"
        ));
    }
    fault
}

const SAY_OTHERWISE: &str = "where it may be missing, write `| default(…)`";

fn missing_file(detail: &str, files: &Files) -> Fault {
    let name = detail.split(['"', '\'']).nth(1).unwrap_or_default();
    let like_a_path = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    match name.chars().all(like_a_path) && name.len() <= 100 {
        true => unknown_file(name, files),
        false => Fault::new("there is no such file"),
    }
}

pub(in crate::template) fn unknown_file(name: &str, files: &Files) -> Fault {
    let fault = Fault::new(format!("there is no file `{name}`"));
    match nearest(name, files.names()) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault.hint("paths are those below the hooks folder, or beside this file"),
    }
}

/// The argument or operand that a fault is about.
fn subject(spot: &Spot, fault: &Fault, error: &Error) -> Option<Range<usize>> {
    let absent = error.detail().filter(|_| error.kind() == ErrorKind::UndefinedError);
    let subject = match absent.and_then(|detail| detail.split('`').nth(1)) {
        Some(expression) => Subject::Text(expression.to_string()),
        None => fault.subject.clone(),
    };
    spot.source.part(&spot.range, &subject)
}
