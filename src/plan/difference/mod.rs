//! Where a live object differs from what is wanted of it, and from what we wanted of it before.
//!
//! Three things are walked together: the wanted object, the live one, and what the API server recorded as applied by
//! our field manager (`fieldsV1`). The record says two things that neither object does: what we once applied and no
//! longer want, and how the server treats each list (items with keys, a set, or one value as a whole).
//! Nobody else can change a field that we own without taking it from us, so a field that is ours and holds what we want
//! is settled.
//!
//! The server fills in defaults, which is no difference. Inside a value that is owned as a whole a default cannot be told
//! from an entry that we dropped, unless it is one of those known here; it then counts as a difference. At worst that
//! costs one write that changes nothing: what the server leaves after it is remembered (`plan::memory`).

mod built_in;
mod items;
mod owned;
mod path;
mod same;
mod walk;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use crate::plan::desired::LAST_APPLIED;

use owned::Reader;
use path::{Path, Step};
use walk::Walk;

/// All differences of one object, in the order of our record.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    found: Vec<Difference>,
}

/// One part of a live object that is not as wanted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// `spec.template.spec.containers[name=db].image`
    pub path: String,
    pub cause: Cause,
    /// What is wanted, as JSON cut to a readable length; never set for a Secret, nor where `hide` took it away.
    pub want: Option<String>,
    /// What is there.
    pub have: Option<String>,
    /// Equal for the same difference with the same values.
    pub hash: u64,
}

/// In what way a part is not as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// It has another value, or none.
    Value,
    /// We applied it before and want it no more.
    Dropped,
    /// It has the wanted value, which is not ours.
    Unowned,
    /// A list holds the wanted items in another order.
    Order,
    /// Metacontroller's record of what it applied, which `plan::takeover` takes away.
    Leftover,
}

/// Finds what a write would change. `wanted` has `apiVersion` and `kind`; `owned` is the `fieldsV1` of our manager's
/// apply entry, which may lack the owner references.
pub(crate) fn difference(wanted: &Map<String, Value>, live: &Value, owned: Option<&str>) -> Differences {
    let mut found = by_record(wanted, live, owned).unwrap_or_else(|| by_content(wanted, live));
    if wanted.contains_key("metadata") && has_leftover(live) {
        found.push(leftover());
    }
    Differences { found }
}

/// `None` without a record that reads.
fn by_record(wanted: &Map<String, Value>, live: &Value, owned: Option<&str>) -> Option<Vec<Difference>> {
    let mut walk = Walk::new(wanted);
    let mut reader = Reader::new(owned?);
    reader.enter();
    walk.fields(&mut reader, wanted, live.as_object()?, walk.root());
    (!reader.broken).then_some(walk.found)
}

fn by_content(wanted: &Map<String, Value>, live: &Value) -> Vec<Difference> {
    let mut walk = Walk::new(wanted);
    walk.nothing_owned(wanted, live);
    walk.found
}

fn has_leftover(live: &Value) -> bool {
    live.get("metadata")
        .and_then(|metadata| metadata.get("annotations")?.as_object())
        .is_some_and(|annotations| annotations.contains_key(LAST_APPLIED[0]))
}

fn leftover() -> Difference {
    let metadata = Path::ROOT.below(Step::Field("metadata"));
    let annotations = metadata.below(Step::Field("annotations"));
    let path = annotations.below(Step::Field(LAST_APPLIED[0])).to_string();
    let mut hasher = DefaultHasher::new();
    (&path, Cause::Leftover).hash(&mut hasher);
    Difference { path, cause: Cause::Leftover, want: None, have: None, hash: hasher.finish() }
}

impl Differences {
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Difference> {
        self.found.iter()
    }

    /// Whether the object would be another one after a write, and not only in who owns its fields.
    pub(crate) fn in_content(&self) -> bool {
        self.found.iter().any(|difference| !matches!(difference.cause, Cause::Unowned | Cause::Leftover))
    }

    /// The first places without their values: the same text for as long as the same places differ.
    pub(crate) fn places(&self) -> String {
        let places: Vec<String> =
            self.found.iter().take(SHOWN).map(|found| format!("`{}`", found.place())).collect();
        let more = self.found.len().saturating_sub(SHOWN);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        places.join(", ") + &rest
    }

    /// Leaves out the differences whose hashes are listed.
    pub(crate) fn without(mut self, known: &[u64]) -> Differences {
        self.found.retain(|difference| !known.contains(&difference.hash));
        self
    }

    /// Shows no value of a part that has a secret one: what it is instead is the secret of another time.
    pub(crate) fn hide(&mut self, is_secret: impl Fn(&str) -> bool) {
        for difference in &mut self.found {
            if [&difference.want, &difference.have].into_iter().flatten().any(|text| is_secret(text)) {
                (difference.want, difference.have) = (None, None);
            }
        }
    }

    pub(crate) fn hashes(&self) -> Box<[u64]> {
        self.found.iter().map(|difference| difference.hash).collect()
    }

    /// Equal for the same differences with the same values.
    pub(crate) fn signature(&self) -> u64 {
        self.found.iter().fold(0, |sum, difference| sum.wrapping_add(difference.hash))
    }
}

/// So many differences are named, and the number of the others.
const SHOWN: usize = 3;

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, difference) in self.found.iter().take(SHOWN).enumerate() {
            write!(f, "{}{difference}", if index == 0 { "" } else { ", " })?;
        }
        match self.found.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Debug for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.found).finish()
    }
}

impl Difference {
    fn place(&self) -> &str {
        if self.path.is_empty() { "the object" } else { &self.path }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.place();
        match (self.cause, &self.want, &self.have) {
            (Cause::Dropped, ..) => write!(f, "`{path}` is no longer wanted"),
            (Cause::Unowned, ..) => write!(f, "`{path}` is as wanted and not ours"),
            (Cause::Leftover, ..) => write!(f, "`{path}` is left from Metacontroller"),
            (Cause::Order, ..) => write!(f, "`{path}` is in another order"),
            (Cause::Value, Some(want), Some(have)) => write!(f, "`{path}` is {have}, wanted {want}"),
            (Cause::Value, Some(want), None) => write!(f, "`{path}` is absent, wanted {want}"),
            (Cause::Value, None, Some(have)) => write!(f, "`{path}` is {have}, wanted none"),
            (Cause::Value, None, None) => write!(f, "`{path}` has another value"),
        }
    }
}

impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A value as JSON in backticks, cut to what fits a sentence.
fn shortened(value: &Value) -> String {
    const LENGTH: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LENGTH) {
        None => format!("`{text}`"),
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
    }
}

#[cfg(test)]
mod tests;
