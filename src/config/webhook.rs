//! Whom a webhook calls, and how it is trusted and lets itself be known.

use std::time::Duration;

use crate::config::manifest::{
    AccessBlock, AuthorizationBlock, CaBundleBlock, EndpointConfig, Reference, Service, WebhookBlock,
};
use crate::config::meaning::Faults;
use crate::config::schema::Path;
use crate::config::spec::{
    Access, CaBundle, ClientTls, Credentials, Decoding, Etag, HookVersion, KeyRef, Target, Webhook,
};
use crate::problem::Problem;
use crate::schedule::duration::parse_duration;

const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn webhook(
    written: WebhookBlock,
    target: Target,
    version: HookVersion,
    at: &Path,
    faults: &mut Faults,
) -> Webhook {
    let local = matches!(target, Target::BuiltIn { .. });
    Webhook {
        timeout: timeout(written.timeout.as_deref()),
        decoding: match written.response_un_marshall_mode.as_deref() {
            Some("loose") => Decoding::Loose,
            Some("strict") => Decoding::Strict,
            _ if local || version == HookVersion::V2 => Decoding::Strict,
            _ => Decoding::Loose,
        },
        etag: written.etag.filter(|etag| etag.enabled).map(|etag| Etag {
            keep: (etag.cache_timeout_seconds > 0)
                .then(|| Duration::from_secs(etag.cache_timeout_seconds as u64)),
        }),
        access: access(written.access, at, faults),
        target,
    }
}

/// Metacontroller takes its default for a timeout of nothing and below.
fn timeout(written: Option<&str>) -> Duration {
    let timeout = written.and_then(|text| parse_duration(text).ok()?.try_into().ok());
    timeout.filter(|timeout: &Duration| !timeout.is_zero()).unwrap_or(TIMEOUT)
}

pub(super) fn target(written: &WebhookBlock, at: &Path, faults: &mut Faults) -> Option<Target> {
    let url = written.url.as_deref().filter(|url| !url.is_empty());
    let path = written.path.as_deref().filter(|path| !path.is_empty());
    match (url, &written.service, path) {
        (Some(url), _, _) => whole_url(url, at, faults),
        (None, Some(service), Some(path)) => service_url(service, path, at, faults),
        (None, Some(_), None) => {
            let problem = Problem::new(format!("`{at}` has a `service` and no `path`"));
            faults.add(at, problem.expected("a path that begins with `/`"));
            None
        }
        (None, None, Some(path)) => built_in(path, &at.key("path"), faults),
        (None, None, None) => {
            let problem = Problem::new(format!("`{at}` says nobody to call"));
            faults.add(
                at,
                problem
                    .expected("`path` alone for the built-in hook service, `url`, or `service` with `path`"),
            );
            None
        }
    }
}

fn whole_url(url: &str, at: &Path, faults: &mut Faults) -> Option<Target> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    if host.is_some_and(|host| !host.is_empty() && !url.contains(char::is_whitespace)) {
        return Some(Target::Url(url.into()));
    }
    let at = at.key("url");
    // What comes before `@` may be a password.
    let shown = url.rsplit('@').next().unwrap_or_default();
    let problem = Problem::new(format!("`{at}` is the text `{shown}`"))
        .expected("a complete URL such as `http://my-hooks.my-namespace/sync`");
    faults.add(
        &at,
        match url.starts_with('/') {
            true => problem.hint("for the built-in hook service, call it `path`"),
            false => problem,
        },
    );
    None
}

/// The host has no `.svc`, and the port is always there: existing `endpointConfigs` match against exactly this.
fn service_url(service: &Service, path: &str, at: &Path, faults: &mut Faults) -> Option<Target> {
    let known = faults.0.len();
    let protocol = service.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("http");
    let port = service.port.unwrap_or(80);
    let at_service = at.key("service");
    if !matches!(protocol, "http" | "https") {
        let at = at_service.key("protocol");
        faults
            .add(&at, Problem::new(format!("`{at}` is the text `{protocol}`")).expected("`http` or `https`"));
    }
    if !(1..=65535).contains(&port) {
        let at = at_service.key("port");
        faults.add(&at, Problem::new(format!("`{at}` is `{port}`")).expected("1 to 65535"));
    }
    for (key, text) in [("name", &service.name), ("namespace", &service.namespace)] {
        if text.is_empty() {
            let at = at_service.key(key);
            faults.add(&at, Problem::new(format!("`{at}` is empty")));
        }
    }
    if !path.starts_with('/') {
        let at = at.key("path");
        let problem =
            Problem::new(format!("`{at}` is the text `{path}`")).expected("a path that begins with `/`");
        faults.add(&at, problem.hint(format!("write `/{path}`")));
    }
    (faults.0.len() == known)
        .then(|| Target::Url(format!("{protocol}://{}.{}:{port}{path}", service.name, service.namespace)))
}

