//! Measurements that take longer than a test may; `tests/bench` has a script for each.
//!
//! PROGRAM is the built `syncwright`. The tables go to stdout, what is under way to stderr.

mod cluster;
mod load;
mod memory;
mod parents;
mod process;
mod serve;
mod start;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str =
    "usage: bench memory PROGRAM PARENTS | bench serve PROGRAM SECONDS | bench start PROGRAM STARTS";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match measure(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[&str]) -> Result<(), String> {
    let [what, program, number] = arguments else { return Err(USAGE.into()) };
    let program =
        Path::new(program).canonicalize().map_err(|error| format!("the program `{program}`: {error}"))?;
    let number: usize = number.parse().map_err(|error| format!("`{number}`: {error}"))?;
    match *what {
        "memory" => memory::measure(&program, number),
        "serve" => serve::measure(&program, number),
        "start" => start::measure(&program, number),
        _ => Err(USAGE.into()),
    }
}

/// The root of the repository, where the operators are.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is where it was built")
}
