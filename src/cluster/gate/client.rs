//! A client whose connections send nothing while the gate is closed.
//!
//! Between a look at the gate and the bytes on the wire a request passes queues and tasks, and the process may be stopped
//! at any of them. So the gate is asked once more at the socket, right before each system call that sends.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower_service::Service;

use super::Gate;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The client that writes.
pub(in crate::cluster) fn gated(config: &Config, gate: Arc<Gate>) -> Result<Client, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(config.connect_timeout);
    let connector = config.rustls_https_connector_with_connector(Gated { inner: tcp, gate })?;
    let client = Sender(HttpClient::builder(TokioExecutor::new()).build(connector));
    let stack = ClientBuilder::new(client, config.default_namespace.clone())
        .with_layer(&config.extra_headers_layer()?);
    let base = config.base_uri_layer();
    Ok(match config.auth_layer()? {
        Some(authorization) => stack.with_layer(&authorization).with_layer(&base).build(),
        None => stack.with_layer(&base).build(),
    })
}

/// The HTTP client, with errors of the sort that kube's layers have.
#[derive(Clone)]
struct Sender<C>(HttpClient<C, Body>);

impl<C> Service<Request<Body>> for Sender<C>
where
    HttpClient<C, Body>: Service<Request<Body>, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = <HttpClient<C, Body> as Service<Request<Body>>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move { answer.await.map_err(Into::into) })
    }
}

/// What makes connections, or a connection, with the gate that it stands behind.
#[derive(Clone)]
struct Gated<T> {
    inner: T,
    gate: Arc<Gate>,
}

impl<T> Gated<T> {
    fn check(&self) -> io::Result<()> {
        if self.gate.is_open() {
            return Ok(());
        }
        Err(io::Error::other("this process does not hold the lease: nothing is sent"))
    }
}

impl<T: Service<http::Uri>> Service<http::Uri> for Gated<T>
where
    T::Future: Send + 'static,
{
    type Response = Gated<T::Response>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, T::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        let (connecting, gate) = (self.inner.call(uri), self.gate.clone());
        Box::pin(async move { Ok(Gated { inner: connecting.await?, gate }) })
    }
}

impl<T: Connection> Connection for Gated<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<T: Read + Unpin> Read for Gated<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: Write + Unpin> Write for Gated<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
