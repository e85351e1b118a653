//! Which labels a LabelSelector picks.

mod text;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use crate::object::validity;
use crate::problem::nearest;

/// A LabelSelector, read and checked. Two that read differently and are stated alike are equal: `app In [a]` is
/// `app=a`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Selector {
    requirements: BTreeSet<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
    /// The label is a number above this one. Only the text form has this and the next.
    Above(i64),
    Below(i64),
}

/// What a selector picks by.
#[derive(Clone, Copy)]
enum Sort {
    Labels,
    Annotations,
}

impl Sort {
    fn equalities(self) -> &'static str {
        match self {
            Sort::Labels => "matchLabels",
            Sort::Annotations => "matchAnnotations",
        }
    }

    fn check_value(self, path: &str, text: &str) -> Result<(), SelectorError> {
        match self {
            Sort::Labels => validity::label_value(text)
                .map_err(|why| SelectorError::new(path, format!("value `{text}` {why}"))),
            Sort::Annotations => Ok(()),
        }
    }
}

/// Labels by key, whatever holds them.
pub(crate) trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

/// Why a value is not a LabelSelector: where in it, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectorError {
    /// Path below the selector, as `matchExpressions[0].operator`; empty for the selector itself.
    pub path: String,
    pub message: String,
}

impl Selector {
    /// Picks every object.
    pub(crate) fn everything() -> Selector {
        Selector::default()
    }

    /// Picks the objects with this one label.
    pub(crate) fn label(key: &str, value: &str) -> Selector {
        Selector { requirements: BTreeSet::from([Requirement::equals(key, value)]) }
    }

    /// Reads a LabelSelector. `null` and `{}` pick everything: whether that is allowed is the caller's to say.
    pub(crate) fn from_json(value: &Value) -> Result<Selector, SelectorError> {
        Selector::read(value, Sort::Labels)
    }

    /// Reads a selector of annotations, whose values may be any text.
    pub(crate) fn of_annotations(value: &Value) -> Result<Selector, SelectorError> {
        Selector::read(value, Sort::Annotations)
    }

    fn read(value: &Value, sort: Sort) -> Result<Selector, SelectorError> {
        let empty = Map::new();
        let fields = match value {
            Value::Null => &empty,
            Value::Object(fields) => fields,
            other => return Err(SelectorError::expected("", "an object", other)),
        };
        let mut requirements = BTreeSet::new();
        for (field, value) in fields {
            match (field.as_str(), value) {
                (_, Value::Null) => {}
                (field, value) if field == sort.equalities() => {
                    read_equalities(value, sort, &mut requirements)?
                }
                ("matchExpressions", value) => read_expressions(value, sort, &mut requirements)?,
                (field, _) => return Err(unknown_field(field, sort)),
            }
        }
        Ok(Selector { requirements })
    }

    /// Reads the text form: `app=db,tier in (a,b),!old`. The empty text picks everything.
    pub(crate) fn from_text(text: &str) -> Result<Selector, String> {
        text::parse(text)
    }

