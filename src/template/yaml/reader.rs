//! From the YAML parser's events to JSON values and the offsets of their nodes.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::map::Entry;
use serde_json::{Map, Value as Json};

use super::scalar::{NotJson, is_trap, resolve};
use super::trouble::{self, Trouble};
use super::{Fill, Limits, Marks, Misfit, Name, Node, Trap, Want};
use crate::template::fault::Fault;

/// Reads every document of `text`; those that are empty are left out.
pub(in crate::template) fn read_stream(
    text: &str,
    limits: &Limits,
    fill: Option<&dyn Fill>,
) -> Result<Vec<(Json, Marks)>, Box<Trouble>> {
    let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut reader = Reader {
        text,
        skipped,
        events: Parser::new_from_str_with_options(&text[skipped..], options(limits)),
        limits,
        fill,
        left: Left { bytes: limits.bytes, nodes: limits.nodes, alias_nodes: limits.alias_nodes },
        anchors: HashMap::new(),
        marks: Marks::default(),
    };
    reader.documents()
}

fn options(limits: &Limits) -> Options {
    let mut options = Options::default();
    options.block_scalar_eof_without_line_feed = true;
    options.emit_unresolved_aliases = true;
    options.block_nesting_limit = limits.depth;
    options.flow_nesting_limit = limits.depth;
    options.set_emit_comments(false);
    options
}

struct Reader<'t> {
    text: &'t str,
    /// Bytes of the byte order mark before what the parser sees.
    skipped: usize,
    events: Parser<'t, StrInput<'t>>,
    limits: &'t Limits,
    fill: Option<&'t dyn Fill>,
    left: Left,
    anchors: HashMap<usize, Anchored>,
    /// Of the document being read.
    marks: Marks,
}

/// What may still be read.
#[derive(Clone, Copy)]
struct Left {
    bytes: usize,
    nodes: usize,
    alias_nodes: usize,
}

/// What an alias stands for, and what each use of it costs.
struct Anchored {
    value: Json,
    bytes: usize,
    nodes: usize,
    height: usize,
}

/// Where a node is: its own start or that of its key, and the key or index it has.
#[derive(Clone, Copy)]
struct Spot {
    offset: usize,
    name: Name,
}

impl Spot {
    fn node(self) -> Node {
        Node { offset: u32::try_from(self.offset).unwrap_or(u32::MAX), size: 1, name: self.name }
    }
}

/// A scalar event's parts.
struct Scalar<'e> {
    text: &'e str,
    style: ScalarStyle,
    tag: Option<&'e Tag>,
}

type Read<T> = Result<T, Box<Trouble>>;

