//! `syncwright render`: one call, from a file, printed.

use std::fs;
use std::io::{IsTerminal, Read, stdin, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use crate::author::{self, created, parent_file};
use crate::cli::{Ended, explain, out, show, value};
use crate::hook::local::answer::Response;
use crate::hook::local::renders::given_now;
use crate::hook::local::{Given, Reason, Shelf, in_file, to_yaml};

/// Print what a hook answers to a parent or a request in a file
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The hook: the name of a folder below --hooks
    hook: String,
    /// sync, finalize, customize, validate, default or convert
    call: String,
    /// A parent, or a request with `parent`, `children`, `related`, … (`object`, `old`, `to`, …); JSON or YAML; `-` for stdin
    file: PathBuf,
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// The time that the templates see, such as 2026-11-30T17:00:00Z, unless the file has its own `now`; else it is the current time
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    now: Option<Timestamp>,
    /// Observed children: a folder or a file of manifests, such as `kubectl get -o yaml` prints; `-` for stdin
    #[arg(long, value_name = "DIR")]
    children: Option<PathBuf>,
    /// Print where each field comes from: the template's line, what it was computed from, the conditions that it stands in
    #[arg(long)]
    explain: bool,
    /// YAML on a terminal, JSON elsewhere; with --explain, either only where it is asked for
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<Form>,
}

const AFTER_HELP: &str = "\
Examples:
  syncwright render mysql sync hooks/mysql/example.yaml
  syncwright render mysql sync hooks/mysql/cases/ready/sync.request.yaml --now 2026-11-30T17:00:00Z
  kubectl get my/db -o yaml | syncwright render mysql sync - -o yaml
  syncwright render mysql sync hooks/mysql/example.yaml --explain
  syncwright render mysql sync my.yaml --children observed/

Exit codes: 0 rendered, 1 the template or the request is at fault, 2 there is no such file, hook or call";

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    Yaml,
    Json,
}

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let mut body = read(&flags.file)?;
    if let Some(children) = &flags.children {
        let file = flags.file.display().to_string();
        body = author::render::with_children(&file, &body, children)
            .map_err(|problem| anyhow::anyhow!("{}", problem.page()))?;
    }
    if !flags.hooks.is_dir() {
        bail!("there is no hooks folder `{}`; hint: name it with --hooks", flags.hooks.display());
    }
    let stdin = flags.file.as_os_str() == "-";
    let file = if stdin { "stdin".into() } else { flags.file.display().to_string() };
    if let Some(problem) = parent_file::unfit(&flags.hooks, &flags.hook, &file, &body) {
        show(&problem);
        return Ok(Ended::AtFault);
    }
    let hook = value::hooks(&flags.hooks, std::slice::from_ref(&flags.hook))
        .map_or(flags.hook.clone(), |mut hooks| hooks.remove(0));
    let shelf = Shelf::open(&flags.hooks);
    let present = given_now();
    let given = Given { now: flags.now.unwrap_or(present.now), ..present };
    let body = created::alone(&flags.hooks, &hook, &flags.call, body, given.now);
    match shelf.answer(&hook, &flags.call, &body, given) {
        Ok(response) => {
            out::print(&match (flags.explain, flags.output) {
                (true, Some(Form::Json)) => format!("{:#}\n", explain::as_json(&response.explain())),
                (true, Some(Form::Yaml)) => to_yaml(&explain::as_json(&response.explain())),
                (true, None) => explain::as_text(&response.explain()),
                (false, form) => answer(response, form),
            })?;
            Ok(Ended::Well)
        }
        Err(refusal) if refusal.reason == Reason::Unknown => bail!("{}", refusal.problem),
        Err(refusal) => {
            show(&in_file(refusal.problem, &file));
            Ok(Ended::AtFault)
        }
    }
}

fn answer(response: Response, form: Option<Form>) -> String {
    let usual = if stdout().is_terminal() { Form::Yaml } else { Form::Json };
    match form.unwrap_or(usual) {
        Form::Yaml => to_yaml(&response.into_value()),
        Form::Json => format!("{:#}\n", response.into_value()),
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>> {
    if file.as_os_str() == "-" {
        let mut body = Vec::new();
        stdin().read_to_end(&mut body).context("stdin cannot be read")?;
        return Ok(body);
    }
    if file.is_dir() {
        bail!("`{}` is a folder; expected: a file with a parent or a request", file.display());
    }
    fs::read(file).with_context(|| format!("`{}` cannot be read", file.display()))
}
