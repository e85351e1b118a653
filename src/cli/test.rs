//! `syncwright test`: runs all cases and prints what differs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::author::case::{self, Accept, Case, Verdict};
use crate::author::test::coverage::Coverage;
use crate::author::test::{self, Results};
use crate::cli::paint::{self, Colour};
use crate::cli::{Ended, out, properties, show, value};
use crate::hook::local::Shelf;
use crate::template::Watching;

/// Run the cases below a hooks folder: requests in files, with the answers they must get
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// Only these hooks: names of folders below --hooks
    #[arg(value_name = "HOOK")]
    pub(super) named: Vec<String>,
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    pub(super) hooks: PathBuf,
    /// Write what a case gets as what it expects, where the two differ
    #[arg(long)]
    accept: bool,
    /// Only cases with this text in `<hook>/<case>/<call>`; with `*` it must match the whole; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(super) only: Vec<String>,
    /// Tell which branches of the templates no case takes: `if`, `elif`, `for` and `… if … else …`
    #[arg(long)]
    coverage: bool,
    /// Instead of the cases, try each hook that has a crd.yaml with odd parents that its schema allows
    #[arg(long, conflicts_with_all = ["accept", "coverage", "junit", "json"])]
    properties: bool,
    /// With --properties: how many parents each hook is tried with
    #[arg(long, value_name = "N", default_value = "200", value_parser = value::whole::<u64>(1..=u64::MAX, 200), requires = "properties")]
    pub(super) runs: u64,
    /// With --properties: another seed makes other parents
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::whole::<u64>(0..=u64::MAX, 1), requires = "properties")]
    pub(super) seed: u64,
    /// With --properties: the definitions, which say what kinds of children a hook may answer; `controllers.yaml` where it exists
    #[arg(long, value_name = "FILE", env = "SYNCWRIGHT_CONTROLLERS")]
    pub(super) controllers: Option<PathBuf>,
    /// Also write the results as JUnit's XML; `-` is stdout, in place of the text
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write the results as JSON; `-` is stdout, in place of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
A case is a folder hooks/<hook>/cases/<case>/ with, for each call that it is about,
  <call>.request.yaml     a parent alone, or a request: parent, children, related, finalizing, controller, now, entropy
  <call>.response.yaml    the whole answer, exact
  <call>.error.txt        or the whole error page
Without `now` it is 2026-01-01T00:00:00Z; `entropy` is any text and seeds random_string.

Examples:
  syncwright test mysql
  syncwright test --only '*/sync' --accept
  syncwright test --junit report.xml
  syncwright test mysql --coverage
  syncwright test mysql --properties

With --properties each parent must be answered, or refused with the template's own fail(…); the same way twice; with children
that a cluster takes; and again once those are observed. The smallest parent that shows a fault is printed.

Exit codes: 0 all passed, 1 a case failed, 2 there was nothing to run";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    if flags.properties {
        return properties::run(&flags);
    }
    if [&flags.json, &flags.junit].into_iter().all(|file| file.as_deref().is_some_and(is_stdout)) {
        bail!("`--json -` and `--junit -` cannot both go to stdout; hint: name a file for one of them");
    }
    let watching = if flags.coverage { Watching::Branches } else { Watching::Nothing };
    let shelf = Shelf::open_watched(&flags.hooks, watching);
    let cases = meant(&flags)?;
    if cases.is_empty() && shelf.state().hooks.iter().all(|hook| hook.rejected.is_none()) {
        let hint = case::one_hook(&flags.hooks)
            .unwrap_or_else(|| "a case is a folder `<hook>/cases/<case>/`".to_string());
        bail!("there is no case below `{}`; hint: {hint}", flags.hooks.display());
    }
    let accept = if flags.accept { Accept::Yes } else { Accept::No };
    let results = test::run(&cases, &shelf, accept)
        .map_err(|unreadable| anyhow::Error::from(unreadable.cause).context(unreadable.case))?;
    write_reports(&flags, &results)?;
    if ![&flags.json, &flags.junit].into_iter().flatten().any(|file| is_stdout(file)) {
        results.problems.iter().for_each(show);
        out::print(&as_text(&results))?;
    }
    Ok(if results.are_good() { Ended::Well } else { Ended::AtFault })
}

/// The cases that were asked for.
fn meant(flags: &Flags) -> Result<Vec<Case>> {
    let folder = flags.hooks.display();
    let mut cases =
        case::find(&flags.hooks).with_context(|| format!("hooks folder `{folder}` cannot be read"))?;
    let named = value::hooks(&flags.hooks, &flags.named)?;
    if !named.is_empty() {
        cases.retain(|case| named.contains(&case.hook().to_string()));
    }
    let all = cases.len();
    if flags.only.is_empty() {
        return Ok(cases);
    }
    cases.retain(|case| flags.only.iter().any(|pattern| case.is_meant(pattern)));
    if cases.is_empty() && all > 0 {
        bail!("none of the {all} cases below `{folder}` matches `{}`", flags.only.join("` or `"));
    }
    Ok(cases)
}

fn write_reports(flags: &Flags, results: &Results) -> Result<()> {
    if let Some(file) = &flags.json {
        write_report(file, &format!("{:#}\n", results.json()))?;
    }
    if let Some(file) = &flags.junit {
        write_report(file, &results.junit())?;
    }
    Ok(())
}

fn write_report(file: &Path, report: &str) -> Result<()> {
    if is_stdout(file) {
        return Ok(out::print(report)?);
    }
    fs::write(file, report).with_context(|| format!("`{}` cannot be written", file.display()))
}

fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn as_text(results: &Results) -> String {
    let mut lines = Vec::new();
    for outcome in &results.outcomes {
        match &outcome.verdict {
            Verdict::Passed => {}
            Verdict::Accepted(file) if is_error(file) => {
                lines.push(format!("wrote {}: what it expects is an error", file.display()));
            }
            Verdict::Accepted(file) => lines.push(format!("wrote {}", file.display())),
            Verdict::Failed(differing) => {
                let failed = paint::on_stdout(Colour::Bad, "FAILED");
                lines.push(format!("{failed} {}/{}", outcome.hook, outcome.case));
                lines.extend(differing.iter().map(|line| format!("  {line}")));
            }
        }
    }
    lines.push(summary(results));
    lines.extend(results.coverage.iter().flat_map(of_coverage));
    lines.join("\n") + "\n"
}

fn is_error(file: &Path) -> bool {
    file.to_string_lossy().ends_with(".error.txt")
}

fn of_coverage(coverage: &Coverage) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &coverage.files {
        let (taken, all) = file.counts();
        lines.push(format!("{}: {taken} of {all} branches", file.file));
        let untaken = file.untaken();
        lines.extend(untaken.map(|(place, what)| format!("  {}:{}: {what}", place.line, place.column)));
    }
    let (taken, all) = coverage.counts();
    lines.push(format!("{taken} of {all} branches taken"));
    lines
}

fn summary(results: &Results) -> String {
    let counts = [
        (results.count(|verdict| matches!(verdict, Verdict::Passed)), "passed", Colour::Good),
        (results.count(|verdict| matches!(verdict, Verdict::Accepted(_))), "accepted", Colour::Good),
        (results.count(|verdict| matches!(verdict, Verdict::Failed(_))), "failed", Colour::Bad),
    ];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, what, colour)| paint::on_stdout(colour, &format!("{count} {what}")))
        .collect();
    if parts.is_empty() { "no case was run".into() } else { parts.join(", ") }
}
