//! What is said of a text that is not Jinja, and where: at the beginning of what does not end, not at the end of the file.

use std::ops::Range;

use minijinja::Error;

use crate::problem::{floor, nearest};
use crate::template::fault::Fault;
use crate::template::habits;
use crate::template::nesting;
use crate::template::span::within;

/// The fault of an error of the engine's parser, and the range of the text that it is about.
pub(in crate::template) fn explain(text: &str, error: &Error) -> (Fault, Range<usize>) {
    let detail = error.detail().unwrap_or_default();
    let range = match error.range().map(|range| within(text, range)) {
        Some(range) if !text[range.clone()].trim().is_empty() => range,
        _ => line_range(text, error.line().unwrap_or(1)),
    };
    if let Some(range) = (detail == "unexpected end of string").then(|| open_text(text)).flatten() {
        return (Fault::new("a text does not end").expected("the quote that it begins with"), range);
    }
    if let Some((fault, range)) = habits::of_character(detail, text, error.range().map(|range| range.start)) {
        return (fault, range);
    }
    let open = match detail {
        _ if detail.starts_with("unexpected end of") => unclosed(text),
        _ if detail.ends_with("end of variable block") => open_line(text, range.start),
        _ => open_tag(text, range.start),
    };
    if let Some(open) = open {
        let behind = habits::block_in_braces(text, text.len()).filter(|braces| braces.start > open.range.end);
        if let Some(braces) = behind.filter(|_| open.end.starts_with("{% end")) {
            return (
                Fault::new("this is a tag in the braces of a value").hint(habits::TAGS_OF_JINJA),
                braces,
            );
        }
        return (open.fault(), open.range);
    }
    let fault = habits::of_sign(fault(detail, &text[range.clone()]), text, &range);
    if fault.message.contains("nothing that is open")
        && let Some(open) = habits::block_in_braces(text, range.start)
    {
        return (Fault::new("this is a tag in the braces of a value").hint(habits::TAGS_OF_JINJA), open);
    }
    (fault, range)
}

/// The text of a line, for errors that know no more.
pub(in crate::template) fn line_range(text: &str, line: usize) -> Range<usize> {
    let line = line.min(text.lines().count());
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let shown = text[floor(text, start)..].lines().next().unwrap_or_default();
    let indent = shown.len() - shown.trim_start().len();
    within(text, start + indent..start + shown.trim_end().len().max(indent))
}

/// An expression that goes on over the end of its line, where something stands that is none.
fn open_line(text: &str, at: usize) -> Option<Open> {
    let start = text[..at].rfind("{{")?;
    let goes_on = text[start..at].contains('\n') && !text[start..at].contains("}}");
    goes_on.then(|| Open { range: start..start + 2, end: "}}".into() })
}

/// A tag that goes on over the end of its line, with no bracket open there and no sign that more is to come.
fn open_tag(text: &str, at: usize) -> Option<Open> {
    let start = text[..at].rfind("{%")?;
    let (first, others) = text[start..at].split_once('\n')?;
    let opened = |signs: &[char]| first[2..].matches(signs).count();
    let goes_on = opened(&['(', '[', '{']) > opened(&[')', ']', '}']);
    let ends_well = first.trim_end().ends_with(|c: char| c.is_alphanumeric() || "_)]}\"'".contains(c));
    let is_open = !goes_on && ends_well && !text[start..at].contains("%}") && others.lines().count() <= 1;
    is_open.then(|| Open { range: start..start + first.trim_end().len(), end: "%}".into() })
}

/// The quote that begins a text which does not end.
fn open_text(text: &str) -> Option<Range<usize>> {
    let mut at = 0;
    while let Some((start, begin, end)) = next_mark(text, at) {
        let mut rest = text[start..].char_indices().skip(2);
        at = loop {
            let (offset, c) = rest.next()?;
            let inside = start + offset;
            if text[inside..].starts_with(end) {
                break inside + end.len();
            }
            if begin != "{#" && (c == '"' || c == '\'') && !skip_text(&mut rest, c) {
                return Some(within(text, inside..inside + 1));
            }
        };
    }
    None
}

fn skip_text(rest: &mut impl Iterator<Item = (usize, char)>, quote: char) -> bool {
    while let Some((_, c)) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            c if c == quote => return true,
            _ => {}
        }
    }
    false
}

/// Something that was begun and not ended.
struct Open {
    range: Range<usize>,
    end: String,
}

impl Open {
    fn fault(&self) -> Fault {
        Fault::new("this does not end").expected(format!("`{}`", self.end))
    }
}

/// The innermost thing that is still open at the end of the text.
fn unclosed(text: &str) -> Option<Open> {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some((start, begin, end)) = next_mark(text, at) {
        let Some(length) = text[start + begin.len()..].find(end) else {
            return Some(Open { range: start..start + begin.len(), end: end.to_string() });
        };
        let inner = &text[start + begin.len()..start + begin.len() + length];
        at = start + begin.len() + length + end.len();
        if begin == "{%" {
            tag(inner, start..at, &mut open);
            if open.last().is_some_and(|open| open.end == "{% endraw %}") {
                at = text[at..].find("endraw").map_or(text.len(), |raw| at + raw);
            }
        }
    }
    open.pop()
}

fn next_mark(text: &str, from: usize) -> Option<(usize, &'static str, &'static str)> {
    let marks = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
    let found =
        marks.into_iter().filter_map(|(begin, end)| Some((from + text[from..].find(begin)?, begin, end)));
    found.min_by_key(|(start, ..)| *start)
}

