//! Where two states of an object differ, a line or a few for each path.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::author::diff::{Line, Tone};
use crate::author::difference::{Pair, items, members, named_items, names, shown};

const INDENT: &str = "      ";

pub(super) fn paths(before: &Value, after: &Value) -> Vec<Line> {
    let mut lines = Vec::new();
    compare("", before, after, &mut lines);
    lines
}

fn compare(path: &str, before: &Value, after: &Value, lines: &mut Vec<Line>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_all(members(path, before, after), lines),
        (Value::Array(before), Value::Array(after)) => compare_all(listed(path, before, after), lines),
        (Value::String(before), Value::String(after)) if before.contains('\n') || after.contains('\n') => {
            compare_texts(path, before, after, lines);
        }
        _ => {
            let text = format!("{INDENT}~ {path}: {} -> {}", shown(before), shown(after));
            lines.push(Line { tone: Tone::Plain, text });
        }
    }
}

/// Items that have names are compared by them.
fn listed<'a>(path: &str, before: &'a [Value], after: &'a [Value]) -> Vec<Pair<'a>> {
    match (names(before), names(after)) {
        (Some(old), Some(new)) => named_items(path, (&old, before), (&new, after)),
        _ => items(path, before, after),
    }
}

fn compare_all(pairs: Vec<Pair>, lines: &mut Vec<Line>) {
    for (path, before, after) in pairs {
        match (before, after) {
            (Some(before), Some(after)) => compare(&path, before, after, lines),
            (Some(before), None) => {
                lines
                    .push(Line { tone: Tone::Removed, text: format!("{INDENT}- {path}: {}", shown(before)) });
            }
            (None, Some(after)) => {
                lines.push(Line { tone: Tone::Added, text: format!("{INDENT}+ {path}: {}", shown(after)) });
            }
            (None, None) => {}
        }
    }
}

/// The lines that differ, with one around them.
fn compare_texts(path: &str, before: &str, after: &str, lines: &mut Vec<Line>) {
    lines.push(Line { tone: Tone::Plain, text: format!("{INDENT}~ {path}:") });
    let diff = TextDiff::from_lines(before, after);
    for group in diff.grouped_ops(1) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (mark, tone) = match change.tag() {
                ChangeTag::Delete => ('-', Tone::Removed),
                ChangeTag::Insert => ('+', Tone::Added),
                ChangeTag::Equal => (' ', Tone::Plain),
            };
            let text = change.value().trim_end_matches('\n');
            lines.push(Line { tone, text: format!("{INDENT}    {mark} {text}") });
        }
    }
}
