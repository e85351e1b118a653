//! Flags of the port on which the API server asks: HTTPS, for admission and conversion.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::cli::serve::BODY_BYTES;
use crate::cli::{machine, value};
use crate::hook::local::renders::Renders;
use crate::serve::callers::{Authorities, Tokens};
use crate::serve::certificate::{Certificate, Files};
use crate::serve::connections::Limits;
use crate::serve::{Service, Settings};

#[derive(Args)]
#[group(skip)]
pub(super) struct Flags {
    /// Also answer the API server over HTTPS here, :PORT for every address: validate, default and convert
    #[arg(long, value_name = "ADDRESS:PORT", env = "SYNCWRIGHT_WEBHOOK_LISTEN", value_parser = value::address)]
    webhook_listen: Option<String>,
    /// The certificate for --webhook-listen and those that vouch for it, PEM; read anew when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "webhook_listen")]
    tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Answer on --webhook-listen only those who show a certificate that these vouch for, PEM; read anew when it changes
    #[arg(long, value_name = "FILE", requires = "webhook_listen")]
    client_ca: Option<PathBuf>,
    /// Answer hook calls only with one of the bearer tokens in this file, one a line; read anew when it changes. The API
    /// server, which has none, is answered on --webhook-listen all the same
    #[arg(long, value_name = "FILE", env = "SYNCWRIGHT_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl Flags {
    pub(super) fn is_given(&self) -> bool {
        self.webhook_listen.is_some()
    }

    /// The certificate in the files, if any are named.
    pub(super) fn certificate(&self) -> Result<Option<Arc<Certificate>>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let files = Files { certificate: certificate.clone(), key: key.clone() };
        let certificate = Certificate::open(files).map_err(|problem| anyhow!("{problem}"))?;
        Ok(Some(Arc::new(certificate)))
    }

    /// Who may call, where not everybody may.
    pub(super) fn tokens(&self) -> Result<Option<Arc<Tokens>>> {
        let tokens = self.token_file.clone().map(|path| Tokens::open(path).map(Arc::new)).transpose();
        tokens.map_err(|problem| anyhow!("--token-file: {problem}"))
    }

    /// Listens, where asked to, and says where. `otherwise` names the flag that gets a certificate without files.
    pub(super) fn bind(
        &self,
        certificate: Option<Arc<Certificate>>,
        tokens: Option<Arc<Tokens>>,
        renders: Arc<Renders>,
        otherwise: &str,
    ) -> Result<Option<Service>> {
        let Some(listen) = &self.webhook_listen else { return Ok(None) };
        if certificate.is_none() {
            bail!("--webhook-listen needs a certificate; hint: give --tls-cert and --tls-key{otherwise}");
        }
        let authorities =
            self.client_ca.clone().map(|path| Authorities::open(path).map(Arc::new)).transpose();
        let authorities = authorities.map_err(|problem| anyhow!("--client-ca: {problem}"))?;
        let body_bytes = BODY_BYTES as usize;
        let (listen, limits) = (listen.clone(), Limits::of_calls(machine::means()));
        let settings = Settings { listen, body_bytes, certificate, tokens, authorities, limits };
        let service = Service::bind(&settings, renders)
            .with_context(|| format!("cannot listen on `{}`", settings.listen))?;
        for address in &service.addresses {
            tracing::info!(%address, "listening for the API server");
        }
        Ok(Some(service))
    }
}

/// Answers until `stop` is done, if there is a service.
pub(super) async fn run(service: Option<Service>, stop: impl Future<Output = ()>) -> Result<()> {
    match service {
        Some(service) => service.run(stop).await.context("the service for the API server ended"),
        None => Ok(()),
    }
}
