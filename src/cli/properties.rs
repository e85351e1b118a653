//! `syncwright test --properties`: prints how hooks do with odd parents.

use anyhow::{Result, anyhow, bail};

use crate::author::properties::{self, Found, Trial, Tried};
use crate::cli::paint::{self, Colour};
use crate::cli::{Ended, out, test, value};
use crate::hook::local::{Shelf, to_yaml};

pub(super) fn run(flags: &test::Flags) -> Result<Ended> {
    let shelf = Shelf::open(&flags.hooks);
    let (definitions, named) =
        (value::definitions(flags.controllers.clone())?, value::hooks(&flags.hooks, &flags.named)?);
    let definitions = definitions.as_deref();
    let trial = Trial { hooks: &flags.hooks, definitions, runs: flags.runs, seed: flags.seed };
    let is_meant = |hook: &str| {
        (named.is_empty() || named.iter().any(|name| name == hook))
            && (flags.only.is_empty()
                || flags.only.iter().any(|only| hook.contains(only.trim_end_matches('/'))))
    };
    let tried = properties::run(&trial, &shelf, is_meant).map_err(|problem| anyhow!("{}", problem.page()))?;
    if tried.is_empty() {
        bail!("no hook below `{}` that is meant has a `crd.yaml`", flags.hooks.display());
    }
    tried.iter().try_for_each(|tried| out::print(&told(tried, flags.seed)))?;
    let bad = tried.iter().filter(|tried| tried.fault.is_some()).count();
    Ok(if bad > 0 { Ended::AtFault } else { Ended::Well })
}

fn told(tried: &Tried, seed: u64) -> String {
    let Tried { hook, good, refused, fault, .. } = tried;
    match fault {
        None => {
            let good = paint::on_stdout(Colour::Good, &format!("{good} parents"));
            format!("{hook}: {good}, of which {refused} are refused on purpose\n")
        }
        Some(found) => {
            let failed = paint::on_stdout(Colour::Bad, "FAULT");
            format!("{failed} {hook}/{}, after {good} parents of seed {seed}\n{}", found.call, page(found))
        }
    }
}

fn page(found: &Found) -> String {
    let lines = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    format!("{}  with the parent:\n{}", lines(&found.problem.page()), lines(&lines(&to_yaml(&found.parent))))
}
