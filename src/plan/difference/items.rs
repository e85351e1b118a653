//! Which items of two lists are the same ones.

use serde_json::Value;

use super::owned::{Fit, ListKey};
use super::same::same_scalar;

/// Keys that tell the items of a list apart where no record of ours says which do.
const GUESSED_KEYS: [&str; 7] = ["containerPort", "port", "mountPath", "name", "uid", "ip", "path"];

/// Which item of a live list each wanted item is. Short lists need no heap.
pub(super) struct Places {
    few: [Place; Places::FEW],
    many: Vec<Place>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The record does not name this item.
    Unknown,
    /// The record names it, and the live list lacks it.
    Absent,
    At(usize),
}

impl Places {
    const FEW: usize = 16;

    pub(super) fn new(items: usize) -> Self {
        let many = if items > Places::FEW { vec![Place::Unknown; items] } else { Vec::new() };
        Places { few: [Place::Unknown; Places::FEW], many }
    }

    fn all(&self) -> &[Place] {
        if self.many.is_empty() { &self.few } else { &self.many }
    }

    pub(super) fn get(&self, index: usize) -> Place {
        self.all()[index]
    }

    pub(super) fn set(&mut self, index: usize, place: Place) {
        if self.many.is_empty() { self.few[index] = place } else { self.many[index] = place }
    }

    /// The wanted item with this key that has no place yet. The search begins at `hint`: records and lists are
    /// often in the same order.
    pub(super) fn find_wanted(
        &self,
        key: ListKey,
        wanted: &[Value],
        hint: usize,
        typed: bool,
    ) -> Option<usize> {
        let mut candidates = (0..wanted.len())
            .map(|offset| (hint + offset) % wanted.len())
            .filter(|index| self.get(*index) == Place::Unknown);
        let exact = candidates.clone().find(|index| key.fit(&wanted[*index], typed) == Fit::Exact);
        exact.or_else(|| candidates.find(|index| key.fit(&wanted[*index], typed) == Fit::Partial))
    }

    pub(super) fn in_order(&self) -> bool {
        let places = self.all().iter().filter_map(|place| match place {
            Place::At(index) => Some(*index),
            _ => None,
        });
        places.is_sorted()
    }
}

pub(super) fn find_item(key: ListKey, live: &[Value], hint: usize) -> Option<usize> {
    let candidates = (hint..live.len()).chain(0..hint.min(live.len()));
    candidates.into_iter().find(|index| key.fit(&live[*index], true) == Fit::Exact)
}

/// The field that tells the items of both lists apart, if one of the usual ones does.
pub(super) fn guessed_key(wanted: &[Value], live: &[Value]) -> Option<&'static str> {
    let tells_apart = |key: &str| {
        wanted
            .iter()
            .chain(live)
            .all(|item| item.get(key).is_some_and(|value| value.is_string() || value.is_number()))
            && wanted
                .iter()
                .enumerate()
                .all(|(index, item)| item_with(key, &item[key], &wanted[..index]).is_none())
    };
    GUESSED_KEYS.into_iter().find(|key| !wanted.is_empty() && tells_apart(key))
}

pub(super) fn item_with<'a>(key: &str, value: &Value, list: &'a [Value]) -> Option<&'a Value> {
    list.iter().find(|item| item.get(key).is_some_and(|other| same_scalar(value, other)))
}

pub(super) fn contains(list: &[Value], element: &Value) -> bool {
    list.iter().any(|other| same_scalar(other, element) || other == element)
}
