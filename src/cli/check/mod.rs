//! `syncwright check`: what is wrong with a folder of hooks, for a person or for CI.

mod forms;
mod sarif;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::author::check::finding::{Level, Rule};
use crate::author::check::{Project, Report, check};
use crate::cli::paint::{Colour, on_stdout};
use crate::cli::value::{self, USUAL_CONTROLLERS};
use crate::cli::{Ended, out};

/// Find what is wrong with hooks and definitions without a cluster: all at once, with the lines to mend
#[derive(Args)]
#[command(after_help = AFTER_HELP, after_long_help = after_long_help())]
pub(super) struct Flags {
    /// Only what is found in these hooks and in the definitions: names of folders below --hooks
    #[arg(value_name = "HOOK")]
    named: Vec<String>,
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// The definitions that call the hooks; `controllers.yaml` where it exists
    #[arg(long, value_name = "FILE")]
    controllers: Option<PathBuf>,
    /// Schemas of another Kubernetes version: what `kubectl get --raw /openapi/v2` printed
    #[arg(long, value_name = "FILE")]
    openapi: Option<PathBuf>,
    /// Leave a rule's findings out; may be given several times
    #[arg(long, value_name = "RULE", value_parser = rule)]
    allow: Vec<Rule>,
    /// text for a person, github for annotations in a workflow
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    format: Format,
}

const AFTER_HELP: &str = "\
Every case in hooks/*/cases/ and every example.yaml is rendered; the children are held against the schemas of their
kinds, the status against the parent's CRD, and the kinds against controllers.yaml.
A comment `# check: allow RULE` on the line or the one above allows a finding there; --help lists the rules.

Examples:
  syncwright check
  syncwright check mysql
  syncwright check --format sarif > check.sarif
  kubectl get --raw /openapi/v2 > openapi.json && syncwright check --openapi openapi.json

Exit codes: 0 nothing found, 1 something found, 2 it could not be checked";

/// The same with the rules.
fn after_long_help() -> String {
    let line = |rule: Rule| {
        let level = if rule.level() == Level::Error { "" } else { " (warning)" };
        format!("  {:18} {}{level}\n", rule.name(), rule.about())
    };
    format!("{AFTER_HELP}\n\nRules:\n{}", Rule::all().map(line).collect::<String>().trim_end())
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Github,
}

fn rule(name: &str) -> Result<Rule, String> {
    Rule::named(name).ok_or_else(|| {
        let near = crate::problem::nearest(name, Rule::all().map(Rule::name));
        let hint = near.map_or_else(
            || "`syncwright check --help` lists the rules".into(),
            |near| format!("did you mean `{near}`?"),
        );
        format!("there is no such rule; hint: {hint}")
    })
}

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let definitions = value::definitions(flags.controllers)?;
    let project = Project {
        hooks: &flags.hooks,
        definitions: definitions.as_deref(),
        openapi: flags.openapi.as_deref(),
        allowed: &flags.allow,
        only: &value::hooks(&flags.hooks, &flags.named)?,
    };
    let report = match check(&project) {
        Ok(report) => report,
        Err(problem) => bail!("{problem}"),
    };
    out::print(&match flags.format {
        Format::Text => as_text(&report, definitions.as_deref()),
        Format::Json => format!("{:#}\n", forms::json(&report)),
        Format::Sarif => format!("{:#}\n", sarif::sarif(&report)),
        Format::Github => forms::github(&report),
    })?;
    Ok(if report.findings.is_empty() { Ended::Well } else { Ended::AtFault })
}

fn as_text(report: &Report, definitions: Option<&Path>) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let page = finding.problem.page();
        let (first, rest) = page.split_once('\n').unwrap_or((&page, ""));
        text += &format!("{}\n", on_stdout(Colour::Place, first));
        if !rest.is_empty() {
            text += &format!("{rest}\n");
        }
        let level = match finding.rule.level() {
            Level::Error => on_stdout(Colour::Bad, "error"),
            Level::Warning => "warning".into(),
        };
        let seen = finding.seen.as_ref().map(|seen| match seen.times {
            1 => format!(", seen in {}", seen.file),
            2 => format!(", seen in {} and another", seen.file),
            times => format!(", seen in {} and {} others", seen.file, times - 1),
        });
        text += &format!("{level}: {}{}\n\n", finding.rule.name(), seen.unwrap_or_default());
    }
    text += &format!("{}\n", summary(report));
    if definitions.is_none() {
        text += &format!(
            "no definitions were read, as there is no `{USUAL_CONTROLLERS}` here; --controllers names them\n"
        );
    }
    text
}

fn summary(report: &Report) -> String {
    let many = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let errors = report.findings.iter().filter(|finding| finding.rule.level() == Level::Error).count();
    let warnings = report.findings.len() - errors;
    let found = match (errors, warnings) {
        (0, 0) => on_stdout(Colour::Good, "nothing found"),
        (errors, 0) => on_stdout(Colour::Bad, &many(errors, "error")),
        (0, warnings) => many(warnings, "warning"),
        (errors, warnings) => {
            on_stdout(Colour::Bad, &format!("{}, {}", many(errors, "error"), many(warnings, "warning")))
        }
    };
    let (hooks, renders) = (many(report.hooks, "hook"), many(report.renders, "request"));
    let checked = format!("{found} in {hooks}, {renders}, against Kubernetes {}", report.version);
    if report.unchecked.is_empty() {
        return checked;
    }
    let kinds: Vec<&str> = report.unchecked.iter().map(String::as_str).collect();
    format!("{checked}\nnot looked into, as no schema is known: {}", kinds.join(", "))
}
