//! What authors are used to from other template languages, and what is written here instead.

use std::ops::Range;

use crate::problem::floor;
use crate::template::fault::Fault;
use crate::template::jinja;

/// How tags are written, for those who write them in braces.
pub(in crate::template) const TAGS_OF_JINJA: &str =
    "Jinja writes tags as `{% if … %}` and `{% endif %}`, `{% for … %}` and `{% endfor %}`";

const VALUES: &str = "a chart's `.Values.x` is `parent.spec.x` here";
const RELEASE: &str = "a chart's `.Release.Name` is `parent.metadata.name` here";

/// Names that mean something elsewhere.
const NAMES: &[(&str, &str)] = &[
    ("null", "Jinja writes `none`"),
    ("nil", "Jinja writes `none`"),
    ("schema", "what kro calls `schema.spec` is `parent.spec` here"),
    ("Values", VALUES),
    ("Release", RELEASE),
    ("metadata", "an object's own: `parent.metadata`"),
    ("spec", "an object's own: `parent.spec`"),
    ("status", "an object's own: `parent.status`"),
    ("include", "`{% from \"_labels.yaml\" import labels %}`, then `{{ labels(…) }}`"),
    (
        "lookup",
        "`children.find(kind, name)`, or `related.find(kind, name)` for what `customize.yaml` asks for",
    ),
    ("required", "say `required` in the CRD's schema, or use `fail(…)`"),
    ("printf", "`~` joins values as text"),
    ("len", "write `value | length`"),
    ("str", "write `value | string`"),
    ("default", "a filter stands behind its value: `value | default(2)`"),
];

/// What stands at the place of an error, in other languages.
const SIGNS: &[(&str, &str)] = &[
    ("&&", "Jinja writes `and`"),
    ("||", "Jinja writes `or`"),
    ("! ", "Jinja writes `not`"),
    ("?", "Jinja writes `a if condition else b`"),
    (".Values", VALUES),
    (".Release", RELEASE),
    (".", "a name stands before the first dot, such as `parent.spec`"),
    ("$", "names have no `$`; `{% set name = … %}` gives one a value"),
    (":=", "Jinja writes `{% set name = … %}`"),
    ("=", "Jinja compares with `==`"),
];

/// What to write for a name that exists elsewhere.
pub(in crate::template) fn of_name(name: &str, fault: Fault) -> Fault {
    match NAMES.iter().find(|(theirs, _)| *theirs == name) {
        Some((_, ours)) => Fault { hint: None, ..fault }.hint(*ours),
        None => fault,
    }
}

/// Says how Jinja writes what stands at `range`, where that is known.
pub(in crate::template) fn of_sign(fault: Fault, text: &str, range: &Range<usize>) -> Fault {
    if fault.message.starts_with("`if` ends nothing") {
        return fault.hint("Jinja writes `elif`");
    }
    let (before, at) = text.split_at(range.start);
    let unhinted = |fault: Fault| Fault { hint: None, ..fault };
    if before.rfind("{{").is_some_and(|open| begins_a_block(text, open + 2)) {
        return unhinted(fault).hint(TAGS_OF_JINJA);
    }
    if at.starts_with('}') && before.rfind("{{{").is_some_and(|open| !before[open..].contains('}')) {
        return fault.hint("put a space between `{` and `{{`");
    }
    if at.starts_with('}') {
        return unhinted(fault);
    }
    if let Some(hint) = of_call(before, at) {
        return unhinted(fault).hint(hint);
    }
    if let Some(hint) = of_test(before).or_else(|| of_filter(at)) {
        return unhinted(fault).hint(hint);
    }
    if at.starts_with('|') && before.ends_with('|') {
        return Fault { expected: None, ..unhinted(fault) }.found("`||`").hint("Jinja writes `or`");
    }
    let sign = SIGNS.iter().find(|(theirs, _)| at.starts_with(theirs));
    let Some((theirs, ours)) = sign else { return fault };
    unhinted(fault).found(format!("`{theirs}`")).hint(*ours)
}

/// `include "labels" .`, `nindent 4`: a call whose arguments stand behind it without parentheses.
fn of_call(before: &str, at: &str) -> Option<String> {
    let close = !before.ends_with(' ');
    let before = before.trim_end_matches(' ');
    let rest = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let word = &before[rest.len()..];
    let rest = rest.trim_end_matches([' ', '-']);
    let begins = rest.ends_with("{{") || rest.ends_with('(');
    let is_name = at.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_argument = at.starts_with(|c: char| c.is_ascii_digit() || "\"'.$".contains(c))
        || is_name && known_elsewhere(word).is_some();
    if word.is_empty() || !(rest.ends_with('|') || begins && is_argument) {
        return None;
    }
    if ["f", "r", "b", "u"].contains(&word) && at.starts_with(['"', '\'']) && close {
        return Some(
            "no letter stands before a text; `~` joins values as text: `spec.image ~ \":x\"`".into(),
        );
    }
    let known = known_elsewhere(word);
    Some(known.unwrap_or_else(|| format!("arguments stand in parentheses: `{word}(…)`")))
}

