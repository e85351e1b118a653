//! Finds the values of Secrets in texts and objects, in every form, and puts words in their place.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use crate::mask::forms::{DIGESTS, TEXTS, hex};
use crate::mask::secrets::{Secrets, VALUES, drop_records, is_secret, parts, value_of};

/// A shorter text is found in too many places to be looked for.
const LEAST: usize = 6;
/// From this length on a text is looked for within words too, and also where it has but one sort of character.
const PLENTY: usize = 8;
/// So much of a digest is looked for where only its beginning is shown.
const DIGEST_LEAST: usize = 8;
/// A longer text is looked for as it is, and in base64.
const LONG: usize = 8192;
/// So often a value may have been put into base64.
const DEPTH: usize = 3;

/// What stands in the place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// `(masked)`, for texts.
    Told,
    /// `(masked 1)`, `(base64 of …)`: equal values stay equal and others differ, for who compares.
    Compared,
    /// `masked-1`, which may stand in a name.
    Kept,
}

impl Words {
    fn word(self, number: usize) -> String {
        match self {
            Words::Told => "(masked)".into(),
            Words::Compared => format!("(masked {number})"),
            Words::Kept => format!("masked-{number}"),
        }
    }
}

/// The values of some Secrets, ready to be looked for.
#[derive(Debug)]
pub(crate) struct Veil {
    words: Words,
    needles: Vec<Needle>,
    /// The word of each whole value.
    by_value: HashMap<Vec<u8>, String>,
}

#[derive(Debug)]
struct Needle {
    text: String,
    /// So much of its beginning is enough.
    least: usize,
    sort: Sort,
    word: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Stands for itself wherever it is.
    Anywhere,
    /// Counts only where nothing goes on before and after it.
    Word,
    Digest,
}

/// A part of a text, in bytes, with what is to stand in its place.
struct Match {
    start: usize,
    end: usize,
    word: String,
}

