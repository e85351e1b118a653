//! The command line: what was typed, what it means, what is printed.
//!
//! stdout is for data, stderr for talk. Exit codes are an interface: 0 done, 1 what was asked about is at fault, 2 it could
//! not be asked.

mod admin;
mod advice;
mod check;
mod diff;
mod explain;
mod log;
mod look;
mod machine;
mod manual;
mod migrate;
mod new;
mod out;
mod paint;
mod panic;
mod properties;
mod rbac;
mod record;
mod render;
mod run;
mod schema;
mod serve;
mod spelling;
mod test;
mod trace;
mod uninstall;
mod value;
mod version;
mod webhook;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{CommandFactory, Parser, Subcommand};

use crate::cli::log::Wish;
use crate::cli::paint::Colour;
use crate::cli::trace::Traces;
use crate::cluster::{Cluster, Manners};
use crate::controller::source::{self, Definitions};
use crate::problem::Problem;

#[derive(Parser)]
#[command(
    name = "syncwright",
    about = "Kubernetes controllers from manifests and Jinja templates",
    version = version::LINE.as_str(),
    propagate_version = false,
    disable_help_subcommand = true,
    after_help = AFTER_HELP
)]
struct Line {
    #[command(flatten)]
    log: log::Flags,
    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "\
Examples:
  syncwright run --controllers controllers.yaml   reconcile a cluster's parents
  syncwright serve                                answer hook calls from ./hooks on port 8090
  syncwright render mysql sync my.yaml            what would the hook answer?
  syncwright test                                 run all cases below ./hooks
  syncwright new website --group example.com      make an operator to begin with
  syncwright check                                what is wrong with them?
  syncwright uninstall --dry-run                  what has it left in the cluster?
  syncwright migrate websites.example.com         store all objects in the newest version

Exit codes:
  0  done
  1  what was asked about is at fault: a template, a request, a case
  2  it could not be asked: a wrong flag, a missing file, a port in use";

#[derive(Subcommand)]
enum Verb {
    Run(Box<run::Flags>),
    Serve(serve::Flags),
    Render(render::Flags),
    Test(test::Flags),
    Schema(schema::Flags),
    New(new::Flags),
    Manual(manual::Flags),
    Completions(manual::CompletionsFlags),
    Rbac(rbac::Flags),
    Check(check::Flags),
    Uninstall(uninstall::Flags),
    Migrate(migrate::Flags),
    Diff(diff::Flags),
    Record(record::Flags),
}

impl Verb {
    /// What runs on its own tells of it; what answers a person has its answer.
    fn log_wish(&self) -> Wish {
        match self {
            Verb::Run(flags) => flags.log_wish(),
            Verb::Serve(_) => Wish::at("info"),
            _ => Wish::at("off"),
        }
    }

    /// Whether there is something to be traced.
    fn keeps_running(&self) -> bool {
        matches!(self, Verb::Run(_) | Verb::Serve(_))
    }
}

/// How a verb ended, where it ended as planned.
enum Ended {
    Well,
    AtFault,
}

/// Reads the command line and does what it says.
pub(crate) fn run() -> ExitCode {
    panic::mind();
    let typed = spelling::ours(std::env::args_os(), &Line::command());
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = Line::try_parse_from(typed).unwrap_or_else(|error| advice::end(&error, &words));
    let traces = if line.verb.keeps_running() { Traces::begin() } else { Traces::default() };
    line.log.start(line.verb.log_wish(), &traces);
    traces.tell();
    let ended = match line.verb {
        Verb::Serve(flags) => serve::run(flags),
        Verb::Run(flags) => run::run(*flags),
        Verb::Render(flags) => render::run(flags),
        Verb::Test(flags) => test::run(flags),
        Verb::Schema(flags) => schema::run(flags),
        Verb::New(flags) => new::run(flags),
        Verb::Manual(flags) => manual::run(flags),
        Verb::Completions(flags) => manual::complete(flags),
        Verb::Rbac(flags) => rbac::run(flags),
        Verb::Check(flags) => check::run(flags),
        Verb::Uninstall(flags) => uninstall::run(flags),
        Verb::Migrate(flags) => migrate::run(flags),
        Verb::Diff(flags) => diff::run(flags),
        Verb::Record(flags) => record::run(flags),
    };
    traces.end();
    match ended {
        Ok(Ended::Well) => ExitCode::SUCCESS,
        Ok(Ended::AtFault) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {}", told_once(&error));
            ExitCode::from(2)
        }
    }
}

/// The error and its causes, without those that an error above has already told: some libraries' do.
fn told_once(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told {
        told if told.is_empty() => cause,
        told if told.contains(&cause) => told,
        told => format!("{told}: {cause}"),
    })
}

/// Connects to a cluster. What a person at a desk lacks is a kubeconfig.
async fn connect(kubeconfig: Option<&Path>, manners: Manners) -> Result<Arc<Cluster>> {
    Cluster::connect(kubeconfig, manners).await.map_err(|error| {
        let told = told_once(&anyhow::Error::from(error).context("connecting to the cluster"));
        anyhow::anyhow!("{told}; hint: name a cluster with --kubeconfig FILE or KUBECONFIG")
    })
}

/// The definitions of a file. A problem in it is an end here: it is shown.
fn definitions_in(path: &Path) -> Result<Definitions> {
    source::read_file(path).or_else(|problems| {
        problems.iter().for_each(show);
        bail!("`{}` cannot be used", path.display())
    })
}

/// Shows a problem to a person.
fn show(problem: &Problem) {
    let page = problem.page();
    let (headline, rest) = page.split_at(page.find('\n').unwrap_or(page.len()));
    eprintln!("{}{rest}", paint::on_stderr(Colour::Place, headline));
}

#[cfg(test)]
mod tests {
    use super::told_once;

    #[test]
    fn cause_that_was_told_is_not_told_again() {
        let error =
            anyhow::anyhow!("no such file").context("reading `a`: no such file").context("connecting");
        assert_eq!(told_once(&error), "connecting: reading `a`: no such file");
    }
}