fn tag(inner: &str, range: Range<usize>, open: &mut Vec<Open>) {
    let inner = inner.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
    let word = inner.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    if word.starts_with("end") {
        open.pop();
    } else if BLOCKS.contains(&word) || (word == "set" && !inner.contains('=')) {
        open.push(Open { range, end: format!("{{% end{word} %}}") });
    }
}

const BLOCKS: &[&str] = &["for", "if", "with", "filter", "block", "macro", "call", "raw"];
const TAGS: &[&str] = &[
    "for",
    "endfor",
    "if",
    "elif",
    "else",
    "endif",
    "with",
    "endwith",
    "set",
    "endset",
    "filter",
    "endfilter",
    "block",
    "endblock",
    "extends",
    "include",
    "import",
    "from",
    "macro",
    "endmacro",
    "call",
    "endcall",
    "do",
    "break",
    "continue",
    "raw",
    "endraw",
];

/// `text` is what the engine's range holds.
fn fault(detail: &str, text: &str) -> Fault {
    if let Some(rest) = detail.strip_prefix("unexpected ") {
        return match rest.split_once(", expected ") {
            Some((found, expected)) => unexpected(found, expected, text),
            None if rest == "input after expression" => Fault::new("there is more after the expression"),
            None => Fault::new("an expression is expected here").found(token(rest, text)),
        };
    }
    if let Some(name) = detail.strip_prefix("unknown statement ") {
        return unknown_tag(name);
    }
    if let Some(name) = detail.strip_prefix("cannot assign to reserved variable name ") {
        return Fault::new(format!("`{name}` cannot be set: the name belongs to Jinja"));
    }
    match detail {
        "'break' must be placed inside a loop" | "'continue' must be placed inside a loop" => {
            Fault::new(format!("`{text}` is only known inside a loop"))
        }
        "template exceeds maximum recursion limits" => nesting::beyond_the_engine(),
        "Too many arguments in function call" => {
            Fault::new("too many arguments in one call").expected("at most 2000")
        }
        "block tags in macros are not allowed" => Fault::new("a macro cannot hold a `block`"),
        "empty subscript" => Fault::new("a key or an index is missing in the brackets"),
        "non-keyword arg after keyword arg" => {
            Fault::new("an argument without a name comes after one with a name")
        }
        "expected a filter" => Fault::new("a filter is expected here"),
        "names starting with an underline can not be imported" => {
            Fault::new("a name that begins with `_` belongs to its file and cannot be imported")
        }
        _ if detail.starts_with("expected call expression") => {
            Fault::new("a call is expected here").expected("`name(…)`")
        }
        _ if detail.starts_with("block ") => Fault::new("a block of this name exists already in this file"),
        _ if detail.starts_with("mismatching name on block") => Fault::new("the end names another block"),
        _ if detail.contains("string escape") || detail.contains("escape") => {
            Fault::new("an unknown escape in a text").hint(r"write `\\` for a backslash")
        }
        _ => Fault::new(format!("this is not Jinja: {detail}")),
    }
}

fn unexpected(found: &str, expected: &str, text: &str) -> Fault {
    let tag = TAGS.contains(&text.trim()) || text.trim_start().starts_with("end");
    match expected {
        "statement" | "block keyword" => Fault::new("a tag is expected here").found(token(found, text)),
        "in" => Fault::new("`in` is missing in this `for`").expected("`for name in list`"),
        _ if tag => {
            Fault::new(format!("`{}` ends nothing that is open here", text.trim())).expected(tokens(expected))
        }
        "end of variable block" => Fault::new("there is more after the expression")
            .found(token(found, text))
            .expected("`}}`")
            .hint("text is written in quotes, two values are joined by `~`"),
        "end of block" => {
            Fault::new("there is more after the tag").found(token(found, text)).expected("`%}`")
        }
        _ => {
            Fault::new("something else is expected here").found(token(found, text)).expected(tokens(expected))
        }
    }
}

fn unknown_tag(name: &str) -> Fault {
    if name.starts_with("end") || ["else", "elif"].contains(&name) {
        let fault = Fault::new(format!("`{name}` belongs to nothing that is open here"));
        let near = nearest(name, TAGS.iter().copied()).filter(|near| *near != name);
        return match near {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None if name == "end" => fault.hint("Jinja says what ends, such as `endif` or `endfor`"),
            None => fault,
        };
    }
    if ["elseif", "elsif"].contains(&name) {
        return Fault::new(format!("unknown tag `{name}`")).hint("Jinja writes `elif`");
    }
    let fault = Fault::new(format!("unknown tag `{name}`"));
    match nearest(name, TAGS.iter().copied()) {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault,
    }
}

fn tokens(names: &str) -> String {
    names.split(" or ").map(|name| token(name.trim_matches(['`', '\'']), "")).collect::<Vec<_>>().join(" or ")
}

/// The engine's name of a token as the author wrote it.
fn token(name: &str, text: &str) -> String {
    match name.trim_matches('`') {
        "end of block" => "`%}`".into(),
        "end of variable block" => "`}}`".into(),
        "start of block" => "`{%`".into(),
        "start of variable block" => "`{{`".into(),
        "end of input" => "the end of the file".into(),
        "identifier" | "string" | "integer" | "float" if !text.is_empty() => format!("`{text}`"),
        "identifier" => "a name".into(),
        "expression" | "statement" => format!("an {name}").replace("an statement", "a tag"),
        other => format!("`{other}`"),
    }
}
