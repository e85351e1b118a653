//! The walk through the wanted object, the live one and our record, all at once.
//!
//! Nothing is put on the heap until something differs.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::built_in::{
    BUILT_IN_GROUPS, admitted, chosen_by_users, filled_in, holds_amounts, is_amount, is_selector,
    may_be_left_out,
};
use super::items::{Place, Places, contains, find_item, guessed_key, item_with};
use super::owned::{self, Member, Reader};
use super::path::{Path, Step};
use super::same::{is_empty, same_amount, same_scalar};
use super::{Cause, Difference, shortened};
use crate::plan::desired::hash_value;

pub(super) struct Walk {
    pub(super) found: Vec<Difference>,
    built_in: bool,
    /// Whether limits, requests and their like hold quantities.
    quantities: bool,
    /// Whether values are kept out of what is found.
    secret: bool,
    pod: bool,
}

/// Where the walk is, and what is known of that place.
#[derive(Clone, Copy)]
pub(super) struct At<'p> {
    path: &'p Path<'p>,
    region: Region,
    /// Whether the server knows this part's type and leaves out its zero values.
    typed: bool,
    ownership: Ownership,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    Root,
    /// The object's own metadata.
    Metadata,
    Fields,
    /// Keys chosen by a user: labels, a node selector.
    Choices,
    /// Quantities by resource: limits, requests.
    Amounts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// We applied this: what is more than wanted may be what we dropped.
    Ours,
    /// Others may have written here: what is more than wanted is theirs.
    Unknown,
}

impl<'p> At<'p> {
    fn unowned(self) -> Self {
        At { ownership: Ownership::Unknown, ..self }
    }
}

impl Walk {
    pub(super) fn new(wanted: &Map<String, Value>) -> Self {
        let text = |field: &str| wanted.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let built_in = BUILT_IN_GROUPS.contains(&group);
        Walk {
            found: Vec::new(),
            built_in,
            quantities: built_in && group != "apiextensions.k8s.io",
            secret: group.is_empty() && text("kind") == "Secret",
            pod: group.is_empty() && text("kind") == "Pod",
        }
    }

