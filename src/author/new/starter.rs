//! An operator to begin with: a Deployment, a Service and a status.

use crate::author::kinds::child_kind;
use crate::author::new::{Names, NewFile, Sketch};
use crate::problem::Problem;

/// The schema of `observedGeneration` and `conditions`, for the end of a status.
pub(in crate::author::new) const STATUS_FIELDS: &str = include_str!("starter/status.yaml");

/// Path and text of each file, with marks for the names.
const FILES: [(&str, &str); 6] = [
    ("crd.yaml", include_str!("starter/crd.yaml")),
    ("sync.yaml", include_str!("starter/sync.yaml")),
    ("example.yaml", include_str!("starter/example.yaml")),
    ("cases/first-sync/sync.request.yaml", include_str!("starter/first.request.yaml")),
    ("cases/all-replicas-are-ready/sync.request.yaml", include_str!("starter/ready.request.yaml")),
    ("cases/image-is-missing/sync.request.yaml", include_str!("starter/missing.request.yaml")),
];

pub(in crate::author::new) fn sketch(names: Names) -> Result<Sketch, Problem> {
    let file = |(path, text): (&str, &str)| {
        NewFile::new(path, names.fill(&text.replace("<status>\n", STATUS_FIELDS)))
    };
    Ok(Sketch {
        files: FILES.into_iter().map(file).collect(),
        children: vec![child_kind("apps/v1", "Deployment"), child_kind("v1", "Service")],
        promised: None,
        notes: Vec::new(),
        namespace: None,
        names,
    })
}
