//! A hook's answer: what it wants, checked before anyone acts on it.
//!
//! A field that is wrong is named, with its index in a list. Nothing of a wrong answer is used.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use tracing::debug;

use crate::config::spec::{Decoding, ResourceName, Role};
use crate::hook::origin::Origin;
use crate::hook::wire::Call;
use crate::object::selector::{Selector, SelectorError};
use crate::problem::{Place, Problem, floor, nearest, shown};

/// Longest delay that is kept: it can be added to any clock without overflow.
const LONGEST_RESYNC: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// What a hook wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// `None` is an absent or null status.
    pub status: Option<Map<String, Value>>,
    pub children: Vec<DesiredChild>,
    /// When to visit the parent again, if nothing else does.
    pub resync_after: Option<Duration>,
    pub finalized: bool,
    /// Where the author wrote the status, when a template of ours made it.
    pub status_origin: Option<Origin>,
    /// What a decorator makes of its target's labels; `None` removes one.
    pub labels: BTreeMap<String, Option<String>>,
    pub annotations: BTreeMap<String, Option<String>>,
    /// What a customize hook wants to see.
    pub related: Vec<RelatedRule>,
    /// Where the author wrote that, when a template of ours made it.
    pub related_origin: Option<Origin>,
}

/// A child as the hook wants it: `apiVersion`, `kind` and `metadata.name` are there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DesiredChild {
    pub object: Map<String, Value>,
    /// Where the author wrote it, when a template of ours made it.
    pub place: Option<Place>,
    /// The same for each of its fields.
    pub origin: Option<Origin>,
}

/// Objects that a hook wants to see beside its children.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RelatedRule {
    pub resource: ResourceName,
    pub label_selector: Option<Selector>,
    pub namespace_selector: Option<Selector>,
    pub namespace: Option<String>,
    pub names: Vec<String>,
}

impl Answer {
    /// Decodes the body of an answer.
    ///
    /// An answer without `children` wants none, as Metacontroller has it, but only if it says something else that
    /// the protocol knows: `{"status":{}}` means it, while `{}`, `null` and `{"error":"x"}` come from a hook that broke, and
    /// would delete every child. For the same reason `children: null` is refused, as is an answer whose only list of
    /// children is under a misspelt name, even where unknown fields are let pass. On finalize null is taken
    /// as none: hooks in Go write an empty list so, and there children are meant to go.
    pub(crate) fn decode(role: Role, call: Call, decoding: Decoding, body: &[u8]) -> Result<Answer, Problem> {
        let (fields, repeated) = parse(body).map_err(Problem::brief)?;
        if decoding == Decoding::Strict
            && let Some(path) = repeated
        {
            return Err(Problem::new(format!("`{path}` is there twice")).brief());
        }
        Answer::from_fields(role, call, decoding, fields)
    }

    /// Checks an answer that is already JSON.
    pub(crate) fn from_fields(
        role: Role,
        call: Call,
        decoding: Decoding,
        fields: Map<String, Value>,
    ) -> Result<Answer, Problem> {
        Answer::checked(role, call, decoding, fields).map_err(Problem::brief)
    }

    fn checked(
        role: Role,
        call: Call,
        decoding: Decoding,
        mut fields: Map<String, Value>,
    ) -> Result<Answer, Problem> {
        check_names(role, call, decoding, &fields)?;
        let mut take = |key: &str| fields.shift_remove(key);
        if call == Call::Customize {
            let related = related(take("relatedResources"), decoding)?;
            return Ok(Answer { related, ..Answer::default() });
        }
        Ok(Answer {
            status: status(take("status"))?,
            children: children(take(list_of(role)), list_of(role), call)?,
            labels: marks(take("labels"), "labels", role)?,
            annotations: marks(take("annotations"), "annotations", role)?,
            resync_after: resync_after(take("resyncAfterSeconds"))?,
            finalized: finalized(take("finalized"))?,
            ..Answer::default()
        })
    }
}

/// Refuses unknown fields where that is asked for, and an answer that leaves in doubt whether it wants nothing.
fn check_names(
    role: Role,
    call: Call,
    decoding: Decoding,
    fields: &Map<String, Value>,
) -> Result<(), Problem> {
    let known = known_fields(role, call);
    let (list, has_list) = (known[0], fields.contains_key(known[0]));
    for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
        let meant = nearest(key, known.iter().copied());
        if decoding == Decoding::Strict || (!has_list && meant == Some(list)) {
            return Err(unknown_field(key, meant, known));
        }
        debug!(field = %key, "a hook's answer has an unknown field");
    }
    if has_list || known.iter().any(|key| fields.contains_key(*key)) {
        return Ok(());
    }
    Err(Problem::new(format!("the answer has no `{list}`"))
        .expected(format!("an object with {}", listed(known)))
        .hint(format!("answer `\"{list}\": []` when none is wanted")))
}

