//! Trust, identity and credentials, against servers that check them.

use std::collections::BTreeMap;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::config::spec::{CaBundle, ClientTls, Credentials, KeyRef};
use crate::hook::access::{Contents, Renewal, Sort};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate with its key.
struct Shown {
    pem: String,
    der: CertificateDer<'static>,
    key: KeyPair,
}

fn named(names: &[&str]) -> CertificateParams {
    let mut parameters =
        CertificateParams::new(names.iter().map(|name| name.to_string()).collect::<Vec<_>>()).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, "hook");
    parameters
}

/// What `openssl req -x509` makes of a name.
fn own_authority(names: &[&str]) -> CertificateParams {
    let mut parameters = named(names);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

fn self_signed(parameters: CertificateParams) -> Shown {
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    Shown { pem: certificate.pem(), der: certificate.der().clone(), key }
}

fn authority() -> Authority {
    CertifiedIssuer::self_signed(own_authority(&[]), KeyPair::generate().unwrap()).unwrap()
}

fn signed(authority: &Authority, names: &[&str]) -> Shown {
    let key = KeyPair::generate().unwrap();
    let certificate = named(names).signed_by(&key, authority).unwrap();
    Shown { pem: certificate.pem(), der: certificate.der().clone(), key }
}

fn key_of(shown: &Shown) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(shown.key.serialize_der()).unwrap()
}