impl Veil {
    pub(crate) fn new(secrets: &Secrets, words: Words) -> Veil {
        let mut making = Making { open: secrets, words, needles: HashMap::new() };
        let mut by_value = HashMap::new();
        for (index, value) in secrets.values.iter().enumerate() {
            let word = words.word(index + 1);
            making.value(value, &word);
            by_value.insert(value.clone(), word);
        }
        let count = secrets.values.len();
        for (index, text) in secrets.digested.iter().enumerate() {
            making.digests(text.as_bytes(), &words.word(count + index + 1));
        }
        let mut needles: Vec<Needle> = making.needles.into_values().collect();
        // The longest first: one value may begin with another.
        needles.sort_by(|one, other| (other.text.len(), &one.text).cmp(&(one.text.len(), &other.text)));
        Veil { words, needles, by_value }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// The text without what is secret.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        match self.matches(text, DEPTH) {
            found if found.is_empty() => Cow::Borrowed(text),
            found => Cow::Owned(replaced(text, found)),
        }
    }

    /// Hides the values in Secrets, and in whatever else holds one of them, keys of maps included.
    pub(crate) fn hide(&self, value: &mut Value) {
        match value {
            Value::Object(_) if is_secret(value) => self.hide_secret(value),
            Value::Object(fields) => self.hide_fields(fields),
            Value::Array(items) => items.iter_mut().for_each(|value| self.hide(value)),
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.text(text) {
                    *text = hidden;
                }
            }
            _ => {}
        }
    }

    fn hide_fields(&self, fields: &mut Map<String, Value>) {
        fields.values_mut().for_each(|value| self.hide(value));
        self.hide_keys(fields);
    }

    pub(super) fn hide_keys(&self, fields: &mut Map<String, Value>) {
        if fields.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            let hidden =
                std::mem::take(fields).into_iter().map(|(key, value)| (self.text(&key).into(), value));
            fields.extend(hidden);
        }
    }

    /// All values of a Secret are secret, short ones too.
    fn hide_secret(&self, secret: &mut Value) {
        self.hide_beside(secret);
        for field in VALUES {
            let values = secret.get_mut(field).and_then(Value::as_object_mut);
            for value in values.into_iter().flat_map(Map::values_mut) {
                let word = self.by_value.get(&value_of(value)).map_or("masked", String::as_str);
                let encoded = field == "data" && self.words == Words::Kept;
                *value = Value::from(if encoded { STANDARD.encode(word) } else { word.into() });
            }
        }
    }

    /// Hides what a Secret has beside its own values.
    pub(super) fn hide_beside(&self, secret: &mut Value) {
        drop_records(secret);
        for (name, field) in secret.as_object_mut().into_iter().flatten() {
            if !VALUES.contains(&name.as_str()) {
                self.hide(field);
            }
        }
    }

    fn matches(&self, text: &str, depth: usize) -> Vec<Match> {
        let mut found = Vec::new();
        for needle in &self.needles {
            needle.find(text, &mut found);
        }
        self.cut_off(text, &mut found);
        if depth > 0 {
            for alphabet in &ALPHABETS {
                for run in runs(text, alphabet) {
                    found.extend(self.within_base64(text, run, alphabet, depth));
                }
            }
        }
        found
    }

    /// Where a text was shortened in the middle of a value, its beginning still stands there.
    fn cut_off(&self, text: &str, found: &mut Vec<Match>) {
        for (at, _) in text.match_indices('…').chain(text.match_indices("...")) {
            let head = &text[..at];
            for needle in self.needles.iter().filter(|needle| needle.text.len() > LEAST) {
                let ends = needle.text.char_indices().map(|(end, _)| end).rev();
                let cut =
                    ends.take_while(|end| *end >= LEAST).find(|end| head.ends_with(&needle.text[..*end]));
                if let Some(length) = cut {
                    found.push(Match { start: at - length, end: at, word: needle.word.clone() });
                }
            }
        }
    }

    /// A run of characters of base64 that holds a value once it is decoded.
    fn within_base64(
        &self,
        text: &str,
        (start, end): (usize, usize),
        alphabet: &Alphabet,
        depth: usize,
    ) -> Option<Match> {
        let rest = &text[end..];
        // Something else may stand directly before it: a path, a key.
        let (start, decoded) = (start..end).take(4).find_map(|start| {
            let mut decoded = String::from_utf8_lossy(&alphabet.decoded(&text[start..end])?).into_owned();
            if rest.starts_with('…') || rest.starts_with("...") {
                decoded.push('…');
            }
            let found = self.matches(&decoded, depth - 1);
            (!found.is_empty()).then(|| (start, replaced(&decoded, found)))
        })?;
        let padding = rest.bytes().take_while(|byte| *byte == b'=').count();
        let word = match self.words {
            Words::Told => self.words.word(0),
            Words::Compared => format!("(base64 of {decoded})"),
            Words::Kept if padding > 0 || (end - start) % 4 == 0 => alphabet.padded.encode(decoded),
            Words::Kept => alphabet.bare.encode(decoded),
        };
        Some(Match { start, end: end + padding, word })
    }
}

/// Collects needles; the first that has a text keeps it.
struct Making<'a> {
    open: &'a Secrets,
    words: Words,
    needles: HashMap<String, Needle>,
}

