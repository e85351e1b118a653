//! How what is measured of definitions is written.
//!
//! The names are of three families: our own, controller-runtime's and client-go's, for the dashboards and alerts that
//! people have already. `controller` is the same in all of them, as Metacontroller has it: `CompositeController-website`.

use std::sync::Arc;

use crate::controller::meter::{Meter, Meters, OUTCOMES, Outcome};
use crate::controller::queue::{Load, Traffic};
use crate::metric::count::Histogram;
use crate::metric::text::{Label, Text};

impl Meters {
    /// Writes everything about all definitions.
    pub(crate) fn write(&self, text: &mut Text) {
        let seen: Vec<Seen> =
            self.all().into_iter().map(|(labels, meter)| Seen::new(labels, meter)).collect();
        write_visits(text, &seen);
        write_hooks(text, &seen);
        write_runtime(text, &seen);
        write_queues(text, &seen);
        self.remote.write(text);
    }
}

/// A definition's meter at one moment.
struct Seen {
    controller: String,
    meter: Arc<Meter>,
    load: Load,
    workers: usize,
}

impl Seen {
    fn new([kind, name]: [String; 2], meter: Arc<Meter>) -> Seen {
        let (load, workers) = meter.load();
        Seen { controller: format!("{kind}-{name}"), meter, load, workers }
    }

    fn label(&self) -> Label<'_> {
        ("controller", &self.controller)
    }

    fn queue_labels(&self) -> [Label<'_>; 2] {
        [("name", &self.controller), self.label()]
    }
}

fn write_visits(text: &mut Text, seen: &[Seen]) {
    let mut family = text.counter("operator_reconcile_total", "Visits of parents by how they ended.");
    for one in seen {
        for ((_, result), counter) in OUTCOMES.iter().zip(&one.meter.outcomes) {
            family.sample(&[one.label(), ("result", result)], counter.value());
        }
    }
    let mut family =
        text.histogram("operator_reconcile_duration_seconds", "Time that visits of parents took.");
    for one in seen {
        family.timed(&[one.label()], &one.meter.took);
    }
    let mut family = text.gauge("syncwright_parents", "Parents by how their last visit ended.");
    for one in seen {
        for (state, count) in one.meter.parents.named() {
            family.sample(&[one.label(), ("state", state)], count);
        }
    }
}

fn write_hooks(text: &mut Text, seen: &[Seen]) {
    let mut family = text.counter("syncwright_hook_calls_total", "Calls of hooks by how they ended.");
    for one in seen {
        for ([call, outcome], counter) in one.meter.hook_calls.all() {
            family.sample(&[one.label(), ("call", &call), ("outcome", &outcome)], counter.value());
        }
    }
    let help = "Time that calls of hooks took, the wait for a turn included.";
    let mut family = text.histogram("syncwright_hook_duration_seconds", help);
    for one in seen {
        for ([call], histogram) in one.meter.hook_took.all() {
            family.timed(&[one.label(), ("call", &call)], &histogram);
        }
    }
}

fn write_runtime(text: &mut Text, seen: &[Seen]) {
    let mut family = text.counter("controller_runtime_reconcile_total", "Visits by what follows them.");
    for one in seen {
        let followed = &one.meter.followed;
        for (result, counter) in [
            ("error", &followed.error),
            ("requeue", &followed.requeue),
            ("requeue_after", &followed.requeue_after),
            ("success", &followed.success),
        ] {
            family.sample(&[one.label(), ("result", result)], counter.value());
        }
    }
    type Count = fn(&Meter) -> u64;
    let counters: [(&str, &str, Count); 4] = [
        ("reconcile_errors_total", "Visits that are retried with backoff.", |meter| {
            meter.followed.error.value()
        }),
        ("terminal_reconcile_errors_total", "Visits that ended stuck.", |meter| {
            meter.outcomes[Outcome::Stuck as usize].value()
        }),
        ("reconcile_panics_total", "Visits that panicked.", |meter| {
            meter.outcomes[Outcome::Panicked as usize].value()
        }),
        // Each request of a visit has its own limit, and a visit as a whole has none.
        ("reconcile_timeouts_total", "Visits cut off for their time: none ever is.", |_| 0),
    ];
    for (name, help, value) in counters {
        let name = format!("controller_runtime_{name}");
        let mut family = text.counter(&name, help);
        seen.iter().for_each(|one| family.sample(&[one.label()], value(&one.meter)));
    }
    let mut family = text.histogram("controller_runtime_reconcile_time_seconds", "Time that visits took.");
    seen.iter().for_each(|one| family.timed(&[one.label()], &one.meter.took_by_runtime));
    let help = "Visits that may be under way at once.";
    let mut family = text.gauge("controller_runtime_max_concurrent_reconciles", help);
    seen.iter().for_each(|one| family.sample(&[one.label()], one.workers));
    let mut family = text.gauge("controller_runtime_active_workers", "Visits under way.");
    seen.iter().for_each(|one| family.sample(&[one.label()], one.meter.under_way.value()));
}

fn write_queues(text: &mut Text, seen: &[Seen]) {
    let mut family = text.gauge("workqueue_depth", "Parents that are due and wait for a worker.");
    for one in seen {
        let [name, controller] = one.queue_labels();
        family.sample(&[name, controller, ("priority", "0")], one.load.due);
    }
    type Count = fn(&Traffic) -> u64;
    let counters: [(&str, &str, Count); 2] = [
        ("workqueue_adds_total", "Visits that came due.", |traffic| traffic.adds.value()),
        ("workqueue_retries_total", "Visits that failed and are retried.", |traffic| traffic.retries.value()),
    ];
    for (name, help, value) in counters {
        let mut family = text.counter(name, help);
        seen.iter().for_each(|one| family.sample(&one.queue_labels(), value(&one.meter.traffic)));
    }
    type Times = fn(&Traffic) -> &Histogram;
    let histograms: [(&str, &str, Times); 2] = [
        ("workqueue_queue_duration_seconds", "Time from when a visit is due to its start.", |traffic| {
            &traffic.waited
        }),
        ("workqueue_work_duration_seconds", "Time that visits took.", |traffic| &traffic.worked),
    ];
    for (name, help, value) in histograms {
        let mut family = text.histogram(name, help);
        seen.iter().for_each(|one| family.timed(&one.queue_labels(), value(&one.meter.traffic)));
    }
    type Seconds = fn(&Load) -> f64;
    let gauges: [(&str, &str, Seconds); 3] = [
        ("workqueue_unfinished_work_seconds", "Ages of the visits under way, in sum.", |load| {
            load.unfinished.as_secs_f64()
        }),
        ("workqueue_longest_running_processor_seconds", "Age of the oldest visit under way.", |load| {
            load.longest.as_secs_f64()
        }),
        (
            "syncwright_queue_age_seconds",
            "For how long the parent has been due that waits longest.",
            |load| load.oldest.as_secs_f64(),
        ),
    ];
    for (name, help, value) in gauges {
        let mut family = text.gauge(name, help);
        seen.iter().for_each(|one| family.sample(&one.queue_labels(), value(&one.load)));
    }
}
