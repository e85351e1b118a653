//! syncwright: Kubernetes controllers declared in YAML, with hooks written as templates.
#![allow(dead_code)]

fn main() {}