impl Making<'_> {
    fn value(&mut self, value: &[u8], word: &str) {
        self.digests(value, word);
        self.digests(STANDARD.encode(value).as_bytes(), word);
        if value.len() >= LEAST {
            self.put(hex(value), Sort::Anywhere, &hex(word.as_bytes()));
            self.put(hex(value).to_uppercase(), Sort::Anywhere, &hex(word.as_bytes()));
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        self.text(text, LEAST, word);
        // Whoever made it with `echo` has a line break in it.
        let trimmed = text.trim();
        if trimmed.len() < text.len() && !trimmed.is_empty() {
            self.digests(trimmed.as_bytes(), word);
            self.text(trimmed, LEAST, word);
        }
        for part in parts(text) {
            self.text(&part, PLENTY, word);
            if part.len() >= PLENTY {
                self.digests(part.as_bytes(), word);
            }
        }
    }

    fn text(&mut self, text: &str, least: usize, word: &str) {
        let length = text.chars().count();
        let one_sort =
            text.bytes().all(|byte| byte.is_ascii_digit()) || text.chars().all(char::is_alphabetic);
        if length < least || (length < PLENTY && one_sort) || self.open.open.contains(text) {
            return;
        }
        let sort = if length < PLENTY { Sort::Word } else { Sort::Anywhere };
        // No text that is said has room for the other forms of a long one.
        let forms = if length > LONG { &TEXTS[..1] } else { &TEXTS[..] };
        for form in forms {
            let word = if self.words == Words::Kept { form(word) } else { word.to_string() };
            self.put(form(text), sort, &word);
        }
    }

    fn digests(&mut self, bytes: &[u8], word: &str) {
        for digest in DIGESTS {
            let word = match self.words {
                Words::Compared => format!("(digest of {word})"),
                _ => digest(word.as_bytes()),
            };
            self.put(digest(bytes), Sort::Digest, &word);
        }
    }

    fn put(&mut self, text: String, sort: Sort, word: &str) {
        let word = if self.words == Words::Told { self.words.word(0) } else { word.to_string() };
        let least = if sort == Sort::Digest { DIGEST_LEAST } else { text.len() };
        if !self.needles.contains_key(&text) {
            self.needles.insert(text.clone(), Needle { text, least, sort, word });
        }
    }
}

impl Needle {
    fn find(&self, text: &str, found: &mut Vec<Match>) {
        for (start, _) in text.match_indices(&self.text[..self.least]) {
            let length = self.length_at(&text[start..]);
            let end = start + length;
            if self.sort != Sort::Word || stands_alone(text, start, end) {
                found.push(Match { start, end, word: self.word_of(length) });
            }
        }
    }

    /// How much of it stands at the beginning of a text: all, or of a digest its first part.
    fn length_at(&self, text: &str) -> usize {
        let same = self.text.bytes().zip(text.bytes()).take_while(|(one, other)| one == other);
        same.count().max(self.least)
    }

    fn word_of(&self, length: usize) -> String {
        match self.sort {
            Sort::Digest if self.word.len() == self.text.len() => self.word[..length].into(),
            _ => self.word.clone(),
        }
    }
}

fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !goes_on(text[..start].chars().next_back()) && !goes_on(text[end..].chars().next())
}

/// Puts the words in. Of matches that overlap, the first and longest gives the word for all that they cover.
fn replaced(text: &str, mut found: Vec<Match>) -> String {
    found.sort_by_key(|one| (one.start, std::cmp::Reverse(one.end)));
    let mut hidden = String::with_capacity(text.len());
    let mut done = 0;
    for Match { start, end, word } in found {
        if start >= done {
            hidden.push_str(&text[done..start]);
            hidden.push_str(&word);
        }
        done = done.max(end);
    }
    hidden.push_str(&text[done..]);
    hidden
}

/// One of the two alphabets of base64.
struct Alphabet {
    /// Its characters beside letters and digits.
    signs: [u8; 2],
    padded: GeneralPurpose,
    bare: GeneralPurpose,
}

const ALPHABETS: [Alphabet; 2] = [
    Alphabet { signs: *b"+/", padded: STANDARD, bare: STANDARD_NO_PAD },
    Alphabet { signs: *b"-_", padded: URL_SAFE, bare: URL_SAFE_NO_PAD },
];

impl Alphabet {
    /// What a run is once it is decoded. A broken end is left out.
    fn decoded(&self, run: &str) -> Option<Vec<u8>> {
        let whole = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
        // The last bits may belong to what was cut off.
        self.bare.decode(whole).or_else(|_| self.bare.decode(&whole[..whole.len() / 4 * 4])).ok()
    }
}

/// Where characters of base64 follow each other, long enough to hold a value.
fn runs(text: &str, alphabet: &Alphabet) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut start = 0;
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        if !byte.is_ascii_alphanumeric() && !alphabet.signs.contains(&byte) {
            if at - start >= LEAST {
                runs.push((start, at));
            }
            start = at + 1;
        }
    }
    runs
}