    pub(crate) fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }

    /// The first requirement that these labels don't meet, as the selector writes it.
    pub(crate) fn unmet(&self, labels: &(impl Labels + ?Sized)) -> Option<String> {
        self.requirements.iter().find(|requirement| !requirement.holds(labels)).map(Requirement::to_string)
    }

    /// Whether no labels can meet both, as far as one label tells.
    pub(crate) fn excludes(&self, other: &Selector) -> bool {
        let pairs =
            |one: &Requirement| other.requirements.iter().any(|two| one.excludes(two) || two.excludes(one));
        self.requirements.iter().any(pairs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

/// The form of the API's `labelSelector` parameter, keys in order: `app=db,tier in (a,b),!old`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Requirement {
    fn equals(key: &str, value: &str) -> Requirement {
        Requirement { key: key.into(), test: Test::In(BTreeSet::from([value.to_string()])) }
    }

    fn excludes(&self, other: &Requirement) -> bool {
        self.key == other.key
            && match (&self.test, &other.test) {
                (Test::In(one), Test::In(two)) => one.is_disjoint(two),
                (Test::In(one), Test::NotIn(two)) => one.is_subset(two),
                (Test::In(_) | Test::Exists | Test::Above(_) | Test::Below(_), Test::DoesNotExist) => true,
                _ => false,
            }
    }

    fn holds(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let label = labels.label(&self.key);
        match &self.test {
            Test::In(values) => label.is_some_and(|label| values.contains(label)),
            Test::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
            Test::Exists => label.is_some(),
            Test::DoesNotExist => label.is_none(),
            Test::Above(bound) => number(label).is_some_and(|number| number > *bound),
            Test::Below(bound) => number(label).is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        match &self.test {
            Test::In(values) if values.len() == 1 => write!(f, "{}={}", self.key, list(values)),
            Test::In(values) => write!(f, "{} in ({})", self.key, list(values)),
            Test::NotIn(values) => write!(f, "{} notin ({})", self.key, list(values)),
            Test::Exists => f.write_str(&self.key),
            Test::DoesNotExist => write!(f, "!{}", self.key),
            Test::Above(bound) => write!(f, "{}>{bound}", self.key),
            Test::Below(bound) => write!(f, "{}<{bound}", self.key),
        }
    }
}

fn number(label: Option<&str>) -> Option<i64> {
    label?.parse().ok()
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(V::as_ref)
    }
}

/// No labels at all.
impl Labels for () {
    fn label(&self, _: &str) -> Option<&str> {
        None
    }
}

impl SelectorError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> SelectorError {
        SelectorError { path: path.into(), message: message.into() }
    }

    fn expected(path: impl Into<String>, what: &str, found: &Value) -> SelectorError {
        SelectorError::new(path, format!("expected {what}, found {}", kind_of(found)))
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for SelectorError {}

fn read_equalities(
    value: &Value,
    sort: Sort,
    requirements: &mut BTreeSet<Requirement>,
) -> Result<(), SelectorError> {
    let field = sort.equalities();
    let texts = value.as_object().ok_or_else(|| SelectorError::expected(field, "an object", value))?;
    for (key, value) in texts {
        let path = format!("{field}.{key}");
        let text = value.as_str().ok_or_else(|| SelectorError::expected(&path, "a string", value))?;
        validity::label_key(key).map_err(|why| SelectorError::new(&path, format!("key `{key}` {why}")))?;
        sort.check_value(&path, text)?;
        requirements.insert(Requirement::equals(key, text));
    }
    Ok(())
}

fn read_expressions(
    value: &Value,
    sort: Sort,
    requirements: &mut BTreeSet<Requirement>,
) -> Result<(), SelectorError> {
    let list =
        value.as_array().ok_or_else(|| SelectorError::expected("matchExpressions", "a list", value))?;
    for (index, expression) in list.iter().enumerate() {
        requirements.insert(read_expression(&format!("matchExpressions[{index}]"), expression, sort)?);
    }
    Ok(())
}

fn read_expression(path: &str, expression: &Value, sort: Sort) -> Result<Requirement, SelectorError> {
    let fields =
        expression.as_object().ok_or_else(|| SelectorError::expected(path, "an object", expression))?;
    if let Some(unknown) =
        fields.keys().find(|field| !["key", "operator", "values"].contains(&field.as_str()))
    {
        return Err(SelectorError::new(
            path,
            format!("unknown field `{unknown}`, expected `key`, `operator`, `values`"),
        ));
    }
    let key = text_of(path, "key", fields)?;
    validity::label_key(key)
        .map_err(|why| SelectorError::new(format!("{path}.key"), format!("key `{key}` {why}")))?;
    let values = values_of(path, fields, sort)?;
    let test = read_test(path, text_of(path, "operator", fields)?, values)?;
    Ok(Requirement { key: key.into(), test })
}

fn read_test(path: &str, operator: &str, values: BTreeSet<String>) -> Result<Test, SelectorError> {
    let at_values = |message: &str| Err(SelectorError::new(format!("{path}.values"), message));
    match (operator, values.is_empty()) {
        ("In", false) => Ok(Test::In(values)),
        ("NotIn", false) => Ok(Test::NotIn(values)),
        ("Exists", true) => Ok(Test::Exists),
        ("DoesNotExist", true) => Ok(Test::DoesNotExist),
        ("In" | "NotIn", true) => at_values(&format!("`{operator}` needs at least one value")),
        ("Exists" | "DoesNotExist", false) => at_values(&format!("`{operator}` takes no values")),
        _ => Err(SelectorError::new(
            format!("{path}.operator"),
            format!("unknown operator `{operator}`, expected `In`, `NotIn`, `Exists` or `DoesNotExist`"),
        )),
    }
}

fn text_of<'a>(path: &str, field: &str, fields: &'a Map<String, Value>) -> Result<&'a str, SelectorError> {
    match fields.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(SelectorError::expected(format!("{path}.{field}"), "a string", other)),
        None => Err(SelectorError::new(path, format!("`{field}` is missing"))),
    }
}

fn values_of(path: &str, fields: &Map<String, Value>, sort: Sort) -> Result<BTreeSet<String>, SelectorError> {
    let list = match fields.get("values") {
        None | Some(Value::Null) => return Ok(BTreeSet::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(SelectorError::expected(format!("{path}.values"), "a list", other)),
    };
    list.iter()
        .enumerate()
        .map(|(index, value)| {
            let path = format!("{path}.values[{index}]");
            let text = value.as_str().ok_or_else(|| SelectorError::expected(&path, "a string", value))?;
            sort.check_value(&path, text)?;
            Ok(text.to_string())
        })
        .collect()
}

fn unknown_field(field: &str, sort: Sort) -> SelectorError {
    let equalities = sort.equalities();
    let hint = match nearest(field, [equalities, "matchExpressions"]) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{} belong below `{equalities}`", equalities[5..].to_lowercase()),
    };
    SelectorError::new("", format!("unknown field `{field}`; hint: {hint}"))
}

