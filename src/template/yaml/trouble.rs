//! What is said when YAML cannot be read: in the author's words, with what to do.

use std::ops::Range;

use granit_parser::{ErrorKind, ScanError};

use super::Limits;
use crate::problem::floor;
use crate::template::fault::Fault;
use crate::template::placeholder::OPEN;

/// A fault and where it is in the text that was read. Boxed where it is returned: it is large and rare.
#[derive(Debug)]
pub(in crate::template) struct Trouble {
    pub fault: Fault,
    pub range: Range<usize>,
    /// Where the thing was that this one collides with.
    pub first: Option<usize>,
}

impl Trouble {
    #[cold]
    pub(super) fn new(fault: Fault, range: Range<usize>) -> Box<Self> {
        Box::new(Trouble { fault, range, first: None })
    }

    pub(super) fn after(mut self: Box<Self>, first: usize) -> Box<Self> {
        self.first = Some(first);
        self
    }

    /// `skipped` bytes of `text` were not shown to the parser.
    pub(super) fn of_parser(error: &ScanError, text: &str, skipped: usize, limits: &Limits) -> Box<Self> {
        let offset = floor(text, skipped + error.marker().byte_offset().unwrap_or(0));
        let sight = Sight::of(text, offset);
        let fault = explain(error.kind(), &sight, limits);
        if let Some(tab) = tab_below(text, offset).filter(|_| fault.message == NOT_YAML) {
            return Trouble::new(explain(&ErrorKind::TabInIndentation, &sight, limits), tab..tab + 1);
        }
        if let Some(range) = open_quote(error.kind(), text, offset) {
            let fault = Fault::new("a quoted text goes on over the end of its line")
                .expected("its closing quote")
                .hint("the next quote is taken for it, which is in another line");
            return Trouble::new(fault, range);
        }
        let start = match error.kind() {
            ErrorKind::UnclosedQuotedScalar | ErrorKind::UnexpectedEof => offset,
            _ => sight.visible,
        };
        Trouble::new(fault, start..start + 1)
    }
}

/// The tab that the line below begins with: what it is cannot be told by the parser, which looks at this line.
fn tab_below(text: &str, offset: usize) -> Option<usize> {
    let (rest, below) = text[offset..].split_once('\n')?;
    let blank = below.len() - below.trim_start_matches([' ', '\t']).len();
    let tab = below[..blank].find('\t')?;
    Some(offset + rest.len() + 1 + tab)
}

/// The quote of a text that ends in another line than it begins, and has more text behind it: its own end was forgotten.
fn open_quote(kind: &ErrorKind, text: &str, offset: usize) -> Option<Range<usize>> {
    let quote = match kind {
        ErrorKind::InvalidTrailingDoubleQuotedScalar => '"',
        ErrorKind::InvalidTrailingSingleQuotedScalar => '\'',
        _ => return None,
    };
    let close = text[..offset].rfind(quote)?;
    let open = text[..close].rfind(quote)?;
    text[open..close].contains('\n').then_some(open..open + 1)
}

/// The text around an offset.
struct Sight<'t> {
    /// The line above.
    above: &'t str,
    /// The line up to the offset.
    before: &'t str,
    /// From the offset to the end of its line.
    after: &'t str,
    /// The offset, or the last character before it that can be seen: the end of a text is nowhere to point at.
    visible: usize,
}

impl<'t> Sight<'t> {
    fn of(text: &'t str, offset: usize) -> Self {
        let line = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[offset..].find('\n').map_or(text.len(), |length| offset + length);
        let visible = match text[offset..].trim_start().is_empty() {
            true => text[..offset].trim_end().char_indices().next_back().map_or(0, |(at, _)| at),
            false => offset,
        };
        let above = text[..line].trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        Sight { above, before: &text[line..offset], after: &text[offset..end], visible }
    }

    /// Whether the line already has a `key: ` before the offset.
    fn after_a_key(&self) -> bool {
        self.before.trim_start().contains(": ")
    }

    /// The line above, where it is `key:value` without the space that makes it a key.
    fn colon_without_space(&self) -> Option<&str> {
        let above = self.above.trim();
        let (key, value) = above.split_once(':')?;
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // A value that an expression puts in begins with a placeholder here, and is shown to nobody.
        let is_value = |c: char| c.is_alphanumeric() || c == OPEN;
        let forgotten = !key.is_empty() && key.chars().all(is_key) && value.starts_with(is_value);
        let shown = if value.contains(OPEN) { &above[..key.len() + 1] } else { above };
        forgotten.then_some(shown)
    }

