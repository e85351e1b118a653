//! `syncwright migrate`: stored objects in the version that their CRD stores now.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::out::{counted, say};
use crate::cli::{Ended, connect, show};
use crate::cluster::object::Managers;
use crate::cluster::{Cluster, Manners};
use crate::migrate::{Done, Subject, rewrite};

/// Rewrite stored objects in the version that their CRD stores, so that an older version can be dropped
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// Names of CRDs
    #[arg(required = true, value_name = "CRD")]
    crds: Vec<String>,
    /// Asks the API server whether it would take every object back, and writes nothing
    #[arg(long)]
    dry_run: bool,
    /// The cluster; else $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Each object is read and written back as it is. When all are, the CRD's status.storedVersions names the one version that is left,
and the older ones can be taken out of the CRD. One object that is refused is named and holds up no other; storedVersions stays
as it is then. It can be broken off and begun again at any time.

Examples:
  syncwright migrate --dry-run websites.example.com
  syncwright migrate websites.example.com

Exit codes: 0 all are stored in one version, 1 some are not, 2 it could not be asked";

/// A line of progress after so many objects.
const STRIDE: usize = 1000;

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let manners = Manners::brisk(Managers::named("syncwright-migrate"));
        let cluster = connect(flags.kubeconfig.as_deref(), manners).await?;
        let mut all_well = true;
        for name in &flags.crds {
            let well = migrate(&cluster, name, flags.dry_run).await;
            all_well &= well.with_context(|| format!("migrating `{name}`"))?;
        }
        Ok(if all_well { Ended::Well } else { Ended::AtFault })
    })
}

/// Whether all is stored in one version, or would be.
async fn migrate(cluster: &Cluster, name: &str, dry_run: bool) -> Result<bool> {
    let subject = match Subject::find(cluster, name).await? {
        Ok(subject) => subject,
        Err(problem) => {
            show(&problem);
            return Ok(false);
        }
    };
    let (storage, before) = (&subject.storage, subject.stored.join(", "));
    if subject.is_done() {
        say(format!("{name}: everything is stored as {storage} already"));
        return Ok(true);
    }
    let Some((resource, keys)) = subject.objects(cluster).await? else {
        eprintln!("error: {name}: the API server does not serve {storage}, the version that is stored");
        eprintln!("hint: set `served: true` for it in the CRD");
        return Ok(false);
    };
    let (all, kind) = (keys.len(), resource.gvk.kind.clone());
    let (mut rewritten, mut refused) = (0, 0);
    rewrite(cluster, &resource, keys, dry_run, &mut |done| match done {
        Done::Rewritten => {
            rewritten += 1;
            if rewritten % STRIDE == 0 {
                say(format!("{name}: {rewritten} of {all}"));
            }
        }
        Done::Gone => {}
        Done::Refused(key, error) => {
            refused += 1;
            eprintln!("error: {kind} {key}: {error}");
        }
    })
    .await;
    let objects = counted(rewritten, "object");
    if refused > 0 {
        let done = if dry_run { "would be rewritten" } else { "rewritten" };
        eprintln!("{name}: {objects} {done} as {storage}, {refused} refused: see above");
        eprintln!("note: stored versions stay: {before}");
        return Ok(false);
    }
    if dry_run {
        say(format!("{name}: {objects} would be rewritten as {storage}; stored versions now: {before}"));
        return Ok(true);
    }
    match subject.conclude(cluster).await {
        Ok(()) => {
            say(format!("{name}: {objects} rewritten as {storage}; stored versions: {before} -> {storage}"));
            Ok(true)
        }
        Err(error) if error.is(409) => {
            eprintln!("error: {name}: the CRD has changed meanwhile: {error}");
            eprintln!("hint: run it once more; what is stored as {storage} already costs next to nothing");
            Ok(false)
        }
        Err(error) => Err(error).context("writing status.storedVersions"),
    }
}
