//! One request to the API server: bounded in time, its failure classified, its answer as bytes.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;

use super::meter;

/// kube never ends a request by itself.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request brought nothing.
#[derive(Clone, Debug)]
pub(crate) enum Error {
    /// The API server refused: its Status.
    Refused(Box<Status>),
    /// No answer, or none that can be read: what happened.
    Unanswered(String),
    /// A watch without a sign of life for this long.
    Silent(Duration),
    /// Nothing was sent: another process is the one that writes.
    NotLeading,
}

/// The API server's own account of a refusal.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub details: Details,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Details {
    pub causes: Vec<Cause>,
    pub retry_after_seconds: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl Error {
    /// The HTTP status, where the API server answered at all.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Error::Refused(status) => StatusCode::from_u16(status.code).ok(),
            Error::Unanswered(_) | Error::Silent(_) | Error::NotLeading => None,
        }
    }

    pub(crate) fn is(&self, code: u16) -> bool {
        matches!(self, Error::Refused(status) if status.code == code)
    }

    /// How long the API server asks to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Refused(status) => status.details.retry_after_seconds.map(Duration::from_secs),
            Error::Unanswered(_) | Error::Silent(_) | Error::NotLeading => None,
        }
    }

    /// The object of an ERROR event of a watch.
    pub(super) fn from_status(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(status) => Error::Refused(Box::new(status)),
            Err(error) => Error::Unanswered(format!("watch reported an error that cannot be read: {error}")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(status) if status.message.is_empty() => write!(f, "HTTP {}", status.code),
            Error::Refused(status) => f.write_str(&status.message),
            Error::Unanswered(what) => f.write_str(what),
            Error::Silent(limit) => write!(f, "no sign of life for {} s", limit.as_secs()),
            Error::NotLeading => f.write_str("nothing is written: this process does not hold the lease"),
        }
    }
}

impl std::error::Error for Error {}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            let next_text = next.to_string();
            if !text.contains(&next_text) {
                text = format!("{text}: {next_text}");
            }
            cause = next.source();
        }
        Error::Unanswered(text)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Unanswered(format!("answer cannot be read: {error}"))
    }
}

impl From<std::str::Utf8Error> for Error {
    fn from(error: std::str::Utf8Error) -> Self {
        Error::Unanswered(format!("answer is not UTF-8: {error}"))
    }
}

impl From<http::Error> for Error {
    fn from(error: http::Error) -> Self {
        Error::Unanswered(format!("request cannot be made: {error}"))
    }
}

/// Sends and gives the body once the head says success.
pub(super) async fn open(client: &Client, request: Request<Body>) -> Result<Body, Error> {
    let method = request.method().clone();
    let answer = tokio::time::timeout(TIMEOUT, client.send(request)).await;
    let code = answer.as_ref().ok().and_then(|answer| Some(answer.as_ref().ok()?.status().as_u16()));
    meter::note_request(&method, code);
    let answer =
        answer.map_err(|_| Error::Unanswered(format!("no answer within {} s", TIMEOUT.as_secs())))??;
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        return Ok(body);
    }
    let bytes = tokio::time::timeout(TIMEOUT, body.collect()).await;
    let bytes = bytes.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let mut status = refusal(head.status, &bytes);
    let retry_after = head.headers.get(http::header::RETRY_AFTER);
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    status.details.retry_after_seconds = seconds.or(status.details.retry_after_seconds);
    Err(Error::Refused(Box::new(status)))
}

/// Sends and gives the whole body.
pub(super) async fn answer(client: &Client, request: Request<Body>) -> Result<Bytes, Error> {
    let body = open(client, request).await?;
    let bytes = tokio::time::timeout(TIMEOUT, body.collect())
        .await
        .map_err(|_| Error::Unanswered(format!("answer not complete within {} s", TIMEOUT.as_secs())))??;
    Ok(bytes.to_bytes())
}

fn refusal(code: StatusCode, body: &[u8]) -> Status {
    let mut status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
        message: String::from_utf8_lossy(&body[..body.len().min(512)]).trim().to_string(),
        ..Status::default()
    });
    status.code = code.as_u16();
    status
}
