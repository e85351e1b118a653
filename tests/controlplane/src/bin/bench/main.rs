//! Measurements that take longer than a test may; `tests/bench` has a script for each.
//!
//! PROGRAM is the built `syncwright`. The tables go to stdout, what is under way to stderr.

mod cluster;
mod memory;
mod process;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: bench memory PROGRAM [PARENTS]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let measured = match arguments[..] {
        ["memory", program] => memory::measure(Path::new(program), 1000),
        ["memory", program, parents] => match parents.parse() {
            Ok(parents) => memory::measure(Path::new(program), parents),
            Err(error) => Err(format!("`{parents}`: {error}")),
        },
        _ => Err(USAGE.into()),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository, where the operators are.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
