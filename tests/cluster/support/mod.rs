//! What every test here works with: a lab of its own on the shared control plane, a scripted hook, the built binary.

#[path = "../../support/canary.rs"]
pub mod canary;
#[path = "../../support/controller.rs"]
pub mod controller;
pub mod hook;
pub mod lab;
pub mod objects;
pub mod pages;
pub mod peer;
pub mod plain;
pub mod rights;
pub mod tls;
