//! Where two JSON values differ, path by path, for a person to read.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Every place where `got` is not what was `expected`, one line or a few for each.
pub(crate) fn differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", expected, got, &mut lines);
    lines
}

fn compare(path: &str, expected: &Value, got: &Value, lines: &mut Vec<String>) {
    match (expected, got) {
        _ if expected == got => {}
        (Value::Object(expected), Value::Object(got)) => compare_all(members(path, expected, got), lines),
        (Value::Array(expected), Value::Array(got)) => compare_lists(path, expected, got, lines),
        (Value::String(expected), Value::String(got)) if expected.contains('\n') || got.contains('\n') => {
            lines.push(differing_line(path, expected, got));
        }
        _ => lines.push(format!("{}: expected {}, got {}", named(path), shown(expected), shown(got))),
    }
}

/// One item of two lists, or one member of two maps, with its path, as either has it.
pub(super) type Pair<'a> = (String, Option<&'a Value>, Option<&'a Value>);

/// The members of two maps, in the order of their keys.
pub(super) fn members<'a>(
    path: &str,
    first: &'a Map<String, Value>,
    second: &'a Map<String, Value>,
) -> Vec<Pair<'a>> {
    let keys: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    keys.into_iter().map(|key| (step(path, key), first.get(key), second.get(key))).collect()
}

/// The items of two lists by their places.
pub(super) fn items<'a>(path: &str, first: &'a [Value], second: &'a [Value]) -> Vec<Pair<'a>> {
    let count = first.len().max(second.len());
    (0..count).map(|index| (format!("{path}[{index}]"), first.get(index), second.get(index))).collect()
}

/// The items of two lists by their names: those of the first in its order, then what only the second has.
pub(super) fn named_items<'a>(
    path: &str,
    (first_names, first): (&[String], &'a [Value]),
    (second_names, second): (&[String], &'a [Value]),
) -> Vec<Pair<'a>> {
    let place = |names: &[String], name: &String| names.iter().position(|other| other == name);
    let new = second_names.iter().filter(|name| place(first_names, name).is_none());
    let pair = |name: &String| {
        let of_first = place(first_names, name).map(|index| &first[index]);
        (format!("{path}[{name}]"), of_first, place(second_names, name).map(|index| &second[index]))
    };
    first_names.iter().chain(new).map(pair).collect()
}

fn compare_all(pairs: Vec<Pair>, lines: &mut Vec<String>) {
    for (path, expected, got) in pairs {
        match (expected, got) {
            (Some(expected), Some(got)) => compare(&path, expected, got, lines),
            (Some(expected), None) => {
                lines.push(format!("{path}: expected {}, got nothing", shown(expected)));
            }
            (None, Some(got)) => lines.push(format!("{path}: expected nothing, got {}", shown(got))),
            (None, None) => {}
        }
    }
}

/// Objects with a name are compared by it, so that one more at the top does not make all others differ.
fn compare_lists(path: &str, expected: &[Value], got: &[Value], lines: &mut Vec<String>) {
    let (Some(expected_names), Some(got_names)) = (names(expected), names(got)) else {
        return compare_all(items(path, expected, got), lines);
    };
    for (path, expected, got) in named_items(path, (&expected_names, expected), (&got_names, got)) {
        match (expected, got) {
            (Some(expected), Some(got)) => compare(&path, expected, got, lines),
            (Some(_), None) => lines.push(format!("{path}: expected, but not there")),
            _ => lines.push(format!("{path}: not expected")),
        }
    }
    let common = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| others.contains(name)).cloned().collect()
    };
    let (before, after) = (common(&expected_names, &got_names), common(&got_names, &expected_names));
    if before != after {
        let path = named(path);
        lines.push(format!("{path}: expected the order {}, got {}", before.join(", "), after.join(", ")));
    }
}

/// What each element is called, where each has a name of its own.
pub(super) fn names(list: &[Value]) -> Option<Vec<String>> {
    let name = |value: &Value| {
        let text = |path: &[&str]| path.iter().try_fold(value, |value, key| value.get(key))?.as_str();
        match (text(&["kind"]), text(&["metadata", "name"]), text(&["metadata", "namespace"])) {
            (Some(kind), Some(name), Some(namespace)) => Some(format!("{kind} {namespace}/{name}")),
            (Some(kind), Some(name), None) => Some(format!("{kind} {name}")),
            _ => text(&["name"]).or(text(&["type"])).map(str::to_string),
        }
    };
    let names: Vec<String> = list.iter().map(name).collect::<Option<_>>()?;
    let unique: BTreeSet<&String> = names.iter().collect();
    (unique.len() == names.len()).then_some(names)
}

fn differing_line(path: &str, expected: &str, got: &str) -> String {
    let (mut expected, mut got) = (expected.split('\n'), got.split('\n'));
    for number in 1.. {
        match (expected.next(), got.next()) {
            (Some(expected), Some(got)) if expected == got => {}
            (Some(expected), Some(got)) => {
                return format!("{path}: line {number}: expected `{expected}`, got `{got}`");
            }
            (Some(expected), None) => {
                return format!("{path}: line {number}: expected `{expected}`, got no line");
            }
            (None, Some(got)) => return format!("{path}: line {number}: expected no line, got `{got}`"),
            (None, None) => break,
        }
    }
    unreachable!("two texts that differ differ in a line")
}

fn step(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match (plain, path.is_empty()) {
        (true, true) => key.to_string(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[\"{key}\"]"),
    }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the answer" } else { path }
}

/// A value on one line, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    const LONGEST: usize = 160;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expected: Value, got: Value, lines: &[&str]) {
        assert_eq!(differences(&expected, &got), lines);
    }

    #[test]
    fn equal_values_do_not_differ_whatever_their_key_order() {
        check(json!({"a": 1, "b": [2]}), json!({"b": [2], "a": 1}), &[]);
    }

    #[test]
    fn each_difference_has_its_path() {
        check(
            json!({"status": {"phase": "Running", "old": null}, "n": [1, 2]}),
            json!({"status": {"phase": "Pending", "example.com/x": true}, "n": [1]}),
            &[
                "n[1]: expected 2, got nothing",
                "status[\"example.com/x\"]: expected nothing, got true",
                "status.old: expected null, got nothing",
                "status.phase: expected \"Running\", got \"Pending\"",
            ],
        );
    }

    #[test]
    fn objects_are_compared_by_kind_and_name() {
        let object = |kind: &str, name: &str, n: u32| json!({"kind": kind, "metadata": {"name": name}, "spec": {"n": n}});
        check(
            json!({"children": [object("A", "x", 1), object("B", "x", 1), object("C", "x", 1)]}),
            json!({"children": [object("D", "x", 1), object("B", "x", 2), object("A", "x", 1)]}),
            &[
                "children[B x].spec.n: expected 1, got 2",
                "children[C x]: expected, but not there",
                "children[D x]: not expected",
                "children: expected the order A x, B x, got B x, A x",
            ],
        );
    }

    #[test]
    fn of_a_long_text_the_first_differing_line_is_shown() {
        check(json!({"t": "a\nb\nc"}), json!({"t": "a\nB\nc"}), &["t: line 2: expected `b`, got `B`"]);
        check(json!({"t": "a\n"}), json!({"t": "a"}), &["t: line 2: expected ``, got no line"]);
    }
}
