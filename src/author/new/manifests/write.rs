//! A template tree as text: YAML that Jinja renders to what the tree says.
//!
//! Everything that Jinja would read as its own is written as an expression, and each scalar is written in the plainest form
//! that reads back as it is.

use serde_json::Value;

use crate::author::new::manifests::node::{Node, Piece, Text};
use crate::template::yaml;

/// The document, with a line break at its end.
pub(super) fn document(node: &Node) -> String {
    let mut text = String::new();
    match node {
        Node::Map(fields) if !fields.is_empty() => map(fields, 0, &mut text),
        other => {
            text.push_str(&inline(other, 0));
            text.push('\n');
        }
    }
    text
}

fn map(fields: &[(Text, Node)], indent: usize, text: &mut String) {
    for (key, node) in fields {
        text.push_str(&format!("{:indent$}{}:", "", line(key, "k")));
        value(node, indent, text);
    }
}

/// What comes after a key's colon.
fn value(node: &Node, indent: usize, text: &mut String) {
    match node {
        Node::Map(fields) if !fields.is_empty() => {
            text.push('\n');
            map(fields, indent + 2, text);
        }
        Node::List(items) if !items.is_empty() => {
            text.push('\n');
            list(items, indent + 2, text);
        }
        scalar => {
            text.push(' ');
            text.push_str(&inline(scalar, indent + 2));
            text.push('\n');
        }
    }
}

fn list(items: &[Node], indent: usize, text: &mut String) {
    for item in items {
        let start = text.len();
        match item {
            Node::Map(fields) if !fields.is_empty() => map(fields, indent + 2, text),
            Node::List(items) if !items.is_empty() => list(items, indent + 2, text),
            scalar => {
                text.push_str(&format!("{:width$}{}\n", "", inline(scalar, indent + 2), width = indent + 2));
            }
        }
        text.replace_range(start + indent..start + indent + 1, "-");
    }
}

/// A scalar, or an empty map or list. `indent` is that of a block's lines.
fn inline(node: &Node, indent: usize) -> String {
    match node {
        Node::Map(_) => "{}".into(),
        Node::List(_) => "[]".into(),
        Node::Value(value) => value.to_string(),
        Node::Expression(expression) => format!("{{{{ {expression} }}}}"),
        Node::Text(text) => block(text, indent).unwrap_or_else(|| line(text, "k: v")),
    }
}

/// The text on one line: plain where that reads back as the same text, else in double quotes. `as_what` is `k` for a key.
fn line(text: &Text, as_what: &str) -> String {
    let plain = source(text, str::to_string);
    // An expression is a placeholder when YAML is read; a letter stands for it here.
    let read: String = text
        .0
        .iter()
        .map(|piece| match piece {
            Piece::Literal(literal) => literal.as_str(),
            Piece::Expression(_) => "x",
        })
        .collect();
    let is_expression = matches!(text.0.as_slice(), [Piece::Expression(_)]);
    if is_expression || reads_back(&read, as_what) {
        return plain;
    }
    format!("\"{}\"", source(text, quoted))
}

fn reads_back(text: &str, as_what: &str) -> bool {
    if text.contains('\n') || text.is_empty() {
        return false;
    }
    let whole = if as_what == "k" { format!("{text}: v\n") } else { format!("k: {text}\n") };
    let item = format!("- {text}\n");
    let read = |source: &str| yaml::read("", source).ok().filter(|documents| documents.len() == 1);
    let (Some(whole), Some(item)) = (read(&whole), read(&item)) else { return false };
    let same = match &whole[0].value {
        Value::Object(fields) if as_what == "k" => fields.keys().eq([text]),
        Value::Object(fields) => fields.get("k").is_some_and(|value| value == text),
        _ => false,
    };
    same && item[0].value[0] == text
}

/// Several lines as a block, where that reads back as the same text.
fn block(text: &Text, indent: usize) -> Option<String> {
    let literal: String = text
        .0
        .iter()
        .map(|piece| match piece {
            Piece::Literal(literal) => literal.as_str(),
            Piece::Expression(_) => "x",
        })
        .collect();
    if !literal.contains('\n') {
        return None;
    }
    let ends = literal.len() - literal.trim_end_matches('\n').len();
    let mark = ["|-", "|", "|+"][ends.min(2)];
    let lines = |text: &str| {
        text.split('\n')
            .map(|line| match line {
                "" => String::new(),
                line => format!("{:indent$}{line}", ""),
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    let body = |text: &str| {
        let body = lines(text.strip_suffix('\n').unwrap_or(text));
        format!("{mark}\n{body}")
    };
    let read = yaml::read("", &format!("k: {}\n", body(&literal))).ok()?;
    let is_same = read.len() == 1 && read[0].value["k"] == literal.as_str();
    // Lines that Jinja's own tags begin would be taken off their indentation: there are none, tags are written as expressions.
    is_same.then(|| body(&source(text, str::to_string)))
}

/// The text with its expressions in place, and with each literal part written by `write`.
fn source(text: &Text, write: impl Fn(&str) -> String) -> String {
    let mut source = String::new();
    for (index, piece) in text.0.iter().enumerate() {
        let before_expression = matches!(text.0.get(index + 1), Some(Piece::Expression(_)));
        match piece {
            Piece::Expression(expression) => source.push_str(&format!("{{{{ {expression} }}}}")),
            Piece::Literal(literal) => source.push_str(&escaped(literal, before_expression, &write)),
        }
    }
    source
}

/// A literal in which nothing is left that begins something of Jinja's.
fn escaped(literal: &str, before_expression: bool, write: impl Fn(&str) -> String) -> String {
    let mut source = String::new();
    let mut rest = literal;
    let opening = |text: &str| {
        let two = ["{{", "{%", "{#"].into_iter().filter_map(|sign| text.find(sign)).min();
        let last = (before_expression && text.ends_with('{')).then(|| text.len() - 1);
        match (two, last) {
            (Some(two), _) => Some((two, 2)),
            (None, Some(last)) => Some((last, 1)),
            (None, None) => None,
        }
    };
    while let Some((at, length)) = opening(rest) {
        source.push_str(&write(&rest[..at]));
        source.push_str(&format!("{{{{ \"{}\" }}}}", &rest[at..at + length]));
        rest = &rest[at + length..];
    }
    source.push_str(&write(rest));
    source
}

/// The inside of a double-quoted scalar.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted
}
