//! The way to the collector: HTTP/1.1 over what TLS the program has, from the thread of the exporter alone.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::ClientConfig;
use tokio::runtime::{self, Runtime};
use tracing::{info, warn};

/// An answer is a few bytes long.
const LONGEST_ANSWER: usize = 64 << 10;

/// Sends spans, and says once that they cannot be sent, and once that they can again.
pub(super) struct Client {
    /// Of its own, so that no visit waits for it.
    runtime: Runtime,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
    is_away: AtomicBool,
}

type Sent<'f> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>;

impl Client {
    pub(super) fn new(tls: ClientConfig, timeout: Duration) -> std::io::Result<Client> {
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Client {
            runtime: runtime::Builder::new_current_thread().enable_all().build()?,
            http: legacy::Client::builder(TokioExecutor::new()).build(connector),
            timeout,
            is_away: AtomicBool::new(false),
        })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = self.http.request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }

    fn tell(&self, address: &str, sent: &Result<Response<Bytes>, HttpError>) {
        let error = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("HTTP {}", response.status())),
            Err(error) => Some(chain(&**error)),
        };
        let was_away = self.is_away.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if !was_away => {
                warn!(address, error, "traces cannot be sent, and are lost meanwhile")
            }
            None if was_away => info!(address, "traces are sent again"),
            _ => {}
        }
    }
}

/// The error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

impl HttpClient for Client {
    /// Called by the exporter's thread, which has nothing else to do.
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let uri = request.uri();
            // Its user and its query may be secrets.
            let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
            let address = format!("{}:{port}", uri.host().unwrap_or_default());
            let within = async { tokio::time::timeout(self.timeout, self.exchange(request)).await };
            let sent = self
                .runtime
                .block_on(within)
                .unwrap_or_else(|_| Err(format!("no answer within {:?}", self.timeout).into()));
            self.tell(&address, &sent);
            sent
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
