//! What an author does with hooks while writing them: run their cases, see what differs. Works on files, needs no cluster.
//!
//! Results are data; how they are printed is `cli`'s.

pub(crate) mod case;
pub(crate) mod check;
pub(crate) mod created;
pub(crate) mod diff;
pub(crate) mod difference;
mod kinds;
mod manifests;
mod masked;
pub(crate) mod new;
pub(crate) mod parent_file;
mod parents;
pub(crate) mod properties;
pub(crate) mod rbac;
pub(crate) mod record;
pub(crate) mod render;
pub(crate) mod schema;
pub(crate) mod test;
mod text;
