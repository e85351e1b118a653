//! `syncwright serve`: the hook service alone.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::FutureExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Ended, machine, value, webhook};
use crate::hook::local::renders::Renders;
use crate::hook::local::{Polling, Shelf};
use crate::serve::callers::Tokens;
use crate::serve::connections::Limits;
use crate::serve::{Service, Settings};

/// Largest request body, unless said otherwise.
pub(super) const BODY_BYTES: u32 = 10 << 20;

/// Answer hook calls over HTTP from a folder of templates
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Flags {
    /// The hooks folder
    #[arg(long, value_name = "DIR", default_value = "hooks", env = "SYNCWRIGHT_HOOKS")]
    hooks: PathBuf,
    /// Where to listen, :PORT for every address; port 0 takes any free one and logs which
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ":8090", env = "SYNCWRIGHT_LISTEN", value_parser = value::address)]
    listen: String,
    /// Largest request body
    #[arg(long, value_name = "BYTES", default_value_t = BODY_BYTES, value_parser = value::whole::<u32>(1024..=u32::MAX.into(), BODY_BYTES.into()))]
    max_body_bytes: u32,
    /// Look at the folder twice a second, where the system does not tell of changes
    #[arg(long)]
    poll: bool,
    #[command(flatten)]
    webhook: webhook::Flags,
}

const AFTER_HELP: &str = "\
Try:
  curl --data-binary @hooks/mysql/example.yaml localhost:8090/mysql/sync
  curl localhost:8090/
  curl localhost:8090/readyz?verbose

Also there: /healthz, /metrics. A changed file is live within a second; one that does not compile is reported, and the last
good one goes on answering.

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 a second one came, 2 the service could not start";

pub(super) fn run(flags: Flags) -> Result<Ended> {
    if !flags.hooks.is_dir() {
        bail!("there is no hooks folder `{}`; hint: name it with --hooks", flags.hooks.display());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(serve(flags))?;
    Ok(Ended::Well)
}

async fn serve(flags: Flags) -> Result<()> {
    let shelf = Shelf::open(&flags.hooks);
    let _fresh = shelf.keep_fresh(if flags.poll { Polling::Always } else { Polling::WhenNeeded });
    let renders = Arc::new(Renders::new(shelf));
    let tokens = flags.webhook.tokens()?;
    let service = bind(&flags.listen, flags.max_body_bytes, tokens.clone(), renders.clone())?;
    let webhook = flags.webhook.bind(flags.webhook.certificate()?, tokens, renders, "")?;
    let stop = stop_signal()?.shared();
    let (served, reviewed) = tokio::join!(service.run(stop.clone()), webhook::run(webhook, stop));
    reviewed.and(served.context("the service ended"))
}

/// Listens, and says where.
pub(super) fn bind(
    listen: &str,
    body_bytes: u32,
    tokens: Option<Arc<Tokens>>,
    renders: Arc<Renders>,
) -> Result<Service> {
    let (listen, body_bytes) = (listen.to_string(), body_bytes as usize);
    let limits = Limits::of_calls(machine::means());
    let settings = Settings { listen, body_bytes, certificate: None, tokens, authorities: None, limits };
    let service = Service::bind(&settings, renders)
        .with_context(|| format!("cannot listen on `{}`", settings.listen))?;
    for address in &service.addresses {
        tracing::info!(%address, "listening");
    }
    Ok(service)
}

/// Done at the first SIGTERM or SIGINT. A second one ends the process at once.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut next = async move || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    Ok(async move {
        let signal = next().await;
        tracing::info!(signal, "stopping");
        tokio::spawn(async move {
            let signal = next().await;
            tracing::warn!(signal, "ending at once");
            std::process::exit(1);
        });
    })
}
