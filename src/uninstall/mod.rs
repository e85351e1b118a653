//! Takes what this product has left in a cluster away again: finalizers on parents, then the definitions.
//!
//! First everything is looked at, and nothing is written; what the plan says is then done. Children stay as they are.

mod carry;
mod lease;
mod survey;

use std::collections::BTreeSet;

use crate::cluster::kind::Resource;
use crate::cluster::object::Object;
use crate::cluster::request::Error;
use crate::config::marks::Mark;
use crate::object::selector::Selector;

pub(crate) use carry::{Done, carry_out};
pub(crate) use lease::Holder;
pub(crate) use survey::survey;

/// What is to be taken away.
pub(crate) struct Wish {
    /// The marks of definitions that are in no cluster.
    pub marks: Vec<Mark>,
    /// Which of the cluster's definitions.
    pub selector: Selector,
    /// Whether their CRDs go too.
    pub crds: bool,
    /// The name of the Lease that a running controller holds.
    pub lease: String,
    /// Where the Lease is looked for; empty is everywhere.
    pub lease_namespace: String,
}

/// What is there to be taken away.
pub(crate) struct Plan {
    /// Controllers that still run.
    pub holders: Vec<Holder>,
    pub kinds: Vec<Marked>,
    pub definitions: Vec<Thing>,
    /// Definitions that are somebody else's.
    pub others: usize,
    pub crds: Vec<Thing>,
}

/// A kind with objects that carry our finalizers.
pub(crate) struct Marked {
    pub resource: Resource,
    pub finalizers: BTreeSet<String>,
    pub objects: Vec<Object>,
}

/// One object that goes.
pub(crate) struct Thing {
    pub resource: Resource,
    pub object: Object,
}

/// What could not be done, and to what.
pub(crate) struct Trouble {
    pub about: String,
    pub error: Error,
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.definitions.is_empty() && self.crds.is_empty()
    }
}

impl Marked {
    /// The finalizers of ours on one of the objects.
    pub(crate) fn on<'a>(&'a self, object: &'a Object) -> impl Iterator<Item = &'a str> {
        object.finalizers.iter().map(|name| &**name).filter(|name| self.finalizers.contains(*name))
    }
}
