//! A CompositeController as it is written, and the way from there to what it means.
//!
//! The shape was checked by `schema`; here is what a schema can't say.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::config::schema::{Fault, Path};
use crate::config::spec::{
    Access, CaBundle, ChildRule, ClientTls, CompositeSpec, ConditionCheck, Credentials, Decoding, Etag,
    HookSpec, HookVersion, Hooks, KeyRef, ParentRule, ResourceName, Target, UpdateMethod, Webhook,
};
use crate::object::selector::Selector;
use crate::problem::Problem;
use crate::schedule::duration::parse_duration;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The finalizer is named after the definition, and the API server limits the part behind the slash.
const FINALIZER_NAME: (&str, usize) = ("compositecontroller-", 63);

/// The written spec.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    parent_resource: ParentResource,
    #[serde(default)]
    child_resources: Vec<ChildResource>,
    hooks: Option<HooksBlock>,
    #[serde(default)]
    endpoint_configs: Vec<EndpointConfig>,
    resync_period_seconds: Option<i64>,
    #[serde(default)]
    generate_selector: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParentResource {
    #[serde(flatten)]
    name: Resource,
    revision_history: Option<RevisionHistory>,
    #[serde(default)]
    label_selector: Value,
    #[serde(default)]
    ignore_status_changes: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    api_version: String,
    resource: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevisionHistory {
    #[serde(default)]
    field_paths: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChildResource {
    #[serde(flatten)]
    name: Resource,
    update_strategy: Option<UpdateStrategy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateStrategy {
    method: Option<String>,
    status_checks: Option<StatusChecks>,
}

#[derive(Deserialize)]
struct StatusChecks {
    #[serde(default)]
    conditions: Vec<StatusCheck>,
}

#[derive(Deserialize)]
struct StatusCheck {
    #[serde(rename = "type")]
    kind: String,
    status: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct HooksBlock {
    sync: Option<HookBlock>,
    finalize: Option<HookBlock>,
    customize: Option<HookBlock>,
}

#[derive(Deserialize)]
struct HookBlock {
    version: Option<String>,
    webhook: Option<WebhookBlock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebhookBlock {
    url: Option<String>,
    service: Option<Service>,
    path: Option<String>,
    timeout: Option<String>,
    response_un_marshall_mode: Option<String>,
    etag: Option<EtagBlock>,
    #[serde(flatten)]
    access: AccessBlock,
}

#[derive(Deserialize)]
struct Service {
    name: String,
    namespace: String,
    port: Option<i64>,
    protocol: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EtagBlock {
    #[serde(default)]
    enabled: bool,
    #[serde(default)]
    cache_timeout_seconds: i64,
}

#[derive(Deserialize)]
struct EndpointConfig {
    host: String,
    #[serde(flatten)]
    access: AccessBlock,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessBlock {
    ca_bundle: Option<CaBundleBlock>,
    #[serde(rename = "clientTLS")]
    client_tls: Option<ClientTlsBlock>,
    authorization: Option<AuthorizationBlock>,
    basic_auth: Option<BasicAuthBlock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaBundleBlock {
    inline: Option<String>,
    secret_ref: Option<Reference>,
    config_map_ref: Option<Reference>,
}

/// A Secret or ConfigMap; the schema has filled the key in where it has a default.
#[derive(Deserialize)]
struct Reference {
    name: String,
    namespace: String,
    #[serde(default)]
    key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientTlsBlock {
    secret_ref: Reference,
    cert_key: String,
    private_key_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorizationBlock {
    #[serde(rename = "type")]
    scheme: String,
    secret_ref: Reference,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BasicAuthBlock {
    secret_ref: Reference,
    username_key: String,
    password_key: String,
}

/// What the spec of the definition called `name` means, or everything that is wrong with it.
pub(crate) fn meaning(name: &str, spec: Spec) -> Result<CompositeSpec, Vec<Fault>> {
    let mut faults = Faults::default();
    let at = Path::default().key("spec");
    let mut hooks = hooks(spec.hooks, name, &at, &mut faults);
    let endpoints = endpoints(spec.endpoint_configs, &at.key("endpointConfigs"), &mut faults);
    for hook in [&mut hooks.sync, &mut hooks.finalize, &mut hooks.customize].into_iter().flatten() {
        endpoints.give_access(&mut hook.webhook);
    }
    let meaning = CompositeSpec {
        parent: parent(spec.parent_resource, &at.key("parentResource"), &mut faults),
        children: children(spec.child_resources, &at.key("childResources"), &mut faults),
        hooks,
        resync_period: spec.resync_period_seconds.map(|seconds| Duration::from_secs(seconds.max(1) as u64)),
        generate_selector: spec.generate_selector,
    };
    if faults.0.is_empty() { Ok(meaning) } else { Err(faults.0) }
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, path: &Path, problem: Problem) {
        self.0.push(Fault::new(path, problem));
    }
}

fn parent(written: ParentResource, at: &Path, faults: &mut Faults) -> ParentRule {
    let paths = written.revision_history.map(|history| history.field_paths).unwrap_or_default();
    ParentRule {
        resource: resource(written.name, at, faults),
        selector: selector(&written.label_selector, &at.key("labelSelector"), faults),
        ignore_status_changes: written.ignore_status_changes,
        revision_paths: if paths.is_empty() { vec!["spec".into()] } else { paths },
    }
}

fn selector(written: &Value, at: &Path, faults: &mut Faults) -> Selector {
    Selector::from_json(written).unwrap_or_else(|error| {
        let dot = if error.path.is_empty() { "" } else { "." };
        faults.add(at, Problem::new(format!("`{at}{dot}{}`: {}", error.path, error.message)));
        Selector::everything()
    })
}

fn children(written: Vec<ChildResource>, at: &Path, faults: &mut Faults) -> Vec<ChildRule> {
    let mut rules: Vec<ChildRule> = Vec::new();
    for (index, child) in written.into_iter().enumerate() {
        let rule = child_rule(child, &at.index(index), faults);
        let same = |other: &ChildRule| {
            other.resource.resource == rule.resource.resource
                && other.resource.group() == rule.resource.group()
        };
        if let Some(first) = rules.iter().position(same) {
            let problem = Problem::new(format!(
                "`{}` repeats `{}`: {}",
                at.index(index),
                at.index(first),
                rule.resource
            ));
            faults.add(&at.index(index), problem.expected("one rule for each kind"));
        }
        rules.push(rule);
    }
    rules
}

fn child_rule(written: ChildResource, at: &Path, faults: &mut Faults) -> ChildRule {
    let (method, checks) = match written.update_strategy {
        Some(strategy) => (strategy.method, strategy.status_checks),
        None => (None, None),
    };
    let check = |check: StatusCheck| ConditionCheck {
        kind: check.kind,
        status: check.status.filter(|status| !status.is_empty()),
        reason: check.reason.filter(|reason| !reason.is_empty()),
    };
    ChildRule {
        resource: resource(written.name, at, faults),
        update: update_method(method.as_deref()),
        status_checks: checks.into_iter().flat_map(|checks| checks.conditions).map(check).collect(),
    }
}

fn update_method(written: Option<&str>) -> UpdateMethod {
    match written {
        Some("Recreate") => UpdateMethod::Recreate,
        Some("InPlace") => UpdateMethod::InPlace,
        Some("RollingRecreate") => UpdateMethod::RollingRecreate,
        Some("RollingInPlace") => UpdateMethod::RollingInPlace,
        _ => UpdateMethod::OnDelete,
    }
}

fn resource(written: Resource, at: &Path, faults: &mut Faults) -> ResourceName {
    let (version_at, resource_at) = (at.key("apiVersion"), at.key("resource"));
    let name = ResourceName { api_version: written.api_version, resource: written.resource };
    if !is_api_version(&name.api_version) {
        let problem = Problem::new(format!("`{version_at}` is the text `{}`", name.api_version));
        faults.add(
            &version_at,
            problem.expected("a group and a version such as `apps/v1`, or `v1` for the core group"),
        );
    }
    let lower = name.resource.to_lowercase();
    let problem = Problem::new(format!("`{resource_at}` is the text `{}`", name.resource))
        .expected("the plural of a kind in lower case, such as `deployments`");
    if name.resource != lower {
        let hint = format!("use the plural, `{}`", plural(&lower));
        faults.add(&resource_at, problem.hint(hint));
    } else if lower.is_empty() || !lower.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        faults.add(&resource_at, problem);
    }
    name
}

/// `v1`, or a DNS name, a slash and a version. The core group has the one version.
fn is_api_version(text: &str) -> bool {
    let is_label = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    match text.split_once('/') {
        None => text == "v1",
        Some((group, version)) => group.split('.').all(is_label) && is_label(version),
    }
}

/// The plural that Kubernetes would most likely have for a kind.
fn plural(kind: &str) -> String {
    let before_y = kind.chars().rev().nth(1);
    if kind.ends_with('y') && !before_y.is_some_and(|c| "aeiou".contains(c)) {
        return format!("{}ies", &kind[..kind.len() - 1]);
    }
    if kind.ends_with("ss") || kind.ends_with('x') || kind.ends_with("ch") || kind.ends_with("sh") {
        return format!("{kind}es");
    }
    if kind.ends_with('s') { kind.into() } else { format!("{kind}s") }
}

fn hooks(written: Option<HooksBlock>, name: &str, at: &Path, faults: &mut Faults) -> Hooks {
    let Some(written) = written else {
        let problem = Problem::new(format!("`{at}` has no `hooks`"));
        faults.add(at, problem.expected("`hooks.sync.webhook`, or `hooks.finalize.webhook`"));
        return Hooks::default();
    };
    let at = at.key("hooks");
    if written.sync.is_none() && written.finalize.is_none() {
        let problem = Problem::new(format!("`{at}` has neither `sync` nor `finalize`"));
        faults.add(&at, problem.expected("at least one of them: nothing would ever be called"));
    }
    if written.finalize.is_some() && name.len() + FINALIZER_NAME.0.len() > FINALIZER_NAME.1 {
        let limit = FINALIZER_NAME.1 - FINALIZER_NAME.0.len();
        let problem =
            Problem::new(format!("`{name}` is too long a name for a definition with a finalize hook"));
        faults.add(
            &Path::default().key("metadata").key("name"),
            problem.expected(format!("at most {limit} characters: it becomes part of a finalizer's name")),
        );
    }
    let mut read = |block: Option<HookBlock>, call: &str| hook(block?, &at.key(call), faults);
    Hooks {
        sync: read(written.sync, "sync"),
        finalize: read(written.finalize, "finalize"),
        customize: read(written.customize, "customize"),
    }
}

/// A hook without a webhook is refused. Metacontroller takes `finalize: {}` for a hook that never answers, and
/// the parent's deletion never ends; leaving it out in silence would skip a clean-up that somebody counts on.
fn hook(written: HookBlock, at: &Path, faults: &mut Faults) -> Option<HookSpec> {
    let version = if written.version.as_deref() == Some("v2") { HookVersion::V2 } else { HookVersion::V1 };
    let Some(webhook) = written.webhook else {
        let problem = Problem::new(format!("`{at}` has no `webhook`"));
        faults.add(at, problem.hint(format!("without anything to call, leave `{at}` out")));
        return None;
    };
    let at = at.key("webhook");
    let target = target(&webhook, &at, faults)?;
    Some(HookSpec { version, webhook: self::webhook(webhook, target, version, &at, faults) })
}

fn webhook(
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

fn target(written: &WebhookBlock, at: &Path, faults: &mut Faults) -> Option<Target> {
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
struct Endpoints(Vec<(String, Access)>);

impl Endpoints {
    /// A webhook that sets any part of its access keeps it as it is; nothing is mixed.
    fn give_access(&self, webhook: &mut Webhook) {
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

fn endpoints(written: Vec<EndpointConfig>, at: &Path, faults: &mut Faults) -> Endpoints {
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