/// A server that shows this certificate, and wants one of `clients` when there is such an authority.
fn acceptor(shown: &Shown, clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let config = builder.with_single_cert(vec![shown.der.clone()], key_of(shown)).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn secure(shown: &Shown) -> Server {
    Server::start_tls(vec![answers(3, ok(NO_CHILDREN))], acceptor(shown, None)).await
}

fn secure_url(server: &Server) -> String {
    format!("https://localhost:{}/sync", server.address.port())
}

fn reached(server: &Server, access: Access) -> Remote {
    Remote::new(RemoteSettings { url: secure_url(server), access, ..settings(server) }).unwrap()
}

fn trusting(pem: &str) -> Access {
    Access { ca_bundle: Some(CaBundle::Inline(pem.into())), ..Access::default() }
}

fn key_ref(name: &str, key: &str) -> KeyRef {
    KeyRef { namespace: "web".into(), name: name.into(), key: key.into() }
}

fn token(scheme: &str) -> Access {
    let token = Credentials::Token { scheme: scheme.into(), secret: key_ref("auth", "token") };
    Access { credentials: Some(token), ..Access::default() }
}

fn basic() -> Access {
    let basic = Credentials::Basic {
        namespace: "web".into(),
        name: "auth".into(),
        username_key: "username".into(),
        password_key: "password".into(),
    };
    Access { credentials: Some(basic), ..Access::default() }
}

fn client_tls() -> Access {
    let client = ClientTls {
        namespace: "web".into(),
        name: "identity".into(),
        certificate_key: "tls.crt".into(),
        private_key_key: "tls.key".into(),
    };
    Access { client_tls: Some(client), ..Access::default() }
}

/// Every named object holds this.
fn hand_in(remote: &Remote, data: &[(&str, &str)]) -> Renewal {
    let data: BTreeMap<String, Vec<u8>> =
        data.iter().map(|(key, value)| (key.to_string(), value.as_bytes().to_vec())).collect();
    remote.admission().renew(&|_| Contents::Data(data.clone()))
}

fn unready(result: Result<Answer, Failure>) -> String {
    match result {
        Err(Failure::Unready(problem)) => problem.to_string(),
        other => panic!("expected a hook that can't be called, got {other:?}"),
    }
}

fn authorization(server: &Server, request: usize) -> Option<String> {
    let headers = server.received()[request].headers();
    headers.into_iter().find(|(name, _)| name == "authorization").map(|(_, value)| value)
}

#[tokio::test]
async fn a_hook_is_reached_over_tls_by_its_authority() {
    let authority = authority();
    let server = secure(&signed(&authority, &["localhost"])).await;
    let bundle = format!("# ours\n{}\n-----BEGIN CERTIFICATE-----\nnone\n", authority.pem());
    let remote = reached(&server, trusting(&bundle));
    for _ in 0..2 {
        assert_eq!(sync(&remote).await, Ok(Answer::default()));
    }
    assert_eq!(server.received()[1].connection, 0);
}

#[tokio::test]
async fn a_hook_that_shows_an_unknown_certificate_is_not_asked() {
    let authority = authority();
    let server = secure(&signed(&authority, &["localhost"])).await;
    let url = secure_url(&server);
    let untrusting = Remote::new(RemoteSettings { url: url.clone(), ..settings(&server) }).unwrap();
    let message = unavailable(sync(&untrusting).await);
    let told =
        "invalid peer certificate: UnknownIssuer; hint: give its authority's certificate as `caBundle`";
    assert_eq!(message, format!("no connection to {}: {told}", &url[..url.len() - 5]));
    let other = CertifiedIssuer::self_signed(own_authority(&[]), KeyPair::generate().unwrap()).unwrap();
    let message = unavailable(sync(&reached(&server, trusting(&other.pem()))).await);
    assert!(message.contains("invalid peer certificate"), "{message}");
    let url = url.replace("localhost", "127.0.0.1");
    let settings = RemoteSettings { url, access: trusting(&authority.pem()), ..settings(&server) };
    let message = unavailable(sync(&Remote::new(settings).unwrap()).await);
    assert!(message.contains("certificate not valid for name"), "{message}");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn an_authority_may_be_the_servers_own_certificate_when_it_is_the_one_given() {
    for until in [date_time_ymd(2049, 12, 31), date_time_ymd(2050, 1, 1)] {
        let mut parameters = own_authority(&["localhost"]);
        parameters.not_after = until;
        let shown = self_signed(parameters);
        let server = secure(&shown).await;
        let bundle = format!("{}{}", authority().pem(), shown.pem);
        assert_eq!(sync(&reached(&server, trusting(&bundle))).await, Ok(Answer::default()));
    }
}

#[tokio::test]
async fn an_authority_as_the_servers_own_certificate_is_refused_for_any_fault_of_it() {
    let mut expired = own_authority(&["localhost"]);
    expired.not_after = date_time_ymd(2020, 1, 1);
    let mut early = own_authority(&["localhost"]);
    early.not_before = date_time_ymd(2090, 1, 1);
    for (parameters, told) in [
        (expired, "certificate expired"),
        (early, "certificate not valid yet"),
        (own_authority(&["elsewhere"]), "certificate not valid for name"),
    ] {
        let shown = self_signed(parameters);
        let server = secure(&shown).await;
        let message = unavailable(sync(&reached(&server, trusting(&shown.pem))).await);
        assert!(message.contains(told), "{message}");
    }
    let authority = authority();
    let below = own_authority(&["localhost"]);
    let key = KeyPair::generate().unwrap();
    let certificate = below.signed_by(&key, &authority).unwrap();
    let server = secure(&Shown { pem: String::new(), der: certificate.der().clone(), key }).await;
    let message = unavailable(sync(&reached(&server, trusting(&authority.pem()))).await);
    let told = "hint: the server shows an authority's certificate as its own: give this one as `caBundle`";
    assert!(message.ends_with(told), "another than the one given: {message}");
}

#[tokio::test]
async fn a_plain_self_signed_certificate_is_trusted_when_given() {
    let shown = self_signed(named(&["localhost"]));
    let server = secure(&shown).await;
    assert_eq!(sync(&reached(&server, trusting(&shown.pem))).await, Ok(Answer::default()));
}

#[tokio::test]
async fn a_server_of_tls_1_2_is_spoken_to() {
    let shown = self_signed(named(&["localhost"]));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![shown.der.clone()], key_of(&shown))
        .unwrap();
    let server = Server::start_tls(vec![answer(ok(NO_CHILDREN))], TlsAcceptor::from(Arc::new(config))).await;
    assert_eq!(sync(&reached(&server, trusting(&shown.pem))).await, Ok(Answer::default()));
}

#[tokio::test]
async fn a_hook_that_wants_a_certificate_is_shown_one() {
    let (clients, hooks) = (authority(), authority());
    let shown = signed(&hooks, &["localhost"]);
    let scripts = vec![answers(3, ok(NO_CHILDREN))];
    let server = Server::start_tls(scripts, acceptor(&shown, Some(&clients))).await;
    let nobody = reached(&server, trusting(&hooks.pem()));
    let message = unavailable(sync(&nobody).await);
    assert!(message.contains("CertificateRequired"), "{message}");

    let access = Access { client_tls: client_tls().client_tls, ..trusting(&hooks.pem()) };
    let remote = reached(&server, access);
    assert_eq!(
        unready(sync(&remote).await),
        "`clientTLS`: Secret `web/identity` cannot be read: it is not looked at yet"
    );
    let us = signed(&clients, &["us"]);
    let key = us.key.serialize_pem();
    assert_eq!(hand_in(&remote, &[("tls.crt", &us.pem), ("tls.key", &key)]), Renewal::Usable);
    assert_eq!(sync(&remote).await, Ok(Answer::default()));
    let stranger = signed(&hooks, &["us"]);
    let key = stranger.key.serialize_pem();
    assert_eq!(hand_in(&remote, &[("tls.crt", &stranger.pem), ("tls.key", &key)]), Renewal::Changed);
    unavailable(sync(&remote).await);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn an_identity_that_does_not_fit_is_told() {
    let server = Server::start(vec![]).await;
    let remote = reached(&server, client_tls());
    let (ours, other) = (self_signed(named(&["us"])), self_signed(named(&["them"])));
    let key = ours.key.serialize_pem();
    let label = |key: &str| format!("`clientTLS`: key `{key}` of Secret `web/identity`");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let no_key = format!(
        "{} holds no private key; expected: PEM: `-----BEGIN PRIVATE KEY-----` and what follows",
        label("tls.key")
    );
    for (certificate, key, told) in [
        (
            other.pem.as_str(),
            key.as_str(),
            "`clientTLS`: Secret `web/identity`: the private key is not the certificate's".to_string(),
        ),
        (
            &key,
            &key,
            format!(
                "{} holds no certificate; expected: PEM: `-----BEGIN CERTIFICATE-----` and what follows",
                label("tls.crt")
            ),
        ),
        (&ours.pem, &ours.pem, no_key.clone()),
        (&ours.pem, encrypted, format!("{no_key}; hint: an encrypted key can't be used")),
        (&ours.pem, " ", format!("{} is empty", label("tls.key"))),
    ] {
        let renewal = hand_in(&remote, &[("tls.crt", certificate), ("tls.key", key)]);
        assert!(matches!(renewal, Renewal::Unusable(_)), "{renewal:?}");
        assert_eq!(unready(sync(&remote).await), told);
    }
    assert_eq!(hand_in(&remote, &[("tls.crt", &ours.pem), ("tls.key", &key)]), Renewal::Usable);
}

#[tokio::test]
async fn a_new_authority_counts_at_the_next_call() {
    let (old, new) = (authority(), authority());
    let server = secure(&signed(&old, &["localhost"])).await;
    let access =
        Access { ca_bundle: Some(CaBundle::ConfigMap(key_ref("trust", "ca.crt"))), ..Access::default() };
    let remote = reached(&server, access);
    let holders: Vec<String> = remote.admission().holders().iter().map(|holder| holder.to_string()).collect();
    assert_eq!(holders, ["ConfigMap `web/trust`"]);
    assert_eq!(hand_in(&remote, &[("ca.crt", &old.pem())]), Renewal::Usable);
    assert_eq!(sync(&remote).await, Ok(Answer::default()));
    assert_eq!(hand_in(&remote, &[("ca.crt", &old.pem()), ("note", "1")]), Renewal::Same);
    assert_eq!(sync(&remote).await, Ok(Answer::default()));
    assert_eq!(hand_in(&remote, &[("ca.crt", &new.pem())]), Renewal::Changed);
    let message = unavailable(sync(&remote).await);
    assert!(message.contains("invalid peer certificate"), "the open connection is not used: {message}");
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0]);
}

