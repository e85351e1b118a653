//! A real Kubernetes control plane for the tests and the demo.
//!
//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler as released, and kwok in place of kubelets and of a
//! volume provisioner: StatefulSets become ready pod by pod, Jobs end, claims are bound and grow, children of deleted
//! owners are collected. No container runs.
//!
//! `helm` answers Helm, for tests of charts.
//!
//! The programs are built once from Go modules. `KUBEBUILDER_ASSETS` names a folder with some or all of them instead, and
//! `SYNCWRIGHT_KUBECONFIG` a cluster that exists, which then is used as it is.

mod client;
mod components;
mod error;
mod folder;
mod hold;
mod plane;
mod process;
mod programs;
mod wait;

pub use client::Response;
pub use error::Error;
pub use plane::{ControlPlane, Options, User};
pub use process::{spawn_tied, spawn_tied_group};
pub use programs::helm;
pub use wait::wait_until;

/// Speaks past the test harness, which would keep what `eprintln!` says until a test fails.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
