//! What is measured of calls over HTTP, under Metacontroller's names and labels.

use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};

use crate::config::spec::Role;
use crate::hook::wire::Call;
use crate::metric::count::{Counter, Gauge, Histogram};
use crate::metric::series::Series;
use crate::metric::text::{Label, Text};

const REQUEST_BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const DNS_BOUNDS: [f64; 4] = [0.005, 0.01, 0.025, 0.05];
const TLS_BOUNDS: [f64; 4] = [0.05, 0.1, 0.25, 0.5];
const CALLS: [Call; 3] = [Call::Sync, Call::Finalize, Call::Customize];

/// What is measured of all remote hooks: by the definition's kind and name, the URL, and the call.
#[derive(Debug, Default)]
pub(crate) struct Meters(Series<4, Meter>);

/// What is measured of one hook.
#[derive(Debug)]
pub(crate) struct Meter {
    /// By status and method.
    requests: Series<2, Counter>,
    /// By method.
    took: Series<1, Histogram>,
    /// From the beginning of a request to an event of its connection's.
    dns: Series<1, Histogram>,
    tls: Series<1, Histogram>,
    in_flight: Gauge,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            requests: Series::default(),
            took: Series::new(|| Histogram::new(&REQUEST_BOUNDS)),
            dns: Series::new(|| Histogram::new(&DNS_BOUNDS)),
            tls: Series::new(|| Histogram::new(&TLS_BOUNDS)),
            in_flight: Gauge::default(),
        }
    }
}

/// What happens to a connection while it is opened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    DnsStart,
    DnsDone,
    TlsStart,
    TlsDone,
}

/// One request under way.
pub(super) struct Measured<'a> {
    meter: &'a Meter,
    began: Instant,
}

impl Meter {
    pub(super) fn request(&self) -> Measured<'_> {
        self.in_flight.add(1);
        Measured { meter: self, began: Instant::now() }
    }
}

impl Measured<'_> {
    pub(super) fn event(&self, event: Event) {
        let age = self.began.elapsed();
        let (series, name) = match event {
            Event::DnsStart => (&self.meter.dns, "dns_start"),
            Event::DnsDone => (&self.meter.dns, "dns_done"),
            Event::TlsStart => (&self.meter.tls, "tls_handshake_start"),
            Event::TlsDone => (&self.meter.tls, "tls_handshake_done"),
        };
        series.of([name]).note(age);
    }

    /// Notes the head of the answer. A request without one is not counted.
    pub(super) fn answered(&self, method: &Method, status: StatusCode) {
        let method = method.as_str().to_ascii_lowercase();
        self.meter.requests.of([status.as_str(), &method]).one();
        self.meter.took.of([&method]).note(self.began.elapsed());
    }
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        self.meter.in_flight.add(-1);
    }
}

impl Meters {
    /// `url` is shown: it must hold no secrets.
    pub(super) fn of(&self, (role, name): (Role, &str), call: Call, url: &str) -> Arc<Meter> {
        self.0.of([role.kind(), name, url, call.name()])
    }

    /// Writes all of them.
    pub(crate) fn write(&self, text: &mut Text) {
        let all = self.0.all();
        for call in CALLS.map(Call::name) {
            let of_call = all.iter().filter(|([.., of], _)| of == call);
            let of_call: Vec<_> = of_call.map(|(labels, meter)| (constant(labels), meter)).collect();
            if !of_call.is_empty() {
                write(text, call, &of_call);
            }
        }
    }
}

fn constant([kind, name, url, _]: &[String; 4]) -> [Label<'_>; 3] {
    [("controller_name", name), ("controller_type", kind), ("url", url)]
}

fn write(text: &mut Text, call: &str, meters: &[([Label<'_>; 3], &Arc<Meter>)]) {
    let name = |what: &str| format!("metacontroller_{call}_{what}");
    let requests = name("requests_total");
    let mut family = text.counter(&requests, "Requests to hooks that were answered, by their status.");
    for (constant, meter) in meters {
        for ([code, method], counter) in meter.requests.all() {
            let labels = [&constant[..], &[("code", &code), ("method", &method)]].concat();
            family.sample(&labels, counter.value());
        }
    }
    type Times = fn(&Meter) -> &Series<1, Histogram>;
    let timed: [(&str, &str, &str, Times); 3] = [
        ("request_duration_histogram_seconds", "method", "Time to the head of the answer.", |meter| {
            &meter.took
        }),
        ("dns_duration_histogram_seconds", "event", "Time from a request's beginning to this.", |meter| {
            &meter.dns
        }),
        ("tls_duration_histogram_seconds", "event", "Time from a request's beginning to this.", |meter| {
            &meter.tls
        }),
    ];
    for (what, label, help, series) in timed {
        let full = name(what);
        let mut family = text.histogram(&full, help);
        for (constant, meter) in meters {
            for ([value], histogram) in series(meter).all() {
                family.timed(&[&constant[..], &[(label, value.as_str())]].concat(), &histogram);
            }
        }
    }
    let in_flight = name("in_flight_requests");
    let mut family = text.gauge(&in_flight, "Requests under way.");
    for (constant, meter) in meters {
        family.sample(constant, meter.in_flight.value());
    }
}
