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

mod owned;
mod path;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Number, Value};

use crate::object::quantity::Quantity;
use crate::plan::desired::{LAST_APPLIED, hash_value};

use owned::{Fit, ListKey, Member, Reader};
use path::{Path, Step};

/// Groups of the kinds that the API server defines itself. Their zero values may be left out when stored.
const BUILT_IN_GROUPS: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Texts that defaults of built-in kinds put into values that have one owner.
const FILLED_IN: [(&str, &str); 12] = [
    ("allocationMode", "ExactCount"),
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("apiVersion", "v1"),
    ("divisor", "0"),
    ("kind", "PersistentVolumeClaim"),
    ("matchPolicy", "Equivalent"),
    ("name", ""),
    ("pathType", "ImplementationSpecific"),
    ("protocol", "TCP"),
    ("scope", "*"),
    ("status", "True"),
    ("volumeMode", "Filesystem"),
];

/// Keys that tell the items of a list apart where no record of ours says which do.
const GUESSED_KEYS: [&str; 7] = ["containerPort", "port", "mountPath", "name", "uid", "ip", "path"];

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
    /// What is wanted, as JSON cut to a readable length; never set for a Secret.
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Difference> {
        self.found.iter()
    }

    /// Whether the object would be another one after a write, and not only in who owns its fields.
    pub(crate) fn in_content(&self) -> bool {
        self.found.iter().any(|difference| !matches!(difference.cause, Cause::Unowned | Cause::Leftover))
    }

    /// Leaves out the differences whose hashes are listed.
    pub(crate) fn without(mut self, known: &[u64]) -> Differences {
        self.found.retain(|difference| !known.contains(&difference.hash));
        self
    }

    pub(crate) fn hashes(&self) -> Box<[u64]> {
        self.found.iter().map(|difference| difference.hash).collect()
    }

    /// Equal for the same differences with the same values.
    pub(crate) fn signature(&self) -> u64 {
        self.found.iter().fold(0, |sum, difference| sum.wrapping_add(difference.hash))
    }
}

/// The first differences, and how many more there are.
impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
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

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the object" } else { &self.path };
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

struct Walk {
    found: Vec<Difference>,
    built_in: bool,
    /// Whether limits, requests and their like hold quantities.
    quantities: bool,
    /// Whether values are kept out of what is found.
    secret: bool,
    pod: bool,
}

/// Where the walk is, and what is known of that place.
#[derive(Clone, Copy)]
struct At<'p> {
    path: &'p Path<'p>,
    region: Region,
    /// Whether the server knows this part's type and leaves out its zero values.
    typed: bool,
    ownership: Ownership,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
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
enum Ownership {
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
    fn new(wanted: &Map<String, Value>) -> Self {
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

    fn root(&self) -> At<'static> {
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

    fn fields(
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
            (Value::Object(wanted), Some(Value::Object(_))) if wanted.is_empty() && !is_selector(at) => {}
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
    fn nothing_owned(&mut self, wanted: &Map<String, Value>, live: &Value) {
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
            let filled = self.built_in && at.region != Region::Choices && filled_in(name, have, live, at);
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
        let field = at.path.field();
        match at.region {
            Region::Amounts => true,
            Region::Fields if self.quantities => match field {
                Some("sizeLimit" | "divisor" | "averageValue") => true,
                Some("value") => at.path.above.and_then(Path::field) == Some("target"),
                _ => false,
            },
            _ => false,
        }
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

/// Which item of a live list each wanted item is. Short lists need no heap.
struct Places {
    few: [Place; Places::FEW],
    many: Vec<Place>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The record does not name this item.
    Unknown,
    /// The record names it, and the live list lacks it.
    Absent,
    At(usize),
}

impl Places {
    const FEW: usize = 16;

    fn new(items: usize) -> Self {
        let many = if items > Places::FEW { vec![Place::Unknown; items] } else { Vec::new() };
        Places { few: [Place::Unknown; Places::FEW], many }
    }

    fn all(&self) -> &[Place] {
        if self.many.is_empty() { &self.few } else { &self.many }
    }

    fn get(&self, index: usize) -> Place {
        self.all()[index]
    }

    fn set(&mut self, index: usize, place: Place) {
        if self.many.is_empty() { self.few[index] = place } else { self.many[index] = place }
    }

    /// The wanted item with this key that has no place yet. The search begins at `hint`: records and lists are
    /// often in the same order.
    fn find_wanted(&self, key: ListKey, wanted: &[Value], hint: usize, typed: bool) -> Option<usize> {
        let mut candidates = (0..wanted.len())
            .map(|offset| (hint + offset) % wanted.len())
            .filter(|index| self.get(*index) == Place::Unknown);
        let exact = candidates.clone().find(|index| key.fit(&wanted[*index], typed) == Fit::Exact);
        exact.or_else(|| candidates.find(|index| key.fit(&wanted[*index], typed) == Fit::Partial))
    }

    fn in_order(&self) -> bool {
        let places = self.all().iter().filter_map(|place| match place {
            Place::At(index) => Some(*index),
            _ => None,
        });
        places.is_sorted()
    }
}

fn find_item(key: ListKey, live: &[Value], hint: usize) -> Option<usize> {
    let candidates = (hint..live.len()).chain(0..hint.min(live.len()));
    candidates.into_iter().find(|index| key.fit(&live[*index], true) == Fit::Exact)
}

/// The field that tells the items of both lists apart, if one of the usual ones does.
fn guessed_key(wanted: &[Value], live: &[Value]) -> Option<&'static str> {
    let tells_apart = |key: &str| {
        wanted
            .iter()
            .chain(live)
            .all(|item| item.get(key).is_some_and(|value| value.is_string() || value.is_number()))
            && wanted
                .iter()
                .enumerate()
                .all(|(index, item)| item_with(key, &item[key], &wanted[..index]).is_none())
    };
    GUESSED_KEYS.into_iter().find(|key| !wanted.is_empty() && tells_apart(key))
}

fn item_with<'a>(key: &str, value: &Value, list: &'a [Value]) -> Option<&'a Value> {
    list.iter().find(|item| item.get(key).is_some_and(|other| same_scalar(value, other)))
}

fn contains(list: &[Value], element: &Value) -> bool {
    list.iter().any(|other| same_scalar(other, element) || other == element)
}

/// Whether a pod's tolerations are the wanted ones and those that admission puts on every pod.
fn admitted(wanted: &[Value], live: &[Value]) -> bool {
    let covered = |want: &Value, have: &Value| match want {
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            have.get(name).map_or_else(|| may_be_left_out(value, true), |other| same_scalar(value, other))
        }),
        _ => false,
    };
    let by_admission = |have: &Value| {
        have.get("key").and_then(Value::as_str).is_some_and(|key| key.starts_with("node.kubernetes.io/"))
    };
    wanted.iter().all(|want| live.iter().any(|have| covered(want, have)))
        && live.iter().all(|have| by_admission(have) || wanted.iter().any(|want| covered(want, have)))
}

