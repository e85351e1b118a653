//! The hook service: `POST /<hook>/<call>`, and pages that say how the hooks stand.
//!
//! Knows sockets, headers and statuses, and no template: the shelf answers.

mod address;
pub(crate) mod admin;
mod body;
mod call;
pub(crate) mod callers;
pub(crate) mod certificate;
pub(crate) mod connections;
mod followed;
mod form;
mod pages;
mod review;
mod stream;

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol};
use actix_server::Server;
use actix_service::{IntoServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::dev::{AppConfig, Extensions};
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{App, Error};
use rustls::ServerConfig;

use crate::hook::local::renders::Renders;
use crate::serve::address::listen;
use crate::serve::body::Room;
use crate::serve::callers::{Authorities, Door, Tokens};
use crate::serve::certificate::Certificate;
use crate::serve::connections::{Connections, Limits};
use crate::serve::stream::Stream;

/// Calls under way may take this long to end once the service is told to stop.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Callers are machines of the same cluster: what they want is said in a packet or two.
const HEAD: Duration = Duration::from_secs(5);
/// What a caller still sends that has been answered is read for so long, so that it gets to see the answer.
const FAREWELL: Duration = Duration::from_secs(1);
/// Threads that read and write. Rendering has its own.
const THREADS: usize = 4;

/// How the service is reached.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `ADDRESS:PORT`, or `:PORT` for every address; port 0 takes any free one.
    pub listen: String,
    /// Largest body of a request.
    pub body_bytes: usize,
    /// Speaks HTTPS, and shows this.
    pub certificate: Option<Arc<Certificate>>,
    /// Whom it answers; everybody without.
    pub tokens: Option<Arc<Tokens>>,
    /// With `certificate`: who vouches for those that it answers.
    pub authorities: Option<Arc<Authorities>>,
    pub limits: Limits,
}

/// A service that has its port and does not answer yet.
pub(crate) struct Service {
    server: Server,
    connections: Arc<Connections>,
    pub addresses: Vec<SocketAddr>,
}

/// What is different from port to port.
struct Port {
    listeners: Vec<TcpListener>,
    tls: Option<ServerConfig>,
    door: Door,
    limits: Limits,
    threads: usize,
    last_words: Duration,
}

impl Service {
    /// Takes the port.
    pub(crate) fn bind(settings: &Settings, renders: Arc<Renders>) -> io::Result<Service> {
        let renders = Data::from(renders);
        let room = Data::new(Room::new(settings.body_bytes));
        let certificate = settings.certificate.clone();
        let port = Port {
            listeners: listen(&settings.listen)?,
            door: Door { tokens: settings.tokens.clone(), api_server: certificate.is_some() },
            tls: certificate.map(|certificate| certificate.config(settings.authorities.clone())),
            limits: settings.limits,
            threads: available_parallelism().map_or(1, usize::from).min(THREADS),
            last_words: LAST_WORDS,
        };
        Service::open(port, move |config| {
            config
                .app_data(renders.clone())
                .app_data(room.clone())
                .service(pages::only("/", web::get().to(pages::index)))
                .service(pages::only("/healthz", web::get().to(pages::health)))
                .service(pages::only("/readyz", web::get().to(pages::readiness)))
                .service(pages::only("/metrics", web::get().to(pages::metrics)))
                .service(pages::only("/{hook}/{call}", web::post().to(call::answer)))
                .default_service(web::to(pages::nothing_here));
        })
    }

    /// Answers on a port with what `rooms` puts there.
    fn open(port: Port, rooms: impl Fn(&mut ServiceConfig) + Clone + Send + 'static) -> io::Result<Service> {
        let connections = Connections::new(port.limits);
        let door = Data::new(port.door);
        let tls = port.tls.map(Arc::new);
        let mut server = Server::build()
            .workers(port.threads)
            .max_concurrent_connections(port.limits.with_those_that_come_and_go().div_ceil(port.threads))
            .shutdown_timeout(port.last_words.as_secs())
            .disable_signals();
        let ending = server.graceful_shutdown_signal();
        let mut addresses = Vec::new();
        for listener in port.listeners {
            addresses.push(listener.local_addr()?);
            let (connections, tls, ending) = (connections.clone(), tls.clone(), ending.clone());
            let (door, rooms, wait) = (door.clone(), rooms.clone(), port.limits.wait);
            let app = move || {
                App::new()
                    .wrap(from_fn(callers::guard))
                    .wrap(from_fn(connections::follow))
                    .app_data(door.clone())
                    .configure(rooms.clone())
            };
            server = server.listen("port", listener, move || {
                let (connections, tls, ending) = (connections.clone(), tls.clone(), ending.clone());
                let app = app().into_factory().map_err(|error: Error| error.error_response());
                let http = HttpService::build()
                    .graceful_shutdown_signal(move || {
                        let ending = ending.clone();
                        async move { ending.notified().await }
                    })
                    .keep_alive(wait)
                    .client_request_timeout(HEAD)
                    .client_disconnect_timeout(FAREWELL)
                    .on_connect_ext(|stream: &Stream, kept: &mut Extensions| {
                        kept.insert(stream.connection());
                    })
                    .finish(map_config(app, |()| AppConfig::default()));
                let open = move |socket: TcpStream| {
                    let stream = Stream::open(socket, tls.clone(), connections.admit(Instant::now()));
                    async { Ok((stream.await.map_err(DispatchError::Io)?, Protocol::Http1, None)) }
                };
                fn_service(open).and_then(http)
            })?;
        }
        Ok(Service { server: server.run(), connections, addresses })
    }

    /// Answers until `stop` is done, then ends the calls under way. Runs on any tokio runtime.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let handle = self.server.handle();
        let server = tokio::spawn(self.server);
        tokio::select! {
            () = stop => {}
            () = self.connections.watch() => {}
        }
        handle.stop(true).await;
        server.await.expect("the server does not panic")
    }
}
