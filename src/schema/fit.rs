//! Whether an object fits its kind: every misfit, not the first.

use std::collections::HashMap;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use regex_lite::Regex;
use serde_json::{Map, Value};

use crate::object::quantity::Quantity;
use crate::problem::{nearest, shown};
use crate::schema::catalog::Kind;
use crate::schema::misfit::{Misfit, Nature, dotted};
use crate::schema::node::{Additional, INT_OR_STRING, Node, OBJECT_META, QUANTITY, Type, referred};

/// Whether an object is all there, or holds only some fields of one that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    Yes,
    /// Required fields may be absent.
    No,
}

impl Kind {
    /// Every way in which an object of this kind does not fit. `apiVersion` and `kind` are taken as they are.
    pub(crate) fn misfits(&self, object: &Value, whole: Whole) -> Vec<Misfit> {
        let mut fit = Fit { kind: self, whole, path: Vec::new(), found: Vec::new() };
        fit.root(&self.schema, object);
        fit.found
    }

    /// The same for the field at the top of an object that is known by itself, such as `status`. `None` where the kind has no
    /// such field.
    pub(crate) fn misfits_of(&self, field: &str, value: &Value, whole: Whole) -> Option<Vec<Misfit>> {
        let root = self.resolve(&self.schema);
        let node = root.properties.get(field)?;
        let mut fit = Fit { kind: self, whole, path: vec![field.into()], found: Vec::new() };
        fit.node(node, value);
        Some(fit.found)
    }

    /// Whether the schema lets a field be kept, whatever its value.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        let mut node = self.resolve(&self.schema);
        for step in path {
            if let Some(inner) = node.properties.get(*step) {
                node = self.resolve(inner);
            } else {
                return node.keeps_unknown || node.additional_properties.is_some();
            }
        }
        true
    }

    /// Whether the schema says that the field at `path` keeps the value it was made with.
    pub(crate) fn is_fixed(&self, path: &[String]) -> bool {
        let mut node = self.resolve(&self.schema);
        for step in path {
            let inner = node.properties.get(step).or(node.items.as_deref());
            let Some(inner) = inner else { return false };
            node = self.resolve(inner);
            if node.rules.iter().any(|rule| rule.rule.split_whitespace().eq(["self", "==", "oldSelf"])) {
                return true;
            }
        }
        false
    }
}

impl Kind {
    /// Every default that does not fit its own schema, with its path from the schema.
    pub(crate) fn unfit_defaults(&self) -> Vec<Misfit> {
        let mut fit = Fit { kind: self, whole: Whole::Yes, path: Vec::new(), found: Vec::new() };
        fit.defaults(&self.schema);
        fit.found
    }
}

struct Fit<'k> {
    kind: &'k Kind,
    whole: Whole,
    path: Vec<String>,
    found: Vec<Misfit>,
}

