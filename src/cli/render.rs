//! `syncwright render`: one call, from a file, printed.

use std::fs;
use std::io::{IsTerminal, Read, stdin, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use crate::cli::{Ended, show};
use crate::hook::local::renders::given_now;
use crate::hook::local::{Given, Reason, Shelf, in_file, to_yaml};

/// Print what a hook answers to a parent or a request in a file
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The hook: the name of a folder below --hooks
    hook: String,
    /// sync, finalize or customize
    call: String,
    /// A parent, or a request with `parent`, `children`, `related`, …; JSON or YAML; `-` for stdin
    file: PathBuf,
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// The time that the templates see, such as 2026-11-30T17:00:00Z, unless the file has its own `now`; else it is the current time
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// YAML on a terminal, JSON elsewhere
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<Form>,
}

const AFTER_HELP: &str = "\
Examples:
  syncwright render mysql sync hooks/mysql/example.yaml
  syncwright render mysql sync hooks/mysql/cases/ready/sync.request.yaml --now 2026-11-30T17:00:00Z
  kubectl get my/db -o yaml | syncwright render mysql sync - -o yaml

Exit codes: 0 rendered, 1 the template or the request is at fault, 2 there is no such file, hook or call";

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    Yaml,
    Json,
}

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let body = read(&flags.file)?;
    if !flags.hooks.is_dir() {
        bail!("there is no hooks folder `{}`; hint: name it with --hooks", flags.hooks.display());
    }
    let shelf = Shelf::open(&flags.hooks);
    let present = given_now();
    let given = Given { now: flags.now.unwrap_or(present.now), ..present };
    match shelf.answer(&flags.hook, &flags.call, &body, given) {
        Ok(response) => {
            let form = flags.output.unwrap_or(if stdout().is_terminal() { Form::Yaml } else { Form::Json });
            match form {
                Form::Yaml => print!("{}", to_yaml(&response.into_value())),
                Form::Json => println!("{:#}", response.into_value()),
            }
            Ok(Ended::Well)
        }
        Err(refusal) if refusal.reason == Reason::Unknown => bail!("{}", refusal.problem),
        Err(refusal) => {
            show(&in_file(refusal.problem, &flags.file.display().to_string()));
            Ok(Ended::AtFault)
        }
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>> {
    if file.as_os_str() == "-" {
        let mut body = Vec::new();
        stdin().read_to_end(&mut body).context("stdin cannot be read")?;
        return Ok(body);
    }
    fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()))
}
