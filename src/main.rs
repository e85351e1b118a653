//! syncwright: Kubernetes controllers declared in YAML, with hooks written as templates.
#![allow(dead_code)]

mod cluster;
mod config;
mod controller;
mod hook;
mod object;
mod problem;
mod schedule;
mod template;

fn main() {}