impl Fit<'_> {
    fn inside(&mut self, step: impl Into<String>, look: impl FnOnce(&mut Self)) {
        self.path.push(step.into());
        look(self);
        self.path.pop();
    }

    fn say(&mut self, nature: Nature, rest: &str) -> &mut Misfit {
        let misfit = Misfit::new(nature, &self.path, format!("`{}` {rest}", dotted(&self.path)));
        self.found.push(misfit);
        self.found.last_mut().expect("one was put there")
    }

    fn defaults(&mut self, node: &Node) {
        if let Some(value) = &node.default {
            let path = self.path.clone();
            let mut fit =
                Fit { kind: self.kind, whole: self.whole, path: vec!["default".into()], found: Vec::new() };
            fit.node(node, value);
            self.found.extend(
                fit.found
                    .into_iter()
                    .map(|misfit| Misfit { path: [path.clone(), misfit.path].concat(), ..misfit }),
            );
        }
        for (name, inner) in &node.properties {
            self.inside("properties", |fit| fit.inside(name, |fit| fit.defaults(inner)));
        }
        if let Some(items) = &node.items {
            self.inside("items", |fit| fit.defaults(items));
        }
        if let Some(Additional::Values(values)) = &node.additional_properties {
            self.inside("additionalProperties", |fit| fit.defaults(values));
        }
    }

    /// An object with `apiVersion`, `kind` and `metadata`, whether its schema says so or not.
    fn root(&mut self, node: &Node, value: &Value) {
        let node = self.kind.resolve(node);
        let Value::Object(fields) = value else { return self.typed(node, value) };
        let own = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata");
        if let (Some(metadata), Some(schema)) =
            (fields.get("metadata"), self.kind.definitions.get(OBJECT_META))
        {
            self.inside("metadata", |fit| fit.node(schema, metadata));
        }
        self.fields(node, fields, own);
    }

    /// An object of any kind inside another says what it is.
    fn embedded(&mut self, node: &Node, value: &Value) {
        let absent = |name: &&str| value.is_object() && value.get(*name).is_none_or(Value::is_null);
        ["apiVersion", "kind"].iter().filter(|name| absent(name)).for_each(|name| self.missing(name));
        self.root(node, value);
    }

    fn node(&mut self, node: &Node, value: &Value) {
        let name = node.reference.as_deref().map(referred);
        let node = self.kind.resolve(node);
        match (name, node.format.as_deref()) {
            _ if value.is_null() && node.nullable => {}
            (Some(QUANTITY), _) => self.quantity(value),
            (Some(INT_OR_STRING), _) | (_, Some("int-or-string")) => self.int_or_string(node, value),
            _ if node.int_or_string => self.int_or_string(node, value),
            _ if node.embedded => self.embedded(node, value),
            _ => self.typed(node, value),
        }
    }

    fn typed(&mut self, node: &Node, value: &Value) {
        match (node.kind, value) {
            (None, Value::Object(fields)) if !node.properties.is_empty() => {
                self.fields(node, fields, |_| false)
            }
            (None, _) => {}
            (Some(Type::Object), Value::Object(fields)) => self.fields(node, fields, |_| false),
            (Some(Type::Array), Value::Array(items)) => self.items(node, items),
            (Some(Type::String), Value::String(text)) => self.text(node, text),
            (Some(Type::Boolean), Value::Bool(_)) => {}
            (Some(Type::Integer), Value::Number(number)) if is_whole(value) => {
                self.whole_number(node, number.as_f64().unwrap_or_default(), value)
            }
            (Some(Type::Number), Value::Number(number)) => {
                self.bounds(node, number.as_f64().unwrap_or_default(), value)
            }
            (Some(kind), _) => self.wrong_type(kind, value),
        }
    }

    fn wrong_type(&mut self, kind: Type, value: &Value) {
        let hint = match (kind, value) {
            (Type::String, Value::Bool(_) | Value::Number(_)) => Some("put it in quotes"),
            (Type::Integer | Type::Number, Value::String(text)) if text.parse().is_ok_and(f64::is_finite) => {
                Some("take the quotes away, or write `| int` behind the expression")
            }
            (Type::Boolean, Value::String(text)) if matches!(&**text, "true" | "false") => {
                Some("take the quotes away")
            }
            (Type::Integer, Value::Number(_)) => Some("`//` divides whole numbers, `| round | int` rounds"),
            _ => None,
        };
        let misfit = self.say(Nature::Type, &format!("is {}", shown(value)));
        misfit.expected = Some(kind.in_words().into());
        misfit.hint = hint.map(String::from);
    }

    fn fields(&mut self, node: &Node, fields: &Map<String, Value>, skipped: impl Fn(&str) -> bool) {
        for (name, value) in fields.iter().filter(|(name, _)| !skipped(name)) {
            let known = node.properties.get(name);
            self.inside(name, |fit| match (known, &node.additional_properties) {
                (Some(inner), _) if value.is_null() && !fit.kind.resolve(inner).nullable => fit.null(),
                (Some(inner), _) => fit.node(inner, value),
                (None, Some(Additional::Values(_))) if value.is_null() => fit.null(),
                (None, Some(Additional::Values(inner))) => fit.node(inner, value),
                (None, Some(Additional::Allowed(true))) => {}
                (None, _) if node.keeps_unknown || fit.is_free(node) => {}
                (None, _) => fit.unknown(node, name),
            });
        }
        if self.whole == Whole::Yes {
            for name in node.required.iter().filter(|name| fields.get(*name).is_none_or(Value::is_null)) {
                if !skipped(name) {
                    self.missing(name);
                }
            }
        }
    }

    /// A map of a built-in kind that says nothing of its fields holds any.
    fn is_free(&self, node: &Node) -> bool {
        self.kind.built_in && node.properties.is_empty()
    }

    fn null(&mut self) {
        let misfit = self.say(Nature::Null, "is null, which means that it is left out");
        misfit.hint =
            Some("write `{}`, `[]` or `\"\"` for an empty one, or leave the line out with `if`".into());
    }

    fn unknown(&mut self, node: &Node, name: &str) {
        let near = nearest(name, node.properties.keys().map(String::as_str));
        let known: Vec<String> = node.properties.keys().map(|name| format!("`{name}`")).collect();
        let mut misfit =
            Misfit::new(Nature::Unknown, &self.path, format!("unknown field `{}`", dotted(&self.path)));
        misfit = match near {
            Some(near) => misfit.hint(format!("did you mean `{near}`?")),
            None if known.is_empty() => misfit.expected("an empty map"),
            None if known.len() <= 12 => misfit.expected(known.join(", ")),
            None => misfit,
        };
        self.found.push(misfit);
    }

    fn missing(&mut self, name: &str) {
        let message = match self.path.is_empty() {
            true => format!("`{name}` is missing"),
            false => format!("`{}` has no `{name}`", dotted(&self.path)),
        };
        self.found.push(Misfit::new(Nature::Missing, &self.path, message));
    }

    fn items(&mut self, node: &Node, items: &[Value]) {
        self.count(items.len(), node.min_items, node.max_items, "elements");
        let Some(inner) = node.items.as_deref() else { return };
        for (index, item) in items.iter().enumerate() {
            self.inside(index.to_string(), |fit| fit.node(inner, item));
        }
        match node.list_type.as_deref() {
            Some("map") => self.repeated(items, |item| key_of(&node.list_keys, item)),
            Some("set") => self.repeated(items, |item| item.as_str().map(|text| format!("`{text}`"))),
            _ => {}
        }
    }

    fn repeated(&mut self, items: &[Value], key: impl Fn(&Value) -> Option<String>) {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let Some(key) = key(item) else { continue };
            let Some(first) = seen.get(&key) else {
                seen.insert(key, index);
                continue;
            };
            let list = dotted(&self.path);
            let message = format!("`{list}[{index}]` repeats `{list}[{first}]`: both have {key}");
            let path = |index: usize| [&self.path[..], &[index.to_string()]].concat();
            let mut misfit = Misfit::new(Nature::Repeated, &path(index), message);
            misfit.other = Some(path(*first));
            self.found.push(misfit.hint("the API server refuses the whole object: each key once"));
        }
    }

    fn text(&mut self, node: &Node, text: &str) {
        self.one_of(node, &Value::String(text.into()));
        self.count(text.chars().count(), node.min_length, node.max_length, "characters");
        if let Some(pattern) = &node.pattern
            // A pattern that only Go's engine reads is the API server's to check.
            && let Ok(regex) = Regex::new(pattern)
            && !regex.is_match(text)
        {
            self.value(&Value::String(text.into()), format!("a text that matches `{pattern}`"));
        }
        match node.format.as_deref() {
            Some("byte") if BASE64.decode(text).is_err() => {
                let misfit = self.say(Nature::Value, "is not base64");
                misfit.hint = Some("write `| b64encode` behind the expression, or use `stringData`".into());
            }
            Some("date-time") if Timestamp::from_str(text).is_err() => {
                self.value(&Value::String(text.into()), "a time such as `2026-11-30T17:00:00Z`".into());
            }
            _ => {}
        }
    }

    fn whole_number(&mut self, node: &Node, number: f64, value: &Value) {
        let range = if node.format.as_deref() == Some("int32") { 32 } else { 64 };
        let fits = value.as_i64().is_some_and(|whole| range == 64 || i32::try_from(whole).is_ok());
        if !fits && value.as_f64().is_some_and(|float| float.abs() > f64::from(i32::MAX)) {
            self.value(value, format!("a whole number of {range} bits"));
        }
        self.bounds(node, number, value);
    }

    fn bounds(&mut self, node: &Node, number: f64, value: &Value) {
        self.one_of(node, value);
        let low = node.minimum.filter(|low| number < *low || (node.exclusive_minimum && number == *low));
        let high = node.maximum.filter(|high| number > *high || (node.exclusive_maximum && number == *high));
        match (low, high) {
            (Some(low), _) => self.value(value, format!("{low} or more")),
            (_, Some(high)) => self.value(value, format!("{high} or less")),
            _ => {}
        }
    }

    /// Built-in kinds take an empty text for the default.
    fn one_of(&mut self, node: &Node, value: &Value) {
        let left_out = self.kind.built_in && value == "";
        if node.allowed.is_empty() || node.allowed.contains(value) || left_out {
            return;
        }
        let allowed: Vec<&str> = node.allowed.iter().filter_map(Value::as_str).collect();
        let near = value.as_str().and_then(|text| nearest(text, allowed)).map(String::from);
        let listed: Vec<String> = node.allowed.iter().map(|value| format!("`{}`", plain(value))).collect();
        let misfit = self.say(Nature::Value, &format!("is {}", shown(value)));
        misfit.expected = Some(listed.join(", "));
        misfit.hint = near.map(|near| format!("did you mean `{near}`?"));
    }

    fn count(&mut self, count: usize, least: Option<usize>, most: Option<usize>, what: &str) {
        let expected = match (least.filter(|least| count < *least), most.filter(|most| count > *most)) {
            (Some(least), _) => format!("at least {least}"),
            (_, Some(most)) => format!("at most {most}"),
            _ => return,
        };
        self.say(Nature::Value, &format!("has {count} {what}")).expected = Some(expected);
    }

    fn value(&mut self, value: &Value, expected: String) {
        self.say(Nature::Value, &format!("is {}", shown(value))).expected = Some(expected);
    }

    fn quantity(&mut self, value: &Value) {
        let expected = "an amount such as `100m`, `1.5` or `2Gi`";
        match value {
            Value::String(_) | Value::Number(_) if Quantity::from_json(value).is_some() => {}
            Value::String(_) => self.value(value, expected.into()),
            _ => self.say(Nature::Type, &format!("is {}", shown(value))).expected = Some(expected.into()),
        }
    }

    fn int_or_string(&mut self, node: &Node, value: &Value) {
        match value {
            Value::String(text) if self.kind.built_in && is_digits(text) => {
                let misfit = self
                    .say(Nature::QuotedNumber, &format!("is {}: digits in quotes are a name", shown(value)));
                misfit.hint = Some("take the quotes away, or write `| int` behind the expression".into());
            }
            Value::String(text) => self.text(node, text),
            Value::Number(number) if is_whole(value) => {
                self.bounds(node, number.as_f64().unwrap_or_default(), value)
            }
            _ => {
                let misfit = self.say(Nature::Type, &format!("is {}", shown(value)));
                misfit.expected = Some("a whole number or a text".into());
            }
        }
    }
}

/// Whole floats are taken for integers, as the API server takes them.
fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// The defaults of keys, which the OpenAPI document does not tell.
const KEY_DEFAULTS: [(&str, &str); 1] = [("protocol", "TCP")];

/// What tells an element from the others; `None` where it lacks a key that has no default.
fn key_of(keys: &[String], item: &Value) -> Option<String> {
    let part = |key: &String| {
        let default = KEY_DEFAULTS.iter().find(|(name, _)| name == key).map(|(_, value)| Value::from(*value));
        let value = item.get(key).cloned().or(default)?;
        Some(format!("`{key}` `{}`", plain(&value)))
    };
    let parts: Vec<String> = keys.iter().map(part).collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join(" and "))
}
