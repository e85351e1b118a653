//! `syncwright uninstall`: takes away what this product has left in a cluster, and shows each step.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::cli::out::{counted, say};
use crate::cli::{Ended, connect, definitions_in, value};
use crate::cluster::Manners;
use crate::cluster::object::{Managers, Object};
use crate::config::marks::marks;
use crate::object::selector::Selector;
use crate::uninstall::{self, Done, Holder, Marked, Plan, Thing, Wish};

/// Remove finalizers from parents, then the definitions, from a cluster in which no controller runs any more
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// Shows what would be done, and does nothing
    #[arg(long)]
    dry_run: bool,
    /// Definitions that were run from a file, or are gone from the cluster already: their parents are cleaned too
    #[arg(long, value_name = "FILE", env = "SYNCWRIGHT_CONTROLLERS")]
    controllers: Option<PathBuf>,
    /// Takes only those of the cluster's definitions that have these labels, as `run` did
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true, value_parser = value::selector)]
    target_label_selector: Selector,
    /// Also deletes the CRDs of the definitions
    #[arg(long)]
    crds: bool,
    /// The cluster; else $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The name of the Lease that a running controller holds
    #[arg(long, visible_alias = "leader-election-id", value_name = "NAME", default_value = "metacontroller")]
    leader_elect_id: String,
    /// Looks for the Lease in this namespace alone [default: in all]
    #[arg(
        long,
        visible_alias = "leader-election-namespace",
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    leader_elect_namespace: String,
}

const AFTER_HELP: &str = "\
Stop the controller first. While its Lease is held nothing is done; a controller without leader election has none, and puts
its finalizers on again until its definition is gone.

Children stay as they are, with their owner references: they go when their parents are deleted, and not before.
It can be broken off and begun again at any time.

Examples:
  syncwright uninstall --dry-run
  syncwright uninstall --controllers controllers.yaml --crds

Exit codes: 0 nothing is left, 1 something is, 2 it could not be asked";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(uninstall(flags))
}

async fn uninstall(flags: Flags) -> Result<Ended> {
    let wish = wish(&flags)?;
    // Nothing is watched.
    let manners = Manners::brisk(Managers::named("syncwright-uninstall"));
    let cluster = connect(flags.kubeconfig.as_deref(), manners).await?;
    let plan = uninstall::survey(&cluster, &wish)
        .await
        .map_err(|trouble| anyhow::anyhow!(trouble.error).context(format!("looking at {}", trouble.about)))?;
    if flags.dry_run {
        show(&plan);
        plan.holders.iter().for_each(|holder| eprintln!("note: it would be refused now: {}", still(holder)));
        return Ok(Ended::Well);
    }
    if let Some(holder) = plan.holders.first() {
        eprintln!("error: {}", still(holder));
        eprintln!("hint: stop it, for example by scaling its workload to 0, and try again a moment later");
        return Ok(Ended::AtFault);
    }
    if !plan.crds.is_empty() && plan.others > 0 {
        let others = plan.others;
        eprintln!("error: the CRDs are still needed: {}", counted(others, "other definition"));
        eprintln!("hint: leave --crds out, or take all of them without --target-label-selector");
        return Ok(Ended::AtFault);
    }
    if plan.is_empty() {
        say("nothing is left to remove");
        return Ok(Ended::Well);
    }
    let mut tally = Tally::default();
    uninstall::carry_out(&cluster, &plan, &mut |done| tally.tell(&done)).await;
    say(tally.summary());
    Ok(if tally.left == 0 { Ended::Well } else { Ended::AtFault })
}

fn wish(flags: &Flags) -> Result<Wish> {
    let mut found = Vec::new();
    if let Some(path) = &flags.controllers {
        let definitions = definitions_in(path)?;
        found.extend(
            definitions.by_id.values().flat_map(|definition| marks(definition.spec.role, &definition.raw)),
        );
    }
    Ok(Wish {
        marks: found,
        selector: flags.target_label_selector.clone(),
        crds: flags.crds,
        lease: flags.leader_elect_id.clone(),
        lease_namespace: flags.leader_elect_namespace.clone(),
    })
}

fn still(holder: &Holder) -> String {
    format!(
        "a controller still runs: Lease {} is held by `{}`, which renewed it {} s ago",
        holder.lease, holder.identity, holder.seconds
    )
}

fn show(plan: &Plan) {
    for kind in &plan.kinds {
        kind.objects.iter().for_each(|object| say(format!("would take {}", finalizers(kind, object))));
    }
    for thing in plan.definitions.iter().chain(&plan.crds) {
        say(format!("would delete {}", called(thing)));
    }
    if plan.is_empty() {
        say("nothing is left to remove");
    }
}

fn finalizers(kind: &Marked, object: &Object) -> String {
    let names: Vec<&str> = kind.on(object).collect();
    format!("{} off {} {}", names.join(", "), kind.resource.gvk.kind, object.key)
}

fn called(thing: &Thing) -> String {
    format!("{} {}", thing.resource.gvk.kind, thing.object.key)
}

/// What was done so far.
#[derive(Default)]
struct Tally {
    cleaned: usize,
    deleted: usize,
    left: usize,
}

impl Tally {
    fn tell(&mut self, done: &Done) {
        match done {
            Done::TakenOff(kind, object) => {
                self.cleaned += 1;
                say(format!("took {}", finalizers(kind, object)));
            }
            Done::Deleted(thing) => {
                self.deleted += 1;
                say(format!("deleted {}", called(thing)));
            }
            Done::PutOnAgain(resource, key) => {
                self.left += 1;
                eprintln!(
                    "error: {} {} had its finalizer put on again: a controller still runs",
                    resource.gvk.kind, key
                );
            }
            Done::Kept(thing) => {
                self.left += 1;
                eprintln!("error: {} stays until its parents are clean", called(thing));
            }
            Done::Failed(trouble) => {
                self.left += 1;
                eprintln!("error: {}: {}", trouble.about, trouble.error);
            }
        }
    }

    fn summary(&self) -> String {
        let done = format!(
            "{} cleaned, {} deleted",
            counted(self.cleaned, "parent"),
            counted(self.deleted, "object")
        );
        if self.left == 0 { done } else { format!("{done}, {} left: see above", self.left) }
    }
}
