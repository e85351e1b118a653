//! Rolling updates, with parts whose health the tests decide on, and with workloads that a real control plane runs.

mod changes;
mod finalizing;
mod kept;
mod killed;
mod ready;
pub mod stage;
mod steps;
