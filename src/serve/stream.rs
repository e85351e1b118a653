//! A connection as the server below us reads and writes it: plain or secured, and never read ahead of its answers.
//!
//! That server takes up to 128 KiB at once and makes requests of all that it finds in there, thousands of them, before it
//! answers the first; where the caller reads no answers it goes on reading, and then looks again without a pause. Here it
//! gets a little at a time, and nothing while an answer is being made or is not taken.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::rt::net::TcpStream;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::serve::connections::Connection;

/// What is read before requests are made of it: some 150 of the smallest fit in.
const TURN: usize = 4096;
/// For a handshake, of which our part takes a millisecond.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// A connection of either sort.
pub(super) struct Stream {
    socket: Socket,
    connection: Rc<Connection>,
    /// Of this turn.
    left: usize,
    /// The caller takes no more for now.
    is_deaf: bool,
}

enum Socket {
    Plain(TcpStream),
    Secured(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Shakes hands, where there is something to shake them with.
    pub(super) async fn open(
        socket: TcpStream,
        tls: Option<Arc<ServerConfig>>,
        connection: Connection,
    ) -> io::Result<Stream> {
        let socket = match tls {
            None => Socket::Plain(socket),
            Some(tls) => {
                let shaken = timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(socket));
                tokio::select! {
                    shaken = shaken => Socket::Secured(Box::new(shaken.map_err(io::Error::from)??)),
                    () = connection.closed() => return Err(io::ErrorKind::ConnectionAborted.into()),
                }
            }
        };
        Ok(Stream { socket, connection: Rc::new(connection), left: TURN, is_deaf: false })
    }

    pub(super) fn connection(&self) -> Rc<Connection> {
        self.connection.clone()
    }

    /// Passes on what a write came to, and sees from it whether the caller still reads.
    fn wrote<T>(&mut self, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_deaf = wrote.is_pending();
        if !self.is_deaf {
            self.connection.read_again();
        }
        wrote
    }
}

impl Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Secured(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        match self {
            Socket::Plain(stream) => Pin::new(stream),
            Socket::Secured(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.connection.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if stream.is_deaf || !stream.connection.may_be_read() {
            stream.connection.refuse_read();
            return Poll::Pending;
        }
        if stream.left == 0 {
            stream.left = TURN;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut part = [0; TURN];
        let mut part = ReadBuf::new(&mut part[..stream.left.min(buffer.remaining())]);
        ready!(stream.socket.poll_read(cx, &mut part))?;
        stream.left -= part.filled().len();
        buffer.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        if stream.connection.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let wrote = stream.socket.writer().poll_write(cx, bytes);
        stream.wrote(wrote)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.connection.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let flushed = stream.socket.writer().poll_flush(cx);
        stream.wrote(flushed)
    }

    /// Whoever was closed has been waited for long enough.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.connection.is_closed(cx) {
            return Poll::Ready(Ok(()));
        }
        stream.socket.writer().poll_shutdown(cx)
    }
}
