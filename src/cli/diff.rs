//! `syncwright diff`: what a controller with these definitions and templates would change in a cluster.

use anyhow::{Result, bail};
use clap::Args;
use futures::StreamExt;

use crate::author::diff::{Line, Summary, Tone, lines};
use crate::cli::Ended;
use crate::cli::look::{self, Look, Named, block_on};
use crate::cli::out::print;
use crate::cli::paint::{Colour, on_stdout};
use crate::controller::preview::Preview;
use crate::object::name::Key;
use crate::plan::preview::Outcome;

/// So many visits are rehearsed at once.
const AT_ONCE: usize = 8;

/// Show what `run` would create, change and delete in the cluster; nothing is written
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// Only these parents: a kind such as `mysqls`, or one object such as `mysqls/shop`
    #[arg(value_parser = Named::parse)]
    parent: Option<Named>,
    #[command(flatten)]
    look: look::Flags,
}

const AFTER_HELP: &str = "\
Every parent's visit is rehearsed with its hook as it is now: what it would write is sent as a server-side dry run, so
defaults, webhooks and refusals of the cluster count. Values of Secrets are masked. A roll-out is shown as it ends.
The same rights are needed as for `run`: see `syncwright rbac`.

  +    would be created          -    would be deleted
  ~    would be changed          -/+  would be deleted and made anew
  !    would be refused

Examples:
  syncwright diff --controllers controllers.yaml
  syncwright diff --controllers controllers.yaml mysqls/shop -n blog

Exit codes: 0 nothing would change, 1 something would, 2 it could not be found out";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    block_on(diff(flags))
}

async fn diff(flags: Flags) -> Result<Ended> {
    let Look { subjects, .. } = flags.look.look(flags.parent.as_ref()).await?;
    let mut summary = Summary::default();
    for (preview, parents) in &subjects {
        let mut outcomes =
            futures::stream::iter(parents.iter().map(|key| outcome(preview, key))).buffered(AT_ONCE);
        while let Some(outcome) = outcomes.next().await {
            // A parent that went meanwhile changes no more.
            let Some(outcome) = outcome else { continue };
            summary.add(&outcome);
            let text: String = lines(&outcome).iter().map(painted).collect();
            print(&text)?;
        }
    }
    print(&format!("{}\n", summary.text()))?;
    match summary.unknown() {
        0 if summary.changes() => Ok(Ended::AtFault),
        0 => Ok(Ended::Well),
        1 => bail!("of 1 parent it cannot be told what would happen"),
        many => bail!("of {many} parents it cannot be told what would happen"),
    }
}

async fn outcome(preview: &Preview, key: &Key) -> Option<Outcome> {
    preview.outcome(key).await
}

fn painted(line: &Line) -> String {
    let text = match line.tone {
        Tone::Plain => line.text.clone(),
        Tone::Head => on_stdout(Colour::Place, &line.text),
        Tone::Added => on_stdout(Colour::Good, &line.text),
        Tone::Removed | Tone::Wrong => on_stdout(Colour::Bad, &line.text),
    };
    text + "\n"
}
