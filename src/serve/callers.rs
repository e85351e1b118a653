//! Who may call: those who have a token, and those whose certificate somebody vouches for. Both are read from files, and
//! anew when these change; a file that cannot be used leaves what was there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use actix_web::middleware::Next;
use actix_web::web::Data;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::problem::Problem;
use crate::serve::followed::{Followed, Words, bytes};
use crate::serve::form::Form;

const WORDS: Words = Words { changed: "who may call has changed", unfit: "who may call stays as it was" };

/// Bearer tokens, any of which opens the door; only their digests are kept.
#[derive(Debug)]
pub(crate) struct Tokens(Followed<Vec<[u8; 32]>>);

impl Tokens {
    /// Reads a file with one token a line.
    pub(crate) fn open(path: PathBuf) -> Result<Tokens, Problem> {
        Followed::open(vec![path], |paths| read_tokens(&paths[0]), WORDS).map(Tokens)
    }

    /// Takes the same time for every token.
    fn admit(&self, authorization: Option<&HeaderValue>) -> bool {
        let text = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some((scheme, token)) = text.split_once(' ') else { return false };
        if !scheme.eq_ignore_ascii_case("bearer") {
            return false;
        }
        let shown = Sha256::digest(token.trim());
        let known = self.0.current();
        known.iter().fold(false, |found, digest| found | bool::from(digest.ct_eq(shown.as_slice())))
    }
}

fn read_tokens(path: &Path) -> Result<Vec<[u8; 32]>, Problem> {
    let text = String::from_utf8(bytes(path)?).map_err(|_| unfit(path, "text, one token a line"))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tokens: Vec<&str> = lines.collect();
    if tokens.is_empty() {
        return Err(unfit(path, "a token, and one line for each"));
    }
    if let Some(at) = tokens.iter().position(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
        let problem = unfit(path, "tokens of visible ASCII characters");
        return Err(problem.found(format!("another character in token {}", at + 1)));
    }
    Ok(tokens.into_iter().map(|token| Sha256::digest(token).into()).collect())
}

/// Those who vouch for clients: without a certificate of theirs nobody gets a connection.
#[derive(Debug)]
pub(crate) struct Authorities(Followed<Arc<dyn ClientCertVerifier>>);

impl Authorities {
    /// Reads a file of certificates, PEM.
    pub(crate) fn open(path: PathBuf) -> Result<Authorities, Problem> {
        Followed::open(vec![path], |paths| read_authorities(&paths[0]), WORDS).map(Authorities)
    }
}

fn read_authorities(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, Problem> {
    let expected = || unfit(path, "certificates of authorities in PEM");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes(path)?) {
        roots.add(certificate.map_err(|_| expected())?).map_err(|_| expected())?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier: Arc<dyn ClientCertVerifier> = verifier.map_err(|_| expected())?;
    Ok(verifier)
}

impl ClientCertVerifier for Authorities {
    /// None: what is hinted at here could change under a handshake. Clients show what they have.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.0.current().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.current().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.current().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.current().supported_verify_schemes()
    }
}

fn unfit(path: &Path, expected: &str) -> Problem {
    Problem::new(format!("`{}` cannot be used", path.display())).expected(expected)
}

/// What a port asks of those who call.
#[derive(Debug)]
pub(super) struct Door {
    pub tokens: Option<Arc<Tokens>>,
    /// The API server comes here with questions of its own, and has no token.
    pub api_server: bool,
}

impl Door {
    fn is_open_to(&self, request: &ServiceRequest) -> bool {
        let Some(tokens) = &self.tokens else { return true };
        let last = request.path().rsplit('/').next().unwrap_or_default();
        let probe = matches!(request.path(), "/healthz" | "/readyz");
        let asked_by_api_server = self.api_server && matches!(last, "validate" | "default" | "convert");
        probe || asked_by_api_server || tokens.admit(request.headers().get(AUTHORIZATION))
    }
}

/// Turns away whoever has no token where one is asked for.
pub(super) async fn guard(
    door: Data<Door>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    if door.is_open_to(&request) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let problem = Problem::new("this service answers only those who have its token")
        .expected("a header `Authorization: Bearer TOKEN`");
    let form = Form::of(request.headers(), b"");
    let mut response = form.problem(StatusCode::UNAUTHORIZED, &problem);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Ok(request.into_response(response))
}