/// The fields of an answer, the list that must not be missing first.
pub(super) fn known_fields(role: Role, call: Call) -> &'static [&'static str] {
    match (call, role) {
        (Call::Customize, _) => &["relatedResources"],
        (_, Role::Composite) => &["children", "status", "resyncAfterSeconds", "finalized"],
        (_, Role::Decorator) => {
            &["attachments", "labels", "annotations", "status", "resyncAfterSeconds", "finalized"]
        }
    }
}

fn status(value: Option<Value>) -> Result<Option<Map<String, Value>>, Problem> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(status)) => Ok(Some(status)),
        Some(other) => Err(wrong("status", &other, "an object")),
    }
}

/// The field that lists the objects to make.
pub(super) fn list_of(role: Role) -> &'static str {
    match role {
        Role::Composite => "children",
        Role::Decorator => "attachments",
    }
}

/// Labels or annotations to set, or to remove where they are null. Only a decorator's answer has them.
fn marks(value: Option<Value>, field: &str, role: Role) -> Result<BTreeMap<String, Option<String>>, Problem> {
    let fields = match value {
        Some(Value::Object(fields)) if role == Role::Decorator => fields,
        Some(other) if role == Role::Decorator && !other.is_null() => {
            return Err(wrong(field, &other, "an object"));
        }
        _ => return Ok(BTreeMap::new()),
    };
    let mark = |(name, value)| match value {
        Value::String(text) => Ok((name, Some(text))),
        Value::Null => Ok((name, None)),
        other => Err(wrong(&format!("{field}.{name}"), &other, "a text, or null to remove it")),
    };
    fields.into_iter().map(mark).collect()
}

fn children(value: Option<Value>, list_field: &str, call: Call) -> Result<Vec<DesiredChild>, Problem> {
    let list = match value {
        None => return Ok(Vec::new()),
        Some(Value::Null) if call == Call::Finalize => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => {
            return Err(wrong(list_field, &other, "a list").hint("answer `[]` when no child is wanted"));
        }
    };
    list.into_iter().enumerate().map(|(index, child)| desired(list_field, index, child)).collect()
}

fn desired(list_field: &str, index: usize, child: Value) -> Result<DesiredChild, Problem> {
    let path = format!("{list_field}[{index}]");
    let Value::Object(object) = child else {
        return Err(wrong(&path, &child, "an object"));
    };
    let (_, kind) = (text(&object, "apiVersion", &path)?, text(&object, "kind", &path)?);
    let metadata = match object.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(wrong(&format!("{path}.metadata"), other, "an object")),
        None => return Err(Problem::new(format!("`{path}` ({kind}) has no `metadata`"))),
    };
    if !metadata.contains_key("name") && metadata.contains_key("generateName") {
        return Err(Problem::new(format!(
            "`{path}` ({kind}) has `metadata.generateName` and no `metadata.name`"
        ))
        .hint("name it: under a generated name it would be made anew at every sync"));
    }
    text(metadata, "name", &format!("{path}.metadata"))?;
    optional_text(metadata, "namespace", &format!("{path}.metadata"))?;
    Ok(DesiredChild { object, place: None, origin: None })
}

fn resync_after(value: Option<Value>) -> Result<Option<Duration>, Problem> {
    let seconds = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64().unwrap_or_default(),
        Some(other) => return Err(wrong("resyncAfterSeconds", &other, "a number")),
    };
    let delay =
        Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST_RESYNC.as_secs_f64())).unwrap_or_default();
    Ok((delay > Duration::ZERO).then_some(delay))
}

fn finalized(value: Option<Value>) -> Result<bool, Problem> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(finalized)) => Ok(finalized),
        Some(other) => Err(wrong("finalized", &other, "`true` or `false`")),
    }
}

pub(super) const RULE_FIELDS: &[&str] =
    &["apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names"];

fn related(value: Option<Value>, decoding: Decoding) -> Result<Vec<RelatedRule>, Problem> {
    let list = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong("relatedResources", &other, "a list")),
    };
    list.into_iter().enumerate().map(|(index, rule)| related_rule(index, rule, decoding)).collect()
}

