//! Status fields that the server refuses: cut out before it has to say so again, and told each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// After this time a field that the schema did not have is tried again.
const LASTS: Duration = Duration::from_secs(600);

/// What the parents' schema does not have: by path when the server said so, and its words.
#[derive(Default)]
pub(crate) struct Undeclared(BTreeMap<String, (Instant, String)>);

impl Undeclared {
    pub(crate) fn note(&mut self, path: String, words: String) {
        self.0.insert(path, (Instant::now(), words));
    }

    /// Cuts what is known to be refused, and gives the server's words for it.
    pub(crate) fn cut(&self, status: &mut Map<String, Value>) -> Vec<String> {
        let lasting = self.0.iter().filter(|(_, (since, _))| since.elapsed() < LASTS);
        let cut = lasting.filter(|(path, _)| remove(status, path) && !is_ours(path));
        cut.map(|(_, (_, words))| words.clone()).collect()
    }
}

/// Values in one status that the server does not take. Another status may have others there.
#[derive(Debug, Default)]
pub(crate) struct Unfit {
    /// The status as the hook answered it.
    answered: Map<String, Value>,
    /// By path the server's words.
    fields: BTreeMap<String, String>,
}

impl Unfit {
    pub(crate) fn note(&mut self, answered: &Map<String, Value>, path: String, words: String) {
        if self.answered != *answered {
            *self = Unfit { answered: answered.clone(), fields: BTreeMap::new() };
        }
        self.fields.insert(path, words);
    }

    /// The same as `Undeclared::cut`, where this is the status it was said of.
    pub(crate) fn cut(&self, answered: &Map<String, Value>, status: &mut Map<String, Value>) -> Vec<String> {
        if self.fields.is_empty() || self.answered != *answered {
            return Vec::new();
        }
        let cut = self.fields.iter().filter(|(path, _)| remove(status, path));
        cut.map(|(_, words)| words.clone()).collect()
    }
}

/// What the controller adds by itself is left out without a word where the schema has no place for it.
fn is_ours(path: &str) -> bool {
    matches!(path, "status.observedGeneration" | "status.conditions")
}

/// Removes `status.a.b` out of the status; anything below a list goes with the list's field.
pub(crate) fn remove(status: &mut Map<String, Value>, path: &str) -> bool {
    let Some(path) = path.strip_prefix("status.") else { return false };
    let mut at = status;
    let mut steps = path.split('.').peekable();
    while let Some(step) = steps.next() {
        let (name, in_list) = step.split_once('[').map_or((step, false), |(name, _)| (name, true));
        if steps.peek().is_none() || in_list || !at.get(name).is_some_and(Value::is_object) {
            return at.shift_remove(name).is_some();
        }
        at = at.get_mut(name).and_then(Value::as_object_mut).expect("an object, as just seen");
    }
    false
}
