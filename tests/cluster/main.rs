//! `syncwright run` from outside: the built binary on a real control plane, with hooks that the tests script.

mod access;
mod answers;
mod author;
mod changing;
mod checked;
mod creating;
mod decorators;
mod definition_ending;
mod definition_status;
mod definitions;
mod deletion;
mod edges;
mod flags;
mod foreign;
mod kinds;
mod leadership;
mod loops;
mod observability;
mod operators;
mod ownership;
mod parents;
mod plain;
#[path = "../protocol/mod.rs"]
mod protocol;
mod related;
mod remote;
mod rights;
mod rolling;
mod schemas;
mod status;
mod storm;
mod strategies;
mod support;
mod takeover;
mod timing;
mod uninstall;
