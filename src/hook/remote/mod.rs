//! A hook behind a URL.
//!
//! One POST for each call, over connections of this hook alone: a hook that hangs holds up nobody else.

mod answers;
mod connection;
mod credentials;
pub(crate) mod meter;
mod proxy;
mod reply;
#[cfg(test)]
mod server;
pub(super) mod target;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::field::{Empty, display};

use crate::config::spec::{Access, Decoding, Etag, Role};
use crate::hook::access::{Admission, Pass};
use crate::hook::remote::answers::{Answers, Tagged};
use crate::hook::remote::connection::{Connection, Pool};
use crate::hook::remote::meter::{Meter, Meters};
use crate::hook::remote::reply::Reply;
use crate::hook::remote::target::Target;
use crate::hook::wire::answer::Answer;
use crate::hook::wire::{Call, Failure};
use crate::problem::Problem;
use crate::trace;

const REDIRECTS: usize = 10;

/// How a remote hook is reached.
#[derive(Clone)]
pub(crate) struct RemoteSettings {
    pub url: String,
    /// For the whole exchange: connecting, redirects and the body included. Waiting for a turn is not.
    pub timeout: Duration,
    pub decoding: Decoding,
    /// Whose answers they are.
    pub role: Role,
    /// Calls under way at once; more wait for their turn.
    pub in_flight: usize,
    /// Largest body of an answer, after decompression.
    pub answer_bytes: usize,
    /// Whom to trust and what to show. Empty trusts the system's roots and shows nothing.
    pub access: Access,
    /// Whether and how long answers with an ETag are kept.
    pub etag: Option<Etag>,
}

impl RemoteSettings {
    pub(crate) fn new(url: impl Into<String>, decoding: Decoding) -> RemoteSettings {
        RemoteSettings {
            url: url.into(),
            timeout: Duration::from_secs(10),
            decoding,
            role: Role::Composite,
            in_flight: 16,
            answer_bytes: 16 << 20,
            access: Access::default(),
            etag: None,
        }
    }
}

/// A hook behind a URL, with its connections.
pub(crate) struct Remote {
    admission: Arc<Admission>,
    settings: RemoteSettings,
    target: Target,
    pool: Pool,
    turns: Semaphore,
    answers: Option<Answers>,
    meter: Arc<Meter>,
}

impl Remote {
    pub(crate) fn new(settings: RemoteSettings) -> Result<Remote, Problem> {
        Ok(Remote {
            admission: Arc::new(Admission::new(settings.access.clone())),
            target: Target::parse(&settings.url)?,
            pool: Pool::new(settings.in_flight),
            turns: Semaphore::new(settings.in_flight),
            answers: settings.etag.map(|etag| Answers::new(etag.keep)),
            meter: Arc::default(),
            settings,
        })
    }

    /// Its URL without the user and the query, which may be secrets.
    pub(super) fn name(&self) -> String {
        self.target.url()
    }

    /// Measures its calls as those of this definition from now on.
    pub(super) fn measure(&mut self, meters: &Meters, definition: (Role, &str), call: Call) {
        self.meter = meters.of(definition, call, &self.name());
    }

    /// How the hook is reached; renewing it changes what the next call goes with.
    pub(crate) fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    pub(crate) async fn call(&self, call: Call, subject: &str, body: Bytes) -> Result<Answer, Failure> {
        let answer = self.exchange(call, subject, body).await;
        answer.map_err(|failure| failure.reworded(&credentials::veil(&self.admission, &self.target)))
    }

    async fn exchange(&self, call: Call, subject: &str, body: Bytes) -> Result<Answer, Failure> {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let pass = self.admission.pass().map_err(Failure::Unready)?;
        let known = self.answers.as_ref().and_then(|kept| kept.find(call, subject, Instant::now().into()));
        let deadline = Instant::now() + self.settings.timeout;
        let tag = known.as_ref().map(|known| &known.tag);
        let reply = Errand { hook: self, pass: &pass, tag, deadline }.run(body).await?;
        let decode = |body: &[u8]| {
            Answer::decode(self.settings.role, call, self.settings.decoding, body).map_err(Failure::Refused)
        };
        if let Some(known) = known.filter(|_| reply.says_unchanged()) {
            return decode(&known.body);
        }
        let tag = reply.tag();
        let body = reply.into_body(self.settings.answer_bytes)?;
        let answer = decode(&body)?;
        if let Some(kept) = &self.answers {
            kept.put(call, subject, tag.map(|tag| Tagged::new(&tag, &body)), Instant::now().into());
        }
        Ok(answer)
    }
}