/// What a JSON value is, for a sentence: "found a number".
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selector(value: Value) -> Selector {
        Selector::from_json(&value).unwrap_or_else(|error| panic!("{error}"))
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn every_requirement_must_hold() {
        let selector = selector(json!({
            "matchLabels": { "app": "db" },
            "matchExpressions": [
                { "key": "tier", "operator": "In", "values": ["a", "b"] },
                { "key": "zone", "operator": "NotIn", "values": ["x"] },
                { "key": "old", "operator": "DoesNotExist" },
                { "key": "name", "operator": "Exists", "values": [] },
            ],
        }));
        let fits = labels(&[("app", "db"), ("tier", "b"), ("name", "")]);
        assert!(selector.matches(&fits));
        for (key, value) in [("app", "web"), ("tier", "c"), ("zone", "x"), ("old", "")] {
            let mut changed = fits.clone();
            changed.insert(key.into(), value.into());
            assert!(!selector.matches(&changed), "{key}={value}");
        }
        assert!(!selector.matches(&labels(&[("app", "db"), ("tier", "b")])));
        assert_eq!(selector.unmet(&labels(&[("app", "db"), ("name", "")])), Some("tier in (a,b)".into()));
    }

    #[test]
    fn annotations_are_picked_by_any_text() {
        let long = "a text, with: spaces/and more than 63 characters, which is no label's value at all";
        let selector = Selector::of_annotations(&json!({
            "matchAnnotations": { "example.com/note": long },
            "matchExpressions": [{ "key": "url", "operator": "In", "values": ["http://a/b?c"] }],
        }))
        .unwrap();
        assert!(selector.matches(&labels(&[("example.com/note", long), ("url", "http://a/b?c")])));
        assert!(!selector.matches(&labels(&[("example.com/note", long)])));
        let error = Selector::of_annotations(&json!({ "matchLabels": {} })).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown field `matchLabels`; hint: annotations belong below `matchAnnotations`"
        );
    }

    #[test]
    fn empty_selector_matches_everything() {
        for value in [json!({}), json!(null), json!({ "matchLabels": null, "matchExpressions": [] })] {
            let selector = selector(value);
            assert!(selector.is_empty() && selector.matches(&()));
        }
        assert!(!Selector::label("app", "db").is_empty());
    }

    #[test]
    fn text_is_the_apis_and_does_not_depend_on_order() {
        let one = selector(json!({
            "matchExpressions": [
                { "key": "tier", "operator": "In", "values": ["b", "a"] },
                { "key": "old", "operator": "DoesNotExist" },
                { "key": "app", "operator": "In", "values": ["db"] },
                { "key": "zone", "operator": "NotIn", "values": ["x"] },
                { "key": "name", "operator": "Exists" },
            ],
        }));
        assert_eq!(one.to_string(), "app=db,name,!old,tier in (a,b),zone notin (x)");
        assert_eq!(
            selector(json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["db"] }] })),
            selector(json!({ "matchLabels": { "app": "db" } }))
        );
        assert_eq!(Selector::everything().to_string(), "");
    }

    #[test]
    fn fault_is_named_with_its_path() {
        let expression = |value: Value| json!({ "matchExpressions": [value] });
        for (value, message) in [
            (json!([]), "expected an object, found a list"),
            (json!({ "app": "db" }), "unknown field `app`; hint: labels belong below `matchLabels`"),
            (json!({ "matchlabels": {} }), "unknown field `matchlabels`; hint: did you mean `matchLabels`?"),
            (json!({ "matchLabels": { "n": 1 } }), "`matchLabels.n`: expected a string, found a number"),
            (
                json!({ "matchLabels": { "n": "a b" } }),
                "`matchLabels.n`: value `a b` must consist of letters, digits, `-`, `_` and `.`",
            ),
            (expression(json!({ "operator": "Exists" })), "`matchExpressions[0]`: `key` is missing"),
            (
                expression(json!({ "key": "a", "operator": "in", "values": ["x"] })),
                "`matchExpressions[0].operator`: unknown operator `in`, expected `In`, `NotIn`, `Exists` or `DoesNotExist`",
            ),
            (
                expression(json!({ "key": "a", "operator": "In" })),
                "`matchExpressions[0].values`: `In` needs at least one value",
            ),
            (
                expression(json!({ "key": "a", "operator": "Exists", "values": ["x"] })),
                "`matchExpressions[0].values`: `Exists` takes no values",
            ),
            (
                expression(json!({ "key": "a", "operator": "In", "values": [1] })),
                "`matchExpressions[0].values[0]`: expected a string, found a number",
            ),
            (
                expression(json!({ "key": "a", "operator": "Exists", "value": ["x"] })),
                "`matchExpressions[0]`: unknown field `value`, expected `key`, `operator`, `values`",
            ),
        ] {
            assert_eq!(Selector::from_json(&value).unwrap_err().to_string(), message);
        }
    }
}
