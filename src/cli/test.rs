//! `syncwright test`: runs all cases and prints what differs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::author::case::{self, Accept, Verdict};
use crate::cli::{Ended, show};
use crate::hook::local::Shelf;

/// Run the cases below a hooks folder: requests in files, with the answers they must get
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// Write what a case gets as what it expects, where the two differ
    #[arg(long)]
    accept: bool,
    /// Only cases with this text in `<hook>/<case>/<call>`; with `*` it must match the whole
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
}

const AFTER_HELP: &str = "\
A case is a folder hooks/<hook>/cases/<case>/ with, for each call that it is about,
  <call>.request.yaml     a parent alone, or a request: parent, children, related, finalizing, controller, now, entropy
  <call>.response.yaml    the whole answer, exact
  <call>.error.txt        or the whole error page
Without `now` it is 2026-01-01T00:00:00Z; `entropy` is any text and seeds random_string.

Examples:
  syncwright test --only mysql/
  syncwright test --only '*/sync' --accept

Exit codes: 0 all passed, 1 a case failed, 2 there was nothing to run";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let folder = flags.hooks.display();
    let mut cases =
        case::find(&flags.hooks).with_context(|| format!("hooks folder `{folder}` cannot be read"))?;
    let all = cases.len();
    cases.retain(|case| flags.only.as_ref().is_none_or(|pattern| case.is_meant(pattern)));
    if let (true, Some(pattern)) = (cases.is_empty() && all > 0, &flags.only) {
        bail!("none of the {all} cases below `{folder}` matches `{pattern}`");
    }
    let shelf = Shelf::open(&flags.hooks);
    let broken = show_broken(&shelf);
    if cases.is_empty() && !broken {
        bail!("there is no case below `{folder}`; hint: a case is a folder `<hook>/cases/<case>/`");
    }
    let accept = if flags.accept { Accept::Yes } else { Accept::No };
    let (mut passed, mut accepted, mut failed) = (0, 0, 0);
    for case in &cases {
        match case.run(&shelf, accept).with_context(|| case.name.clone())? {
            Verdict::Passed => passed += 1,
            Verdict::Accepted(file) => {
                accepted += 1;
                println!("wrote {}", file.display());
            }
            Verdict::Failed(lines) => {
                failed += 1;
                println!("FAILED {}", case.name);
                lines.iter().for_each(|line| println!("  {line}"));
            }
        }
    }
    println!("{}", summary(passed, accepted, failed));
    Ok(if failed > 0 || broken { Ended::AtFault } else { Ended::Well })
}

/// Shows why hooks do not compile; their cases say only that they don't.
fn show_broken(shelf: &Shelf) -> bool {
    let state = shelf.state();
    let rejected = state.hooks.iter().flat_map(|hook| &hook.rejected).flat_map(|rejected| &rejected.problems);
    let mut problems: Vec<_> = rejected.chain(&state.unreadable).collect();
    // A broken file that several hooks include is one problem.
    problems.dedup();
    problems.iter().for_each(|problem| show(problem));
    !problems.is_empty()
}

fn summary(passed: usize, accepted: usize, failed: usize) -> String {
    let counts = [(passed, "passed"), (accepted, "accepted"), (failed, "failed")];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if parts.is_empty() { "no case was run".into() } else { parts.join(", ") }
}
