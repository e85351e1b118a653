//! Where two states of an object differ, a line or a few for each path.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use crate::author::diff::{Line, Tone};
use crate::author::difference::{names, shown, step};

const INDENT: &str = "      ";

pub(super) fn paths(before: &Value, after: &Value) -> Vec<Line> {
    let mut lines = Vec::new();
    compare("", before, after, &mut lines);
    lines
}

fn compare(path: &str, before: &Value, after: &Value, lines: &mut Vec<Line>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => compare_maps(path, before, after, lines),
        (Value::Array(before), Value::Array(after)) => compare_lists(path, before, after, lines),
        (Value::String(before), Value::String(after)) if before.contains('\n') || after.contains('\n') => {
            compare_texts(path, before, after, lines);
        }
        _ => {
            let text = format!("{INDENT}~ {path}: {} -> {}", shown(before), shown(after));
            lines.push(Line { tone: Tone::Plain, text });
        }
    }
}

fn compare_maps(path: &str, before: &Map<String, Value>, after: &Map<String, Value>, lines: &mut Vec<Line>) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        either(&step(path, key), before.get(key), after.get(key), lines);
    }
}

/// Items that have names are compared by them.
fn compare_lists(path: &str, before: &[Value], after: &[Value], lines: &mut Vec<Line>) {
    let (Some(old), Some(new)) = (names(before), names(after)) else {
        for index in 0..before.len().max(after.len()) {
            either(&format!("{path}[{index}]"), before.get(index), after.get(index), lines);
        }
        return;
    };
    let item = |names: &[String], values: &'_ [Value], name: &String| {
        names.iter().position(|other| other == name).map(|index| values[index].clone())
    };
    for name in &old {
        let (old, new) = (item(&old, before, name), item(&new, after, name));
        either(&format!("{path}[{name}]"), old.as_ref(), new.as_ref(), lines);
    }
    for name in new.iter().filter(|name| !old.contains(name)) {
        either(&format!("{path}[{name}]"), None, item(&new, after, name).as_ref(), lines);
    }
}

fn either(path: &str, before: Option<&Value>, after: Option<&Value>, lines: &mut Vec<Line>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(path, before, after, lines),
        (Some(before), None) => {
            lines.push(Line { tone: Tone::Removed, text: format!("{INDENT}- {path}: {}", shown(before)) });
        }
        (None, Some(after)) => {
            lines.push(Line { tone: Tone::Added, text: format!("{INDENT}+ {path}: {}", shown(after)) });
        }
        (None, None) => {}
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
