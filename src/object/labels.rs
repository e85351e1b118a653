//! The labels of one object, kept in as little memory as they take: many thousands are.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::object::selector::Labels;

/// Ends each key and each value. No label has it, and one that did would only not be found.
const END: char = '\0';

/// Keys and values one after the other, in the order of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSet(Box<str>);

impl LabelSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(mut pairs: Vec<(String, String)>) -> LabelSet {
        pairs.sort();
        let mut text = String::new();
        for (key, value) in &pairs {
            for part in [key, value] {
                text.push_str(part);
                text.push(END);
            }
        }
        LabelSet(text.into())
    }
}

impl Labels for LabelSet {
    fn label(&self, key: &str) -> Option<&str> {
        let mut parts = self.0.split_terminator(END);
        while let (Some(known), Some(value)) = (parts.next(), parts.next()) {
            if known == key {
                return Some(value);
            }
        }
        None
    }
}

impl<'de> Deserialize<'de> for LabelSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs)
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = LabelSet;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LabelSet, A::Error> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(LabelSet::of(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> LabelSet {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn labels_are_found_by_their_keys_alone() {
        let labels = labels(r#"{"tier":"","app":"db","a\"b":"tier"}"#);
        assert_eq!(labels.label("app"), Some("db"));
        assert_eq!(labels.label("tier"), Some(""));
        assert_eq!(labels.label("a\"b"), Some("tier"));
        assert_eq!(labels.label("db"), None, "a value is no key");
        assert_eq!(labels.label(""), None);
        assert!(!labels.is_empty());
    }

    #[test]
    fn order_does_not_matter() {
        assert_eq!(labels(r#"{"a":"1","b":"2"}"#), labels(r#"{"b":"2","a":"1"}"#));
        assert_ne!(labels(r#"{"a":"1","b":"2"}"#), labels(r#"{"a":"1"}"#));
        assert_eq!(labels("{}"), LabelSet::default());
        assert!(labels("{}").is_empty());
    }

    #[test]
    fn what_is_no_map_of_texts_is_refused() {
        for text in [r#"{"a":1}"#, r#"["a"]"#, r#"{"a":null}"#] {
            assert!(serde_json::from_str::<LabelSet>(text).is_err(), "{text}");
        }
    }
}
