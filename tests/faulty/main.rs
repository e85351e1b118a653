//! The controller against an API server that misbehaves.
//!
//! The built binary runs between a fake API server and a scripted hook, both in this process. What is asserted is what the
//! API server was asked and what it then holds: nothing deleted on doubt, no storm of writes, and everything right within
//! seconds once nothing is in the way.

mod apiserver;
#[path = "../support/controller.rs"]
mod controller;
mod dice;
mod hook;
mod http;
mod metrics;
#[path = "../../src/template/tests/mutation.rs"]
#[allow(dead_code, reason = "mistakes of values alone are made here")]
mod mutation;
#[path = "../protocol/mod.rs"]
mod protocol;
mod stage;

mod away;
mod chaos;
mod churn;
mod decorators;
mod definitions;
mod discovery;
mod leadership;
mod lies;
mod limits;
mod ports;
mod restarts;
mod rollouts;
mod strangers;
mod templates;
mod visits;
mod watches;
mod writes;