#[tokio::test]
async fn a_token_is_sent_trimmed_and_a_new_one_at_the_next_call() {
    let server = Server::start(vec![answers(2, ok(NO_CHILDREN))]).await;
    let remote = Remote::new(RemoteSettings { access: token(" Bearer "), ..settings(&server) }).unwrap();
    hand_in(&remote, &[("token", "  one\n")]);
    sync(&remote).await.unwrap();
    assert_eq!(hand_in(&remote, &[("token", "one")]), Renewal::Same);
    assert_eq!(hand_in(&remote, &[("token", "two")]), Renewal::Changed);
    sync(&remote).await.unwrap();
    assert_eq!(authorization(&server, 0).as_deref(), Some("Bearer one"));
    assert_eq!(authorization(&server, 1).as_deref(), Some("Bearer two"));
    assert_eq!(server.received()[1].connection, 0, "the connection has nothing to do with it");
    let pass = format!("{:?}", remote.admission().pass());
    assert!(!pass.contains("two"), "{pass}");
}

#[tokio::test]
async fn a_user_name_and_a_password_are_sent_trimmed() {
    let server = Server::start(vec![answers(2, ok(NO_CHILDREN))]).await;
    let remote = Remote::new(RemoteSettings { access: basic(), ..settings(&server) }).unwrap();
    hand_in(&remote, &[("username", " me "), ("password", "p@ss:word\n")]);
    sync(&remote).await.unwrap();
    hand_in(&remote, &[("username", "me"), ("password", "")]);
    sync(&remote).await.unwrap();
    assert_eq!(authorization(&server, 0).as_deref(), Some("Basic bWU6cEBzczp3b3Jk"));
    assert_eq!(authorization(&server, 1).as_deref(), Some("Basic bWU6"));
}

