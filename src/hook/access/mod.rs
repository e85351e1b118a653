//! How a remote hook is reached: whom we trust, which certificate we show, which header we send.
//!
//! Reads no Secret by itself. Whoever watches them hands their contents in as often as they change, and the next call
//! goes with what they hold then.

pub(super) mod tls;
mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::spec::{Access, CaBundle, ClientTls, Credentials, KeyRef};
use crate::object::name::Key;
use crate::problem::{Problem, nearest};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Sort {
    ConfigMap,
    Secret,
}

/// A Secret or ConfigMap that something of a hook's access is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub sort: Sort,
    pub key: Key,
}

impl Holder {
    fn new(sort: Sort, namespace: &str, name: &str) -> Holder {
        Holder { sort, key: Key::new(namespace, name) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} `{}`", self.sort, self.key)
    }
}

/// What is known of such an object.
pub(crate) enum Contents {
    /// It is not looked at yet, or out of reach: why.
    Unknown(String),
    Absent,
    Data(BTreeMap<String, Vec<u8>>),
}

/// Answers what an object holds.
pub(crate) type Look<'a> = &'a dyn Fn(&Holder) -> Contents;

/// What the next call goes with.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// `None` trusts the system's roots and shows no certificate.
    pub tls: Option<Arc<ClientConfig>>,
    pub authorization: Option<HeaderValue>,
}

/// A hook's way in: what its definition asks for, and what the objects it names make of that.
pub(crate) struct Admission {
    wanted: Access,
    state: ArcSwap<State>,
}

struct State {
    materials: Option<Materials>,
    pass: Result<Pass, Problem>,
}

/// What came of reading the objects anew.
#[derive(Debug, PartialEq)]
pub(crate) enum Renewal {
    Same,
    /// From now on calls go with something else.
    Changed,
    /// The hook can be called again.
    Usable,
    /// The hook can't be called, or for another reason than before.
    Unusable(Problem),
}

impl Admission {
    pub(super) fn new(wanted: Access) -> Admission {
        let state = State::read(&wanted, &|_| Contents::Unknown("it is not looked at yet".into()));
        Admission { wanted, state: ArcSwap::from_pointee(state) }
    }

    /// The objects to watch.
    pub(crate) fn holders(&self) -> Vec<Holder> {
        let in_bundle = self.wanted.ca_bundle.as_ref().and_then(bundle_holder);
        let identity = self.wanted.client_tls.as_ref().map(client_holder);
        let credentials = self.wanted.credentials.as_ref().map(credentials_holder);
        let mut holders: Vec<Holder> = [in_bundle, identity, credentials].into_iter().flatten().collect();
        holders.sort();
        holders.dedup();
        holders
    }

    /// Reads the objects anew. Calls under way end with what they began with.
    pub(crate) fn renew(&self, look: Look) -> Renewal {
        let before = self.state.load();
        let now = State::read(&self.wanted, look);
        let renewal = match (&before.pass, &now.pass) {
            (Ok(_), Ok(_)) if before.materials == now.materials => return Renewal::Same,
            (Err(known), Err(problem)) if known == problem => return Renewal::Same,
            (Ok(_), Ok(_)) => Renewal::Changed,
            (Err(_), Ok(_)) => Renewal::Usable,
            (_, Err(problem)) => Renewal::Unusable(problem.clone()),
        };
        self.state.store(Arc::new(now));
        renewal
    }

    /// Why the hook can't be called.
    pub(crate) fn problem(&self) -> Option<Problem> {
        self.state.load().pass.as_ref().err().cloned()
    }

    pub(super) fn pass(&self) -> Result<Pass, Problem> {
        self.state.load().pass.clone()
    }
}

impl State {
    fn read(wanted: &Access, look: Look) -> State {
        match Materials::read(wanted, look) {
            Ok(materials) => State { pass: materials.pass(wanted), materials: Some(materials) },
            Err(problem) => State { pass: Err(problem), materials: None },
        }
    }
}

