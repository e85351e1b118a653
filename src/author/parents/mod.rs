//! Parents made from their kind's schema: an example to begin with, and many odd ones to try a hook with.
//!
//! Knows structural schemas, and nothing of hooks.

pub(crate) mod crd;
pub(crate) mod dice;
pub(crate) mod example;
#[cfg(test)]
mod mutations;
pub(crate) mod odd;
mod pattern;