#[tokio::test]
async fn credentials_go_before_a_user_in_the_url() {
    let server = Server::start(vec![answer(ok(NO_CHILDREN))]).await;
    let url = format!("http://me:word@{}/sync", server.address);
    let remote = Remote::new(RemoteSettings { access: token("Bearer"), url, ..settings(&server) }).unwrap();
    hand_in(&remote, &[("token", "one")]);
    sync(&remote).await.unwrap();
    assert_eq!(authorization(&server, 0).as_deref(), Some("Bearer one"));
}

#[tokio::test]
async fn credentials_stay_with_their_host_on_a_redirect() {
    let other = Server::start(vec![answer(ok(NO_CHILDREN))]).await;
    let beside = http("307 Temporary Redirect", "Location: beside\r\n", "");
    let away = http("307 Temporary Redirect", &format!("Location: {}\r\n", other.url("/")), "");
    let home = Server::start(vec![[answer(beside), answer(away)].concat()]).await;
    let remote = Remote::new(RemoteSettings { access: token("Bearer"), ..settings(&home) }).unwrap();
    hand_in(&remote, &[("token", "one")]);
    sync(&remote).await.unwrap();
    assert_eq!(authorization(&home, 0).as_deref(), Some("Bearer one"));
    assert_eq!(authorization(&home, 1).as_deref(), Some("Bearer one"));
    assert_eq!(authorization(&other, 0), None);
}

#[test]
fn credentials_follow_a_host_to_tls_and_not_back() {
    for (from, to, trusted) in [
        ("http://hook/a", "http://hook/b", true),
        ("http://hook", "https://HOOK:8443", true),
        ("https://hook", "http://hook", false),
        ("http://hook", "http://hook:81", false),
        ("https://hook", "https://other", false),
        ("https://hook", "https://my.hook", false),
    ] {
        let (from, to) = (Target::parse(from).unwrap(), Target::parse(to).unwrap());
        assert_eq!(from.trusts(&to), trusted, "{} to {}", from.name(), to.name());
    }
}

