//! The certificate that the service shows: read from files, and read anew when they change, or handed in.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::problem::Problem;
use crate::serve::callers::Authorities;
use crate::serve::followed::{Followed, Words, bytes};

/// A certificate's two files, PEM.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What is shown. What cannot be used leaves what was there.
#[derive(Debug)]
pub(crate) struct Certificate(Source);

#[derive(Debug)]
enum Source {
    Files(Followed<CertifiedKey>),
    Handed(Mutex<Handed>),
}

#[derive(Debug, Default)]
struct Handed {
    key: Option<Arc<CertifiedKey>>,
    /// When the authority ends that signs, in seconds since 1970.
    authority: Option<i64>,
    /// Why there is none, or none newer.
    trouble: Option<String>,
}

const WORDS: Words =
    Words { changed: "certificate loaded", unfit: "certificate cannot be used, the last one stays" };

/// How the certificate stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// When the one that is shown ends, in seconds since 1970. `None`: there is none, so that nobody can connect.
    pub until: Option<i64>,
    /// When its authority ends, which is known of one of our own alone.
    pub authority: Option<i64>,
    pub trouble: Option<String>,
}

impl Certificate {
    /// Reads the files.
    pub(crate) fn open(files: Files) -> Result<Certificate, Problem> {
        let read = |paths: &[PathBuf]| read(&paths[0], &paths[1]);
        let followed = Followed::open(vec![files.certificate, files.key], read, WORDS)?;
        Ok(Certificate(Source::Files(followed)))
    }

    /// One that is still to come: until then nobody can connect.
    pub(crate) fn awaited() -> Certificate {
        let trouble = Some("there is no certificate yet".to_string());
        Certificate(Source::Handed(Mutex::new(Handed { trouble, ..Handed::default() })))
    }

    /// Shows this certificate from the next connection on, where none comes from files. All are PEM; of the authorities the
    /// first is the one that signs.
    pub(crate) fn show(&self, certificate: &str, key: &str, authorities: &str) -> Result<(), Problem> {
        let key = certified(certificate.as_bytes(), key.as_bytes(), ["the certificate", "its key"])?;
        let signing = CertificateDer::pem_slice_iter(authorities.as_bytes()).next();
        let authority = signing.and_then(|der| end_of(&der.ok()?));
        self.hand(|handed| *handed = Handed { key: Some(Arc::new(key)), authority, trouble: None });
        Ok(())
    }

    /// Says why none comes.
    pub(crate) fn wait_for(&self, trouble: &str) {
        self.hand(|handed| handed.trouble = Some(trouble.to_string()));
    }

    fn hand(&self, change: impl FnOnce(&mut Handed)) {
        if let Source::Handed(handed) = &self.0 {
            change(&mut handed.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        let (key, authority, trouble) = match &self.0 {
            Source::Files(files) => {
                let (key, trouble) = files.standing();
                (Some(key), None, trouble)
            }
            Source::Handed(handed) => {
                let handed = handed.lock().unwrap_or_else(PoisonError::into_inner);
                (handed.key.clone(), handed.authority, handed.trouble.clone())
            }
        };
        Standing { until: key.and_then(|key| end_of(key.cert.first()?)), authority, trouble }
    }

    /// TLS from 1.2 on, with this certificate, for those for whom the authorities vouch.
    pub(super) fn config(self: Arc<Certificate>, authorities: Option<Arc<Authorities>>) -> ServerConfig {
        let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has TLS 1.2 and 1.3");
        let clients = match authorities {
            Some(authorities) => versions.with_client_cert_verifier(authorities),
            None => versions.with_no_client_auth(),
        };
        clients.with_cert_resolver(self)
    }

    fn current(&self) -> Option<Arc<CertifiedKey>> {
        match &self.0 {
            Source::Files(files) => Some(files.current()),
            Source::Handed(handed) => handed.lock().unwrap_or_else(PoisonError::into_inner).key.clone(),
        }
    }
}

/// In seconds since 1970.
fn end_of(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, Problem> {
    let names = [certificate, key].map(|path| format!("`{}`", path.display()));
    certified(&bytes(certificate)?, &bytes(key)?, names.each_ref().map(String::as_str))
}

/// Reads a certificate and its key, both PEM, of which is spoken by these names.
fn certified(certificate: &[u8], key: &[u8], names: [&str; 2]) -> Result<CertifiedKey, Problem> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| unfit(names[0], "a certificate in PEM"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| unfit(names[1], "a private key in PEM"))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => unfit(names[1], "the key of the certificate"),
        other => Problem::new(format!("{} cannot be used: {other}", names[0])),
    })
}

fn unfit(name: &str, expected: &str) -> Problem {
    Problem::new(format!("{name} cannot be used")).expected(expected)
}
