//! Counting and timing, and how that is written for Prometheus.
//!
//! Whoever measures holds the counters and knows their names; this room knows the text format and how the number of
//! series is kept bounded. It has no registry and no clock: what is counted is read when somebody asks.

/// What counts up, goes up and down, or is timed.
pub(crate) mod count;
/// Counters by their labels, no more than so many of them.
pub(crate) mod series;
/// Prometheus' text format.
pub(crate) mod text;
