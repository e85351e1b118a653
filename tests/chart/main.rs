//! The chart as its users have it: Helm itself, and a real control plane that it installs into.

#[path = "../support/controller.rs"]
mod controller;
mod helm;
mod lint;
mod lives;
mod mounted;
mod rights;
mod snapshots;