impl<'t> Reader<'t> {
    fn documents(&mut self) -> Read<Vec<(Json, Marks)>> {
        let mut documents = Vec::new();
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(documents),
                Event::DocumentStart(..) => self.anchors.clear(),
                Event::StreamStart | Event::DocumentEnd => {}
                Event::Scalar(..) if span.start == span.end => {}
                event => {
                    if documents.len() == self.limits.documents {
                        return Err(self.trouble(span, trouble::over("documents", self.limits.documents)));
                    }
                    let value =
                        self.node(event, span, Spot { offset: self.start(span), name: Name::ROOT }, 0)?;
                    documents.push((value, std::mem::take(&mut self.marks)));
                }
            }
        }
    }

    fn next(&mut self) -> Read<(Event<'t>, Span)> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(Trouble::of_parser(&error, self.text, self.skipped, self.limits)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn start(&self, span: Span) -> usize {
        self.skipped + span.start.byte_offset().unwrap_or(0)
    }

    fn trouble(&self, span: Span, fault: Fault) -> Box<Trouble> {
        let start = self.start(span);
        Trouble::new(fault, start..self.skipped + span.end.byte_offset().unwrap_or(start))
    }

    /// Reads the node that begins with `event`, and notes where it is.
    fn node(&mut self, event: Event<'t>, span: Span, spot: Spot, depth: usize) -> Read<Json> {
        if depth > self.limits.depth {
            return Err(self.trouble(span, trouble::over("levels of nesting", self.limits.depth)));
        }
        let before = self.left;
        self.spend(span, 1, 0)?;
        let index = self.marks.nodes.len();
        self.marks.nodes.push(spot.node());
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = Scalar { text: &text, style, tag: tag.as_deref() };
                (self.scalar(&scalar, span)?, anchor)
            }
            Event::Alias(id) => (self.alias(id, span, depth)?, 0),
            Event::UnresolvedAlias(name) => return Err(self.trouble(span, trouble::unknown_anchor(&name))),
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            _ => return Err(self.trouble(span, Fault::new("a value is expected here"))),
        };
        self.marks.nodes[index].size = u32::try_from(self.marks.nodes.len() - index).unwrap_or(u32::MAX);
        if anchor > 0 {
            self.remember(anchor, &value, before);
        }
        Ok(value)
    }

    fn spend(&mut self, span: Span, nodes: usize, bytes: usize) -> Read<()> {
        let Some(left) = self.left.nodes.checked_sub(nodes) else {
            return Err(self.trouble(span, trouble::over("values", self.limits.nodes)));
        };
        self.left.nodes = left;
        let Some(left) = self.left.bytes.checked_sub(bytes) else {
            return Err(self.trouble(span, trouble::over("bytes of output", self.limits.bytes)));
        };
        self.left.bytes = left;
        Ok(())
    }

    fn remember(&mut self, anchor: usize, value: &Json, before: Left) {
        let anchored = Anchored {
            value: value.clone(),
            bytes: before.bytes - self.left.bytes,
            nodes: before.nodes - self.left.nodes,
            height: height(value),
        };
        self.anchors.insert(anchor, anchored);
    }

    fn alias(&mut self, id: usize, span: Span, depth: usize) -> Read<Json> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(self.trouble(span, Fault::new("this alias stands inside what it refers to")));
        };
        if depth + anchored.height > self.limits.depth {
            return Err(self.trouble(span, trouble::over("levels of nesting", self.limits.depth)));
        }
        let (value, nodes, bytes) = (anchored.value.clone(), anchored.nodes, anchored.bytes);
        let Some(left) = self.left.alias_nodes.checked_sub(nodes) else {
            return Err(
                self.trouble(span, trouble::over("values copied by aliases", self.limits.alias_nodes))
            );
        };
        self.left.alias_nodes = left;
        self.spend(span, nodes, bytes)?;
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Read<Json> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Json::Array(items));
            }
            let spot = Spot { offset: self.start(span), name: Name::of_index(items.len()) };
            items.push(self.node(event, span, spot, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Read<Json> {
        let mut map = Map::new();
        let mut offsets = Vec::new();
        let mut merges = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let offset = self.start(span);
            let key = self.key(event, span)?;
            let (event, value_span) = self.next()?;
            let mark = self.marks.nodes.len();
            let traps = self.marks.traps.len();
            let name = key.as_deref().map_or(Name::ROOT, Name::of);
            let value = self.node(event, value_span, Spot { offset, name }, depth + 1)?;
            for trap in self.marks.traps[traps..].iter_mut().filter(|trap| trap.field.is_none()) {
                trap.field.clone_from(&key);
            }
            let Some(key) = key else {
                self.marks.nodes.truncate(mark);
                merges.push(Merge { value, span, keys_before: map.len() });
                continue;
            };
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    offsets.push(offset);
                    entry.insert(value);
                }
                Entry::Occupied(entry) => {
                    let key = entry.key().clone();
                    let first = position(&map, &key).map_or(offset, |first| offsets[first]);
                    return Err(self.trouble(span, trouble::given_twice(&key)).after(first));
                }
            }
        }
        for merge in merges {
            self.merge(&mut map, merge, &offsets)?;
        }
        Ok(Json::Object(map))
    }

    /// A key as text, `None` for the merge key `<<`.
    fn key(&mut self, event: Event<'t>, span: Span) -> Read<Option<String>> {
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, 0, None) if text == "<<" => return Ok(None),
            Event::Scalar(text, style, anchor, tag) => {
                let before = self.left;
                let scalar = Scalar { text: &text, style, tag: tag.as_deref() };
                let value = self.key_scalar(&scalar, span)?;
                if anchor > 0 {
                    self.remember(anchor, &value, before);
                }
                value
            }
            Event::Alias(id) => self.alias(id, span, 0)?,
            Event::UnresolvedAlias(name) => return Err(self.trouble(span, trouble::unknown_anchor(&name))),
            _ if self.is_expression(span) => return Err(self.trouble(span, trouble::no_template())),
            _ => return Err(self.trouble(span, trouble::key_is("a map or a list"))),
        };
        match value {
            Json::String(text) => Ok(Some(text)),
            Json::Bool(value) => Ok(Some(value.to_string())),
            Json::Number(number) => Ok(Some(number.to_string())),
            Json::Null => Err(self.trouble(span, trouble::key_is("null"))),
            _ => Err(self.trouble(span, trouble::key_is("a map or a list"))),
        }
    }

    /// Whether a map that is the key of another one is `{{ … }}` in a text that nothing was computed in.
    fn is_expression(&self, span: Span) -> bool {
        let start = self.start(span);
        self.fill.is_none() && self.text[start..].starts_with('{') && self.text[..start].ends_with('{')
    }

    fn key_scalar(&mut self, scalar: &Scalar, span: Span) -> Read<Json> {
        match self.filled(scalar.text, Want::Key, span)? {
            Some(value) => Ok(value),
            None => {
                let (value, start) = (self.literal(scalar, span)?, self.start(span));
                if let Some(trap) = self.marks.traps.last_mut().filter(|trap| trap.offset == start) {
                    trap.is_key = true;
                }
                Ok(value)
            }
        }
    }

    fn scalar(&mut self, scalar: &Scalar, span: Span) -> Read<Json> {
        let want = match (scalar.style, scalar.tag) {
            (ScalarStyle::Plain, None) => Want::Typed,
            _ => Want::Text,
        };
        match self.filled(scalar.text, want, span)? {
            Some(Json::String(text)) if scalar.tag.is_some() => {
                let filled = Scalar { text: &text, ..*scalar };
                self.meaning(&filled, span)
            }
            Some(value) => Ok(value),
            None => self.literal(scalar, span),
        }
    }

    fn filled(&mut self, text: &str, want: Want, span: Span) -> Read<Option<Json>> {
        let Some(fill) = self.fill else { return Ok(None) };
        let mut bytes = self.left.bytes;
        match fill.fill(text, want, &mut bytes) {
            None => Ok(None),
            Some(Err(misfit)) => Err(self.misfit(span, misfit)),
            Some(Ok(value)) => {
                self.left.bytes = bytes;
                Ok(Some(value))
            }
        }
    }

    fn misfit(&self, span: Span, misfit: Misfit) -> Box<Trouble> {
        let start = self.start(span);
        let at = self
            .text
            .get(start..)
            .and_then(|rest| rest.find(&misfit.at))
            .map_or(start, |found| start + found);
        Trouble::new(misfit.fault, at..at + misfit.at.len())
    }

    fn literal(&mut self, scalar: &Scalar, span: Span) -> Read<Json> {
        self.spend(span, 0, scalar.text.len())?;
        let value = self.meaning(scalar, span)?;
        if scalar.style == ScalarStyle::Plain && scalar.tag.is_none() && is_trap(scalar.text, &value) {
            let (offset, text) = (self.start(span), scalar.text.to_string());
            self.marks.traps.push(Trap { offset, text, meaning: value.clone(), field: None, is_key: false });
        }
        Ok(value)
    }

    fn meaning(&self, scalar: &Scalar, span: Span) -> Read<Json> {
        let text = scalar.text;
        let tag = scalar.tag.map(|tag| tag.suffix().rsplit(':').next().unwrap_or_default());
        let read = |text| resolve(text).map_err(|NotJson| self.trouble(span, trouble::not_json(text)));
        match tag {
            None if scalar.style == ScalarStyle::Plain => read(text),
            None | Some("str" | "") => Ok(Json::String(text.into())),
            Some("binary") => binary(text).ok_or_else(|| self.trouble(span, trouble::not_base64())),
            Some(kind @ ("int" | "float" | "bool" | "null")) => {
                let value = read(text)?;
                if fits(kind, &value) { Ok(value) } else { Err(self.trouble(span, trouble::not_a(kind))) }
            }
            Some(_) if scalar.style == ScalarStyle::Plain => read(text),
            Some(_) => Ok(Json::String(text.into())),
        }
    }

    /// Adds the keys of `<<` that the map does not give itself. A key that stands before `<<` and in it is refused:
    /// kubectl would let `<<` win there, and YAML's own rule is the opposite.
    fn merge(&mut self, map: &mut Map<String, Json>, merge: Merge, offsets: &[usize]) -> Read<()> {
        let sources = match merge.value {
            Json::Array(sources) => sources,
            source => vec![source],
        };
        let offset = self.start(merge.span);
        for source in sources {
            let Json::Object(source) = source else {
                return Err(self.trouble(merge.span, trouble::not_a_merge()));
            };
            for (key, value) in source {
                match position(map, &key) {
                    Some(first) if first < merge.keys_before => {
                        return Err(self
                            .trouble(merge.span, trouble::merged_over(&key))
                            .after(offsets.get(first).copied().unwrap_or(offset)));
                    }
                    Some(_) => {}
                    None => {
                        self.marks.nodes.push(Spot { offset, name: Name::of(&key) }.node());
                        map.insert(key, value);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A `<<` entry: it applies when the whole map is known.
struct Merge {
    value: Json,
    span: Span,
    keys_before: usize,
}

fn position(map: &Map<String, Json>, key: &str) -> Option<usize> {
    map.contains_key(key).then(|| map.keys().position(|known| known == key))?
}

fn fits(kind: &str, value: &Json) -> bool {
    match kind {
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "bool" => value.is_boolean(),
        _ => value.is_null(),
    }
}

fn binary(text: &str) -> Option<Json> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    String::from_utf8(STANDARD.decode(compact).ok()?).ok().map(Json::String)
}

fn height(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Json::Object(map) => 1 + map.values().map(height).max().unwrap_or(0),
        _ => 0,
    }
}