/// Whether a map's keys are chosen by users, so that each of them counts and values are text.
fn chosen_by_users(field: &str, built_in: bool) -> bool {
    match field {
        "labels" | "annotations" | "matchLabels" | "nodeSelector" => true,
        "data" | "stringData" | "binaryData" | "parameters" => built_in,
        field => built_in && field.ends_with("elector"),
    }
}

/// Whether a map of a built-in kind holds quantities by resource.
fn holds_amounts(field: &str) -> bool {
    matches!(field, "limits" | "requests" | "capacity" | "allocatable" | "hard" | "used" | "podFixed")
}

/// Whether a map picks objects. Such maps have one owner, however few entries they have.
fn is_selector(at: At) -> bool {
    at.path.field().is_some_and(|field| field == "matchLabels" || field.ends_with("elector"))
}

/// Whether a built-in kind's server-side defaults put this entry into a live map that has one owner.
fn filled_in(field: &str, value: &Value, live: &Map<String, Value>, at: At) -> bool {
    match (field, value) {
        ("namespaceSelector" | "objectSelector", value) => is_empty(value),
        // Claim templates of a StatefulSet carry what a claim of its own would.
        ("status", Value::Object(_)) => true,
        ("apiVersion", _) if !matches!(at.path.field(), None | Some("fieldRef")) => false,
        // A LimitRange's defaults follow from its limits.
        ("default", value) => live.get("max") == Some(value),
        ("defaultRequest", value) => ["default", "min"].iter().any(|field| live.get(*field) == Some(value)),
        ("count", Value::Number(number)) => number.as_i64() == Some(1),
        ("expirationSeconds", Value::Number(number)) => number.as_i64() == Some(3600),
        (field, Value::String(text)) => FILLED_IN.contains(&(field, text)),
        _ => false,
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

/// Whether the server may store a value by leaving it out. Built-in kinds leave out what is zero or empty.
fn may_be_left_out(value: &Value, typed: bool) -> bool {
    match value {
        Value::Null => true,
        _ if !typed => false,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.values().all(|value| may_be_left_out(value, typed)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Equal scalars; a whole number equals the integer.
fn same_scalar(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Object(_) | Value::Array(_), _) => false,
        (left, right) => left == right,
    }
}

fn same_number(left: &Number, right: &Number) -> bool {
    left == right || ((left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64())
}

fn same_amount(left: &Value, right: &Value) -> bool {
    match (Quantity::from_json(left), Quantity::from_json(right)) {
        (Some(left), Some(right)) => left == right,
        _ => false,
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