/// One call on its way.
struct Errand<'a> {
    hook: &'a Remote,
    pass: &'a Pass,
    /// The ETag of the answer that is known.
    tag: Option<&'a HeaderValue>,
    deadline: Instant,
}

impl Errand<'_> {
    /// Posts the body, and follows redirects as browsers do: all but 307 and 308 turn into a GET.
    async fn run(&self, body: Bytes) -> Result<Reply, Failure> {
        let (mut target, mut method, mut body) = (self.hook.target.clone(), Method::POST, body);
        for _ in 0..=REDIRECTS {
            let reply = self.traced(&target, &method, &body).await?;
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

    /// One request as a span, which the server can go on with.
    async fn traced(&self, target: &Target, method: &Method, body: &Bytes) -> Result<Reply, Failure> {
        let trace = trace::span!(
            "POST",
            otel.kind = "client",
            otel.name = method.as_str(),
            http.request.method = method.as_str(),
            http.request.body.size = body.len(),
            server.address = target.origin.host,
            server.port = target.origin.port,
            url.full = target.url(),
            http.response.status_code = Empty,
            http.response.body.size = Empty,
            error = Empty
        );
        let reply = trace::within(&trace, self.ask(target, method, body)).await;
        match &reply {
            Ok(reply) => {
                trace.record("http.response.status_code", reply.status.as_u16());
                trace.record("http.response.body.size", reply.body.len());
            }
            Err(failure) => drop(trace.record("error", display(failure))),
        }
        reply
    }

    /// One request and its whole reply.
    ///
    /// A server may close a resting connection at the very moment at which we use it again; asking once more on
    /// a fresh one is safe, because a hook is only ever asked, never told.
    async fn ask(&self, target: &Target, method: &Method, body: &Bytes) -> Result<Reply, Failure> {
        let tls = self.pass.tls.as_ref();
        let measured = self.hook.meter.request();
        let proxy = proxy::proxy_for(target).map_err(Failure::Refused)?;
        let request = || {
            let mut request = self.request(target, method, body);
            if let Some(proxy) = proxy.as_ref().filter(|_| !target.origin.tls) {
                proxy::address(&mut request, target, proxy);
            }
            request
        };
        if let Some(mut connection) = self.hook.pool.take(&target.origin, tls) {
            let head = connection.send(request());
            match self.before("no answer", head).await? {
                Ok(head) => {
                    measured.answered(method, head.status());
                    return self.before("no complete answer", self.read(connection, head)).await?;
                }
                Err(error) if error.is_parse() => return Err(broken("no HTTP answer", &error)),
                Err(_stale) => {}
            }
        }
        let mut unopened = format!("no connection to {}", target.name());
        if let Some(proxy) = &proxy {
            unopened.push_str(&format!(" through the proxy {}", proxy.name()));
        }
        let opening = Connection::open(&target.origin, proxy.as_ref(), tls, &measured);
        let opened = self.before(&unopened, opening).await?;
        let mut connection = opened.map_err(|error| broken(&unopened, &error))?;
        let head = self.before("no answer", connection.send(request())).await?;
        let head = head.map_err(|error| broken("no HTTP answer", &error))?;
        measured.answered(method, head.status());
        self.before("no complete answer", self.read(connection, head)).await?
    }

    fn request(&self, target: &Target, method: &Method, body: &Bytes) -> http::Request<Full<Bytes>> {
        let mut request = target.request(method, body);
        trace::carry(request.headers_mut());
        if let Some(authorization) = self.authorization(target) {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        if let Some(tag) = self.tag {
            request.headers_mut().insert(IF_NONE_MATCH, tag.clone());
        }
        request
    }

    /// The definition's credentials go before a user in the URL, and with neither to another host.
    fn authorization<'a>(&'a self, target: &'a Target) -> Option<&'a HeaderValue> {
        let home = &self.hook.target;
        let ours = self.pass.authorization.as_ref().or(home.authorization.as_ref());
        ours.filter(|_| home.trusts(target)).or(target.authorization.as_ref())
    }

    async fn before<T>(&self, missing: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
        timeout_at(self.deadline, work).await.map_err(|_| Failure::Unavailable {
            message: format!("{missing} within {:?}", self.hook.settings.timeout),
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
        let limit = self.hook.settings.answer_bytes;
        let bytes = connection.while_reading(collect(&mut body, limit)).await;
        let bytes = bytes.map_err(|error| match error {
            Unread::TooLong => too_long(limit),
            Unread::Broken(error) => broken("the answer broke off", &error),
        })?;
        self.hook.pool.keep(connection);
        Ok(Reply { status: head.status, headers: head.headers, body: bytes })
    }
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
