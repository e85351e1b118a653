//! Values of Secrets, and how what is said, kept or sent around goes without them.
//!
//! `secrets` finds the values in objects, `forms` knows what templates and servers make of them, `veil` takes them out of
//! texts and objects, and `scope` knows which of them are at hand where something is said. Nothing here reads a cluster:
//! whoever has Secrets in hand says so.

mod forms;
pub(crate) mod pair;
pub(crate) mod scope;
mod secrets;
#[cfg(test)]
mod tests;
mod veil;

pub(crate) use crate::mask::secrets::Secrets;
pub(crate) use crate::mask::veil::{Veil, Words};
