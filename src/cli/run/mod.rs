//! `syncwright run`: the controller, with the hook service in the same process.

mod certificate;
mod election;
mod limits;
mod peer;
mod zap;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::FutureExt;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::error;

use crate::cli::log::Wish;
use crate::cli::{Ended, admin, connect, definitions_in, machine, serve, value, webhook};
use crate::cluster::gate::Gate;
use crate::cluster::lease::Election;
use crate::cluster::object::Managers;
use crate::cluster::{Cluster, Manners};
use crate::controller::meter::Meters;
use crate::controller::source::{self, Definitions};
use crate::controller::{self, Hooks, Settings};
use crate::hook::PathService;
use crate::hook::local::renders::Renders;
use crate::hook::local::{Polling, Shelf};
use crate::object::selector::Selector;
use crate::serve::certificate::Certificate;

/// Watch parents, call their hooks, apply children, write status
#[derive(Args)]
#[command(after_help = AFTER_HELP, after_long_help = LONG_HELP.as_str(), args_override_self = true)]
pub(super) struct Flags {
    /// Definitions to run, beside the cluster's CompositeControllers and DecoratorControllers; followed for changes
    #[arg(long, value_name = "FILE", env = "SYNCWRIGHT_CONTROLLERS")]
    controllers: Option<PathBuf>,
    /// Runs only those of the cluster's definitions that have these labels, as `kubectl get -l` has them
    #[arg(long, value_name = "SELECTOR", default_value = "", value_parser = value::selector)]
    target_label_selector: Selector,
    /// Looks at nothing outside this namespace, so that a Role is enough; may be repeated. With --controllers no definitions
    /// are read from the cluster, where they have no namespace
    #[arg(long, value_name = "NAMESPACE", value_parser = value::namespace)]
    namespace: Vec<String>,
    /// The hooks folder, for webhooks that have a path alone
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// Sends webhooks that have a path alone to a hook service deployed apart
    #[arg(long, value_name = "URL", conflicts_with = "hooks", value_parser = value::url)]
    hook_url: Option<String>,
    /// Also answer hook calls over HTTP here, as `serve` does; :PORT for every address
    #[arg(long, value_name = "ADDRESS:PORT", env = "SYNCWRIGHT_LISTEN", value_parser = value::address)]
    listen: Option<String>,
    /// The cluster; else $KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<OsString>,
    /// Field manager of children; the status is written as <NAME>-status
    #[arg(
        long,
        visible_alias = "apply-strategy-ssa-field-manager",
        value_name = "NAME",
        default_value = "metacontroller"
    )]
    field_manager: String,
    /// How long a finalize hook that cannot be used may hold up a deletion
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = value::whole::<u64>(0..=u64::MAX, 60))]
    finalize_patience: u64,
    /// Look at the hooks folder twice a second, where the system does not tell of changes
    #[arg(long)]
    poll: bool,
    /// How long a watch may be silent; API servers send a sign of life about every minute
    #[arg(long, value_name = "SECONDS", default_value = "90", hide = true, value_parser = value::whole::<u64>(1..=u64::MAX, 90))]
    watch_idle_seconds: u64,
    /// Visits every parent at least this often; 0 turns it off
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = value::duration)]
    cache_flush_interval: Duration,
    /// Children are always written by server-side apply
    #[arg(long, value_name = "STRATEGY", value_parser = ["dynamic-apply", "server-side-apply"], hide = true)]
    apply_strategy: Option<String>,
    #[command(flatten)]
    limits: limits::Flags,
    #[command(flatten)]
    election: election::Flags,
    #[command(flatten)]
    webhook: webhook::Flags,
    #[command(flatten)]
    certificate: certificate::Flags,
    #[command(flatten)]
    admin: admin::Flags,
    #[command(flatten)]
    zap: zap::Flags,
    #[command(flatten)]
    ignored: peer::Ignored,
}

impl Flags {
    /// What the flags of others ask of the log.
    pub(super) fn log_wish(&self) -> Wish {
        let wish = self.zap.wish();
        Wish { level: wish.level.or(Some("info")), ..wish }
    }

    fn tell_of_ignored(&self) {
        if self.apply_strategy.as_deref() == Some("dynamic-apply") {
            let reason =
                "children are written by server-side apply; what the other strategy has left is taken over";
            tracing::info!(
                flag = "--apply-strategy=dynamic-apply",
                why = reason,
                "flag has no meaning here, ignored"
            );
        }
        self.ignored.tell();
    }
}

static LONG_HELP: LazyLock<String> = LazyLock::new(|| format!("{}\n\n{AFTER_HELP}", peer::TABLE));

const AFTER_HELP: &str = "\
Try:
  syncwright run --controllers controllers.yaml --hooks hooks
  syncwright run --listen 127.0.0.1:8090          the same process answers curl
  syncwright run --webhook-listen :9443 --webhook-host syncwright.operators.svc
                                                  the API server may ask too

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 the lease is lost (or a second signal came), 2 it could not start";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    let threads = (machine::cpus() / 2).clamp(1, 4);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let ended = runtime.block_on(control(flags));
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