fn related_rule(index: usize, rule: Value, decoding: Decoding) -> Result<RelatedRule, Problem> {
    let path = format!("relatedResources[{index}]");
    let Value::Object(rule) = rule else {
        return Err(wrong(&path, &rule, "an object"));
    };
    let unknown = rule.keys().find(|key| !RULE_FIELDS.contains(&key.as_str()));
    if let (Decoding::Strict, Some(key)) = (decoding, unknown) {
        let meant = nearest(key, RULE_FIELDS.iter().copied());
        return Err(unknown_field(&format!("{path}.{key}"), meant, RULE_FIELDS));
    }
    let rule = RelatedRule {
        resource: ResourceName {
            api_version: text(&rule, "apiVersion", &path)?.into(),
            resource: text(&rule, "resource", &path)?.into(),
        },
        label_selector: selector(&rule, "labelSelector", &path)?,
        namespace_selector: selector(&rule, "namespaceSelector", &path)?,
        namespace: optional_text(&rule, "namespace", &path)?.map(String::from),
        names: names(&rule, &path)?,
    };
    let selects = rule.label_selector.is_some() || rule.namespace_selector.is_some();
    if !rule.names.is_empty() && selects {
        return Err(Problem::new(format!("`{path}` has `names` and a selector"))
            .expected("objects by name or by selector"));
    }
    if rule.namespace.is_some() && rule.namespace_selector.is_some() {
        return Err(Problem::new(format!("`{path}` has `namespace` and `namespaceSelector`"))
            .expected("one of the two"));
    }
    Ok(rule)
}

fn selector(rule: &Map<String, Value>, key: &str, path: &str) -> Result<Option<Selector>, Problem> {
    let Some(written) = rule.get(key).filter(|written| !written.is_null()) else { return Ok(None) };
    let wrong = |error: SelectorError| {
        let dot = if error.path.is_empty() { "" } else { "." };
        Problem::new(format!("`{path}.{key}{dot}{}`: {}", error.path, error.message))
    };
    Selector::from_json(written).map(Some).map_err(wrong)
}

fn names(rule: &Map<String, Value>, path: &str) -> Result<Vec<String>, Problem> {
    let list = match rule.get("names") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(&format!("{path}.names"), other, "a list")),
    };
    let name = |(index, name): (usize, &Value)| match name {
        Value::String(name) if !name.is_empty() => Ok(name.clone()),
        other => Err(wrong(&format!("{path}.names[{index}]"), other, "a name")),
    };
    list.iter().enumerate().map(name).collect()
}

/// A text that must be there.
fn text<'v>(object: &'v Map<String, Value>, key: &str, path: &str) -> Result<&'v str, Problem> {
    match object.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(other) => Err(wrong(&format!("{path}.{key}"), other, "a text that is not empty")),
        None => Err(Problem::new(format!("`{path}` has no `{key}`"))),
    }
}

/// A text that may be absent; null and the empty text count as absent.
fn optional_text<'v>(
    object: &'v Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<Option<&'v str>, Problem> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err(wrong(&format!("{path}.{key}"), other, "a text")),
    }
}

fn wrong(path: &str, found: &Value, expected: &str) -> Problem {
    Problem::new(format!("`{path}` is {}", shown(found))).expected(expected)
}

fn unknown_field(path: &str, meant: Option<&str>, known: &[&str]) -> Problem {
    let problem = Problem::new(format!("unknown field `{path}`"));
    match meant {
        Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
        None => problem.expected(listed(known)),
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The fields of the answer, and the path of the first that is there twice, at the top or anywhere in `status`.
fn parse(body: &[u8]) -> Result<(Map<String, Value>, Option<String>), Problem> {
    if body.trim_ascii().is_empty() {
        return Err(Problem::new("the answer is empty").expected("a JSON object"));
    }
    let mut repeated = None;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let watch = Watch { path: String::new(), repeated: &mut repeated };
    let value = watch.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    match value {
        Ok(Value::Object(fields)) => Ok((fields, repeated)),
        // Metacontroller reads null as an empty object.
        Ok(Value::Null) => Ok((Map::new(), repeated)),
        Ok(other) => Err(Problem::new(format!("the answer is {}", shown(&other))).expected("a JSON object")),
        Err(error) => Err(Problem::new(format!("the answer is not JSON: {error}"))),
    }
}

/// Bytes of a key that a path is made of. A path is made for each of the keys, of which an answer may have a million.
const STEP: usize = 100;

/// Reads a value and notes the path of the first repeated key. Looks into no children: the protocol leaves them to the API server.
struct Watch<'r> {
    path: String,
    repeated: &'r mut Option<String>,
}

impl Watch<'_> {
    fn inner(&mut self, step: &str) -> Watch<'_> {
        let dot = if self.path.is_empty() || step.starts_with('[') { "" } else { "." };
        let step = &step[..floor(step, STEP)];
        Watch { path: format!("{}{dot}{step}", self.path), repeated: self.repeated }
    }

    fn is_watched(&self, key: &str) -> bool {
        !self.path.is_empty() || key == "status" || key == "relatedResources"
    }
}

impl<'de> DeserializeSeed<'de> for Watch<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Watch<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.inner(&format!("[{}]", values.len())))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let inner = self.inner(&key);
            if fields.contains_key(&key) {
                let path = inner.path.clone();
                inner.repeated.get_or_insert(path);
            }
            let value = if self.is_watched(&key) {
                map.next_value_seed(self.inner(&key))?
            } else {
                map.next_value()?
            };
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}
