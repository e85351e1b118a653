//! Requests by way of a proxy, where the environment names one.

use std::io;
use std::sync::OnceLock;

use http::header::{HeaderValue, PROXY_AUTHORIZATION};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::hook::remote::connection::{Origin, Wire};
use crate::hook::remote::target::Target;
use crate::problem::Problem;
use crate::proxy::Proxies;

/// A proxy's answer has a head of this length at most.
const LONGEST_HEAD: usize = 8 << 10;

/// The proxy that leads to a target. A Problem where what is named is none that is spoken to here.
pub(super) fn proxy_for(target: &Target) -> Result<Option<Target>, Problem> {
    static PROXIES: OnceLock<Proxies> = OnceLock::new();
    let proxies = PROXIES.get_or_init(|| Proxies::new(|name| std::env::var(name).ok()));
    let Origin { tls, host, port } = &target.origin;
    let Some(url) = proxies.of(*tls, host, *port) else { return Ok(None) };
    let wrong = |problem: Problem| {
        let told = problem.message.trim_start_matches("webhook URL ");
        Problem::new(format!("the proxy for {}: {told}", target.name()))
            .hint("`HTTP_PROXY` and `HTTPS_PROXY` name proxies by `http://` or `https://`, `NO_PROXY` hosts without")
    };
    Target::parse(url).map(Some).map_err(wrong)
}

/// What a request in the clear says to a proxy beyond what it says to the server: the whole URL, and who asks.
pub(super) fn address<T>(request: &mut http::Request<T>, target: &Target, proxy: &Target) {
    let whole = format!("{}{}", target.name(), target.path);
    if let Ok(whole) = whole.parse() {
        *request.uri_mut() = whole;
    }
    if let Some(authorization) = &proxy.authorization {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
    }
}

/// Has the proxy connect to the server, and hand on what is said from here on.
pub(super) async fn tunnel(stream: &mut Wire, proxy: &Target, origin: &Origin) -> io::Result<()> {
    let host = if origin.host.contains(':') { format!("[{}]", origin.host) } else { origin.host.clone() };
    let server = format!("{host}:{}", origin.port);
    let mut head = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n");
    if let Some(authorization) = proxy.authorization.as_ref().map(HeaderValue::as_bytes) {
        let authorization = String::from_utf8_lossy(authorization);
        head.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let answer = read_head(stream).await?;
    let line = answer.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(io::Error::other(format!("the proxy {} answered `{line}`", proxy.name()))),
    }
}

/// Byte by byte: what comes after the head is the server's.
async fn read_head(stream: &mut Wire) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LONGEST_HEAD {
            return Err(io::Error::other("the proxy's answer has no end"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