    /// Whether the line is a key and its value, with nothing between them but the colon.
    fn lacks_a_space(&self) -> bool {
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let key = self.after.split_once(':').filter(|(key, _)| !key.is_empty() && key.chars().all(is_key));
        key.is_some_and(|(_, value)| !value.is_empty() && !value.starts_with([' ', ':']))
    }

    fn starts_a_line(&self) -> bool {
        self.before.trim().is_empty()
    }
}

const NOT_YAML: &str = "this is not YAML";
const QUOTE: &str = "put the value in quotes";
const LINE_UP: &str = "is this line indented like the ones it belongs to?";

fn explain(kind: &ErrorKind, sight: &Sight, limits: &Limits) -> Fault {
    use ErrorKind as Kind;
    match kind {
        Kind::TabInIndentation
        | Kind::TabInBlockIndentation
        | Kind::TabNotAllowed
        | Kind::TabAtBlockScalarStart => {
            Fault::new("a tab is used for indentation").hint("indent with spaces")
        }
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement if sight.after_a_key() => {
            Fault::new("a second `: ` in one line")
                .hint("if it belongs to the value, put the value in quotes")
        }
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement
            if sight.colon_without_space().is_some() =>
        {
            let line = sight.colon_without_space().unwrap_or_default();
            Fault::new("a key is not expected here")
                .hint(format!("is a space missing after the `:` of `{line}` in the line above?"))
        }
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement => {
            Fault::new("a key is not expected here")
                .hint("the line above has a value already; is the indentation right?")
        }
        Kind::UnclosedQuotedScalar | Kind::DocumentIndicatorInQuotedScalar => {
            Fault::new("a quoted text does not end").expected("a closing quote")
        }
        Kind::InvalidTrailingDoubleQuotedScalar | Kind::InvalidTrailingSingleQuotedScalar => {
            Fault::new("text after the closing quote").hint("quote the whole value, or none of it")
        }
        Kind::UnknownQuotedScalarEscape
        | Kind::InvalidQuotedScalarHexEscape
        | Kind::InvalidLowSurrogateHexEscape
        | Kind::InvalidLowSurrogate
        | Kind::MissingLowSurrogate
        | Kind::UnpairedLowSurrogate
        | Kind::InvalidUnicodeEscape => Fault::new("an unknown escape in double quotes")
            .hint(r"write `\\` for a backslash, or use single quotes"),
        Kind::UnexpectedCharacter { character: '%' } if sight.before.ends_with('{') => no_template(),
        Kind::UnexpectedCharacter { character: '`' } => {
            Fault::new("a plain value cannot begin with a backtick").hint(QUOTE)
        }
        Kind::UnexpectedCharacter { character } if character.is_control() => {
            Fault::new("a control character")
                .hint("save the file as text, without it; in double quotes `\\x00` stands for it")
        }
        Kind::UnexpectedCharacter { character } => {
            Fault::new(format!("a plain value cannot begin with `{character}`")).hint(QUOTE)
        }
        Kind::InvalidDirectiveName | Kind::MissingDirectiveName => {
            Fault::new("a plain value cannot begin with `%`").hint(QUOTE)
        }
        Kind::MissingAnchorOrAliasName => Fault::new("a name is missing after `*` or `&`")
            .hint("to mean the character itself, put the value in quotes"),
        Kind::ExpectedFlowSequenceSeparator | Kind::UnexpectedEofFlowSequence => {
            Fault::new("a list in brackets does not end").expected("`,` or `]`")
        }
        Kind::ExpectedFlowMappingSeparator
        | Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping => {
            Fault::new("a map in braces does not end").expected("`,` or `}`")
        }
        Kind::UnclosedFlowCollection { open } => Fault::new(format!("`{open}` is not closed"))
            .hint("to mean the character itself, put the value in quotes"),
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            Fault::new(format!("`{open}` is closed by `{close}`"))
        }
        Kind::MisplacedFlowCollectionEnd => {
            Fault::new("a closing bracket without an opening one").hint(QUOTE)
        }
        Kind::BlockSequenceEntryNotAllowed
        | Kind::BlockEntryInFlowCollection
        | Kind::InvalidBlockEntryWhitespace => Fault::new("a list item is not expected here")
            .hint("begin the list on a line of its own, or quote the `-`"),
        Kind::MappingKeyNotAllowed => Fault::new("`?` is not expected here").hint(QUOTE),
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey if sight.lacks_a_space() => {
            Fault::new("this line is neither a key nor part of a value").hint("put a space behind the `:`")
        }
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => {
            Fault::new("this line is neither a key nor part of a value")
                .hint("is a `:` missing, or some indentation?")
        }
        Kind::ExpectedBlockMappingKey if sight.after.starts_with("- ") => {
            Fault::new("a list item among the keys of a map").hint(LINE_UP)
        }
        Kind::ExpectedBlockMappingKey => Fault::new("a key is expected here").hint(LINE_UP),
        Kind::ExpectedBlockSequenceEntry => {
            Fault::new("a list item is expected here").expected("`- `").hint(LINE_UP)
        }
        Kind::InvalidIndentation
        | Kind::InvalidBlockScalarIndent
        | Kind::InvalidFlowScalarIndent
        | Kind::InvalidQuotedScalarIndent => Fault::new("this line is not indented far enough").hint(LINE_UP),
        Kind::ExpectedNodeContent if sight.starts_a_line() => {
            Fault::new("a value is expected here").hint(LINE_UP)
        }
        Kind::ExpectedNodeContent => Fault::new("a value is expected here").hint(QUOTE),
        Kind::CommentNotSeparated | Kind::CommentInterceptedScalar => {
            Fault::new("a comment is not expected here").hint("put a space before `#`, or quote the value")
        }
        Kind::InvalidBlockScalarHeader | Kind::ZeroBlockScalarIndent => {
            Fault::new("text on the line of `|` or `>`").hint("begin the text on the next line, indented")
        }
        Kind::RecursionLimitExceeded => over("levels of nesting", limits.depth),
        Kind::BomInsideDocument => {
            Fault::new("a byte order mark inside the text").hint("save the file as UTF-8 without one")
        }
        Kind::InvalidDocumentEnd | Kind::ExpectedDocumentStart | Kind::MissingDocumentEndBeforeDirective => {
            Fault::new("a new document is expected here").expected("`---`")
        }
        Kind::UndeclaredTagHandle
        | Kind::InvalidTagTerminator
        | Kind::MissingTagUri
        | Kind::ExpectedTagBang => Fault::new("a tag that means nothing here")
            .hint("to mean the character `!`, put the value in quotes"),
        Kind::UnsupportedYamlMajorVersion => {
            Fault::new("a YAML version other than 1").hint("leave out the `%YAML` line")
        }
        _ => Fault::new(NOT_YAML).hint(QUOTE),
    }
}

