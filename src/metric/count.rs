//! What is counted. Each is a few atomic additions, whoever reads it meanwhile.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many there are now.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicI64);

impl Gauge {
    pub(crate) fn add(&self, number: i64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long things take, by upper bounds in seconds.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, and one for what is beyond them.
    buckets: Box<[Counter]>,
    nanoseconds: AtomicU64,
}

/// A histogram as it was at one moment.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    /// Each bound, and how many were not longer.
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub seconds: f64,
}

impl Histogram {
    /// The bounds must be in order.
    pub(crate) fn new(bounds: &'static [f64]) -> Histogram {
        let buckets = (0..=bounds.len()).map(|_| Counter::default()).collect();
        Histogram { bounds, buckets, nanoseconds: AtomicU64::new(0) }
    }

    pub(crate) fn note(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].one();
        // 584 years of nanoseconds fit.
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut count = 0;
        let mut up_to = |bucket: &Counter| {
            count += bucket.value();
            count
        };
        let (beyond, bounded) = self.buckets.split_last().expect("there is one more than bounds");
        let buckets = self.bounds.iter().copied().zip(bounded.iter().map(&mut up_to)).collect();
        up_to(beyond);
        let seconds = self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        Snapshot { buckets, count, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::new(&[0.25, 1.0]);
        for milliseconds in [0, 250, 251, 1000, 1500] {
            histogram.note(Duration::from_millis(milliseconds));
        }
        let expected = Snapshot { buckets: vec![(0.25, 2), (1.0, 4)], count: 5, seconds: 3.001 };
        assert_eq!(histogram.snapshot(), expected);
    }
}
