//! What a controller is: definitions out of `controllers.yaml` or out of the cluster's custom resources.
//!
//! Pure: reads no file and no cluster, looks no resource up. Whether a kind exists is found out by `cluster`.

pub(crate) mod spec;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::config::spec::CompositeSpec;

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File,
    Cluster,
}

/// One controller: a CompositeController as written, and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub name: String,
    pub source: Source,
    /// `metadata.generation`; 0 in a file.
    pub generation: i64,
    pub spec: CompositeSpec,
    /// The complete object as hooks are sent it under `controller`.
    pub raw: Value,
    /// The text of `raw`.
    pub json: Box<RawValue>,
}
