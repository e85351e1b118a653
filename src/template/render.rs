//! What one render is given: names, time, entropy, budget.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use minijinja::{Error, State};
use serde_json::Value as Json;

use crate::template::fault::Fault;

/// What a template can see, by name.
#[derive(Debug)]
pub(crate) struct Context {
    inputs: Inputs,
    values: BTreeMap<String, Json>,
    families: BTreeMap<String, Family>,
}

/// Objects by kind (`Job.batch/v1`), then by name (or `namespace/name`).
pub(in crate::template) type Family = BTreeMap<String, BTreeMap<String, Json>>;

/// Time and entropy of one render: without them a template could not differ from one run to the next.
#[derive(Clone, Copy, Debug)]
pub(in crate::template) struct Inputs {
    pub now: Timestamp,
    pub entropy: [u8; 32],
}

impl Context {
    pub(crate) fn new(now: Timestamp, entropy: [u8; 32]) -> Self {
        Context { inputs: Inputs { now, entropy }, values: BTreeMap::new(), families: BTreeMap::new() }
    }

    /// Gives the template a value under `name`.
    pub(crate) fn set(&mut self, name: &str, value: Json) {
        self.values.insert(name.to_string(), value);
    }

    /// Gives the template grouped objects under `name`, with `.find(kind, name)` and `.list(kind)`.
    pub(crate) fn set_family(&mut self, name: &str, family: BTreeMap<String, BTreeMap<String, Json>>) {
        self.families.insert(name.to_string(), family);
    }
}

/// Bounds of one render. Crossing one is a problem that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub time: Duration,
    pub fuel: u64,
    pub output_bytes: usize,
    pub documents: usize,
    pub recursion: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            time: Duration::from_millis(500),
            fuel: 1_000_000,
            output_bytes: 8 << 20,
            documents: 10_000,
            recursion: 200,
        }
    }
}

/// Time and entropy of the render that `state` belongs to.
pub(in crate::template) fn inputs(_state: &State) -> Result<Inputs, Error> {
    Err(Fault::new("no render is under way").into())
}
