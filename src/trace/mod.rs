//! Spans: what a visit does step by step, and how long it takes, for whoever collects traces.
//!
//! A span is one of `tracing`'s, of a target of its own, so that the log knows nothing of it. Without the feature `otel`
//! there is none of this in the program; with it, a span costs one comparison until `cli` has somebody who collects them.
//! What goes into one can be read by anybody: names, kinds, sizes and outcomes, and errors in the words of the log. Values
//! of objects and credentials do not, and `mask` takes those of Secrets out of names and words.

use http::HeaderMap;
use tracing::Span;

#[cfg(feature = "otel")]
mod carried;
#[cfg(feature = "otel")]
pub(crate) use carried::{TARGET, install};

/// A span within the current one, as `tracing::info_span!` takes it. Nothing in it is computed where nobody collects it.
///
/// These fields are more than values: `began` is the time when it began, where that is over; `traceparent` and `tracestate`
/// say whose part it is; `otel.name` and `otel.kind` are its name and its kind; and `error` makes it one that failed.
macro_rules! span {
    ($(parent: $parent:expr,)? $name:literal $(, $($fields:tt)*)?) => {
        if cfg!(feature = "otel") {
            ::tracing::info_span!(target: "syncwright::trace", $(parent: $parent,)? $name $(, $($fields)*)?)
        } else {
            ::tracing::Span::none()
        }
    };
}
pub(crate) use span;

/// The work, as what happens within a span.
pub(crate) fn within<W: Future>(span: &Span, work: W) -> impl Future<Output = W::Output> {
    #[cfg(feature = "otel")]
    return tracing::Instrument::instrument(work, span.clone());
    #[cfg(not(feature = "otel"))]
    {
        let _ = span;
        work
    }
}

/// The innermost of our spans that is under way here; a span of nothing where there is none.
pub(crate) fn current() -> Span {
    #[cfg(feature = "otel")]
    return carried::current();
    #[cfg(not(feature = "otel"))]
    Span::none()
}

/// Has whoever is sent these headers go on with the trace, where there is one.
pub(crate) fn carry(headers: &mut HeaderMap) {
    #[cfg(feature = "otel")]
    carried::carry(headers);
    #[cfg(not(feature = "otel"))]
    let _ = headers;
}
