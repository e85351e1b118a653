//! Pages for machines that look after the process: `/metrics`, `/healthz`, `/readyz`.
//!
//! Knows how they are answered, and not what there is to say: whoever binds them brings that along.

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{self, Query, ServiceConfig};
use serde::Deserialize;

use crate::metric::text::CONTENT_TYPE;
use crate::serve::address::listen;
use crate::serve::callers::Door;
use crate::serve::connections::Limits;
use crate::serve::{Port, Service, pages};

/// A page is made at once, and a probe that gets none comes again.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One thing that a probe looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub name: String,
    pub found: Found,
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// All is well, with something to add or an empty text.
    Well(String),
    /// Worth knowing, and no reason to fail.
    Noted(String),
    /// The probe fails.
    Missing(String),
}

impl Check {
    pub(crate) fn new(name: impl Into<String>, found: Found) -> Check {
        Check { name: name.into(), found }
    }
}

/// Looks anew at each request.
pub(crate) type Look = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// Pages that can be bound to an address.
#[derive(Clone)]
pub(crate) enum Pages {
    Metrics(Arc<dyn Fn() -> String + Send + Sync>),
    Probes { health: Look, readiness: Look },
}

/// Takes a port, `ADDRESS:PORT` or `:PORT`, for these pages. They are answered on a thread of their own, whatever happens
/// on other ports.
pub(crate) fn bind(address: &str, pages: &[Pages], limits: Limits) -> io::Result<Service> {
    let all = pages.to_vec();
    let port = Port {
        listeners: listen(address)?,
        tls: None,
        door: Door { tokens: None, api_server: false },
        limits,
        threads: 1,
        last_words: LAST_WORDS,
    };
    Service::open(port, move |config| {
        all.iter().for_each(|pages| pages.add_to(config));
        config.default_service(web::to(pages::no_such_page));
    })
}

impl Pages {
    fn add_to(&self, config: &mut ServiceConfig) {
        match self {
            Pages::Metrics(text) => {
                let text = text.clone();
                let page = move || {
                    let text = text();
                    async move { HttpResponse::Ok().content_type(CONTENT_TYPE).body(text) }
                };
                config.service(pages::only("/metrics", web::get().to(page)));
            }
            Pages::Probes { health, readiness } => {
                for (name, look) in [("healthz", health), ("readyz", readiness)] {
                    // The longer path is that of the one check of this name, as Metacontroller has it.
                    for path in [format!("/{name}"), format!("/{name}/{name}")] {
                        let look = look.clone();
                        let page = move |detail: Query<Detail>| {
                            let answer = answer(name, &look(), detail.verbose.is_some());
                            async move { answer }
                        };
                        config.service(pages::only(&path, web::get().to(page)));
                    }
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Detail {
    verbose: Option<String>,
}

fn answer(name: &str, checks: &[Check], verbose: bool) -> HttpResponse {
    let (well, text) = told(name, checks, verbose);
    let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    HttpResponse::build(status).content_type("text/plain; charset=utf-8").body(text)
}

/// Whether nothing is missing, and the page that says so in the form of the API server's own.
fn told(name: &str, checks: &[Check], verbose: bool) -> (bool, String) {
    let missing = |check: &&Check| matches!(check.found, Found::Missing(_));
    let well = !checks.iter().any(|check| missing(&check));
    if well && !verbose {
        return (true, "ok".into());
    }
    let mut text = String::new();
    for check in checks.iter().filter(|check| verbose || missing(check)) {
        let (sign, words) = match &check.found {
            Found::Well(words) if words.is_empty() => ("+", " ok".into()),
            Found::Well(words) => ("+", format!(": {words}")),
            Found::Noted(words) => ("!", format!(": {words}")),
            Found::Missing(words) => ("-", format!(": {words}")),
        };
        let _ = writeln!(text, "[{sign}]{}{words}", check.name);
    }
    let _ = writeln!(text, "{name} check {}", if well { "passed" } else { "failed" });
    (well, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(last: Found) -> Vec<Check> {
        vec![
            Check::new("pulse", Found::Well(String::new())),
            Check::new("hook web", Found::Noted("revision b does not compile".into())),
            Check::new("kind v1 things", last),
        ]
    }

    #[test]
    fn what_is_only_worth_knowing_does_not_fail() {
        let checks = checks(Found::Well("3 objects".into()));
        assert_eq!(told("readyz", &checks, false), (true, "ok".into()));
        let page = "[+]pulse ok\n[!]hook web: revision b does not compile\n[+]kind v1 things: 3 objects\n\
                    readyz check passed\n";
        assert_eq!(told("readyz", &checks, true), (true, page.into()));
    }

    #[test]
    fn what_is_missing_is_named_in_the_short_page_too() {
        let checks = checks(Found::Missing("not listed yet".into()));
        let page = "[-]kind v1 things: not listed yet\nreadyz check failed\n";
        assert_eq!(told("readyz", &checks, false), (false, page.into()));
    }
}