fn built_in(path: &str, at: &Path, faults: &mut Faults) -> Option<Target> {
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    let parts: Vec<&str> = path.split('/').collect();
    if let ["", hook, call] = parts[..]
        && is_name(hook)
        && is_name(call)
    {
        return Some(Target::BuiltIn { hook: hook.into(), call: call.into() });
    }
    let problem = Problem::new(format!("`{at}` is the text `{path}`"))
        .expected("`/<hook>/<call>`, such as `/mysql/sync`, for the built-in hook service");
    faults.add(at, problem.hint("a hook elsewhere has a `url`, or a `service` beside its `path`"));
    None
}

/// Access by host, for webhooks that have none of their own.
pub(super) struct Endpoints(Vec<(String, Access)>);

impl Endpoints {
    /// A webhook that sets any part of its access keeps it as it is; nothing is mixed.
    pub(super) fn give_access(&self, webhook: &mut Webhook) {
        let Target::Url(url) = &webhook.target else { return };
        if webhook.access.is_empty() {
            let names = host_names(url);
            let named = |(host, _): &&(String, Access)| names.contains(&host.trim().to_lowercase());
            webhook.access = self.0.iter().find(named).map(|(_, access)| access.clone()).unwrap_or_default();
        }
    }
}

/// What an endpoint may call the host of a URL: as it is written, and with or without its scheme's own port.
fn host_names(url: &str) -> Vec<String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().to_lowercase();
    let port = if scheme == "https" { ":443" } else { ":80" };
    let has_port = host.rsplit(']').next().unwrap_or_default().contains(':');
    let other = match host.strip_suffix(port) {
        Some(bare) => Some(bare.to_string()),
        None => (!has_port).then(|| format!("{host}{port}")),
    };
    [host].into_iter().chain(other).collect()
}

pub(super) fn endpoints(written: Vec<EndpointConfig>, at: &Path, faults: &mut Faults) -> Endpoints {
    let mut endpoints = Vec::new();
    for (index, endpoint) in written.into_iter().enumerate() {
        let at = at.index(index);
        if endpoint.host.trim().is_empty() {
            let at = at.key("host");
            faults.add(
                &at,
                Problem::new(format!("`{at}` is empty")).expected("a host, or a host and its port"),
            );
        }
        endpoints.push((endpoint.host, access(endpoint.access, &at, faults)));
    }
    Endpoints(endpoints)
}

fn access(written: AccessBlock, at: &Path, faults: &mut Faults) -> Access {
    let token = written.authorization.map(|block| token(block, &at.key("authorization"), faults));
    let basic = written.basic_auth.map(|block| Credentials::Basic {
        namespace: block.secret_ref.namespace,
        name: block.secret_ref.name,
        username_key: block.username_key,
        password_key: block.password_key,
    });
    if token.is_some() && basic.is_some() {
        let problem = Problem::new(format!("`{at}` has `authorization` and `basicAuth`"));
        faults.add(at, problem.expected("one of the two"));
    }
    Access {
        ca_bundle: written.ca_bundle.and_then(|block| ca_bundle(block, &at.key("caBundle"), faults)),
        client_tls: written.client_tls.map(|block| ClientTls {
            namespace: block.secret_ref.namespace,
            name: block.secret_ref.name,
            certificate_key: block.cert_key,
            private_key_key: block.private_key_key,
        }),
        credentials: token.or(basic),
    }
}

fn token(written: AuthorizationBlock, at: &Path, faults: &mut Faults) -> Credentials {
    let scheme = written.scheme.trim();
    if scheme.eq_ignore_ascii_case("basic") {
        let at = at.key("type");
        let problem = Problem::new(format!("`{at}` is the text `{scheme}`"));
        faults.add(&at, problem.hint("use `basicAuth`, which takes a user name and a password"));
    }
    Credentials::Token { scheme: scheme.into(), secret: key_ref(written.secret_ref) }
}

fn ca_bundle(written: CaBundleBlock, at: &Path, faults: &mut Faults) -> Option<CaBundle> {
    let sources = [
        written.inline.filter(|pem| !pem.is_empty()).map(CaBundle::Inline),
        written.secret_ref.map(|reference| CaBundle::Secret(key_ref(reference))),
        written.config_map_ref.map(|reference| CaBundle::ConfigMap(key_ref(reference))),
    ];
    let mut given = sources.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(source), None) => Some(source),
        (first, _) => {
            let count = if first.is_some() { "more than one source" } else { "no source" };
            let problem = Problem::new(format!("`{at}` has {count}"));
            faults.add(at, problem.expected("exactly one of `inline`, `secretRef`, `configMapRef`"));
            None
        }
    }
}

fn key_ref(written: Reference) -> KeyRef {
    KeyRef { namespace: written.namespace, name: written.name, key: written.key }
}
