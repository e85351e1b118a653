//! `syncwright record`: a real visit as a case.

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::{Timestamp, Unit};

use crate::author::record::{self, Call, Occasion, Trouble};
use crate::cli::Ended;
use crate::cli::look::{self, Look, Named, block_on};
use crate::cli::out::print;
use crate::cli::value::name;
use crate::config::spec::{HookSpec, Target};
use crate::controller::preview::Preview;
use crate::controller::visit::rehearsal::Asked;
use crate::hook::wire;
use crate::object::name::Key;

/// Save a visit of one parent as a case: what the hook is asked now, and what it answers
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The parent, such as `mysqls/shop`
    #[arg(value_parser = Named::parse)]
    parent: Named,
    /// Name of the case [default: recorded-<parent>]
    #[arg(long = "case", value_name = "NAME", value_parser = name)]
    case: Option<String>,
    /// The hook that answers, where the definition's webhook is a URL: the name of a folder below --hooks
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    #[command(flatten)]
    look: look::Flags,
}

const AFTER_HELP: &str = "\
Nothing is written in the cluster. The visit is rehearsed: its request is kept, with the time of the recording as `now`, and
the values of Secrets are masked wherever they stand. The answer is the one to the masked request, so that `syncwright test`
gets it again.

Examples:
  syncwright record mysqls/shop -n blog
  syncwright record mysqls/shop -n blog --case stuck-at-two-replicas && syncwright test --only stuck-at-two

Exit codes: 0 recorded, 2 it could not be";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    block_on(record(flags))
}

async fn record(flags: Flags) -> Result<Ended> {
    let Look { subjects, shelf } = flags.look.look(Some(&flags.parent)).await?;
    let (preview, parent) = one(&subjects)?;
    let now = Timestamp::now().round(Unit::Second).context("the clock cannot be read")?;
    let Some(asked) = preview.asked(parent).await else { bail!("the parent `{parent}` is gone") };
    if asked.is_empty() {
        bail!("a visit of `{parent}` asks no hook anything: see `syncwright diff`");
    }
    let calls = asked.into_iter().map(|asked| call(preview, asked, flags.hook.as_deref()));
    let calls = calls.collect::<Result<Vec<_>>>()?;
    let case = flags.case.unwrap_or_else(|| format!("recorded-{}", parent.name));
    let occasion = Occasion { parent: format!("{} {parent}", preview.gvk().kind), now };
    let recorded = match record::record(&flags.look.hooks, &shelf, &case, calls, &occasion) {
        Ok(recorded) => recorded,
        Err(Trouble::Io(error)) => return Err(error).context("writing the case"),
        Err(Trouble::Problem(problem)) => bail!("{problem}"),
    };
    for file in &recorded.files {
        print(&format!("wrote {}\n", file.display()))?;
    }
    for remark in &recorded.remarks {
        eprintln!("note: {remark}");
    }
    Ok(Ended::Well)
}

/// The one parent that is meant.
fn one(subjects: &[(Preview, Vec<Key>)]) -> Result<(&Preview, &Key)> {
    let all: Vec<(&Preview, &Key)> = subjects
        .iter()
        .flat_map(|(preview, parents)| parents.iter().map(move |key| (preview, key)))
        .collect();
    match all.as_slice() {
        [] => bail!("there is no such parent"),
        [one] => Ok(*one),
        many => {
            let found: Vec<String> = many
                .iter()
                .take(8)
                .map(|(preview, key)| format!("`{key}` of `{}`", preview.definition().name))
                .collect();
            bail!(
                "{} parents are meant: {}; hint: give a name, and a namespace with -n",
                many.len(),
                found.join(", ")
            )
        }
    }
}

fn call(preview: &Preview, asked: Asked, hook: Option<&str>) -> Result<Call> {
    let hooks = &preview.definition().spec.hooks;
    let spec = match asked.call {
        wire::Call::Sync => &hooks.sync,
        wire::Call::Finalize => &hooks.finalize,
        wire::Call::Customize => &hooks.customize,
        review => bail!("`{}` is not asked by a controller", review.name()),
    };
    let name = asked.call.name();
    let (hook, call) = match (spec.as_ref().map(target), hook) {
        (Some(Target::BuiltIn { call, .. }), Some(hook)) => (hook.to_string(), call.clone()),
        (Some(Target::BuiltIn { hook, call }), None) => (hook.clone(), call.clone()),
        (_, Some(hook)) => (hook.to_string(), name.to_string()),
        (_, None) => bail!("its {name} hook is a URL; hint: name the folder of its templates with --hook"),
    };
    let request = serde_json::from_slice(&asked.body).context("a request is JSON")?;
    Ok(Call { hook, call, request, answered: asked.children.is_some() })
}

fn target(spec: &HookSpec) -> &Target {
    &spec.webhook.target
}
