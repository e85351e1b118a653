//! Kubernetes JSON as this program needs it: names, kinds, owners, selectors, quantities.
//!
//! Pure: no cluster, no clock.

pub(crate) mod condition;
pub(crate) mod labels;
pub(crate) mod name;
pub(crate) mod owner;
pub(crate) mod quantity;
pub(crate) mod selector;
pub(crate) mod validity;
