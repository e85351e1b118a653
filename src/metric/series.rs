//! Counters by their labels. Labels come from outside, so that their number has an end here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One family has no more series than this; what comes later is counted together, as `other`.
pub(crate) const MOST: usize = 1000;
/// What all labels of the series say that holds the rest.
const OTHER: &str = "other";

/// What is measured for each of some labels' values.
#[derive(Debug)]
pub(crate) struct Series<const LABELS: usize, T> {
    by_labels: Mutex<BTreeMap<[String; LABELS], Arc<T>>>,
    new: fn() -> T,
}

impl<const LABELS: usize, T> Series<LABELS, T> {
    pub(crate) fn new(new: fn() -> T) -> Self {
        Series { by_labels: Mutex::default(), new }
    }

    /// The one with these labels. Who counts often keeps it.
    pub(crate) fn of(&self, labels: [&str; LABELS]) -> Arc<T> {
        let mut by_labels = self.by_labels.lock().unwrap_or_else(PoisonError::into_inner);
        let mut labels = labels.map(str::to_string);
        if by_labels.len() >= MOST && !by_labels.contains_key(&labels) {
            labels = std::array::from_fn(|_| OTHER.to_string());
        }
        by_labels.entry(labels).or_insert_with(|| Arc::new((self.new)())).clone()
    }

    /// All of them, in the order of their labels.
    pub(crate) fn all(&self) -> Vec<([String; LABELS], Arc<T>)> {
        let by_labels = self.by_labels.lock().unwrap_or_else(PoisonError::into_inner);
        by_labels.iter().map(|(labels, one)| (labels.clone(), one.clone())).collect()
    }
}

impl<const LABELS: usize, T: Default> Default for Series<LABELS, T> {
    fn default() -> Self {
        Series::new(T::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::count::Counter;

    #[test]
    fn labels_without_end_are_counted_together() {
        let series = Series::<2, Counter>::default();
        for number in 0..MOST + 10 {
            series.of([&number.to_string(), "x"]).one();
        }
        series.of(["0", "x"]).one();
        assert_eq!(series.of(["0", "x"]).value(), 2);
        assert_eq!(series.of(["other", "other"]).value(), 10);
        assert_eq!(series.all().len(), MOST + 1);
    }
}
