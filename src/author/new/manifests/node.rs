//! A manifest as a template: a tree whose leaves are texts, values and expressions.

use serde_json::Value;

use crate::author::new::manifests::lift::Lifts;
use crate::author::new::manifests::naming::Naming;

/// A node of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Map(Vec<(Text, Node)>),
    List(Vec<Node>),
    Text(Text),
    /// An expression that is a whole value, and keeps its type.
    Expression(String),
    /// A number, a boolean or null.
    Value(Value),
}

/// A text, in which some parts are computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text(pub Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Literal(String),
    Expression(String),
}

impl Text {
    pub(super) fn literal(text: &str) -> Text {
        Text(vec![Piece::Literal(text.into())])
    }

    /// Adds a part, to the last one where both are literal.
    pub(super) fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (_, Piece::Literal(text)) if text.is_empty() => {}
            (Some(Piece::Literal(last)), Piece::Literal(text)) => last.push_str(&text),
            (_, piece) => self.0.push(piece),
        }
    }
}

/// The way to a node: keys, and indices as text.
pub(super) type Way = Vec<String>;

impl Node {
    /// The manifest with its names and lifted values as expressions.
    pub(super) fn of(manifest: &Value, index: usize, naming: &Naming, lifts: &Lifts) -> Node {
        let making = Making { index, naming, lifts };
        making.node(manifest, &mut Vec::new())
    }
}

struct Making<'a> {
    /// Of the manifest.
    index: usize,
    naming: &'a Naming,
    lifts: &'a Lifts,
}

impl Making<'_> {
    fn node(&self, value: &Value, way: &mut Way) -> Node {
        if let Some(field) = self.lifts.field_at(self.index, way) {
            return Node::Expression(format!("parent.spec.{field}"));
        }
        match value {
            Value::Object(fields) => Node::Map(
                fields.iter().map(|(key, value)| (Text::literal(key), self.below(key, value, way))).collect(),
            ),
            Value::Array(items) => Node::List(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.below(&index.to_string(), item, way))
                    .collect(),
            ),
            Value::String(text) => Node::Text(self.naming.text(way, text)),
            other => Node::Value(other.clone()),
        }
    }

    fn below(&self, step: &str, value: &Value, way: &mut Way) -> Node {
        way.push(step.to_string());
        let node = self.node(value, way);
        way.pop();
        node
    }
}