/// What was read, before anything is made of it.
#[derive(PartialEq)]
struct Materials {
    authorities: Option<Vec<CertificateDer<'static>>>,
    identity: Option<Identity>,
    authorization: Option<HeaderValue>,
}

/// A certificate with those that vouch for it, and its key.
#[derive(PartialEq)]
pub(super) struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Materials {
    fn read(wanted: &Access, look: Look) -> Result<Materials, Problem> {
        Ok(Materials {
            authorities: wanted.ca_bundle.as_ref().map(|bundle| authorities(bundle, look)).transpose()?,
            identity: wanted.client_tls.as_ref().map(|client| identity(client, look)).transpose()?,
            authorization: wanted.credentials.as_ref().map(|wanted| header(wanted, look)).transpose()?,
        })
    }

    fn pass(&self, wanted: &Access) -> Result<Pass, Problem> {
        let tls = match (&self.authorities, &self.identity) {
            (None, None) => None,
            (authorities, identity) => {
                Some(tls::config(authorities.as_deref(), identity.as_ref()).map_err(|fault| match fault {
                    tls::Fault::Authorities(why) => Problem::new(format!("`caBundle`: {why}")),
                    tls::Fault::System(why) => Problem::new(why),
                    tls::Fault::Identity(why) => unusable_identity(wanted.client_tls.as_ref(), &why),
                })?)
            }
        };
        Ok(Pass { tls: tls.map(Arc::new), authorization: self.authorization.clone() })
    }
}

fn unusable_identity(client: Option<&ClientTls>, why: &str) -> Problem {
    let holder = client.map(client_holder).map(|holder| format!("{holder}: ")).unwrap_or_default();
    Problem::new(format!("`clientTLS`: {holder}{why}"))
}

fn bundle_holder(bundle: &CaBundle) -> Option<Holder> {
    let (sort, KeyRef { namespace, name, .. }) = match bundle {
        CaBundle::Inline(_) => return None,
        CaBundle::Secret(key) => (Sort::Secret, key),
        CaBundle::ConfigMap(key) => (Sort::ConfigMap, key),
    };
    Some(Holder::new(sort, namespace, name))
}

fn client_holder(client: &ClientTls) -> Holder {
    Holder::new(Sort::Secret, &client.namespace, &client.name)
}

fn credentials_holder(credentials: &Credentials) -> Holder {
    let (namespace, name) = match credentials {
        Credentials::Token { secret, .. } => (&secret.namespace, &secret.name),
        Credentials::Basic { namespace, name, .. } => (namespace, name),
    };
    Holder::new(Sort::Secret, namespace, name)
}

/// What TLS trusts beyond hooks: the authorities in a PEM text of that name, or else the system's.
#[cfg(feature = "otel")]
pub(crate) fn trusting(pem: Option<(&str, &[u8])>) -> Result<ClientConfig, Problem> {
    let authorities = pem.map(|(source, pem)| certificates(&format!("`{source}`"), pem)).transpose()?;
    tls::config(authorities.as_deref(), None).map_err(|fault| match fault {
        tls::Fault::Authorities(why) | tls::Fault::Identity(why) | tls::Fault::System(why) => {
            Problem::new(why)
        }
    })
}

/// What is no use for TLS.
#[cfg(feature = "otel")]
pub(crate) fn trusting_nobody() -> ClientConfig {
    tls::trusting_nobody()
}

fn authorities(bundle: &CaBundle, look: Look) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let (source, pem) = match (bundle, bundle_holder(bundle)) {
        (CaBundle::Secret(key) | CaBundle::ConfigMap(key), Some(holder)) => {
            let drawer = Drawer { block: "caBundle", holder: &holder, key: &key.key };
            (drawer.to_string(), drawer.filled(look)?)
        }
        (CaBundle::Inline(pem), _) => ("`caBundle`: `inline`".into(), pem.clone().into_bytes()),
        (_, None) => unreachable!("what is not inline is in an object"),
    };
    certificates(&source, &pem)
}

