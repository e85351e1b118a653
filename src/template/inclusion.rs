//! Text that one file includes into another: where it ends, and whether it stands where its author sees it.
//!
//! A tag and the blanks before it are no part of the output, so that an included text stands as its own file has it.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::Problem;
use crate::template::fault::Fault;
use crate::template::library::Files;
use crate::template::report;
use crate::template::source::{Kind, Source, Use};

/// Lets files that are included by tags at the ends of lines end with a line of their own: the line's end behind a tag
/// goes with the tag, and what follows would be put behind the last word of the file.
pub(in crate::template) fn end_lines(sources: &mut BTreeMap<String, String>) {
    let (mut ending, mut inside) = (BTreeSet::new(), BTreeSet::new());
    for text in sources.values() {
        for (name, ends_a_line) in includes(text) {
            let names = if ends_a_line { &mut ending } else { &mut inside };
            names.insert(last_part(name).to_string());
        }
    }
    for (name, text) in sources {
        let own = last_part(name);
        if !text.is_empty() && !text.ends_with('\n') && ending.contains(own) && !inside.contains(own) {
            text.push('\n');
        }
    }
}

/// The files that a text includes by a name in quotes, and whether nothing stands behind the tag in its line.
fn includes(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.match_indices("{%").filter_map(|(start, _)| {
        let open = start + "{%".len();
        let length = text[open..].find("%}")?;
        let inner = text[open..open + length].trim_start_matches(['-', '+']).trim_start();
        let name = inner.strip_prefix("include")?.trim_start();
        let quote = name.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        let name = name[1..].split(quote).next()?;
        let rest = &text[open + length + "%}".len()..];
        let ends_a_line = rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n");
        Some((name, ends_a_line && !inner.ends_with('-')))
    })
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Included text that would not be the value of the key that it seems to belong to.
pub(in crate::template) fn misplaced(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, source) in files.all() {
        for used in source.uses.iter().filter(|used| used.kind == Kind::File) {
            let included = files.included(file, &used.name);
            let Some(fault) = included.and_then(|included| misplacement(source, used, &included.text)) else {
                continue;
            };
            problems.push(report::at(files, file, source, used.range.clone(), fault.into_problem()));
        }
    }
    problems
}

fn misplacement(source: &Source, used: &Use, included: &str) -> Option<Fault> {
    let first = first_line(included)?;
    let name = &used.name;
    let tag = source.text[..used.range.start].rfind("{%")?;
    if !source.text[tag + 2..].trim_start_matches(['-', '+', ' ']).starts_with("include") {
        return None;
    }
    let line = source.text[..tag].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &source.text[line..tag];
    if before.trim_end().ends_with(':') && begins_a_block(first) {
        return Some(
            Fault::new(format!("the text of `{name}` would begin in the middle of this line")).hint(format!(
                "put the tag on the next line, and indent the lines of `{name}` as they are to stand there"
            )),
        );
    }
    let key = source.text[..line].lines().rev().find(|line| !is_silent(line))?;
    if !before.trim().is_empty() || before.is_empty() || !opens(key) {
        return None;
    }
    let (own, above, there) = (before.len(), indentation(key), indentation(first));
    let is_item = first.trim_start().starts_with("- ") && there == above;
    (own > above && there <= above && !is_item).then(|| {
        Fault::new(format!("the text of `{name}` is not indented as this tag is"))
            .found(format!("its first line begins in column {}", there + 1))
            .hint(format!(
                "a tag's own blanks are not put before it: indent the lines of `{name}` by {own}, or make it a macro and write `{{{{ name() | indent({own}) }}}}`"
            ))
    })
}

/// The first line of a text that is neither blank nor only a tag or a comment.
fn first_line(text: &str) -> Option<&str> {
    text.lines().find(|line| !is_silent(line)).filter(|line| !line.starts_with("---"))
}

fn is_silent(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("{%") || line.starts_with("{#") || line.starts_with('#')
}

/// Whether a line is a key whose value is still to come.
fn opens(line: &str) -> bool {
    line.trim_end().ends_with(':')
}

/// A key or an item, which can only begin a line.
fn begins_a_block(line: &str) -> bool {
    let line = line.trim();
    let is_key = line.contains(": ") || line.ends_with(':');
    line.starts_with("- ") || (is_key && !line.starts_with(['{', '[', '"', '\'']))
}

/// The column of a line's key, which may stand behind the dash of an item.
fn indentation(line: &str) -> usize {
    let dash = line.trim_start().strip_prefix("- ").filter(|_| opens(line));
    let text = dash.unwrap_or(line).trim_start();
    line.len() - text.len()
}
