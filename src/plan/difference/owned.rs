//! Reads the text of a field manager's `fieldsV1` in one pass, without building a tree of it.
//!
//! Each member of its nested objects names a part of the managed object: `f:` a field, `k:` the item of a list with
//! these keys, `v:` an element of a set, `.` the thing itself. A part without members is owned whole.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::items::contains;
use super::path::plain;
use super::same::same_scalar;

/// A position in the text.
#[derive(Clone)]
pub(super) struct Reader<'o> {
    text: &'o str,
    at: usize,
    /// The text is not what it should be; all reads end here.
    pub broken: bool,
}

/// What a member names, in JSON's escaping.
#[derive(Clone, Copy)]
pub(super) enum Member<'o> {
    Field(&'o str),
    Item(ListKey<'o>),
    Element(Element<'o>),
}

impl<'o> Reader<'o> {
    pub(super) fn new(text: &'o str) -> Self {
        Reader { text, at: 0, broken: false }
    }

    /// Inside an object without members.
    pub(super) fn at_end() -> Reader<'static> {
        Reader::new("}")
    }

    /// Steps into the object that begins here.
    pub(super) fn enter(&mut self) {
        self.expect(b'{');
    }

    /// The next member of the object stepped into, or `None` at its end, which steps out.
    pub(super) fn member(&mut self) -> Option<Member<'o>> {
        loop {
            let name = self.name()?;
            match name.as_bytes() {
                [b'f', b':', ..] => return Some(Member::Field(&name[2..])),
                [b'k', b':', ..] => return Some(Member::Item(ListKey(&name[2..]))),
                [b'v', b':', ..] => return Some(Member::Element(Element(&name[2..]))),
                [b'.'] => self.skip(),
                _ => {
                    self.broken = true;
                    return None;
                }
            }
        }
    }

    /// Steps over the object that begins here.
    pub(super) fn skip(&mut self) {
        self.enter();
        self.leave();
    }

    /// Steps out over what is left of an object, the value of its member just named included.
    pub(super) fn leave_member(&mut self) {
        self.skip();
        self.leave();
    }

    /// Steps out over the members that are left.
    fn leave(&mut self) {
        let mut depth = 1;
        while depth > 0 && !self.broken {
            match self.name() {
                Some(_) => {
                    self.enter();
                    depth += 1;
                }
                None => depth -= 1,
            }
        }
    }

    fn name(&mut self) -> Option<&'o str> {
        match self.token()? {
            b'}' => return None,
            b',' => self.expect(b'"'),
            b'"' => {}
            _ => self.broken = true,
        }
        if self.broken {
            return None;
        }
        let name = self.string()?;
        self.expect(b':');
        (!self.broken).then_some(name)
    }

    /// The rest of a string whose quote has been read.
    fn string(&mut self) -> Option<&'o str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Some(&self.text[start..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.broken = true;
        None
    }

    fn expect(&mut self, wanted: u8) {
        if self.token() != Some(wanted) {
            self.broken = true;
        }
    }

    fn token(&mut self) -> Option<u8> {
        if self.broken {
            return None;
        }
        let rest = &self.text.as_bytes()[self.at.min(self.text.len())..];
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blank + 1;
        let token = rest.get(blank).copied();
        self.broken = token.is_none();
        token
    }
}

/// A name as it reads without JSON's escapes.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    serde_json::from_str(&format!("\"{text}\"")).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// An element of a set, as JSON in JSON's escaping.
#[derive(Clone, Copy)]
pub(super) struct Element<'o>(&'o str);

impl Element<'_> {
    pub(super) fn value(self) -> Value {
        serde_json::from_str(&unescaped(self.0)).unwrap_or_default()
    }

    pub(super) fn is_in(self, list: &[Value]) -> bool {
        match quoted(self.0) {
            Some((text, "")) => list.iter().any(|value| value.as_str() == Some(text)),
            _ => contains(list, &self.value()),
        }
    }
}

/// The keys of an item of an associative list: `{\"containerPort\":80,\"protocol\":\"TCP\"}`.
#[derive(Clone, Copy)]
pub(super) struct ListKey<'o>(&'o str);

/// How well an item of a wanted list fits a list key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Exact,
    /// The item leaves a key out, which the server fills in; what it has fits.
    Partial,
    None,
}