/// Values as kro and as workflows of GitHub write them: `${schema.spec.image}`, and `${{ … }}` as a whole value.
pub(in crate::template) fn dollars(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let said = |line: &str| !line.trim_start().starts_with('#');
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        for (at, sign) in line.match_indices("${").filter(|_| said(line)) {
            let (before, rest) = (&line[..at], &line[at + sign.len()..]);
            let begins = before.trim_end().is_empty() || before.ends_with([' ', '"', '\'', '[', '{']);
            let begins = begins && before.trim_end().ends_with([':', '-', '"', '\'', '[', '{', ',']);
            if rest.starts_with("schema.") {
                found.push((start + at..start + at + sign.len(), "Jinja writes `{{ parent.spec.image }}`"));
            } else if rest.starts_with("{ ") && begins {
                let why = "Jinja writes `{{ … }}` alone; where the sign is meant, write `{{ \"$\" ~ … }}`";
                found.push((start + at..start + at + 1, why));
            }
        }
        start += line.len();
    }
    found
}

/// Says so where the fault is in a line that YAML takes for a comment, and Jinja does not.
pub(in crate::template) fn of_comment(fault: Fault, text: &str, at: usize) -> Fault {
    let at = floor(text, at);
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    match text[line..at].trim_start().starts_with('#') {
        true => Fault { hint: None, ..fault }
            .hint("what stands in a YAML comment is computed too; `{# … #}` is a comment to Jinja"),
        false => fault,
    }
}

fn known_elsewhere(word: &str) -> Option<String> {
    jinja::elsewhere(word, of_name(word, Fault::new(""))).hint
}

/// `x is odd if …`: a test takes what stands behind it as its argument, the `if` too.
fn of_test(before: &str) -> Option<String> {
    let test = before.trim_end().strip_suffix("if")?.trim_end();
    let rest = test.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let name = &test[rest.len()..];
    let words = rest.trim_end();
    let words = words.strip_suffix("not").map_or(words, str::trim_end);
    let is_test = !name.is_empty() && words.ends_with(" is");
    is_test.then(|| {
        format!("a test takes the `if` for its argument: put it in parentheses, `(… is {name}) if … else …`")
    })
}

/// `image default "x"`: a filter without its sign.
fn of_filter(at: &str) -> Option<String> {
    let word = at.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let is_filter =
        ["default", "lower", "upper", "int", "string", "join", "quote", "nindent"].contains(&word);
    is_filter.then(|| match word {
        "quote" | "nindent" => known_elsewhere(word).unwrap_or_default(),
        _ => format!("a filter stands behind a `|`: `value | {word}`, with its arguments in parentheses"),
    })
}

/// A character that no expression has: `!`, quotes that a text processor made, a space that is none.
pub(in crate::template) fn of_character(
    detail: &str,
    text: &str,
    at: Option<usize>,
) -> Option<(Fault, Range<usize>)> {
    if detail != "unexpected character" {
        return None;
    }
    let start = floor(text, at?);
    let sign = text[start..].chars().next()?;
    let fault = Fault::new("this character means nothing here");
    let fault = match sign {
        '!' => fault.found("`!`").hint("Jinja writes `not`"),
        '“' | '”' | '„' | '‘' | '’' | '«' | '»' => {
            fault.found(format!("`{sign}`")).hint("write straight quotes: `\"` or `'`")
        }
        '\u{a0}' | '\u{202f}' | '\u{2007}' => {
            fault.found("a space that does not break").hint("write a plain space")
        }
        sign if sign.is_ascii_graphic() => {
            let known = SIGNS.iter().find(|(theirs, _)| text[start..].starts_with(theirs.trim_end()));
            match known {
                Some((theirs, ours)) => fault.found(format!("`{}`", theirs.trim_end())).hint(*ours),
                None => fault.found(format!("`{sign}`")),
            }
        }
        sign => fault
            .found(format!("`{}`", sign.escape_default()))
            .hint("outside of texts, expressions are ASCII"),
    };
    Some((fault, start..start + sign.len_utf8()))
}

/// `{{ if … }}`, as Go's templates write tags. `at` is behind the braces.
pub(in crate::template) fn begins_a_block(text: &str, at: usize) -> bool {
    let (before, expression) = text.split_at(floor(text, at));
    let opens = before.trim_end_matches([' ', '-']).ends_with("{{");
    let expression = expression.trim_start_matches([' ', '-']);
    let word = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    let called = expression[word.len()..].trim_start().starts_with('(');
    opens && !called && ["if", "else", "end", "range", "with", "for", "endif", "endfor"].contains(&word)
}

/// The last tag in braces before an end that ends nothing: it was meant to be what ends.
pub(in crate::template) fn block_in_braces(text: &str, before: usize) -> Option<Range<usize>> {
    let start =
        text[..before].rmatch_indices("{{").map(|(at, _)| at).find(|at| begins_a_block(text, at + 2))?;
    let end = text[start..].find("}}").map_or(text.len(), |length| start + length + 2);
    Some(start..end)
}

/// `labels.app-name` reads as a subtraction: says so where an unknown name stands right behind a sign.
pub(in crate::template) fn of_unknown(fault: Fault, text: &str, name: usize) -> Fault {
    match text[..floor(text, name)].chars().next_back() {
        Some('{' | '-' | ' ') if begins_a_block(text, name) => {
            Fault { hint: None, ..fault }.hint(TAGS_OF_JINJA)
        }
        Some('-' | '/') if fault.hint.is_none() => {
            fault.hint("a key with `-` or `/` in it is written in brackets: `labels[\"app-name\"]`")
        }
        _ => fault,
    }
}
