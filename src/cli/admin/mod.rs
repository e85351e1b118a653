//! Where metrics and probes are answered, and what they tell: it is known in several rooms, and joined here.

mod health;
mod process;

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::admin::health::Health;
use crate::cli::machine;
use crate::cluster::Cluster;
use crate::controller::meter::Meters;
use crate::hook::local::Shelf;
use crate::metric::text::Text;
use crate::serve::admin::{self, Pages};
use crate::serve::certificate::Certificate;
use crate::serve::connections::Limits;

#[derive(Args)]
#[command(next_help_heading = "Metrics and probes")]
#[group(skip)]
pub(super) struct Flags {
    /// Where /metrics is answered; 0 for nowhere, port 0 for any free one, which is logged [default: :8080]
    #[arg(long, value_name = "ADDRESS:PORT", env = "SYNCWRIGHT_METRICS_ADDRESS", value_parser = address)]
    metrics_address: Option<String>,
    /// Where /healthz and /readyz are answered, in the same form [default: :8081]
    #[arg(long, value_name = "ADDRESS:PORT", env = "SYNCWRIGHT_HEALTH_PROBE_BIND_ADDRESS", value_parser = address)]
    health_probe_bind_address: Option<String>,
}

/// The address that is none.
const NOWHERE: &str = "0";

/// What is told of, as far as it is there.
pub(super) struct Subjects {
    pub cluster: Arc<Cluster>,
    pub meters: Arc<Meters>,
    /// The hooks of this process.
    pub shelf: Option<Arc<Shelf>>,
    /// What the API server is shown, where it is answered.
    pub certificate: Option<Arc<Certificate>>,
    /// The Lease that several processes run for.
    pub lease: Option<String>,
}

impl Subjects {
    fn metrics(&self) -> String {
        let mut text = Text::default();
        process::write(&mut text);
        self.write_leader(&mut text);
        self.meters.write(&mut text);
        self.cluster.write_metrics(&mut text);
        if let Some(shelf) = &self.shelf {
            shelf.write_metrics(&mut text);
        }
        self.write_certificate(&mut text);
        text.into_string()
    }

    fn write_certificate(&self, text: &mut Text) {
        let Some(standing) = self.certificate.as_ref().map(|certificate| certificate.standing()) else {
            return;
        };
        if let Some(until) = standing.until {
            let help = "When the certificate that the API server is shown ends, in seconds since 1970.";
            text.gauge("syncwright_webhook_certificate_expiry_timestamp_seconds", help).sample(&[], until);
        }
        if let Some(until) = standing.authority {
            let help =
                "When the authority ends that signs that certificate's successors, in seconds since 1970.";
            text.gauge("syncwright_webhook_authority_expiry_timestamp_seconds", help).sample(&[], until);
        }
    }

    /// Under our own name, and under those of client-go where there is an election.
    fn write_leader(&self, text: &mut Text) {
        let leads = u8::from(self.cluster.gate.is_open());
        let help = "Whether this process writes: it holds the lease, or runs for none.";
        text.gauge("syncwright_leader", help).sample(&[], leads);
        let Some(lease) = &self.lease else { return };
        let help = "Whether this process holds the lease.";
        text.gauge("leader_election_master_status", help).sample(&[("name", lease)], leads);
        let help = "Renewals that needed more than one request: none is counted.";
        text.counter("leader_election_slowpath_total", help).sample(&[("name", lease)], 0);
    }
}

/// A socket to be taken.
struct Wish<'a> {
    flag: &'static str,
    /// What was asked for; what nobody asked for is not worth an end.
    asked: Option<&'a str>,
    usual: &'static str,
}

impl Flags {
    /// Answers from now on to the end of the process, which is told to end by `stop`. An address that was asked for and
    /// cannot be had is an error.
    pub(super) fn answer(
        &self,
        subjects: Subjects,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let subjects = Arc::new(subjects);
        let health = Health::watch(subjects.clone(), stop);
        let metrics = {
            let subjects = subjects.clone();
            Pages::Metrics(Arc::new(move || subjects.metrics()))
        };
        let probes = health.pages();
        let wishes = [
            (Wish::new("--metrics-address", &self.metrics_address, ":8080"), "metrics", metrics),
            (
                Wish::new("--health-probe-bind-address", &self.health_probe_bind_address, ":8081"),
                "probes",
                probes,
            ),
        ];
        let [(first, _, _), (second, _, _)] = &wishes;
        if first.address() == second.address() && !first.any_port() {
            let pages = wishes.iter().map(|(_, _, pages)| pages.clone()).collect::<Vec<_>>();
            return first.take("metrics and probes", &pages);
        }
        wishes.iter().try_for_each(|(wish, name, pages)| wish.take(name, std::slice::from_ref(pages)))
    }
}

impl<'a> Wish<'a> {
    fn new(flag: &'static str, asked: &'a Option<String>, usual: &'static str) -> Self {
        Wish { flag, asked: asked.as_deref(), usual }
    }

    fn address(&self) -> &'a str {
        self.asked.unwrap_or(self.usual)
    }

    fn any_port(&self) -> bool {
        self.address().ends_with(":0")
    }

    /// Answers with these pages there, if anywhere.
    fn take(&self, what: &str, pages: &[Pages]) -> Result<()> {
        let (flag, address) = (self.flag, self.address());
        if address == NOWHERE {
            return Ok(());
        }
        let limits = Limits::of_pages(machine::means());
        let service = match admin::bind(address, pages, limits) {
            Ok(service) => service,
            Err(error) if self.asked.is_none() => {
                tracing::warn!(address, %error, "{what} are not served: name another address with {flag}, or 0");
                return Ok(());
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("{flag}: cannot listen on `{address}`; hint: `{flag} 0` serves none")
                });
            }
        };
        for address in &service.addresses {
            tracing::info!(%address, "serving {what}");
        }
        tokio::spawn(async move {
            if let Err(error) = service.run(std::future::pending()).await {
                tracing::error!(%error, "{flag} is not served any more");
            }
        });
        Ok(())
    }
}

/// An address in one of its forms, as it was typed.
fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').map(|(_, port)| port);
    if text == NOWHERE || port.is_some_and(|port| port.parse::<u16>().is_ok()) {
        return Ok(text.to_string());
    }
    Err("expected `:8080`, `127.0.0.1:8080`, or `0` for nowhere".into())
}
