//! A hook behind a URL.
//!
//! One POST for each call, over connections of this hook alone: a hook that hangs holds up nobody else.

mod connection;
mod reply;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT,
};
use http::{Method, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use rustls::ClientConfig;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::config::spec::Decoding;
use crate::hook::remote::connection::{Connection, Origin, Pool};
use crate::hook::remote::reply::Reply;
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{Call, Failure};
use crate::problem::Problem;

const REDIRECTS: usize = 10;

/// How a remote hook is reached.
#[derive(Clone)]
pub(crate) struct RemoteSettings {
    pub url: String,
    /// For the whole exchange: connecting, redirects and the body included. Waiting for a turn is not.
    pub timeout: Duration,
    pub decoding: Decoding,
    /// Calls under way at once; more wait for their turn.
    pub in_flight: usize,
    /// Largest body of an answer, after decompression.
    pub answer_bytes: usize,
    /// Trust and identity for `https`. `None` trusts the system's roots and shows no certificate.
    pub tls: Option<Arc<ClientConfig>>,
}

impl RemoteSettings {
    pub(crate) fn new(url: impl Into<String>, decoding: Decoding) -> RemoteSettings {
        RemoteSettings {
            url: url.into(),
            timeout: Duration::from_secs(10),
            decoding,
            in_flight: 16,
            answer_bytes: 16 << 20,
            tls: None,
        }
    }
}

/// A hook behind a URL, with its connections.
pub(crate) struct Remote {
    settings: RemoteSettings,
    target: Target,
    pool: Pool,
    turns: Semaphore,
}

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq)]
struct Target {
    origin: Origin,
    host: HeaderValue,
    path: Uri,
    /// From a user and password in the URL.
    authorization: Option<HeaderValue>,
}

impl Remote {
    pub(crate) fn new(settings: RemoteSettings) -> Result<Remote, Problem> {
        Ok(Remote {
            target: Target::parse(&settings.url)?,
            pool: Pool::new(settings.in_flight),
            turns: Semaphore::new(settings.in_flight),
            settings,
        })
    }

    pub(crate) async fn call(&self, call: Call, _subject: &str, body: Bytes) -> Result<Answer, Failure> {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let reply = self.exchange(body).await?;
        let body = reply.into_body(self.settings.answer_bytes)?;
        Answer::decode(call, self.settings.decoding, &body).map_err(Failure::Refused)
    }

    /// Posts the body, and follows redirects as browsers do: all but 307 and 308 turn into a GET.
    async fn exchange(&self, body: Bytes) -> Result<Reply, Failure> {
        let deadline = Instant::now() + self.settings.timeout;
        let (mut target, mut method, mut body) = (self.target.clone(), Method::POST, body);
        for _ in 0..=REDIRECTS {
            let reply = self.ask(&target, &method, &body, deadline).await?;
            let Some(location) = reply.redirect() else {
                return Ok(reply);
            };
            target = target.join(location).map_err(Failure::Refused)?;
            if !matches!(reply.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                (method, body) = (Method::GET, Bytes::new());
            }
        }
        Err(Failure::Refused(Problem::new(format!("gave up after {REDIRECTS} redirects"))))
    }

    /// One request and its whole reply.
    ///
    /// A server may close a resting connection at the very moment at which we use it again; asking once more on
    /// a fresh one is safe, because a hook is only ever asked, never told.
    async fn ask(
        &self,
        target: &Target,
        method: &Method,
        body: &Bytes,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        if let Some(mut connection) = self.pool.take(&target.origin) {
            let head = connection.send(target.request(method, body));
            match self.before(deadline, "no answer", head).await? {
                Ok(head) => {
                    return self.before(deadline, "no complete answer", self.read(connection, head)).await?;
                }
                Err(error) if error.is_parse() => return Err(broken("no HTTP answer", &error)),
                Err(_stale) => {}
            }
        }
        let opening = Connection::open(&target.origin, self.settings.tls.as_ref());
        let opened = self.before(deadline, &format!("no connection to {}", target.name()), opening).await?;
        let mut connection =
            opened.map_err(|error| broken(&format!("no connection to {}", target.name()), &error))?;
        let head = self.before(deadline, "no answer", connection.send(target.request(method, body))).await?;
        let head = head.map_err(|error| broken("no HTTP answer", &error))?;
        self.before(deadline, "no complete answer", self.read(connection, head)).await?
    }

