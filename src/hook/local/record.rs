//! What became of each call: counts, durations and the last error, for `GET /` and `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

use crate::hook::local::Reason;
use crate::hook::wire::Call;

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

#[derive(Default)]
struct Record {
    outcomes: BTreeMap<Outcome, u64>,
    /// How many calls took no longer than each bound, and how many there were.
    buckets: [u64; BOUNDS.len()],
    seconds: f64,
    last_error: Option<LastError>,
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
        let seconds = took.as_secs_f64();
        record.seconds += seconds;
        for (bucket, bound) in record.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        let Some(error) = error else { return false };
        let repeated = record.last_error.as_ref().is_some_and(|last| last.text == error.text);
        record.last_error = Some(error);
        repeated
    }

    pub(super) fn last_error(&self, hook: &str, call: Call) -> Option<LastError> {
        let hooks = self.hooks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        hooks.get(hook)?.get(&call)?.last_error.clone()
    }

    /// Counters and histograms in Prometheus' text format.
    pub(super) fn metrics(&self) -> String {
        let hooks = self.hooks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let records = || {
            hooks
                .iter()
                .flat_map(|(hook, calls)| calls.iter().map(move |(call, record)| (hook, *call, record)))
        };
        let mut text = String::from(
            "# HELP syncwright_renders_total Hook calls by how they ended.\n# TYPE syncwright_renders_total counter\n",
        );
        for (hook, call, record) in records() {
            for (outcome, count) in &record.outcomes {
                let labels = format!("{},outcome=\"{}\"", labels(hook, call), outcome.name());
                let _ = writeln!(text, "syncwright_renders_total{{{labels}}} {count}");
            }
        }
        text.push_str(
            "# HELP syncwright_render_duration_seconds Time from a request's body to its answer.\n# TYPE syncwright_render_duration_seconds histogram\n",
        );
        for (hook, call, record) in records() {
            record.write_histogram(&mut text, &labels(hook, call));
        }
        text
    }
}

impl Record {
    fn write_histogram(&self, text: &mut String, labels: &str) {
        const NAME: &str = "syncwright_render_duration_seconds";
        let count: u64 = self.outcomes.values().sum();
        for (bound, bucket) in BOUNDS.iter().zip(self.buckets) {
            let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {bucket}");
        }
        let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{NAME}_sum{{{labels}}} {}", self.seconds);
        let _ = writeln!(text, "{NAME}_count{{{labels}}} {count}");
    }
}

fn labels(hook: &str, call: Call) -> String {
    format!("hook=\"{}\",call=\"{}\"", label(hook), call.name())
}

pub(super) fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
