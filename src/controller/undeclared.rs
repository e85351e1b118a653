//! Status fields that the parents' schema does not have: cut out before the server has to say so again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// After this time a field that the schema did not have is tried again.
const LASTS: Duration = Duration::from_secs(600);

/// Paths that the server refused, and when it did.
#[derive(Default)]
pub(crate) struct Undeclared(BTreeMap<String, Instant>);

impl Undeclared {
    pub(crate) fn note(&mut self, path: &str) {
        self.0.insert(path.to_string(), Instant::now());
    }

    pub(crate) fn cut(&self, status: &mut Map<String, Value>) {
        for (path, since) in &self.0 {
            if since.elapsed() < LASTS {
                remove(status, path);
            }
        }
    }
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
