//! Traces that go on in other processes: who collects them knows how a span is named to those.

use std::sync::OnceLock;

use http::HeaderMap;
use tracing::Span;

/// What our spans, and nothing else, have as their target.
pub(crate) const TARGET: &str = "syncwright::trace";

/// Writes into headers what the reader of a request is to know of a span.
type Carrier = fn(&Span, &mut HeaderMap);

static CARRIER: OnceLock<Carrier> = OnceLock::new();

/// From now on the headers of requests are written by this.
pub(crate) fn install(carrier: Carrier) {
    // Whoever is there first stays; there is one collector to a process.
    let _ = CARRIER.set(carrier);
}

pub(super) fn current() -> Span {
    if CARRIER.get().is_none() {
        return Span::none();
    }
    let span = Span::current();
    let is_ours = span.metadata().is_some_and(|metadata| metadata.target() == TARGET);
    if is_ours { span } else { Span::none() }
}

pub(super) fn carry(headers: &mut HeaderMap) {
    if let Some(carrier) = CARRIER.get() {
        carrier(&current(), headers);
    }
}
