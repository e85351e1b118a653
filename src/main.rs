//! syncwright: Kubernetes controllers declared in YAML, with hooks written as templates.

// `println!` panics where the reader has gone, as `head` does: `cli::out` prints.
#![warn(clippy::print_stdout)]

mod author;
mod cli;
mod cluster;
mod config;
mod controller;
mod hook;
mod mask;
mod metric;
mod migrate;
mod object;
mod plan;
mod problem;
mod proxy;
mod schedule;
mod schema;
mod serve;
mod template;
mod trace;
mod trust;
mod uninstall;

fn main() -> std::process::ExitCode {
    cli::run()
}