async fn control(flags: Flags) -> Result<Ended> {
    if flags.hook_url.is_some() && flags.webhook.is_given() {
        bail!(
            "--webhook-listen answers from the hooks folder; hint: with --hook-url give it to that service"
        );
    }
    flags.tell_of_ignored();
    let file = match &flags.controllers {
        Some(path) => Some((path.clone(), definitions_in(path)?)),
        None => None,
    };
    let claim = flags.election.claim()?;
    // An empty path is none, as it is for Metacontroller.
    let kubeconfig = flags.kubeconfig.as_ref().filter(|path| !path.is_empty());
    let manners = Manners {
        managers: Managers::named(&flags.field_manager),
        watch_idle: Duration::from_secs(flags.watch_idle_seconds),
        gate: if claim.is_some() { Gate::closed() } else { Gate::open() },
        request_rate: flags.limits.request_rate(),
        event_rate: flags.limits.event_rate(),
        namespaces: namespaces(&flags),
        definitions: Some(flags.target_label_selector.clone())
            .filter(|_| flags.namespace.is_empty() || flags.controllers.is_none()),
    };
    let cluster = connect(kubeconfig.map(Path::new), manners).await?;
    let cluster_definitions = source::follow_cluster(source::Holds::of(&cluster));
    let definitions = match file {
        Some((path, first)) => source::join(source::follow_file(path, first), cluster_definitions),
        None => cluster_definitions,
    };
    let settings = Settings {
        workers: flags.limits.workers(),
        further_visits: Arc::new(Semaphore::new(flags.limits.visits() - 1)),
        finalize_patience: Duration::from_secs(flags.finalize_patience),
        resync: Some(flags.cache_flush_interval).filter(|interval| !interval.is_zero()),
        ..Settings::default()
    };
    flags.limits.tell();
    let work = work(&flags, cluster.clone(), definitions, settings);
    match claim {
        Some(claim) => elected(Election::new(cluster, claim), work).await,
        None => work.await,
    }
}

fn namespaces(flags: &Flags) -> Vec<String> {
    let namespaces: BTreeSet<&String> = flags.namespace.iter().collect();
    namespaces.into_iter().cloned().collect()
}

/// Takes part in the election while the work goes on, which writes only while it is won. Where the lease is lost the process
/// ends at once: whatever is under way has no right to go on.
async fn elected(mut election: Election, work: impl Future<Output = Result<Ended>>) -> Result<Ended> {
    let ended = tokio::select! {
        ended = work => ended,
        reason = election.run() => {
            error!(why = reason, "leader lease lost, ending");
            return Ok(Ended::AtFault);
        }
    };
    election.resign().await;
    ended
}

async fn work(
    flags: &Flags,
    cluster: Arc<Cluster>,
    definitions: watch::Receiver<Definitions>,
    settings: Settings,
) -> Result<Ended> {
    let Some(url) = flags.hook_url.clone() else {
        return with_own_hooks(flags, cluster, definitions, settings).await;
    };
    let stop = serve::stop_signal()?.shared();
    let meters = Arc::<Meters>::default();
    let subjects = subjects(flags, &cluster, &meters, None, None);
    flags.admin.answer(subjects, stop.clone())?;
    let hooks = Hooks { paths: PathService::At(url), changes: None, meters };
    controller::run(cluster, definitions, hooks, settings, stop).await;
    Ok(Ended::Well)
}

/// What metrics and probes tell of.
fn subjects(
    flags: &Flags,
    cluster: &Arc<Cluster>,
    meters: &Arc<Meters>,
    shelf: Option<Arc<Shelf>>,
    certificate: Option<Arc<Certificate>>,
) -> admin::Subjects {
    let (cluster, meters) = (cluster.clone(), meters.clone());
    admin::Subjects { cluster, meters, shelf, certificate, lease: flags.election.lease() }
}

/// Runs the hook service in the same process, and over HTTP where asked.
async fn with_own_hooks(
    flags: &Flags,
    cluster: Arc<Cluster>,
    definitions: watch::Receiver<Definitions>,
    settings: Settings,
) -> Result<Ended> {
    let shelf = Shelf::open(&flags.hooks);
    let _fresh = shelf.keep_fresh(if flags.poll { Polling::Always } else { Polling::WhenNeeded });
    let changes = Some(shelf.changes());
    let renders = Arc::new(Renders::new(shelf.clone()));
    let tokens = flags.webhook.tokens()?;
    let service = match &flags.listen {
        Some(listen) => Some(serve::bind(listen, serve::BODY_BYTES, tokens.clone(), renders.clone())?),
        None => None,
    };
    let (certificate, upkeep) = match flags.webhook.certificate()? {
        Some(certificate) => (Some(certificate), None),
        None => flags
            .certificate
            .made(&cluster)?
            .map_or((None, None), |(shown, upkeep)| (Some(shown), Some(upkeep))),
    };
    let webhook = flags.webhook.bind(certificate.clone(), tokens, renders.clone(), ", or --webhook-host")?;
    // All end at one signal, which is reported once.
    let stop = serve::stop_signal()?.shared();
    let meters = Arc::<Meters>::default();
    let subjects = subjects(flags, &cluster, &meters, Some(shelf), certificate.filter(|_| webhook.is_some()));
    flags.admin.answer(subjects, stop.clone())?;
    let hooks = Hooks { paths: PathService::InProcess(renders), changes, meters };
    let control = controller::run(cluster, definitions, hooks, settings, stop.clone());
    // It ends with the set.
    let mut others = JoinSet::new();
    upkeep.map(|upkeep| others.spawn(upkeep));
    let reviews = webhook::run(webhook, stop.clone());
    match service {
        Some(service) => {
            let (served, reviewed, ()) = tokio::join!(service.run(stop), reviews, control);
            served.context("the hook service ended").and(reviewed)?;
        }
        None => tokio::join!(reviews, control).0?,
    }
    Ok(Ended::Well)
}