    pub(super) fn root(&self) -> At<'static> {
        At { path: &Path::ROOT, region: Region::Root, typed: self.built_in, ownership: Ownership::Ours }
    }

    fn below<'p>(&self, at: At<'p>, path: &'p Path<'p>) -> At<'p> {
        let Step::Field(name) = path.step else { return At { path, ..at } };
        let region = match at.region {
            Region::Root if name == "metadata" => Region::Metadata,
            Region::Choices | Region::Amounts => at.region,
            _ if chosen_by_users(name, self.built_in) => Region::Choices,
            _ if self.quantities && holds_amounts(name) => Region::Amounts,
            _ => Region::Fields,
        };
        At { path, region, typed: at.typed || region == Region::Metadata, ..at }
    }

    /// Walks one part of the record, before which the reader stands, beside the wanted and the live value.
    fn owned(&mut self, reader: &mut Reader, wanted: &Value, live: Option<&Value>, at: At) {
        reader.enter();
        let start = reader.clone();
        let first = reader.member();
        match (first, wanted, live) {
            // Cut short to nothing where we applied owner references alone.
            (None, Value::Object(wanted), Some(Value::Object(live))) if at.region == Region::Metadata => {
                self.fields(&mut Reader::at_end(), wanted, live, at);
            }
            (None, wanted, live) => self.whole(wanted, live, at),
            (_, wanted, None) => {
                self.whole(wanted, None, at);
                reader.leave_member();
            }
            (Some(Member::Field(_)), Value::Object(wanted), Some(Value::Object(live))) => {
                *reader = start;
                self.fields(reader, wanted, live, at);
            }
            (Some(Member::Item(_)), Value::Array(wanted), Some(Value::Array(live))) => {
                *reader = start;
                self.items(reader, wanted, live, at);
            }
            (Some(Member::Element(_)), Value::Array(wanted), Some(Value::Array(live))) => {
                *reader = start;
                self.elements(reader, wanted, live, at);
            }
            (_, wanted, Some(live)) => {
                self.found(at, Cause::Value, Some(wanted), Some(live));
                reader.leave_member();
            }
        }
    }

    pub(super) fn fields(
        &mut self,
        reader: &mut Reader,
        wanted: &Map<String, Value>,
        live: &Map<String, Value>,
        at: At,
    ) {
        let record = reader.clone();
        let mut matched = apart_from_the_record(wanted, at.region);
        while let Some(member) = reader.member() {
            let Member::Field(name) = member else { return reader.broken = true };
            let name = owned::unescaped(name);
            let path = at.path.below(Step::Field(&name));
            let (want, have) = (wanted.get(&*name), live.get(&*name));
            match want {
                // Owner references may be missing from the record: they are compared by content.
                _ if is_owners(&name, at.region) => reader.skip(),
                Some(want) => {
                    matched += 1;
                    self.owned(reader, want, have, self.below(at, &path));
                }
                None => {
                    self.found(At { path: &path, ..at }, Cause::Dropped, None, have);
                    reader.skip();
                }
            }
        }
        if let (Region::Metadata, Some(want)) = (at.region, wanted.get("ownerReferences")) {
            let path = at.path.below(Step::Field("ownerReferences"));
            self.content(want, live.get("ownerReferences"), self.below(at, &path).unowned());
        }
        if matched < wanted.len() {
            self.fields_beyond(record, wanted, live, at);
        }
    }

    /// Members that are wanted and not in the record.
    fn fields_beyond(
        &mut self,
        mut record: Reader,
        wanted: &Map<String, Value>,
        live: &Map<String, Value>,
        at: At,
    ) {
        let mut recorded = Vec::new();
        while let Some(Member::Field(name)) = record.member() {
            recorded.push(owned::unescaped(name));
            record.skip();
        }
        for (name, want) in wanted {
            if is_identity(name, at.region)
                || is_owners(name, at.region)
                || recorded.contains(&name.as_str().into())
            {
                continue;
            }
            let path = at.path.below(Step::Field(name));
            let below = self.below(at, &path);
            match (below.region, want, live.get(name)) {
                (Region::Metadata, Value::Object(want), Some(Value::Object(have))) => {
                    self.fields(&mut Reader::at_end(), want, have, below);
                }
                (_, want, have) => self.unowned(want, have, below),
            }
        }
    }

    /// The items of an associative list.
    fn items(&mut self, reader: &mut Reader, wanted: &[Value], live: &[Value], at: At) {
        let mut places = Places::new(wanted.len());
        let mut hint = 0;
        while let Some(member) = reader.member() {
            let Member::Item(key) = member else { return reader.broken = true };
            let path = at.path.below(Step::Item(key));
            let at = At { path: &path, ..at };
            match places.find_wanted(key, wanted, hint, at.typed) {
                Some(index) => {
                    hint = index + 1;
                    let found = find_item(key, live, index);
                    places.set(index, found.map_or(Place::Absent, Place::At));
                    self.owned(reader, &wanted[index], found.map(|found| &live[found]), at);
                }
                None => {
                    let have = find_item(key, live, 0).map(|found| &live[found]);
                    self.found(at, Cause::Dropped, None, have);
                    reader.skip();
                }
            }
        }
        self.items_beyond(&places, wanted, live, at);
        if !places.in_order() {
            self.found(at, Cause::Order, None, None);
        }
    }

    /// Items that are wanted and not in the record.
    fn items_beyond(&mut self, places: &Places, wanted: &[Value], live: &[Value], at: At) {
        for (index, want) in
            wanted.iter().enumerate().filter(|(index, _)| places.get(*index) == Place::Unknown)
        {
            let have = guessed_key(wanted, live).and_then(|key| item_with(key, &want[key], live));
            let path = at.path.below(Step::Index(index));
            self.unowned(want, have, At { path: &path, ..at });
        }
    }

    /// The elements of a set.
    fn elements(&mut self, reader: &mut Reader, wanted: &[Value], live: &[Value], at: At) {
        let mut matched = 0;
        while let Some(member) = reader.member() {
            let Member::Element(element) = member else { return reader.broken = true };
            let path = at.path.below(Step::Element(element));
            let at = At { path: &path, ..at };
            matched += usize::from(element.is_in(wanted));
            match (element.is_in(wanted), element.is_in(live)) {
                (true, true) => {}
                (true, false) => self.found(at, Cause::Value, Some(&element.value()), None),
                (false, _) => self.found(at, Cause::Dropped, None, Some(&element.value())),
            }
            reader.skip();
        }
        if matched < wanted.len() {
            self.unowned(&wanted.into(), Some(&live.into()), at);
        }
    }

    /// A value that the record names whole.
    fn whole(&mut self, wanted: &Value, live: Option<&Value>, at: At) {
        match (wanted, live) {
            (wanted, None) if may_be_left_out(wanted, at.typed) => {}
            // Others may add to most maps that we want empty, and the record looks the same for those where not.
            (Value::Object(wanted), Some(Value::Object(_)))
                if wanted.is_empty() && !at.path.field().is_some_and(is_selector) => {}
            _ => self.content(wanted, live, at),
        }
    }

    /// A value that is wanted and not in the record.
    fn unowned(&mut self, wanted: &Value, live: Option<&Value>, at: At) {
        if live.is_none_or(is_empty) && is_empty(wanted) {
            return;
        }
        let before = self.found.len();
        self.content(wanted, live, at.unowned());
        if self.found.len() == before {
            self.found(at, Cause::Unowned, Some(wanted), live);
        }
    }

    /// The whole object, when nothing is recorded as ours.
    pub(super) fn nothing_owned(&mut self, wanted: &Map<String, Value>, live: &Value) {
        let root = self.root();
        let metadata = Path::ROOT.below(Step::Field("metadata"));
        for (name, want) in wanted.iter().filter(|(name, _)| !is_identity(name, Region::Root)) {
            match (name.as_str(), want, live.get(name)) {
                ("metadata", Value::Object(want), Some(Value::Object(have))) => {
                    let at = self.below(root, &metadata).unowned();
                    self.entries(want, have, at);
                }
                (name, want, have) => {
                    let path = Path::ROOT.below(Step::Field(name));
                    self.content(want, have, self.below(root, &path).unowned());
                }
            }
        }
        if self.found.is_empty() {
            self.found(root, Cause::Unowned, None, None);
        }
    }

    /// Whether the live value holds the wanted one, by content alone.
    fn content(&mut self, wanted: &Value, live: Option<&Value>, at: At) {
        match (wanted, live) {
            (Value::Object(wanted), Some(Value::Object(live))) => self.entries(wanted, live, at),
            (Value::Array(wanted), Some(Value::Array(live))) => self.list(wanted, live, at),
            (wanted, Some(live)) if self.same(wanted, live, at) => {}
            (wanted, None) if is_empty(wanted) && at.typed => {}
            (wanted, live) => self.found(at, Cause::Value, Some(wanted), live),
        }
    }

    fn entries(&mut self, wanted: &Map<String, Value>, live: &Map<String, Value>, at: At) {
        let mut matched = 0;
        for (name, want) in wanted.iter().filter(|(name, _)| !is_identity(name, at.region)) {
            let path = at.path.below(Step::Field(name));
            let below = self.below(at, &path);
            match live.get(name) {
                None if at.ownership == Ownership::Ours && may_be_left_out(want, at.typed) => {}
                have => {
                    matched += usize::from(have.is_some());
                    self.content(want, have, below);
                }
            }
        }
        if at.ownership == Ownership::Ours && matched < live.len() {
            self.extras(wanted, live, at);
        }
    }

    /// Entries that are in a map which is ours whole, and not wanted.
    fn extras(&mut self, wanted: &Map<String, Value>, live: &Map<String, Value>, at: At) {
        for (name, have) in live.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
            let filled =
                self.built_in && at.region != Region::Choices && filled_in(name, have, live, at.path.field());
            if !filled && !have.is_null() {
                let path = at.path.below(Step::Field(name));
                self.found(At { path: &path, ..at }, Cause::Value, None, Some(have));
            }
        }
    }

    fn list(&mut self, wanted: &[Value], live: &[Value], at: At) {
        let field = at.path.field();
        if at.ownership == Ownership::Unknown {
            if let Some(key) = guessed_key(wanted, live) {
                return self.list_by_key(key, wanted, live, at);
            }
            if field == Some("finalizers") && wanted.iter().all(|element| contains(live, element)) {
                return;
            }
        }
        if self.pod && field == Some("tolerations") && admitted(wanted, live) {
            return;
        }
        if wanted.len() != live.len() {
            return self.found(at, Cause::Value, Some(&wanted.into()), Some(&live.into()));
        }
        for (index, (want, have)) in wanted.iter().zip(live).enumerate() {
            let path = at.path.below(Step::Index(index));
            self.content(want, Some(have), self.below(at, &path));
        }
    }

    fn list_by_key(&mut self, key: &'static str, wanted: &[Value], live: &[Value], at: At) {
        for want in wanted {
            let path = at.path.below(Step::With(key, &want[key]));
            self.content(want, item_with(key, &want[key], live), self.below(at, &path));
        }
    }

    fn same(&self, wanted: &Value, live: &Value, at: At) -> bool {
        same_scalar(wanted, live) || (self.holds_a_quantity(at) && same_amount(wanted, live))
    }

    fn holds_a_quantity(&self, at: At) -> bool {
        let map = at.path.above.and_then(Path::field);
        at.region == Region::Amounts
            || (at.region == Region::Fields && self.quantities && is_amount(at.path.field(), map))
    }

    fn found(&mut self, at: At, cause: Cause, want: Option<&Value>, have: Option<&Value>) {
        let path = at.path.to_string();
        let mut hasher = DefaultHasher::new();
        (&path, cause, want.is_some(), have.is_some()).hash(&mut hasher);
        want.into_iter().chain(have).for_each(|value| hash_value(value, &mut hasher));
        let shown = |value: Option<&Value>| value.filter(|_| !self.secret).map(shortened);
        let (want, have) = (shown(want), shown(have));
        self.found.push(Difference { path, cause, want, have, hash: hasher.finish() });
    }
}

/// What says which object it is. No manager owns these.
fn is_identity(field: &str, region: Region) -> bool {
    match region {
        Region::Root => matches!(field, "apiVersion" | "kind"),
        Region::Metadata => matches!(field, "name" | "namespace"),
        _ => false,
    }
}

fn is_owners(field: &str, region: Region) -> bool {
    region == Region::Metadata && field == "ownerReferences"
}

/// How many members are not looked for in the record.
fn apart_from_the_record(wanted: &Map<String, Value>, region: Region) -> usize {
    let names: &[&str] = match region {
        Region::Root => &["apiVersion", "kind"],
        Region::Metadata => &["name", "namespace", "ownerReferences"],
        _ => return 0,
    };
    names.iter().filter(|name| wanted.contains_key(**name)).count()
}
