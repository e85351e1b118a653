//! Where a request goes: a URL taken apart, and what a redirect makes of it.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Uri};
use http_body_util::Full;

use crate::hook::access;
use crate::hook::remote::connection::Origin;
use crate::problem::Problem;

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    pub origin: Origin,
    pub host: HeaderValue,
    pub path: Uri,
    /// From a user and password in the URL.
    pub authorization: Option<HeaderValue>,
}

impl Target {
    pub(super) fn parse(url: &str) -> Result<Target, Problem> {
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

    pub(super) fn name(&self) -> String {
        let scheme = if self.origin.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.host.to_str().unwrap_or(&self.origin.host))
    }

    /// The URL without its user and its query, which may be secrets.
    pub(super) fn url(&self) -> String {
        format!("{}{}", self.name(), self.path.path())
    }

    /// What a `Location` means from here: a URL, a host, a path, or a path beside this one.
    pub(super) fn join(&self, location: &str) -> Result<Target, Problem> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = location.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| !scheme.contains(['/', '?'])) {
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

    /// Whether credentials for the hook here may go on to `other`: the same host, and never in the clear where they
    /// were not before.
    pub(super) fn trusts(&self, other: &Target) -> bool {
        self.origin.host.eq_ignore_ascii_case(&other.origin.host)
            && (self.origin == other.origin || other.origin.tls)
    }

    pub(super) fn request(&self, method: &Method, body: &Bytes) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::new(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("syncwright/", env!("CARGO_PKG_VERSION"))));
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
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(end) if scheme.is_empty() => format!("***{}", &rest[end..]),
        Some(end) => format!("{scheme}://***{}", &rest[end..]),
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
    access::basic(&plain)
}