impl<'o> ListKey<'o> {
    /// How well `item` fits. `typed` says that it is of a built-in kind, where a left-out protocol is TCP.
    pub(super) fn fit(self, item: &Value, typed: bool) -> Fit {
        let Value::Object(fields) = item else { return Fit::None };
        let mut tally = Tally { exact: true, some: false };
        let mut simple = Simple::new(self.0);
        while let Some((name, scalar)) = simple.next() {
            let fits = match (fields.get(name), scalar) {
                (None, Scalar::Text("TCP")) if typed && name == "protocol" => Some(true),
                (None, _) if typed && name == "protocol" => Some(false),
                (None, _) => None,
                (Some(value), scalar) => Some(scalar.equals(value)),
            };
            if !tally.count(fits) {
                return Fit::None;
            }
        }
        if simple.complex {
            return self.fit_slowly(fields);
        }
        tally.fit()
    }

    fn fit_slowly(self, fields: &Map<String, Value>) -> Fit {
        let mut tally = Tally { exact: true, some: false };
        for (name, wanted) in self.decoded() {
            if !tally.count(fields.get(&name).map(|value| same_scalar(value, &wanted))) {
                return Fit::None;
            }
        }
        tally.fit()
    }

    fn decoded(self) -> Map<String, Value> {
        serde_json::from_str(&unescaped(self.0)).unwrap_or_default()
    }

    /// For a path: `name=mysql`.
    pub(super) fn text(self) -> String {
        let pairs = self.decoded().into_iter().map(|(name, value)| format!("{name}={}", plain(&value)));
        pairs.collect::<Vec<_>>().join(",")
    }
}

struct Tally {
    exact: bool,
    some: bool,
}

impl Tally {
    /// Counts one key: present and right, present and wrong (which ends it), or left out.
    fn count(&mut self, fits: Option<bool>) -> bool {
        match fits {
            Some(fits) => self.some |= fits,
            None => self.exact = false,
        }
        fits != Some(false)
    }

    fn fit(self) -> Fit {
        match (self.some, self.exact) {
            (false, _) => Fit::None,
            (true, true) => Fit::Exact,
            (true, false) => Fit::Partial,
        }
    }
}

/// The members of a list key that needs no unescaping beyond its quotes; `complex` is set where one does.
struct Simple<'o> {
    rest: &'o str,
    complex: bool,
}

enum Scalar<'o> {
    Text(&'o str),
    /// A number, a boolean or null.
    Json(&'o str),
}

impl<'o> Simple<'o> {
    fn new(text: &'o str) -> Self {
        match text.strip_prefix('{') {
            Some(rest) => Simple { rest, complex: false },
            None => Simple { rest: "", complex: true },
        }
    }

    fn next(&mut self) -> Option<(&'o str, Scalar<'o>)> {
        if self.complex || self.rest == "}" {
            return None;
        }
        let member = self.member();
        self.complex = member.is_none();
        member
    }

    fn member(&mut self) -> Option<(&'o str, Scalar<'o>)> {
        let rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        let (name, rest) = quoted(rest)?;
        let rest = rest.strip_prefix(':')?;
        let (scalar, rest) = match quoted(rest) {
            Some((text, rest)) => (Scalar::Text(text), rest),
            None => {
                let (json, rest) = rest.split_at(rest.find([',', '}'])?);
                (!json.contains(['\\', '{', '['])).then_some((Scalar::Json(json), rest))?
            }
        };
        self.rest = rest;
        Some((name, scalar))
    }
}

/// A string in escaped quotes that holds no other escapes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("\\\"")?;
    let end = inner.find('\\')?;
    Some((&inner[..end], inner[end..].strip_prefix("\\\"")?))
}

impl Scalar<'_> {
    fn equals(&self, value: &Value) -> bool {
        match (self, value) {
            (Scalar::Text(text), Value::String(value)) => text == value,
            (Scalar::Json(json), Value::Number(number)) => same_number(json, number),
            (Scalar::Json(json), Value::Bool(truth)) => *json == if *truth { "true" } else { "false" },
            (Scalar::Json(json), Value::Null) => *json == "null",
            _ => false,
        }
    }
}

fn same_number(json: &str, number: &Number) -> bool {
    match json.parse::<i64>() {
        Ok(integer) => number.as_i64() == Some(integer) || number.as_f64() == Some(integer as f64),
        Err(_) => json.parse().ok() == number.as_f64(),
    }
}