/// All certificates of a PEM text. What is between them and can't be read is left out.
fn certificates(source: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
    if certificates.is_empty() {
        let problem = Problem::new(format!("{source} holds no certificate"));
        return Err(problem.expected("PEM: `-----BEGIN CERTIFICATE-----` and what follows"));
    }
    Ok(certificates)
}

fn identity(client: &ClientTls, look: Look) -> Result<Identity, Problem> {
    let holder = client_holder(client);
    let drawer = |key| Drawer { block: "clientTLS", holder: &holder, key };
    let (chain, key) = (drawer(&client.certificate_key), drawer(&client.private_key_key));
    let pem = key.filled(look)?;
    let private_key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        let problem = Problem::new(format!("{key} holds no private key"))
            .expected("PEM: `-----BEGIN PRIVATE KEY-----` and what follows");
        let encrypted = pem.windows(9).any(|word| word == b"ENCRYPTED");
        if encrypted { problem.hint("an encrypted key can't be used") } else { problem }
    })?;
    Ok(Identity { chain: certificates(&chain.to_string(), &chain.filled(look)?)?, key: private_key })
}

fn header(credentials: &Credentials, look: Look) -> Result<HeaderValue, Problem> {
    let holder = credentials_holder(credentials);
    let drawer = |block, key| Drawer { block, holder: &holder, key };
    match credentials {
        Credentials::Token { scheme, secret } => {
            let drawer = drawer("authorization", &secret.key);
            let token = drawer.filled(look)?;
            let value = [scheme.trim().as_bytes(), b" ", token.trim_ascii()].concat();
            sensitive(&value).ok_or_else(|| {
                Problem::new(format!(
                    "{drawer} holds a line break or another character that no header may have"
                ))
            })
        }
        Credentials::Basic { username_key, password_key, .. } => {
            let (name, password) = (drawer("basicAuth", username_key), drawer("basicAuth", password_key));
            let user = name.filled(look)?;
            let user = user.trim_ascii();
            if user.contains(&b':') {
                let problem = Problem::new(format!("{name} holds a user name with a `:`"));
                return Err(problem.hint("Basic authentication has no way to send one"));
            }
            let password = password.contents(look)?;
            let plain = [user, b":", password.trim_ascii()].concat();
            Ok(basic(&plain))
        }
    }
}

/// The header for `user:password`.
pub(super) fn basic(plain: &[u8]) -> HeaderValue {
    let value = format!("Basic {}", STANDARD.encode(plain));
    sensitive(value.as_bytes()).expect("base64 is text")
}

/// A header's value that is shown to nobody.
fn sensitive(value: &[u8]) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_bytes(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// One key of an object, and the block of the webhook that asks for it.
struct Drawer<'a> {
    block: &'static str,
    holder: &'a Holder,
    key: &'a str,
}

impl fmt::Display for Drawer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: key `{}` of {}", self.block, self.key, self.holder)
    }
}

impl Drawer<'_> {
    /// What it holds; nothing but blanks is nothing.
    fn filled(&self, look: Look) -> Result<Vec<u8>, Problem> {
        let value = self.contents(look)?;
        if value.trim_ascii().is_empty() {
            return Err(Problem::new(format!("{self} is empty")));
        }
        Ok(value)
    }

    fn contents(&self, look: Look) -> Result<Vec<u8>, Problem> {
        let Drawer { block, holder, key } = self;
        let mut data = match look(holder) {
            Contents::Data(data) => data,
            Contents::Absent => return Err(Problem::new(format!("`{block}`: there is no {holder}"))),
            Contents::Unknown(why) => {
                return Err(Problem::new(format!("`{block}`: {holder} cannot be read: {why}")));
            }
        };
        if let Some(value) = data.remove(*key) {
            return Ok(value);
        }
        let problem = Problem::new(format!("`{block}`: {holder} has no key `{key}`"));
        Err(match nearest(key, data.keys().map(String::as_str)) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.found(named(&data)),
        })
    }
}

fn named(data: &BTreeMap<String, Vec<u8>>) -> String {
    let keys: Vec<String> = data.keys().map(|key| format!("`{key}`")).collect();
    if keys.is_empty() { "no key at all".into() } else { keys.join(", ") }
}
