//! The hook service: `POST /<hook>/<call>`, and pages that say how the hooks stand.
//!
//! Knows sockets, headers and statuses, and no template: the shelf answers.

pub(crate) mod admin;
mod body;
mod call;
pub(crate) mod callers;
pub(crate) mod certificate;
mod form;
mod pages;
mod review;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data};
use actix_web::{App, HttpServer};

use crate::hook::local::renders::Renders;
use crate::serve::body::Room;
use crate::serve::callers::{Authorities, Door, Tokens};
use crate::serve::certificate::Certificate;

/// Calls under way may take this long to end once the service is told to stop.
const LAST_WORDS: u64 = 10;
/// Longer than the minute after which controllers and proxies let go of an idle connection, so that they do it first.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How the service is reached.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `ADDRESS:PORT`; port 0 takes any free one.
    pub listen: String,
    /// Largest body of a request.
    pub body_bytes: usize,
    /// Speaks HTTPS, and shows this.
    pub certificate: Option<Arc<Certificate>>,
    /// Whom it answers; everybody without.
    pub tokens: Option<Arc<Tokens>>,
    /// With `certificate`: who vouches for those that it answers.
    pub authorities: Option<Arc<Authorities>>,
}

/// A service that has its port and does not answer yet.
pub(crate) struct Service {
    server: Server,
    pub addresses: Vec<SocketAddr>,
}

impl Service {
    /// Takes the port.
    pub(crate) fn bind(settings: &Settings, renders: Arc<Renders>) -> io::Result<Service> {
        let renders = Data::from(renders);
        let room = Data::new(Room::new(settings.body_bytes));
        let tokens = settings.tokens.clone();
        let door = Data::new(Door { tokens, api_server: settings.certificate.is_some() });
        let server = HttpServer::new(move || {
            App::new()
                .wrap(from_fn(callers::guard))
                .app_data(door.clone())
                .app_data(renders.clone())
                .app_data(room.clone())
                .service(pages::only("/", web::get().to(pages::index)))
                .service(pages::only("/healthz", web::get().to(pages::health)))
                .service(pages::only("/readyz", web::get().to(pages::readiness)))
                .service(pages::only("/metrics", web::get().to(pages::metrics)))
                .service(pages::only("/{hook}/{call}", web::post().to(call::answer)))
                .default_service(web::to(pages::nothing_here))
        });
        let server = server.keep_alive(KEEP_ALIVE).shutdown_timeout(LAST_WORDS).disable_signals();
        let server = match &settings.certificate {
            Some(certificate) => {
                let config = certificate.clone().config(settings.authorities.clone());
                server.bind_rustls_0_23(&settings.listen, config)?
            }
            None => server.bind(&settings.listen)?,
        };
        let addresses = server.addrs();
        Ok(Service { server: server.run(), addresses })
    }

    /// Answers until `stop` is done, then ends the calls under way. Runs on any tokio runtime.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let handle = self.server.handle();
        let server = tokio::spawn(self.server);
        stop.await;
        handle.stop(true).await;
        server.await.expect("the server does not panic")
    }
}