#[tokio::test]
async fn what_is_missing_is_named_and_no_value_is_told() {
    let server = Server::start(vec![]).await;
    let bundle = Access { ca_bundle: Some(CaBundle::Secret(key_ref("ca", "ca.crt"))), ..Access::default() };
    for (access, data, told) in [
        (
            token("Bearer"),
            &[("tokn", "hush")][..],
            "`authorization`: Secret `web/auth` has no key `token`; hint: did you mean `tokn`?",
        ),
        (
            token("Bearer"),
            &[("other", "hush"), ("word", "hush")],
            "`authorization`: Secret `web/auth` has no key `token`; found: `other`, `word`",
        ),
        (token("Bearer"), &[], "`authorization`: Secret `web/auth` has no key `token`; found: no key at all"),
        (token("Bearer"), &[("token", " \n")], "`authorization`: key `token` of Secret `web/auth` is empty"),
        (
            token("Bearer"),
            &[("token", "hush\nhush")],
            "`authorization`: key `token` of Secret `web/auth` holds a line break or another character that no header may have",
        ),
        (
            basic(),
            &[("username", "a:hush"), ("password", "hush")],
            "`basicAuth`: key `username` of Secret `web/auth` holds a user name with a `:`; hint: Basic authentication has no way to send one",
        ),
        (
            bundle,
            &[("ca.crt", "hush")],
            "`caBundle`: key `ca.crt` of Secret `web/ca` holds no certificate; expected: PEM: `-----BEGIN CERTIFICATE-----` and what follows",
        ),
    ] {
        let remote = Remote::new(RemoteSettings { access, ..settings(&server) }).unwrap();
        hand_in(&remote, data);
        let message = unready(sync(&remote).await);
        assert_eq!(message, told);
        assert!(!message.contains("hush"), "{message}");
        assert_eq!(hand_in(&remote, data), Renewal::Same, "told once");
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn an_object_that_is_absent_or_out_of_reach_is_named() {
    let server = Server::start(vec![answer(ok(NO_CHILDREN))]).await;
    let remote = Remote::new(RemoteSettings { access: token("Bearer"), ..settings(&server) }).unwrap();
    let holders = remote.admission().holders();
    assert_eq!(
        (holders.len(), holders[0].sort, holders[0].key.to_string()),
        (1, Sort::Secret, "web/auth".into())
    );
    remote.admission().renew(&|_| Contents::Absent);
    assert_eq!(unready(sync(&remote).await), "`authorization`: there is no Secret `web/auth`");
    remote.admission().renew(&|_| Contents::Unknown("forbidden".into()));
    assert_eq!(unready(sync(&remote).await), "`authorization`: Secret `web/auth` cannot be read: forbidden");
    assert_eq!(hand_in(&remote, &[("token", "one")]), Renewal::Usable);
    assert_eq!(sync(&remote).await, Ok(Answer::default()));
    assert!(matches!(remote.admission().renew(&|_| Contents::Absent), Renewal::Unusable(_)));
    unready(sync(&remote).await);
}

#[tokio::test]
async fn an_inline_bundle_without_a_certificate_is_told() {
    let server = Server::start(vec![]).await;
    assert_eq!(
        unready(sync(&reached(&server, trusting("pem"))).await),
        "`caBundle`: `inline` holds no certificate; expected: PEM: `-----BEGIN CERTIFICATE-----` and what follows"
    );
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let message = unready(sync(&reached(&server, trusting(nonsense))).await);
    assert!(message.starts_with("`caBundle`: no certificate that can be used: "), "{message}");
}

#[tokio::test]
async fn an_answer_over_tls_may_end_with_its_connection_and_no_notice() {
    let shown = self_signed(named(&["localhost"]));
    let answered = format!("HTTP/1.0 200 OK\r\n\r\n{NO_CHILDREN}");
    let cut = format!("HTTP/1.0 200 OK\r\n\r\n{}", &NO_CHILDREN[..9]);
    let short = format!("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{}", &NO_CHILDREN[..9]);
    let scripts = [answered, cut, short].map(|text| [answer(text), vec![Act::Drop]].concat());
    let server = Server::start_tls(scripts.to_vec(), acceptor(&shown, None)).await;
    let remote = reached(&server, trusting(&shown.pem));
    assert_eq!(sync(&remote).await, Ok(Answer::default()));
    assert!(refused(sync(&remote).await).starts_with("the answer is not JSON: "));
    assert!(unavailable(sync(&remote).await).starts_with("the answer broke off: "));
}
