//! Whoever collects traces, where anybody does.

use std::time::Duration;

use anyhow::{Context, Result};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rustls::ClientConfig;
use tracing::level_filters::LevelFilter;
use tracing::warn;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::Registry;

use crate::cli::told_once;
use crate::cli::trace::client::Client;
use crate::cli::trace::settings::{self, Settings};
use crate::cli::trace::spans::{self, Spans};
use crate::hook::access;
use crate::trace;

/// How long the process may stay for the last spans to be sent.
const FAREWELL: Duration = Duration::from_secs(3);

/// Spans on their way. At most 2048 wait, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise; what comes on top is lost.
#[derive(Default)]
pub(in crate::cli) struct Traces {
    provider: Option<SdkTracerProvider>,
    complaints: Vec<String>,
}

impl Traces {
    /// Collects from now on, where the environment says so. A log may not be there yet.
    pub(in crate::cli) fn begin() -> Traces {
        let (settings, problems) = settings::read(|name| std::env::var(name).ok());
        let mut complaints: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let provider = settings
            .and_then(|settings| provider(settings).map_err(|error| complaints.push(told_once(&error))).ok());
        if provider.is_some() {
            trace::install(spans::carry);
        }
        Traces { provider, complaints }
    }

    /// Where spans go.
    pub(in crate::cli) fn layer(&self) -> Option<impl Layer<Registry> + use<>> {
        let ours = filter_fn(|metadata| metadata.target() == trace::TARGET);
        let ours = ours.with_max_level_hint(LevelFilter::INFO);
        Some(Spans(self.provider.as_ref()?.tracer("syncwright")).with_filter(ours))
    }

    /// Says what of the environment is of no use.
    pub(in crate::cli) fn tell(&self) {
        for error in &self.complaints {
            warn!(error, "setting of traces cannot be used");
        }
    }

    /// Sends what is left.
    pub(in crate::cli) fn end(self) {
        if let Some(provider) = self.provider {
            // Whoever does not answer in time was told of already.
            let _ = provider.shutdown_with_timeout(FAREWELL);
        }
    }
}

fn provider(settings: Settings) -> Result<SdkTracerProvider> {
    let client = Client::new(trust(&settings)?, settings.timeout)?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(settings.endpoint)
        .with_timeout(settings.timeout)
        .build()?;
    let resource = Resource::builder()
        .with_attributes(settings.service.map(|name| KeyValue::new("service.name", name)))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Nobody is trusted where nobody has to be: a system may have no roots.
fn trust(settings: &Settings) -> Result<ClientConfig> {
    let pem = match &settings.authorities {
        Some(file) => Some(std::fs::read(file).with_context(|| format!("reading `{file}`"))?),
        None => None,
    };
    let trust = match settings.authorities.as_deref().zip(pem.as_deref()) {
        None if settings.endpoint.starts_with("http://") => return Ok(access::trusting_nobody()),
        pem => access::trusting(pem),
    };
    trust.map_err(|problem| anyhow::anyhow!("{problem}"))
}
