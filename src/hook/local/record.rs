//! What became of each call: counts, durations and the last error, for `GET /` and `/metrics`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

use crate::hook::local::Reason;
use crate::hook::wire::Call;
use crate::metric::count::Histogram;
use crate::metric::text::Text;

/// Upper bounds in seconds. A render takes some 50 µs; the default budget ends at half a second.
const BOUNDS: [f64; 9] = [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5];

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Answered,
    Refused(Reason),
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::Refused(Reason::Malformed) => "malformed",
            Outcome::Refused(Reason::Unknown) => "unknown",
            Outcome::Refused(Reason::Fault) => "fault",
            Outcome::Refused(Reason::NotReady) => "not_ready",
            Outcome::Refused(Reason::Panicked) => "panicked",
        }
    }
}

/// The last call that was not answered, and why, in one line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastError {
    pub at: Timestamp,
    pub text: String,
}

struct Record {
    outcomes: BTreeMap<Outcome, u64>,
    took: Histogram,
    last_error: Option<LastError>,
}

impl Default for Record {
    fn default() -> Self {
        Record { outcomes: BTreeMap::new(), took: Histogram::new(&BOUNDS), last_error: None }
    }
}

#[derive(Default)]
pub(super) struct Records {
    hooks: Mutex<BTreeMap<String, BTreeMap<Call, Record>>>,
}

impl Records {
    /// Notes a call's end. True when the error is the same as the last one.
    pub(super) fn note(
        &self,
        (hook, call): (&str, Call),
        outcome: Outcome,
        took: Duration,
        error: Option<LastError>,
    ) -> bool {
        let mut hooks = self.hooks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !hooks.contains_key(hook) {
            hooks.insert(hook.to_string(), BTreeMap::new());
        }
        let record = hooks.get_mut(hook).expect("inserted above").entry(call).or_default();
        *record.outcomes.entry(outcome).or_default() += 1;
        record.took.note(took);
        let Some(error) = error else { return false };
        let repeated = record.last_error.as_ref().is_some_and(|last| last.text == error.text);
        record.last_error = Some(error);
        repeated
    }

    pub(super) fn last_error(&self, hook: &str, call: Call) -> Option<LastError> {
        let hooks = self.hooks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        hooks.get(hook)?.get(&call)?.last_error.clone()
    }

    /// Writes counters and histograms.
    pub(super) fn write(&self, text: &mut Text) {
        let hooks = self.hooks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let records = || {
            hooks
                .iter()
                .flat_map(|(hook, calls)| calls.iter().map(move |(call, record)| (hook, *call, record)))
        };
        let mut family = text.counter("syncwright_renders_total", "Calls of templates by how they ended.");
        for (hook, call, record) in records() {
            for (outcome, count) in &record.outcomes {
                let labels = [("hook", hook.as_str()), ("call", call.name()), ("outcome", outcome.name())];
                family.sample(&labels, count);
            }
        }
        let mut family =
            text.histogram("syncwright_render_duration_seconds", "Time from a request's body to its answer.");
        for (hook, call, record) in records() {
            family.timed(&[("hook", hook), ("call", call.name())], &record.took);
        }
    }
}
