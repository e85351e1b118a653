//! HTTP/1.1 connections to hooks, kept open between calls.
//!
//! A connection is driven by the task that waits for its answer: no task of its own, no hand-over between threads.
//! While it is idle nobody reads from it, so it is looked at once before it is used again.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::hook::access::tls;
use crate::hook::remote::meter::{Event, Measured};
use crate::hook::remote::proxy;
use crate::hook::remote::target::Target;

/// Connections are dropped after this time of rest; most servers and proxies close theirs after 60 s or more.
const IDLE: Duration = Duration::from_secs(50);

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub tls: bool,
    pub host: String,
    pub port: u16,
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}
pub(super) type Wire = Pin<Box<dyn Stream>>;
type Driver = http1::Connection<TokioIo<Wire>, Full<Bytes>>;

/// One open connection, used by one call at a time.
pub(super) struct Connection {
    origin: Origin,
    /// What it was opened with; another trust or identity needs another connection.
    tls: Option<Arc<ClientConfig>>,
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Pin<Box<Driver>>,
    rests_since: Instant,
}

impl Connection {
    /// Opens one, by way of a proxy where there is one. `tls` replaces the configuration that trusts the system's roots.
    pub(super) async fn open(
        origin: &Origin,
        proxy: Option<&Target>,
        tls: Option<&Arc<ClientConfig>>,
        measured: &Measured<'_>,
    ) -> io::Result<Connection> {
        let socket = connect(proxy.map_or(origin, |proxy| &proxy.origin), measured).await?;
        socket.set_nodelay(true)?;
        let mut stream: Wire = Box::pin(socket);
        if let Some(proxy) = proxy {
            stream = through(proxy, origin, stream).await?;
        }
        if origin.tls {
            measured.event(Event::TlsStart);
            stream = Box::pin(secure(origin, stream, tls).await?);
            measured.event(Event::TlsDone);
        }
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        Ok(Connection {
            origin: origin.clone(),
            tls: tls.cloned(),
            sender,
            driver: Box::pin(driver),
            rests_since: Instant::now(),
        })
    }

    /// Sends a request and gives the answer's head.
    pub(super) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> hyper::Result<http::Response<Incoming>> {
        let answer = self.sender.send_request(request);
        drive(&mut self.driver, answer).await
    }

    /// Moves bytes until `work`, which reads a body of this connection, is done.
    pub(super) async fn while_reading<T>(&mut self, work: impl Future<Output = T>) -> T {
        drive(&mut self.driver, work).await
    }

    /// Whether the next request can go out on it. The server may have closed it, or sent what nobody asked for.
    fn is_usable(&mut self) -> bool {
        let closed = self.driver.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        !closed && self.sender.is_ready()
    }
}

/// Polls `work`, and the connection it waits for, in one task.
///
/// The two wake each other. To pass that on would put the task in the queue again while it runs, and wake a thread to
/// take it; so they are polled again on the spot.
async fn drive<T>(driver: &mut Pin<Box<Driver>>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut closed = false;
    std::future::poll_fn(|outside| {
        let bell = Arc::new(Bell { state: AtomicU8::new(POLLED), outside: outside.waker().clone() });
        let waker = Waker::from(bell.clone());
        let mut inside = Context::from_waker(&waker);
        for _ in 0..TURNS {
            if let Poll::Ready(done) = work.as_mut().poll(&mut inside) {
                return Poll::Ready(done);
            }
            if !closed {
                // Its error also reaches `work`, which is the one to tell.
                closed = driver.as_mut().poll(&mut inside).is_ready();
            }
            if bell.rests() {
                return Poll::Pending;
            }
        }
        outside.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// More turns than one answer takes; a driver that wants more is told to wait by the runtime, and must.
const TURNS: usize = 8;

/// Passes a wake-up on, unless it comes while its task polls.
struct Bell {
    state: AtomicU8,
    outside: Waker,
}

const POLLED: u8 = 0;
const RUNG: u8 = 1;
const RESTING: u8 = 2;

impl Bell {
    /// Whether nothing rang during this turn; from now on ringing wakes the task.
    fn rests(&self) -> bool {
        let rests = self.state.compare_exchange(POLLED, RESTING, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !rests {
            self.state.store(POLLED, Ordering::Release);
        }
        rests
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let rung = self.state.compare_exchange(POLLED, RUNG, Ordering::AcqRel, Ordering::Acquire);
        if rung == Err(RESTING) {
            self.outside.wake_by_ref();
        }
    }
}

async fn connect(origin: &Origin, measured: &Measured<'_>) -> io::Result<TcpStream> {
    if let Ok(address) = origin.host.parse::<IpAddr>() {
        return TcpStream::connect((address, origin.port)).await;
    }
    measured.event(Event::DnsStart);
    let addresses: Vec<_> = lookup_host((origin.host.as_str(), origin.port)).await?.collect();
    measured.event(Event::DnsDone);
    TcpStream::connect(&addresses[..]).await
}

/// Has a proxy lead on. For a server in the clear it reads the requests themselves.
async fn through(proxy: &Target, origin: &Origin, mut stream: Wire) -> io::Result<Wire> {
    if proxy.origin.tls {
        stream = Box::pin(secure(&proxy.origin, stream, None).await?);
    }
    if origin.tls {
        proxy::tunnel(&mut stream, proxy, origin).await?;
    }
    Ok(stream)
}

async fn secure(origin: &Origin, socket: Wire, with: Option<&Arc<ClientConfig>>) -> io::Result<Secured> {
    let name = ServerName::try_from(origin.host.clone()).map_err(io::Error::other)?;
    let config = match with {
        Some(config) => config.clone(),
        None => tls::system()?,
    };
    let stream = TlsConnector::from(config).connect(name, socket).await;
    stream.map(Secured).map_err(tls::with_advice)
}

/// A TLS connection that may end without a word.
///
/// Servers of HTTP/1.0, Python's for one, end an answer by closing the socket, without the notice that TLS asks for. An
/// answer that somebody has cut off this way is no JSON object any more, and one with a length is seen to be too short.
struct Secured(TlsStream<Wire>);

impl AsyncRead for Secured {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buffer: &mut ReadBuf) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.0).poll_read(cx, buffer) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            other => other,
        }
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Connections at rest.
pub(super) struct Pool {
    idle: Mutex<Vec<Connection>>,
    capacity: usize,
}

impl Pool {
    pub(super) fn new(capacity: usize) -> Pool {
        Pool { idle: Mutex::default(), capacity }
    }

    /// The connection that was used last: the others grow old and go.
    pub(super) fn take(&self, origin: &Origin, tls: Option<&Arc<ClientConfig>>) -> Option<Connection> {
        while let Some(mut connection) = self.newest(origin, tls) {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn newest(&self, origin: &Origin, tls: Option<&Arc<ClientConfig>>) -> Option<Connection> {
        let as_now = |connection: &Connection| match (&connection.tls, tls) {
            (Some(known), Some(now)) => Arc::ptr_eq(known, now),
            (known, now) => known.is_none() && now.is_none(),
        };
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| connection.rests_since.elapsed() < IDLE && as_now(connection));
        let index = idle.iter().rposition(|connection| connection.origin == *origin)?;
        Some(idle.remove(index))
    }

    /// Keeps a connection whose answer was read to its end, if it can be used again.
    pub(super) fn keep(&self, mut connection: Connection) {
        if !connection.is_usable() {
            return;
        }
        connection.rests_since = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.capacity {
            idle.push(connection);
        }
    }
}
