//! A server for tests that does on each connection what its script says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// One act on a connection.
#[derive(Clone)]
pub(super) enum Act {
    /// Read a whole request.
    Read,
    Write(Vec<u8>),
    /// Write for as long as somebody reads.
    Flood(&'static str),
    /// Close the socket at once, whatever else there was to say.
    Drop,
    /// Do nothing more, and keep the connection open.
    Hang,
}

/// Reads a request and answers it.
pub(super) fn answer(text: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Read, Act::Write(text.into())]
}

/// Answers this many requests on one connection.
pub(super) fn answers(count: usize, text: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![answer(text); count].concat()
}

/// An answer of HTTP/1.1 with this status line, headers and body.
pub(super) fn http(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A request as it came: the connection's number, the head as text, the body.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub connection: usize,
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The headers in order, names in lower case.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let split = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_string()))
        };
        self.head.lines().filter_map(split).collect()
    }
}

/// Ends when it is dropped.
pub(super) struct Server {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: AbortHandle,
}

impl Server {
    /// Connections follow the scripts in the order in which they come; later ones follow the last script again.
    pub(super) async fn start(scripts: Vec<Vec<Act>>) -> Server {
        Server::listen(scripts, None).await
    }

    pub(super) async fn start_tls(scripts: Vec<Vec<Act>>, acceptor: TlsAcceptor) -> Server {
        Server::listen(scripts, Some(acceptor)).await
    }

    async fn listen(scripts: Vec<Vec<Act>>, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for number in 0.. {
                let (socket, _) = listener.accept().await.expect("connections are accepted");
                let script = scripts.get(number).or(scripts.last()).cloned().unwrap_or_default();
                let (log, tls) = (log.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(socket).await {
                                follow(script, stream, number, &log).await;
                            }
                        }
                        None => follow(script, socket, number, &log).await,
                    }
                });
            }
        });
        Server { address, received, task: task.abort_handle() }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no test panics while it holds the lock").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The connection is closed when the script is over, or when the client is gone.
async fn follow(
    script: Vec<Act>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    number: usize,
    log: &Mutex<Vec<Received>>,
) {
    for act in script {
        match act {
            Act::Read => match read(&mut stream, number).await {
                Some(request) => log.lock().expect("no test panics while it holds the lock").push(request),
                None => return,
            },
            Act::Write(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Drop => return,
            Act::Flood(piece) => while stream.write_all(piece.as_bytes()).await.is_ok() {},
            Act::Hang => std::future::pending().await,
        }
    }
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut (impl AsyncRead + Unpin), connection: usize) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let body = bytes.split_off(end);
    let head = String::from_utf8(bytes).ok()?;
    let mut request = Received { connection, head, body };
    let length = request.headers().into_iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}