/// The fault of a text that holds more than it may.
pub(in crate::template) fn over(what: &str, limit: usize) -> Fault {
    Fault::new(format!("more than {limit} {what}"))
}

pub(super) fn unknown_anchor(name: &str) -> Fault {
    Fault::new(format!("`*{name}` refers to no `&{name}` before it"))
        .hint("to mean the character `*`, put the value in quotes")
}

pub(super) fn given_twice(key: &str) -> Fault {
    Fault::new(format!("the key `{key}` is given twice in this map"))
}

pub(super) fn merged_over(key: &str) -> Fault {
    Fault::new(format!("`<<` brings the key `{key}` again"))
        .hint("write `<<` before the keys that replace its own")
}

pub(super) fn key_is(found: &str) -> Fault {
    Fault::new(format!("a key cannot be {found}"))
        .expected("text, a number, true or false")
        .hint("put the key in quotes")
}

/// `{{ … }}` or `{% … %}` in a file that is read as it is.
pub(super) fn no_template() -> Fault {
    Fault::new("this file is no template: nothing is computed in it")
        .hint("write the value itself; of a chart, give the output of `helm template`")
}

pub(super) fn not_a_merge() -> Fault {
    Fault::new("`<<` merges maps only").expected("an alias of a map, or a list of them")
}

pub(super) fn not_json(text: &str) -> Fault {
    Fault::new(format!("`{text}` is no number that JSON can hold")).hint(QUOTE)
}

pub(super) fn not_base64() -> Fault {
    Fault::new("`!!binary` is not base64 of a text")
}

pub(super) fn not_a(kind: &str) -> Fault {
    Fault::new(format!("this value does not fit the tag `!!{kind}`"))
}
