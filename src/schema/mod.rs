//! What a kind's objects may hold: Kubernetes' own schemas, carried in the program, and those of CRDs.
//!
//! A value and a schema in, misfits out, each with the path of its field. Pure: reads no file and asks no cluster, and does
//! not know where a value was written.
//!
//! `kubernetes.json.gz` is a cluster's OpenAPI document, reduced by `tests/cluster/schemas.rs` to what decides whether a value
//! fits. A document that a cluster gave is read in the same way.

mod catalog;
mod crd;
mod fill;
mod fit;
mod misfit;
mod node;
mod other;
#[cfg(test)]
mod tests;

pub(crate) use self::catalog::{Catalog, Kind};
pub(crate) use self::crd::faults;
pub(crate) use self::fit::Whole;
pub(crate) use self::misfit::{Misfit, Nature, dotted};