    async fn before<T>(
        &self,
        deadline: Instant,
        missing: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        timeout_at(deadline, work).await.map_err(|_| Failure::Unavailable {
            message: format!("{missing} within {:?}", self.settings.timeout),
            retry_after: None,
        })
    }

    /// Reads the body, and keeps the connection if it can serve again.
    async fn read(
        &self,
        mut connection: Connection,
        head: http::Response<Incoming>,
    ) -> Result<Reply, Failure> {
        let (head, mut body) = head.into_parts();
        let limit = self.settings.answer_bytes;
        let bytes = connection.while_reading(collect(&mut body, limit)).await;
        let bytes = bytes.map_err(|error| match error {
            Unread::TooLong => too_long(limit),
            Unread::Broken(error) => broken("the answer broke off", &error),
        })?;
        self.pool.keep(connection);
        Ok(Reply { status: head.status, headers: head.headers, body: bytes })
    }
}

impl Target {
    fn parse(url: &str) -> Result<Target, Problem> {
        let wrong = |what: String| Problem::new(format!("webhook URL `{}`: {what}", without_secrets(url)));
        let tls = match url.split_once("://") {
            Some(("http", _)) => false,
            Some(("https", _)) => true,
            _ => return Err(wrong("neither `http://` nor `https://`".into())),
        };
        let uri: Uri = url.parse().map_err(|error| wrong(format!("not a URL ({error})")))?;
        let authority = uri.authority().ok_or_else(|| wrong("no host".into()))?;
        let host = authority.host();
        let (user, shown) = match authority.as_str().rsplit_once('@') {
            Some((user, shown)) => (Some(user), shown),
            None => (None, authority.as_str()),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Target {
            origin: Origin {
                tls,
                host: host.trim_start_matches('[').trim_end_matches(']').to_string(),
                port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            },
            host: HeaderValue::from_str(shown).map_err(|_| wrong("no host".into()))?,
            path: path.parse().map_err(|error| wrong(format!("not a URL ({error})")))?,
            authorization: user.map(basic),
        })
    }

    fn name(&self) -> String {
        let scheme = if self.origin.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.host.to_str().unwrap_or(&self.origin.host))
    }

    /// What a `Location` means from here: a URL, a host, a path, or a path beside this one.
    fn join(&self, location: &str) -> Result<Target, Problem> {
        let location = location.split('#').next().unwrap_or_default();
        if location.contains("://") {
            return Target::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Target::parse(&format!("{}://{rest}", if self.origin.tls { "https" } else { "http" }));
        }
        let path = self.path.path();
        let folder = &path[..=path.rfind('/').unwrap_or_default()];
        let joined = match location.chars().next() {
            Some('/') => location.to_string(),
            Some('?') => format!("{path}{location}"),
            _ => format!("{folder}{location}"),
        };
        Target::parse(&format!("{}{joined}", self.name()))
    }

    fn request(&self, method: &Method, body: &Bytes) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("syncwright/", env!("CARGO_PKG_VERSION"))));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if *method == Method::POST {
            // Some hooks compare this header for equality, so it carries no charset.
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            // hyper writes no length for an empty body, and hooks in Python read it always.
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        request
    }
}

/// A URL as it can be shown.
pub(super) fn without_secrets(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) => url.replacen(user, "***", 1),
        None => url.into(),
    }
}

/// The header for `user:password` as a URL has them, a part of it in percent signs.
fn basic(user: &str) -> HeaderValue {
    let mut plain = Vec::new();
    let mut rest = user.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%');
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    let mut header =
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).expect("base64 is text");
    header.set_sensitive(true);
    header
}

enum Unread {
    TooLong,
    Broken(hyper::Error),
}

/// The whole body. One that comes in one piece is not copied.
async fn collect(body: &mut Incoming, limit: usize) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Unread::TooLong);
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(Unread::Broken)?.into_data() else { continue };
        if first.len().max(all.len()) + piece.len() > limit {
            return Err(Unread::TooLong);
        }
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn too_long(limit: usize) -> Failure {
    Failure::Refused(Problem::new(format!("the answer is longer than {} MiB", limit >> 20)))
}

fn broken(what: &str, error: &dyn Error) -> Failure {
    let mut message = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    Failure::Unavailable { message, retry_after: None }
}
