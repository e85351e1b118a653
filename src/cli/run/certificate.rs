//! Flags of the certificate that the process makes itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::value::duration;
use crate::cluster::Cluster;
use crate::object::name::Key;
use crate::object::validity::dns_subdomain;
use crate::serve::certificate::Certificate;
use crate::trust::{self, Kept, Terms};

#[derive(Args)]
#[group(skip)]
pub(super) struct Flags {
    /// Makes and renews the certificate for --webhook-listen itself, for this host name or address; may be repeated. Its
    /// authorities become the caBundle of what has the label syncwright.io/inject-ca-from=NAMESPACE.NAME, of the Secret
    #[arg(
        long,
        value_name = "HOST",
        value_delimiter = ',',
        requires = "webhook_listen",
        conflicts_with = "tls_cert"
    )]
    webhook_host: Vec<String>,
    /// The Secret that keeps it, in the pod's own namespace unless it is named
    #[arg(long, value_name = "[NAMESPACE/]NAME", default_value = "syncwright-webhook", value_parser = secret)]
    webhook_secret: Key,
    /// How long a certificate is good; it is renewed when a third of that is left
    #[arg(long, value_name = "DURATION", default_value = "2160h", value_parser = duration)]
    webhook_cert_lifetime: Duration,
    /// How long its authority is good; it is renewed when a third of that is left
    #[arg(long, value_name = "DURATION", default_value = "26280h", value_parser = duration)]
    webhook_ca_lifetime: Duration,
}

/// A renewal needs some time to get round.
const LEAST: Duration = Duration::from_secs(10);

impl Flags {
    /// The certificate, which is still to come, and what makes it and keeps it good for as long as that is polled.
    pub(super) fn made(
        &self,
        cluster: &Arc<Cluster>,
    ) -> Result<Option<(Arc<Certificate>, BoxFuture<'static, ()>)>> {
        if self.webhook_host.is_empty() {
            return Ok(None);
        }
        let (server, authority) = (self.webhook_cert_lifetime, self.webhook_ca_lifetime);
        if server < LEAST || authority < server {
            bail!(
                "--webhook-cert-lifetime is {server:?} and --webhook-ca-lifetime {authority:?}; \
                 expected {LEAST:?} or more, and no less for the authority"
            );
        }
        let terms = Terms { hosts: self.webhook_host.clone(), server, authority };
        let mut secret = self.webhook_secret.clone();
        if secret.namespace.is_empty() {
            secret.namespace = cluster.namespace.as_str().into();
        }
        let asking = trust::asking_for(&secret).map_err(|why| {
            anyhow!("--webhook-secret `{secret}`: {why}; hint: it makes a label, of at most 63 characters with its namespace")
        })?;
        let certificate = Arc::new(Certificate::awaited());
        let shown = certificate.clone();
        let tell = move |kept: Result<&Kept, &str>| match kept {
            Ok(kept) => match shown.show(&kept.certificate, &kept.key, &kept.bundle) {
                Ok(()) => tracing::info!("certificate loaded"),
                Err(problem) => shown.wait_for(&problem.to_string()),
            },
            Err(trouble) => shown.wait_for(trouble),
        };
        let upkeep = trust::keep(cluster.clone(), secret, asking, terms, Box::new(tell));
        Ok(Some((certificate, upkeep.boxed())))
    }
}

fn secret(text: &str) -> Result<Key, String> {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    if text.contains('/') {
        dns_subdomain(namespace)?;
    }
    dns_subdomain(name).map(|()| Key::new(namespace, name))
}
