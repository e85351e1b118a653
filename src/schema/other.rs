//! Values that a field could also hold: what a user may change it to.

use serde_json::Value;

use crate::schema::catalog::Kind;
use crate::schema::fit::Whole;
use crate::schema::node::Node;

impl Kind {
    /// The object with another value in the field at `path`, where one is found that the schema allows.
    pub(crate) fn with_another(&self, object: &Value, path: &[String]) -> Option<Value> {
        let pointer: String = path.iter().map(|step| format!("/{}", escaped(step))).collect();
        let value = object.pointer(&pointer)?;
        let before = self.misfits(object, Whole::No).len();
        self.others(path, value).into_iter().find_map(|other| {
            let mut changed = object.clone();
            *changed.pointer_mut(&pointer)? = other;
            (self.misfits(&changed, Whole::No).len() <= before).then_some(changed)
        })
    }

    fn others(&self, path: &[String], value: &Value) -> Vec<Value> {
        let allowed = self.node_at(path).map(|node| node.allowed.clone()).unwrap_or_default();
        let other = allowed.into_iter().filter(|other| other != value);
        match value {
            Value::Bool(truth) => vec![Value::Bool(!truth)],
            Value::Number(number) => {
                let near = number.as_i64().into_iter().flat_map(|number| [number + 1, number - 1]);
                other.chain(near.map(Value::from)).collect()
            }
            Value::String(text) => other.chain(texts_like(text).into_iter().map(Value::from)).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn node_at(&self, path: &[String]) -> Option<&Node> {
        let mut node = self.resolve(&self.schema);
        for step in path {
            node = self.resolve(node.properties.get(step).or(node.items.as_deref())?);
        }
        Some(node)
    }
}

/// The number in it one higher, a letter more.
fn texts_like(text: &str) -> Vec<String> {
    let Some(start) = text.find(|c: char| c.is_ascii_digit()) else { return vec![format!("{text}x")] };
    let digits: String = text[start..].chars().take_while(char::is_ascii_digit).collect();
    let more = digits.parse::<u64>().ok().and_then(|number| number.checked_add(1));
    let counted = more.map(|more| format!("{}{more}{}", &text[..start], &text[start + digits.len()..]));
    counted.into_iter().chain([format!("{text}x")]).collect()
}

/// A step of a JSON pointer.
fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}
